"""Which slots a shard answers for, and which of them it holds back for a moment while they change their shard.

Each call is checked when it arrives and, if it writes, again inside its transaction: what the gate refuses did nothing, and the
gateway asks again, here or at the shard that owns the slot by then. The gate reads the placement when the shard opens and when
it is told to; it never guesses. Invariant: a slot is open in one shard at most, because a source freezes a slot before the
placement gives it away, and opens it again only after a version of the placement says that the move was given up.
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.errors import Moved
from runtime.limits import SLOTS
from runtime.placement import COPYING, Placement
from runtime.placement_table import PlacementTable

_ELSEWHERE, _OPEN, _FROZEN = range(3)


class SlotGate:
    """The gate of shard `number`. Without a table the shard has every slot, for good. Changed by the shard's event loop alone."""

    def __init__(self, number: int = 0, table: PlacementTable | None = None):
        self.number = number
        self.table = table
        self.version = 0
        self.placed_at = 0  # Placement.at of that version
        self.expected: set[int] = set()  # slots that are on their way here
        self._states = bytearray([_OPEN]) * SLOTS

    def enter(self) -> None:
        """Read the placement as the shard opens. Moves away from here are given up first: what was watched and frozen is forgotten."""
        if self.table is None:
            return
        placement = self.table.load()
        for move in placement.moves:
            if move.source == self.number and move.state == COPYING:
                placement = self.give_up(move.id)
        self.learn(placement)

    def give_up(self, move_id: str) -> Placement:
        """Publish that the move is given up, unless its end, whichever, was published before; -> the newest placement. Blocks."""
        return self.table.change(lambda newest: newest.undone(move_id) if newest.is_copying(move_id) else newest)

    def learn(self, placement: Placement) -> tuple[set[int], set[int]]:
        """Take over a placement unless a newer one is known; -> slots that came, slots that went. A frozen slot stays so until thawed."""
        if placement.version < self.version:
            return set(), set()
        self.version, self.placed_at = placement.version, placement.at
        came, went = set(), set()
        for slot, owner in enumerate(placement.owners):
            is_here = self._states[slot] != _ELSEWHERE
            if (owner == self.number) != is_here:
                (went if is_here else came).add(slot)
                self._states[slot] = _ELSEWHERE if is_here else _OPEN
        self.expected = {slot for move in placement.moves if move.target == self.number and move.state == COPYING for slot in move.slots}
        return came, went

    def gains(self, placement: Placement) -> bool:
        """Whether slots come here with this placement."""
        return any(owner == self.number and self._states[slot] == _ELSEWHERE for slot, owner in enumerate(placement.owners))

    def check(self, slot: int, *, admitted: bool = False) -> None:
        """Raises Moved unless the slot is open here."""
        if self._states[slot] != _OPEN:
            raise Moved(self.version, admitted=admitted)

    def owns(self, slot: int) -> bool:
        """Whether the slot belongs here, frozen or not."""
        return self._states[slot] != _ELSEWHERE

    def freeze(self, slots: Iterable[int]) -> None:
        """Hold the slots back. Raises Moved unless all are open here."""
        slots = list(slots)
        for slot in slots:
            self.check(slot)
        for slot in slots:
            self._states[slot] = _FROZEN

    def thaw(self, slots: Iterable[int]) -> None:
        """Open what is frozen of these slots."""
        for slot in slots:
            if self._states[slot] == _FROZEN:
                self._states[slot] = _OPEN

    def figures(self) -> dict[str, int]:
        """For health checks and metrics; version: of the placement that is known here."""
        frozen = self._states.count(_FROZEN)
        return {"owned": frozen + self._states.count(_OPEN), "frozen": frozen, "expected": len(self.expected), "version": self.version}
