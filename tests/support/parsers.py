"""The confined processes that read documents, seen from outside; any of them may end meanwhile."""

from __future__ import annotations

import contextlib

import psutil


def parsers(pid: int) -> list[psutil.Process]:
    """Those that run below a process."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        # One that has ended, and is only not yet waited for, has no command line.
        with contextlib.suppress(psutil.NoSuchProcess):
            if "parsing" in child.cmdline():
                found.append(child)
    return found


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
