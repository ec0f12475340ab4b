"""Flows: operations that take their time in the gateway, such as those that ask a language model.

A flow is one request in three steps, so that nothing slow happens in a shard and nothing happens
for a caller who may not:

    begin    in the shard: credential → scope → ceilings → Idempotency-Key → load (snapshot)
    handler  in the gateway: runs other operations by name as the same caller, asks models, may
             stream
    end      in the shard, in one transaction: finish → the key's record;  or abort, which only
             frees the key. Where there is no whole reply, since the client left or something
             failed, a flow that has an outcome by then (`steps.outcome`, or that of its reply) is
             ended with that and without the key's record: it has cost that much. Any other is
             aborted

`load(ctx, body)` reads what the handler needs (JSON values; they become `call.loaded`),
`finish(ctx, body)` writes what the flow leads to: `ctx.prepared` is the Reply's `outcome`. Both are
optional. A reply may have an async iterator as its body: it goes out as it comes, and the flow ends
when the iterator does, or when the client leaves, which closes the iterator. An iterator that fails
on the way sets the Reply's `error`.

A key is held from begin to end in the shard's memory: its twin is told to wait. The gateway says
every third of FLOW_KEPT_SECONDS that the flow is under way (KEEP), since nobody else would notice
that the gateway is gone, and the key with it. The shard's restart forgets holds; then a twin may
run beside a flow, the first to end is remembered, and the other's `finish` is left out. The parts
of a flow carry keys derived from the flow's own, so what they write is written once all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson

from runtime.api.operation import ABORT, BEGIN, BEGUN, END, KEEP, Call, Reply
from runtime.api.operation import Flow as FlowOperation
from runtime.api.steps import Executor, Steps
from runtime.errors import ApiError, Unavailable
from runtime.limits import (
    FLOW_END_PAUSES_SECONDS,
    FLOW_KEPT_SECONDS,
    FLOW_SECONDS_MAX,
    STREAM_REMEMBERED_BYTES_MAX,
)

if TYPE_CHECKING:
    from runtime.api.plugin import Registry
    from runtime.inference import Models

log = logging.getLogger("mneme.flow")

_STATUS_OF_NO_ANSWER = 500


class Flow:
    """One flow of one request."""

    def __init__(
        self,
        call: Call,
        operation: FlowOperation,
        registry: Registry,
        shards: Executor,
        models: Models | None,
    ):
        self._call, self._operation = call, operation
        self._registry, self._shards, self._models = registry, shards, models
        self._ending: set[asyncio.Task[Any]] = set()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def has_key(self) -> bool:
        return self._call.idempotency_key is not None

    async def run(self) -> Reply:
        """Begin, handle, end; -> the reply, whose body may be an iterator that ends the flow.
        Raises ApiError.
        """
        steps = Steps(self._call, self._registry.operations, self._shards)
        try:
            began = await self._stage(BEGIN)
            if began.status != BEGUN or began.error is not None:
                return began
            if self.has_key:
                self._keeping = asyncio.create_task(self._keep())
            self._call.loaded = orjson.loads(began.body)
            result = await self._operation.handler(self._call, steps, self._models)
        except BaseException as failed:
            status = failed.status if isinstance(failed, ApiError) else _STATUS_OF_NO_ANSWER
            await self.break_off(steps.outcome, status)
            raise
        reply = result if isinstance(result, Reply) else Reply(self._operation.statuses[0], result)
        if hasattr(reply.body, "__aiter__"):
            reply.body = _Body(self, reply, reply.body)
            return reply
        try:
            ended = await self.end(reply.encoded())
        except ApiError:  # it did not reach its shard, or nobody knows
            await self.abort()
            raise
        return reply if ended.error is None else ended

    async def end(self, reply: Reply, *, remember: bool = True) -> Reply:
        """Commit what the flow led to. `remember`: whether a repeated key is answered with this
        reply.
        """
        key = self._call.idempotency_key if remember else None
        return await self._to_the_end(self._stage(END, reply=reply, idempotency_key=key))

    async def break_off(self, outcome: Any, status: int) -> None:
        """End without a whole reply: its client left, or something failed. What the flow has cost
        by then it costs all the same, or whoever leaves in time would have it for nothing.

        outcome  None where it has cost nothing
        status   as which it counts among the account's requests
        """
        if outcome is None:
            await self.abort(status)
        else:
            await self.end_unheard(Reply(status, outcome=outcome), remember=False)

    async def end_unheard(self, reply: Reply, *, remember: bool) -> None:
        """End where nobody waits to hear of it. What is refused for the moment is tried again, or
        whoever keeps a shard busy would have the answer for nothing.
        """
        await self._to_the_end(self._end_at_last(reply, remember))

    async def _end_at_last(self, reply: Reply, remember: bool) -> None:
        for pause in (*FLOW_END_PAUSES_SECONDS, None):
            try:
                refused = (await self.end(reply, remember=remember)).error
            except ApiError as lost:
                refused = lost
            if refused is None:
                return
            if pause is None or not isinstance(refused, Unavailable):
                log.warning("the end of a flow was lost: %s", refused.message)
                return
            await asyncio.sleep(pause)

    async def abort(self, status: int = _STATUS_OF_NO_ANSWER) -> None:
        """Free the key. Where that fails too, the hold runs out by itself."""
        with contextlib.suppress(ApiError):
            await self._to_the_end(self._stage(ABORT, reply=Reply(status)))

    async def _stage(self, stage: str, **fields: Any) -> Reply:
        body = None if stage in (KEEP, ABORT) else self._call.body
        return await self._shards.execute(
            dataclasses.replace(self._call, stage=stage, loaded=None, body=body, **fields)
        )

    async def _keep(self) -> None:
        """Keep the key until the flow ends, at most FLOW_SECONDS_MAX. Where that fails it may go on
        under it, and a twin beside it.
        """
        pause = FLOW_KEPT_SECONDS / 3
        for _ in range(int(FLOW_SECONDS_MAX / pause)):
            await asyncio.sleep(pause)
            with contextlib.suppress(ApiError):
                await self._stage(KEEP)

    async def _to_the_end(self, work: Any) -> Any:
        """Await what must happen although this request is being cancelled."""
        if self._keeping is not None:
            self._keeping.cancel()
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return await asyncio.shield(task)


class _Body:
    """A streamed body that ends its flow: with its last chunk, or when it is closed before."""

    def __init__(self, flow: Flow, reply: Reply, chunks: Any):
        self._flow, self._reply, self._chunks = flow, reply, chunks
        self._sent: list[bytes] = []
        # Without a key nobody can ask for it again.
        self._room = STREAM_REMEMBERED_BYTES_MAX if flow.has_key else 0
        self._size = 0
        self._settled = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            await self._settle(whole=True)
            raise
        self._size += len(chunk)
        if self._size <= self._room:
            self._sent.append(chunk)
        else:
            self._sent.clear()
        return chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._settle(whole=False)

    async def _settle(self, *, whole: bool) -> None:
        """The client has its answer, or has left; what goes wrong here can only be logged."""
        if self._settled:
            return
        self._settled = True
        flow, told = self._flow, self._reply
        del self._flow, self._reply  # which hold this body, and what the request sent
        remember = whole and self._size <= self._room
        if told.error is not None:
            await flow.break_off(told.outcome, told.error.status)
        else:
            body = b"".join(self._sent) if remember else None
            await flow.end_unheard(dataclasses.replace(told, body=body), remember=remember)
