"""Flows: operations that take their time in the gateway, such as those that ask a language model.

A flow is one request in three steps, so that nothing slow happens in a shard and nothing happens for a caller who may not:

    begin    in the shard: credential → scope → ceilings → Idempotency-Key → load (snapshot)
    handler  in the gateway: runs other operations by name as the same caller, asks models, may stream
    end      in the shard, in one transaction: finish → the key's record;  or abort, after a failure, which only frees the key

`load(ctx, body)` reads what the handler needs (JSON values; they become `call.loaded`), `finish(ctx, body)` writes what the flow
leads to: `ctx.prepared` is the Reply's `outcome`. Both are optional. A reply may have an async iterator as its body: it goes out
as it comes, and the flow ends when the iterator does, or when the client leaves, which closes the iterator. An iterator that
fails on the way sets the Reply's `error`; the flow is then aborted.

A key is held from begin to end, at most FLOW_SECONDS_MAX, in the shard's memory: its twin is told to wait. The shard's restart
forgets holds; then a twin may run beside a flow, the first to end is remembered, and the other's `finish` is left out. The
parts of a flow carry keys derived from the flow's own, so what they write is written once all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from pydantic import BaseModel

from runtime import idempotency
from runtime.errors import ApiError
from runtime.limits import FLOW_SECONDS_MAX, STREAM_REMEMBERED_BYTES_MAX
from runtime.operation import Call, Operation, Reply

if TYPE_CHECKING:
    from runtime.inference import Models
    from runtime.plugin import Registry

log = logging.getLogger("mneme.flow")

BEGIN, END, ABORT = "begin", "end", "abort"
BEGUN = 100  # the status of begin's reply when the flow may go on

Held = tuple[int, int, bytes]


class Executor(Protocol):
    async def execute(self, call: Call) -> Reply: ...


# --- the gateway's half -----------------------------------------------------------------------------------------------


class Steps:
    """What a flow composes: other operations, by name, as the caller and as parts of this one request."""

    def __init__(self, call: Call, registry: Registry, shards: Executor):
        self._call, self._registry, self._shards = call, registry, shards
        self._count = 0

    def offers(self, method: str, path: str) -> str | None:
        """The name of the operation at this route, if it is installed."""
        return next((o.name for o in self._registry.operations.values() if (o.method, o.path) == (method, path)), None)

    async def run(self, name: str, body: Any = None, *, query: Any = None, **path: str) -> Any:
        """The success body of an operation, decoded. Raises the ApiError of a failure.

        body, query  mappings, which the operation's own models read, or such a model
        """
        operation, whole = self._registry.operations[name], self._call
        self._count += 1
        step = b"%d:" % self._count + name.encode()
        key = whole.idempotency_key
        part = dataclasses.replace(
            whole,
            operation=name,
            seed=hashlib.sha256(whole.seed + step).digest(),
            body=_read(operation.body, body),
            query=_read(operation.query, query),
            path=path,
            idempotency_key=None if key is None else hashlib.sha256(b"part:" + step + key.encode()).hexdigest(),
            fingerprint=b"" if key is None else hashlib.sha256(whole.fingerprint + step).digest(),
            prefer={},
            flow=whole.operation,
            loaded=None,
        )
        reply = await self._shards.execute(part)
        if reply.error is not None:
            raise reply.error
        return None if reply.body is None else orjson.loads(reply.encoded().body)


def _read(model: type[BaseModel] | None, given: Any) -> Any:
    return given if model is None or isinstance(given, model) else model.model_validate(given or {})


class Flow:
    """One flow of one request."""

    def __init__(self, call: Call, operation: Operation, registry: Registry, shards: Executor, models: Models | None):
        self._call, self._operation = call, operation
        self._registry, self._shards, self._models = registry, shards, models
        self._ending: set[asyncio.Task[Any]] = set()

    async def run(self) -> Reply:
        """Begin, handle, end; -> the reply, whose body may be an iterator that ends the flow. Raises ApiError."""
        try:
            began = await self._stage(BEGIN)
            if began.status != BEGUN or began.error is not None:
                return began
            self._call.loaded = orjson.loads(began.body)
            result = await self._operation.handler(self._call, Steps(self._call, self._registry, self._shards), self._models)
        except BaseException:
            await self.abort()
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
        """Commit what the flow led to. `remember`: whether a repeated key is answered with this reply."""
        key = self._call.idempotency_key if remember else None
        return await self._to_the_end(self._stage(END, reply=reply, idempotency_key=key))

    async def abort(self) -> None:
        """Free the key. Where that fails too, the hold runs out by itself."""
        with contextlib.suppress(ApiError):
            await self._to_the_end(self._stage(ABORT))

    async def _stage(self, stage: str, **fields: Any) -> Reply:
        body = None if stage == ABORT else self._call.body
        return await self._shards.execute(dataclasses.replace(self._call, stage=stage, loaded=None, body=body, **fields))

    async def _to_the_end(self, work: Any) -> Any:
        """Await what must happen although this request is being cancelled."""
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return await asyncio.shield(task)


class _Body:
    """A streamed body that ends its flow: with its last chunk, or when it is closed before."""

    def __init__(self, flow: Flow, reply: Reply, chunks: Any):
        self._flow, self._reply, self._chunks = flow, reply, chunks
        self._sent: list[bytes] = []
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
        if self._size <= STREAM_REMEMBERED_BYTES_MAX:
            self._sent.append(chunk)
        return chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._settle(whole=False)

    async def _settle(self, *, whole: bool) -> None:
        """The client has its answer, or has left; what goes wrong here can only be logged."""
        if self._settled:
            return
        self._settled = True
        remember = whole and self._size <= STREAM_REMEMBERED_BYTES_MAX
        reply = dataclasses.replace(self._reply, body=b"".join(self._sent) if remember else None)
        try:
            if self._reply.error is not None:
                await self._flow.abort()
                return
            ended = await self._flow.end(reply, remember=remember)
            if ended.error is not None:
                log.warning("the end of a streamed flow was refused: %s", ended.error.message)
        except ApiError as lost:
            log.warning("the end of a streamed flow was lost: %s", lost.message)


# --- the shard's half -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Hold:
    owner: bytes
    until: float


class Holds:
    """The keys that flows hold, beside those of writes under way (`running`: held -> fingerprint). Times are monotonic seconds."""

    def __init__(self, running: dict[Held, bytes]):
        self._running = running
        self._holds: dict[Held, _Hold] = {}

    def take(self, held: Held, fingerprint: bytes, owner: bytes) -> None:
        """Hold a key for a flow. Raises Conflict while somebody else does."""
        hold = self._holds.get(held)
        if hold is not None and hold.until <= time.monotonic():
            self.give_back(hold.owner)  # its gateway is gone
        running = self._running.get(held)
        if running is not None:
            raise idempotency.still_running() if running == fingerprint else idempotency.different_request()
        self._running[held] = fingerprint
        self._holds[held] = _Hold(owner, time.monotonic() + FLOW_SECONDS_MAX)

    def may_end(self, held: Held, owner: bytes) -> bool:
        """Whether nobody took the key over."""
        hold = self._holds.get(held)
        return hold is None or hold.owner == owner

    def give_back(self, owner: bytes) -> None:
        for held in [held for held, hold in self._holds.items() if hold.owner == owner]:
            del self._holds[held]
            with contextlib.suppress(KeyError):
                del self._running[held]
