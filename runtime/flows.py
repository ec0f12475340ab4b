"""How a flow is admitted and paid for: language-model work, which no single transaction holds.

A flow runs in the gateway and composes operations of the tenant's shard. Its first call is `usage.reserve`, which judges the flow
as a whole, by its own declaration: credential and scope, ceilings, feature, and its credits, which are set aside. What it composes
afterwards is neither counted nor charged. At the end it settles, once, or releases:

    async with await admitted(call, shards) as flow:
        found = await flow.execute("search.search", body=SearchBody(query="…"))
        …                               # an exception, a client that left: released, and nothing is charged

    flow = await admitted(call, shards)     # a stream: the handler returns long before the work is done
    … await flow.settle()                   # or flow.release(), at the stream's end

A gateway that dies in between leaves its reservation behind; the shard reaps it after RESERVATION_SECONDS_MAX.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any, Protocol

import orjson

from runtime import ids
from runtime.errors import ApiError
from runtime.metering import RELEASE, RESERVE, SETTLE
from runtime.operation import Call, Reply

log = logging.getLogger("mneme.flows")

_ending: set[asyncio.Task] = set()  # the event loop itself holds tasks weakly


class Shards(Protocol):
    async def execute(self, call: Call) -> Reply: ...


class Flow:
    """A flow that was let in. reservation: hex digits; credits: what was set aside, and what `settle` charges by default."""

    def __init__(self, call: Call, shards: Shards):
        self.call = call
        self.reservation = ""
        self.credits = 0
        self._shards = shards
        self._composed = 0
        self._over = False

    async def execute(
        self, operation: str, body: Any = None, *, query: Any = None, path: dict[str, str] | None = None, **fields: Any
    ) -> Reply:
        """Run an operation as part of this flow; its reply, errors included. `fields` are further fields of the Call."""
        self._composed += 1
        composed = replace(
            self.call,
            operation=operation,
            body=body,
            query=query,
            path=path or {},
            seed=ids.derived_random(self.call.seed, self._composed, 32),
            idempotency_key=None,
            fingerprint=b"",
            if_match=None,
            flow=self.call.operation,
        )
        return await self._shards.execute(replace(composed, **fields) if fields else composed)

    async def settle(self, credits: int | None = None) -> None:
        """Charge the flow: what was set aside, or what the work came to. Only the first of settle and release counts."""
        await self._end(SETTLE, self.credits if credits is None else credits)

    async def release(self) -> None:
        """Charge nothing and give the credits back."""
        await self._end(RELEASE, 0)

    async def __aenter__(self) -> Flow:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await (self.settle() if kind is None else self.release())

    async def _end(self, operation: str, credits: int) -> None:
        if self._over:
            return
        self._over = True
        if self.credits == 0 and credits == 0:
            return
        ending = self.execute(operation, path={"reservation": self.reservation, "credits": str(credits)})
        # A client that leaves cancels this task, and the credits must be dealt with all the same.
        task = asyncio.ensure_future(self._make_sure(ending))
        _ending.add(task)
        task.add_done_callback(_ending.discard)
        await asyncio.shield(task)

    async def _make_sure(self, ending: Any) -> None:
        """The answer was made, so a shard that is away just now takes nothing from it: the reservation is reaped."""
        try:
            reply = await ending
            if reply.error is not None:
                raise reply.error
        except ApiError as failed:
            log.warning("%s of %s failed: %s", self.call.operation, self.call.request_id, failed.message)


async def admitted(call: Call, shards: Shards) -> Flow:
    """Admit the flow that `call` asks for. Raises what its shard refuses it with: 401, 403, 429 …"""
    flow = Flow(call, shards)
    reply = await flow.execute(RESERVE, call.body, query=call.query)
    if reply.error is not None:
        raise reply.error
    granted = orjson.loads(reply.encoded().body)
    flow.reservation, flow.credits = granted["reservation"], granted["credits"]
    return flow
