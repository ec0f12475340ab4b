"""Ships the commit log of one open store to object storage, as the one owner of its shard.

It owns, below the shard's place there,

    epochs/<n>, released/<n> who took the shard n-th (storage/replication/epochs.py)
    segments/<epoch>/<n>     the log (storage/replication/segment.py), each made with put-if-absent

and the store's ShippingState. It does not know what a commit means, nor who waits for it to be
stored: it tells `on_stored`.

Fencing. To own a shard is to hold its newest epoch, and to have put a segment of that epoch at the
end of the log. There is one name for the next segment, so of two owners one gets it: the other
finds the name taken by bytes that are not its own, tells `on_fenced` and ships nothing more. A
paused owner learns it at its first attempt. No clock takes part. What an owner does without putting
anything, such as a read, it does under its lease (storage/replication/lease.py), whose end a taker
waits for.

A put that failed is repeated with the same bytes, for as long as it takes; one that had succeeded
all the same shows by those bytes. After a crash, segments that landed are found and compared with
the log of the directory, and what is missing is shipped from there.

Where the log does not reach back to what was shipped (first start, commits without a log, a backlog
that was dropped), the next segment says that it does not continue, and `complete` is false until a
snapshot has been stored since.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from storage.replication.epochs import (
    Superseded,
    are_taken,
    lease_left_by,
    newest_epoch,
    newest_number,
    refuse_behind,
    refuse_unlisted,
    release,
    take_epoch,
)
from storage.replication.lease import FormerLease, home_of
from storage.replication.object_store import ObjectStore, ObjectStoreFailed
from storage.replication.segment import (
    NO_HASH,
    SEGMENT_BYTES_MAX,
    RecentSegments,
    Segment,
    SegmentDamaged,
    segment_folder,
    segment_name,
    unpacked,
)
from storage.store import Hold, LogGap, ShippingState, Store, StoreError, decode_record

log = logging.getLogger("mneme.log")

HEARTBEAT_SECONDS = 2.0
BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.1, 5.0
OPEN_SECONDS_MAX = 30.0
CLOSE_SECONDS_MAX = 10.0
SHIPPING_SHARE_MAX = 0.02  # of the time, where nobody waits for it
GATHER_SECONDS_MAX = 0.6  # so that the log is less than a second behind
GATHER_TICK_SECONDS = 0.1


def refuse_superseded(store: Store) -> None:
    """Raise Superseded where the directory knows that another owner has taken its shard."""
    if store.log.state().superseded:
        raise Superseded(
            f"{store.directory}: its shard was taken by another process; what is here must not be "
            "served, with the object store or without it. Restore the shard from object storage."
        )


class LogShipper:
    """Call open(), then start(), at the end close(). Callbacks come from its thread.

    replicated      ship a commit at once, since somebody waits for it; else gather for
                    interval_seconds or SEGMENT_BYTES_MAX
    backlog_bytes   of unshipped log; beyond it an owner that is not replicated drops the log and
                    asks for a snapshot instead
    lease_seconds   for how long this owner may answer after its epoch was ended (lease.py)
    on_stored       (sequence): every commit up to it is in object storage, and can be restored
    on_fenced       (why): nothing will be stored any more; nothing may be acknowledged any more
    """

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        *,
        owner: str,
        replicated: bool,
        interval_seconds: float,
        backlog_bytes: int,
        lease_seconds: float,
        on_stored: Callable[[int], None] = lambda sequence: None,
        on_fenced: Callable[[str], None] = lambda why: None,
    ):
        self._store = store
        self._objects = objects
        self._owner = owner
        self._replicated = replicated
        self._interval = interval_seconds
        self._backlog_bytes = backlog_bytes
        self._lease_seconds = lease_seconds
        self._on_stored, self._on_fenced = on_stored, on_fenced
        self._hold: Hold
        self._state = ShippingState()
        self._changing = (
            threading.Lock()
        )  # of _state and complete, which a snapshot changes from another thread
        self._broken_at, self._broken_since = 0, 0.0
        self._took = 0.0  # seconds, the last time something was shipped
        self._closing = threading.Event()
        self._hurry = threading.Event()
        self._give_up_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="mneme-log-shipper", daemon=True)
        self.complete = False  # whether a restore gives back what was shipped
        self.snapshot_due = threading.Event()
        self.fenced = False
        self.failing_since: float | None = None  # time.monotonic()
        self.failures = 0
        self.shipped_bytes = 0
        self.recent = RecentSegments()
        self.dropped = 0

    # --- taking the shard -------------------------------------------------------------------------

    def open(self) -> None:
        """Take the shard's next epoch, wait until no former owner may answer, and find the end of
        the log. Raises Superseded, ObjectStoreFailed, SegmentDamaged.
        """
        self._patiently(self._claim)
        self._hold_from(self._state.sequence)
        self._patiently(self._begin)
        if self.complete:
            self._on_stored(self._state.sequence)

    def _patiently(self, step: Callable[[], None]) -> None:
        """An object store that hiccups must not keep a shard closed."""
        deadline = time.monotonic() + OPEN_SECONDS_MAX
        for wait in backoff():
            try:
                return step()
            except ObjectStoreFailed:
                if time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)

    def _claim(self) -> None:
        state = self._store.log.state()
        refuse_superseded(self._store)
        newest, claim = newest_epoch(self._objects)
        refuse_unlisted(self._objects, newest)
        if claim is None:
            state = ShippingState()  # a place that no log was shipped to before
        elif claim.token not in (state.token, state.former):
            self._remember_superseded(state)
            raise Superseded(
                f"{self._store.directory}: its shard was taken by {claim.owner} (epoch {newest}) "
                "since; what is here must not be served. "
                "Restore the shard from object storage."
            )
        else:
            refuse_behind(self._objects, self._store)
        former, token = "" if claim is None else claim.token, os.urandom(16).hex()
        home = home_of(self._store.directory)
        # This directory's own former process has ended, since its lock is ours. A copy of the
        # directory, or its disk at another machine, says nothing of the process that wrote it.
        is_locked_out = claim is not None and claim.home == home != ""
        left = 0.0 if is_locked_out else lease_left_by(self._objects, newest, claim)
        # What proves the claim is on disk before the claim is made: it may succeed without our
        # hearing of it.
        state = msgspec.structs.replace(state, epoch=newest + 1, token=token, former=former)
        self._store.log.save(state)
        taken = take_epoch(
            self._objects,
            newest + 1,
            token,
            self._owner,
            lease_seconds=max(self._lease_seconds, left),
            home="" if left else home,  # it may end before the lease that it waits for has
        )
        if not taken:
            raise Superseded(
                f"{self._store.directory}: its shard is being taken by another process (epoch "
                f"{newest + 1})."
            )
        if left:
            FormerLease(left).wait_out()
            release(self._objects, newest + 1)  # nobody answers; it answered nobody itself
            return self._claim()
        self._state = state
        self._store.log.epoch = state.epoch

    def _hold_from(self, sequence: int) -> None:
        """Keep the log from what was shipped on; where it does not reach back so far, from now
        on.
        """
        log_, self.complete = self._store.log, False
        if self._state.number and not self._state.broken:
            try:
                self._hold = log_.hold(sequence)
                self.complete = True
                return
            except LogGap:
                log.warning(
                    "%s: the log does not reach back to what was shipped; a snapshot takes its "
                    "place",
                    self._store.directory,
                )
        self._hold = log_.hold()

    def _begin(self) -> None:
        """Put this epoch's first segment at the end of the log, past whatever an earlier attempt of
        this directory left there.
        """
        newest = newest_number(self._objects)
        if newest < self._state.number:
            log.error(
                "%s: the log's newest segments, %d to %d, are missing in object storage; a "
                "snapshot takes their place",
                self._store.directory,
                newest + 1,
                self._state.number,
            )
            self.complete = False
        while True:
            if self._state.number < newest and not self._objects.has(
                segment_name(self._state.tail, self._state.number + 1)
            ):  # it was packed, or let go of (storage/replication/packs.py): its name is not free
                raise Superseded(
                    f"{self._store.directory}: the log in object storage goes on to segment "
                    f"{newest}, and this directory knows {self._state.number}. "
                    "Restore the shard from object storage."
                )
            end = self._state.sequence if self.complete else self._store.sequence
            segment = self._segment(end, [], continues=self.complete, all_shredded=True)
            content, digest = segment.packed()
            name = segment_name(self._state.tail, segment.number)
            if self._objects.put_new(name, content):
                break
            landed = self._objects.get(name) or b""
            if landed == content:
                break
            if self._mended(name, segment.number, landed, content):
                break
            self._adopt(*unpacked(landed, segment.number, self._state.hash))
        self._hold.advance(end)
        self._advance(segment, digest)
        if not self.complete:
            self.snapshot_due.set()
        self._store.log.save(self._state)

    def _mended(self, name: str, number: int, landed: bytes, content: bytes) -> bool:
        """Whether the log's last segment was damaged and made way for this epoch's first. This
        directory stored it, or began to, and has its commits: they are shipped once more.
        """
        if not self.complete or not self._objects.may_tear:
            return False
        try:
            unpacked(landed, number, self._state.hash)
            return False
        except SegmentDamaged as damaged:
            if newest_number(self._objects) > number:
                raise
            log.warning("%s: %s It is stored anew.", self._store.directory, damaged)
        return self._objects.replace_torn(name, landed, content)

    def _adopt(self, segment: Segment, digest: bytes) -> None:
        """Count a segment in that was put before this epoch began. It is this directory's own, or
        the directory is behind the log.
        """
        ours = segment.epoch <= self._state.epoch and segment.last <= self._store.sequence
        if not segment.continues:
            self.complete = False
        elif ours and segment.records:
            try:
                mine = self._store.log.raw(self._state.sequence, sum(map(len, segment.records)))
                ours = [raw for _, raw in mine] == segment.records
            except LogGap:
                # it cannot be compared any more; a snapshot will say what this history is
                self.complete = False
        if not ours:
            raise Superseded(
                f"{self._store.directory}: the log in object storage has commits up to "
                f"{segment.last} that this directory has not. "
                "Restore the shard from object storage."
            )
        self._advance(segment, digest)

    # --- shipping ---------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS_MAX) -> None:
        """Ship what is left, for as long as that may take, and end. The store must still be
        open.
        """
        self._give_up_at = time.monotonic() + seconds
        self._closing.set()
        self.hurry()
        if self._thread.is_alive():
            self._thread.join()
        if not self.fenced:
            self._store.log.save(self._state)
            with contextlib.suppress(ObjectStoreFailed):  # then whoever comes next waits
                release(self._objects, self._state.epoch)

    def hurry(self) -> None:
        """Ship now what there is, because somebody waits for it."""
        self._hurry.set()
        self._store.log.grown.set()

    def verify(self) -> bool:
        """Ask whether this owner's epoch is still the newest, and stop if not. Raises
        ObjectStoreFailed, also where its own epoch is not there: of an empty place, such as that of
        a disk that is not mounted, nothing is learned.
        """
        epoch = self._state.epoch
        if self.fenced:
            return False
        own, following = are_taken(self._objects, (epoch, epoch + 1))
        if following:
            self._stop(f"epoch {epoch + 1} was taken")
            self._remember_superseded(self._state)
        elif not own:
            raise ObjectStoreFailed(
                f"{self._objects.url} lacks what this shard stored there (epoch {epoch}); is its "
                "disk mounted?"
            )
        return not self.fenced

    def made_complete(self, number: int) -> None:
        """A snapshot was stored that was begun when segment `number` was the last: what is shipped
        can be restored from it on, unless the next epoch was taken before that could be seen:
        whoever took it may not have found the snapshot. Raises ObjectStoreFailed.
        """
        if self.complete or number < self._broken_at or not self.verify():
            return
        with self._changing:
            if self.fenced or self.complete or number < self._broken_at:
                return
            self.complete = True
            self._state = msgspec.structs.replace(self._state, broken=False)
            self._store.log.keep(self._state)
            stored = self._state.sequence
        self._on_stored(stored)

    def continues_from(self, number: int) -> bool:
        """Whether the log has no gap after that segment, as far as this process knows."""
        return self.complete or number >= self._broken_at

    @property
    def state(self) -> ShippingState:
        return self._state

    def lag(self) -> dict[str, float]:
        """Commits that are not in object storage, and the seconds since the oldest of them; bytes:
        what the log takes on disk.
        """
        behind = self._store.sequence - self._state.sequence
        seconds = 0.0
        if behind > 0:
            try:
                first = self._store.log.raw(self._state.sequence, 1)[:1]
                seconds = max(
                    [0.0, *(time.time() - decode_record(raw).at / 1000 for _, raw in first)]
                )
            except LogGap:
                pass  # it was shipped, or dropped, just now
        if not self.complete:
            seconds = max(seconds, time.time() - self._broken_since)
        return {
            "records": max(0, behind),
            "seconds": seconds,
            "bytes": self._store.log.size()["bytes"],
        }

    def _run(self) -> None:
        grown, heard = self._store.log.grown, time.monotonic()
        try:
            while not self.fenced:
                if (
                    not grown.wait(max(0.0, heard + HEARTBEAT_SECONDS - time.monotonic()))
                    and not self._closing.is_set()
                ):
                    heard = self._heartbeat()
                    continue
                if not self._replicated and not self._closing.is_set():
                    self._gather()
                grown.clear()
                begun = time.monotonic()
                if self._ship():
                    heard = time.monotonic()
                    self._took = heard - begun
                if self._closing.is_set():
                    return
        except Exception as failed:
            log.critical("the log cannot be shipped any more", exc_info=failed)
            self._stop(str(failed))

    def _gather(self) -> None:
        """Wait for more to ship: up to the interval, longer where storing takes long, or up to a
        whole segment.
        """
        seconds = max(self._interval, min(GATHER_SECONDS_MAX, self._took / SHIPPING_SHARE_MAX))
        deadline, before = time.monotonic() + seconds, self._store.log.recorded_bytes
        while (
            left := deadline - time.monotonic()
        ) > 0 and self._store.log.recorded_bytes - before < SEGMENT_BYTES_MAX:
            if self._hurry.wait(min(left, GATHER_TICK_SECONDS)):
                break
        self._hurry.clear()

    def _heartbeat(self) -> float:
        """An idle owner learns here that it is none any more, and that keys were made or shredded
        without a commit.
        """
        try:
            self.verify()
            self._told_of(None)
            self._ship()
        except ObjectStoreFailed as failed:
            self._told_of(failed)
        return time.monotonic()

    def _ship(self) -> bool:
        """Ship what there is; -> whether that was anything."""
        shipped = False
        while not self.fenced:
            try:
                rows = self._store.log.raw(self._state.sequence, SEGMENT_BYTES_MAX)
            except LogGap:
                if not self._drop():
                    break
                continue
            segment = self._segment(self._state.sequence, rows, continues=True)
            if not rows and not segment.ring:
                break
            if not self._put(segment):
                break
            shipped = True
        return shipped

    def _segment(
        self,
        end: int,
        rows: list[tuple[int, bytes]],
        *,
        continues: bool,
        all_shredded: bool = False,
    ) -> Segment:
        # The ring is read after the rows: a key is on disk before a row is committed that it seals.
        keys = self._store.keys
        return Segment(
            number=self._state.number + 1,
            epoch=self._state.epoch,
            previous=self._state.hash or NO_HASH,
            continues=continues,
            at=time.time_ns() // 1_000_000,
            first=end + 1,
            last=rows[-1][0] if rows else end,
            ring=[] if keys is None else keys.changes(self._state.ring, all_shredded),
            records=[raw for _, raw in rows],
        )

    def _put(self, segment: Segment) -> bool:
        """Store it, however often that takes; False when it was not, because this owner is fenced,
        gives up or drops its backlog.
        """
        content, digest = segment.packed()
        name = segment_name(self._state.tail, segment.number)
        for wait in backoff():
            try:
                stored = self._objects.put_new(name, content) or self._objects.get(name) == content
            except ObjectStoreFailed as failed:
                self._told_of(failed)
                if self._give_up_at is not None and time.monotonic() + wait > self._give_up_at:
                    return False
                (time.sleep if self._closing.is_set() else self._closing.wait)(wait)
                if not self._replicated and self._store.log.size()["bytes"] > self._backlog_bytes:
                    self._hold.advance(
                        self._store.sequence
                    )  # the next commits trim it; _ship finds the gap that it leaves
                    if segment.continues:
                        return False
                continue
            self._told_of(None)
            if not stored:
                self._stop(f"segment {segment.number} was stored by another owner")
                self._remember_superseded(self._state)
                return False
            self._advance(segment, digest)
            self.shipped_bytes += len(content)
            self.recent.add(name, content)
            if self.complete:
                self._on_stored(segment.last)
            if self._replicated:
                self._objects.make_ready(segment_folder(segment.epoch))
            return True
        return False

    def _advance(self, segment: Segment, digest: bytes) -> None:
        keys = self._store.keys
        if keys is not None:
            keys.copied(segment.ring)
        with self._changing:
            if not segment.continues:
                self.complete = False
                self._broken_at, self._broken_since = segment.number, time.time()
            self._state = msgspec.structs.replace(
                self._state,
                number=segment.number,
                hash=digest,
                tail=segment.epoch,
                sequence=segment.last,
                ring=max(self._state.ring, segment.ring_end),
                broken=not self.complete,
            )
            self._store.log.keep(self._state)
        self._hold.advance(segment.last)

    def _drop(self) -> bool:
        """The log has a hole: begin anew behind it, with a snapshot; -> whether that is told."""
        self.complete, end = False, self._store.sequence
        self._hold.advance(end)
        if not self._put(self._segment(end, [], continues=False)):
            return False
        self.dropped += 1
        log.error(
            "%s: unshipped commits were dropped from the log; a snapshot takes their place",
            self._store.directory,
        )
        self._store.log.save(self._state)
        self.snapshot_due.set()
        return True

    def _told_of(self, failed: ObjectStoreFailed | None) -> None:
        if failed is None:
            self.failing_since = None
            return
        self.failures += 1
        if self.failing_since is None:
            self.failing_since = time.monotonic()
            log.warning("the log waits for the object store: %s", failed)

    def _stop(self, why: str) -> None:
        if not self.fenced:
            self.fenced = True
            log.critical(
                "%s: fenced, %s; this process must not serve the shard any more",
                self._store.directory,
                why,
            )
            self._on_fenced(why)

    def _remember_superseded(self, state: ShippingState) -> None:
        """Let the directory itself say so, for a start that does not ask the object store."""
        try:
            self._store.log.save(msgspec.structs.replace(state, superseded=True))
        except StoreError as failed:
            log.warning(
                "%s: that it is superseded is not on disk: %s", self._store.directory, failed
            )


def backoff() -> Iterator[float]:
    """Seconds to wait after each failure: growing, jittered, without end."""
    wait = BACKOFF_SECONDS_MIN
    while True:
        yield wait * random.uniform(0.5, 1)
        wait = min(2 * wait, BACKOFF_SECONDS_MAX)
