"""One shard's half of moving slots: what the supervisor asks of the shard that gives and of the one that takes.

    source   begin → read … → changed … → freeze → (the placement changes) → refresh → erase
    target   expect → take … → build → secured → (the placement changes) → refresh

`begin` has the store keep its log of commits, so that pieces may be read from any later snapshot, and what the log says changed
since is read once more. `freeze` lets the slots' jobs reach their commit, refuses further calls, writes down what is in memory for the
slots, and gives the rows that changed last. From there on only the placement decides: `refresh` reads it and conforms, so it may
be asked for at any time, and by anybody. A source that hears nothing for SLOT_FROZEN_MS_MAX publishes that the move was given up
and opens again; where the placement had changed before, that fails, and the slots are gone.

With an object store, nothing that has a single copy there is in doubt: what the target took is stored before the placement changes, the
changed placement is stored before the source erases, and what a shard erased before the move is forgotten. A target whose process
ended on the way takes nothing more for this move, since what it took before may be elsewhere, or nowhere.

In memory a move leaves behind what a restart does: the sliding logs of the ceilings, and the keys that running flows hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime import jobs
from runtime.durability import Durability
from runtime.errors import Moved
from runtime.job_loop import JobLoop
from runtime.limits import SLOT_FROZEN_MS_MAX, SLOT_PIECE_BYTES, SLOT_ROWS_ERASED_PER_STEP, SLOT_TAIL_ROWS_MAX
from runtime.operation import Reply
from runtime.plugin import Registry
from runtime.slot_gate import SlotGate
from runtime.write_lane import Outcome, WriteLane
from storage import slot_indexes, slot_rows
from storage.commit_log import Hold
from storage.envelope import KeyShredded
from storage.slot_rows import Piece
from storage.table import Scope, Store, Transaction

log = logging.getLogger("mneme.slots")

READ_ATTEMPTS_MAX = 4


class Refused(Exception):
    """The shard cannot take this step; the message is one sentence."""


@dataclass(slots=True)
class _Leaving:
    """A move away from here. changed: physical keys whose rows the target has not seen as they are now."""

    slots: tuple[int, ...]
    hold: Hold
    changed: set[bytes] = field(default_factory=set)
    deadline: asyncio.TimerHandle | None = None


class SlotMoves:
    """
    settle      () -> awaitable; writes down what the shard has in memory
    forget      (slots); drops what is remembered of slots that left
    asked       calls by slot since the process began
    durability  the shard's log in object storage; None without
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        gate: SlotGate,
        job_loop: JobLoop,
        lane: WriteLane,
        settle: Callable[[], Awaitable[None]],
        forget: Callable[[Collection[int]], None],
        asked: Sequence[int],
        durability: Durability | None,
    ):
        self._store, self._gate, self._jobs, self._lane = store, gate, job_loop, lane
        self._settle, self._forget, self._asked, self._durability = settle, forget, asked, durability
        self._indexes = tuple(registry.indexes.values())
        self._tables = dict(registry.tables)
        self._codes = slot_rows.by_code(store, registry.tables.values())
        self._leaving: dict[str, _Leaving] = {}
        self._arriving: set[str] = set()
        self._conforming: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._gone, self._stayed = 0, 0  # slots, since the process began

    def figures(self) -> dict[str, int]:
        """Slots on their way from here, and how many went or stayed after all, for metrics."""
        leaving = sum(len(leaving.slots) for leaving in self._leaving.values())
        return {"leaving": leaving, "moved_total": self._gone, "given_up_total": self._stayed}

    async def order(self, step: str, *given: Any) -> Any:
        """Take one step by its name. Raises Refused, Moved, StoreError, StorageFailed."""
        return await getattr(self, f"_{step}")(*given)

    def looked_for(self, slot: int) -> None:
        """A call came for a slot that is not here. If it is on its way, the placement may have changed and nobody have said so."""
        if slot in self._gate.expected and not self._conforming:
            self._conform(self._refresh())

    async def close(self) -> None:
        for leaving in list(self._leaving.values()):
            if leaving.deadline is not None:
                leaving.deadline.cancel()
            await asyncio.to_thread(leaving.hold.release)
        await asyncio.gather(*self._conforming, return_exceptions=True)

    # --- the source ---------------------------------------------------------------------------------------------------

    async def _begin(self, move_id: str, slots: tuple[int, ...]) -> None:
        for slot in slots:
            self._gate.check(slot)
        self._leaving[move_id] = _Leaving(slots, await asyncio.to_thread(self._store.log.hold))

    async def _read(self, slot: int, after: bytes) -> Piece:
        """The slot's rows behind `after`, a bounded piece of them."""

        def read() -> Piece:
            for attempt in range(READ_ATTEMPTS_MAX):
                with contextlib.suppress(KeyShredded), self._store.snapshot() as snapshot:
                    return slot_rows.read(snapshot, self._codes, slot, after, SLOT_PIECE_BYTES)
                log.info("an account of slot %d was erased while it was read, attempt %d", slot, attempt)
            raise Refused(f"Slot {slot} cannot be read: a row's key is gone.")

        return await asyncio.to_thread(read)

    async def _changed(self, move_id: str) -> Piece:
        """Rows that changed since they were read last, a bounded number of them; `after` is b"more" when there are others."""
        leaving = self._found(move_id)

        await self._in_turn(lambda _: None)  # what was submitted before is in the log then

        def read() -> Piece:
            starts = {slot.to_bytes(2, "big") for slot in leaving.slots}
            while records := self._store.log.read(leaving.hold.after):
                leaving.changed.update(key for record in records for key, _ in record.changes if key[:2] in starts)
                leaving.hold.advance(records[-1].sequence)
            some = [leaving.changed.pop() for _ in range(min(SLOT_TAIL_ROWS_MAX, len(leaving.changed)))]
            keys = {} if self._store.keys is None else self._store.keys.wrapped(set().union(*map(self._store.keys.scopes, leaving.slots)))
            try:
                with self._store.snapshot() as snapshot:
                    return Piece(slot_rows.read_changed(snapshot, self._codes, sorted(some)), keys, b"more" if leaving.changed else b"")
            except KeyShredded:  # its rows went after the log was read, so that the log has them by now
                leaving.changed.update(some)
                return Piece([], {}, b"more")

        return await asyncio.to_thread(read)

    async def _freeze(self, move_id: str) -> Piece:
        """Hold back calls and jobs of the slots; -> the last rows that changed, or the first of them (see `_changed`)."""
        leaving = self._found(move_id)
        await self._jobs.hold(leaving.slots)
        try:
            self._gate.freeze(leaving.slots)
        except Moved:
            self._jobs.release(leaving.slots)
            raise
        loop = asyncio.get_running_loop()
        leaving.deadline = loop.call_later(SLOT_FROZEN_MS_MAX / 1000, lambda: self._conform(self._give_up(move_id)))
        await self._settle()
        return await self._changed(move_id)

    async def _give_up(self, move_id: str) -> None:
        log.warning("move %s froze its slots for too long and is given up, unless it is over", move_id)
        await asyncio.to_thread(self._gate.give_up, move_id)
        await self._refresh()

    async def _erase(self, slots: tuple[int, ...]) -> int:
        """Delete all rows of slots that belong to another shard, and their keys; -> when it was done, as `secured`."""
        await self._refresh()
        if mine := [slot for slot in slots if self._gate.owns(slot)]:
            raise Refused(f"Slot {mine[0]} belongs to shard {self._gate.number}: it is not erased there.")
        if self._durability is not None:
            await self._durability.placed(needed=True)
        for slot in slots:
            scopes = await asyncio.to_thread(self._scopes, slot)
            while await self._erase_some(slot):
                pass
            await asyncio.to_thread(self._shred, slot)
            slot_indexes.forget(self._store, self._indexes, scopes, files=True)
        return await self._stored()

    async def _erase_some(self, slot: int) -> int:
        deleted = [0]

        def work(transaction: Transaction) -> None:
            deleted[0] = transaction.delete_slot(slot, SLOT_ROWS_ERASED_PER_STEP)

        await self._in_turn(work)
        return deleted[0]

    def _shred(self, slot: int) -> None:
        keyring = self._store.keys
        if keyring is not None:
            for scope in keyring.scopes(slot):
                keyring.shred(scope)

    def _found(self, move_id: str) -> _Leaving:
        leaving = self._leaving.get(move_id)
        if leaving is None:
            raise Refused(f"Shard {self._gate.number} has no move {move_id}: its process may have been restarted.")
        return leaving

    # --- the target ---------------------------------------------------------------------------------------------------

    async def _expect(self, move_id: str, slots: tuple[int, ...]) -> None:
        """Make room: nothing of an earlier stay, or of an attempt that was given up, may be left."""
        await self._erase(slots)
        self._arriving.add(move_id)

    async def _take(self, move_id: str, piece: Piece) -> None:
        """Write rows of slots that are on their way here."""
        self._check_arriving(move_id)
        slots = {int.from_bytes(row.scope[:2], "big") for row in piece.rows} | {int.from_bytes(scope[:2], "big") for scope in piece.keys}
        if not slots <= self._gate.expected:
            await self._refresh()
        if not slots <= self._gate.expected:
            raise Refused(f"Shard {self._gate.number} expects no rows of slot {min(slots - self._gate.expected)}.")
        if unknown := {row.table for row in piece.rows} - self._tables.keys():
            raise Refused(f"Shard {self._gate.number} knows no table {min(unknown)!r}.")
        if self._store.keys is not None:
            await asyncio.to_thread(self._store.keys.adopt, piece.keys)
        if piece.rows:
            await self._in_turn(lambda transaction: slot_rows.write(transaction, self._tables, piece.rows))

    async def _build(self, slots: tuple[int, ...]) -> int:
        """Build ahead what the first searches would have to wait for; -> how many graphs."""
        return sum([await asyncio.to_thread(slot_indexes.build, self._store, self._indexes, slot) for slot in slots])

    async def _secured(self, move_id: str) -> int:
        """Have everything that was taken stored where the log is shipped to; -> when it was, by the log's clock (Unix milliseconds)."""
        self._check_arriving(move_id)
        return await self._stored()

    def _check_arriving(self, move_id: str) -> None:
        if move_id not in self._arriving:
            raise Refused(f"Shard {self._gate.number} does not expect move {move_id}: its process may have been restarted.")

    # --- both ---------------------------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Read the placement and conform to it."""
        async with self._refreshing:
            placement = await asyncio.to_thread(self._gate.table.load)
            self._store.log.not_before(placement.at)
            if self._durability is not None and self._gate.gains(placement):
                await self._durability.placed()
            self._arriving = {move_id for move_id in self._arriving if placement.is_copying(move_id)}
            came, went = self._gate.learn(placement)
            if came:
                scopes = [scope for slot in came for scope in await asyncio.to_thread(self._scopes, slot)]
                slot_indexes.forget(self._store, self._indexes, scopes, files=False)
                with self._store.snapshot() as snapshot:
                    self._jobs.add(jobs.unfinished(snapshot, sorted(came)))
            for move_id, leaving in list(self._leaving.items()):
                if not placement.is_copying(move_id):
                    del self._leaving[move_id]
                    self._left(leaving, went)
                    await asyncio.to_thread(leaving.hold.release)
            if went:
                self._jobs.forget(went)
                self._forget(went)

    async def _stored(self) -> int:
        return self._store.log.now() if self._durability is None else await self._durability.secured()

    def _left(self, leaving: _Leaving, went: Iterable[int]) -> None:
        """A move from here is over; the slots that did not go are open again."""
        if leaving.deadline is not None:
            leaving.deadline.cancel()
        stay = set(leaving.slots).difference(went)
        self._gone, self._stayed = self._gone + len(leaving.slots) - len(stay), self._stayed + len(stay)
        self._gate.thaw(stay)
        self._jobs.release(stay)

    async def _figures(self) -> dict[int, tuple[int, int]]:
        """Of each slot that is here and has rows: its bytes, and how many calls it had since the process began."""

        def weigh() -> dict[int, tuple[int, int]]:
            with self._store.snapshot() as snapshot:
                slots = [slot for slot in snapshot.slots() if self._gate.owns(slot)]
            weights = {}
            for slot in slots:
                with self._store.snapshot() as snapshot:  # a short one for each: pages that a snapshot sees cannot be used again
                    weights[slot] = slot_rows.weight(snapshot, self._codes, slot), self._asked[slot]
            return weights

        return await asyncio.to_thread(weigh)

    def _scopes(self, slot: int) -> list[Scope]:
        with self._store.snapshot() as snapshot:
            return list(snapshot.scopes(slot))

    async def _in_turn(self, work: Callable[[Transaction], Any]) -> None:
        """Run `work` in the write lane, after every write that was submitted before."""

        def run(transaction: Transaction) -> Outcome:
            work(transaction)
            return Outcome(Reply())

        await self._lane.submit(run, "slots")

    def _conform(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._conforming.add(task)
        task.add_done_callback(self._conformed)

    def _conformed(self, task: asyncio.Task[None]) -> None:
        self._conforming.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the placement could not be followed", exc_info=task.exception())
