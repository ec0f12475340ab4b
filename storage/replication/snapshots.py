"""Snapshots of a store in object storage, so that a restore need not read the whole log, and old
segments can go.

    snapshots/<number>-<sequence>/pages-0000 …    pages of LMDB's own hot copy, as of commit
                                                  <sequence> (storage/replication/pages.py)
    snapshots/<number>-<sequence>/keys.ring       the data keys: those there were before the copy
                                                  was made, and those that came meanwhile
    snapshots/<number>-<sequence>/manifest.json   last; what has none is no snapshot

A snapshot is whole, or it has the pages that changed since the one before it and names those whose
pages it stands on, the whole one first. It is whole where this directory does not know the pages of
the one before, where as much changed since the last whole one as half of what there is, and after
CHANGES_MAX. So what is stored and sent is in proportion to what changed, and a restore reads few
objects. Earlier releases stored compacted copies (data.mdb.zst), which are read still.

What was packed lies in the store's directory until all of it is stored: a sending that is broken
off, by the object store or the end of the process, goes on with the objects that are left.

A key that was shredded while the copy was made is still in it: the segment that says so comes
later, and so may the moment of a restore.

`number` is the segment that was the log's last when the copy began: segments after it continue from
there, and those of their records that the copy already has are skipped. A snapshot is published
only when the log up to its sequence is stored by the same owner. So what an owner copied that was
fenced meanwhile is never taken for the shard's history.

When two snapshots are there, what is older than both goes: snapshots, and the segments before the
older one's, packed or not. Between snapshots small segments are packed (packs.py). Pages on which a
later one stands stay. Of an ended epoch the last object stays, because it is what ended it (see
storage/replication/segment.py).
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
import time
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from storage.replication.object_store import ObjectStore, ObjectStoreFailed
from storage.replication.packs import SegmentPacker, pack_name, packs
from storage.replication.pages import Pages, changed, pack, pages_of, remember, remembered
from storage.replication.segment import segment_name, segment_places
from storage.replication.shipper import LogShipper, backoff
from storage.store import DATA_FILE, KEYS_FILE, ShippingState, Store, StoreError, figures

log = logging.getLogger("mneme.log")

SNAPSHOTS = "snapshots"
SNAPSHOTS_KEPT = 2
CHANGES_MAX = 8  # snapshots that stand on one that is whole
MANIFEST = "manifest.json"
PAGES = "pages-"
PAGES_KNOWN = ".snapshot-pages"  # in the store's directory: of the newest snapshot
PACKED_DATA = f"{DATA_FILE}.zst"  # of earlier releases
SCRATCH = ".snapshot"  # in the store's directory, while one is made and sent
SENT = "sent"  # names of the files there that are stored, a line each
WAIT_SECONDS_MAX = 600
RETRY_SECONDS_MAX = 30.0
UPLOAD_SECONDS_MAX = 60
SEGMENTS_BETWEEN_MAX = 10_000


class SnapshotManifest(msgspec.Struct, frozen=True):
    """at: Unix milliseconds, when the copy was done; state: where the log stood when it began;
    sha256: of file name -> as stored.

    bases        (place, SHA-256) of the pages that this one stands on, in their order
    changed      pages that were stored since the whole one, this snapshot's included
    image        of all pages (pages.Pages); "" from a release that had compacted copies
    begun_at     Unix milliseconds, before the copy was made; 0 from a release that did not say
    """

    sequence: int
    at: int
    rows: int
    state: ShippingState
    sha256: dict[str, str]
    sizes: dict[str, int]
    bases: list[tuple[str, str]] = []
    changed: int = 0
    image: str = ""
    begun_at: int = 0

    def objects(self, place: str) -> list[tuple[str, str]]:
        """(place, SHA-256) of its own pages."""
        return [
            (f"{place}/{name}", digest)
            for name, digest in sorted(self.sha256.items())
            if name.startswith(PAGES)
        ]

    @property
    def depth(self) -> int:
        """How many snapshots it stands on."""
        return len({path.rpartition("/")[0] for path, _ in self.bases})


_decode_manifest = msgspec.json.Decoder(SnapshotManifest).decode


def snapshots(objects: ObjectStore) -> list[tuple[str, SnapshotManifest]]:
    """(place, manifest) of every snapshot that is whole, oldest first."""
    found = []
    for name in objects.names(SNAPSHOTS):
        if (
            name.endswith(f"/{MANIFEST}")
            and (raw := objects.get(f"{SNAPSHOTS}/{name}")) is not None
        ):
            try:
                manifest = _decode_manifest(raw)
            except msgspec.MsgspecError as damaged:
                # An older one and the log since give the same, or the restore says what is missing.
                log.warning("%s: %s/%s is damaged: %s", objects.url, SNAPSHOTS, name, damaged)
                continue
            found.append((f"{SNAPSHOTS}/{name.rpartition('/')[0]}", manifest))
    return found


class _Packed(NamedTuple):
    """What is to be stored of a copy. bases, changed: as in its manifest."""

    pages: Pages
    objects: list[Path]
    bases: list[tuple[str, str]]
    changed: int


class SnapshotTaker:
    """Takes a snapshot when the shipper says that one is due, every interval_seconds, and after so
    many bytes or segments of log.
    """

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        shipper: LogShipper,
        *,
        interval_seconds: float,
        log_bytes: int,
    ):
        self._store, self._objects, self._shipper = store, objects, shipper
        self._interval, self._log_bytes = interval_seconds, log_bytes
        self.packer = SegmentPacker(store, objects, shipper)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mneme-log-snapshots", daemon=True)
        self._taking = threading.Lock()
        self.taken = 0
        self.failures = 0
        self._newest_at = time.monotonic()

    @property
    def age_seconds(self) -> float:
        """Seconds since a snapshot had all that the store has; since this process began, until
        there is one.
        """
        return time.monotonic() - self._newest_at

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop; a snapshot that is under way is left unpublished."""
        self._closing.set()
        self._shipper.snapshot_due.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        taken_at, shipped, number = (
            time.monotonic(),
            self._shipper.shipped_bytes,
            self._shipper.state.number,
        )
        while not self._closing.is_set():
            due = self._shipper.snapshot_due.wait(1.0)
            if self._closing.is_set() or self._shipper.fenced:
                return
            due = (
                due
                or time.monotonic() - taken_at > self._interval
                or self._shipper.shipped_bytes - shipped > self._log_bytes
            )
            if not due and self._shipper.state.number - number < SEGMENTS_BETWEEN_MAX:
                self._pack_segments()
                continue
            self._shipper.snapshot_due.clear()
            taken_at, shipped, number = (
                time.monotonic(),
                self._shipper.shipped_bytes,
                self._shipper.state.number,
            )
            try:
                self.take()
            except (ObjectStoreFailed, StoreError, OSError) as failed:
                self.failures += 1
                log.warning("a snapshot could not be stored: %s", failed)
                self._closing.wait(min(RETRY_SECONDS_MAX, 2.0 ** min(self.failures, 8)))
                self._shipper.snapshot_due.set()

    def _pack_segments(self) -> None:
        """Put small segments together, if there are many; what fails is tried again."""
        if self.packer.is_due():
            try:
                self.packer.pack()
            except ObjectStoreFailed as failed:
                log.warning("segments could not be packed: %s", failed)

    def take(self) -> SnapshotManifest | None:
        """Store a snapshot, and let go of what it makes superfluous; None when there is nothing
        new, or when this owner was fenced or is closing meanwhile."""
        with self._taking:
            return self._take()

    def _take(self) -> SnapshotManifest | None:
        state = self._shipper.state
        place = f"{SNAPSHOTS}/{state.number:012d}-{self._store.sequence:012d}"
        if self._store.sequence == state.sequence and self._objects.has(f"{place}/{MANIFEST}"):
            self._newest_at = time.monotonic()
            self._shipper.made_complete(state.number)
            return None  # nothing has happened since
        folder = self._store.directory / SCRATCH
        manifest = self._unfinished(folder) or self._copied(folder, state)
        content, number = msgspec.json.encode(manifest), manifest.state.number
        place = f"{SNAPSHOTS}/{number:012d}-{manifest.sequence:012d}"
        self._send(folder, place, manifest)
        if not self._await_shipped(manifest.sequence):
            return None
        name = f"{place}/{MANIFEST}"
        if self._objects.put_new(name, content) or self._objects.get(name) == content:
            (folder / PAGES_KNOWN).replace(self._store.directory / PAGES_KNOWN)
        shutil.rmtree(folder)
        since = max(0.0, time.time() - manifest.begun_at / 1000)
        self.taken, self.failures = self.taken + 1, 0
        self._newest_at = time.monotonic() - since
        self._shipper.made_complete(number)
        try:
            self._let_go()
        except ObjectStoreFailed as failed:
            log.warning(
                "what the new snapshot makes superfluous stays until the next one: %s", failed
            )
        return manifest

    def _copied(self, folder: Path, state: ShippingState) -> SnapshotManifest:
        """Make what is to be stored, in a folder of its own; nothing is left of what fails."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            return self._filled(folder, state)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _filled(self, folder: Path, state: ShippingState) -> SnapshotManifest:
        """Fill an empty folder; the manifest lies there last."""
        begun_at = time.time_ns() // 1_000_000
        files: dict[str, Path] = {}
        if self._store.keys is not None:
            files[KEYS_FILE] = folder / KEYS_FILE
            self._store.keys.copy(files[KEYS_FILE])
        self._store.environment.copy(folder / "copy", compact=False)
        at = self._store.log.now()
        if self._store.keys is not None:
            self._store.keys.extend(files[KEYS_FILE])
        _, sequence, rows = figures(folder / "copy")
        packed = self._pack(folder / "copy" / DATA_FILE, folder)
        files |= {path.name: path for path in packed.objects}
        shutil.rmtree(folder / "copy")
        manifest = SnapshotManifest(
            sequence,
            at,
            rows,
            msgspec.structs.replace(state, token="", former=""),
            {name: _digest(path) for name, path in files.items()},
            {name: path.stat().st_size for name, path in files.items()},
            packed.bases,
            packed.changed,
            packed.pages.image,
            begun_at,
        )
        content = msgspec.json.encode(manifest)
        remember(folder / PAGES_KNOWN, content, packed.pages)
        (folder / MANIFEST).write_bytes(content)
        return manifest

    def _unfinished(self, folder: Path) -> SnapshotManifest | None:
        """The snapshot that lies in the folder, if it can still be stored: it is of use, and young,
        and what is left of it is as it was made.
        """
        try:
            content = (folder / MANIFEST).read_bytes()
            manifest = _decode_manifest(content)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        number, age = manifest.state.number, time.time() - manifest.begun_at / 1000
        newer = [each for _, each in snapshots(self._objects) if each.state.number > number]
        is_of_use = self._shipper.continues_from(number) and not newer
        if not (is_of_use and 0 <= age < self._interval):
            return None
        left = manifest.sha256.keys() - _sent(folder)
        is_whole = all(
            (folder / name).exists() and _digest(folder / name) == manifest.sha256[name]
            for name in left
        )
        return manifest if is_whole and remembered(folder / PAGES_KNOWN, content) else None

    def _send(self, folder: Path, place: str, manifest: SnapshotManifest) -> None:
        """Store what of a snapshot is not stored yet."""
        for name in [name for name in manifest.sha256 if name not in _sent(folder)]:
            self._upload(folder / name, f"{place}/{name}")
            with (folder / SENT).open("a") as file:
                file.write(f"{name}\n")

    def _pack(self, copy: Path, folder: Path) -> _Packed:
        pages, newest = pages_of(copy), snapshots(self._objects)[-1:]
        for place, before in newest:
            raw = self._objects.get(f"{place}/{MANIFEST}") or b""
            known = remembered(self._store.directory / PAGES_KNOWN, raw)
            if known is None or before.depth >= CHANGES_MAX:
                break
            numbers = changed(pages, known)
            total = before.changed + len(numbers)
            if 2 * total < pages.used:
                bases = [*before.bases, *before.objects(place)]
                return _Packed(pages, pack(copy, pages, numbers, folder / PAGES), bases, total)
        numbers = changed(pages, None)
        return _Packed(pages, pack(copy, pages, numbers, folder / PAGES), [], 0)

    def _upload(self, path: Path, name: str) -> None:
        """Store a file; one that fails is tried again for a while, and those before it are not
        sent twice.
        """
        deadline = time.monotonic() + UPLOAD_SECONDS_MAX
        for wait in backoff():
            try:
                with path.open("rb") as file:
                    return self._objects.put_file(name, file)
            except ObjectStoreFailed:
                if time.monotonic() > deadline or self._closing.wait(wait):
                    raise

    def _await_shipped(self, sequence: int) -> bool:
        """Wait until the log up to there is stored; False when that will not be."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self._shipper.state.sequence < sequence:
            if self._shipper.fenced or self._closing.wait(0.02):
                return False
            if time.monotonic() > deadline:
                raise ObjectStoreFailed(
                    f"the log up to commit {sequence} was not stored within {WAIT_SECONDS_MAX} "
                    "seconds"
                )
        return not self._shipper.fenced

    def _let_go(self) -> None:
        """Remove what is older than the last two snapshots need."""
        found = snapshots(self._objects)
        if len(found) < SNAPSHOTS_KEPT:
            return
        kept = found[-SNAPSHOTS_KEPT][1].state.number
        old = [place for place, _ in found[:-SNAPSHOTS_KEPT]]
        # Its manifest first: what is half removed is no snapshot.
        self._objects.delete(f"{place}/{MANIFEST}" for place in old)
        needed = {path for _, manifest in found[-SNAPSHOTS_KEPT:] for path, _ in manifest.bases}
        oldest = found[-SNAPSHOTS_KEPT][0]
        self._objects.delete(
            path
            for path in (f"{SNAPSHOTS}/{name}" for name in self._objects.names(SNAPSHOTS))
            if path < oldest and path not in needed
        )
        places = sorted(segment_places(self._objects))
        ended_by = {
            folder: number for folder, number in places
        }  # the last of each folder; of the newest it is newer than `kept`
        self._objects.delete(
            segment_name(*place)
            for place in places
            if place[1] <= kept and ended_by[place[0]] != place[1]
        )
        self._objects.delete(
            pack_name(first, last) for first, last in packs(self._objects) if last <= kept
        )


def _sent(folder: Path) -> set[str]:
    """Names of the files in the folder that are stored."""
    try:
        return set((folder / SENT).read_text().splitlines())
    except FileNotFoundError:
        return set()


def unpack_file(source: BinaryIO, target: BinaryIO) -> None:
    import zstandard

    zstandard.ZstdDecompressor().copy_stream(source, target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
