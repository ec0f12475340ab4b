"""Shards as actors of Ray: one process per shard, its name, its start and its end.

A shard actor is a named, detached actor that Ray restarts whenever its process ends, and no call is
ever repeated by Ray. It stays on the node it was created on, because that is where its directory
is. On one node the gateways do so, too, and the namespace of both is made from the data directory,
so that several services can share a Ray cluster. An installation on several nodes has a name; its
shards are called after their nodes, too, so that whoever reads the placement finds them, and nobody
finds one that was left behind. After a restart the actor opens its store again by itself, from its
directory. A fault of the storage ends the process on purpose: what memory says can no longer be
trusted, what LMDB says can. Only a store that the layout expects to be new is created; a missing
one is an error, never an empty service.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from runtime import tracing
from runtime.cluster import nodes, ray_metrics, unix_socket
from runtime.cluster.batching import Early, pack_replies, unpack_calls
from runtime.cluster.process import (
    EXIT_STORAGE_FAULT,
    CannotOpen,
    ShardLike,
    log_to_file,
    open_shard,
)
from runtime.cluster.release import check_release, release_of
from runtime.limits import START_SECONDS_MAX
from runtime.placement import PlacementTable
from runtime.settings import Settings
from runtime.shard import StorageFailed

log = logging.getLogger("mneme.cluster")

ACTOR_CALLS_MAX = 1_000
SUPERVISOR = "supervisor"


class ShardActor:
    """The process around one shard. `opener` names an async function (settings, number) -> open
    shard; node: where it is to live.
    """

    def __init__(self, settings: Settings, number: int, opener: str, node: str = ""):
        self._settings = settings = settings.on_node(os.environ)
        log_to_file(settings, shard_name(number))
        tracing.start(shard_name(number, node))
        self._number = number
        self._node = node
        self._opener = opener
        self._release = release_of(opener)
        self._shard: ShardLike | None = None
        self._opening = asyncio.Lock()
        self._short_cut: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._shown: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """What Ray's dashboard and its log lines call it."""
        where = self._node or "this machine"
        return f"Mneme shard {self._number} on {where}, {self._settings.data_dir}"

    async def open(self) -> None:
        """Open the shard unless it is open. Raises what the storage says, so that the starter can
        name the cause.
        """
        async with self._opening:
            if self._shard is None:
                if self._node:
                    await asyncio.to_thread(self._check_home)
                self._shard = await open_shard(self._settings, self._number, self._opener)
                self._short_cut = await unix_socket.listen(
                    short_cut(self._settings, self._number), self._release, self._execute
                )
                self._watching = asyncio.create_task(self._end_when_fenced(self._shard))
                self._shown = ray_metrics.show(self._settings, self._shard.status)

    async def _opened(self) -> ShardLike:
        if self._shard is None:
            await self.open()
            assert self._shard is not None
        return self._shard

    def _check_home(self) -> None:
        """Raise CannotOpen when the shard has got another place: there, not here, it is to be
        taken over.
        """
        home = PlacementTable.of(self._settings).load().shards[self._number].node
        if home != self._node:
            raise CannotOpen(
                f"Shard {self._number} lives on node {home} by now, not on node {self._node}."
            )

    async def execute(self, message: bytes, release: str = "") -> bytes:
        """One batch of calls (batching.pack_calls) -> their replies (batching.pack_replies).
        release: the sender's. Raises OtherRelease before it reads a call of another one.
        """
        check_release(release, self._release, f"Shard {self._number}")
        return await self._execute(message)

    async def _execute(self, message: bytes, early: Early | None = None) -> bytes:
        shard, calls = await self._opened(), unpack_calls(message)
        try:
            if early is None:
                return pack_replies(await shard.execute_many(calls))
            return pack_replies(
                await shard.execute_many(calls, lambda part: early(pack_replies(part)))
            )
        except Exception:
            self._end()

    async def status(self) -> dict[str, Any]:
        shard = await self._opened()
        return {**await shard.status(), "pid": os.getpid(), "release": self._release}

    async def order(self, step: str, *given: Any) -> Any:
        """One step of a slot's move (runtime/shard/slot_moves.py)."""
        shard = await self._opened()
        try:
            return await shard.order(step, *given)
        except StorageFailed:
            self._end()

    async def _end_when_fenced(self, shard: ShardLike) -> None:
        """Ray opens its directory again then, which is refused, by name, until the actor is
        stopped.
        """
        log.critical(
            "shard %d is owned by another process by now: %s",
            self._number,
            await shard.until_fenced(),
        )
        self._end()

    def _end(self) -> NoReturn:
        log.critical(
            "shard %d failed; its process ends and opens the store anew",
            self._number,
            exc_info=True,
        )
        logging.shutdown()
        os._exit(EXIT_STORAGE_FAULT)

    async def drain(self) -> None:
        """Refuse new calls, finish those that run, write checkpoints and close the store."""
        async with self._opening:
            if self._shown is not None:
                self._shown.cancel()
            if self._shard is not None:
                await self._shard.drain()
                await self._shard.checkpoint()
                await self._shard.close()
                await asyncio.to_thread(tracing.stop)
                unix_socket.remove(short_cut(self._settings, self._number))


def shard_name(number: int, node: str = "") -> str:
    return f"shard-{number}@{node}" if node else f"shard-{number}"


def home_of(name: str) -> tuple[int, str] | None:
    """The shard and the node that an actor is named after; None when it is no shard of a node."""
    shard, at, node = name.partition("@")
    return (int(shard.removeprefix("shard-")), node) if at else None


def namespace(settings: Settings) -> str:
    """What Ray calls the installation: the namespace of its actors, and its Serve application."""
    return (
        _own_name(settings) if settings.cluster.name is None else f"mneme-{settings.cluster.name}"
    )


def _own_name(settings: Settings) -> str:
    """A name for this machine's data directory."""
    return (
        "mneme-"
        + hashlib.sha256(
            f"{os.uname().nodename}:{settings.data_dir.resolve()}".encode()
        ).hexdigest()[:10]
    )


def short_cut(settings: Settings, number: int) -> Path:
    """Where a gateway on the shard's node reaches it without Ray."""
    return unix_socket.socket_path(_own_name(settings), shard_name(number))


def start_shards(settings: Settings, shards: int, opener: str) -> list[Any]:
    """Create the shard actors that do not exist yet, on this node; -> handles by shard number."""
    return [start_shard(settings, number, opener) for number in range(shards)]


def start_shard(settings: Settings, number: int, opener: str, node: str = "") -> Any:
    """The handle of a shard's actor on the node of that name, which is created where there is none.
    It does not open by itself at first.
    """
    import ray

    return (
        ray.remote(ShardActor)
        .options(
            name=shard_name(number, node),
            namespace=namespace(settings),
            label_selector=nodes.selector(node) if node else nodes.this_node(),
            lifetime="detached",
            get_if_exists=True,
            # a share for placement, not a limit: a shard must fit beside the gateway on two cores
            num_cpus=0.1,
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
    """Wait until every shard is open. Raises the opener's own error, TimeoutError, or RuntimeError
    when a process ended.
    """
    import ray.exceptions

    try:
        ray.get(opening, timeout=seconds)
    except ray.exceptions.RayTaskError as failed:
        raise failed.cause from None
    except ray.exceptions.GetTimeoutError:
        raise TimeoutError(f"The shards were not open within {seconds:.0f} seconds.") from None
    except ray.exceptions.RayError as ended:
        raise RuntimeError(f"A shard's process ended while it opened its store: {ended}") from ended


def leftover_actors(settings: Settings) -> list[list[Any]]:
    """Handles of every actor of the installation, such as those of a service that was killed on a
    cluster that lives on.

    In the order in which they are to be stopped, those of a group together.
    """
    import ray

    names = nodes.named_actors(namespace(settings))
    groups = [
        [name for name in names if name == SUPERVISOR],
        [name for name in names if name != SUPERVISOR],
    ]
    return [
        [ray.get_actor(name, namespace=namespace(settings)) for name in group] for group in groups
    ]


def stop_shards(handles: Sequence[Any], seconds: float) -> bool:
    """Drain, checkpoint and close every shard, then end its process; -> whether all managed within
    the time.
    """
    import ray.exceptions

    done, late = ray.wait(
        [handle.drain.remote() for handle in handles], num_returns=len(handles), timeout=seconds
    )
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
