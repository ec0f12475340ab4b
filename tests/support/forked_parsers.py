"""The confined process of the parsers many times a second: one that has imported them all forks for
each file, and the fork does what the process that the service starts does, from its limits to its
answer (plugins/documents/parsing/__main__.py).

    with ForkedParsers() as parsers:
        ended = parsers.run(order, content)

The process that forks is this module, by itself: to it the parsers are the package `parsing`.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
_READ_BYTES = 1024 * 1024
_MODULES = ("__main__", "audio", "markup", "office", "pdf", "pictures", "plain", "subtitles")
_LATER = ("sheets", "slides", "word")  # which office imports


class Ended(NamedTuple):
    """status: as of subprocess, negative for a signal, None for one that was killed at its time's
    end; seconds: of the processor; resident_bytes: the most it had.
    """

    output: bytes
    status: int | None
    seconds: float
    resident_bytes: int


class ForkedParsers:
    """bounds: memory_bytes and seconds of each fork; twice as long on the clock, since others may
    have the processor.
    """

    def __init__(self, memory_bytes: int, seconds: int, output_bytes_max: int):
        self._bounds = {"confined": True, "memory_bytes": memory_bytes, "seconds": seconds}
        self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115 (closed at the end)
        command = [sys.executable, "-P", "-s", __file__, self._file.name, str(output_bytes_max)]
        environment = {
            "PYTHONPATH": str(ROOT / "plugins/documents"),
            "LC_ALL": "C.UTF-8",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
        )

    def __enter__(self) -> ForkedParsers:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        with self._process, self._file:
            pass

    def run(self, order: dict[str, Any], content: bytes) -> Ended:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(content)
        self._file.flush()
        process.stdin.write(json.dumps({**self._bounds, **order}).encode() + b"\n")
        process.stdin.flush()
        ended = json.loads(process.stdout.readline())
        output = process.stdout.read(ended.pop("output_bytes"))
        return Ended(output, **ended)


def serve(path: str, output_bytes_max: int) -> None:
    """A fork for each line of standard input, on the file of that path."""
    for name in (*_MODULES, *_LATER):
        importlib.import_module(f"parsing.{name}")
    for line in sys.stdin.buffer:
        order = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _parse(path, writing, line.decode())
        os.close(writing)
        with os.fdopen(reading, "rb", 0) as pipe:
            output, in_time = _output(pipe, time.monotonic() + 2 * order["seconds"] + 5)
        if not in_time or len(output) > output_bytes_max:
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        ended = {
            "status": os.waitstatus_to_exitcode(status) if in_time else None,
            "seconds": used.ru_utime + used.ru_stime,
            "resident_bytes": used.ru_maxrss * 1024,
            "output_bytes": len(output),
        }
        sys.stdout.buffer.write(json.dumps(ended).encode() + b"\n" + output)
        sys.stdout.buffer.flush()


def _parse(path: str, answers: int, order: str) -> None:
    """In the fork, which ends here."""
    file = os.open(path, os.O_RDONLY)
    os.dup2(file, 0)
    os.dup2(answers, 1)
    os.closerange(3, 256)
    os.setsid()
    sys.argv = ["parsing", order]
    sys.modules["parsing.__main__"].main()
    sys.exit()


def _output(pipe: BinaryIO, deadline: float) -> tuple[bytes, bool]:
    """What the fork writes until it ends, and whether it did in time."""
    pieces = []
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = pipe.read(_READ_BYTES)
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
    return b"".join(pieces), False


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
