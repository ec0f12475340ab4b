"""Runs one parser on one file, in a process of its own that can be killed, and answers for whatever
becomes of it.

The child (plugins/documents/parsing/) gets the file as its standard input, as a file without a name
that it alone can read, an empty environment, and bounds on memory, processor time, files and system
calls that it puts on itself before it reads a byte. The clock on the wall and the size of the
answer are watched from here. Whatever happens in there ends as an Answer or as a ParseFailed with a
reason; nothing reaches the service.

At most PARSERS_AT_ONCE_MAX children run in a process of the service. Nobody queues here: a caller
that finds no room is told so. Where the caller is cancelled, as when the service stops, its child
is killed at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from plugins.documents.limits import PARSER_OUTPUT_BYTES_MAX, PARSERS_AT_ONCE_MAX
from plugins.documents.parsing.extraction import Extraction, ParseFailed, ParserReply
from runtime.processor_turns import last
from storage.blobs import Blob, BlobDamaged, BlobMissing, BlobStore

_decode_answer = msgspec.msgpack.Decoder(ParserReply).decode

FOLDER = Path(__file__).resolve().parent  # in which the child finds its package
_READ_BYTES = 1024 * 1024
_CHILDREN = ThreadPoolExecutor(PARSERS_AT_ONCE_MAX, "parser")
_running = 0


class NoRoom(Exception):
    """As many parsers run as may."""


class Leash:
    """Kills a child on behalf of another thread, one that is yet to start as well."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._pulled = False

    def hold(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._child = child
            if self._pulled:
                child.kill()

    def pull(self) -> None:
        with self._lock:
            self._pulled = True
            if self._child is not None:
                self._child.kill()


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A file to be parsed, and what its parser may take: bytes of memory, seconds on the clock and
    of the processor; confined: nothing at all, where it cannot be confined wholly.
    """

    blobs: BlobStore
    owner: str
    blob: Blob
    media_type: str
    filename: str
    memory_bytes: int
    seconds: float
    confined: bool = False

    async def parse(self, task: str, **further: Any) -> ParserReply:
        """The child's answer to a task of plugins/documents/parsing/__main__.py. Raises
        ParseFailed, NoRoom.
        """
        global _running
        if _running >= PARSERS_AT_ONCE_MAX:
            raise NoRoom
        order = {
            "task": task,
            "media_type": self.media_type,
            "filename": self.filename,
            "confined": self.confined,
            **further,
        }
        leash = Leash()
        _running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                _CHILDREN, self._parse, order, leash
            )
        finally:
            _running -= 1
            leash.pull()

    async def read(self, charset: str | None = None) -> Extraction:
        """All that the file says; charset: the encoding that is said of a text. Raises ParseFailed,
        NoRoom.
        """
        extraction = (await self.parse("read", charset=charset)).extraction
        if extraction is None:
            raise LookupError("the parser read a file and gave nothing")
        return extraction

    def _parse(self, order: Mapping[str, Any], leash: Leash) -> ParserReply:
        try:
            with self.blobs.copy(self.owner, self.blob) as file:
                return parse_file(file, order, self.memory_bytes, self.seconds, leash)
        except (BlobMissing, BlobDamaged):
            raise ParseFailed(
                "file_lost", "The stored file is gone or damaged; upload it again."
            ) from None


def parse_file(
    file: BinaryIO,
    order: Mapping[str, Any],
    memory_bytes: int,
    seconds: float,
    leash: Leash | None = None,
) -> ParserReply:
    """Run the child on an open file. Blocks, until somebody pulls the leash. Raises ParseFailed."""
    bounds = {
        "confined": False,
        "memory_bytes": memory_bytes,
        "seconds": max(1, round(seconds)),
    }
    environment = {
        "PYTHONPATH": str(FOLDER),
        "LC_ALL": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    child = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-s",
            "-m",
            "parsing",
            json.dumps({**bounds, **order}),
        ],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        # Of no session of its own: the scheduler of Linux shares the processor among sessions
        # first, so that niceness counts within one alone (sched(7), autogroups).
        process_group=0,
    )
    with child:
        # Whoever waits for an answer goes first, but not for ever: a file has so many seconds.
        os.setpriority(os.PRIO_PROCESS, child.pid, last())
        if leash is not None:
            leash.hold(child)
        try:
            output = _output(child, time.monotonic() + seconds)
            child.wait(seconds)
        finally:
            child.kill()
    return _answer(output, child.returncode)


def _output(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """All that the child writes, until it ends. Raises ParseFailed when that takes too long or
    grows too large.
    """
    pieces, size = [], 0
    assert child.stdout is not None  # a pipe was asked for
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise ParseFailed("timed_out", "Parsing this file takes more time than it may.")
            piece = os.read(child.stdout.fileno(), _READ_BYTES)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
            if size > PARSER_OUTPUT_BYTES_MAX:
                raise ParseFailed(
                    "too_much_text", "The content of this file is larger than it may be."
                )


def _answer(output: bytes, status: int) -> ParserReply:
    if status == -signal.SIGXCPU:
        raise ParseFailed("timed_out", "Parsing this file takes more time than it may.")
    if status != 0:
        raise ParseFailed(
            "parser_crashed",
            "The parser broke on this file; it is damaged, or larger than can be parsed.",
        )
    answer = _decode_answer(output)
    if answer.failure is not None:
        raise ParseFailed(answer.failure.reason, answer.failure.message)
    return answer
