"""What of a read comes after it was let in: slow work on no snapshot, and its handler on one.

A read that prepares something (an embedding) holds no snapshot meanwhile, and its handler runs in
its turn on a thread of the pool. A heavy one, with or without such work, runs apart from both
(runtime/shard/heavy_reads.py). What it looks at before that (`load`) takes no time on the event
loop, unless the account is large or has to be brought into memory first: then it has a thread.

Nothing here asks who calls, counts or writes. So it runs in the shard's process, which did that
before, and in the processes beside it (runtime/shard/reading.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runtime import tracing
from runtime.api.context import Environment
from runtime.api.operation import Call, Principal, Read, Reply
from runtime.api.slot_context import OperatorReadContext
from runtime.inference import Models, on_busy, remembered_for
from runtime.limits import LOADED_AT_ONCE_BYTES_MAX, LOADING_THREADS, READ_THREADS_MAX
from runtime.shard.head import formed, load, reading
from runtime.shard.heavy_reads import HeavyReads
from runtime.shard.read_pool import ReadPool
from runtime.shard.readers import Answered
from storage.store import Scope, Snapshot, Store


class PreparedReads:
    """Does what comes after the admission of the reads that are not answered at once.

    models     what prepares them
    under_way  how many run or wait here
    heavy      those that may read many rows
    """

    def __init__(self, store: Store, environment: Environment, models: Models | None):
        self._store, self._environment, self.models = store, environment, models
        self._pool = ReadPool(store, formed_read, READ_THREADS_MAX)
        if models is not None and models.shard_embedder is not None:
            self._pool.on_backlog = models.shard_embedder.yield_to_reads
        self.heavy = HeavyReads(store)
        self._loading = ThreadPoolExecutor(LOADING_THREADS, thread_name_prefix="mneme-load")
        self.under_way = 0

    async def enter_and_run(
        self, operation: Read, call: Call, principal: Principal, scope: Scope
    ) -> Answered:
        """As run, of a call that was let in elsewhere."""
        with self._store.snapshot() as snapshot:
            ctx = reading(operation)(snapshot, scope, call, self._environment, principal)
            is_loaded = self.load(operation, ctx)
        return await self.run(operation, ctx, is_loaded=is_loaded)

    def load(self, operation: Read, ctx: OperatorReadContext) -> bool:
        """What the operation reads before slow work, in its context; -> whether that is done: where
        it may take long, `run` is to do it.
        """
        if operation.load is not None and not operation.is_heavy(ctx.call):
            held = self._store.residents.bytes_of(ctx.scope)
            if not 0 < held <= LOADED_AT_ONCE_BYTES_MAX:
                return False
        load(operation, ctx)
        return True

    async def run(
        self, operation: Read, entered: OperatorReadContext, *, is_loaded: bool
    ) -> Answered:
        """Do everything of such a read that comes after `load`, or that and `load`."""
        self.under_way += 1
        try:
            if not is_loaded:
                entered.prepared = await self._load_apart(operation, entered)
            return await self._run(operation, entered)
        finally:
            self.under_way -= 1

    def close(self) -> None:
        """End the threads, once what runs has ended."""
        self._loading.shutdown()
        self._pool.close()
        self.heavy.close()

    async def _run(self, operation: Read, loaded: OperatorReadContext) -> Answered:
        call, made = loaded.call, list[OperatorReadContext]()

        def make(snapshot: Snapshot) -> OperatorReadContext:
            made.append(self._again(operation, loaded, snapshot))
            return made[-1]

        def make_prefetching(snapshot: Snapshot) -> OperatorReadContext:
            ctx = make(snapshot)
            ctx.prepared = loaded.prepared
            return ctx

        tenant = (loaded.scope.slot, loaded.scope.tenant)
        if operation.is_heavy(call):
            reply = await self._heavily(operation, loaded, make)
        else:
            assert operation.prepare is not None
            # Beside others it would only take the time that they need.
            is_alone = operation.prefetch is not None and self.under_way == 1
            prefetch = self._pool.prefetch(operation, make_prefetching) if is_alone else None
            try:
                with remembered_for(tenant), on_busy(prefetch and prefetch.begin):
                    prepared = await operation.prepare(call, loaded.prepared, self.models)
            except BaseException:
                if prefetch is not None:
                    prefetch.leave()
                raise
            with tracing.part("read", operation.name):
                reply = await self._pool.run(operation, tenant, make, prepared, prefetch)
        if operation.complete is not None:
            reply = formed(operation, await operation.complete(call, reply.body, self.models))
        return Answered.of(reply, made[-1])

    def _again(
        self, operation: Read, entered: OperatorReadContext, snapshot: Snapshot
    ) -> OperatorReadContext:
        """The context of a call that was let in, on another snapshot."""
        given = entered.scope, entered.call, self._environment, entered.principal
        return reading(operation)(snapshot, *given)

    async def _load_apart(self, operation: Read, entered: OperatorReadContext) -> Any:
        """What `load` gives, on a thread and a snapshot of its own."""

        def loaded() -> Any:
            with self._store.snapshot() as snapshot:
                ctx = self._again(operation, entered, snapshot)
                load(operation, ctx)
                return ctx.prepared

        with tracing.part("load", operation.name):
            return await asyncio.get_running_loop().run_in_executor(self._loading, loaded)

    async def _heavily(
        self,
        operation: Read,
        entered: OperatorReadContext,
        make: Callable[[Snapshot], OperatorReadContext],
    ) -> Reply:
        """The reply of a heavy read: its `load` runs apart too."""
        call, account = entered.call, (entered.scope.slot, entered.scope.tenant)

        def loaded(ctx: OperatorReadContext) -> Any:
            return None if operation.load is None else operation.load(ctx, call.body)

        def answered(ctx: OperatorReadContext, prepared: Any) -> Reply:
            ctx.prepared = prepared
            if operation.batch is not None:
                operation.batch(ctx, [prepared])
            return formed_read(operation, operation.handler(ctx, call.body))

        def at_once(snapshot: Snapshot) -> Reply:
            ctx = make(snapshot)
            return answered(ctx, loaded(ctx))

        if operation.prepare is None:
            return await self.heavy.run(account, call, at_once)
        found = await self.heavy.run(account, call, lambda snapshot: loaded(make(snapshot)))
        with remembered_for(account):
            prepared = await operation.prepare(call, found, self.models)
        return await self.heavy.run(
            account, call, lambda snapshot: answered(make(snapshot), prepared)
        )


def formed_read(operation: Read, result: object) -> Reply:
    """What the handler of a prepared read returned: a Reply, encoded unless another step is to
    complete it.
    """
    if operation.complete is None:
        return formed(operation, result)
    return Reply(operation.statuses[0], result)
