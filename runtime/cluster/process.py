"""What every process that holds shards has in common: how it finds and opens one, what is set once
it is open, where it logs, and how it ends.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TextIO

from runtime.api.operation import Call, Reply
from runtime.importing import without_collector
from runtime.limits import LOG_FILE_BYTES_MAX
from runtime.log_lines import configure_logging
from runtime.processor_turns import come_soon
from runtime.settings import Settings

log = logging.getLogger("mneme.process")

EXIT_STORAGE_FAULT = 70  # EX_SOFTWARE of sysexits.h
SWITCH_SECONDS = 0.0002
ASIDE_THREADS = 32
# What a request used goes without the collector (tests/runtime/test_garbage.py), which holds the
# interpreter's lock while it looks: a twentieth of a second at 10,000 objects of imports under way.
YOUNG_OBJECTS_MAX = 250_000


class CannotOpen(Exception):
    """A shard lacks something beside its store; the message is one sentence."""


class ShardLike(Protocol):
    """What the process around it needs of runtime.shard.Shard, already open."""

    async def execute(self, call: Call) -> Reply: ...
    async def execute_many(
        self, calls: list[Call], early: Callable[[Sequence[Reply | None]], None] | None = None
    ) -> Sequence[Reply | None]: ...
    async def order(self, step: str, *given: Any) -> Any: ...
    async def status(self) -> dict[str, Any]: ...
    async def until_fenced(self) -> str: ...
    async def checkpoint(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


Opener = Callable[[Settings, int], Awaitable[ShardLike]]


def resolve(reference: str) -> Any:
    """ "package.module:name" -> the object; how a process is told which function to run without
    shipping code to it.
    """
    module, _, name = reference.partition(":")
    with without_collector():
        return getattr(importlib.import_module(module), name)


async def open_shard(settings: Settings, number: int, opener: str) -> ShardLike:
    """Open a shard in this process. `opener` names an Opener. Raises what the storage says."""
    opening: Opener = resolve(opener)
    shard = await opening(settings, number)
    # More than are busy at once, since a lease is renewed in one of them, too.
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(ASIDE_THREADS, "mneme-aside")
    )
    come_soon()
    # The model's thread needs the interpreter's lock for microseconds between two runs; it should
    # not wait out a turn of a search.
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_seldom()
    return shard


def collect_seldom() -> None:
    """Have the garbage collector look seldom, and never again at what is loaded by now, which
    stays: for the end of a start.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])


def log_to_file(settings: Settings, name: str, *others: TextIO) -> None:
    """Send the logging of this process to logs/<name>.log in the data directory, and to `others`;
    Ray keeps no log that outlives a worker. Where the file cannot be written the process goes on
    without: gateways and the supervisor need nothing of that disk.
    """
    path = settings.data_dir / "logs" / f"{name}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_FILE_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        file = path.open("a", buffering=1, encoding="utf-8")
    except OSError as refused:
        configure_logging(settings, *others)
        log.error("%s cannot be written: %s", path, refused)
    else:
        configure_logging(settings, file, *others)
