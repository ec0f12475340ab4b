"""What the job loop needs of its shard: whose a job is, what its functions are given, and the
transaction it ends in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from runtime.api import metering, tenants
from runtime.api.context import Ctx, ReadContext, WriteContext
from runtime.api.operation import Call, Principal, Read, Reply
from runtime.api.steps import JobSteps
from runtime.shard import auth
from runtime.shard.admission import Reservation
from runtime.shard.head import Head, Parts, formed, reading
from runtime.shard.prepared_reads import PreparedReads
from runtime.shard.writer import WriteOutcome
from storage.store import Reader, Scope, Transaction

T = TypeVar("T")


class Background:
    def __init__(self, parts: Parts, head: Head, prepared: PreparedReads):
        self._parts, self._head, self._prepared = parts, head, prepared

    def owner(self, reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
        """Whose a job is: a tenant, or the slot itself (number 0); None when the tenant is gone, or
        its slot has moved away.
        """
        if not self._parts.gate.owns(slot):
            return None
        if number:
            return tenants.tenant(reader, slot, number)
        return tenants.slot_itself(slot, self._parts.environment.secrets)

    def context(
        self,
        reader: Reader,
        scope: Scope,
        principal: Principal,
        call: Call,
        kind: type[ReadContext] = ReadContext,
    ) -> ReadContext:
        """What a job's `load` is given: a context of this kind."""
        return kind(reader, scope, call, self._parts.environment, principal)

    def steps(self, principal: Principal, scope: Scope, call: Call) -> JobSteps:
        """What a job's `prepare` is given to run reads with."""
        on_behalf = _OnBehalf(self._parts, self._prepared, principal, scope, call)
        return JobSteps(call, self._parts.registry.operations, on_behalf)

    async def write(
        self,
        label: str,
        scope: Scope,
        principal: Principal,
        call: Call,
        work: Callable[[WriteContext], None],
        kind: type[WriteContext] = WriteContext,
    ) -> Reply:
        """Do `work` in one transaction, with a context of this kind."""
        parts = self._parts
        if parts.durability is not None:
            parts.durability.check(writes=True)

        def run(transaction: Transaction) -> WriteOutcome:
            if self.owner(transaction, scope.slot, scope.tenant) is None:
                # Closed while the job was at it: nothing comes back to life.
                return WriteOutcome(Reply())
            ctx = kind(transaction, scope, call, parts.environment, principal)
            work(ctx)
            metering.charge(ctx, call.operation.removeprefix("job:"), ctx.credits)
            return WriteOutcome(Reply(), ctx.due, ctx.metered)

        ended = self._head.ended(Reservation(), scope)
        return await parts.writer.submit(run, label, ended, (scope.slot, scope.tenant))


class _OnBehalf:
    """Executes reads as the account a job belongs to (runtime/api/steps.py)."""

    def __init__(
        self, parts: Parts, prepared: PreparedReads, principal: Principal, scope: Scope, call: Call
    ):
        self._parts, self._prepared = parts, prepared
        self._principal, self._scope, self._call = principal, scope, call

    async def execute(self, call: Call) -> Reply:
        operation = self._parts.registry.operations[call.operation]
        if not isinstance(operation, Read) or operation.scope == "public":
            raise ValueError(f"a job runs reads of its account, and {operation.name!r} is none")
        auth.authorise(self._principal, operation, call.body)
        with self._parts.store.snapshot() as snapshot:
            ctx = self._context(reading(operation), snapshot, call)
            is_loaded = self._prepared.load(operation, ctx)
            if operation.prepare is None and not operation.is_heavy(call):
                return formed(operation, operation.handler(ctx, call.body))
        return (await self._prepared.run(operation, ctx, is_loaded=is_loaded)).reply

    async def look(self, work: Callable[[ReadContext], T]) -> T:
        def run() -> T:
            with self._parts.store.snapshot() as snapshot:
                return work(self._context(ReadContext, snapshot, self._call))

        return await asyncio.to_thread(run)

    def _context(self, kind: type[Ctx], reader: Reader, call: Call) -> Ctx:
        environment = self._parts.environment
        return kind(reader, self._scope, call, environment, self._principal)
