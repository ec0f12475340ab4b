"""Who moves slots: it plans moves, takes shard after shard through their steps, and publishes each
change of the placement.

It holds no truth. What is to be done, and how far it has come, is in the placement; what it
remembers is a reason or two for people to read. Killed at any moment, its successor reads the
placement and goes on: a move that was copying is given up and planned again, one whose slots had
changed their owner is finished. Two of them at work at once do no harm: each attempt has a token
that nobody else makes up, each change of the placement succeeds once and names it, and so does each
step of a shard, which refuses those of any attempt but the one that the placement has under way,
inside the transaction where it writes. So one who was stopped and wakes up later learns that its
attempt is over.

One that has nothing to do looks at the placement every MOVES_LOOKED_FOR_SECONDS: a plan may have
got there after whoever made it was told that it did not.

One move is made at a time, so that moving costs the service a bounded share of its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from runtime.limits import (
    MOVE_ATTEMPTS_MAX,
    MOVE_FAILURES_KEPT_ENTRIES,
    MOVE_RETRY_SECONDS,
    MOVES_LOOKED_FOR_SECONDS,
    SLOT_SPANS_SMALL,
    SLOT_TAIL_ATTEMPTS_MAX,
    SLOT_TAIL_ROWS_SMALL,
    SLOT_TAIL_STALLED_ATTEMPTS_MAX,
    SLOTS,
    SLOTS_MOVED_AT_ONCE_MAX,
    SLOTS_REBALANCED_MAX,
)
from runtime.placement import (
    COPYING,
    ERASING,
    PLANNED,
    UNDOING,
    Move,
    Place,
    Placement,
    PlacementError,
    PlacementTable,
    balanced,
    evened,
)
from runtime.shard import MoveOver, MoveRefused
from storage.store import Span, StoreError

log = logging.getLogger("mneme.supervisor")

Ask = Callable[
    ..., Awaitable[Any]
]  # (shard's number, step, *given) -> what the step gives; raises what the shard raises
_EMPTY_LOAD = 1e-9


class Different(Exception):
    """The target does not have the rows that the source has; the message is one sentence."""


class Supervisor:
    """Lives on one event loop."""

    def __init__(self, table: PlacementTable, ask: Ask):
        self._table, self._ask = table, ask
        self._wake = asyncio.Event()
        self._failures: deque[dict[str, Any]] = deque(maxlen=MOVE_FAILURES_KEPT_ENTRIES)
        self._finished = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Go on with what the placement says is to be done. Nothing happens when it has been called
        before.
        """
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._wake.set()

    async def close(self) -> None:
        """Stop where it is; a successor goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- what an operator asks for ----------------------------------------------------------------

    async def order(self, name: str, **given: Any) -> dict[str, Any]:
        """Run one of the orders below by its name; -> the report after it. Raises
        PlacementError.
        """
        orders = {
            "report": self._nothing,
            "move": self.move,
            "rebalance": self.rebalance,
            "drain": self.drain,
            "undrain": self.undrain,
        }
        await orders[name](**given)
        self.start()
        return await self._report()

    async def _nothing(self) -> None:
        """Change nothing: a step that only reports."""

    async def move(self, slots: Iterable[int], shard: int) -> None:
        """Plan to bring these slots to a shard; those that are there stay."""
        wanted = dict.fromkeys(slots, shard)
        await asyncio.to_thread(self._table.change, lambda placement: _with(placement, wanted))

    async def rebalance(self) -> None:
        """Plan moves after which all shards have about the same share of bytes and requests, and,
        where slots are empty, of slots.
        """
        placement = await asyncio.to_thread(self._table.load)
        shards = [number for number, place in enumerate(placement.shards) if not place.draining]
        loads, owners = await self._loads(placement), dict(enumerate(placement.owners))
        plan = balanced(loads, owners, shards, SLOTS_REBALANCED_MAX)
        plan |= evened(loads, owners | plan, shards)
        await asyncio.to_thread(self._table.change, lambda newest: _with(newest, plan))

    async def drain(self, node: str | None = None, shard: int | None = None) -> None:
        """Plan to empty a node, or one shard: it gets no more slots, and all of its own go to
        others.
        """

        def marked(newest: Placement) -> Placement:
            given = _shards_of(newest, node, shard)
            if all(place.draining or number in given for number, place in enumerate(newest.shards)):
                raise PlacementError("No shard would be left to take the slots.")
            return newest.placed(
                {number: Place(place.node, draining=True) for number, place in given.items()}
            )

        placement = await asyncio.to_thread(self._table.change, marked)
        shards = [number for number, place in enumerate(placement.shards) if not place.draining]
        owners = dict(enumerate(placement.owners))
        loads = dict.fromkeys(range(SLOTS), _EMPTY_LOAD) | await self._loads(placement)
        going = {
            slot: load for slot, load in loads.items() if placement.shards[owners[slot]].draining
        }
        staying = {slot: load for slot, load in loads.items() if slot not in going}
        plan = balanced(staying | going, owners, shards, len(going))
        await asyncio.to_thread(self._table.change, lambda newest: _with(newest, plan))

    async def undrain(self, node: str | None = None, shard: int | None = None) -> None:
        """Take a drain back: the shards may have slots again. What has not begun to leave them
        stays; what has left does not return.
        """
        await asyncio.to_thread(
            self._table.change, lambda newest: newest.undrained(_shards_of(newest, node, shard))
        )

    async def _loads(self, placement: Placement) -> dict[int, float]:
        """Of each slot that has rows, its share of all bytes and of all recent calls."""
        answers = await asyncio.gather(
            *(
                self._ask(number, "figures")
                for number in range(len(placement.shards))
                if placement.holds(number)
            )
        )
        figures = {slot: figure for answer in answers for slot, figure in answer.items()}
        size, calls = (sum(figure[place] for figure in figures.values()) or 1 for place in (0, 1))
        return {slot: held / size + asked / calls for slot, (held, asked) in figures.items()}

    async def _report(self) -> dict[str, Any]:
        placement = await asyncio.to_thread(self._table.load)
        shards = [
            {
                "shard": number,
                "node": place.node,
                "draining": place.draining,
                "slots": len(placement.slots_of(number)),
            }
            for number, place in enumerate(placement.shards)
        ]
        moves = [msgspec.to_builtins(move) for move in placement.moves]
        return {
            "version": placement.version,
            "shards": shards,
            "moves": moves,
            "finished": self._finished,
            "failures": list(self._failures),
        }

    # --- making moves -----------------------------------------------------------------------------

    async def _run(self) -> None:
        pause, is_woken = 0.0, True
        while True:
            self._wake.clear()
            move: Move | None = None
            try:
                move = await self._next(is_woken)
                if move is None:
                    is_woken = await self._is_woken()
                else:
                    is_woken = True
                    await self.advance(move)
                pause = 0.0
            except asyncio.CancelledError:
                raise
            except Exception as failed:
                if move is None:
                    log.warning("the placement cannot be read: %r", failed)
                else:
                    log.warning("move %s (%s) did not go on: %r", move.id, move.state, failed)
                pause = min(2 * pause or MOVE_RETRY_SECONDS, 32 * MOVE_RETRY_SECONDS)
                await asyncio.sleep(pause)

    async def _is_woken(self) -> bool:
        """Wait until somebody says that there is something to do; -> False after a while of
        nobody.
        """
        try:
            async with asyncio.timeout(MOVES_LOOKED_FOR_SECONDS):
                return await self._wake.wait()
        except TimeoutError:
            return False

    async def _next(self, is_woken: bool) -> Move | None:
        """The move to be advanced: what was begun comes first. Nobody was ended because one that
        is not woken finds slots being copied: that is another supervisor's work.
        """
        placement = await asyncio.to_thread(self._table.load)
        if not is_woken and any(move.state == COPYING for move in placement.moves):
            return None
        return min(placement.moves, key=lambda move: move.state == PLANNED, default=None)

    async def advance(self, move: Move) -> None:
        """Take a move to its next state."""
        if move.state == PLANNED:
            token = os.urandom(8).hex()
            begun = msgspec.structs.replace(move, state=COPYING, token=token)
            await self._change(lambda newest: newest.begun(move.id, token))
            try:
                await self._carry(begun)
            except BaseException as failed:
                refused = isinstance(failed, MoveRefused | StoreError)
                hopeless = refused and not isinstance(failed, MoveOver)
                await self._give_up(begun, failed, hopeless=hopeless)
                raise
        elif move.state == COPYING:
            await self._give_up(move, MoveRefused("whoever made it was ended"), hopeless=False)
        elif move.state == UNDOING:
            await self._ask(move.source, "refresh")
            at = await self._ask(move.target, "erase", move.attempt, move.slots)
            again = move.attempts + 1 < MOVE_ATTEMPTS_MAX
            await self._change(
                lambda newest: (
                    newest.planned_again(move.attempt, at)
                    if again
                    else newest.ended(move.attempt, at)
                )
            )
        elif move.state == ERASING:
            await self._ask(move.target, "refresh")
            await self._ask(move.source, "refresh")
            at = await self._ask(move.source, "erase", move.attempt, move.slots)
            self._finished += 1  # whoever sees that the move is gone sees it counted
            await self._change(lambda newest: newest.ended(move.attempt, at))

    async def _carry(self, move: Move) -> None:
        """Copy, freeze, and have the placement changed. From there on the move is `erasing`."""
        both = _BothSides(self._ask, move)
        await both.target("expect", move.slots)
        await both.source("begin", move.slots)
        for slot in move.slots:
            piece = await both.source("read", slot, b"")
            while True:
                await both.target("take", piece)
                if not piece.after:
                    break
                piece = await both.source("read", slot, piece.after)
        await both.target("build", move.slots)
        doubts = await both.catch_up(await both.compare())
        await both.target("secured")  # so that little of it is left for the freeze
        # A slot that is written to faster than it is copied is frozen all the same: once that takes
        # longer than its source waits, it is given up.
        piece = await both.source("freeze")
        while True:
            await both.target("take", piece)
            if not piece.after:
                break
            piece = await both.source("changed")
        await both.agree(doubts)
        at = await both.target("secured")
        await self._change(lambda newest: newest.cut_over(move.attempt, at))
        await self._ask(move.target, "refresh")
        await self._ask(move.source, "refresh")

    async def _give_up(self, move: Move, failed: BaseException, *, hopeless: bool) -> None:
        """Publish that this attempt came to nothing, unless its slots have changed their owner; the
        source opens them again at once.
        """
        reason, attempt = str(failed) or type(failed).__name__, move.attempt
        newest = await self._change(
            lambda newest: newest.undone(attempt) if newest.is_copying(attempt) else newest
        )
        found = newest.move(move.id)
        if found is None or found.attempt != attempt or found.state != UNDOING:
            return
        log.warning("move %s is given up: %s", move.id, reason)
        self._failures.append(
            {
                "id": move.id,
                "reason": reason,
                "final": hopeless or move.attempts + 1 >= MOVE_ATTEMPTS_MAX,
            }
        )
        if hopeless:
            await self._change(lambda newest: newest.hopeless(attempt))
        with contextlib.suppress(Exception):  # it does so by itself before long
            await self._ask(move.source, "refresh")

    async def _change(self, change: Callable[[Placement], Placement]) -> Placement:
        return await asyncio.to_thread(self._table.change, change)


class _BothSides:
    """The two shards of a move, as one attempt asks them for its steps, which are numbered for each
    (runtime/shard/step_numbers.py).
    """

    def __init__(self, ask: Ask, move: Move):
        self._ask, self._move = ask, move
        self._numbers: Counter[int] = Counter()

    async def source(self, step: str, *given: Any) -> Any:
        return await self._step(self._move.source, step, *given)

    async def target(self, step: str, *given: Any) -> Any:
        return await self._step(self._move.target, step, *given)

    async def _step(self, shard: int, step: str, *given: Any) -> Any:
        self._numbers[shard] += 1
        return await self._ask(shard, step, self._move.attempt, self._numbers[shard], *given)

    async def compare(self) -> list[Span]:
        """Compare all rows of both sides; -> what is in doubt."""
        doubts: list[Span] = []
        for slot in self._move.slots:
            after = b""
            while True:
                digests, after = await self.source("digests", slot, after)
                doubts = await self.target("compare", digests, None if after else slot)
                if not after:
                    break
        return doubts

    async def compare_again(self, doubts: list[Span]) -> tuple[list[Span], bool]:
        """Compare what is in doubt on either side; -> what still is, and whether the source has
        more.
        """
        digests, more = await self.source("recount", doubts)
        return await self.target("compare", digests, None), more

    async def catch_up(self, doubts: list[Span]) -> list[Span]:
        """Have the target take what changed meanwhile, until few rows and spans are left, or they
        get no fewer: what changes all the time waits for the freeze. -> what is in doubt.
        """
        fewest, stalled = math.inf, 0
        for _ in range(SLOT_TAIL_ATTEMPTS_MAX):
            piece = await self.source("changed")
            await self.target("take", piece)
            doubts, more = await self.compare_again(doubts)
            if piece.after or more:
                continue
            if len(piece.rows) <= SLOT_TAIL_ROWS_SMALL and len(doubts) <= SLOT_SPANS_SMALL:
                break
            left = len(piece.rows) + len(doubts)
            fewest, stalled = min(left, fewest), stalled + 1 if left >= fewest else 0
            if stalled == SLOT_TAIL_STALLED_ATTEMPTS_MAX:
                break
        return doubts

    async def agree(self, doubts: list[Span]) -> None:
        """Return when both sides, of which neither changes any more, have the same rows. Raises
        Different.
        """
        move, before, more = self._move, None, True
        while more or doubts:
            doubts, more = await self.compare_again(doubts)
            if not more and doubts and doubts == before:
                tables = sorted({span.table for span in doubts})
                log.error(
                    "move %s: rows of %s differ between shards %d and %d",
                    move.id,
                    ", ".join(tables),
                    move.source,
                    move.target,
                )
                raise Different(
                    f"Rows of {', '.join(tables)} differ between shards {move.source} and "
                    f"{move.target}."
                )
            before = None if more else doubts


def _shards_of(placement: Placement, node: str | None, shard: int | None) -> dict[int, Place]:
    """The shards of a node, or the one of this number, and where they live. Raises PlacementError
    when there is none.
    """
    given = {
        number: place
        for number, place in enumerate(placement.shards)
        if place.node == node or number == shard
    }
    if not given:
        raise PlacementError(
            "There is no such node or shard; `mneme admin cluster` lists them, and --shard names a "
            "shard."
        )
    return given


def _with(placement: Placement, plan: dict[int, int]) -> Placement:
    """The placement with the moves that bring each slot to its target, those that are planned
    already aside. Raises PlacementError.
    """
    busy = {
        slot for move in placement.moves for slot in move.slots if move.target == plan.get(slot)
    }
    routes: dict[tuple[int, int], list[int]] = {}
    for slot, target in sorted(plan.items()):
        if not 0 <= slot < SLOTS:
            raise PlacementError(f"There is no slot {slot}: slots are numbered 0 to {SLOTS - 1}.")
        if slot not in busy and placement.owners[slot] != target:
            routes.setdefault((placement.owners[slot], target), []).append(slot)
    moves = [
        Move(
            f"mv_{os.urandom(8).hex()}",
            tuple(going[start : start + SLOTS_MOVED_AT_ONCE_MAX]),
            source,
            target,
        )
        for (source, target), going in routes.items()
        for start in range(0, len(going), SLOTS_MOVED_AT_ONCE_MAX)
    ]
    return placement.planned(moves) if moves else placement
