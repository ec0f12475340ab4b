"""The way of a flow through its shard: begun, and ended or given up (runtime/http/flow.py).

Credits are held where it begins, and settled or released where it ends. Between both, its key and
its reservation are kept under the seed of its call. Whoever began it ends it, also where the
credential was revoked meanwhile: otherwise its answer could be had for nothing.
"""

from __future__ import annotations

import orjson

from runtime.api.operation import ABORT, BEGUN, END, KEEP, Call, Flow, Reply
from runtime.errors import ApiError
from runtime.shard import idempotency
from runtime.shard.admission import Reservation
from runtime.shard.head import Head, Parts, close, key_of
from runtime.shard.holds import Holds
from runtime.shard.writer import WriteOutcome
from storage.store import Transaction


class Flows:
    def __init__(self, parts: Parts, head: Head, holds: Holds):
        self._parts, self._head, self._holds = parts, head, holds

    async def step(self, operation: Flow, call: Call) -> Reply:
        """Take one step of a flow."""
        if call.stage == ABORT:
            self._holds.give_back(call.seed)
            self._parts.admission.resume(call.seed).release()
            return Reply()
        if call.stage == KEEP:
            self._holds.keep(call.seed)
            return Reply(BEGUN)
        if call.stage == END:
            return await self._end(operation, call)
        return await self._begin(operation, call)

    async def _begin(self, operation: Flow, call: Call) -> Reply:
        with self._parts.store.snapshot() as snapshot:
            entered = self._head.enter(snapshot, operation, call, owner=call.seed)
        if entered.replayed is not None:
            return await self._head.replay(entered)
        entered.reservation.account = entered.ctx.principal, entered.ctx.scope
        self._parts.admission.suspend(call.seed, entered.reservation)
        return Reply(BEGUN, orjson.dumps(entered.ctx.prepared))

    async def _end(self, operation: Flow, call: Call) -> Reply:
        parts, credits = self._parts, operation.credits_for(call.body)
        reservation = parts.admission.resume(call.seed)
        if operation.finish is None and call.idempotency_key is None and not credits:
            self._holds.give_back(call.seed)
            return Reply()  # nothing to write down

        def work(transaction: Transaction) -> WriteOutcome:
            return self._finish(transaction, operation, call, credits, reservation)

        try:
            with parts.store.snapshot() as snapshot:
                _, scope = self._head.identify(snapshot, operation, call, reservation)
            return await parts.writer.submit(
                work,
                operation.name,
                self._head.ended(reservation, scope),
                (scope.slot, scope.tenant),
            )
        except ApiError:
            reservation.release()
            raise
        finally:
            self._holds.give_back(call.seed)

    def _finish(
        self,
        transaction: Transaction,
        operation: Flow,
        call: Call,
        credits: int,
        reservation: Reservation,
    ) -> WriteOutcome:
        reply = call.reply
        assert reply is not None  # a call of the stage "end" has one
        ctx = self._head.again(transaction, operation, call, reply.outcome, reservation)
        if call.idempotency_key is not None:
            taken_over = not self._holds.may_end(key_of(ctx, call.idempotency_key), call.seed)
            if taken_over or idempotency.replay(ctx, transaction, operation, call) is not None:
                return WriteOutcome(Reply())
        ctx.credits = credits
        if operation.finish is not None:
            operation.finish(ctx, call.body)
        close(ctx, operation, reply)
        return WriteOutcome(Reply(), ctx.due, ctx.metered)
