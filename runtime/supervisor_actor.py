"""The process of the supervisor: one detached, named actor for an installation.

On one node it moves slots (runtime/supervisor.py) and stays beside the data. On several it also brings shards to nodes
(runtime/node_watch.py), has no place of its own, and is started again by Ray on any node that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from runtime import cluster, nodes
from runtime.limits import CALL_SECONDS_MAX, SHARD_STATUS_SECONDS_MAX
from runtime.node_watch import Home, NodeWatch, NoNodes
from runtime.nodes import Inspection
from runtime.placement import Placement
from runtime.placement_table import PlacementTable
from runtime.settings import Settings
from runtime.shared_layout import make_shared_layout, shared_objects
from runtime.supervisor import Supervisor


class SupervisorActor:
    """opener: of the shards, see cluster.ShardActor."""

    def __init__(self, settings: Settings, opener: str):
        self._settings = settings.on_node(os.environ)
        self._opener = opener
        self._supervisor: Supervisor | None = None
        self._watch: NodeWatch | None = None
        self._watching: asyncio.Task[None] | None = None
        cluster.log_to_file(self._settings, cluster.SUPERVISOR)
        if settings.cluster.name is not None:
            import ray

            ray.get_runtime_context().current_actor.watch.remote()  # also after a restart, of which nobody else would know

    async def watch(self) -> None:
        """Look after the nodes from now on."""
        if self._watching is None:
            await asyncio.to_thread(self._make_layout)
            self._watch = NodeWatch(self._settings, PlacementTable.of(self._settings), _RayNodes(self._settings, self._opener))
            self._watching = asyncio.create_task(self._watch.run())

    def _make_layout(self) -> None:
        shards = self._settings.shards.count or max(1, nodes.resources() // 2)
        make_shared_layout(shared_objects(self._settings), str(self._settings.cluster.name), shards)

    async def open(self) -> None:
        """Return when every shard is open on a node. Raises CannotOpen, and what the first that does not open says."""
        await self.watch()
        try:
            await self._watch.open()
        except NoNodes as none:
            raise cluster.CannotOpen(str(none)) from None

    async def order(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """As Supervisor.order. Each order, a look included, has it go on with what is to be done."""
        if self._supervisor is None:
            self._supervisor = Supervisor(PlacementTable.of(self._settings), self._ask)
        report = await self._supervisor.order(name, **given)
        return report | ({} if self._watch is None else self._watch.report())

    async def drain(self) -> None:
        """Stop where it is; whoever starts it again has it go on."""
        if self._watching is not None:
            self._watching.cancel()
        if self._supervisor is not None:
            await self._supervisor.close()

    async def _ask(self, number: int, step: str, *given: Any) -> Any:
        import ray

        node = ""
        if self._settings.cluster.name is not None:
            node = (await asyncio.to_thread(PlacementTable.of(self._settings).load)).shards[number].node
        handle = ray.get_actor(cluster.shard_name(number, node), namespace=cluster.namespace(self._settings))
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await handle.order.remote(step, *given)
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None


def start_supervisor(settings: Settings, opener: str) -> Any:
    """The handle of the supervisor, which is started where there is none."""
    import ray

    return (
        ray.remote(SupervisorActor)
        .options(
            name=cluster.SUPERVISOR,
            namespace=cluster.namespace(settings),
            label_selector=nodes.this_node() if settings.cluster.name is None else None,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
        )
        .remote(settings, opener)
    )


class _RayNodes:
    """Ray, as the watch sees it."""

    def __init__(self, settings: Settings, opener: str):
        self._settings, self._opener = settings, opener
        self._namespace = cluster.namespace(settings)

    def alive(self, placement: Placement) -> set[str]:
        return nodes.alive(placement)

    def running(self) -> set[Home]:
        return {home for name in nodes.named_actors(self._namespace) if (home := cluster.home_of(name)) is not None}

    def start(self, home: Home) -> None:
        number, node = home
        cluster.start_shard(self._settings, number, self._opener, node)

    def end(self, home: Home) -> None:
        import ray

        with contextlib.suppress(ValueError):  # it is gone
            ray.kill(self._handle(home), no_restart=True)

    async def open(self, home: Home) -> None:
        import ray

        try:
            await self._handle(home).open.remote()
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None

    async def status(self, home: Home) -> dict[str, Any]:
        """What the shard says of itself, {} when it says nothing."""
        import ray

        try:
            async with asyncio.timeout(SHARD_STATUS_SECONDS_MAX):
                return await self._handle(home).status.remote()
        except (ray.exceptions.RayError, ValueError, TimeoutError):
            return {}

    async def inspect(self, node: str, others: set[str]) -> Inspection:
        return await nodes.inspected(self._settings, node, others)

    def _handle(self, home: Home) -> Any:
        import ray

        return ray.get_actor(cluster.shard_name(*home), namespace=self._namespace)
