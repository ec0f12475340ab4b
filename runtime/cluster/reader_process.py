"""The process of one reader: `python -m runtime.cluster.reader_process FD`, started by the process
of its shard (readers.py), at the other end of the socket FD, and ended with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import uvloop

from runtime import tracing
from runtime.account_work import account_work
from runtime.api.operation import Call, Principal
from runtime.cluster.frames import Frames
from runtime.cluster.process import (
    ASIDE_THREADS,
    SWITCH_SECONDS,
    collect_seldom,
    log_to_file,
    resolve,
)
from runtime.cluster.release import check_release, release_of
from runtime.errors import PLUGIN_RAISES
from runtime.limits import READER_BEAT_SECONDS
from runtime.log_lines import REQUEST_ID
from runtime.processor_turns import LAST
from runtime.settings import Settings
from runtime.shard import ReadingShard
from storage.store import Scope

log = logging.getLogger("mneme.readers")

_PR_SET_PDEATHSIG = 1

# Kinds of messages to a reader, each with what follows it: number, call, principal and scope;
# sequence and notes of a commit; place in the keyring; scopes.
READ, FEED, KEY, FORGET = range(4)
# And those from it: nothing; what accounts took there since the last one; number, what was
# answered, the scope where it is large.
READY, BEAT, ANSWER = range(3)


class Hello(NamedTuple):
    """The first message to a reader. opener: names (settings, number of the shard, how many
    readers it has) -> a ReadingShard; name: the reader's; release: of the shard's process.
    """

    settings: Settings
    opener: str
    number: int
    count: int
    name: str
    release: str


class _Process:
    def __init__(self) -> None:
        self._shard: ReadingShard | None = None
        self._frames = Frames(self._received, lambda: self._ended.set())
        self._under_way: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def run(self, connected: socket.socket) -> None:
        await self._frames.connect(connected)
        beating = asyncio.create_task(self._beat())
        await self._ended.wait()
        beating.cancel()

    def _received(self, message: Any) -> None:
        if self._shard is None:
            try:
                self._shard = self._opened(message)
            except Exception:
                log.exception("the store cannot be read beside its shard")
                self._ended.set()
            else:
                self._frames.send((READY,))
            return
        kind, *given = message
        if kind == READ:
            task = asyncio.get_running_loop().create_task(self._read(self._shard, *given))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        elif kind == FEED:
            self._shard.feed(*given)
        elif kind == KEY:
            self._shard.follow_key(*given)
        else:
            self._shard.forget(*given)

    def _opened(self, hello: Hello) -> ReadingShard:
        log_to_file(hello.settings, hello.name)
        tracing.start(hello.name)
        check_release(release_of(hello.opener), hello.release, "The shard")
        opened = resolve(hello.opener)(hello.settings, hello.number, hello.count)
        collect_seldom()
        return opened

    async def _read(
        self, shard: ReadingShard, number: int, call: Call, principal: Principal, scope: Scope
    ) -> None:
        REQUEST_ID.set(call.request_id)
        answered = None
        try:
            with tracing.resumed(call.trace, "reader", call.operation):
                answered = await shard.answer(call, principal, scope)
        except PLUGIN_RAISES as failed:  # the shard's process tries it, and tells what comes of it
            log.warning("%s was not answered here: %r", call.operation, failed)
        is_large = shard.is_large(scope)
        self._frames.send((ANSWER, number, answered, scope if is_large else None))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(READER_BEAT_SECONDS)
            self._frames.send((BEAT, account_work().hand_over()))


async def _serve(connected: socket.socket) -> None:
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(ASIDE_THREADS, "mneme-aside")
    )
    await _Process().run(connected)


def main() -> None:
    if sys.platform == "linux":  # elsewhere it ends when it finds the other end gone
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Where cores are short, what is answered in microseconds, and the only writer, go first.
    os.nice(LAST)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the shard ends this
    sys.setswitchinterval(SWITCH_SECONDS)
    connected = socket.socket(fileno=int(sys.argv[1]))
    with (
        contextlib.suppress(KeyboardInterrupt),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(connected))
    logging.shutdown()
    os._exit(0)  # what is still read is for nobody


if __name__ == "__main__":
    main()
