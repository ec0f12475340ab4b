"""What an acknowledgement of this shard means, and who may give one: the commit log in object
storage, seen from the shard.

    local        acknowledged when it is on this machine's disk; the log follows within moments, and
                 `log_unshipped_seconds` says how far behind it is
    replicated   acknowledged when the segment that holds it is in object storage

A slot that moves asks for more, in both modes: what came with it is in object storage before it
changes its owner (`secured`), and so is the placement that says so before anything is acknowledged
in its new place, or erased in its old one (`placed`).

The shard asks twice: `check` before it does anything, `acknowledge` before it says that something
was done, to its caller or, in a job, to anybody outside (runtime/shard/job_loop.py). A write that
is not stored in time is answered with 503: it is on this disk, it will be stored when the object
store is back, and only a repeat under its Idempotency-Key will tell, which waits in its turn. While
the object store is known to be away nothing new is begun.

In both modes it acknowledges writes and answers reads under a lease only
(storage/replication/lease.py): a shard that has not heard for `cluster.lease_seconds` that it is
still its own answers 503, whether it was stopped or is cut off from the object store, and goes on
when it hears it. The lease is looked at once more when a reply is ready, so what it says was nobody
else's to change. With `durability.outage_writes_may_be_lost` a `local` shard goes on while the
object store does not answer; somebody who takes it over then has none of those writes.

A fenced shard (storage/replication/shipper.py) raises StorageFailed from both, so its process ends;
opened again, its directory is refused.

Reads see what this disk has, which may be a little more than what was acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
import os
import socket
import threading
import time
from typing import Any

from runtime.api.operation import Reply
from runtime.errors import Unavailable
from runtime.installation import copies_of, shard_place
from runtime.limits import (
    BACKLOG_LOOKED_AT_SECONDS,
    BLOB_COPIES_PAUSE_SECONDS,
    LOG_BEHIND_RETRY_SECONDS,
)
from runtime.placement import LayoutCopies
from runtime.settings import Settings
from runtime.shard.writer import StorageFailed
from storage.blobs import BlobCopies
from storage.replication import (
    Lease,
    LogEndKeeper,
    LogShipper,
    ObjectStore,
    ObjectStoreFailed,
    SnapshotTaker,
    backoff,
    refuse_superseded,
)
from storage.store import Store

log = logging.getLogger("mneme.log")


class Durability:
    """The log of one shard with an object store. `await begin(...)`, and `await close()` while the
    store is still open.

    wait_seconds  how long a write waits for the object store
    waiting       (commit, number, who waits until it is stored), a heap
    shipper       what sends the log there
    lease         for how long this shard may answer
    """

    def __init__(self, store: Store, settings: Settings):
        self._store = store
        self._replicated = settings.durability.mode == "replicated"
        self.wait_seconds = settings.durability.wait_seconds_max
        self._backlog_bytes = settings.object_store.backlog_bytes_max
        assert settings.object_store.url is not None  # `begin` asks
        is_new = not store.log.state().number
        root = ObjectStore(settings.object_store.url, make=is_new)
        objects = root.below(shard_place(store.identity.cluster_id, store.identity.shard))
        self.shipper = LogShipper(
            store,
            objects,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            replicated=self._replicated,
            interval_seconds=settings.object_store.ship_interval_ms / 1000,
            backlog_bytes=self._backlog_bytes,
            lease_seconds=settings.cluster.lease_seconds,
            on_stored=self._on_stored,
            on_fenced=self._on_fenced,
        )
        self._log_end = LogEndKeeper(objects, self.shipper)
        self._may_lose = settings.durability.outage_writes_may_be_lost and not self._replicated
        self.lease = Lease(
            settings.cluster.lease_seconds, self.shipper.verify, outlasts=self._may_lose
        )
        self._renewing: asyncio.Task[bool] | None = None
        self._layout = LayoutCopies(
            root.below(store.identity.cluster_id), settings, self.shipper.verify
        )
        self._snapshots = SnapshotTaker(
            store,
            objects,
            self.shipper,
            interval_seconds=settings.object_store.snapshot_interval_seconds,
            log_bytes=settings.object_store.snapshot_log_bytes,
        )
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._changing = threading.Lock()
        self._stored = 0
        self._room = True
        self._copies_due = 0
        self._fenced, self._why = asyncio.Event(), ""
        self._closing = threading.Event()
        self._copier = threading.Thread(
            target=self._copy_blobs,
            args=(copies_of(settings),),
            name="mneme-blob-copies",
            daemon=True,
        )
        self._loop: asyncio.AbstractEventLoop
        self._watch: asyncio.Task[None]

    @classmethod
    async def begin(cls, store: Store, settings: Settings) -> Durability | None:
        """Take the shard and ship its log; None where no object store is set, and then nothing is
        recorded.

        Raises Superseded when another owner took the shard since, which the directory may know
        without asking, ObjectStoreFailed when that cannot be found out.
        """
        if settings.object_store.url is None:
            refuse_superseded(store)
            if store.log.state().number:
                log.warning(
                    "%s was copied to object storage until now, and is served without: "
                    "object_store.url is not set. If another process has taken over from there, "
                    "end this one: what it acknowledges is in no other copy.",
                    store.directory,
                )
            store.log.clear()
            return None
        durability = cls(store, settings)
        durability._loop = asyncio.get_running_loop()
        await asyncio.to_thread(durability.shipper.open)
        with (
            contextlib.nullcontext()
            if durability._replicated
            else contextlib.suppress(ObjectStoreFailed)
        ):  # it is tried again soon
            await asyncio.to_thread(durability._layout.follow)
        await asyncio.to_thread(durability._log_end.start)
        durability.shipper.start()
        durability._snapshots.start()
        durability._copier.start()
        await asyncio.to_thread(durability.lease.start)
        durability._watch = asyncio.create_task(durability._watch_backlog())
        return durability

    async def close(self) -> None:
        """Ship what is left, as far as that goes soon."""
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        self._closing.set()
        await asyncio.to_thread(self._copier.join)
        await asyncio.to_thread(self._snapshots.close)
        await asyncio.to_thread(self.lease.close)
        await asyncio.to_thread(self.shipper.close)
        await asyncio.to_thread(self._log_end.close)

    # --- what the shard asks ----------------------------------------------------------------------

    def check(self, writes: bool) -> None:
        """Raise StorageFailed when this shard is another owner's by now, Unavailable when it may
        be, or when a write could not be acknowledged anyway.
        """
        self._check_lease("nothing was done")
        if not (writes and self._replicated):
            return
        failing = self.shipper.failing_since
        if not self._room or (
            failing is not None and time.monotonic() - failing > self.wait_seconds
        ):
            raise Unavailable(
                "The object store that has to hold every write does not answer; nothing was "
                "written. Retry in a moment.",
                retry_after_seconds=LOG_BEHIND_RETRY_SECONDS,
            )

    def let_out(self, reply: Reply) -> Reply:
        """A reply that is ready, or a refusal where another owner may have answered by now. Raises
        StorageFailed where one has.
        """
        try:
            self._check_lease("its answer may be old")
        except Unavailable as refused:
            return Reply(refused.status, error=refused.without_stack())
        return reply

    async def acknowledge(self, sequence: int) -> None:
        """Return when the commit may be acknowledged. Raises Unavailable when that takes too long,
        StorageFailed when it may never be.
        """
        if self._replicated:
            await self._until_stored(sequence)
        if not self.lease.is_valid:
            await self._until_leased()
        if self.fenced:
            raise StorageFailed("another process owns this shard by now")

    @property
    def may_answer(self) -> bool:
        """Whether this shard is its own as far as anybody can know."""
        return not self.fenced and self.lease.is_valid

    def _check_lease(self, so: str) -> None:
        if self.fenced:
            raise StorageFailed("another process owns this shard by now")
        if not self.lease.is_valid:
            raise Unavailable(
                "The object store does not say whether this shard was taken over meanwhile; "
                f"{so}. Retry in a moment.",
                retry_after_seconds=LOG_BEHIND_RETRY_SECONDS,
            )

    async def _until_leased(self) -> None:
        """Wait until this is known to be the owner, or to be none. Raises Unavailable when that
        takes too long.
        """
        deadline = time.monotonic() + self.wait_seconds
        for wait in backoff():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._loop.time() + deadline - time.monotonic()):
                    await self._renewed()
            if self.fenced or self.lease.is_valid:
                return
            if time.monotonic() + wait > deadline:
                break
            await asyncio.sleep(wait)
        raise Unavailable(
            "The write is on disk, but the object store does not say whether this shard was taken "
            "over meanwhile. Retry with the same Idempotency-Key.",
            retry_after_seconds=LOG_BEHIND_RETRY_SECONDS,
        )

    async def _renewed(self) -> None:
        """Ask once, for all who want to know, whether this is still the owner."""
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(asyncio.to_thread(self.lease.renew))
        await asyncio.shield(self._renewing)

    @property
    def fenced(self) -> bool:
        """Whether another process owns the shard by now."""
        return self.shipper.fenced

    async def until_fenced(self) -> str:
        """Wait until another process owns the shard; -> how that shows."""
        await self._fenced.wait()
        return self._why

    async def secured(self) -> int:
        """Return when everything that is committed now is in object storage; -> the time of the
        last commit. Raises as acknowledge does.
        """
        self.shipper.hurry()
        await self._until_stored(self._store.sequence)
        if self.fenced:
            raise StorageFailed("another process owns this shard by now")
        return self._store.log.now()

    async def placed(self, *, needed: bool | None = None) -> None:
        """Have the placement of the data directory in object storage. Raises Unavailable when that
        fails and is needed.

        needed: by default in `replicated` mode, where nothing is acknowledged that would not be
        found again
        """
        deadline = time.monotonic() + self.wait_seconds
        for wait in backoff():
            try:
                return await asyncio.to_thread(self._layout.follow)
            except ObjectStoreFailed as failed:
                if not (self._replicated if needed is None else needed):
                    return
                if time.monotonic() + wait > deadline:
                    raise Unavailable(
                        f"The placement of slots could not be stored: {failed}"
                    ) from failed
            await asyncio.sleep(wait)

    async def _until_stored(self, sequence: int) -> None:
        with self._changing:
            if self._stored >= sequence:
                return
            future: asyncio.Future[None] = self._loop.create_future()
            heapq.heappush(self.waiting, (sequence, next(self._numbers), future))
        if self.fenced:
            raise StorageFailed("another process owns this shard by now")
        try:
            async with asyncio.timeout(self.wait_seconds):
                await future
        except TimeoutError:
            raise Unavailable(
                "The write is on disk, but not yet in the object store that has to hold it. Retry "
                "with the same Idempotency-Key.",
                retry_after_seconds=LOG_BEHIND_RETRY_SECONDS,
            ) from None
        finally:
            if future.cancelled():
                self._forget(future)

    def _forget(self, given_up: asyncio.Future[None]) -> None:
        """Forget a wait that is over; while the object store is away, who asks again would else
        leave one behind each time.
        """
        with self._changing:
            self.waiting = [item for item in self.waiting if item[2] is not given_up]
            heapq.heapify(self.waiting)

    def _copy_blobs(self, copies: BlobCopies | None) -> None:
        """Bring the copies of blobs and of the layout up to date; several shards of a machine may
        do so at once.
        """
        while not self._closing.wait(BLOB_COPIES_PAUSE_SECONDS):
            with contextlib.suppress(ObjectStoreFailed):
                self._layout.follow()
            if copies is not None:
                self._copies_due = copies.sweep(lambda: not self._closing.is_set())
        if copies is not None:
            copies.sweep()

    async def _watch_backlog(self) -> None:
        while self._replicated:
            self._room = self._store.log.size()["bytes"] <= self._backlog_bytes
            await asyncio.sleep(BACKLOG_LOOKED_AT_SECONDS)

    # --- what the shipper tells, from its thread --------------------------------------------------

    def _on_stored(self, sequence: int) -> None:
        with self._changing:
            self._stored = max(self._stored, sequence)
            ready = []
            while self.waiting and self.waiting[0][0] <= self._stored:
                ready.append(heapq.heappop(self.waiting)[2])
        if ready:
            self._loop.call_soon_threadsafe(_resolve, ready, None)

    def _on_fenced(self, why: str) -> None:
        with self._changing:
            given_up, self.waiting = [future for _, _, future in self.waiting], []
        self._why = why
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._fenced.set)
            self._loop.call_soon_threadsafe(_resolve, given_up, StorageFailed(why))

    def status(self) -> dict[str, Any]:
        """Figures for metrics, see OPERATIONS.md."""
        failing = self.shipper.failing_since
        lag = self.shipper.lag()
        return {
            "unshipped_records": lag["records"],
            "unshipped_seconds": round(lag["seconds"], 3),
            "bytes": lag["bytes"],
            "epoch": self.shipper.state.epoch,
            "segments": self.shipper.state.number,
            "shipped_bytes": self.shipper.shipped_bytes,
            "complete": self.shipper.complete,
            "fenced": self.fenced,
            "leased": self.may_answer,
            "unconfirmed_seconds": round(self.lease.unconfirmed_seconds, 3),
            "failures": self.shipper.failures,
            "failing_seconds": 0.0 if failing is None else round(time.monotonic() - failing, 3),
            "blobs_due": self._copies_due,
            "dropped": self.shipper.dropped,
            "snapshots": self._snapshots.taken,
            "snapshot_age_seconds": round(self._snapshots.age_seconds),
            "snapshot_failures": self._snapshots.failures,
        }


def _resolve(futures: list[asyncio.Future[None]], error: Exception | None) -> None:
    for future in futures:
        if future.done():
            continue
        future.set_result(None) if error is None else future.set_exception(error)
