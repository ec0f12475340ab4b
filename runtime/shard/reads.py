"""The way of a read: its handler runs on a snapshot, and it is charged a second later.

A read without slow work is answered at once, on the event loop. One that prepares something (an
embedding) or is heavy is let in here; the rest of it (runtime/shard/prepared_reads.py) is done
aside, in this process or in one beside it that reads the same store (runtime/shard/readers.py).
What a read leaves behind, events and notes of what it touched, is written when its reply is on its
way.
"""

from __future__ import annotations

import asyncio
import logging

from runtime import tracing
from runtime.api import tenants
from runtime.api.context import WriteContext
from runtime.api.operation import Call, Read, Reply
from runtime.errors import Unavailable
from runtime.limits import ANNOUNCEMENTS_WAITING_MAX, SLOW_CALLS_MAX
from runtime.shard.head import Entered, Head, Parts, formed
from runtime.shard.prepared_reads import PreparedReads
from runtime.shard.readers import Announced, Answered, Place, Readers, account_bytes_max
from runtime.shard.writer import WriteOutcome
from storage.store import Scope, Transaction

log = logging.getLogger("mneme.shard")


class Reads:
    """Answers the reads of a shard.

    prepared    those with slow work, and heavy ones, that are done in this process
    slow        reads with slow work, and heavy ones, that are under way
    announcing  writes of events that reads announced
    """

    def __init__(self, parts: Parts, head: Head, prepared: PreparedReads, readers: Readers):
        self._parts, self._head, self._readers = parts, head, readers
        self.prepared = prepared
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
        self._leave(operation, call, entered, Answered.of(reply, ctx))
        return reply

    async def aside(self, operation: Read, call: Call) -> Reply:
        """Answer a read that has slow work to do before, or is heavy."""
        if self.slow >= SLOW_CALLS_MAX:
            raise Unavailable("Too many searches are waiting. Retry in a moment.")
        self.slow += 1
        entered, is_loaded, parts = None, False, self._parts
        try:
            with parts.store.snapshot() as snapshot:
                entered = self._head.enter(snapshot, operation, call, loads=False)
                place = self._place(operation, entered)
                if place is None:
                    is_loaded = self.prepared.load(operation, entered.ctx)
                admitted = snapshot.sequence
            answered = await self._answered(operation, entered, place, is_loaded)
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
        self._leave(operation, call, entered, answered)
        return answered.reply

    def _place(self, operation: Read, entered: Entered) -> Place | None:
        """The reader to ask; None where this process answers, such as for whoever has no account,
        and for an account of which it has much in memory.
        """
        scope = entered.ctx.scope
        if entered.ctx.principal is None:
            return None
        place = self._readers.place(
            (scope.slot, scope.tenant),
            self.prepared.under_way,
            heavy=operation.is_heavy(entered.ctx.call),
        )
        if place is None:
            return None
        most = account_bytes_max(self._parts.environment.settings, self._readers.count)
        return None if self._parts.store.residents.bytes_of(scope) > most else place

    async def _answered(
        self, operation: Read, entered: Entered, place: Place | None, is_loaded: bool
    ) -> Answered:
        ctx = entered.ctx
        if place is None:
            return await self.prepared.run(operation, ctx, is_loaded=is_loaded)
        call, principal, scope = ctx.call, ctx.principal, ctx.scope
        with tracing.part("reader", operation.name):
            call.trace = tracing.carried()
            answered = await place.ask(call, principal, scope)
        if answered is None:
            return await self.prepared.enter_and_run(operation, call, principal, scope)
        if answered.reply.error is not None:
            raise answered.reply.error
        return answered

    def _leave(self, operation: Read, call: Call, entered: Entered, answered: Answered) -> None:
        """What a read leaves behind once its reply is formed. It costs what it held, which is
        written with the next second's usage.
        """
        principal, usage, reservation = (
            entered.ctx.principal,
            self._parts.usage,
            entered.reservation,
        )
        if answered.announced and len(self.announcing) < ANNOUNCEMENTS_WAITING_MAX:
            self._announce(call, entered.ctx.scope, answered.announced)
        if answered.accessed:
            usage.count_accesses(principal, answered.accessed, call.now_ms)
        if reservation.credits:
            usage.charge(principal, operation.name, call, reservation.credits)
            reservation.release(used=True)

    def _announce(self, call: Call, scope: Scope, announced: Announced) -> None:
        """Have the events of a read written. Under overload they are dropped, never the reply."""
        environment, events = self._parts.environment, self._parts.registry.events

        def work(transaction: Transaction) -> WriteOutcome:
            found = tenants.tenant(transaction, scope.slot, scope.tenant)
            if found is None:
                return WriteOutcome(Reply())  # the account was erased meanwhile
            ctx = WriteContext(transaction, scope, call, environment, found[0])
            for kind, data, resource_id in announced:
                ctx.emit(events[kind], data, resource_id)
            return WriteOutcome(Reply(), ctx.due)

        task = asyncio.get_running_loop().create_task(
            self._parts.writer.submit(
                work, f"announce {call.operation}", account=(scope.slot, scope.tenant)
            )
        )
        self.announcing.add(task)
        task.add_done_callback(self._announced)

    def _announced(self, task: asyncio.Task) -> None:
        self.announcing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an event of a read could not be written", exc_info=task.exception())
