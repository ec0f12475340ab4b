"""One store's directory on disk: who may open it, and whether its data file can be opened at all.

    data.mdb   the LMDB data file
    lock.mdb   LMDB's reader table; rebuilt at will
    LOCK       held with flock for as long as the store is open; contains the holder's process id

It knows the frame of a data file (two meta pages and a length), not what is inside. It exists
because LMDB maps the file into memory and trusts it: a file shorter than its meta page says would
end the process with SIGBUS at the first missing page.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from storage.store.free_pages import Unreadable, free_from

DATA_FILE = "data.mdb"
LOCK_FILE = "LOCK"
COPY_SECONDS_MAX = 3_600
READERS_SECONDS_MAX = 60
# Address space, of which a file takes what it has: so a store may become so large, and its map
# never has to grow.
MAP_BYTES = 1 << 40
UNWRITTEN_PAGES_MAX = 1 << 20

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PROBE_BYTES = 1 << 20
_META_MAGIC = 0xBEEFC0DE
_META_VERSION = 1
_META_AT = 16  # behind the page header
_META_BYTES = 136
_PAGE_BYTES_MIN, _PAGE_BYTES_MAX = 512, 65_536


class StoreError(Exception):
    """The store cannot do what was asked; the message names the path and the way out."""


class StoreInUse(StoreError):
    """Another open store, in this process or another, holds the directory."""


class StoreMissing(StoreError):
    """There is no store here and none was to be created."""


class StoreMismatch(StoreError):
    """The directory holds another store than the one expected: cluster, shard, number of shards or
    slots, or a missing migration.
    """


class StoreOlder(StoreMismatch):
    """An older release wrote this store: opened to write it is brought up to date, to read it is
    not.
    """


class StoreTooNew(StoreError):
    """A newer release wrote this store."""


class StoreDamaged(StoreError):
    """The data file is not what was written: cut short, overwritten, or unreadable."""


class StoreFull(StoreError):
    """A write could not be stored for want of space. Nothing of it was committed; reads go on."""


class StoreAtBound(StoreFull):
    """As StoreFull, where the device may have room: the store is as large as its map."""


class DeviceFailed(StoreError):
    """The device did not read or write as it should. What it has of the last write is unknown until
    the store is opened anew, in another process.
    """


def write_fault(path: Path, error: Exception, number: int | None) -> StoreError:
    """A write that ended with this errno, as one of our errors: StoreFull where there is no room,
    DeviceFailed else.

    LMDB tells a write that was cut short, as the last one of a device that fills up is, as EIO. So
    it is tried whether there is room.
    """
    if number in NO_SPACE or (number == errno.EIO and not _has_room(path)):
        return StoreFull(
            f"{path} cannot be written ({error}); the last write was not stored. Free space on its "
            "device."
        )
    return DeviceFailed(
        f"{path} cannot be written ({error}): its device failed. Look at the system's log; what "
        "the device has shows when the store is opened again."
    )


def _has_room(path: Path) -> bool:
    """Whether a scratch file beside this one takes a little more where this one ends."""
    try:
        with tempfile.TemporaryFile(dir=path.parent, buffering=0) as scratch:
            written = os.pwrite(scratch.fileno(), bytes(_PROBE_BYTES), path.stat().st_size)
            os.fsync(scratch.fileno())
    except OSError as refused:
        return refused.errno not in NO_SPACE
    return written == _PROBE_BYTES


class DirectoryLock:
    """An exclusive hold on a directory, from construction until release() or the end of the
    process.

    Raises StoreInUse where another has it; StoreFull or DeviceFailed where the process's id cannot
    be written, and then nobody has it.
    """

    def __init__(self, directory: Path):
        path = directory / LOCK_FILE
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreInUse(
                f"{directory} is in use by process {holder}; stop that process or choose another "
                "directory."
            ) from None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._fd)
            raise write_fault(path, error, error.errno) from error

    def release(self) -> None:
        os.close(self._fd)


def check_data_file(path: Path) -> None:
    """Raise StoreDamaged unless both meta pages are LMDB's and every page the newer one counts
    lies inside the file or is free.
    """
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            newest = _newest_meta(file)
            expected = (newest.last_page + 1) * newest.page_bytes
            missing = range(size // newest.page_bytes, newest.last_page + 1)
            if size < expected and not _are_free(file, newest, missing):
                raise StoreDamaged(
                    f"{path} has {size} bytes where {expected} are expected: it was cut short. "
                    "Restore it from a backup."
                )
    except ValueError as error:
        raise StoreDamaged(
            f"{path} is not a readable data file: {error}. Restore it from a backup."
        ) from error


class Geometry(NamedTuple):
    """A data file as pages, of which `free` hold nothing."""

    page_bytes: int
    pages: int
    free: set[int]


def geometry(path: Path) -> Geometry:
    """The pages of a data file that nobody writes. Raises StoreDamaged."""
    check_data_file(path)
    with path.open("rb") as file:
        newest = _newest_meta(file)
        try:
            free = free_from(file, newest.page_bytes, newest.free_root, 0)
        except Unreadable as senseless:
            raise StoreDamaged(f"{path} is damaged: {senseless}.") from senseless
    return Geometry(newest.page_bytes, newest.last_page + 1, free)


def _newest_meta(file: BinaryIO) -> _Meta:
    """The newer of both meta pages. Raises ValueError."""
    page_bytes = _read_meta(file.read(_META_AT + _META_BYTES)[_META_AT:]).page_bytes
    metas = []
    for number in (0, 1):
        file.seek(number * page_bytes + _META_AT)
        metas.append(_read_meta(file.read(_META_BYTES)))
    return max(metas, key=lambda meta: meta.transaction)


class _Meta(NamedTuple):
    """What counts of a meta page. free_root: the root page of the list of free pages."""

    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


def _are_free(file: BinaryIO, meta: _Meta, missing: range) -> bool:
    """Whether nothing was ever written to these pages, as far as the newest commit knows."""
    if len(missing) > UNWRITTEN_PAGES_MAX:
        return False
    try:
        return free_from(file, meta.page_bytes, meta.free_root, missing.start).issuperset(missing)
    except Unreadable:
        return False


def _read_meta(raw: bytes) -> _Meta:
    """The meta record's bytes. Raises ValueError."""
    if len(raw) < _META_BYTES:
        raise ValueError("it ends inside its header")
    magic, version = struct.unpack_from("=II", raw, 0)
    if magic != _META_MAGIC or version != _META_VERSION:
        raise ValueError("its header is not LMDB's")
    (page_bytes,) = struct.unpack_from("=I", raw, 24)
    if not _PAGE_BYTES_MIN <= page_bytes <= _PAGE_BYTES_MAX or page_bytes & (page_bytes - 1):
        raise ValueError(f"its header gives a page size of {page_bytes} bytes")
    (free_root,) = struct.unpack_from("=Q", raw, 64)
    last_page, transaction = struct.unpack_from("=QQ", raw, 120)
    return _Meta(page_bytes, free_root, last_page, transaction)


def copy_data(
    source: Path, target: Path, map_bytes: int = MAP_BYTES, *, compact: bool = True
) -> None:
    """A copy of the open data file in `source`, as of its last commit, in the new directory
    `target`; compact: without free pages, those in use numbered anew.

    LMDB's own tool makes it in a process of its own, which reads like any other reader: inside this
    process a long copy would hold up every abort. StoreError when it fails; nothing stays under
    `target` then.
    """
    building = target.with_name(target.name + ".partial")
    shutil.rmtree(building, ignore_errors=True)
    building.parent.mkdir(parents=True, exist_ok=True)
    how = ["--compact"] if compact else []
    command = [*_tool(source, map_bytes), *how, "copy", str(building)]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=COPY_SECONDS_MAX
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(building, ignore_errors=True)
        _forget_dead_readers(source, map_bytes)
        reason = str(error.stderr or error).strip().rsplit("\n", 1)[-1]
        kind = StoreFull if reason.endswith(tuple(map(os.strerror, NO_SPACE))) else StoreError
        raise kind(f"{source} could not be copied to {target}: {reason}") from error
    building.chmod(0o700)
    publish(building, target)


def _forget_dead_readers(source: Path, map_bytes: int) -> None:
    """Free what a reader that was killed holds: until then no page that it saw is used again, and
    the file grows by every write.
    """
    command = [*_tool(source, map_bytes), "readers", "--clean"]
    with contextlib.suppress(subprocess.TimeoutExpired):  # whoever has it open looks as well
        subprocess.run(command, capture_output=True, timeout=READERS_SECONDS_MAX)


def _tool(source: Path, map_bytes: int) -> list[str]:
    """The beginning of a command of LMDB's own tool, which reads the open data file there."""
    options = ["--read", "--map_size", str(map_bytes >> 20), "--env", str(source)]
    return [sys.executable, "-m", "lmdb", *options]


def make_directory(directory: Path, mode: int = 0o700) -> None:
    """Make a directory and those above it that are missing, and have each name survive a power
    failure.
    """
    missing = []
    while not directory.exists():
        missing.append(directory)
        directory = directory.parent
    for path in reversed(missing):
        path.mkdir(mode=mode, exist_ok=True)
        try:
            _sync(path.parent)
        except OSError:  # else it would pass for one that was synced
            path.rmdir()
            raise


def publish(finished: Path, name: Path) -> None:
    """Give a finished data file, or a directory that holds one, its final name, so that both
    survive a power failure.
    """
    _sync(finished / DATA_FILE if finished.is_dir() else finished)
    finished.rename(name)
    if name.is_dir():
        _sync(name)
    _sync(name.parent)
    _sync(name.parent.parent)  # which may hold a directory as new as the file


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
