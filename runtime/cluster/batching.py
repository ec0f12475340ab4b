"""Batching queues: many requests ride in one message to a shard.

A message between processes costs far more than the work of a small call, so calls share messages. A
queue sends at once when nothing of it is under way; calls that arrive meanwhile leave together in
the next batch. The busier the service, the fuller the batches, and a lone call waits for nobody.
The shard's group commit gets its batches this way for free.

Fast calls are answered as a batch. Of slow ones each is answered as soon as it can be, and a batch
that takes longer than BATCH_PATIENCE_SECONDS holds no other back. Each shard has a queue per class
of call:

    read, write            no remote work, answered in microseconds to a commit
    slow_read, slow_write  operations that prepare something first (an embedding); several batches
                           are under way
    heavy_read             reads that may take seconds: each travels alone
    remote_read, remote_write  calls that wait for somebody else's server (a reranker, a language
                               model) or, lengthy writes, for their turn: each travels
                           alone, and many are under way

The queue knows nothing of Ray: it is given `send(bytes, early) -> bytes`, which raises ShardLost
when it cannot say what happened, ShardNotFound and OtherRelease when nothing was sent for that
reason, and `wait_until_up()`. Invariant: a write is sent at most once. When the shard is lost with
a write under way, the outcome is unknown and the caller hears Unavailable; a read is sent a second
time; calls not yet sent wait for the shard's return.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from runtime.api.operation import Call, Kind, Operation, Reply
from runtime.cluster.release import OtherRelease
from runtime.errors import Unavailable
from runtime.limits import (
    BATCH_BYTES_MAX,
    BATCH_CALLS_MAX,
    BATCH_PATIENCE_SECONDS,
    BATCHES_OVERDUE_MAX,
    BATCHING_QUEUE_CALLS_MAX,
    CALL_SECONDS_MAX,
    SHARD_RECOVERY_SECONDS_MAX,
)

PICKLE_PROTOCOL = 5
# Measured on two cores: a second batch under way gains nothing for fast calls and makes batches
# smaller; for calls that wait on a model it keeps the model busy.
BATCHES_UNDER_WAY_MAX = {
    "read": 1,
    "write": 1,
    "slow_read": 4,
    "heavy_read": 256,
    "slow_write": 8,
    "remote_read": 256,
    "remote_write": 256,
}
# Callers that are answered together call again together. In large batches slow writes would go from
# the model to the disk to the gateway in step, each of the three idle while another works; small
# batches overlap.
CALLS_PER_BATCH_MAX = {
    "read": BATCH_CALLS_MAX,
    "write": BATCH_CALLS_MAX,
    "slow_read": BATCH_CALLS_MAX,
    "heavy_read": 1,
    "slow_write": 8,
    "remote_read": 1,
    "remote_write": 1,
}


class ShardLost(Exception):
    """The shard's process went away, or could not be reached, while a message was under way: its
    outcome is unknown.
    """


class ShardNotFound(ShardLost):
    """There was no process to send the message to; nothing was sent."""


def queue_of(operation: Operation, call: Call) -> str:
    """The queue class a call travels in. What will be refused waits for nobody, and has no body
    that could be asked.
    """
    name = "read" if operation.kind is Kind.READ else "write"
    if operation.is_heavy(call):
        return "heavy_read"
    if operation.lengthy and not call.preflight and call.rejected is None:
        return "remote_write"
    if operation.prepare is None or call.preflight or call.rejected is not None:
        return name
    is_remote = operation.complete is not None or (
        operation.remote is not None and operation.remote(call)
    )
    return f"{'remote' if is_remote else 'slow'}_{name}"


def pack_calls(calls: list[bytes]) -> bytes:
    """Pickled calls -> one message."""
    return pickle.dumps(calls, PICKLE_PROTOCOL)


def unpack_calls(message: bytes) -> list[Call]:
    """The message of pack_calls -> the calls."""
    return [pickle.loads(call) for call in pickle.loads(message)]


Replies = list[Reply | None]  # in the order of the calls, None where it comes in another message
Early = Callable[[bytes], None]  # takes a message of replies that do not wait for the others


def pack_replies(replies: Sequence[Reply | None]) -> bytes:
    """Replies, their bodies encoded -> one message."""
    return pickle.dumps([reply and reply.encoded() for reply in replies], PICKLE_PROTOCOL)


def unpack_replies(message: bytes) -> Replies:
    return pickle.loads(message)


@dataclass(slots=True, eq=False)
class _Waiting:
    """One call in the queue: its pickle, who waits for the reply, until when (loop seconds), and
    whether it was already sent once.
    """

    call: bytes
    reply: asyncio.Future[Reply]
    deadline: float
    sent: bool = False


class BatchingQueue:
    """The calls of one class on their way to one shard. Lives on one event loop."""

    def __init__(
        self,
        name: str,
        send: Callable[[bytes, Early], Awaitable[bytes]],
        wait_until_up: Callable[[float], Awaitable[bool]],
    ):
        self.name = name
        self._send = send
        self._wait_until_up = wait_until_up
        self._repeatable = "read" in name
        self._room = BATCHES_UNDER_WAY_MAX[name]
        self._calls_max = CALLS_PER_BATCH_MAX[name]
        self._queue: deque[_Waiting] = deque()
        self._unanswered: deque[_Waiting] = deque()  # by deadline: one timer serves them all
        self._expiry: asyncio.TimerHandle | None = None
        self._carriers: set[asyncio.Task[None]] = set()
        self._is_patient = not name.startswith("slow")
        self._overdue = 0  # of the carriers
        self._pump_due = False
        self._recovery: asyncio.Task[None] | None = None

    async def execute(self, call: Call) -> Reply:
        """The shard's reply to this call. Raises Unavailable: queue full, shard lost, or no reply
        within CALL_SECONDS_MAX.
        """
        if len(self._queue) >= BATCHING_QUEUE_CALLS_MAX:
            raise Unavailable(
                "The service has more requests waiting than it accepts. Retry in a moment."
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(
            pickle.dumps(call, PICKLE_PROTOCOL),
            loop.create_future(),
            loop.time() + CALL_SECONDS_MAX,
        )
        self._queue.append(waiting)
        self._unanswered.append(waiting)
        while self._unanswered[0].reply.done():
            self._unanswered.popleft()
        if self._expiry is None:
            self._expiry = loop.call_at(self._unanswered[0].deadline, self._expire)
        if not self._pump_due:
            # One turn of the loop later, so that calls which arrived in the same turn share the
            # batch.
            self._pump_due = True
            loop.call_soon(self._pump)
        return await waiting.reply

    def _expire(self) -> None:
        """Tell those who have waited long enough, and come back for the next."""
        loop = asyncio.get_running_loop()
        self._expiry = None
        while self._unanswered:
            waiting = self._unanswered[0]
            if not waiting.reply.done():
                if waiting.deadline > loop.time():
                    self._expiry = loop.call_at(waiting.deadline, self._expire)
                    return
                message = (
                    f"No answer within {CALL_SECONDS_MAX} seconds; the outcome is unknown. {_RETRY}"
                )
                waiting.reply.set_exception(Unavailable(message))
            self._unanswered.popleft()

    def _pump(self) -> None:
        self._pump_due = False
        while self._queue and self._has_room() and self._recovery is None:
            batch = self._next_batch()
            if not batch:
                return
            carrier = asyncio.get_running_loop().create_task(self._carry(batch))
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carried)

    def _has_room(self) -> bool:
        under_way = len(self._carriers)
        return under_way - self._overdue < self._room and under_way < BATCHES_OVERDUE_MAX

    def _next_batch(self) -> list[_Waiting]:
        """The oldest calls up to the batch's bounds, without those whose caller has left. One call
        alone may exceed the bytes.
        """
        batch: list[_Waiting] = []
        size = 0
        while self._queue and len(batch) < self._calls_max:
            waiting = self._queue[0]
            if waiting.reply.done():
                self._queue.popleft()
                continue
            size += len(waiting.call)
            if batch and size > BATCH_BYTES_MAX:
                break
            batch.append(self._queue.popleft())
        return batch

    async def _carry(self, batch: list[_Waiting]) -> None:
        if self._is_patient:
            return await self._carry_to(batch)
        is_overdue = False

        def make_room() -> None:
            nonlocal is_overdue
            is_overdue = True
            self._overdue += 1
            self._pump()

        patience = asyncio.get_running_loop().call_later(BATCH_PATIENCE_SECONDS, make_room)
        try:
            await self._carry_to(batch)
        finally:
            patience.cancel()
            self._overdue -= is_overdue

    async def _carry_to(self, batch: list[_Waiting]) -> None:
        def answer(message: bytes) -> None:
            for waiting, reply in zip(batch, unpack_replies(message), strict=True):
                if reply is not None and not waiting.reply.done():
                    waiting.reply.set_result(reply)

        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                calls = pack_calls([waiting.call for waiting in batch])
                answer(await self._send(calls, answer))
        except TimeoutError:
            return  # each caller's own timeout, which began earlier, has already told it
        except ShardLost as lost:
            self._lost(batch, was_sent=not isinstance(lost, ShardNotFound))
            return
        except OtherRelease as other:  # nothing was sent
            for waiting in batch:
                if not waiting.reply.done():
                    waiting.reply.set_exception(Unavailable(str(other)))

    def _carried(self, carrier: asyncio.Task[None]) -> None:
        self._carriers.discard(carrier)
        if not carrier.cancelled() and (defect := carrier.exception()) is not None:
            raise defect  # not a lost shard: the loop's exception handler reports it
        self._pump()

    def _lost(self, batch: list[_Waiting], *, was_sent: bool) -> None:
        """Settle what was under way and hold the rest until the shard is back."""
        for waiting in reversed(batch):
            if waiting.reply.done():
                continue
            if not was_sent or (self._repeatable and not waiting.sent):
                waiting.sent = waiting.sent or was_sent
                self._queue.appendleft(waiting)
            else:
                waiting.reply.set_exception(
                    Unavailable(
                        "The service restarted under this request; its outcome is unknown. "
                        f"{_RETRY}"
                    )
                )
        if self._recovery is None:
            self._recovery = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        deadline = time.monotonic() + SHARD_RECOVERY_SECONDS_MAX
        while not await self._wait_until_up(deadline - time.monotonic()):
            while self._queue:
                waiting = self._queue.popleft()
                if not waiting.reply.done():
                    waiting.reply.set_exception(
                        Unavailable(
                            "The part of the service that holds this account is restarting. "
                            f"{_RETRY}"
                        )
                    )
            # New calls get their own wait: the queue stays closed until the shard answers.
            deadline = time.monotonic() + SHARD_RECOVERY_SECONDS_MAX
        self._recovery = None
        self._pump()


_RETRY = "Retry in a moment with the same Idempotency-Key."
