"""tenant -> slot -> shard, and how slots change their shard. Pure functions and frozen values; no
I/O.

4,096 slots. A tenant's slot is the first 12 bits of SHA-256(normalised e-mail), so registration and
login find the shard without any directory. A `Placement` says which shard owns each slot, and where
shards live. It has a version: each change makes the next one, and runtime/placement/table.py lets
each version be published once.

A data directory begins with version 0, which nobody writes: contiguous ranges of equal length. A
`Move` brings slots from one shard to another, and is in the table from its beginning to its end:

    planned → copying → erasing → gone      the owner changes when copying ends; the source then
                                            erases what it had
              copying → undoing → gone      it was given up; the target erases what it got. Or it is
                                            planned again

Each time that a move begins to copy it gets another token. Whoever made an attempt names it by
that, here and at the shards, so one who wakes up during a later attempt changes nothing.

Invariants: a slot has one owner in each version; a slot is in one move at most; an owner changes
from `copying` to `erasing` only, for the attempt that is under way; a token comes back in no later
version.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from runtime.limits import MOVE_ATTEMPTS_MAX, SLOTS
from storage.store import Scope

PLANNED, COPYING, ERASING, UNDOING = "planned", "copying", "erasing", "undoing"


class PlacementError(Exception):
    """A change that this placement does not allow; the message is one sentence."""


class Attempt(NamedTuple):
    """One time that a move was begun. token: its own; "" before it is begun."""

    move_id: str
    token: str


class Move(msgspec.Struct, frozen=True):
    """Slots on their way from shard `source` to shard `target`.

    attempts  how often it was tried and came to nothing
    token     of the attempt that is under way, or was the last
    """

    id: str
    slots: tuple[int, ...]
    source: int
    target: int
    state: str = PLANNED
    attempts: int = 0
    token: str = ""

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.id, self.token)


class Place(msgspec.Struct, frozen=True):
    """Where a shard lives. node: the label of its node, "" for the only one; draining: it is to
    give all its slots away.
    """

    node: str = ""
    draining: bool = False


class Written(msgspec.Struct, frozen=True):
    """A placement as it is stored. owners: (first slot, shard) of each run of slots, in order; at:
    see Placement.
    """

    version: int
    cluster_id: str
    shards: tuple[Place, ...]
    owners: tuple[tuple[int, int], ...]
    moves: tuple[Move, ...] = ()
    at: int = 0


_decode_written = msgspec.json.Decoder(Written).decode


@dataclass(frozen=True, slots=True)
class Placement:
    """Which shard owns each slot, which slots are moving, and where the shards live.

    owners: the shard of each slot, by slot; shards: where each shard lives, by number.

    at  from when on it counts, Unix milliseconds. Commits that follow from a version are not
        earlier, those that it follows from not later, whatever the clocks of their machines say: so
        the state of a moment has one owner of each slot, with all its rows
    """

    version: int
    cluster_id: str
    shards: tuple[Place, ...]
    owners: tuple[int, ...] = field(repr=False)
    moves: tuple[Move, ...] = ()
    at: int = 0

    @classmethod
    def even(cls, shards: int, cluster_id: str = "") -> Placement:
        """Version 0: the slots divided evenly, all shards on one node."""
        return cls(
            0,
            cluster_id,
            (Place(),) * shards,
            tuple(shard_of_slot(slot, shards) for slot in range(SLOTS)),
        )

    @classmethod
    def decode(cls, raw: bytes) -> Placement:
        """What `encode` made. Raises msgspec.MsgspecError, ValueError."""
        written = _decode_written(raw)
        ends = [first for first, _ in written.owners[1:]] + [SLOTS]
        owners: list[int] = []
        for (first, shard), end in zip(written.owners, ends, strict=True):
            owners += [shard] * (end - first)
        shards = range(len(written.shards))
        if len(owners) != SLOTS or not all(shard in shards for _, shard in written.owners):
            raise ValueError("it does not give each slot a shard")
        return cls(
            written.version,
            written.cluster_id,
            written.shards,
            tuple(owners),
            written.moves,
            written.at,
        )

    def encode(self) -> bytes:
        runs = tuple(
            (slot, shard)
            for slot, shard in enumerate(self.owners)
            if not slot or self.owners[slot - 1] != shard
        )
        return msgspec.json.encode(
            Written(self.version, self.cluster_id, self.shards, runs, self.moves, self.at)
        )

    def slots_of(self, shard: int) -> list[int]:
        """The slots a shard owns, in order."""
        return [slot for slot, owner in enumerate(self.owners) if owner == shard]

    def holds(self, shard: int) -> bool:
        """Whether anything may be stored in the shard."""
        return shard in self.owners or any(
            shard in (move.source, move.target) for move in self.moves
        )

    def misplaced(self, held: Mapping[int, Collection[Scope]]) -> list[int]:
        """Slots whose rows do not lie as they do under this placement, so that it is not the one
        that the stores were written under.

        held  shard -> what its store has rows of

        Rows lie with a slot's owner, and while it moves with the other shard, too, but accounts
        never with that one alone: of an account that the owner erased a row of the slot stays.
        """
        slots = {shard: {scope.slot for scope in found} for shard, found in held.items()}
        passing = {
            (slot, shard)
            for move in self.moves
            for slot in move.slots
            for shard in (move.source, move.target)
        }
        wrong = set()
        for shard, found in held.items():
            for scope in found:
                slot, owner = scope.slot, self.owners[scope.slot]
                is_alone = scope.tenant and slot not in slots.get(owner, {slot})
                if owner != shard and (is_alone or (slot, shard) not in passing):
                    wrong.add(slot)
        return sorted(wrong)

    def move(self, move_id: str) -> Move | None:
        return next((move for move in self.moves if move.id == move_id), None)

    def is_copying(self, attempt: Attempt) -> bool:
        """Whether the attempt can still end either way."""
        move = self.move(attempt.move_id)
        return move is not None and move.attempt == attempt and move.state == COPYING

    # --- changes: each gives the next version, or raises PlacementError ---------------------------

    def planned(self, moves: Iterable[Move]) -> Placement:
        """Plan these moves, in their order."""
        busy = {slot for move in self.moves for slot in move.slots}
        for move in moves:
            if (
                not all(0 <= shard < len(self.shards) for shard in (move.source, move.target))
                or move.source == move.target
            ):
                raise PlacementError(
                    f"Slots cannot move from shard {move.source} to shard {move.target} of "
                    f"{len(self.shards)}."
                )
            for slot in move.slots:
                if not 0 <= slot < SLOTS or self.owners[slot] != move.source:
                    raise PlacementError(f"Slot {slot} does not belong to shard {move.source}.")
                if slot in busy:
                    raise PlacementError(f"Slot {slot} is being moved already.")
                busy.add(slot)
        return self._next(moves=(*self.moves, *moves))

    def begun(self, move_id: str, token: str) -> Placement:
        """Its slots are being copied, by whoever made up the token."""
        move = self.move(move_id)
        if move is None or move.state != PLANNED:
            raise PlacementError(f"Move {move_id} is {'over' if move is None else move.state}.")
        return self._next(
            moves=self._with(msgspec.structs.replace(move, state=COPYING, token=token))
        )

    def cut_over(self, attempt: Attempt, at: int = 0) -> Placement:
        """The target owns the slots from this version on. at: when the last of their rows was
        stored there.
        """
        move = self._in_state(attempt, COPYING)
        owners = list(self.owners)
        for slot in move.slots:
            owners[slot] = move.target
        return self._next(
            owners=tuple(owners),
            moves=self._with(msgspec.structs.replace(move, state=ERASING)),
            at=max(self.at, at),
        )

    def undone(self, attempt: Attempt) -> Placement:
        """The attempt is given up, and the source keeps the slots."""
        return self._next(
            moves=self._with(
                msgspec.structs.replace(self._in_state(attempt, COPYING), state=UNDOING)
            )
        )

    def ended(self, attempt: Attempt, at: int = 0) -> Placement:
        """What was to be erased is, since `at`; or it was only planned."""
        self._in_state(attempt, PLANNED, ERASING, UNDOING)
        return self._next(
            moves=tuple(move for move in self.moves if move.id != attempt.move_id),
            at=max(self.at, at),
        )

    def planned_again(self, attempt: Attempt, at: int = 0) -> Placement:
        """What was given up, and erased since `at`, is to be tried once more, after the others."""
        move = self._in_state(attempt, UNDOING)
        again = msgspec.structs.replace(move, state=PLANNED, attempts=move.attempts + 1, token="")
        return self._next(
            moves=(*(other for other in self.moves if other.id != move.id), again),
            at=max(self.at, at),
        )

    def hopeless(self, attempt: Attempt) -> Placement:
        """Have what was given up not be tried again."""
        move = self._in_state(attempt, UNDOING)
        return self._next(
            moves=self._with(msgspec.structs.replace(move, attempts=MOVE_ATTEMPTS_MAX))
        )

    def resized(self, count: int) -> Placement:
        """Have so many shards: further ones without any slot, or without the last ones, which must
        be empty.
        """
        if count >= len(self.shards):
            return self._next(shards=(*self.shards, *(Place(),) * (count - len(self.shards))))
        if held := [number for number in range(count, len(self.shards)) if self.holds(number)]:
            raise PlacementError(
                f"Shard {held[-1]} holds slots; drain it before there are only {count} shards."
            )
        return self._next(shards=self.shards[:count])

    def placed(self, places: Mapping[int, Place]) -> Placement:
        """Have shards, by number, known ones and those that follow, live where this says."""
        shards = [
            *self.shards,
            *(Place() for _ in range(len(self.shards), max(places, default=-1) + 1)),
        ]
        for number, place in places.items():
            shards[number] = place
        return self._next(shards=tuple(shards))

    def undrained(self, shards: Container[int]) -> Placement:
        """Let these shards own slots again, and keep those that were only planned to leave them."""
        places = tuple(
            Place(place.node) if number in shards else place
            for number, place in enumerate(self.shards)
        )
        moves = tuple(
            move for move in self.moves if move.source not in shards or move.state != PLANNED
        )
        return self._next(shards=places, moves=moves)

    def rehoused(
        self, lost: Container[str], nodes: Iterable[str], holders: Mapping[int, str]
    ) -> Placement:
        """Have shards whose node is in `lost` live elsewhere: where their directory turned up, else
        on the node with the fewest shards.

        nodes    those that can take shards; without any the placement stays as it is
        holders  shard -> the node that has a directory of it
        """
        counts = dict.fromkeys(sorted(nodes), 0)
        homeless = [number for number, place in enumerate(self.shards) if place.node in lost]
        if not (counts and homeless):
            return self
        for place in self.shards:
            if place.node in counts and place.node not in lost:
                counts[place.node] += 1
        places = {}
        for number in sorted(
            homeless, key=lambda number: holders.get(number) not in counts
        ):  # whoever has a home goes first
            node = (
                holders[number]
                if holders.get(number) in counts
                else min(counts, key=counts.__getitem__)
            )
            counts[node] += 1
            places[number] = msgspec.structs.replace(self.shards[number], node=node)
        return self.placed(places)

    def _next(self, **changes: object) -> Placement:
        return replace(self, version=self.version + 1, **changes)

    def _in_state(self, attempt: Attempt, *states: str) -> Move:
        move = self.move(attempt.move_id)
        if move is None or move.state not in states:
            raise PlacementError(
                f"Move {attempt.move_id} is {'over' if move is None else move.state}."
            )
        if move.attempt != attempt:
            raise PlacementError(
                f"Move {attempt.move_id} is {move.state}, but another attempt of it."
            )
        return move

    def _with(self, changed: Move) -> tuple[Move, ...]:
        return tuple(changed if move.id == changed.id else move for move in self.moves)


def shard_of_slot(slot: int, shards: int) -> int:
    """The shard that owns a slot when the slots are divided evenly over `shards` shards."""
    return slot * shards // SLOTS


def balanced(
    loads: Mapping[int, float], owners: Mapping[int, int], shards: Iterable[int], moves_max: int
) -> dict[int, int]:
    """Which slots should go where, so that shards bear about equal loads: slot -> target,
    `moves_max` of them at most.

    loads   slot -> its load, in any unit; slots without any load are left where they are
    owners  slot -> its shard now
    shards  the shards that may own slots; a slot of any other has to go

    The heaviest shard gives the lightest the slot that comes nearest to half their difference, as
    long as that makes the difference smaller: a few large steps rather than many small ones.
    """
    allowed = set(shards)
    held: dict[int, dict[int, float]] = {shard: {} for shard in allowed}
    stranded = []
    for slot, load in loads.items():
        if owners[slot] in allowed:
            held[owners[slot]][slot] = load
        else:
            stranded.append(slot)
    totals = {shard: sum(slots.values()) for shard, slots in held.items()}
    plan: dict[int, int] = {}

    def give(slot: int, target: int) -> None:
        plan[slot] = target
        held[target][slot] = loads[slot]
        totals[target] += loads[slot]

    for slot in sorted(stranded, key=lambda slot: -loads[slot])[:moves_max]:
        give(slot, min(sorted(totals), key=totals.__getitem__))
    while len(plan) < moves_max:
        heaviest, lightest = (
            max(sorted(totals), key=totals.__getitem__),
            min(sorted(totals), key=totals.__getitem__),
        )
        gap = totals[heaviest] - totals[lightest]
        fitting = [
            slot for slot, load in held[heaviest].items() if 0 < load < gap and slot not in plan
        ]
        if not fitting:
            break
        slot = min(fitting, key=lambda slot: (abs(gap / 2 - loads[slot]), slot))
        del held[heaviest][slot]
        totals[heaviest] -= loads[slot]
        give(slot, lightest)
    return plan


def evened(
    loaded: Container[int], owners: Mapping[int, int], shards: Iterable[int]
) -> dict[int, int]:
    """Which slots without any load should go where, so that shards have about the same number of
    slots, and with it the same chance of new accounts: slot -> target.

    loaded  the slots that have a load, which stay
    owners  slot -> its shard now; slots of others than `shards` stay, too
    """
    held: dict[int, list[int]] = {shard: [] for shard in shards}
    for slot, owner in owners.items():
        if owner in held:
            held[owner].append(slot)
    share = sum(map(len, held.values())) // len(held)
    spare = [
        slot
        for slots in held.values()
        for slot in [slot for slot in slots if slot not in loaded][: max(0, len(slots) - share)]
    ]
    plan: dict[int, int] = {}
    for shard, slots in sorted(held.items(), key=lambda each: len(each[1])):
        for _ in range(share - len(slots)):
            if not spare:
                return plan
            plan[spare.pop()] = shard
    return plan
