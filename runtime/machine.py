"""What of the machine this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Processors that this process can keep busy, at least 1: those it may run on, or fewer where
    its control group, as a container's limit is one, gives it less time than all of them. A part
    of one counts as one.

    root    where /proc and /sys are
    """
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min([allowed, *map(math.ceil, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """Seconds a second that this process's control groups have, each with those above it, where
    one is bounded: by cpu.max, or, in the first version, by two files.
    """
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # this system has none
        return
    for membership in memberships:
        _, controllers, path = membership.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounted = root / "sys/fs/cgroup" / controllers
        folder = mounted / path.lstrip("/")
        # Inside a container the path may be that of the host, which is not to be seen there.
        for group in {folder, *folder.parents}:
            if group.is_relative_to(mounted):
                yield from _quota(group)


def _quota(group: Path) -> Iterator[float]:
    bounds = _words(group / "cpu.max") or [
        *_words(group / "cpu.cfs_quota_us"),
        *_words(group / "cpu.cfs_period_us"),
    ]
    if len(bounds) == 2 and bounds[0] not in ("max", "-1"):
        yield int(bounds[0]) / int(bounds[1])


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
