"""One LMDB environment on disk: made, opened, and its faults told in our words.

It knows that an environment holds two databases, `main` for rows and `meta` for the store's
identity and sequence, and nothing else of what lies in them. It owns who may be inside: readers are
counted, and one writes at a time.

The map is as large from the start as a store may become (MAP_BYTES), so nobody ever waits for it to
grow: it takes address space, and memory only for what is read.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import msgspec

from storage.store.bound_table import SCOPE_BYTES
from storage.store.cursor import beginnings
from storage.store.directory import (
    DATA_FILE,
    DeviceFailed,
    StoreAtBound,
    StoreDamaged,
    StoreError,
    copy_data,
    publish,
    write_fault,
)
from storage.store.keycode import ALL_KEYS_END
from storage.store.reader_gate import ReaderGate
from storage.store.schema import Identity, Scope, T, check_identity

_decode_identity = msgspec.json.Decoder(Identity).decode

READERS_MAX = 1_024
DATABASES_MAX = 4
CLOSE_SECONDS_MAX = 10
ABORT_SECONDS_MAX = 1
IDENTITY, SEQUENCE = b"identity", b"sequence"

_OF_THE_DEVICE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def fault(error: lmdb.Error, path: Path) -> StoreError:
    """LMDB's error as one of ours."""
    if isinstance(error, lmdb.MapFullError):
        return StoreAtBound(
            f"{path} is as large as storage.map_bytes_max allows; the last write was not stored. "
            "Raise it, or move slots to other shards."
        )
    if error.code in _OF_THE_DEVICE:
        return write_fault(path, error, error.code)
    if isinstance(error, lmdb.PanicError):
        return DeviceFailed(
            f"{path}: a write failed on its last step ({error}). What the device has of it shows "
            "when the store is opened again."
        )
    if isinstance(
        error,
        lmdb.CorruptedError
        | lmdb.PageNotFoundError
        | lmdb.InvalidError
        | lmdb.VersionMismatchError,
    ):
        return StoreDamaged(
            f"{path} is damaged ({error}). Reopen it; if that fails, restore it from a backup."
        )
    return StoreError(f"{path}: {error}")


def create(directory: Path, identity: Identity) -> None:
    """Build an empty store beside the final name and rename it into place, so that a data file is
    either absent or whole.
    """
    building = directory / ".creating"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    identity = replace(identity, cluster_id=identity.cluster_id or uuid.uuid4().hex)
    try:
        with lmdb.open(
            str(building), mode=0o700, max_dbs=DATABASES_MAX, lib_version=0
        ) as environment:
            environment.open_db(b"main")
            meta = environment.open_db(b"meta")
            with environment.begin(db=meta, write=True) as transaction:
                transaction.put(IDENTITY, msgspec.json.encode(identity))
                transaction.put(SEQUENCE, (0).to_bytes(8, "big"))
    except lmdb.Error as error:
        raise fault(error, building / DATA_FILE) from error
    publish(building / DATA_FILE, directory / DATA_FILE)
    shutil.rmtree(building)


class Environment:
    """An open environment: its databases, its readers, and its one writer.

    main, meta  the databases
    write_lock  held by whoever writes; reentrant
    """

    def __init__(self, directory: Path, opened: lmdb.Environment):
        self.directory = directory
        self.data_file = directory / DATA_FILE
        self.write_lock = threading.RLock()
        self.is_closed = False
        self._gate = ReaderGate()
        self._writing = False
        self._use(opened)

    def _use(self, opened: lmdb.Environment) -> None:
        self._lmdb = opened
        self.main, self.meta = opened.open_db(b"main"), opened.open_db(b"meta")

    @property
    def map_bytes(self) -> int:
        return self._lmdb.info()["map_size"]

    @property
    def readers(self) -> int:
        """How many are reading."""
        return self._gate.readers

    def fault(self, error: lmdb.Error) -> StoreError:
        """LMDB's error as one of ours."""
        return fault(error, self.data_file)

    # --- reading ----------------------------------------------------------------------------------

    def begin(self) -> lmdb.Transaction[bytes]:
        """Begin to read; `end` it, since pages that it sees cannot be used again meanwhile."""
        self._gate.enter()
        if self.is_closed:
            self._gate.leave()
            raise StoreError(f"{self.directory} is closed.")
        try:
            return self._lmdb.begin(db=self.main)
        except lmdb.Error as error:
            self._gate.leave()
            raise self.fault(error) from error

    def end(self, transaction: lmdb.Transaction[bytes]) -> None:
        transaction.abort()
        self._gate.leave()

    @contextlib.contextmanager
    def reading(self) -> Iterator[lmdb.Transaction[bytes]]:
        """A block that reads."""
        transaction = self.begin()
        try:
            yield transaction
        finally:
            self.end(transaction)

    def forget_dead_readers(self) -> int:
        """Free what readers of other processes hold that were killed; -> how many there were. Until
        then no page that one of them saw is used again, and the file grows by every write.
        """
        with self.write_lock:  # which closing takes too
            if self.is_closed:
                return 0
            try:
                return self._lmdb.reader_check()
            except lmdb.Error as error:
                raise self.fault(error) from error

    def reader_lag(self) -> int:
        """How many commits of LMDB's were made since the one that the oldest reader sees, of
        whichever process; 0 when nobody reads.
        """
        seen = [
            int(fields[2])
            for line in self._lmdb.readers().splitlines()[1:]
            if len(fields := line.split()) == 3 and fields[2].isdigit()
        ]
        return max(0, self._lmdb.info()["last_txnid"] - min(seen)) if seen else 0

    def sequence(self, transaction: lmdb.Transaction[bytes]) -> int:
        """The sequence of the commit that a transaction sees."""
        return int.from_bytes(transaction.get(SEQUENCE, b"", db=self.meta), "big")

    def last_sequence(self) -> int:
        """The sequence of the last commit."""
        with self.reading() as transaction:
            return self.sequence(transaction)

    # --- writing ----------------------------------------------------------------------------------

    def exclusively(self, attempt: Callable[[], T]) -> T:
        """Run `attempt`, which may write, while nobody else does."""
        with self.write_lock:
            if self._writing:
                raise StoreError("a write inside a write: use Transaction.child")
            self._writing = True
            try:
                return attempt()
            finally:
                self._writing = False

    def begin_write(self, parent: lmdb.Transaction[bytes] | None = None) -> lmdb.Transaction[bytes]:
        """Begin to write, or a nested transaction; what fails is undone by `undo`."""
        return self._lmdb.begin(db=self.main, parent=parent, write=True)

    def write(self, work: Callable[[lmdb.Transaction[bytes]], Any]) -> None:
        """Run `work` in a transaction of its own and commit it; it is no commit of the store's and
        has no sequence.
        """
        self.exclusively(lambda: self._attempt(work))

    def _attempt(self, work: Callable[[lmdb.Transaction[bytes]], Any]) -> None:
        try:
            inner = self.begin_write()
            try:
                work(inner)
                inner.commit()
            except BaseException:
                self.undo(inner, True)
                raise
        except lmdb.Error as error:
            raise self.fault(error) from error

    def undo(self, inner: lmdb.Transaction[bytes], is_dirty: bool) -> None:
        """End a failed write transaction or child.

        py-lmdb aborts only at an instant when no other thread is inside a call of this environment,
        which busy readers can put off for many seconds; so they are held back for it. A transaction
        that changed nothing is committed instead: that never waits.
        """
        if not is_dirty:
            # It may have failed in LMDB itself; the abort below ends it then.
            with contextlib.suppress(lmdb.Error):
                inner.commit()
                return
        with self._gate.alone(ABORT_SECONDS_MAX):
            inner.abort()

    def check_sound(self) -> None:
        """Raise DeviceFailed when a write failed on its last step, so that nobody knows whether it
        was stored.
        """
        try:
            self.begin_write().commit()
        except lmdb.Error as error:
            raise self.fault(error) from error

    # --- the whole --------------------------------------------------------------------------------

    def open_database(self, name: bytes, *, create: bool) -> Any:
        """A further database, or None when there is none and none is to be made."""
        with self.write_lock, contextlib.suppress(lmdb.NotFoundError):
            return self._lmdb.open_db(name, create=create)
        return None

    def copy(self, target: Path, *, compact: bool = True) -> None:
        """A copy in a new directory, see copy_data."""
        self.forget_dead_readers()
        try:
            copy_data(self.directory, target, self.map_bytes, compact=compact)
        finally:
            self.forget_dead_readers()

    def reopen_after(self, step: Callable[[], None]) -> None:
        """Close, take a step that replaces the data file, and open again. Nobody may be inside."""
        map_bytes = self.map_bytes
        self._lmdb.close()
        step()
        self._use(open_environment(self.directory, map_bytes))

    def close(self) -> bool:
        """Wait for the running write and, up to a bound, for readers; then close. -> whether it was
        open.
        """
        with self.write_lock, self._gate.alone(CLOSE_SECONDS_MAX):
            was_open, self.is_closed = not self.is_closed, True
            if was_open:
                self._lmdb.close()
            return was_open


def open_environment(
    directory: Path, map_bytes: int, *, readonly: bool = False
) -> lmdb.Environment:
    """Open LMDB as every store is opened."""
    try:
        return lmdb.open(
            str(directory),
            map_size=map_bytes,
            mode=0o700,
            max_dbs=DATABASES_MAX,
            max_readers=READERS_MAX,
            readonly=readonly,
        )
    except lmdb.MemoryError as refused:
        raise StoreError(
            f"{directory}: the system refuses {map_bytes} bytes of address space ({refused}). Lift "
            "its limit (`ulimit -v unlimited`), or lower storage.map_bytes_max, which is also how "
            "large a store may become."
        ) from refused
    except lmdb.Error as error:
        raise fault(error, directory / DATA_FILE) from error


def open_as(
    directory: Path, identity: Identity, map_bytes: int, *, readonly: bool = False
) -> tuple[Environment, Identity, int]:
    """Open LMDB and compare the stored identity with the expected one; -> (environment, stored
    identity, sequence).
    """
    environment = open_environment(directory, map_bytes, readonly=readonly)
    try:
        meta = environment.open_db(b"meta", create=False)
        with environment.begin(db=meta) as transaction:
            raw = transaction.get(IDENTITY)
            sequence = int.from_bytes(transaction.get(SEQUENCE, b""), "big")
        if raw is None:
            raise StoreDamaged(
                f"{directory / DATA_FILE} carries no identity: it is no store of ours, or it was "
                "damaged."
            )
        stored = _decode_identity(raw)
        check_identity(directory, stored, identity)
        return Environment(directory, environment), stored, sequence
    except BaseException as error:
        environment.close()
        if isinstance(error, lmdb.NotFoundError):
            raise StoreDamaged(
                f"{directory / DATA_FILE} is an LMDB file, but not a store of ours."
            ) from error
        if isinstance(error, lmdb.Error):
            raise fault(error, directory / DATA_FILE) from error
        raise


class Figures(NamedTuple):
    """What a data file says of itself: which store it is, the sequence of its last commit, and how
    many rows it has.
    """

    identity: Identity
    sequence: int
    rows: int


def figures(directory: Path) -> Figures:
    """Read them from a data file that nobody writes, such as a copy. StoreDamaged when it is none
    of ours.
    """

    def read(environment: lmdb.Environment) -> Figures:
        main, meta = (
            environment.open_db(b"main", create=False),
            environment.open_db(b"meta", create=False),
        )
        with environment.begin(db=meta) as transaction:
            identity = _decode_identity(transaction.get(IDENTITY, b""))
            return Figures(
                identity,
                int.from_bytes(transaction.get(SEQUENCE, b""), "big"),
                transaction.stat(main)["entries"],
            )

    return _read_alone(directory, read)


def scopes(directory: Path) -> list[Scope]:
    """Every scope that has rows in a data file that nobody writes, whatever its tables, in order; a
    slot's own rows count as tenant 0. StoreDamaged when it is none of ours.
    """

    def read(environment: lmdb.Environment) -> list[Scope]:
        main = environment.open_db(b"main", create=False)
        with environment.begin(db=main) as transaction, transaction.cursor() as cursor:
            return [
                Scope(int.from_bytes(prefix[:2], "big"), int.from_bytes(prefix[2:], "big"))
                for prefix in beginnings(cursor, SCOPE_BYTES, b"\x00", ALL_KEYS_END)
            ]

    return _read_alone(directory, read)


def _read_alone(directory: Path, read: Callable[[lmdb.Environment], T]) -> T:
    try:
        with lmdb.open(
            str(directory), max_dbs=DATABASES_MAX, readonly=True, lock=False
        ) as environment:
            return read(environment)
    except (lmdb.Error, msgspec.MsgspecError) as error:
        raise StoreDamaged(
            f"{directory / DATA_FILE} cannot be read as a store: {error}."
        ) from error
