"""`mneme` begun in a process that has imported it already: forked from one that does nothing else,
by the standard library's fork server. A start by exec imports for a second first, and a run of the
tests starts some hundred services.

What runs is the command itself, in a process of its own that ends, is killed and is waited for as
any other. As a shell would begin it, by exec, do tests/runtime/cli/test_cli.py, the tests of
documents and of other environments, and whatever asks for engine "ray".
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

from tests.support import ROOT

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.support.imported"])


class WarmProcess:
    """`mneme` with these arguments: what subprocess.Popen offers of a process, as far as tests ask.

    errors  a file for its standard error
    """

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str], errors: IO[Any]):
        ours, theirs = os.pipe()
        files = [DupFd(descriptor) for descriptor in (theirs, errors.fileno())]
        self._process = _SERVER.Process(
            target=_run, args=(list(arguments), dict(variables), *files), daemon=False
        )
        self._process.start()
        os.close(theirs)
        self.stdout = io.TextIOWrapper(os.fdopen(ours, "rb"))
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("mneme", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], variables: dict[str, str], output: Any, errors: Any) -> None:
    for file, number in ((output, 1), (errors, 2)):
        descriptor = file.detach()
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(ROOT)
    from runtime.cli import main

    sys.argv = [str(Path(sys.executable).with_name("mneme")), *arguments]
    sys.exit(main(arguments))
