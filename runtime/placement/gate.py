"""Which slots a shard answers for, and which of them it holds back for a moment while they change
their shard.

Each call is checked when it arrives and, if it writes, again inside its transaction: what the gate
refuses did nothing, and the gateway asks again, here or at the shard that owns the slot by then.
The gate reads the placement when the shard opens and when it is told to; it never guesses.
Invariant: a slot is open in one shard at most, because a source freezes a slot before the placement
gives it away, and opens it again only after a version of the placement says that the move was given
up.
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.errors import Moved
from runtime.limits import SLOTS
from runtime.placement.placement import COPYING, ERASING, UNDOING, Attempt, Move, Placement
from runtime.placement.table import PlacementTable

_ELSEWHERE, _OPEN, _FROZEN = range(3)


class SlotGate:
    """The gate of shard `number`. Without a table the shard has every slot, for good. Changed by
    the shard's event loop alone.
    """

    def __init__(self, number: int = 0, table: PlacementTable | None = None):
        self.number = number
        self.table = table
        self.version = 0
        self.placed_at = 0  # Placement.at of that version
        self.moves: dict[Attempt, Move] = {}  # under way from here or to here, as of that version
        self.expected: dict[
            int, Attempt
        ] = {}  # slots that are on their way here, and with which attempt
        self._states = bytearray([_OPEN]) * SLOTS
        self._owners: tuple[int, ...] = ()  # as of that version; empty before there is one

    def enter(self) -> None:
        """Read the placement as the shard opens. Moves away from here are given up first: what was
        watched and frozen is forgotten.
        """
        if self.table is None:
            return
        placement = self.table.load()
        for move in placement.moves:
            if move.source == self.number and move.state == COPYING:
                placement = self.give_up(move.attempt)
        self.apply(placement)

    def load(self) -> Placement:
        """The placement as it is published. Blocks."""
        assert self.table is not None
        return self.table.load()

    def give_up(self, attempt: Attempt) -> Placement:
        """Publish that the attempt is given up, unless its end, whichever, was published before; ->
        the newest placement. Blocks.
        """
        assert self.table is not None
        return self.table.change(
            lambda newest: newest.undone(attempt) if newest.is_copying(attempt) else newest
        )

    def apply(self, placement: Placement) -> tuple[set[int], set[int]]:
        """Apply a placement unless a newer one is known; -> slots that came, slots that went. A
        frozen slot stays so until unfrozen.
        """
        if placement.version < self.version:
            return set(), set()
        self.version, self.placed_at = placement.version, placement.at
        came, went = self._changed_owners(placement.owners)
        self.moves = {
            move.attempt: move
            for move in placement.moves
            if self.number in (move.source, move.target)
        }
        copied = [
            move
            for move in self.moves.values()
            if move.target == self.number and move.state == COPYING
        ]
        self.expected = {slot: move.attempt for move in copied for slot in move.slots}
        return came, went

    def _changed_owners(self, owners: tuple[int, ...]) -> tuple[set[int], set[int]]:
        """Note who owns the slots; -> those that came, those that went."""
        came, went = set(), set()
        if owners == self._owners:  # most versions change none
            return came, went
        self._owners = owners
        for slot, owner in enumerate(owners):
            is_here = self._states[slot] != _ELSEWHERE
            if (owner == self.number) != is_here:
                (went if is_here else came).add(slot)
                self._states[slot] = _ELSEWHERE if is_here else _OPEN
        return came, went

    def gained(self, placement: Placement) -> set[int]:
        """The slots that come here with this placement."""
        if placement.owners == self._owners:
            return set()
        return {
            slot
            for slot, owner in enumerate(placement.owners)
            if owner == self.number and self._states[slot] == _ELSEWHERE
        }

    def check(self, slot: int, *, admitted: bool = False) -> None:
        """Raise Moved unless the slot is open here."""
        if self._states[slot] != _OPEN:
            raise Moved(self.version, admitted=admitted)

    def may_erase(self, slot: int, attempt: Attempt) -> bool:
        """Whether what is here of the slot is for this attempt to erase: what it left at its
        source, or what was at its target before it or because of it. Safe from any thread."""
        move = self.moves.get(attempt)
        if move is None or slot not in move.slots or self.owns(slot):
            return False
        return (
            move.state == ERASING
            if move.source == self.number
            else move.state in (COPYING, UNDOING)
        )

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

    def unfreeze(self, slots: Iterable[int]) -> None:
        """Open what is frozen of these slots."""
        for slot in slots:
            if self._states[slot] == _FROZEN:
                self._states[slot] = _OPEN

    def figures(self) -> dict[str, int]:
        """For health checks and metrics; version: of the placement that is known here."""
        frozen = self._states.count(_FROZEN)
        return {
            "owned": frozen + self._states.count(_OPEN),
            "frozen": frozen,
            "expected": len(self.expected),
            "version": self.version,
        }
