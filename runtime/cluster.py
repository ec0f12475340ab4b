"""The Ray room: shards as actors, the gateways' Serve application, and shards without Ray.

    ShardActor   one process per shard; ray_shards.py is how a gateway reaches it
    LocalShards  the same shards in this process, for laptops and tests

A shard actor is a named, detached actor that Ray restarts whenever its process ends, and no call is ever repeated by Ray. It stays
on the node it was created on, because that is where its directory is. On one node the gateways do so, too, and the namespace of both
is made from the data directory, so that several services can share a Ray cluster. An installation on several nodes has a name; its
shards are called after their nodes, too, so that whoever reads the placement finds them, and nobody finds one that was left behind.
After a restart the actor opens its store again by itself, from its directory. A fault of the storage ends the process on
purpose: what memory says can no longer be trusted, what LMDB says can. Only a store that the layout expects to be new is
created; a missing one is an error, never an empty service.

Ray is imported inside the functions that need it, because its environment has to be set first and because LocalShards must
not pay for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from runtime import nodes, shard_socket
from runtime.call_lane import pack_replies, unpack_calls
from runtime.errors import Unavailable
from runtime.limits import (
    GATEWAY_REQUESTS_MAX,
    LISTENERS_CLOSE_SECONDS_MAX,
    LOG_FILE_BYTES_MAX,
    START_SECONDS_MAX,
)
from runtime.operation import Call, Reply
from runtime.placement import Placement, PlacementError
from runtime.placement_table import PlacementTable
from runtime.settings import Settings
from runtime.slot_map import SlotMap
from runtime.supervisor import Supervisor
from runtime.telemetry import configure_logging
from runtime.write_lane import StorageFailed

log = logging.getLogger("mneme.cluster")

EXIT_STORAGE_FAULT = 70  # EX_SOFTWARE of sysexits.h
ACTOR_CALLS_MAX = 1_000
SUPERVISOR = "supervisor"


class CannotOpen(Exception):
    """A shard lacks something beside its store; the message is one sentence."""


class ShardLike(Protocol):
    """What this file needs of runtime.shard.Shard, already open."""

    async def execute(self, call: Call) -> Reply: ...
    async def execute_many(self, calls: list[Call]) -> list[Reply]: ...
    async def order(self, step: str, *given: Any) -> Any: ...
    async def status(self) -> dict[str, Any]: ...
    async def until_fenced(self) -> str: ...
    async def checkpoint(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


Opener = Callable[[Settings, int], Awaitable[ShardLike]]


def resolve(reference: str) -> Any:
    """ "package.module:name" -> the object; how a process is told which function to run without shipping code to it."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


class ShardActor:
    """The process around one shard. `opener` names an async function (settings, number) -> open shard; node: where it is to live."""

    def __init__(self, settings: Settings, number: int, opener: str, node: str = ""):
        self._settings = settings = settings.on_node(os.environ)
        log_to_file(settings, shard_name(number))
        self._number = number
        self._node = node
        self._opener = opener
        self._shard: ShardLike | None = None
        self._opening = asyncio.Lock()
        self._short_cut: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the shard unless it is open. Raises what the storage says, so that the starter can name the cause."""
        async with self._opening:
            if self._shard is None:
                if self._node:
                    await asyncio.to_thread(self._check_home)
                opener: Opener = resolve(self._opener)
                self._shard = await opener(self._settings, self._number)
                self._short_cut = await shard_socket.listen(short_cut(self._settings, self._number), self.execute)
                self._watching = asyncio.create_task(self._end_when_fenced(self._shard))

    def _check_home(self) -> None:
        """Raises CannotOpen when the shard has got another place: there, not here, it is to be taken over."""
        home = PlacementTable.of(self._settings).load().shards[self._number].node
        if home != self._node:
            raise CannotOpen(f"Shard {self._number} lives on node {home} by now, not on node {self._node}.")

    async def execute(self, message: bytes) -> bytes:
        """One batch of calls (call_lane.pack_calls) -> their replies (call_lane.pack_replies)."""
        if self._shard is None:
            await self.open()
        try:
            return pack_replies(await self._shard.execute_many(unpack_calls(message)))
        except Exception:
            self._end()

    async def status(self) -> dict[str, Any]:
        if self._shard is None:
            await self.open()
        return {**await self._shard.status(), "pid": os.getpid()}

    async def order(self, step: str, *given: Any) -> Any:
        """One step of a slot's move (runtime/slot_moves.py)."""
        if self._shard is None:
            await self.open()
        try:
            return await self._shard.order(step, *given)
        except StorageFailed:
            self._end()

    async def _end_when_fenced(self, shard: ShardLike) -> None:
        """Ray opens its directory again then, which is refused, by name, until the actor is stopped."""
        log.critical("shard %d is owned by another process by now: %s", self._number, await shard.until_fenced())
        self._end()

    def _end(self) -> NoReturn:
        log.critical("shard %d failed; its process ends and opens the store anew", self._number, exc_info=True)
        logging.shutdown()
        os._exit(EXIT_STORAGE_FAULT)

    async def drain(self) -> None:
        """Refuse new calls, finish those that run, write checkpoints and close the store."""
        async with self._opening:
            if self._shard is not None:
                await self._shard.drain()
                await self._shard.checkpoint()
                await self._shard.close()
                shard_socket.remove(short_cut(self._settings, self._number))


def log_to_file(settings: Settings, name: str) -> None:
    """Send the logging of a worker process to logs/<name>.log in the data directory; Ray keeps no log that outlives it."""
    path = settings.data_dir / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_FILE_BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    configure_logging(settings, path.open("a", buffering=1, encoding="utf-8"))


def shard_name(number: int, node: str = "") -> str:
    return f"shard-{number}@{node}" if node else f"shard-{number}"


def home_of(name: str) -> tuple[int, str] | None:
    """The shard and the node that an actor is named after; None when it is no shard of a node."""
    shard, at, node = name.partition("@")
    return (int(shard.removeprefix("shard-")), node) if at else None


def namespace(settings: Settings) -> str:
    """What Ray calls the installation: the namespace of its actors, and its Serve application."""
    return _own_name(settings) if settings.cluster.name is None else f"mneme-{settings.cluster.name}"


def _own_name(settings: Settings) -> str:
    """A name for this machine's data directory."""
    return "mneme-" + hashlib.sha256(f"{os.uname().nodename}:{settings.data_dir.resolve()}".encode()).hexdigest()[:10]


def short_cut(settings: Settings, number: int) -> Path:
    """Where a gateway on the shard's node reaches it without Ray."""
    return shard_socket.socket_path(_own_name(settings), shard_name(number))


def start_shards(settings: Settings, shards: int, opener: str) -> list[Any]:
    """Create the shard actors that do not exist yet, on this node; -> handles by shard number."""
    return [start_shard(settings, number, opener) for number in range(shards)]


def start_shard(settings: Settings, number: int, opener: str, node: str = "") -> Any:
    """The handle of a shard's actor on the node of that name, which is created where there is none. It does not open by itself at first."""
    import ray

    return (
        ray.remote(ShardActor)
        .options(
            name=shard_name(number, node),
            namespace=namespace(settings),
            label_selector=nodes.selector(node) if node else nodes.this_node(),
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0.1,  # a share for placement, not a limit: a shard must fit beside the gateway on two cores
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=ACTOR_CALLS_MAX,
        )
        .remote(settings, number, opener, node)
    )


def open_shards(handles: Sequence[Any]) -> list[Any]:
    """Have every shard open its store; -> what await_open waits for."""
    return [handle.open.remote() for handle in handles]


def await_open(opening: list[Any], seconds: float = START_SECONDS_MAX) -> None:
    """Wait until every shard is open. Raises the opener's own error, TimeoutError, or RuntimeError when a process ended."""
    import ray

    try:
        ray.get(opening, timeout=seconds)
    except ray.exceptions.RayTaskError as failed:
        raise failed.cause from None
    except ray.exceptions.GetTimeoutError:
        raise TimeoutError(f"The shards were not open within {seconds:.0f} seconds.") from None
    except ray.exceptions.RayError as ended:
        raise RuntimeError(f"A shard's process ended while it opened its store: {ended}") from ended


def leftover_actors(settings: Settings) -> list[list[Any]]:
    """Handles of every actor of the installation, such as those of a service that was killed on a cluster that lives on.

    In the order in which they are to be stopped, those of a group together.
    """
    import ray

    names = nodes.named_actors(namespace(settings))
    groups = [[name for name in names if name == SUPERVISOR], [name for name in names if name != SUPERVISOR]]
    return [[ray.get_actor(name, namespace=namespace(settings)) for name in group] for group in groups]


def stop_shards(handles: Sequence[Any], seconds: float) -> bool:
    """Drain, checkpoint and close every shard, then end its process; -> whether all managed within the time."""
    import ray

    done, late = ray.wait([handle.drain.remote() for handle in handles], num_returns=len(handles), timeout=seconds)
    clean = not late
    for reference in done:
        try:
            ray.get(reference)
        except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError) as failed:
            log.error("a shard did not close in order: %s", failed)
            clean = False
    for handle in handles:
        ray.kill(handle, no_restart=True)
    return clean


def application(gateway: type, settings: Settings, front_door: bool) -> Any:
    """The Serve application of one deployment.

    gateway     gateway(settings, front_door) makes a replica; it defines __serve_build_asgi_app__
    front_door  the front door of front_proxy.py stands before the replicas, rather than whatever proxy Serve runs
    """
    import ray
    from ray import serve

    here = {} if settings.cluster.name or not ray.is_initialized() else {"label_selector": nodes.this_node()}
    at_least = nodes.count() if settings.cluster.name and ray.is_initialized() else 1
    deployment = serve.deployment(
        serve.ingress(None)(gateway),
        name="gateway",
        max_ongoing_requests=GATEWAY_REQUESTS_MAX,
        graceful_shutdown_timeout_s=LISTENERS_CLOSE_SECONDS_MAX,
        ray_actor_options={"num_cpus": 0.1} | here,
        **gateway_numbers(settings, at_least),
    )
    return deployment.bind(settings, front_door)


def gateway_numbers(settings: Settings, at_least: int) -> dict[str, Any]:
    """How many gateways there are, as Serve's options: so many, or as many as the load asks for. at_least: where no number is set."""
    if settings.ray.gateway_replicas_max:
        most, target = settings.ray.gateway_replicas_max, settings.ray.gateway_ongoing_target
        fewest = min(settings.ray.gateway_replicas_min, most)
        return {"autoscaling_config": {"min_replicas": fewest, "max_replicas": most, "target_ongoing_requests": target}}
    return {"num_replicas": settings.ray.gateway_replicas or max(settings.ray.resolved_gateway_replicas, at_least)}


def gateway_name() -> str:
    """The name of the gateway replica this process is: a number that its successor inherits, so that logs do not pile up."""
    from ray import serve

    return f"gateway-{serve.get_replica_context().rank.rank}"


class LocalShards:
    """Shards in this process, open already. No lanes: without a process border there is nothing to save.

    table     the placement of the data directory; without one the slots are divided evenly, for good
    failed    a shard raised, which it does on a fault of the storage only; from then on every call is refused
    fenced    why this process serves no more: another owns one of the shards by now; one sentence
    on_fault  called once when that happens; the process has to end and open the stores anew
    """

    def __init__(self, shards: Sequence[ShardLike], on_fault: Callable[[], None] = lambda: None, table: PlacementTable | None = None):
        self._shards = shards
        self.on_fault = on_fault
        self.failed = False
        self.fenced = ""
        self._table = table
        self._made: SlotMap | None = None
        self._supervisor: Supervisor | None = None

    async def execute(self, call: Call) -> Reply:
        """The reply of the shard that owns call.slot, its body encoded. Raises Unavailable."""
        if self.failed:
            raise Unavailable("The service is restarting. Retry in a moment with the same Idempotency-Key.")
        try:
            return await self._map.execute(call, self._ask)
        except Unavailable:
            raise
        except Exception as fault:
            log.critical("a shard failed; this process has to end", exc_info=True)
            self.failed = True
            self.on_fault()
            raise Unavailable("The service failed under this request; its outcome is unknown.") from fault

    async def watch(self) -> None:
        """Wait until another process owns one of the shards; from then on every call is refused, as after a fault."""

        async def wait(number: int, shard: ShardLike) -> None:
            why = await shard.until_fenced()
            self.fenced = (
                f"Shard {number} is owned by another process by now ({why}). This one acknowledges nothing more and ends; "
                "restore the shard from object storage before its directory is served again."
            )
            self.failed = True
            self.on_fault()

        await asyncio.gather(*(wait(number, shard) for number, shard in enumerate(self._shards)))

    @property
    def _map(self) -> SlotMap:
        """Made at the first call: the shards are opened one by one until then."""
        if self._made is None:
            placement = Placement.even(len(self._shards)) if self._table is None else self._table.load()
            self._made = SlotMap(placement, self._table)
        return self._made

    async def _ask(self, number: int, call: Call) -> Reply:
        return (await self._shards[number].execute(call)).encoded()

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]:
        """As Supervisor.order. Raises PlacementError."""
        if self._table is None:
            raise PlacementError("These shards have no placement that could change.")
        if self._supervisor is None:
            self._supervisor = Supervisor(self._table, lambda number, step, *given: self._shards[number].order(step, *given))
        return await self._supervisor.order(name, **given)

    @property
    def placement_version(self) -> int:
        return self._map.placement.version

    async def status(self) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(shard.status() for shard in self._shards)))

    async def drain(self) -> None:
        """Stop moving slots, refuse new calls, finish those that run, write checkpoints."""
        if self._supervisor is not None:
            await self._supervisor.close()
        await asyncio.gather(*(shard.drain() for shard in self._shards))
        await asyncio.gather(*(shard.checkpoint() for shard in self._shards))

    async def close(self) -> None:
        await asyncio.gather(*(shard.close() for shard in self._shards))
