"""A shard: one store, one writer, and everything that happens to the tenants whose slots it owns. No Ray inside.

A call passes these stations, and only the write lane ever holds a write transaction:

    credential → scope → ceilings → Idempotency-Key → credits → load (snapshot) → prepare (async, remote work) → handler → commit → reply

Reads run on a snapshot right here on the event loop; reads that had to prepare something (searches) run on a few threads
(runtime/read_pool.py). A known error is a Reply; a fault of the
storage raises StorageFailed, and whoever runs the shard must let the process end and open the directory anew.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from runtime import auth, flow, idempotency, jobs, metering, outbox, verification
from runtime.admission import Admission, Ticket
from runtime.durability import Durability
from runtime.errors import ApiError, InternalError, Moved, RateLimited, Unauthenticated, Unavailable
from runtime.inference import Models
from runtime.job_loop import JobLoop
from runtime.limits import ANNOUNCEMENTS_WAITING_MAX, READ_THREADS_MAX, SLOTS, SLOW_CALLS_MAX
from runtime.operation import COUNTERS, Call, Environment, Idempotency, Kind, Operation, Principal, ReadContext, Reply, WriteContext
from runtime.outbound import Outbound
from runtime.plugin import Registry
from runtime.read_pool import ReadPool
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.slot_gate import SlotGate
from runtime.slot_moves import SlotMoves
from runtime.telemetry import REQUEST_ID
from runtime.usage_buffer import Tenant, UsageBuffer
from runtime.write_lane import Ended, Outcome, StorageFailed, WriteLane
from storage.directory import StoreError
from storage.envelope import KeyShredded
from storage.replay import Restored
from storage.table import Identity, Reader, Scope, Snapshot, Store, Transaction

log = logging.getLogger("mneme.shard")

CORE_TABLES = (COUNTERS, *auth.CORE_TABLES, *idempotency.TABLES, *jobs.TABLES, *outbox.TABLES, *metering.TABLES)
CORE_INDEXES = (jobs.JOB_FIELDS,)


class Shard:
    """One directory, opened by one process. Create it, `await open()`, then `execute`; `await close()` at the end."""

    def __init__(
        self,
        directory: Path,
        registry: Registry,
        settings: Settings,
        models: Models,
        identity: Identity,
        secrets: Secrets,
        gate: SlotGate | None = None,
    ):
        self.directory = directory
        self.registry = registry
        self.settings = settings
        self.models = models
        self.identity = identity
        outbound = Outbound(allow_private_networks=settings.webhooks.allow_private_networks)
        self._gate = gate or SlotGate()
        self.environment = Environment(registry, settings, secrets, outbound, self._gate.owns)
        self._admission = Admission(settings)
        self._usage = UsageBuffer(self._write_usage)
        self._running: dict[flow.Held, bytes] = {}
        self._flows = flow.Holds(self._running)
        self._slow = self._calls = self._batches = 0
        self._announcing: set[asyncio.Task] = set()
        self._draining = False
        self._asked = [0] * SLOTS
        self._durability: Durability | None = None
        self.restored: Restored | None = None  # set by whoever restored the directory before it was opened
        self.store: Store

    async def open(self, *, create: bool) -> None:
        """Open or create the store, migrate it, and start the writer and the job loop."""
        self._gate.enter()
        self.store = Store.open(
            self.directory,
            self.registry.tables.values(),
            identity=self.identity,
            create=create,
            map_bytes=self.settings.storage.map_bytes,
            migrations=outbox.MIGRATIONS | {key: step for plugin in self.registry.plugins for key, step in plugin.migrations.items()},
            rebuild=verification.rebuilding(self.environment),
            service_key=self.environment.secrets.service,
        )
        self.store.log.not_before(self._gate.placed_at)
        try:
            self._durability = await Durability.begin(self.store, self.settings)
        except BaseException:
            self.store.close()
            raise
        self.store.residents.bytes_max = self.settings.memory.resident_bytes_max
        told = [] if self.models is None else [self.models.embedder.give_way, self.models.embedder.meanwhile]
        self._reads = ReadPool(self.store, formed_read, READ_THREADS_MAX, *told)
        self._jobs = JobLoop(
            snapshot=self.store.snapshot,
            tenant=self._owner_of_job,
            read=self._read_context,
            write=self._write_for_job,
            models=self.models,
            now_ms=self._now_ms,
            definitions=self.registry.jobs,
            at_once=self.settings.jobs.at_once,
        )
        self._lane = WriteLane(self.store, self.registry, self._jobs.add)
        self._moves = SlotMoves(
            self.store,
            self.registry,
            self._gate,
            self._jobs,
            self._lane,
            self._settle,
            self._admission.forget,
            self._asked,
            self._durability,
        )
        self._jobs.start(self._gate.owns)

    async def execute_many(self, calls: list[Call]) -> list[Reply]:
        """Replies in the order of the calls. One slow call delays this list, so lanes keep slow calls apart."""
        self._batches += 1
        if all(self.registry.operations[call.operation].is_immediate for call in calls):
            return [await self.execute(call) for call in calls]  # none of them waits, so tasks would only cost
        return list(await asyncio.gather(*(self.execute(call) for call in calls)))

    async def execute(self, call: Call) -> Reply:
        """Answer one call. Raises StorageFailed only."""
        operation = self.registry.operations[call.operation]
        self._calls += 1
        REQUEST_ID.set(call.request_id)
        try:
            if self._draining:
                raise Unavailable("The service is shutting down. Retry in a moment with the same Idempotency-Key.")
            if operation.fresh_usage:
                await self._usage.flush()
            self._gate.check(call.slot)
            self._asked[call.slot] += 1
            if self._durability is not None:
                self._durability.check(writes=operation.kind is not Kind.READ)
            if call.knocks:
                return self._let_in(operation, call)
            if operation.kind is Kind.WRITE:
                return await self._acknowledged(await self._write(operation, call))
            if operation.kind is Kind.FLOW:
                return await self._acknowledged(await self._flow(operation, call))
            if operation.prepare is None:
                return self._read(operation, call)
            return await self._slow_read(operation, call)
        except Moved as moved:
            self._moves.looked_for(call.slot)
            return Reply(moved.status, error=moved)
        except ApiError as error:
            return Reply(error.status, error=error)
        except KeyShredded:
            error = Unauthenticated("This account was erased.")
            return Reply(error.status, error=error)
        except StoreError as error:
            raise StorageFailed(str(error)) from error
        except (StorageFailed, asyncio.CancelledError):
            raise
        except Exception as error:
            log.error("%s failed, request %s", call.operation, call.request_id, exc_info=error)
            return Reply(500, error=InternalError("Something failed on our side. The request id finds the cause in the log."))

    async def order(self, step: str, *given: Any) -> Any:
        """Take one step of a slot's move (runtime/slot_moves.py); what it wrote is as durable then as an acknowledged write."""
        taken = await self._moves.order(step, *given)
        if self._durability is not None:
            await self._durability.acknowledge(self.store.sequence)
        return taken

    async def until_fenced(self) -> str:
        """Wait until another process owns this shard, for good; -> how that shows. Without an object store that does not happen."""
        if self._durability is None:
            await asyncio.Event().wait()
        return await self._durability.until_fenced()

    async def checkpoint(self) -> None:
        """Write derived indexes to disk, so that the next start has less to replay."""
        for index in self.registry.indexes.values():
            write = getattr(index, "checkpoint", None)
            if write is not None:
                await asyncio.to_thread(write, self.store)

    async def drain(self) -> None:
        """Refuse new calls, finish what runs, leave queued jobs for the next start."""
        self._draining = True
        await self._moves.close()
        await self._jobs.stop()
        while self._lane.depth or self._slow or self._announcing:
            await asyncio.sleep(0.005)
        await self._usage.close()

    async def close(self) -> None:
        """Drain, end the threads, close the store."""
        await self.drain()
        await asyncio.to_thread(self._lane.close)
        self._reads.close()
        if self._durability is not None:
            await self._durability.close()
        self.store.close()

    async def status(self) -> dict[str, Any]:
        """Figures for health checks and metrics."""
        log_figures = {} if self._durability is None else {"log": self._durability.status()}
        restored = {} if self.restored is None else {"restored": {"sequence": self.restored.sequence, "at_ms": self.restored.at}}
        figures = {
            "shard": self.identity.shard,
            "open": not (self._draining or (self._durability is not None and self._durability.fenced)),
            "sequence": self.store.sequence,
            "slots": self._gate.figures() | self._moves.figures(),
            "write_queue": self._lane.depth,
            "slow_calls": self._slow,
            "jobs_waiting": self._jobs.depth,
            "jobs_oldest_age_ms": self._jobs.oldest_age_ms(),
            "lanes": self._jobs.lanes(),
            "jobs": self._jobs.attempts(),
            "calls_total": self._calls,
            "batches_total": self._batches,
            "write": self._lane.stats(),
            "usage_unwritten": self._usage.unwritten,
            "embedder": {} if self.models is None else self.models.embedder.stats(),
            "outbound": self.environment.outbound.stats(),
            "store": self.store.stat(),
            "residents": self.store.residents.stats(),
        }
        return figures | log_figures | restored

    def _let_in(self, operation: Operation, call: Call) -> Reply:
        """Whether the call may come in, before its body is read; and as whom."""
        with self.store.snapshot() as snapshot:
            principal, _, ticket = self._admit(snapshot, operation, call)
        ticket.release()
        return Reply(200, {"tenant_id": principal.tenant_id}).encoded()

    # --- reads --------------------------------------------------------------------------------------------------------

    def _read(self, operation: Operation, call: Call) -> Reply:
        with self.store.snapshot() as snapshot:
            principal, scope, ticket = self._admit(snapshot, operation, call)
            self._hold_credits(ticket, principal, snapshot, scope, call)
            ctx = ReadContext(snapshot, scope, call, self.environment, principal)
            try:
                if operation.load is not None:
                    ctx.prepared = operation.load(ctx, call.body)
                reply = formed(operation, operation.handler(ctx, call.body))
            except BaseException:
                ticket.release()
                raise
        self._after_read(ctx)
        self._charge_read(ticket, principal, operation, call)
        return reply

    async def _slow_read(self, operation: Operation, call: Call) -> Reply:
        if self._slow >= SLOW_CALLS_MAX:
            raise Unavailable("Too many searches are waiting. Retry in a moment.")
        self._slow += 1
        ticket = Ticket()
        try:
            with self.store.snapshot() as snapshot:
                principal, scope, ticket = self._admit(snapshot, operation, call)
                self._hold_credits(ticket, principal, snapshot, scope, call)
                loaded, admitted = self._load(snapshot, operation, call, principal, scope), snapshot.sequence
            made: list[ReadContext] = []

            def make(snapshot: Snapshot) -> ReadContext:
                made.append(ReadContext(snapshot, scope, call, self.environment, principal, loaded))
                return made[-1]

            reply = await self._reads.run(operation, (scope.slot, scope.tenant), make, operation.prepare(call, loaded, self.models))
            if operation.complete is not None:
                reply = formed(operation, await operation.complete(call, reply.body, self.models))
            if self.store.sequence != admitted:  # it read after it was admitted, and nobody reads what is erased by then
                with self.store.snapshot() as snapshot:
                    self._principal(snapshot, operation, call)
            self._gate.check(call.slot, admitted=True)  # nor what another shard may have changed by then
        except BaseException as failed:
            ticket.release()
            if isinstance(failed, Exception):
                self._gate.check(call.slot, admitted=True)  # whatever failed may have missed rows that are elsewhere
            raise
        finally:
            self._slow -= 1
        self._after_read(made[-1])
        self._charge_read(ticket, principal, operation, call)
        return reply

    def _charge_read(self, ticket: Ticket, principal: Principal | None, operation: Operation, call: Call) -> None:
        """A read that succeeded costs what it held; the charge is written with the next second's usage."""
        if ticket.credits:
            self._usage.charge(principal, operation.name, call, ticket.credits)
            ticket.release(used=True)

    def _after_read(self, read: ReadContext) -> None:
        """What a read leaves behind once its reply is formed: events, and notes of what it touched."""
        self._announce(read)
        if read.tallied:
            self._usage.tally(read.principal, read.tallied, read.call.now_ms)

    def _announce(self, read: ReadContext) -> None:
        """Have the events of a read written, once its reply is on its way. Under overload they are dropped, never the reply."""
        if not read.announced or len(self._announcing) >= ANNOUNCEMENTS_WAITING_MAX:
            return
        announced = [(event, data(), resource_id) for event, data, resource_id in read.announced]

        def work(transaction: Transaction) -> Outcome:
            found = auth.tenant(transaction, read.scope.slot, read.scope.tenant)
            if found is None:
                return Outcome(Reply())  # the account was erased meanwhile
            ctx = WriteContext(transaction, read.scope, read.call, self.environment, found[0])
            for event, data, resource_id in announced:
                ctx.emit(event, data, resource_id)
            return Outcome(Reply(), ctx.due)

        task = asyncio.get_running_loop().create_task(self._lane.submit(work, f"announce {read.call.operation}"))
        self._announcing.add(task)
        task.add_done_callback(self._announced)

    def _announced(self, task: asyncio.Task) -> None:
        self._announcing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an event of a read could not be written", exc_info=task.exception())

    # --- writes -------------------------------------------------------------------------------------------------------

    def _replayed(self, ctx: ReadContext, operation: Operation, call: Call, ticket: Ticket) -> Reply | None:
        """What the first request with the call's Idempotency-Key was answered. It costs nothing, but it was a request."""
        replayed = idempotency.replay(ctx, operation, call)
        if replayed is None:
            return None
        if ticket.credits:
            self._count_request(ctx.principal, call)
        reply = formed(operation, replayed)
        reply.sequence = ctx.reader.sequence
        return reply

    async def _write(self, operation: Operation, call: Call) -> Reply:
        with self.store.snapshot() as snapshot:
            principal, scope, ticket = self._admit(snapshot, operation, call)
            ctx = ReadContext(snapshot, scope, call, self.environment, principal)
            replayed = self._replayed(ctx, operation, call, ticket)
            if replayed is not None:
                return replayed
            held = self._hold(ctx, operation, call)
            try:
                self._hold_credits(ticket, principal, snapshot, scope, call)
                loaded = self._load(snapshot, operation, call, principal, scope)
            except BaseException:
                self._running.pop(held, None)
                ticket.release()
                raise
        submitted = False
        try:
            prepared = loaded
            if operation.prepare is not None:
                prepared = await operation.prepare(call, loaded, self.models)
            work = self._transaction_of(operation, call, prepared, ticket.credits)
            submitted = True
            return await self._lane.submit(work, operation.name, self._ended(ticket, scope))
        except BaseException:
            if not submitted:
                ticket.release()
            raise
        finally:
            self._running.pop(held, None)

    async def _acknowledged(self, reply: Reply) -> Reply:
        """The reply, once the commit that it tells of is as durable as the settings promise."""
        if self._durability is not None and reply.sequence:
            await self._durability.acknowledge(reply.sequence)
        return reply

    def _transaction_of(self, operation: Operation, call: Call, prepared: Any, credits: int) -> Callable[[Transaction], Outcome]:
        """The call as work for the write lane. Credential and key are looked at again: both may have changed meanwhile."""

        def work(transaction: Transaction) -> Outcome:
            self._gate.check(call.slot, admitted=True)
            principal, scope = self._principal(transaction, operation, call)
            ctx = WriteContext(transaction, scope, call, self.environment, principal, prepared)
            replayed = idempotency.replay(ctx, operation, call)
            if replayed is not None:
                return Outcome(formed(operation, replayed))
            ctx.credits = credits
            reply = formed(operation, operation.handler(ctx, call.body))
            idempotency.remember(ctx, operation, call, reply)
            metering.charge(ctx, operation.name, ctx.credits)
            return Outcome(reply, ctx.due, ctx.metered)

        return work

    def _hold(self, ctx: ReadContext, operation: Operation, call: Call) -> flow.Held | None:
        """Mark a cached operation's key as running, so that its twin is told to wait; canonical twins queue up instead."""
        if call.idempotency_key is None or operation.idempotency is not Idempotency.CACHED:
            return None
        held = _held(ctx, call)
        running = self._running.get(held)
        if running is not None:
            raise idempotency.still_running() if running == call.fingerprint else idempotency.different_request()
        self._running[held] = call.fingerprint
        return held

    async def _write_for_job(
        self, label: str, scope: Scope, principal: Principal, call: Call, work: Callable[[WriteContext], None]
    ) -> Reply:
        if self._durability is not None:
            self._durability.check(writes=True)

        def run(transaction: Transaction) -> Outcome:
            if self._owner_of_job(transaction, scope.slot, scope.tenant) is None:
                return Outcome(Reply())  # closed while the job was at it: nothing comes back to life
            ctx = WriteContext(transaction, scope, call, self.environment, principal)
            work(ctx)
            metering.charge(ctx, call.operation.removeprefix("job:"), ctx.credits)
            return Outcome(Reply(), ctx.due, ctx.metered)

        return await self._lane.submit(run, label, self._ended(Ticket(), scope))

    async def _write_usage(self, records: dict[Tenant, Callable[[WriteContext], None]]) -> None:
        """Run what the usage buffer has for each tenant that is still there, in one transaction."""
        now_ms, seed = self._now_ms(), os.urandom(32)

        def run(transaction: Transaction) -> Outcome:
            outcome = Outcome(Reply())
            for (slot, number), record in records.items():
                found = auth.tenant(transaction, slot, number)
                if found is not None:
                    call = Call(operation="usage.write", slot=slot, now_ms=now_ms, seed=seed, request_id="usage")
                    ctx = WriteContext(transaction, found[1], call, self.environment, found[0])
                    record(ctx)
                    outcome.due += ctx.due
                    outcome.metered += ctx.metered
            return outcome

        await self._lane.submit(run, "usage")

    # --- flows --------------------------------------------------------------------------------------------------------

    async def _flow(self, operation: Operation, call: Call) -> Reply:
        """One step of a flow (runtime/flow.py). Credits are reserved where it begins, and settled or released where it ends."""
        if call.stage == flow.ABORT:
            self._flows.give_back(call.seed)
            self._admission.resume(call.seed).release()
            return Reply()
        if call.stage != flow.END:
            return self._begin_flow(operation, call)
        ticket = self._admission.resume(call.seed)
        if operation.finish is None and call.idempotency_key is None and not _credits(operation, call):
            self._flows.give_back(call.seed)
            return Reply()  # nothing to write down
        try:
            with self.store.snapshot() as snapshot:
                _, scope = self._principal(snapshot, operation, call)
            return await self._lane.submit(self._end_of_flow(operation, call), operation.name, self._ended(ticket, scope))
        except ApiError:
            ticket.release()
            raise
        finally:
            self._flows.give_back(call.seed)

    def _begin_flow(self, operation: Operation, call: Call) -> Reply:
        with self.store.snapshot() as snapshot:
            principal, scope, ticket = self._admit(snapshot, operation, call)
            ctx = ReadContext(snapshot, scope, call, self.environment, principal)
            replayed = self._replayed(ctx, operation, call, ticket)
            if replayed is not None:
                return replayed
            loaded = None if operation.load is None else operation.load(ctx, call.body)
            self._hold_credits(ticket, principal, snapshot, scope, call)
            try:
                if call.idempotency_key is not None and operation.idempotency is Idempotency.CACHED:
                    self._flows.take(_held(ctx, call), call.fingerprint, call.seed)
            except BaseException:
                ticket.release()
                raise
            self._admission.park(call.seed, ticket)
            return Reply(flow.BEGUN, orjson.dumps(loaded))

    def _end_of_flow(self, operation: Operation, call: Call) -> Callable[[Transaction], Outcome]:
        def work(transaction: Transaction) -> Outcome:
            self._gate.check(call.slot, admitted=True)
            principal, scope = self._principal(transaction, operation, call)
            ctx = WriteContext(transaction, scope, call, self.environment, principal, call.reply.outcome)
            if call.idempotency_key is not None:
                taken_over = not self._flows.may_end(_held(ctx, call), call.seed)
                if taken_over or idempotency.replay(ctx, operation, call) is not None:
                    return Outcome(Reply())
            ctx.credits = _credits(operation, call)
            if operation.finish is not None:
                operation.finish(ctx, call.body)
            idempotency.remember(ctx, operation, call, call.reply)
            metering.charge(ctx, operation.name, ctx.credits)
            return Outcome(Reply(), ctx.due, ctx.metered)

        return work

    # --- shared -------------------------------------------------------------------------------------------------------

    def _admit(self, reader: Reader, operation: Operation, call: Call) -> tuple[Principal | None, Scope, Ticket]:
        """Credential, scope of the operation, ceilings; then an error the gateway had already found.

        Part of a flow that was admitted as a whole passes without being counted, and costs nothing.
        """
        principal, scope = self._principal(reader, operation, call)
        if principal is not None:
            auth.authorise(principal, operation, call.body)
        if call.flow:
            return principal, scope, Ticket()
        try:
            ticket = self._admission.admit(principal, operation, call)
        except RateLimited:
            self._usage.refused(principal, call.now_ms)
            raise
        if not ticket.credits:
            self._count_request(principal, call)
        if call.rejected is not None:
            raise call.rejected
        return principal, scope, ticket

    def _count_request(self, principal: Principal | None, call: Call) -> None:
        if not call.admitted:  # else it was counted when it knocked
            self._usage.request(principal, call.operation, call.now_ms)

    def _hold_credits(self, ticket: Ticket, principal: Principal | None, reader: Reader, scope: Scope, call: Call) -> None:
        """The month's part of admission; it comes after a repeated key was answered, since a replay costs nothing."""
        if not ticket.credits:
            return
        self._usage.check_room()
        try:
            self._admission.hold(ticket, principal, reader, scope, call.now_ms)
        except RateLimited:
            self._usage.refused(principal, call.now_ms)
            raise
        self._count_request(principal, call)

    def _ended(self, ticket: Ticket, scope: Scope) -> Ended:
        """What the write lane calls when a call's transaction is over: what it held becomes what it used."""

        def ended(outcome: Outcome | None) -> None:
            ticket.release()
            if outcome is not None and outcome.metered:
                self._admission.metered(scope, outcome.metered, outcome.sequence)

        return ended

    def _principal(self, reader: Reader, operation: Operation, call: Call) -> tuple[Principal | None, Scope]:
        if operation.internal:
            auth.authorise_operator(call.credential)
        if operation.scope == "public" or operation.internal:
            # No tenant yet: the operation acts on the slot, under a key of the service.
            return None, auth.slot_itself(call.slot, self.environment.secrets)[1]
        return auth.resolve(reader, call.slot, call.credential, call.now_ms, self.environment.secrets)

    def _load(self, reader: Reader, operation: Operation, call: Call, principal: Principal | None, scope: Scope) -> Any:
        if operation.load is None:
            return None
        return operation.load(ReadContext(reader, scope, call, self.environment, principal), call.body)

    def _owner_of_job(self, reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
        """Whose a job is: a tenant, or the slot itself (number 0); None when the tenant is gone, or its slot has moved away."""
        if not self._gate.owns(slot):
            return None
        return auth.tenant(reader, slot, number) if number else auth.slot_itself(slot, self.environment.secrets)

    async def _settle(self) -> None:
        """Have everything written that was answered before it was."""
        if self._announcing:
            await asyncio.gather(*self._announcing, return_exceptions=True)
        await self._usage.flush()

    def _read_context(self, reader: Reader, scope: Scope, principal: Principal, call: Call) -> ReadContext:
        return ReadContext(reader, scope, call, self.environment, principal)

    def _now_ms(self) -> int:
        return int((time.time() + self.settings.clock.offset_seconds) * 1000)


def formed_read(operation: Operation, result: Any) -> Reply:
    """What the handler of a prepared read returned: a Reply, encoded unless another step is to complete it."""
    return formed(operation, result) if operation.complete is None else Reply(operation.statuses[0], result)


def _held(ctx: ReadContext, call: Call) -> flow.Held:
    return ctx.scope.slot, ctx.scope.tenant, idempotency.key_hmac(ctx, call.idempotency_key)


def _credits(operation: Operation, call: Call) -> int:
    return operation.credits(call.body) if callable(operation.credits) else operation.credits


def formed(operation: Operation, result: Any) -> Reply:
    """What a handler returned -> an encoded Reply."""
    if isinstance(result, Reply):
        return result.encoded()
    return Reply(operation.statuses[0], result).encoded()
