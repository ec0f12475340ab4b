"""An owner's lease on its shard: for how long it may answer without having asked whether the shard
is still its own.

    owner   asks ASKED_IN_A_LEASE times in `seconds` whether the next epoch was taken. A "no" is
            good for `seconds`, by the owner's own clock, counted from before it asked. After that
            it acknowledges nothing and answers no read, until it hears another "no"
    taker   takes the next epoch, and from then on no question is answered "no". When it has waited
            `seconds`, which stand in the owner's claim, by a clock of its own, and CLOCK_RATES
            more, no lease is left but its own

So two owners never answer at the same time, whoever is paused, cut off or late, and no clock is
compared with another one: they may only not differ by more than CLOCK_RATES in how fast they go.
An owner that ended in order says so (`released`), and one whose directory the taker has locked has
ended, too: then nobody waits.

The question is one for the name of the next epoch, which is made with put-if-absent. Every object
store shows an object to whoever asks after it was made; so does a directory (object_store.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from storage.replication.object_store import ObjectStoreFailed

log = logging.getLogger("mneme.log")

ASKED_IN_A_LEASE = 5
CLOCK_RATES = 0.1  # by how much of a second the seconds of two machines differ at most
RETRY_SECONDS = 0.2
CLOSE_SECONDS_MAX = 1.0

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def uptime() -> float:
    """Seconds that also count while the machine sleeps or the process is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def rest(seconds: float) -> None:
    """Let so much time pass, by this machine's clock."""
    time.sleep(max(0.0, seconds))


def home_of(directory: Path) -> str:
    """What tells this directory of a running machine from every other, its copies included; ""
    where that cannot be told.
    """
    try:
        at = directory.stat()
        return f"{_BOOT.read_text().strip()}:{at.st_dev}:{at.st_ino}"
    except OSError:
        return ""


class FormerLease:
    """What is left of a lease of so many seconds, made right after its epoch was ended."""

    def __init__(self, seconds: float):
        self._ends_at = uptime() + seconds * (1 + CLOCK_RATES)

    def wait_out(self) -> None:
        """Return when it has ended."""
        left = self._ends_at - uptime()
        if left > 0:
            log.warning("a former owner may answer for another %.1f s; waiting for that", left)
            rest(left)


class Lease:
    """Call start(), at the end close(). Safe from any thread.

    ask       whether the shard is still the owner's. Raises ObjectStoreFailed when nobody can say
    outlasts  a question that nobody can answer counts as a "no": the owner goes on, and may do so
              beside another one
    """

    def __init__(self, seconds: float, ask: Callable[[], bool], *, outlasts: bool):
        self.seconds = seconds
        self._ask, self._outlasts = ask, outlasts
        self._until = self._confirmed_at = uptime()
        self._lapsed = False
        self._closing, self._wanted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="mneme-lease", daemon=True)

    def start(self) -> None:
        """Begin with a lease, where one is to be had."""
        self.renew()
        self._thread.start()

    def close(self) -> None:
        """Ask no more. A question that hangs is left alone."""
        self._closing.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS_MAX)

    @property
    def is_valid(self) -> bool:
        """Whether the owner may answer now."""
        if uptime() < self._until:
            return True
        self._wanted.set()  # a machine that slept does not wait for the next turn
        return False

    @property
    def unconfirmed_seconds(self) -> float:
        """Seconds since it was last heard that the shard is the owner's."""
        return max(0.0, uptime() - self._confirmed_at)

    def renew(self) -> bool:
        """Ask once; -> whether there was an answer."""
        asked_at = uptime()
        try:
            is_ours = self._ask()
        except ObjectStoreFailed as failed:
            if self._outlasts:
                self._until = max(self._until, uptime() + self.seconds)
            elif not self._lapsed and uptime() >= self._until:
                self._lapsed = True
                log.error("nobody can say whether this shard is still ours; it waits: %s", failed)
            return False
        if is_ours:
            self._confirmed_at = max(self._confirmed_at, asked_at)
            self._until = max(self._until, asked_at + self.seconds)
            self._lapsed = False
        return True

    def _run(self) -> None:
        while not self._closing.is_set():
            if self.renew():
                self._wanted.wait(self.seconds / ASKED_IN_A_LEASE)
            else:
                self._closing.wait(min(RETRY_SECONDS, self.seconds / ASKED_IN_A_LEASE))
            self._wanted.clear()
