"""The `mneme` command: serve, status, logs, import, export, ingest, doctor, admin and others.

Whatever goes wrong at start ends with one sentence on standard error and a non-zero status, never
with a traceback. What may be asked for is in arguments.py; each command is one function of
commands.py, and those of the operator are in admin.py, admin_storage.py and admin_cluster.py. What
is heavy (Ray, the shards, the model) is imported only by the command that needs it, and everything
else by `main`: whoever interrupts the command while it loads is no reason for a traceback either.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["main", "parser"]

INTERRUPTED = 130  # as a shell counts SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; -> its exit status."""
    with _interruptible():
        from runtime.cli import ending

    try:
        return ending.run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """What may be asked for."""
    from runtime.cli import arguments

    return arguments.parser()


@contextmanager
def _interruptible() -> Iterator[None]:
    """An interrupt ends the process at once: in the middle of an import, libraries make errors of
    their own of it, or pass over it.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> NoReturn:
    os._exit(INTERRUPTED)
