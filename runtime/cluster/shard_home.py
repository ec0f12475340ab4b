"""How a shard of a cluster comes to have its directory on the node where the placement says that it
lives.

    the directory is there                  it is opened; the log in object storage says whether it
                                            is still the shard's
    it is there, and was overtaken          it is set aside, and the shard restored
    there is none, and never was a log      a new shard: an empty one is made
    there is none, but a log                the shard is restored from the log, and its owner from
                                            then on

What is set aside is kept in `set-aside/` for the operator and never served: in `local` mode it may
hold the last moments that a lost node had not shipped. Restoring takes the shard's next epoch
(storage/replication/restore.py), so whoever owned it until then acknowledges nothing more, wherever
it is and whatever it believes.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import time
from collections.abc import Awaitable, Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.installation import shard_directory, shard_place
from runtime.placement import Placement
from runtime.settings import Settings
from storage.replication import ObjectStore, Restored, Superseded, newest_epoch, restore
from storage.store import DATA_FILE, StoreError
from storage.store import LOCK_FILE as STORE_LOCK_FILE

if TYPE_CHECKING:
    from runtime.shard import (
        Shard,
    )  # it takes a second to load, and the command line needs this file too

log = logging.getLogger("mneme.shard_home")

SET_ASIDE = "set-aside"


async def open_at_home(
    settings: Settings, number: int, make: Callable[[], Awaitable[Shard]]
) -> Shard:
    """The shard, open. make: a Shard over the directory, not open yet. Raises StoreError."""
    objects = ObjectStore(str(settings.object_store.url)).below(
        shard_place(str(settings.cluster.name), number)
    )
    directory = shard_directory(settings.data_dir, number)
    if (directory / DATA_FILE).exists():
        try:
            return await _opened(await make(), create=False)
        except Superseded as overtaken:
            log.error("shard %d: %s", number, overtaken)
            await asyncio.to_thread(set_aside, settings.data_dir, number)
    if (await asyncio.to_thread(newest_epoch, objects))[0] == 0:
        return await _opened(await make(), create=True)
    found = await asyncio.to_thread(
        restore,
        objects,
        directory,
        take_over=True,
        owner=f"restore on {settings.data_dir}",
        replicated=settings.durability.mode == "replicated",
    )
    log.warning(
        "shard %d is restored up to commit %d, made at %d ms", number, found.sequence, found.at
    )
    return await _opened(await make(), create=False, restored=found)


async def _opened(shard: Shard, *, create: bool, restored: Restored | None = None) -> Shard:
    await shard.open(create=create)
    shard.restored = restored
    return shard


def set_aside(data_dir: Path, number: int) -> Path | None:
    """Put a shard's directory where it is kept and never served; -> where, None when a process has
    it open. Raises StoreError.
    """
    directory = shard_directory(data_dir, number)
    target = data_dir / SET_ASIDE / f"{number:04d}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    try:
        with (directory / STORE_LOCK_FILE).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            directory.rename(target)
    except BlockingIOError:
        return None
    except OSError as refused:
        raise StoreError(f"{directory} cannot be set aside: {refused}.") from refused
    log.error("%s was overtaken by another node; it is kept in %s", directory, target)
    return target


def held_shards(data_dir: Path) -> list[int]:
    """Numbers of the shards that have a store here."""
    return sorted(
        int(path.parent.name)
        for path in (data_dir / "shards").glob(f"[0-9][0-9][0-9][0-9]/{DATA_FILE}")
    )


def set_strangers_aside(
    settings: Settings, placement: Placement, node: str, alive: Container[str]
) -> list[int]:
    """Set aside what lives on another node that is there; -> the shards whose directories stay."""
    kept = []
    for number in held_shards(settings.data_dir):
        owner = placement.shards[number].node if number < len(placement.shards) else ""
        if (
            owner in ("", node)
            or owner not in alive
            or set_aside(settings.data_dir, number) is None
        ):
            kept.append(number)
    return kept
