"""The way of a write: slow work first, holding nothing, then its handler in the writer's
transaction.

What the usage buffer has gathered goes the last part of the same way.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from runtime import tracing
from runtime.api import tenants
from runtime.api.context import WriteContext
from runtime.api.operation import Call, Reply, Together, Write
from runtime.api.slot_context import OperatorWriteContext
from runtime.errors import ApiError
from runtime.inference import remembered_for
from runtime.limits import (
    LENGTHY_WRITES_AT_ONCE,
    LENGTHY_WRITES_REST_SECONDS_MAX,
    LENGTHY_WRITES_SHARE_MAX,
)
from runtime.long_work import cores
from runtime.shard import idempotency
from runtime.shard.auth import KeysInUse
from runtime.shard.head import Head, Parts, close, close_each, formed
from runtime.shard.holds import Holds
from runtime.shard.turns import Account, Turns
from runtime.shard.usage_buffer import Tenant
from runtime.shard.writer import USAGE, Apart, Joint, WriteOutcome
from storage.store import Transaction


class _Item(NamedTuple):
    """A call that may be handled with others: what its context is made of."""

    call: Call
    prepared: Any
    credits: int


class Writes:
    def __init__(self, parts: Parts, head: Head, holds: Holds):
        self._parts, self._head, self._holds = parts, head, holds
        self._lengthy = Turns(LENGTHY_WRITES_AT_ONCE)

    async def run(self, operation: Write, call: Call) -> Reply:
        """Answer a write, once it is committed; a lengthy one in its account's turn."""
        if not operation.lengthy or call.rejected is not None:
            return await self._run(operation, call)
        with self._parts.store.snapshot() as snapshot:
            scope = self._head.identify(snapshot, operation, call)[1]
        account = (scope.slot, scope.tenant)
        await self._lengthy.take(account)
        began = time.monotonic()
        try:
            return await self._run(operation, call)
        finally:
            self._rest(account, time.monotonic() - began)

    def _rest(self, account: Account, seconds: float) -> None:
        """End a lengthy write's turn, in a crowd after a while: one after another they would leave
        others, whose writes are of microseconds, half of the only writer.
        """
        if not cores().are_crowded():
            self._lengthy.leave(account)
            return
        rest = min(seconds / LENGTHY_WRITES_SHARE_MAX - seconds, LENGTHY_WRITES_REST_SECONDS_MAX)
        asyncio.get_running_loop().call_later(rest, self._lengthy.leave, account)

    def begin_no_more_lengthy(self) -> None:
        """Refuse the lengthy writes that wait for their turn, and those that come."""
        self._lengthy.close()

    async def _run(self, operation: Write, call: Call) -> Reply:
        parts, submitted = self._parts, False
        with parts.store.snapshot() as snapshot:
            entered = self._head.enter(snapshot, operation, call)
        if entered.replayed is not None:
            entered.reservation.release()
            return await self._head.replay(entered)
        reservation, prepared = entered.reservation, entered.ctx.prepared
        scope = entered.ctx.scope
        account = scope.slot, scope.tenant
        try:
            if operation.prepare is not None:
                with remembered_for(account):
                    prepared = await operation.prepare(call, prepared, parts.models)

            def work(transaction: Transaction) -> WriteOutcome:
                ctx = self._head.again(transaction, operation, call, prepared)
                replayed = idempotency.replay(ctx, transaction, operation, call)
                if replayed is not None:
                    return WriteOutcome(formed(operation, replayed))
                ctx.credits = reservation.credits
                try:
                    reply = formed(operation, operation.handler(ctx, call.body))
                except ApiError as refused:
                    reservation.judge(refused)
                    raise
                close(ctx, operation, reply)
                return WriteOutcome(reply, ctx.due, ctx.metered)

            together, joint = operation.together, None
            if together is not None and together.may(call, prepared):
                work_of_all = partial(self._handle_together, operation, together)
                item = _Item(call, prepared, reservation.credits)
                joint = Joint((operation.name, account), item, work_of_all)
            submitted = True
            return await parts.writer.submit(
                work,
                operation.name,
                self._head.ended(reservation, scope),
                account,
                joint,
            )
        except BaseException as failed:
            if not submitted:
                reservation.judge(failed)
                reservation.release()
            raise
        finally:
            if entered.held is not None:
                self._holds.release(entered.held)

    def _handle_together(
        self,
        operation: Write,
        together: Together,
        transaction: Transaction,
        items: Sequence[_Item],
    ) -> list[WriteOutcome]:
        """What each call's own transaction would do, in one. Raises Apart where one repeats the
        key of a write that is done, or of another of them.
        """
        keys, in_use = KeysInUse(), set[str]()
        contexts: list[OperatorWriteContext] = []
        for call, prepared, credits in items:
            ctx = self._head.again(transaction, operation, call, prepared, keys=keys)
            if contexts:
                ctx.share(contexts[0])
            if call.idempotency_key is not None:
                replayed = idempotency.replay(ctx, transaction, operation, call)
                if replayed is not None or call.idempotency_key in in_use:
                    raise Apart
                in_use.add(call.idempotency_key)
            ctx.credits = credits
            contexts.append(ctx)
        replies = [formed(operation, made) for made in together.handler(contexts)]
        if len(replies) != len(contexts):
            raise ValueError(
                f"the handler of several calls of {operation.name} returned {len(replies)} replies "
                f"for {len(contexts)} calls"
            )
        close_each(contexts, operation, replies)
        return [
            WriteOutcome(reply, ctx.due, ctx.metered)
            for ctx, reply in zip(contexts, replies, strict=True)
        ]

    async def of_usage(self, records: Mapping[Tenant, Callable[[WriteContext], None]]) -> None:
        """Run what the usage buffer has for each tenant that is still there, in one transaction."""
        parts, now_ms, seed = self._parts, self._parts.now_ms(), os.urandom(32)

        def run(transaction: Transaction) -> WriteOutcome:
            outcome = WriteOutcome(Reply())
            for (slot, number), record in records.items():
                found = tenants.tenant(transaction, slot, number)
                if found is not None:
                    call = Call("usage.write", slot, now_ms, seed, "usage")
                    ctx = WriteContext(transaction, found[1], call, parts.environment, found[0])
                    record(ctx)
                    outcome.due += ctx.due
                    outcome.metered += ctx.metered
            return outcome

        with tracing.apart():
            await parts.writer.submit(run, "usage", account=USAGE)
