"""Backup and restore of a data directory.

A backup is a directory laid out like the data directory, with a manifest beside it:

    manifest.json   what was copied: each file with its size and SHA-256, each store with its
                    sequence and number of rows
    layout.json, secrets/, …, shards/NNNN/data.mdb, shards/NNNN/indexes/, …

It is taken hot. Each store is copied by LMDB's own tool, compacted, as of one commit, while its
service reads and writes; nothing spans two stores, so one commit of each is a state the service
could have had. Files beside a store (large accounts' vectors, uploads, keys) are copied before it,
and those that are new or changed once more after it: what the copied rows need is there, whether it
came or went meanwhile. Of vectors that differ from the copied rows the rows count.

Left out is what a start makes again: locks, logs, the model's graph. The manifest gets its name
last, so a directory without one is no backup. Until then it is `manifest.json.partial`, empty, and
held with flock by who makes the backup: where that was killed, the next one into the directory
begins anew. It holds the service's secrets: who has it can read the data, and what was erased later
is still in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import msgspec

from runtime.installation import LAYOUT_FILE, LOCK_FILE, Layout, LayoutError, held, shard_directory
from runtime.limits import MANIFEST_BYTES_MAX
from runtime.placement import PlacementTable
from runtime.timestamps import iso
from storage.store import (
    DATA_FILE,
    MAP_BYTES,
    NO_SPACE,
    StoreError,
    StoreFull,
    check_data_file,
    copy_data,
    figures,
    publish,
)
from storage.store import LOCK_FILE as STORE_LOCK_FILE

MANIFEST_FILE = "manifest.json"
UNFINISHED_FILE = f"{MANIFEST_FILE}.partial"
MANIFEST_FORMAT = 1
COPY_CHUNK_BYTES = 1 << 20
SETTLED_SECONDS = 2

_DERIVED = {LOCK_FILE, "logs", "models"}  # of the data directory
_OF_LMDB = {
    DATA_FILE,
    "lock.mdb",
    STORE_LOCK_FILE,
    ".creating",
    ".rewritten",
    ".rewritten.partial",
    ".snapshot",
}  # of a store's directory
_UNFINISHED = (".new", ".partial", ".tmp")


class BackupError(StoreError):
    """A backup cannot be made or used; the message names the path."""


class CopiedFile(msgspec.Struct):
    """path: below the backup, with slashes; size: bytes."""

    path: str
    size: int
    sha256: str


class CopiedStore(msgspec.Struct):
    """sequence: of the commit that was copied; rows: in all tables together."""

    shard: int
    sequence: int
    rows: int


class BackupManifest(msgspec.Struct):
    """What a backup holds. sha256: of the manifest itself with this field empty."""

    format: int
    made_at: str
    version: str
    cluster_id: str
    data_format: int
    stores: list[CopiedStore]
    files: list[CopiedFile]
    sha256: str = ""

    def digest(self) -> str:
        return hashlib.sha256(
            msgspec.json.encode(msgspec.structs.replace(self, sha256=""))
        ).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


_decode_manifest = msgspec.json.Decoder(BackupManifest).decode


# --- backup ---------------------------------------------------------------------------------------


def back_up(
    data_dir: Path, target: Path, now_ms: int, map_bytes: int = MAP_BYTES
) -> BackupManifest:
    """Copy the data directory into `target`, which is missing or empty, or has what is left of a
    backup that was killed. Raises BackupError, LayoutError, StoreError.

    map_bytes: of address space, at most, to read a store
    """
    layout = Layout.load(data_dir)
    if not layout.complete:
        raise LayoutError(f"{data_dir} has never been served: there is nothing to back up.")
    if target.resolve().is_relative_to(data_dir.resolve()):
        raise BackupError(
            f"{target} lies inside {data_dir}; a backup belongs elsewhere, best on another disk."
        )
    with _claimed(target) as unfinished, _all_or_nothing(target):
        copy = _Copy(data_dir, target)
        placement = PlacementTable(data_dir).load()
        if placement.moves:
            raise BackupError(
                "Slots are being moved between shards; a backup of that would be torn. Repeat it "
                "when they have arrived."
            )
        copy.take(_top(data_dir))
        stores = [_copy_store(copy, number, map_bytes) for number in range(len(placement.shards))]
        if PlacementTable(data_dir).load().owners != placement.owners:
            raise BackupError(
                "Slots moved between shards while they were copied; repeat the backup."
            )
        copy.take(_top(data_dir))  # what the copied rows name and was not there yet
        copied = sorted(copy.files.values(), key=lambda file: file.path)
        version = metadata.version("mneme")
        manifest = BackupManifest(
            MANIFEST_FORMAT,
            iso(now_ms),
            version,
            layout.cluster_id,
            layout.format_version,
            stores,
            copied,
        )
        manifest.sha256 = manifest.digest()
        _close(target)
        unfinished.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        unfinished.flush()
        publish(target / UNFINISHED_FILE, target / MANIFEST_FILE)
        return manifest


@contextlib.contextmanager
def _all_or_nothing(directory: Path) -> Iterator[None]:
    """Leave the directory, which was missing or empty, without any of what was to be copied into it
    where that fails. Raises BackupError where its disk is full.
    """
    try:
        yield
    except BaseException as failed:
        _empty(directory, but=LOCK_FILE)
        if isinstance(failed, StoreFull) or getattr(failed, "errno", 0) in NO_SPACE:
            raise BackupError(
                f"the disk of {directory} is full; nothing was left there. Free some space, or "
                "name a directory on another disk."
            ) from failed
        raise


def _empty(directory: Path, *, but: str) -> None:
    """Remove what is in a directory, but for one file."""
    for path in directory.iterdir():
        if path.name != but:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


class _Copy:
    """The files copied so far, by their place below both directories."""

    def __init__(self, source: Path, target: Path):
        self.source, self.target = source, target
        self.files: dict[Path, CopiedFile] = {}
        self._seen: dict[Path, tuple[int, int, int]] = {}

    def take(self, paths: Iterable[Path]) -> None:
        """Copy these files unless they were copied and have not changed since. One that goes
        meanwhile keeps its earlier copy.
        """
        for path in paths:
            name = path.relative_to(self.source)
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                found = os.fstat(file.fileno())
                state = (found.st_ino, found.st_size, found.st_mtime_ns)
                settled = time.time() - found.st_mtime > SETTLED_SECONDS
                if self._seen.get(name) == state:
                    continue
                (self.target / name).unlink(missing_ok=True)
                self.files[name] = CopiedFile(
                    name.as_posix(), *_stream(file, self.target / name, found.st_mode & 0o700)
                )
                if settled:  # else a change within one tick of the clock would not show
                    self._seen[name] = state

    def add(self, path: Path) -> None:
        """Count in a file that was copied by other means."""
        name = path.relative_to(self.target)
        self.files[name] = CopiedFile(name.as_posix(), path.stat().st_size, _digest(path))


def _copy_store(copy: _Copy, number: int, map_bytes: int) -> CopiedStore:
    """Copy one store, and the files beside it before and after: what the copied rows need is then
    there, in its latest state.
    """
    source = shard_directory(copy.source, number)
    check_data_file(source / DATA_FILE)
    copy.take(_beside(source))
    building = copy.target / f"store-{number:04d}"
    copy_data(source, building, map_bytes)
    directory = shard_directory(copy.target, number)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (building / DATA_FILE).rename(directory / DATA_FILE)
    building.rmdir()
    copy.take(_beside(source))
    copy.add(directory / DATA_FILE)
    _, sequence, rows = figures(directory)
    return CopiedStore(number, sequence, rows)


def _beside(store: Path) -> Iterator[Path]:
    return (path for path in _below(store) if path.relative_to(store).parts[0] not in _OF_LMDB)


@contextlib.contextmanager
def _claimed(target: Path) -> Iterator[BinaryIO]:
    """Make the directory, or empty it where a backup into it was killed, and keep every other one
    off; -> its manifest, to be written. Raises BackupError where anything else is there.
    """
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {path.name for path in target.iterdir()}
    except (FileExistsError, NotADirectoryError):
        raise BackupError(f"{target} is not a directory.") from None
    if names and UNFINISHED_FILE not in names:
        raise _not_empty(target)
    descriptor = os.open(target / UNFINISHED_FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as unfinished:
        try:
            fcntl.flock(unfinished, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"{target} is in use: a backup is being written there.") from None
        if (target / MANIFEST_FILE).exists():  # it was finished before it could be held
            (target / UNFINISHED_FILE).unlink(missing_ok=True)
            raise _not_empty(target)
        _empty(target, but=UNFINISHED_FILE)
        unfinished.truncate(0)
        yield unfinished


def _not_empty(target: Path) -> BackupError:
    return BackupError(
        f"{target} is not empty; a backup goes into a new or an empty directory. If that is what "
        "an earlier release left of a backup that was killed, remove it first."
    )


def _top(data_dir: Path) -> Iterator[Path]:
    """The files of the data directory that belong to no store."""
    for path in _below(data_dir):
        if path.relative_to(data_dir).parts[0] not in {*_DERIVED, "shards"}:
            yield path


def _below(directory: Path) -> Iterator[Path]:
    """Every finished file below, without following links to directories."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(_UNFINISHED):
                yield Path(folder) / name


def _stream(source: BinaryIO, target: Path, mode: int) -> tuple[int, str]:
    """Copy an open file; -> (bytes, SHA-256). The copy is synced, and readable by its owner
    alone.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        while chunk := source.read(COPY_CHUNK_BYTES):
            digest.update(chunk)
            size += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _close(directory: Path) -> None:
    """Keep everybody but the owner out, and make the names of all files durable; their contents are
    already.
    """
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder) / name
            path.chmod(path.stat().st_mode & 0o700)
        os.chmod(folder, 0o700)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- restore --------------------------------------------------------------------------------------


def restore(source: Path, data_dir: Path) -> BackupManifest:
    """Copy a backup into `data_dir`, which is missing or empty, checking every file and count
    against the manifest.

    Nothing is written before every file of the backup has been read and found whole. `layout.json`
    comes last: without it no service takes the directory for its own. Raises BackupError,
    LayoutError.
    """
    manifest = load_manifest(source)
    for file in manifest.files:
        _check_file(source / file.path, file)
    _check_empty(data_dir)
    with held(data_dir):
        _check_empty(data_dir)  # somebody else may have been there first
        with _all_or_nothing(data_dir):
            _fill(source, data_dir, manifest)
    return manifest


def _check_empty(data_dir: Path) -> None:
    if data_dir.exists() and {path.name for path in data_dir.iterdir()} - {LOCK_FILE}:
        raise BackupError(
            f"{data_dir} is not empty; a backup is restored into a new or an empty directory, "
            "never over data."
        )


def _fill(source: Path, data_dir: Path, manifest: BackupManifest) -> None:
    for file in sorted(manifest.files, key=lambda file: file.path == LAYOUT_FILE):
        if file.path == LAYOUT_FILE:
            _check_stores(data_dir, manifest)
        with (source / file.path).open("rb") as content:
            copied = _stream(
                content, data_dir / file.path, os.fstat(content.fileno()).st_mode & 0o700
            )
        if copied != (file.size, file.sha256):
            raise BackupError(f"{source / file.path} changed while it was read; restore it again.")
    _close(data_dir)


def load_manifest(source: Path) -> BackupManifest:
    """The manifest of a backup, with its own checksum verified. Raises BackupError."""
    path = source / MANIFEST_FILE
    try:
        with path.open("rb") as file:
            manifest = _decode_manifest(file.read(MANIFEST_BYTES_MAX))
    except (FileNotFoundError, NotADirectoryError):
        raise BackupError(
            f"{source} is no backup, or an unfinished one: there is no {MANIFEST_FILE}."
        ) from None
    except msgspec.MsgspecError as unreadable:
        raise BackupError(f"{path} is damaged: {unreadable}.") from None
    if manifest.format > MANIFEST_FORMAT:
        raise BackupError(
            f"{path} was written by a newer version of this service (format {manifest.format})."
        )
    if manifest.digest() != manifest.sha256:
        raise BackupError(f"{path} is damaged: checksum.")
    if not all(_is_below(file.path) for file in manifest.files) or LAYOUT_FILE not in {
        file.path for file in manifest.files
    }:
        raise BackupError(f"{path} is damaged: it names files that are no part of a backup.")
    return manifest


def _is_below(path: str) -> bool:
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def _check_file(path: Path, expected: CopiedFile) -> None:
    if not path.is_file():
        raise BackupError(f"{path} is missing from the backup.")
    if path.stat().st_size != expected.size or _digest(path) != expected.sha256:
        raise BackupError(f"{path} is damaged: checksum.")


def _check_stores(data_dir: Path, manifest: BackupManifest) -> None:
    """The restored stores are those of the manifest, commit by commit and row by row."""
    for store in manifest.stores:
        directory = shard_directory(data_dir, store.shard)
        check_data_file(directory / DATA_FILE)
        identity, sequence, rows = figures(directory)
        if (identity.cluster_id, identity.shard, sequence, rows) != (
            manifest.cluster_id,
            store.shard,
            store.sequence,
            store.rows,
        ):
            raise BackupError(
                f"{directory} has {rows} rows at sequence {sequence}; the manifest says "
                f"{store.rows} at {store.sequence}."
            )
