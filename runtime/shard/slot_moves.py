"""One shard's half of moving slots: what the supervisor asks of the shard that gives and of the one
that takes.

    source   begin → read … → digests … → changed, recount … → freeze → recount → (the placement
             changes) → refresh → erase
    target   expect → take … → build → compare … → take, compare … → take → compare → secured → (the
             placement changes) → refresh

Each step but `refresh` names an attempt (runtime/placement/placement.py) and is refused unless the
placement has that very attempt under way. All but `refresh` and `erase` are numbered, and taken in
turn, once (runtime/shard/step_numbers.py): a copy that comes late would begin anew what is under
way, or take what is another's to tell. A step that writes asks again inside its transaction:
however long it was held up before, it adds nothing to a slot that another attempt brings here, and
erases nothing of it, nor of one that belongs here. What an attempt learned before is made void by
`expect` of the next, which reads the placement first.

`begin` has the store keep its log of commits, so that pieces may be read from any later snapshot,
and what the log says changed since is read once more. `freeze` lets the slots' jobs reach their
commit, refuses further calls, writes down what is in memory for the slots, and gives the rows that
changed last. Before the freeze all rows of both sides were compared, by digests; in the freeze
those are compared again that changed on either side since, as the logs of both say, whoever changed
them. From there on only the placement decides: `refresh` reads it and conforms, so it may be asked
for at any time, and by anybody. A source that hears nothing for SLOT_FROZEN_MS_MAX publishes that
the move was given up and opens again; where the placement had changed before, that fails, and the
slots are gone.

With an object store, nothing that has a single copy there is in doubt: what the target took is
stored before the placement changes, the changed placement is stored before the source erases, and
what a shard erased before the move is forgotten. A target whose process ended on the way takes
nothing more for this move, since what it took before may be elsewhere, or nowhere.

In memory a move leaves behind what a restart does: the sliding logs of the ceilings, and the keys
that running flows hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runtime.api import jobs
from runtime.api.operation import Reply
from runtime.errors import Moved
from runtime.limits import (
    SLOT_FROZEN_MS_MAX,
    SLOT_KEYS_PER_STEP,
    SLOT_PIECE_BYTES,
    SLOT_ROWS_ERASED_PER_STEP,
    SLOT_TAIL_ROWS_MAX,
)
from runtime.placement import COPYING, Attempt
from runtime.shard.head import Parts
from runtime.shard.job_loop import JobLoop
from runtime.shard.slot_comparison import ComparedRows
from runtime.shard.step_numbers import StepNumbers
from runtime.shard.writer import WriteOutcome
from storage.indexes import build_for_slot, tenants_known
from storage.replication import backoff
from storage.store import (
    Digest,
    Hold,
    KeyShredded,
    Piece,
    Scope,
    Span,
    Transaction,
    slot_rows,
)

log = logging.getLogger("mneme.slots")

READ_ATTEMPTS_MAX = 4

T = TypeVar("T")
Step = Callable[..., Coroutine[Any, Any, Any]]


class MoveRefused(Exception):
    """The shard cannot take this step; the message is one sentence."""


class MoveOver(MoveRefused):
    """The attempt was given up, or the process is another than the one that took its first steps;
    the next one may succeed.
    """


@dataclass(slots=True)
class _Leaving:
    """An attempt to move away from here. changed: physical keys whose rows the target has not seen
    as they are now.
    """

    rows: ComparedRows
    changed: set[bytes] = field(default_factory=set)
    deadline: asyncio.TimerHandle | None = None

    @property
    def slots(self) -> tuple[int, ...]:
        return self.rows.slots


class SlotMoves:
    """A shard's half of moves, in steps.

    settle  () -> awaitable; writes down what the shard has in memory
    asked   calls by slot since the process began
    """

    def __init__(
        self,
        parts: Parts,
        job_loop: JobLoop,
        settle: Callable[[], Awaitable[None]],
        asked: Sequence[int],
        forget: Callable[..., None],
    ):
        registry, store = parts.registry, parts.store
        self._store, self._gate, self._writer = store, parts.gate, parts.writer
        self._admission, self._durability = parts.admission, parts.durability
        self._jobs, self._settle, self._asked, self._forget = job_loop, settle, asked, forget
        self._indexes = tuple(registry.indexes.values())
        self.tables = dict(registry.tables)
        self._codes = slot_rows.by_code(store, registry.tables.values())
        self._leaving: dict[Attempt, _Leaving] = {}
        self._arriving: dict[Attempt, ComparedRows] = {}
        self._erasing: dict[int, set[Scope]] = {}  # by slot, who is to be forgotten at its end
        self._numbers = StepNumbers()
        self._conforming: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self._gone, self._stayed = 0, 0  # slots, since the process began
        self._numbered: dict[str, Step] = {
            "begin": self._begin,
            "read": self._read,
            "changed": self._changed,
            "digests": self._digests,
            "recount": self._recount,
            "freeze": self._freeze,
            "expect": self._expect,
            "take": self._take,
            "build": self._build,
            "compare": self._compare,
            "secured": self._secured,
        }
        self._steps: dict[str, Step] = {
            "refresh": self._refresh,
            "erase": self._erase,
            "figures": self._figures,
        }

    def figures(self) -> dict[str, int]:
        """Slots on their way from here, and how many went or stayed after all, for metrics."""
        leaving = sum(len(leaving.slots) for leaving in self._leaving.values())
        return {"leaving": leaving, "moved_total": self._gone, "given_up_total": self._stayed}

    async def order(self, step: str, *given: Any) -> Any:
        """Take one step by its name. Raises MoveRefused, Moved, StoreError, StorageFailed."""
        if step in self._numbered:
            return await self._taken(self._numbered[step], *given)
        return await self._steps[step](*given)

    async def _taken(self, step: Step, attempt: Attempt, number: int, *given: Any) -> Any:
        with self._numbers.taken(attempt, number) as is_next:
            if not is_next:
                raise MoveOver(f"Step {number} of move {attempt.move_id} is not due here.")
            return await step(attempt, *given)

    def looked_for(self, slot: int) -> None:
        """A call came for a slot that is not here. If it is on its way, the placement may have
        changed and nobody have said so.
        """
        if slot in self._gate.expected and not self._conforming:
            self._conform(self._refresh())

    async def close(self) -> None:
        self._closing.set()
        for leaving in list(self._leaving.values()):
            if leaving.deadline is not None:
                leaving.deadline.cancel()
            await asyncio.to_thread(leaving.rows.release)
        for arriving in self._arriving.values():
            await asyncio.to_thread(arriving.release)
        await asyncio.gather(*self._conforming, return_exceptions=True)

    # --- the source -------------------------------------------------------------------------------

    async def _begin(self, attempt: Attempt, slots: tuple[int, ...]) -> None:
        await self._refresh()
        self._check_copying(attempt)
        for slot in slots:
            self._gate.check(slot)
        hold = await asyncio.to_thread(self._store.log.hold)
        try:
            self._check_copying(attempt)
        except MoveRefused:
            await asyncio.to_thread(hold.release)
            raise
        self._leaving[attempt] = _Leaving(self._compared(slots, hold))

    async def _read(self, attempt: Attempt, slot: int, after: bytes) -> Piece:
        """The slot's rows behind `after`, a bounded piece of them."""
        self._leaving_of(attempt)

        def read() -> Piece:
            with self._store.snapshot() as snapshot:
                return slot_rows.read(snapshot, self._codes, slot, after, SLOT_PIECE_BYTES)

        return await self._while_accounts_go(read)

    async def _while_accounts_go(self, read: Callable[[], T]) -> T:
        """What `read` reads, in a thread, again where it meets rows of an account that is being
        erased.
        """
        for number in range(READ_ATTEMPTS_MAX):
            with contextlib.suppress(KeyShredded):
                return await asyncio.to_thread(read)
            log.info("an account was erased while its slot was read, attempt %d", number)
        raise MoveOver("A slot cannot be read: an account of it is being erased.")

    async def _changed(self, attempt: Attempt) -> Piece:
        """Rows that changed since they were read last, a bounded number of them; `after` is b"more"
        when there are others.
        """
        leaving = self._leaving_of(attempt)

        await self._in_turn(lambda _: None)  # what was submitted before is in the log then

        def read() -> Piece:
            leaving.changed.update(leaving.rows.follow())
            some = [
                leaving.changed.pop() for _ in range(min(SLOT_TAIL_ROWS_MAX, len(leaving.changed)))
            ]
            keys = (
                {}
                if self._store.keys is None
                else self._store.keys.wrapped(
                    set().union(*map(self._store.keys.scopes, leaving.slots))
                )
            )
            try:
                with self._store.snapshot() as snapshot:
                    return Piece(
                        slot_rows.read_changed(snapshot, self._codes, sorted(some)),
                        keys,
                        b"more" if leaving.changed else b"",
                    )
            except (
                KeyShredded
            ):  # its rows went after the log was read, so that the log has them by now
                leaving.changed.update(some)
                return Piece([], {}, b"more")

        return await asyncio.to_thread(read)

    async def _digests(
        self, attempt: Attempt, slot: int, after: bytes
    ) -> tuple[list[Digest], bytes]:
        """Digests of the slot's rows behind `after`, a bounded number of them; -> and where to go
        on, b"" at the end.
        """
        rows = self._leaving_of(attempt).rows
        return await self._while_accounts_go(lambda: rows.digests(slot, after))

    async def _recount(
        self, attempt: Attempt, spans: Collection[Span]
    ) -> tuple[list[Digest], bool]:
        """Digests, as they are now, of these spans and of those that changed since they were
        compared; -> and whether there are others.
        """
        leaving = self._leaving_of(attempt)

        def recount() -> tuple[list[Digest], bool]:
            leaving.changed.update(leaving.rows.follow())
            return leaving.rows.recount(spans)

        return await asyncio.to_thread(recount)

    async def _freeze(self, attempt: Attempt) -> Piece:
        """Hold back calls and jobs of the slots; -> the last rows that changed, or the first of
        them (see `_changed`).
        """
        leaving = self._leaving_of(attempt)
        for slot in leaving.slots:
            self._gate.check(slot)
        await self._jobs.hold(leaving.slots)
        self._leaving_of(
            attempt
            # it may have been given up meanwhile: its jobs were released then, and may be held for
            # another attempt
        )
        try:
            self._gate.freeze(leaving.slots)
        except Moved:
            self._jobs.release(leaving.slots)
            raise
        loop = asyncio.get_running_loop()
        leaving.deadline = loop.call_later(
            SLOT_FROZEN_MS_MAX / 1000, lambda: self._conform(self._give_up(attempt))
        )
        await self._settle()
        return await self._changed(attempt)

    async def _give_up(self, attempt: Attempt) -> None:
        """Publish that the attempt is given up, unless it is over, and conform: again and again
        while the placement cannot be reached.
        """
        log.warning(
            "move %s froze its slots for too long and is given up, unless it is over",
            attempt.move_id,
        )
        for wait in backoff():
            try:
                await asyncio.to_thread(self._gate.give_up, attempt)
                return await self._refresh()
            except Exception as failed:
                log.warning("move %s cannot be given up yet: %r", attempt.move_id, failed)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait)
            if attempt not in self._leaving or self._closing.is_set():
                return

    async def _erase(self, attempt: Attempt, slots: tuple[int, ...]) -> int:
        """Delete all rows of slots that belong to another shard, and their keys; -> when it was
        done, as `secured`.
        """
        await self._refresh()
        self._check_erasable(attempt, slots)
        if self._durability is not None:
            await self._durability.placed(needed=True)
        for slot in slots:
            # Whoever takes this up again finds no rows that tell of whom something is in memory.
            scopes = self._erasing.setdefault(slot, set())
            scopes |= await asyncio.to_thread(tenants_known, self._store, [slot], files=True)
            while await self._erase_some(attempt, slot):
                pass
            await self._shred(attempt, slot)
            self._check_erasable(attempt, [slot])
            self._forget(scopes, files=True)
            del self._erasing[slot]
        return await self._stored()

    async def _erase_some(self, attempt: Attempt, slot: int) -> int:
        deleted = [0]

        def work(transaction: Transaction) -> None:
            self._check_erasable(attempt, [slot])
            deleted[0] = transaction.delete_slot(slot, SLOT_ROWS_ERASED_PER_STEP)

        await self._in_turn(work)
        return deleted[0]

    async def _shred(self, attempt: Attempt, slot: int) -> None:
        """Shred keys in the writer's thread, like what brings keys here, so that it is over or
        refused when those of another attempt come.
        """
        keyring = self._store.keys
        if keyring is None:
            return

        def work(some: Iterable[bytes]) -> None:
            self._check_erasable(attempt, [slot])
            for scope in some:
                keyring.shred(scope)

        for some in _batches(sorted(keyring.scopes(slot)), SLOT_KEYS_PER_STEP):
            await self._in_turn(lambda _, some=some: work(some))

    def _check_erasable(self, attempt: Attempt, slots: Iterable[int]) -> None:
        if refused := [slot for slot in slots if not self._gate.may_erase(slot, attempt)]:
            raise MoveOver(
                f"Slot {refused[0]} at shard {self._gate.number} is not, or no longer, for move "
                f"{attempt.move_id} to erase."
            )

    def _leaving_of(self, attempt: Attempt) -> _Leaving:
        leaving = self._leaving.get(attempt)
        if leaving is None:
            raise MoveOver(
                f"Shard {self._gate.number} has no such attempt of move {attempt.move_id}: it is "
                "over, or the process new."
            )
        return leaving

    def _check_copying(self, attempt: Attempt) -> None:
        move = self._gate.moves.get(attempt)
        if move is None or move.state != COPYING:
            raise MoveOver(f"This attempt of move {attempt.move_id} is over.")

    # --- the target -------------------------------------------------------------------------------

    async def _expect(self, attempt: Attempt, slots: tuple[int, ...]) -> None:
        """Make room: nothing of an earlier stay, or of an attempt given up, may be left."""
        await self._erase(attempt, slots)
        self._check_copying(attempt)
        self._arriving |= {attempt: self._compared(slots)}

    async def _take(self, attempt: Attempt, piece: Piece) -> None:
        """Write rows of slots that are on their way here, and the keys they are sealed with."""
        slots = {int.from_bytes(row.scope[:2], "big") for row in piece.rows} | {
            int.from_bytes(scope[:2], "big") for scope in piece.keys
        }
        self._check_arriving(attempt, slots)
        if unknown := {row.table for row in piece.rows} - self.tables.keys():
            raise MoveRefused(f"Shard {self._gate.number} knows no table {min(unknown)!r}.")

        await self._adopt(attempt, piece.keys)

        def work(transaction: Transaction) -> None:
            self._check_arriving(attempt, slots)
            slot_rows.write(transaction, self.tables, piece.rows)

        if piece.rows:
            await self._in_turn(work)

    async def _adopt(self, attempt: Attempt, keys: Mapping[bytes, bytes]) -> None:
        """Adopt keys in the writer's thread, a few at a time. Where the attempt comes to nothing,
        `erase` shreds them.
        """
        keyring = self._store.keys
        if keyring is None:
            return
        lacking = await asyncio.to_thread(keyring.lacking, keys)

        def work(some: Mapping[bytes, bytes]) -> None:
            self._check_arriving(attempt, {int.from_bytes(scope[:2], "big") for scope in some})
            keyring.adopt(some)

        for some in _batches(sorted(lacking.items()), SLOT_KEYS_PER_STEP):
            await self._in_turn(lambda _, some=dict(some): work(some))

    async def _build(self, attempt: Attempt, slots: tuple[int, ...]) -> int:
        """Build ahead what the first searches would have to wait for; -> how many graphs."""
        self._check_arriving(attempt, slots)
        return sum(
            [
                await asyncio.to_thread(build_for_slot, self._store, self._indexes, slot)
                for slot in slots
            ]
        )

    async def _compare(
        self, attempt: Attempt, digests: list[Digest], ended: int | None
    ) -> list[Span]:
        """Compare what the source has; -> what is in doubt, or some of it: what differs, or changed
        here since it was compared.

        ended  the slot of which all digests have come
        """
        self._check_arriving(attempt, ())
        arriving = self._arriving[attempt]
        found = await asyncio.to_thread(arriving.compare, digests, ended)
        if (
            attempt not in self._arriving
        ):  # it was given up meanwhile, and nobody else lets go of its log
            await asyncio.to_thread(arriving.release)
        return found

    async def _secured(self, attempt: Attempt) -> int:
        """Have everything that was taken stored where the log is shipped to; -> when it was, by the
        log's clock (Unix milliseconds).
        """
        self._check_arriving(attempt, ())
        return await self._stored()

    def _check_arriving(self, attempt: Attempt, slots: Iterable[int]) -> None:
        """Safe from any thread, since what it reads is replaced as a whole."""
        if attempt not in self._arriving:
            raise MoveOver(
                f"Shard {self._gate.number} expects no such attempt of move {attempt.move_id}: it "
                "is over, or the process new."
            )
        expected = self._gate.expected
        if others := [slot for slot in slots if expected.get(slot) != attempt]:
            raise MoveOver(
                f"Shard {self._gate.number} expects no rows of slot {min(others)} with move "
                f"{attempt.move_id}."
            )

    # --- both -------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Read the placement and conform to it."""
        async with self._refreshing:
            numbered = self._numbers.attempts  # of others that come, the placement may not know
            placement = await asyncio.to_thread(self._gate.load)
            self._store.log.not_before(placement.at)
            coming = self._gate.gained(placement)
            if self._durability is not None and coming:
                await self._durability.placed()
            if coming:  # before anybody may ask: what is known of an earlier stay is old
                known = await asyncio.to_thread(tenants_known, self._store, coming, files=False)
                self._forget(known, files=False)
            over = [
                arriving
                for attempt, arriving in self._arriving.items()
                if not placement.is_copying(attempt)
            ]
            self._arriving = {
                attempt: arriving
                for attempt, arriving in self._arriving.items()
                if placement.is_copying(attempt)
            }
            self._numbers.forget([each for each in numbered if not placement.is_copying(each)])
            for arriving in over:
                await asyncio.to_thread(arriving.release)
            came, went = self._gate.apply(placement)
            if came:
                with self._store.snapshot() as snapshot:
                    self._jobs.add(jobs.unfinished(snapshot, sorted(came)))
            for attempt, leaving in list(self._leaving.items()):
                if not placement.is_copying(attempt):
                    del self._leaving[attempt]
                    self._left(leaving, went)
                    await asyncio.to_thread(leaving.rows.release)
            if went:
                self._jobs.forget(went)
                self._admission.forget(went)

    def _compared(self, slots: tuple[int, ...], hold: Hold | None = None) -> ComparedRows:
        return ComparedRows(self._store, self.tables, self._codes, slots, hold)

    async def _stored(self) -> int:
        return (
            self._store.log.now() if self._durability is None else await self._durability.secured()
        )

    def _left(self, leaving: _Leaving, went: Iterable[int]) -> None:
        """A move from here is over; the slots that did not go are open again."""
        if leaving.deadline is not None:
            leaving.deadline.cancel()
        stay = set(leaving.slots).difference(went)
        self._gone, self._stayed = (
            self._gone + len(leaving.slots) - len(stay),
            self._stayed + len(stay),
        )
        self._gate.unfreeze(stay)
        self._jobs.release(stay)

    async def _figures(self) -> dict[int, tuple[int, int]]:
        """Of each slot that is here and has rows: its bytes, and how many calls it had since the
        process began.
        """

        def weigh() -> dict[int, tuple[int, int]]:
            with self._store.snapshot() as snapshot:
                slots = [slot for slot in snapshot.slots() if self._gate.owns(slot)]
            weights = {}
            for slot in slots:
                with (
                    self._store.snapshot() as snapshot
                ):  # a short one for each: pages that a snapshot sees cannot be used again
                    weights[slot] = slot_rows.weight(snapshot, self._codes, slot), self._asked[slot]
            return weights

        return await asyncio.to_thread(weigh)

    async def _in_turn(self, work: Callable[[Transaction], Any]) -> None:
        """Run `work` in the writer's thread, after every write that was submitted before. Raises
        what `work` refuses before it writes.
        """
        refused: list[MoveRefused] = []

        def run(transaction: Transaction) -> WriteOutcome:
            try:
                work(transaction)
            except MoveRefused as why:
                refused.append(why)
            return WriteOutcome(Reply())

        await self._writer.submit(run, "slots")
        if refused:
            raise refused[0]

    def _conform(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._conforming.add(task)
        task.add_done_callback(self._conformed)

    def _conformed(self, task: asyncio.Task[None]) -> None:
        self._conforming.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the placement could not be followed", exc_info=task.exception())


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
