"""A shard as a whole: opened, asked, watched and closed. What becomes of a call: head.py, and then
reads.py, writes.py or flows.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from runtime import tracing
from runtime.api import access_tokens, erasures, jobs, latencies, metering, outbox, tenants
from runtime.api.call import Due
from runtime.api.context import COUNTERS, Environment, WriteContext, no_vocabulary
from runtime.api.operation import Call, Kind, Read, Reply, Write
from runtime.api.plugin import Registry
from runtime.errors import (
    PLUGIN_RAISES,
    ApiError,
    InternalError,
    Moved,
    Unauthenticated,
    Unavailable,
)
from runtime.inference import Models
from runtime.installation import Secrets
from runtime.limits import DEAD_READERS_LOOKED_FOR_SECONDS, SLOTS
from runtime.log_lines import REQUEST_ID
from runtime.loop_stalls import Label, LoopStalls
from runtime.placement import SlotGate
from runtime.settings import Settings
from runtime.shard import idempotency, verification
from runtime.shard.admission import Admission
from runtime.shard.background import Background
from runtime.shard.catching_up import CatchingUp
from runtime.shard.durability import Durability
from runtime.shard.flows import Flows
from runtime.shard.head import Head, Parts
from runtime.shard.holds import Holds
from runtime.shard.job_loop import JobLoop
from runtime.shard.prepared_reads import PreparedReads
from runtime.shard.readers import NoReaders, Readers, own_bytes_max
from runtime.shard.reads import Reads
from runtime.shard.slot_moves import SlotMoves
from runtime.shard.usage_buffer import Tenant, UsageBuffer
from runtime.shard.writer import StorageFailed, Writer
from runtime.shard.writes import Writes
from storage.indexes import forget_tenants, load_kernels
from storage.replication import Restored
from storage.store import (
    Identity,
    KeyShredded,
    Scope,
    Store,
    StoreError,
)

log = logging.getLogger("mneme.shard")

CORE_TABLES = (
    COUNTERS,
    *tenants.TABLES,
    *access_tokens.TABLES,
    *erasures.TABLES,
    *idempotency.TABLES,
    *jobs.TABLES,
    *outbox.TABLES,
    *metering.TABLES,
    *latencies.TABLES,
)
CORE_INDEXES = (jobs.JOB_FIELDS,)
CORE_MIGRATIONS = outbox.MIGRATIONS | idempotency.MIGRATIONS


def open_store(
    directory: Path, environment: Environment, identity: Identity, *, create: bool
) -> Store:
    """The store of a shard, brought up to what is installed."""
    registry = environment.registry
    return Store.open(
        directory,
        registry.tables.values(),
        identity=identity,
        create=create,
        map_bytes=environment.settings.storage.map_bytes_max,
        migrations=CORE_MIGRATIONS
        | {key: step for plugin in registry.plugins for key, step in plugin.migrations.items()},
        rebuild=verification.rebuilding(environment),
        service_key=environment.secrets.service,
        earlier_keys=environment.secrets.earlier_services,
    )


class Shard:
    """One directory, opened by one process. Create it, `await open()`, then `execute`; `await
    close()` at the end.

    parts, reads, jobs, moves  what it is made of, from `open` on
    """

    def __init__(
        self,
        directory: Path,
        registry: Registry,
        settings: Settings,
        models: Models | None,
        identity: Identity,
        secrets: Secrets,
        gate: SlotGate | None = None,
        *,
        admit: Callable[[Store], None] | None = None,
        readers: Readers | None = None,
    ):
        """
        admit    looks at the opened store before anything else does, and raises where it does not
                 go with the models
        readers  processes beside this one that read for it; None: there are none
        """
        self.directory = directory
        self.registry = registry
        self.settings = settings
        self._models = models
        self._embedder = None if models is None else models.embedder
        self.identity = identity
        self._gate = gate or SlotGate()
        self._admit = admit
        self._readers = NoReaders() if readers is None else readers
        self.environment = Environment(
            registry,
            settings,
            secrets,
            registry.outbound(settings),
            emit=outbox.emit,
            enqueue=jobs.enqueue,
            mend=verification.mend,
            owns=self._gate.owns,
            vocabulary_of=no_vocabulary if models is None else models.embedder_of,
        )
        self._admission = Admission(
            settings,
            offer=registry.offer(settings),
            features=registry.features,
            caps=registry.caps(settings),
        )
        self._usage = UsageBuffer(self._write_usage)
        self._stalls = LoopStalls()
        self._calls = self._batches = 0
        self._draining = False
        self._asked = [0] * SLOTS
        self._durability: Durability | None = None
        self.restored: Restored | None = (
            None  # set by whoever restored the directory before it was opened
        )
        self.store: Store

    async def open(self, *, create: bool) -> None:
        """Open or create the store, migrate it, and start the writer and the job loop."""
        self._gate.enter()
        load_kernels()  # else the first search would wait for them
        self.store = open_store(self.directory, self.environment, self.identity, create=create)
        self.store.log.not_before(self._gate.placed_at)
        try:
            if self._admit is not None:
                self._admit(self.store)
            self._durability = await Durability.begin(self.store, self.settings)
        except BaseException:
            self.store.close()
            raise
        self.store.residents.bytes_max = own_bytes_max(self.settings, self._readers.count)
        self._prepared = PreparedReads(self.store, self.environment, self._models)
        self._writer = Writer(self.store, self.registry, self._enqueued, self._readers.feed)
        if self.store.keys is not None:
            self.store.keys.on_changed = self._readers.rekeyed
        self.parts = parts = Parts(
            registry=self.registry,
            environment=self.environment,
            models=self._models,
            store=self.store,
            gate=self._gate,
            admission=self._admission,
            usage=self._usage,
            writer=self._writer,
            durability=self._durability,
            now_ms=self._now_ms,
        )
        holds = Holds()
        self._head = Head(parts, holds)
        self.reads = Reads(parts, self._head, self._prepared, self._readers)
        self._writes = Writes(parts, self._head, holds)
        self._flows = Flows(parts, self._head, holds)
        background = Background(parts, self._head, self._prepared)
        self.jobs = JobLoop(parts, background, self._stalls, self.settings.jobs.at_once)
        self.moves = SlotMoves(parts, self.jobs, self._settle, self._asked, self._forget)
        self.jobs.start(self._gate.owns)
        self._looking = asyncio.create_task(self._look_for_dead_readers())
        self._catching_up = CatchingUp(parts, background)
        self._catching_up.start()
        await self._readers.start(self._forget_dead_readers)

    async def execute_many(
        self, calls: list[Call], early: Callable[[Sequence[Reply | None]], None] | None = None
    ) -> Sequence[Reply | None]:
        """Replies in the order of the calls. early: given those that are there before the others,
        each once, None for the rest; in what is returned they are None then.
        """
        self._batches += 1
        if all(self._is_immediate(call) for call in calls):
            return [
                await self.execute(call) for call in calls
            ]  # none of them waits, so tasks would only cost
        if early is None:
            return list(await asyncio.gather(*(self.execute(call) for call in calls)))
        return await _each_when_it_is_there([self.execute(call) for call in calls], early)

    def _is_immediate(self, call: Call) -> bool:
        operation = self.registry.operations[call.operation]
        return operation.is_immediate and not operation.is_heavy(call)

    async def execute(self, call: Call) -> Reply:
        """Answer one call. Raises StorageFailed only."""
        with tracing.resumed(call.trace, "shard", call.operation, shard=self.identity.shard):
            call.trace = tracing.carried()
            reply = await self._stalls.watch(self._executed(call), Label(call.operation))
        # Whatever it says was the shard's own to say when it was found out.
        reply = reply if self._durability is None else self._durability.let_out(reply)
        self._usage.answered(call, reply)
        return reply

    async def _executed(self, call: Call) -> Reply:
        operation = self.registry.operations[call.operation]
        self._calls += 1
        REQUEST_ID.set(call.request_id)
        try:
            if self._draining:
                raise Unavailable(
                    "The service is shutting down. Retry in a moment with the same Idempotency-Key."
                )
            if operation.fresh_usage:
                await self._usage.flush()
            self._writer.check()
            self._gate.check(call.slot)
            self._asked[call.slot] += 1
            if self._durability is not None:
                self._durability.check(writes=operation.kind is not Kind.READ)
            if call.preflight:
                return self._head.authorise_only(operation, call)
            if isinstance(operation, Read):
                if operation.prepare is None and not operation.is_heavy(call):
                    return self.reads.at_once(operation, call)
                return await self.reads.aside(operation, call)
            if isinstance(operation, Write):
                return await self._acknowledged(await self._writes.run(operation, call))
            return await self._acknowledged(await self._flows.step(operation, call))
        except Moved as moved:
            self.moves.looked_for(call.slot)
            return Reply(moved.status, error=moved.without_stack())
        except ApiError as error:
            return Reply(error.status, error=error.without_stack())
        except KeyShredded:
            error = Unauthenticated("This account was erased.")
            return Reply(error.status, error=error)
        except StoreError as error:
            raise StorageFailed(str(error)) from error
        except (StorageFailed, asyncio.CancelledError):
            raise
        except PLUGIN_RAISES as error:
            log.error("%s failed, request %s", call.operation, call.request_id, exc_info=error)
            return Reply(
                500,
                error=InternalError(
                    "Something failed on our side. The request id finds the cause in the log."
                ),
            )

    async def _acknowledged(self, reply: Reply) -> Reply:
        """The reply, once the commit that it tells of is as durable as the settings promise."""
        if self._durability is not None and reply.sequence:
            with tracing.part("acknowledge", "log"):
                await self._durability.acknowledge(reply.sequence)
        return reply

    async def order(self, step: str, *given: Any) -> Any:
        """Take one step of a slot's move (runtime/shard/slot_moves.py); what it wrote is as durable
        then as an acknowledged write.
        """
        if self._durability is not None:
            self._durability.check(writes=False)
        taken = await self._stalls.watch(self.moves.order(step, *given), Label())
        if self._durability is not None:
            await self._durability.acknowledge(self.store.sequence)
        return taken

    async def until_fenced(self) -> str:
        """Wait until another process owns this shard, for good; -> how that shows. Without an
        object store that does not happen.
        """
        if self._durability is None:
            return await asyncio.get_running_loop().create_future()  # never done
        return await self._durability.until_fenced()

    async def checkpoint(self) -> None:
        """Write derived indexes to disk, so that the next start has less to replay."""
        for index in self.registry.indexes.values():
            await asyncio.to_thread(index.checkpoint, self.store)

    async def drain(self) -> None:
        """Refuse new calls and those that wait for their turn, finish what runs, leave queued jobs
        for the next start.
        """
        self._draining = True
        await self._catching_up.stop()
        await self.moves.close()
        await self.jobs.stop()
        self._prepared.heavy.begin_no_more()
        self._writes.begin_no_more_lengthy()
        while self._writer.depth or self.reads.slow or self.reads.announcing:
            await asyncio.sleep(0.005)
        with contextlib.suppress(StorageFailed):  # what it does not take is lost, as by a kill
            await self._usage.close()
        await self._readers.close()

    async def close(self) -> None:
        """Drain, end the threads, close the store."""
        await self.drain()
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        await asyncio.to_thread(self._writer.close)
        self._prepared.close()
        if self._durability is not None:
            await self._durability.close()
        self.store.close()

    async def _look_for_dead_readers(self) -> None:
        """Backups and verifications read the store from processes of their own, which may be
        killed.
        """
        while True:
            await asyncio.sleep(DEAD_READERS_LOOKED_FOR_SECONDS)
            await self._forget_dead_readers()

    async def _forget_dead_readers(self) -> None:
        try:
            found = await asyncio.to_thread(self.store.environment.forget_dead_readers)
        except StoreError as failed:
            log.warning("the readers of %s cannot be looked at: %s", self.directory, failed)
            return
        if found:
            log.warning("%d readers of %s had been killed", found, self.directory)

    def _forget(self, scopes: Collection[Scope], *, files: bool) -> None:
        """Drop what is in memory of these accounts, here and in readers; `files`: their checkpoints
        too.
        """
        forget_tenants(self.store, self.registry.indexes.values(), scopes, files=files)
        self._readers.forget(scopes)

    async def _settle(self) -> None:
        """Have everything written that was answered before it was."""
        if self.reads.announcing:
            await asyncio.gather(*self.reads.announcing, return_exceptions=True)
        await self._usage.flush()

    async def _write_usage(self, records: Mapping[Tenant, Callable[[WriteContext], None]]) -> None:
        await self._writes.of_usage(records)

    def _enqueued(self, due: list[Due]) -> None:
        self.jobs.add(due)

    def _now_ms(self) -> int:
        return int((time.time() + self.settings.clock.offset_seconds) * 1000)

    async def status(self) -> dict[str, Any]:
        """Figures for health checks and metrics."""
        log_figures = {} if self._durability is None else {"log": self._durability.status()}
        restored = (
            {}
            if self.restored is None
            else {
                "restored": {
                    "sequence": self.restored.sequence,
                    "at_ms": self.restored.at,
                    "alone_at_ms": self.restored.alone_at,
                }
            }
        )
        figures = {
            "shard": self.identity.shard,
            "open": not (
                self._draining or (self._durability is not None and not self._durability.may_answer)
            ),
            "sequence": self.store.sequence,
            "slots": self._gate.figures() | self.moves.figures(),
            "write_queue": self._writer.depth,
            "slow_calls": self.reads.slow,
            "heavy_reads": self._prepared.heavy.depth,
            "jobs_waiting": self.jobs.depth,
            "jobs_oldest_age_ms": self.jobs.oldest_age_ms(),
            "lanes": self.jobs.concurrency_groups(),
            "jobs": self.jobs.attempts(),
            "calls_total": self._calls,
            "batches_total": self._batches,
            "write": self._writer.stats(),
            "loop": self._stalls.figures(),
            "usage_unwritten": self._usage.unwritten,
            "embedder": {} if self._embedder is None else self._embedder.stats(),
            "outbound": self.environment.outbound.stats(),
            "store": self.store.stat(),
            "residents": self.store.residents.stats(),
            "readers": asdict(self._readers.figures()),
        }
        return figures | log_figures | restored


async def _each_when_it_is_there(
    works: Sequence[Coroutine[Any, Any, Reply]],
    early: Callable[[Sequence[Reply | None]], None],
) -> Sequence[Reply | None]:
    """As Shard.execute_many, of calls that wait for different things."""
    tasks = [asyncio.ensure_future(work) for work in works]
    arrived, news, left = asyncio.Event(), list[int](), len(tasks)

    def settle(place: int, task: asyncio.Future[Reply]) -> None:
        news.append(place)
        arrived.set()

    for place, task in enumerate(tasks):
        task.add_done_callback(partial(settle, place))
    try:
        while True:
            await arrived.wait()
            arrived.clear()
            replies: list[Reply | None] = [None] * len(tasks)
            for place in news:
                replies[place] = tasks[place].result()
            left -= len(news)
            news.clear()
            if not left:
                return replies
            early(replies)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        raise
