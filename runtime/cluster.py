"""The Ray room: shards as actors, and the two ways a gateway reaches its shards.

    RayShards    one process per shard; calls travel in lanes (call_lane.py), over a Unix socket (shard_socket.py) or through Ray
    LocalShards  the same shards in this process, for laptops and tests

Both answer execute(call), status(), drain() and close(), so nothing above this file knows which one it has, and nothing above
or below it ever sees an ObjectRef or an error of Ray.

A shard actor is a named, detached actor that Ray restarts whenever its process ends, and no call is ever repeated by Ray. Its
namespace is made from the data directory, so that several services can share a Ray cluster; and it stays on the node it was
created on, as the gateways do, because that is where the directory is.
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
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from runtime import shard_socket
from runtime.call_lane import CallLane, ShardLost, lane_of, pack_replies, unpack_calls
from runtime.errors import Unavailable
from runtime.limits import (
    CALL_SECONDS_MAX,
    GATEWAY_REQUESTS_MAX,
    LANE_PROBE_SECONDS_MAX,
    LISTENERS_CLOSE_SECONDS_MAX,
    LOG_FILE_BYTES_MAX,
    SHARD_STATUS_SECONDS_MAX,
    START_SECONDS_MAX,
)
from runtime.operation import Call, Reply
from runtime.placement import Placement, PlacementError
from runtime.placement_table import PlacementTable
from runtime.plugin import Registry
from runtime.settings import Settings
from runtime.slot_map import SlotMap
from runtime.supervisor import Supervisor
from runtime.telemetry import configure_logging
from runtime.write_lane import StorageFailed
from storage.log_shipping import Superseded

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
    """The process around one shard. `opener` names an async function (settings, number) -> open shard."""

    def __init__(self, settings: Settings, number: int, opener: str):
        log_to_file(settings, shard_name(number))
        self._settings = settings
        self._number = number
        self._opener = opener
        self._shard: ShardLike | None = None
        self._opening = asyncio.Lock()
        self._short_cut: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the shard unless it is open. Raises what the storage says, so that the starter can name the cause."""
        async with self._opening:
            if self._shard is None:
                opener: Opener = resolve(self._opener)
                self._shard = await opener(self._settings, self._number)
                self._short_cut = await shard_socket.listen(short_cut(self._settings, self._number), self.execute)
                self._watching = asyncio.create_task(self._end_when_fenced(self._shard))

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


class SupervisorActor:
    """The process around the supervisor of one data directory."""

    def __init__(self, settings: Settings):
        log_to_file(settings, SUPERVISOR)
        self._settings = settings
        self._supervisor: Supervisor | None = None

    async def order(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """As Supervisor.order. Each order, a look included, has it go on with what is to be done."""
        if self._supervisor is None:
            self._supervisor = Supervisor(PlacementTable(self._settings.data_dir), self._ask)
        return await self._supervisor.order(name, **given)

    async def drain(self) -> None:
        """Stop where it is; whoever starts it again has it go on."""
        if self._supervisor is not None:
            await self._supervisor.close()

    async def _ask(self, number: int, step: str, *given: Any) -> Any:
        import ray

        handle = ray.get_actor(shard_name(number), namespace=namespace(self._settings))
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await handle.order.remote(step, *given)
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None


def log_to_file(settings: Settings, name: str) -> None:
    """Send the logging of a worker process to logs/<name>.log in the data directory; Ray keeps no log that outlives it."""
    path = settings.data_dir / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_FILE_BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    configure_logging(settings, path.open("a", buffering=1, encoding="utf-8"))


def shard_name(number: int) -> str:
    return f"shard-{number}"


def namespace(settings: Settings) -> str:
    """What Ray calls the service on this machine's data directory: the namespace of its actors, and its Serve application."""
    return "mneme-" + hashlib.sha256(f"{os.uname().nodename}:{settings.data_dir.resolve()}".encode()).hexdigest()[:10]


def _this_node() -> dict[str, str]:
    """The label selector that keeps an actor on the node of this process."""
    import ray

    return {"ray.io/node-id": ray.get_runtime_context().get_node_id()}


def short_cut(settings: Settings, number: int) -> Path:
    """Where a gateway on the shard's machine reaches it without Ray."""
    return shard_socket.socket_path(namespace(settings), shard_name(number))


def start_shards(settings: Settings, shards: int, opener: str) -> list[Any]:
    """Create the shard actors that do not exist yet; -> handles by shard number. They do not open by themselves at first."""
    import ray

    actor = ray.remote(ShardActor)
    return [
        actor.options(
            name=shard_name(number),
            namespace=namespace(settings),
            label_selector=_this_node(),
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0.1,  # a share for placement, not a limit: a shard must fit beside the gateway on two cores
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=ACTOR_CALLS_MAX,
        ).remote(settings, number, opener)
        for number in range(shards)
    ]


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


def find_shards(settings: Settings, numbers: Iterable[int]) -> list[Any]:
    """Handles of running shard actors, in the order of the numbers. Raises ValueError when one does not exist."""
    import ray

    return [ray.get_actor(shard_name(number), namespace=namespace(settings)) for number in numbers]


def leftover_shards(settings: Settings) -> list[Any]:
    """Handles of every shard actor of this data directory, such as those of a service that was killed on a cluster that lives on."""
    import ray

    names = (actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True) if actor["namespace"] == namespace(settings))
    return [ray.get_actor(name, namespace=namespace(settings)) for name in names]


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

    deployment = serve.deployment(
        serve.ingress(None)(gateway),
        name="gateway",
        num_replicas=settings.ray.resolved_gateway_replicas,
        max_ongoing_requests=GATEWAY_REQUESTS_MAX,
        graceful_shutdown_timeout_s=LISTENERS_CLOSE_SECONDS_MAX,
        ray_actor_options={"num_cpus": 0.1} | ({"label_selector": _this_node()} if ray.is_initialized() else {}),
    )
    return deployment.bind(settings, front_door)


def gateway_name() -> str:
    """The name of the gateway replica this process is: a number that its successor inherits, so that logs do not pile up."""
    from ray import serve

    return f"gateway-{serve.get_replica_context().rank.rank}"


def start_supervisor(settings: Settings) -> Any:
    """The handle of the supervisor, which is started where there is none."""
    import ray

    return (
        ray.remote(SupervisorActor)
        .options(
            name=SUPERVISOR,
            namespace=namespace(settings),
            label_selector=_this_node(),
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
        )
        .remote(settings)
    )


class _RayShard:
    """One shard actor seen from a gateway: its lanes and whether it is up."""

    def __init__(self, number: int, handle: Any, short_cut: Path):
        self._number = number
        self._handle = handle
        self._short_cut = shard_socket.ShardSocket(short_cut)
        self._lanes: dict[str, CallLane] = {}

    def lane(self, name: str) -> CallLane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = CallLane(name, self._send, self._wait_until_up)
        return lane

    async def _send(self, message: bytes) -> bytes:
        import ray.exceptions

        try:
            return await self._short_cut.send(message)
        except shard_socket.NotConnected:
            pass  # another machine, or a shard that is being restarted: Ray knows
        except (ConnectionError, asyncio.IncompleteReadError) as lost:
            log.warning("shard %d is lost: its connection ended", self._number)
            raise ShardLost from lost
        try:
            return await self._handle.execute.remote(message)
        except ray.exceptions.RayError as lost:
            # An actor that died, one that restarts, or one whose store did not open again: in each case no reply will come.
            log.warning("shard %d is lost: %s", self._number, str(lost).strip().splitlines()[-1])
            raise ShardLost from lost

    async def _wait_until_up(self, seconds: float) -> bool:
        """Ask for a status, with growing pauses, until the shard gives one; False when the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.05
        while loop.time() < deadline:
            if "error" not in await self.status(min(LANE_PROBE_SECONDS_MAX, deadline - loop.time())):
                return True
            await asyncio.sleep(min(pause, max(0.0, deadline - loop.time())))
            pause = min(pause * 2, 1.0)
        return False

    async def status(self, seconds: float = SHARD_STATUS_SECONDS_MAX) -> dict[str, Any]:
        """The shard's own figures; {"shard", "open": False, "error"} when it does not answer in time."""
        import ray.exceptions

        try:
            async with asyncio.timeout(seconds):
                return await self._handle.status.remote()
        except (ray.exceptions.RayError, TimeoutError) as lost:
            reason = str(lost).strip().splitlines()[-1:] or ["no answer"]
            is_fenced = isinstance(lost, ray.exceptions.RayTaskError) and isinstance(lost.cause, Superseded)
            return {"shard": self._number, "open": False, "error": reason[0], "log": {"fenced": is_fenced}}


class RayShards:
    """Shards that live in actors, reached through call lanes."""

    def __init__(self, settings: Settings, registry: Registry):
        table = PlacementTable(settings.data_dir)
        self._settings = settings
        self._map = SlotMap(table.load(), table)
        self._shards = {number: self._found(number) for number in range(len(self._map.placement.shards))}
        self._operations = registry.operations

    async def execute(self, call: Call) -> Reply:
        """The reply of the shard that owns call.slot. Raises Unavailable."""
        return await self._map.execute(call, self._ask)

    async def _ask(self, number: int, call: Call) -> Reply:
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = self._found(number)
        return await shard.lane(lane_of(self._operations[call.operation], call)).execute(call)

    def _found(self, number: int) -> _RayShard:
        (handle,) = find_shards(self._settings, [number])
        return _RayShard(number, handle, short_cut(self._settings, number))

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]:
        """As Supervisor.order. Raises PlacementError, Unavailable."""
        import ray.exceptions

        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await start_supervisor(self._settings).order.remote(name, given)
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from None
        except (ray.exceptions.RayError, TimeoutError) as lost:
            raise Unavailable("The supervisor does not answer. Retry in a moment.") from lost

    async def status(self) -> list[dict[str, Any]]:
        """By shard number: its figures, or {"shard", "open": False, "error"}."""
        return list(await asyncio.gather(*(shard.status() for _, shard in sorted(self._shards.items()))))

    async def drain(self) -> None:
        """Nothing: the shards are drained by whoever started them, a gateway only uses them."""

    async def close(self) -> None:
        """Nothing, for the same reason."""


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
