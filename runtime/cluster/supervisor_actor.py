"""The process of the supervisor: one detached, named actor for an installation.

On one node it moves slots (runtime/cluster/supervisor.py) and stays beside the data. On several it
also brings shards to nodes (runtime/cluster/node_watch.py), has no place of its own, and is started
again by Ray on any node that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import Any

from runtime.cluster import actors, nodes
from runtime.cluster.node_watch import Home, NodeWatch, NoNodes
from runtime.cluster.nodes import Inspection
from runtime.cluster.process import log_to_file
from runtime.cluster.supervisor import Supervisor
from runtime.errors import Unavailable
from runtime.installation import (
    LAYOUT_FILE,
    Layout,
    LayoutError,
    make_shared_layout,
    read_shared_layout,
    shared_objects,
)
from runtime.limits import CALL_SECONDS_MAX, NODE_WATCH_SECONDS, SHARD_STATUS_SECONDS_MAX
from runtime.placement import Placement, PlacementTable
from runtime.settings import Settings

log = logging.getLogger("mneme.supervisor")


class SupervisorActor:
    """The one actor that conducts moves and watches nodes. opener: of the shards, see
    actors.ShardActor. It raises where the object store's address cannot be used.
    """

    def __init__(self, settings: Settings, opener: str):
        self._settings = settings.on_node(os.environ)
        self._opener = opener
        self._table = PlacementTable.of(self._settings)
        self._supervisor = Supervisor(self._table, self._ask)
        self._watch: NodeWatch | None = None
        self._begun: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        log_to_file(self._settings, actors.SUPERVISOR)
        # Also after a restart, of which nobody else would know. Ray runs this on the actor's loop;
        # a call of the actor's own would go by way of Ray's head, which now and then forgets to
        # say that the actor is there, and is then never made.
        if settings.cluster.name is None:
            self._supervisor.start()
        else:
            self._begun = asyncio.get_running_loop().create_task(self.watch())

    def __repr__(self) -> str:
        """What Ray's dashboard and its log lines call it."""
        tasks = "moves slots" if self._settings.cluster.name is None else "moves slots and shards"
        return f"Mneme supervisor: {tasks}"

    async def watch(self) -> None:
        """Look after the nodes and go on with moves from now on, or as soon as the object store
        answers.
        """
        while True:
            try:
                watch = await self._begin()
                await watch.step()  # a move whose shards are not started yet would come to nothing
            except Exception as failed:
                log.error("the nodes are not looked after: %s", failed)
                await asyncio.sleep(NODE_WATCH_SECONDS)
            else:
                self._supervisor.start()
                return

    async def _begin(self) -> NodeWatch:
        async with self._beginning:
            if self._watch is None:
                await asyncio.to_thread(self._make_layout)
                self._watch = NodeWatch(
                    self._settings, self._table, RayNodes(self._settings, self._opener)
                )
                self._watching = asyncio.create_task(self._watch.run())
            return self._watch

    def _make_layout(self) -> None:
        """Make the layout that nodes share, unless there was one. Raises LayoutError,
        ObjectStoreFailed.
        """
        objects, name = shared_objects(self._settings), str(self._settings.cluster.name)
        if self._has_begun(name):
            # A new one would send accounts to shards that do not hold them.
            read_shared_layout(objects)
        else:
            shards = self._settings.shards.count or max(nodes.count(), nodes.resources() // 2)
            make_shared_layout(objects, name, shards)
        if self._settings.shards.count:
            self._table.resize(self._settings.shards.count)

    def _has_begun(self, name: str) -> bool:
        """Whether shards of the installation run, or this node has known it before."""
        if RayNodes(self._settings, self._opener).running():
            return True
        data_dir = self._settings.data_dir
        try:
            return (data_dir / LAYOUT_FILE).exists() and Layout.load(data_dir).cluster_id == name
        except LayoutError:  # it is damaged, so there was one
            return True

    async def lay_out(self) -> None:
        """Return when there is a layout. Raises LayoutError, ObjectStoreFailed."""
        await self._begin()

    async def open(self) -> None:
        """Return when every shard is open on a node. Raises CannotOpen, and what the first that
        does not open says.
        """
        watch = await self._begin()
        try:
            await watch.open()
        except NoNodes as none:
            raise actors.CannotOpen(str(none)) from None

    async def order(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """As Supervisor.order. Each order, a look included, has it go on with what is to be
        done.
        """
        report = await self._supervisor.order(name, **given)
        return report | ({} if self._watch is None else self._watch.report())

    async def drain(self) -> None:
        """Stop where it is; whoever starts it again has it go on."""
        for task in (self._begun, self._watching):
            if task is not None:
                task.cancel()
        await self._supervisor.close()

    def _actor(self, name: str) -> Any:
        import ray

        return ray.get_actor(name, namespace=actors.namespace(self._settings))

    async def _ask(self, number: int, step: str, *given: Any) -> Any:
        import ray.exceptions

        node = ""
        if self._settings.cluster.name is not None:
            node = (await asyncio.to_thread(self._table.load)).shards[number].node
        try:
            shard = self._actor(actors.shard_name(number, node))
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await shard.order.remote(step, *given)
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None
        except (ray.exceptions.RayError, ValueError, TimeoutError) as lost:  # ValueError: no actor
            raise Unavailable(f"Shard {number} does not answer. Retry in a moment.") from lost


def start_supervisor(settings: Settings, opener: str) -> Any:
    """The handle of the supervisor, which is started where there is none."""
    import ray

    return (
        ray.remote(SupervisorActor)
        .options(
            name=actors.SUPERVISOR,
            namespace=actors.namespace(settings),
            label_selector=nodes.this_node() if settings.cluster.name is None else None,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
        )
        .remote(settings, opener)
    )


class RayNodes:
    """Ray, as the watch sees it."""

    def __init__(self, settings: Settings, opener: str):
        self._settings, self._opener = settings, opener
        self._namespace = actors.namespace(settings)

    def alive(self, placement: Placement) -> set[str]:
        return nodes.alive(placement)

    def running(self) -> set[Home]:
        return {
            home
            for name in nodes.named_actors(self._namespace)
            if (home := actors.home_of(name)) is not None
        }

    def start(self, home: Home) -> None:
        number, node = home
        actors.start_shard(self._settings, number, self._opener, node)

    def end(self, home: Home) -> None:
        import ray

        with contextlib.suppress(ValueError):  # it is gone
            ray.kill(self._handle(home), no_restart=True)

    async def open(self, home: Home) -> None:
        import ray.exceptions

        try:
            await self._handle(home).open.remote()
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None

    async def status(self, home: Home) -> dict[str, Any]:
        """What the shard says of itself, {} when it says nothing."""
        import ray.exceptions

        try:
            async with asyncio.timeout(SHARD_STATUS_SECONDS_MAX):
                return await self._handle(home).status.remote()
        except (ray.exceptions.RayError, ValueError, TimeoutError):
            return {}

    async def inspect(self, node: str, others: set[str]) -> Inspection:
        return await nodes.inspected(self._settings, self._opener, node, others)

    def _handle(self, home: Home) -> Any:
        import ray

        return ray.get_actor(actors.shard_name(*home), namespace=self._namespace)
