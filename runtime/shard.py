"""A shard: one store, one writer, and everything that happens to the tenants whose slots it owns. No Ray inside.

A call passes these stations, and only the write lane ever holds a write transaction:

    credential → scope → ceilings → Idempotency-Key → load (snapshot) → prepare (async, remote work) → handler → commit → reply

Reads run on a snapshot right here on the event loop; reads that had to prepare something (searches) run on a few threads
(runtime/read_pool.py). A known error is a Reply; a fault of the
storage raises StorageFailed, and whoever runs the shard must let the process end and open the directory anew.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime import auth, idempotency, jobs, outbox
from runtime.admission import Admission
from runtime.errors import ApiError, InternalError, Unavailable
from runtime.inference import Models
from runtime.job_loop import JobLoop
from runtime.limits import ANNOUNCEMENTS_WAITING_MAX, READ_THREADS_MAX, SLOW_CALLS_MAX
from runtime.operation import COUNTERS, Call, Environment, Idempotency, Kind, Operation, Principal, ReadContext, Reply, WriteContext
from runtime.outbound import Outbound
from runtime.plugin import Registry
from runtime.read_pool import ReadPool
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.write_lane import Outcome, StorageFailed, WriteLane
from storage.directory import StoreError
from storage.table import Identity, Reader, Scope, Snapshot, Store, Transaction

log = logging.getLogger("mneme.shard")

CORE_TABLES = (COUNTERS, *auth.CORE_TABLES, *idempotency.TABLES, *jobs.TABLES, *outbox.TABLES)
CORE_INDEXES = (jobs.JOB_FIELDS,)


class Shard:
    """One directory, opened by one process. Create it, `await open()`, then `execute`; `await close()` at the end."""

    def __init__(self, directory: Path, registry: Registry, settings: Settings, models: Models, identity: Identity, secrets: Secrets):
        self.directory = directory
        self.registry = registry
        self.settings = settings
        self.models = models
        self.identity = identity
        outbound = Outbound(allow_private_networks=settings.webhooks.allow_private_networks)
        self.environment = Environment(registry, settings, secrets, outbound)
        self._admission = Admission(settings)
        self._running: dict[tuple[int, int, bytes], bytes] = {}
        self._slow = 0
        self._announcing: set[asyncio.Task] = set()
        self._draining = False
        self.store: Store

    async def open(self, *, create: bool) -> None:
        """Open or create the store, migrate it, and start the writer and the job loop."""
        self.store = Store.open(
            self.directory,
            self.registry.tables.values(),
            identity=self.identity,
            create=create,
            map_bytes=self.settings.storage.map_bytes,
            migrations=outbox.MIGRATIONS | {key: step for plugin in self.registry.plugins for key, step in plugin.migrations.items()},
        )
        self.store.residents.bytes_max = self.settings.memory.resident_bytes_max
        self._reads = ReadPool(self.store, formed_read, READ_THREADS_MAX)
        self._jobs = JobLoop(
            snapshot=self.store.snapshot,
            tenant=lambda snapshot, slot, number: auth.tenant(snapshot, slot, number),
            read=self._read_context,
            write=self._write_for_job,
            models=self.models,
            now_ms=self._now_ms,
            definitions=self.registry.jobs,
            at_once=self.settings.jobs.at_once,
        )
        self._lane = WriteLane(self.store, self.registry, self._jobs.add)
        self._jobs.start()

    async def execute_many(self, calls: list[Call]) -> list[Reply]:
        """Replies in the order of the calls. One slow call delays this list, so lanes keep slow calls apart."""
        if len(calls) == 1:
            return [await self.execute(calls[0])]
        return list(await asyncio.gather(*(self.execute(call) for call in calls)))

    async def execute(self, call: Call) -> Reply:
        """Answer one call. Raises StorageFailed only."""
        operation = self.registry.operations[call.operation]
        try:
            if self._draining:
                raise Unavailable("The service is shutting down. Retry in a moment with the same Idempotency-Key.")
            if operation.kind is Kind.WRITE:
                return await self._write(operation, call)
            if operation.prepare is None:
                return self._read(operation, call)
            return await self._slow_read(operation, call)
        except ApiError as error:
            return Reply(error.status, error=error)
        except StoreError as error:
            raise StorageFailed(str(error)) from error
        except (StorageFailed, asyncio.CancelledError):
            raise
        except Exception as error:
            log.error("%s failed, request %s", call.operation, call.request_id, exc_info=error)
            return Reply(500, error=InternalError("Something failed on our side. The request id finds the cause in the log."))

    async def checkpoint(self) -> None:
        """Write derived indexes to disk, so that the next start has less to replay."""
        for index in self.registry.indexes.values():
            write = getattr(index, "checkpoint", None)
            if write is not None:
                await asyncio.to_thread(write, self.store)

    async def drain(self) -> None:
        """Refuse new calls, finish what runs, leave queued jobs for the next start."""
        self._draining = True
        await self._jobs.stop()
        while self._lane.depth or self._slow or self._announcing:
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        """Drain, end the threads, close the store."""
        await self.drain()
        await asyncio.to_thread(self._lane.close)
        self._reads.close()
        self.store.close()

    async def status(self) -> dict[str, Any]:
        """Figures for health checks and metrics."""
        return {
            "shard": self.identity.shard,
            "open": not self._draining,
            "sequence": self.store.sequence,
            "write_queue": self._lane.depth,
            "slow_calls": self._slow,
            "jobs_waiting": self._jobs.depth,
            "jobs_oldest_age_ms": self._jobs.oldest_age_ms(),
            "lanes": self._jobs.lanes(),
            "outbound": self.environment.outbound.stats(),
            "store": self.store.stat(),
            "residents": self.store.residents.stats(),
        }

    # --- reads --------------------------------------------------------------------------------------------------------

    def _read(self, operation: Operation, call: Call) -> Reply:
        with self.store.snapshot() as snapshot:
            principal, scope = self._admit(snapshot, operation, call)
            ctx = ReadContext(snapshot, scope, call, self.environment, principal)
            if operation.load is not None:
                ctx.prepared = operation.load(ctx, call.body)
            reply = formed(operation, operation.handler(ctx, call.body))
        self._announce(ctx)
        return reply

    async def _slow_read(self, operation: Operation, call: Call) -> Reply:
        if self._slow >= SLOW_CALLS_MAX:
            raise Unavailable("Too many searches are waiting. Retry in a moment.")
        self._slow += 1
        try:
            with self.store.snapshot() as snapshot:
                admitted = self._admit(snapshot, operation, call)
                loaded = self._load(snapshot, operation, call, *admitted)
            prepared = await operation.prepare(call, loaded, self.models)
            principal, scope = admitted
            made: list[ReadContext] = []

            def make(snapshot: Snapshot) -> ReadContext:
                made.append(ReadContext(snapshot, scope, call, self.environment, principal, prepared))
                return made[-1]

            reply = await self._reads.run(operation, (scope.slot, scope.tenant), make)
            if operation.complete is not None:
                reply = formed(operation, await operation.complete(call, reply.body, self.models))
            self._announce(made[-1])
            return reply
        finally:
            self._slow -= 1

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

    async def _write(self, operation: Operation, call: Call) -> Reply:
        with self.store.snapshot() as snapshot:
            principal, scope = self._admit(snapshot, operation, call)
            ctx = ReadContext(snapshot, scope, call, self.environment, principal)
            replayed = idempotency.replay(ctx, operation, call)
            if replayed is not None:
                return formed(operation, replayed)
            held = self._hold(ctx, operation, call)
            try:
                loaded = self._load(snapshot, operation, call, principal, scope)
            except BaseException:
                self._running.pop(held, None)
                raise
        try:
            prepared = loaded
            if operation.prepare is not None:
                prepared = await operation.prepare(call, loaded, self.models)
            work = self._transaction_of(operation, call, prepared)
            return await self._lane.submit(work, operation.name)
        finally:
            self._running.pop(held, None)

    def _transaction_of(self, operation: Operation, call: Call, prepared: Any) -> Callable[[Transaction], Outcome]:
        """The call as work for the write lane. Credential and key are looked at again: both may have changed meanwhile."""

        def work(transaction: Transaction) -> Outcome:
            principal, scope = self._principal(transaction, operation, call)
            ctx = WriteContext(transaction, scope, call, self.environment, principal, prepared)
            replayed = idempotency.replay(ctx, operation, call)
            if replayed is not None:
                return Outcome(formed(operation, replayed))
            reply = formed(operation, operation.handler(ctx, call.body))
            idempotency.remember(ctx, operation, call, reply)
            return Outcome(reply, ctx.due)

        return work

    def _hold(self, ctx: ReadContext, operation: Operation, call: Call) -> tuple[int, int, bytes] | None:
        """Mark a cached operation's key as running, so that its twin is told to wait; canonical twins queue up instead."""
        if call.idempotency_key is None or operation.idempotency is not Idempotency.CACHED:
            return None
        held = (ctx.scope.slot, ctx.scope.tenant, idempotency.key_hmac(ctx, call.idempotency_key))
        running = self._running.get(held)
        if running is not None:
            raise idempotency.still_running() if running == call.fingerprint else idempotency.different_request()
        self._running[held] = call.fingerprint
        return held

    async def _write_for_job(
        self, label: str, scope: Scope, principal: Principal, call: Call, work: Callable[[WriteContext], None]
    ) -> Reply:
        def run(transaction: Transaction) -> Outcome:
            ctx = WriteContext(transaction, scope, call, self.environment, principal)
            work(ctx)
            return Outcome(Reply(), ctx.due)

        return await self._lane.submit(run, label)

    # --- shared -------------------------------------------------------------------------------------------------------

    def _admit(self, reader: Reader, operation: Operation, call: Call) -> tuple[Principal | None, Scope]:
        """Credential, scope of the operation, ceilings; then an error the gateway had already found."""
        principal, scope = self._principal(reader, operation, call)
        if principal is not None:
            auth.authorise(principal, operation)
        self._admission.admit(principal, operation, call)
        if call.rejected is not None:
            raise call.rejected
        return principal, scope

    def _principal(self, reader: Reader, operation: Operation, call: Call) -> tuple[Principal | None, Scope]:
        if operation.internal:
            auth.authorise_operator(call.credential)
        if operation.scope == "public" or operation.internal:
            # No tenant yet: the operation acts on the slot, under a key of the service.
            return None, Scope(call.slot, 0, hmac.digest(self.environment.secrets.service, b"slot", "sha256"))
        return auth.resolve(reader, call.slot, call.credential, call.now_ms, self.environment.secrets)

    def _load(self, reader: Reader, operation: Operation, call: Call, principal: Principal | None, scope: Scope) -> Any:
        if operation.load is None:
            return None
        return operation.load(ReadContext(reader, scope, call, self.environment, principal), call.body)

    def _read_context(self, reader: Reader, scope: Scope, principal: Principal, call: Call) -> ReadContext:
        return ReadContext(reader, scope, call, self.environment, principal)

    def _now_ms(self) -> int:
        return int((time.time() + self.settings.clock.offset_seconds) * 1000)


def formed_read(operation: Operation, result: Any) -> Reply:
    """What the handler of a prepared read returned: a Reply, encoded unless another step is to complete it."""
    return formed(operation, result) if operation.complete is None else Reply(operation.statuses[0], result)


def formed(operation: Operation, result: Any) -> Reply:
    """What a handler returned -> an encoded Reply."""
    if isinstance(result, Reply):
        return result.encoded()
    return Reply(operation.statuses[0], result).encoded()
