"""What a flow composes: the other operations, called by name, as the caller and as parts of the one
request. A job composes reads in the same way, as the account it belongs to.

A part carries a seed and a key that derive from the flow's own and from the part's place in it, so
a flow that is repeated under its key writes nothing twice.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import orjson
from pydantic import BaseModel

from runtime.api.context import ReadContext
from runtime.api.operation import Call, Operation, Reply

T = TypeVar("T")


class Executor(Protocol):
    async def execute(self, call: Call) -> Reply: ...


class JobExecutor(Executor, Protocol):
    """Executes reads as the account that a job belongs to."""

    async def look(self, work: Callable[[ReadContext], T]) -> T: ...


class Steps:
    """What a flow composes: other operations, by name, as the caller and as parts of this one
    request.

    outcome  set where the flow has cost something: what its `finish` gets although its caller left
             or something failed before there was a reply
    """

    def __init__(self, call: Call, operations: Mapping[str, Operation], shards: Executor):
        self._call, self._operations, self._shards = call, operations, shards
        self._count = 0
        self.outcome: Any = None

    def offers(self, method: str, path: str) -> str | None:
        """The name of the operation at this route, if it is installed."""
        return next(
            (o.name for o in self._operations.values() if (o.method, o.path) == (method, path)),
            None,
        )

    async def run(self, name: str, body: Any = None, *, query: Any = None, **path: str) -> Any:
        """The success body of an operation, decoded. Raises the ApiError of a failure.

        body, query  mappings, which the operation's own models read, or such a model
        """
        operation, whole = self._operations[name], self._call
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
            idempotency_key=None
            if key is None
            else hashlib.sha256(b"part:" + step + key.encode()).hexdigest(),
            fingerprint=b"" if key is None else hashlib.sha256(whole.fingerprint + step).digest(),
            prefer={},
            flow=whole.operation,
            loaded=None,
        )
        reply = await self._shards.execute(part)
        if reply.error is not None:
            raise reply.error
        return None if reply.body is None else orjson.loads(reply.encoded().body)


class JobSteps(Steps):
    """What a job composes before its transaction: reads, each on a snapshot of its own. They are
    neither counted nor charged, and leave no event behind.
    """

    def __init__(self, call: Call, operations: Mapping[str, Operation], shard: JobExecutor):
        super().__init__(call, operations, shard)
        self._shard = shard

    async def look(self, work: Callable[[ReadContext], T]) -> T:
        """What `work(ctx)` makes of the account's rows as they are now, on a thread."""
        return await self._shard.look(work)


def _read(model: type[BaseModel] | None, given: Any) -> Any:
    return given if model is None or isinstance(given, model) else model.model_validate(given or {})
