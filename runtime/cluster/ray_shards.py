"""How a gateway reaches shards that live in actors: over a Unix socket on the shard's own node,
through Ray everywhere else.

Calls travel in batches (batching.py). Nothing above this file sees an ObjectRef or an error of Ray:
a shard that is lost is looked for until it is back, perhaps on another node, and whoever waits too
long is told 503 with Retry-After.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from runtime import tracing
from runtime.api.operation import Call, Reply
from runtime.api.plugin import Registry
from runtime.cluster import actors, nodes, unix_socket
from runtime.cluster.batching import (
    BatchingQueue,
    Early,
    ShardLost,
    ShardNotFound,
    queue_of,
)
from runtime.cluster.release import OtherRelease, check_release, release_of
from runtime.cluster.supervisor_actor import start_supervisor
from runtime.errors import Unavailable
from runtime.installation import LayoutError
from runtime.limits import CALL_SECONDS_MAX, SHARD_PROBE_SECONDS_MAX, SHARD_STATUS_SECONDS_MAX
from runtime.placement import PlacementTable, SlotMap
from runtime.settings import Settings
from storage.replication import Superseded
from storage.store import StoreError

log = logging.getLogger("mneme.cluster")


class _RayShard:
    """One shard seen from a gateway: its actor, its queues and whether it is up."""

    def __init__(
        self, settings: Settings, number: int, slots: SlotMap, own_node: str, release: str
    ):
        self._settings = settings
        self._release = release
        self._number = number
        self._slots = slots
        self._own_node = own_node
        self._queues: dict[str, BatchingQueue] = {}
        self._look_up()

    def _look_up(self) -> None:
        """Find the shard where the placement says that it is. It may have no actor there, or not
        yet.
        """
        self._node = self._slots.placement.shards[self._number].node
        self._handle: Any = None
        path = actors.short_cut(self._settings, self._number)
        self._short_cut = (
            unix_socket.ClientSocket(path, self._release)
            if self._node in ("", self._own_node)
            else None
        )

    def _actor(self) -> Any:
        """Its handle. Raises ShardNotFound where no actor has its name."""
        if self._handle is None:
            import ray

            try:
                name = actors.shard_name(self._number, self._node)
                self._handle = ray.get_actor(name, namespace=actors.namespace(self._settings))
            except ValueError as missing:
                raise ShardNotFound from missing
        return self._handle

    def queue(self, name: str) -> BatchingQueue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = BatchingQueue(name, self._send, self._wait_until_up)
        return queue

    async def _send(self, message: bytes, early: Early) -> bytes:
        import ray.exceptions

        if self._short_cut is not None:
            try:
                return await self._short_cut.send(message, early)
            except unix_socket.NotConnected:
                pass  # a shard that is being restarted: Ray knows
            except (ConnectionError, asyncio.IncompleteReadError) as lost:
                log.warning("shard %d is lost: its connection ended", self._number)
                raise ShardLost from lost
        try:
            return await self._actor().execute.remote(message, self._release)
        except ray.exceptions.RayError as lost:
            if isinstance(lost, ray.exceptions.RayTaskError) and isinstance(
                lost.cause, OtherRelease
            ):
                raise lost.cause from None
            self._handle = None
            # An actor that died, one that restarts, or one whose store did not open again: in each
            # case no reply will come.
            log.warning("shard %d is lost: %s", self._number, str(lost).strip().splitlines()[-1])
            raise ShardLost from lost

    async def _wait_until_up(self, seconds: float) -> bool:
        """Ask for a status, with growing pauses, until the shard gives one; False when the time is
        over.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.05
        while loop.time() < deadline:
            await self._follow()
            if "error" not in await self._status(
                min(SHARD_PROBE_SECONDS_MAX, deadline - loop.time())
            ):
                return True
            await asyncio.sleep(min(pause, max(0.0, deadline - loop.time())))
            pause = min(pause * 2, 1.0)
        return False

    async def status(self) -> dict[str, Any]:
        """The shard's own figures; {"shard", "open": False, "error"} when it does not answer in
        time.
        """
        figures = await self._status(SHARD_STATUS_SECONDS_MAX)
        if (
            "error" in figures and await self._follow()
        ):  # no call was lost that would have shown where it is now
            figures = await self._status(SHARD_STATUS_SECONDS_MAX)
        return figures

    async def _follow(self) -> bool:
        """Whether the newest placement has the shard on another node, where it is looked for from
        now on.
        """
        await self._slots.refresh()
        has_moved = self._slots.placement.shards[self._number].node != self._node
        if has_moved:
            self._look_up()
        return has_moved

    async def _status(self, seconds: float) -> dict[str, Any]:
        import ray.exceptions

        try:
            async with asyncio.timeout(seconds):
                figures = await self._actor().status.remote()
                check_release(self._release, figures.pop("release", ""), f"Shard {self._number}")
                return figures
        except (OtherRelease, ray.exceptions.RayError, ShardLost, TimeoutError) as lost:
            self._handle = None
            reason = str(lost).strip().splitlines()[-1:] or ["no answer"]
            is_fenced = isinstance(lost, ray.exceptions.RayTaskError) and isinstance(
                lost.cause, Superseded
            )
            return {
                "shard": self._number,
                "open": False,
                "error": reason[0],
                "log": {"fenced": is_fenced},
            }


class RayShards:
    """Shards that live in actors, reached through batching queues. opener: of the shards, for a
    supervisor that has to be started.
    """

    def __init__(self, settings: Settings, registry: Registry, opener: str):
        table = PlacementTable.of(settings)
        self._settings = settings
        self._opener = opener
        self._release = release_of(opener)
        self._own_node = "" if settings.cluster.name is None else nodes.own_name()
        self._map = SlotMap(table.load(), table)
        self._shards = {
            number: self._shard(number) for number in range(len(self._map.placement.shards))
        }
        self._operations = registry.operations

    @property
    def placement_version(self) -> int:
        return self._map.placement.version

    async def execute(self, call: Call) -> Reply:
        """The reply of the shard that owns call.slot. Raises Unavailable."""
        return await self._map.execute(call, self._ask)

    async def _ask(self, number: int, call: Call) -> Reply:
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = self._shard(number)
        queue = shard.queue(queue_of(self._operations[call.operation], call))
        with tracing.part("queue", queue.name, shard=number):
            call.trace = tracing.carried()
            return await queue.execute(call)

    def _shard(self, number: int) -> _RayShard:
        return _RayShard(self._settings, number, self._map, self._own_node, self._release)

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]:
        """As Supervisor.order. Raises PlacementError, Unavailable."""
        import ray.exceptions

        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await start_supervisor(self._settings, self._opener).order.remote(
                    name, given
                )
        except ray.exceptions.RayTaskError as failed:
            if isinstance(failed.cause, LayoutError | StoreError):  # of the object store, too
                raise Unavailable(str(failed.cause)) from failed
            raise failed.cause from None
        except (ray.exceptions.RayError, TimeoutError) as lost:
            raise Unavailable("The supervisor does not answer. Retry in a moment.") from lost

    async def status(self) -> list[dict[str, Any]]:
        """Ask each shard, by number: its figures, or {"shard", "open": False, "error"}."""
        return list(
            await asyncio.gather(*(shard.status() for _, shard in sorted(self._shards.items())))
        )

    async def drain(self) -> None:
        """Do nothing: the shards are drained by whoever started them, a gateway only uses them."""

    async def close(self) -> None:
        """Nothing, for the same reason."""
