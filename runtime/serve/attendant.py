"""What the process of a service on a Ray of its own is while it runs: this file, which waits.

A start imports Ray, Serve and every plugin, 140 MB that nobody needs as long as nothing starts or
ends. So the process that has started everything becomes this program, and this one becomes
closing.py when the service is to end. Its process id, its children and its standard streams stay
what they are. The signals that end a service are blocked all the while: one that comes between two
programs waits for the next. Only the standard library is imported here, and no package of ours.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Mapping

_WATCH_SECONDS = 1.0


def until_the_end(pillars: Mapping[int, str], signals: set[int], taken: int) -> str:
    """Wait for one of these signals, "", or for the end of a child process that the service cannot
    do without, the sentence that names it.

    pillars  name of each by process id
    signals  blocked in this process
    taken    a pipe, in which lie those that a thread of the program before took
    """
    if select.select([taken], [], [], 0)[0] and os.read(taken, 1):
        return ""
    os.close(taken)
    while signal.sigtimedwait(signals, _WATCH_SECONDS) is None:
        for process_id, name in pillars.items():
            if _has_ended(process_id):
                return f"{name}, process {process_id}, has ended"
    return ""


def _has_ended(process_id: int) -> bool:
    try:
        return os.waitpid(process_id, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def main(orders: str) -> int:
    """Wait, then become what ends the service. orders: JSON, as own_ray.py writes it."""
    given = json.loads(orders)
    pillars = {int(process_id): name for process_id, name in given["pillars"].items()}
    loss = until_the_end(pillars, set(given["signals"]), given["taken"])
    ending = [sys.executable, *given["ending"], loss]
    try:
        os.execv(sys.executable, ending)
    except OSError as failed:  # such as of an environment that was removed meanwhile
        # Ray's processes end with this one. What they have acknowledged is on disk.
        print(f"mneme serve: {sys.executable}: {failed.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
