"""A store made again from object storage: the newest snapshot that is old enough, then the log in
order.

The directory it makes has a data file, a key ring, and the ShippingState that says where in the log
it stands. It opens like any other store; indexes, which derive from rows, are made again then.

Every hash is checked: files of the snapshot against its manifest, each segment against its own and
against the one before it. A segment that is missing or damaged, or a place where the log does not
continue, ends the restore with an error that says how far one can get.

Where the log does not continue, its owner tells nobody that anything is stored until a snapshot is
there from which it does (LogShipper.made_complete). So of owners that acknowledge only what is
stored, nothing is missing in the state before that place.

    at        restore the state of that moment: commits that were made later, by their owner's
              clock, are left out
    take_over the restored directory becomes the shard's owner: it takes the next epoch, waits for
              the end of the former owner's lease, and puts its first segment at the end of the
              log, so that no commit of an earlier owner can come after those that were restored.
              Without it the directory is for looking at, and is refused as soon as it were to ship
              its log to the same place
    replicated  every owner acknowledged only what was stored: where the log does not continue, the
              state before that place is the shard's, and what came later is left out
    left_out  is told of what later commits put into one table, up to the log's end: what must hold
              for every state from then on, such as that somebody is forgotten
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import lmdb
import msgspec

from storage.replication.epochs import (
    Superseded,
    lease_left_by,
    newest_epoch,
    newest_number,
    refuse_unlisted,
    release,
    stored_end,
    stores_whole,
    take_epoch,
)
from storage.replication.lease import FormerLease
from storage.replication.log_end import missing_segments
from storage.replication.object_store import ObjectStore
from storage.replication.packs import PackedSegments
from storage.replication.pages import blank_free_pages, pages_of, unpack
from storage.replication.segment import (
    NO_HASH,
    Segment,
    SegmentDamaged,
    is_torn,
    segment_name,
    unpacked,
)
from storage.replication.snapshots import (
    PACKED_DATA,
    PAGES,
    SnapshotManifest,
    snapshots,
    unpack_file,
)
from storage.store import (
    DATA_FILE,
    DATABASES_MAX,
    KEYS_FILE,
    MAP_BYTES,
    SEQUENCE,
    CommitRecord,
    Key,
    Scope,
    ShippingState,
    StoreError,
    check_data_file,
    code_in,
    code_of,
    decode_record,
    fault,
    make_directory,
    placed,
    publish,
    shredded_scope,
    write_records,
)

log = logging.getLogger("mneme.log")

SEGMENTS_AHEAD = 16

_STATE = b"log"
_BUILDING = ".restoring"
_UNKNOWN = "%s What was erased after it is not known."


class RestoreFailed(StoreError):
    """Object storage does not hold what this restore needs; the message says what is missing."""


@dataclass(frozen=True)
class LeftOut:
    """Rows that commits after the moment of a restore put into `table`. report: (scope, key, stored
    bytes).
    """

    table: str
    report: Callable[[Scope, Key, bytes], None]


@dataclass(frozen=True)
class Restored:
    """How far a store was restored. sequence: the last commit; at: when it was made (Unix
    milliseconds), or when the snapshot was; segments: how many were read; alone_at: since when no
    former owner answers (Unix milliseconds), 0 without a take-over.
    """

    sequence: int
    at: int
    segments: int
    alone_at: int = 0


def restore(
    objects: ObjectStore,
    directory: Path,
    *,
    at: int | None = None,
    take_over: bool = False,
    owner: str = "",
    replicated: bool = False,
    map_bytes: int = MAP_BYTES,
    left_out: LeftOut | None = None,
) -> Restored:
    """Make the store of the shard at `objects` in `directory`, where there must be none. at: Unix
    milliseconds.

    Nothing but a subdirectory of it is written before all of it has been read and checked. Raises
    RestoreFailed, SegmentDamaged, ObjectStoreFailed, and Superseded when another owner took the
    shard meanwhile.
    """
    if (directory / DATA_FILE).exists():
        raise RestoreFailed(f"{directory} holds a store; a restore goes where there is none.")
    _check_restorable(objects, at, take_over)
    epoch, token, alone_at, lease = 0, os.urandom(16).hex(), 0, FormerLease(0)
    if take_over:
        former, claim = newest_epoch(objects)
        refuse_unlisted(objects, former)
        epoch, left = former + 1, lease_left_by(objects, former, claim)
        # Should this end before the former owner's lease has, the next one has to wait for that.
        if not take_epoch(objects, epoch, token, owner, lease_seconds=left):
            raise Superseded(f"{objects.url}: another process is taking the shard (epoch {epoch}).")
        lease = FormerLease(left)
    place, manifest = _chosen(objects, at)
    building = directory / _BUILDING
    shutil.rmtree(building, ignore_errors=True)
    make_directory(building)
    try:
        has_ring = _download(objects, place, manifest, building)
        replay = _Replay(
            objects,
            building,
            manifest,
            at,
            has_ring,
            take_over,
            map_bytes,
            left_out,
            replicated=replicated,
        )
        try:
            replay.run()
            if take_over:
                lease.wait_out()
                alone_at = _now()
                release(objects, epoch)
                replay.end_earlier_epochs(epoch, token)
        finally:
            replay.close()
        check_data_file(building / DATA_FILE)
        if has_ring:
            (building / KEYS_FILE).rename(directory / KEYS_FILE)
        publish(building / DATA_FILE, directory / DATA_FILE)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Restored(replay.sequence, replay.reached_at, replay.segments, alone_at)


def _told(at: int) -> str:
    """Unix milliseconds as `--at` takes them."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check_restorable(objects: ObjectStore, at: int | None, take_over: bool) -> None:
    """Raise where something is missing that shows at once: else the shard would be taken from its
    owner, who may have it, for nothing.
    """
    _, manifest = _chosen(objects, at)
    if take_over and (gone := missing_segments(objects, after=manifest.state.number)):
        raise SegmentDamaged(
            f"segments {gone[0]} to {gone[-1]} of the log are missing in {objects.url}, so the "
            "shard is not taken over. Put them back from a copy, or serve the shard's own "
            "directory, which stores them anew; a restore without a take-over tells how far the "
            "log can be read."
        )


def _chosen(objects: ObjectStore, at: int | None) -> tuple[str, SnapshotManifest]:
    found = snapshots(objects)
    if not found:
        raise RestoreFailed(f"{objects.url} holds no snapshot of this shard.")
    fitting = [each for each in found if at is None or each[1].at <= at]
    if not fitting:
        raise RestoreFailed(
            f"the oldest snapshot in {objects.url} was made at {_told(found[0][1].at)}, after the "
            "time asked for."
        )
    return fitting[-1]


def _download(objects: ObjectStore, place: str, manifest: SnapshotManifest, folder: Path) -> bool:
    """The snapshot's files, checked and unpacked; -> whether it has a key ring."""
    own = dict(manifest.objects(place))
    for name, digest in manifest.sha256.items():
        if f"{place}/{name}" not in own:
            _fetch(objects, f"{place}/{name}", digest, folder / name)
    if own:
        for path, digest in [*manifest.bases, *own.items()]:
            _fetch(objects, path, digest, folder / PAGES)
            with (folder / PAGES).open("rb") as packed:
                unpack(packed, folder / DATA_FILE)
            (folder / PAGES).unlink()
        blank_free_pages(folder / DATA_FILE)
        if pages_of(folder / DATA_FILE).image != manifest.image:
            raise RestoreFailed(f"{place} in {objects.url} is damaged: its pages do not fit.")
    else:
        with (folder / PACKED_DATA).open("rb") as packed, (folder / DATA_FILE).open("wb") as plain:
            unpack_file(packed, plain)
        (folder / PACKED_DATA).unlink()
    for name in (DATA_FILE, KEYS_FILE):
        if (folder / name).exists():
            (folder / name).chmod(0o600)
    return KEYS_FILE in manifest.sha256


def _fetch(objects: ObjectStore, path: str, digest: str, target: Path) -> None:
    """Download an object. Raises RestoreFailed unless it is what was stored."""
    with target.open("wb") as file:
        if not objects.fetch(path, file):
            raise RestoreFailed(f"{path} is missing in {objects.url}.")
    with target.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise RestoreFailed(f"{path} in {objects.url} is damaged: checksum.")


class _Replay:
    """The log applied to an unpacked snapshot, segment by segment, each in a transaction of its
    own.
    """

    def __init__(
        self,
        objects: ObjectStore,
        folder: Path,
        manifest: SnapshotManifest,
        at: int | None,
        has_ring: bool,
        take_over: bool,
        map_bytes: int,
        left_out: LeftOut | None,
        *,
        replicated: bool,
    ):
        self._objects, self._folder, self._at, self._has_ring = objects, folder, at, has_ring
        self._take_over, self._replicated = take_over, replicated
        self._ahead: dict[str, Future[bytes | None]] = {}
        self._packed = PackedSegments(objects)
        self._state = manifest.state
        self._cut = False
        self._left_out, self._watched = left_out, b""
        self._torn: bytes | None = None  # what lies where the next segment will
        self.sequence, self.reached_at, self.segments = manifest.sequence, manifest.at, 0
        try:
            self._env = lmdb.open(
                str(folder), map_size=map_bytes, max_dbs=DATABASES_MAX, lock=False, sync=False
            )
            self._main, self._meta = (
                self._env.open_db(b"main", create=False),
                self._env.open_db(b"meta", create=False),
            )
            records = self._env.open_db(b"log")
            with self._env.begin(write=True) as transaction:
                found = int.from_bytes(transaction.get(SEQUENCE, b"", db=self._meta), "big")
                if left_out is not None:
                    self._watched = code_of(left_out.table, transaction, self._meta)
                transaction.drop(
                    records, delete=False
                )  # what the copy had not shipped yet comes from the segments
        except lmdb.Error as error:
            raise fault(error, folder / DATA_FILE) from error
        if found != manifest.sequence:
            raise RestoreFailed(
                f"the snapshot is of commit {found}, its manifest says {manifest.sequence}."
            )

    def run(self) -> None:
        """Apply what follows the snapshot."""
        self._torn = None
        with ThreadPoolExecutor(SEGMENTS_AHEAD) as pool:
            more = True  # an owner goes on to the log's end, whatever it leaves out
            while more and (self._take_over or not self._cut):
                more = self._follow_asked(pool)
            if more and self._watched:
                self._look_on(pool)
        self._save(
            msgspec.structs.replace(
                self._state, sequence=self.sequence, broken=self._cut, token="", former=""
            )
        )

    def _follow_asked(self, pool: ThreadPoolExecutor) -> bool:
        """As _follow_next; where the next one is gone or damaged, and nothing later was asked for,
        there is none.
        """
        try:
            return self._follow_next(pool)
        except SegmentDamaged as damaged:
            if self._take_over or self._at is None or self._at > self.reached_at:
                raise
            log.warning(_UNKNOWN, damaged)
            return False

    def _follow_next(self, pool: ThreadPoolExecutor) -> bool:
        """Apply the next segment, or what of it is to be; -> whether there was one."""
        while (content := self._next(pool)) is None:
            if self._is_at_end():
                return False
        try:
            segment, digest = unpacked(content, self._state.number + 1, self._state.hash or NO_HASH)
        except SegmentDamaged as damaged:
            self._end_at(content, damaged)
            return False
        self._leave_out(segment) if self._cut else self._follow(segment)
        self._step(segment, digest)
        return True

    def _look_on(self, pool: ThreadPoolExecutor) -> None:
        """Learn what else was left out, up to the log's end or as far as it can be read; the
        restored state stays as it is.
        """
        state, segments = self._state, self.segments
        try:
            while self._follow_next(pool):
                pass
        except SegmentDamaged as damaged:
            log.warning(_UNKNOWN, damaged)
        self._state, self.segments = state, segments

    def _leave_out(self, segment: Segment) -> None:
        """Tell of a segment that comes too late."""
        if self._watched:
            for record in map(decode_record, segment.records):
                self._tell(record)

    def _tell(self, record: CommitRecord) -> None:
        if self._left_out is not None and self._watched:
            for key, value in record.changes:
                if value is not None and code_in(key) == self._watched:
                    self._left_out.report(*placed(key), value)

    def end_earlier_epochs(self, epoch: int, token: str) -> None:
        """Put this epoch's first segment at the end of the log; commits of the owner before that
        land first are taken in.
        """
        while True:
            continues = not self._cut
            number, before = self._state.number + 1, self._state.hash or NO_HASH
            segment = Segment(
                number, epoch, before, continues, _now(), self.sequence + 1, self.sequence, [], []
            )
            content, digest = segment.packed()
            name = segment_name(self._state.tail, number)
            if self._objects.put_new(name, content) or self._objects.get(name) == content:
                break
            if self._torn is not None and self._objects.replace_torn(name, self._torn, content):
                break
            self.run()
            if self._state.tail > epoch:
                raise Superseded(
                    f"{self._objects.url}: another process took the shard (epoch "
                    f"{self._state.tail})."
                )
        self._step(segment, digest)
        self._save(
            msgspec.structs.replace(
                self._state,
                sequence=self.sequence,
                epoch=epoch,
                token=token,
                former="",
                broken=self._cut,
            )
        )

    def close(self) -> None:
        self._env.sync(True)
        self._env.close()
        for left in self._folder.glob("lock.mdb*"):
            left.unlink()

    def _next(self, pool: ThreadPoolExecutor) -> bytes | None:
        """The next segment's bytes; those that probably follow are on their way meanwhile."""
        tail, number = self._state.tail, self._state.number + 1
        if (packed := self._packed.get(number)) is not None:
            return packed
        names = [
            segment_name(tail, following)
            for following in range(number, number + SEGMENTS_AHEAD)
            if not self._packed.holds(following)
        ]
        self._ahead = {
            name: self._ahead.get(name) or pool.submit(self._objects.get, name) for name in names
        }
        # One that was not there when it was asked for may be by now: its owner goes on.
        content = self._ahead.pop(names[0]).result() or self._objects.get(names[0])
        return self._packed.get(number, look_again=True) if content is None else content

    def _is_at_end(self) -> bool:
        """Whether nothing follows; False when something does by now. Raises SegmentDamaged when the
        next one is gone.
        """
        number = self._state.number
        newest, end = newest_number(self._objects), stored_end(self._objects)
        if number and not newest:  # the last one of a log always lies there
            raise SegmentDamaged(
                f"{self._objects.url} lists none of the log's segments, although {number} were "
                "stored. Put them back from a copy, or see that its credentials may list; what "
                f"there was until then is restored with --at {_told(self.reached_at)}, for looking "
                "at."
            )
        if max(newest, end.number) <= number:
            return True
        name = segment_name(self._state.tail, number + 1)
        if (
            self._objects.get(name) is None
            and self._packed.get(number + 1, look_again=True) is None
        ):
            although = (
                "later ones are there"
                if newest > number
                else f"the log was stored up to segment {end.number} (commit {end.sequence})"
            )
            raise SegmentDamaged(
                f"segment {number + 1} of the log is missing, although {although}. "
                f"{self._way_out()}"
            )
        return False

    def _way_out(self) -> str:
        """What can be done about a segment that cannot be read."""
        return (
            f"Put it back from a copy of {self._objects.url}, or restore what there was until then "
            f"(--at {_told(self.reached_at)}) for looking at."
        )

    def _end_at(self, content: bytes, damaged: SegmentDamaged) -> None:
        """Take a segment for absent that nobody was ever told of: the last one, where a power
        failure cut it short. Raises SegmentDamaged when it may be another.
        """
        number = self._state.number + 1
        is_last = newest_number(self._objects) == number > stored_end(self._objects).number
        may_be_cut = self._objects.may_tear and not stores_whole(self._objects, self._state.tail)
        if not (may_be_cut and is_last and is_torn(content)):
            raise SegmentDamaged(
                f"{damaged} It may hold acknowledged writes, so it is not left out. "
                f"{self._way_out()}"
            ) from damaged
        log.warning("%s It was never acknowledged and counts as absent.", damaged)
        self._torn = content

    def _follow(self, segment: Segment) -> None:
        """Apply a segment's records that are new and not too late."""
        if not segment.continues:
            if self._replicated or (self._at is not None and segment.at > self._at):
                self._cut = True
                self._leave_out(segment)
                return
            raise RestoreFailed(
                f"the log does not continue at segment {segment.number}, and no snapshot was "
                "stored since. The last state that can be restored is that of "
                f"{self.reached_at} ms; what was acknowledged later in `local` mode is not in it. "
                "Ask for it by its time (--at), or, for a shard of several nodes, set "
                "durability.mode to replicated until it is open."
            )
        records = [
            record
            for record in map(decode_record, segment.records)
            if record.sequence > self.sequence
        ]
        try:
            with self._env.begin(db=self._main, write=True) as transaction:
                for record in records:
                    if self._cut or (self._at is not None and record.at > self._at):
                        self._cut = True
                        self._tell(record)
                        continue
                    if record.sequence != self.sequence + 1:
                        raise SegmentDamaged(
                            f"segment {segment.number} has commit {record.sequence} where "
                            f"{self.sequence + 1} is due."
                        )
                    for key, value in record.changes:
                        transaction.delete(key) if value is None else transaction.put(key, value)
                    self.sequence, self.reached_at = record.sequence, record.at
                transaction.put(SEQUENCE, self.sequence.to_bytes(8, "big"), db=self._meta)
        except lmdb.Error as error:
            raise fault(error, self._folder / DATA_FILE) from error
        if self._has_ring:
            write_records(
                self._folder / KEYS_FILE, self._due(segment.ring) if self._cut else segment.ring
            )

    def _due(self, ring: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Records of a segment of which not all was applied: no key is shredded that rows of that
        moment were sealed with.
        """
        with self._env.begin(db=self._main) as transaction, transaction.cursor() as cursor:

            def is_needed(scope: bytes | None) -> bool:
                return (
                    scope is not None and cursor.set_range(scope) and cursor.key().startswith(scope)
                )

            return [
                (place, record) for place, record in ring if not is_needed(shredded_scope(record))
            ]

    def _step(self, segment: Segment, digest: bytes) -> None:
        self.segments += 1
        ring = (
            self._state.ring if self._cut else max(self._state.ring, segment.ring_end)
        )  # an owner ships what its own ring has behind it
        self._state = msgspec.structs.replace(
            self._state, number=segment.number, hash=digest, tail=segment.epoch, ring=ring
        )

    def _save(self, state: ShippingState) -> None:
        self._state = state
        with self._env.begin(db=self._meta, write=True) as transaction:
            transaction.put(_STATE, msgspec.msgpack.encode(state))


def _now() -> int:
    return time.time_ns() // 1_000_000
