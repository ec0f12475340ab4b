"""The way of a read: its handler runs on a snapshot, and it is charged a second later.

A read without slow work is answered at once, on the event loop. One that prepares something (an
embedding) holds no snapshot meanwhile, and its handler runs in its turn on a thread of the pool. A
heavy one, with or without such work, runs apart from both (runtime/shard/heavy_reads.py).
What a read leaves behind, events and notes of what it touched, is written when its reply is on its
way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from runtime import tracing
from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Read, Reply
from runtime.api.slot_context import OperatorReadContext
from runtime.errors import Unavailable
from runtime.inference import on_busy, remembered_for
from runtime.limits import ANNOUNCEMENTS_WAITING_MAX, SLOW_CALLS_MAX
from runtime.shard.head import Entered, Head, Parts, formed, reading
from runtime.shard.heavy_reads import HeavyReads
from runtime.shard.read_pool import ReadPool
from runtime.shard.writer import WriteOutcome
from storage.store import Snapshot, Transaction

log = logging.getLogger("mneme.shard")


class Reads:
    """Answers the reads of a shard.

    slow        reads with slow work, and heavy ones, that are under way
    announcing  writes of events that reads announced
    """

    def __init__(self, parts: Parts, head: Head, pool: ReadPool, heavy: HeavyReads):
        self._parts, self._head, self._pool, self._heavy = parts, head, pool, heavy
        self.slow = 0
        self.announcing: set[asyncio.Task] = set()

    def at_once(self, operation: Read, call: Call) -> Reply:
        """Answer a read that waits for nothing."""
        with self._parts.store.snapshot() as snapshot:
            entered = self._head.enter(snapshot, operation, call)
            ctx = entered.ctx
            try:
                reply = formed(operation, operation.handler(ctx, call.body))
            except BaseException:
                entered.reservation.release()
                raise
        self._leave(operation, call, entered, ctx)
        return reply

    async def aside(self, operation: Read, call: Call) -> Reply:
        """Answer a read that has slow work to do before, or is heavy."""
        if self.slow >= SLOW_CALLS_MAX:
            raise Unavailable("Too many searches are waiting. Retry in a moment.")
        self.slow += 1
        entered, parts = None, self._parts
        try:
            with parts.store.snapshot() as snapshot:
                entered = self._head.enter(snapshot, operation, call)
                admitted = snapshot.sequence
            reply, ctx = await self.prepared(operation, entered.ctx)
            # It read after it was admitted, and nobody reads what is erased by then,
            if parts.store.sequence != admitted:
                with parts.store.snapshot() as snapshot:
                    self._head.identify(snapshot, operation, call)
            # nor what another shard may have changed by then.
            parts.gate.check(call.slot, admitted=True)
        except BaseException as failed:
            if entered is not None:
                entered.reservation.release()
            if isinstance(failed, Exception):
                # Whatever failed may have missed rows that are elsewhere.
                parts.gate.check(call.slot, admitted=True)
            raise
        finally:
            self.slow -= 1
        self._leave(operation, call, entered, ctx)
        return reply

    async def prepared(
        self, operation: Read, loaded: OperatorReadContext
    ) -> tuple[Reply, ReadContext]:
        """Do everything of such a read that comes after `load`; -> also the context its handler was
        given.
        """
        parts, call, made = self._parts, loaded.call, list[OperatorReadContext]()

        def make(snapshot: Snapshot) -> OperatorReadContext:
            made.append(
                reading(operation)(
                    snapshot, loaded.scope, call, parts.environment, loaded.principal
                )
            )
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
            is_alone = operation.prefetch is not None and self.slow == 1
            prefetch = self._pool.prefetch(operation, make_prefetching) if is_alone else None
            try:
                with remembered_for(tenant), on_busy(prefetch and prefetch.begin):
                    prepared = await operation.prepare(call, loaded.prepared, parts.models)
            except BaseException:
                if prefetch is not None:
                    prefetch.leave()
                raise
            with tracing.part("read", operation.name):
                reply = await self._pool.run(operation, tenant, make, prepared, prefetch)
        if operation.complete is not None:
            reply = formed(operation, await operation.complete(call, reply.body, parts.models))
        return reply, made[-1]

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
            return await self._heavy.run(account, call, at_once)
        found = await self._heavy.run(account, call, lambda snapshot: loaded(make(snapshot)))
        with remembered_for(account):
            prepared = await operation.prepare(call, found, self._parts.models)
        return await self._heavy.run(
            account, call, lambda snapshot: answered(make(snapshot), prepared)
        )

    def _leave(self, operation: Read, call: Call, entered: Entered, read: ReadContext) -> None:
        """What a read leaves behind once its reply is formed. It costs what it held, which is
        written with the next second's usage.
        """
        principal, usage, reservation = (
            entered.ctx.principal,
            self._parts.usage,
            entered.reservation,
        )
        if read.announced and len(self.announcing) < ANNOUNCEMENTS_WAITING_MAX:
            self._announce(read)
        if read.accessed:
            usage.count_accesses(principal, read.accessed, call.now_ms)
        if reservation.credits:
            usage.charge(principal, operation.name, call, reservation.credits)
            reservation.release(used=True)

    def _announce(self, read: ReadContext) -> None:
        """Have the events of a read written. Under overload they are dropped, never the reply."""
        announced = [(event, data(), resource_id) for event, data, resource_id in read.announced]
        call, scope, environment = read.call, read.scope, self._parts.environment

        def work(transaction: Transaction) -> WriteOutcome:
            found = tenants.tenant(transaction, scope.slot, scope.tenant)
            if found is None:
                return WriteOutcome(Reply())  # the account was erased meanwhile
            ctx = WriteContext(transaction, scope, call, environment, found[0])
            for event, data, resource_id in announced:
                ctx.emit(event, data, resource_id)
            return WriteOutcome(Reply(), ctx.due)

        task = asyncio.get_running_loop().create_task(
            self._parts.writer.submit(work, f"announce {call.operation}")
        )
        self.announcing.add(task)
        task.add_done_callback(self._announced)

    def _announced(self, task: asyncio.Task) -> None:
        self.announcing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an event of a read could not be written", exc_info=task.exception())


def formed_read(operation: Read, result: object) -> Reply:
    """What the handler of a prepared read returned: a Reply, encoded unless another step is to
    complete it.
    """
    if operation.complete is None:
        return formed(operation, result)
    return Reply(operation.statuses[0], result)
