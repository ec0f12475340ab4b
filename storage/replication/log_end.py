"""Says where the log of a shard ends, apart from the log itself: that segments are missing in its
middle shows by those behind them, and nothing lies behind the newest.

    ends/<number>-<sequence>    the log was stored up to this segment, whose last commit that is

The name is all of it. The shard's owner writes it as it begins, every SECONDS_BETWEEN while there
is something new, on a thread of its own so that no write waits for it, and at its end. After a kill
the log may go on for so long behind it; it never says too much, not even a fenced owner's, since
what that stored is part of the log. The highest counts. Earlier releases wrote none.
"""

from __future__ import annotations

import logging
import threading

from storage.replication.epochs import ENDS, end_name, stored_end
from storage.replication.object_store import ObjectStore, ObjectStoreFailed
from storage.replication.packs import packs
from storage.replication.segment import segment_places
from storage.replication.shipper import LogShipper
from storage.replication.snapshots import snapshots

log = logging.getLogger("mneme.log")

SECONDS_BETWEEN = 10.0


class LogEndKeeper:
    """Call start() when the shipper is open, close() when it is closed."""

    def __init__(self, objects: ObjectStore, shipper: LogShipper):
        self._objects, self._shipper = objects, shipper
        self._old: list[str] = []  # what it said last
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mneme-log-end", daemon=True)

    def start(self) -> None:
        """Say it now, and from time to time."""
        self._try()
        self._thread.start()

    def close(self) -> None:
        """Say it once more, unless the object store is away."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shipper.failing_since is None:
            self._try()

    def say(self) -> None:
        """Have the object store say where the log ends. Raises ObjectStoreFailed."""
        state = self._shipper.state
        name = end_name(state.number, state.sequence)
        if [name] == self._old:
            return
        # What lies there as an owner begins may say more: segments that it stores anew.
        old = self._old or [f"{ENDS}/{each}" for each in self._objects.names(ENDS)]
        self._objects.put_new(name, b"")
        self._objects.delete(each for each in old if each != name)
        self._old = [name]

    def _run(self) -> None:
        while not self._closing.wait(SECONDS_BETWEEN):
            self._try()

    def _try(self) -> None:
        try:
            self.say()
        except ObjectStoreFailed as failed:
            log.warning("where the log ends is not said: %s", failed)


def missing_segments(
    objects: ObjectStore, *, after: int | None = None, known: int = 0
) -> list[int]:
    """Numbers of the segments that a restore needs and does not find. Raises ObjectStoreFailed.

    after  the last one that the restore's snapshot has; by default the newest snapshot's
    known  the last one that the shard's directory has stored
    """
    # In this order no segment seems to be missing that goes meanwhile: it is in a pack by then, or
    # older than a snapshot.
    last = max(known, stored_end(objects).number)
    there = {number for _, number in segment_places(objects)}
    packed = packs(objects)
    if after is None:
        after = max((manifest.state.number for _, manifest in snapshots(objects)), default=0)
    last = max(last, after, *there)
    # The last one of a log is never packed nor let go of.
    due = set(range(after + 1 if there else after, last + 1)) - {0}
    return sorted(due.difference(there, *(range(first, end + 1) for first, end in packed)))
