"""The log of commits: what each transaction changed, kept in the same LMDB transaction, so that log
and state cannot differ.

It owns a third database, `log`, of one record for each commit, by sequence, and `log` in `meta`:
how far the log was shipped. It knows physical keys and stored bytes, no tables. Rows of structs
stand in it sealed, as in the store.

Nothing is recorded unless somebody holds the log: whoever ships it elsewhere
(storage/replication/shipper.py), or copies a range of keys and then wants what changed since. A
Hold keeps the records after its place; what no hold keeps is trimmed by the commits that follow.

    hold = store.log.hold()                              every commit from here on is recorded
    with store.snapshot() as snapshot: …                 copy the range; the copy is as of
                                                         snapshot.sequence
    records = store.log.read(snapshot.sequence, prefix)  what changed in it since, in order
    hold.advance(records[-1].sequence)                   what was read is not needed any more
    hold.release()

A record covers one sequence, since each group commit is one transaction. Commits that nobody held
the log for left no record; a reader that comes to such a place gets LogGap, never a log with a
hole.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import msgspec

from storage.store.directory import StoreError
from storage.store.environment import Environment
from storage.store.schema import Changes

LOG_READ_BYTES_MAX = 4 << 20
LOG_TRIMMED_PER_COMMIT = 256

_LOG, _STATE = b"log", b"log"
_SEQUENCE_BYTES = 8


class LogGap(StoreError):
    """The log does not reach back to where it was asked from: copy the state anew."""


class CommitRecord(msgspec.Struct, array_like=True, frozen=True):
    """One commit.

    epoch     of the owner that made it; 0 when none was taken
    sequence  of the commit
    at        when, Unix milliseconds, by the owner's clock, which never goes back (see
              CommitLog.not_before)
    changes   (physical key, stored bytes, or None for a deletion), each key once, as the commit
              left it
    """

    epoch: int
    sequence: int
    at: int
    changes: list[tuple[bytes, bytes | None]]


class ShippingState(msgspec.Struct, frozen=True):
    """Where the shipped log ends, as far as this directory knows, and as whose owner it was
    shipped.

    epoch, token  the epoch that this directory took last, or was about to take, and what it proves
                  that with
    former        the token of the epoch it held before that
    number, hash  of the last stored segment
    tail          epoch of that segment, which names the next one
    sequence      the last commit in it
    ring          records of keys.ring in it and in those before
    broken        whether what is shipped waits for a snapshot to be of use
    superseded    whether another owner is known to have taken the shard since: the directory must
                  never be served again
    """

    epoch: int = 0
    token: str = ""
    former: str = ""
    number: int = 0
    hash: bytes = b""
    tail: int = 0
    sequence: int = 0
    ring: int = 0
    broken: bool = False
    superseded: bool = False


_decode_state = msgspec.msgpack.Decoder(ShippingState).decode


_encoder = msgspec.msgpack.Encoder()
decode_record = msgspec.msgpack.Decoder(CommitRecord).decode


class Hold:
    """Keeps every record after `after`. Release it, or the log grows."""

    def __init__(self, log: CommitLog, after: int):
        self._log = log
        self.after = after

    def advance(self, sequence: int) -> None:
        """Records up to this sequence are not needed any more."""
        self.after = max(self.after, sequence)

    def release(self) -> None:
        self._log._released(self)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class CommitLog:
    """The log of one open store, as `store.log`. Safe from any thread."""

    def __init__(self, environment: Environment):
        self._environment = environment
        self._db: Any = None
        self._holds: list[Hold] = []
        # The newest known, to be written by the next commit.
        self._state: ShippingState | None = None
        self._written: ShippingState | None = None  # by the running transaction
        self._saved: ShippingState | None = None
        self.epoch = 0
        self.grown = threading.Event()  # set by each recorded commit; whoever waits clears it
        self.recorded_bytes = 0  # by this process
        self._latest = 0

    def now(self) -> int:
        """The time of a commit that would be made now, Unix milliseconds."""
        return max(time.time_ns() // 1_000_000, self._latest)

    def not_before(self, at: int) -> None:
        """Give no further commit an earlier time: what it follows from happened then, by another's
        clock.
        """
        self._latest = max(self._latest, at)

    def hold(self, after: int | None = None) -> Hold:
        """Record from now on, and keep what comes after `after` (default: the last commit). Raises
        LogGap when it is gone.
        """
        with self._environment.write_lock:
            last = self._environment.last_sequence()
            if (
                self._opened(create=True)
                and after is not None
                and after < last
                and self._next(after) != after + 1
            ):
                raise LogGap(
                    f"{self._environment.directory}: the log does not reach back to commit {after}."
                )
            hold = Hold(self, last if after is None else after)
            self._holds.append(hold)
            return hold

    def read(
        self, after: int, prefix: bytes = b"", bytes_max: int = LOG_READ_BYTES_MAX
    ) -> list[CommitRecord]:
        """The records after that sequence, in order, up to about so many bytes; of each the changes
        of keys with this prefix.

        A record without such changes is there all the same, so the last one says how far the reader
        has come; an empty list says that nothing was committed since. Raises LogGap.
        """
        found = [decode_record(raw) for _, raw in self.raw(after, bytes_max)]
        if not prefix:
            return found
        return [
            CommitRecord(
                record.epoch,
                record.sequence,
                record.at,
                [change for change in record.changes if change[0].startswith(prefix)],
            )
            for record in found
        ]

    def raw(self, after: int, bytes_max: int = LOG_READ_BYTES_MAX) -> list[tuple[int, bytes]]:
        """As read, each record as it is stored: (sequence, bytes). At least one, if there is
        any.
        """
        found: list[tuple[int, bytes]] = []
        if not self._opened():
            if self._environment.last_sequence() > after:
                raise LogGap(f"{self._environment.directory} keeps no log.")
            return found
        with self._environment.reading() as transaction:
            size, end = 0, self._environment.sequence(transaction)
            with transaction.cursor(db=self._db) as cursor:
                rows = cursor.iternext() if cursor.set_range(_key(after + 1)) else iter(())
                for expected, (key, raw) in enumerate(rows, after + 1):
                    if key != _key(expected):
                        raise LogGap(
                            f"{self._environment.directory}: commit {expected} is not in the log."
                        )
                    if found and size + len(raw) > bytes_max:
                        break
                    found.append((expected, raw))
                    size += len(raw)
        if not found and end > after:
            raise LogGap(f"{self._environment.directory}: commit {after + 1} is not in the log.")
        return found

    def size(self) -> dict[str, int]:
        """How many records the log holds, trimmed ones that are still there included, and the bytes
        of its pages.
        """
        if not self._opened():
            return {"records": 0, "bytes": 0}
        with self._environment.reading() as transaction:
            stat = transaction.stat(self._db)
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return {"records": stat["entries"], "bytes": pages * stat["psize"]}

    def state(self) -> ShippingState:
        """What was last saved, or kept for the next commit to save."""
        if self._state is not None:
            return self._state
        with self._environment.reading() as transaction:
            raw = transaction.get(_STATE, db=self._environment.meta)
        return ShippingState() if raw is None else _decode_state(raw)

    @property
    def saved(self) -> ShippingState:
        """What is on disk, as far as this process has written it."""
        return self._saved or ShippingState()

    def keep(self, state: ShippingState) -> None:
        """Have the next commit save this with its own fsync."""
        self._state = state

    def save(self, state: ShippingState) -> None:
        """Save it now."""
        self._state = state
        self._environment.write(self._write_state)
        self._saved = state

    def clear(self) -> None:
        """Remove every record, where there are any."""
        if self._opened() and self.size()["records"]:
            self._environment.write(lambda inner: inner.drop(self._db, delete=False))

    # --- for the store ----------------------------------------------------------------------------

    def changes(self) -> Changes | None:
        """Where a transaction that begins is to note what it changes; None when nobody wants to
        know.
        """
        return {} if self._holds else None

    def append(self, transaction: Any, sequence: int, changes: Changes) -> None:
        """Record a commit inside its own LMDB transaction, and trim what nobody holds."""
        self._latest = self.now()
        raw = _encoder.encode(
            CommitRecord(self.epoch, sequence, self._latest, list(changes.items()))
        )
        if not transaction.put(_key(sequence), raw, append=True, db=self._db):
            raise StoreError(
                f"{self._environment.directory}: the log holds commits later than {sequence}."
            )
        self._trim(transaction, min((hold.after for hold in self._holds), default=sequence))
        self._write_state(transaction)
        self.recorded_bytes += len(raw)

    def committed(self) -> None:
        """The transaction of the last append is on disk."""
        self._saved = self._written
        self.grown.set()

    def _trim(self, transaction: Any, up_to: int) -> None:
        with transaction.cursor(db=self._db) as cursor:
            found = cursor.first()
            for _ in range(LOG_TRIMMED_PER_COMMIT):
                if not found or int.from_bytes(cursor.key(), "big") > up_to:
                    return
                found = cursor.delete() and cursor.key() != b""

    def _write_state(self, transaction: Any) -> None:
        self._written = self._state
        if self._written is not self._saved:
            transaction.put(
                _STATE, msgspec.msgpack.encode(self._written), db=self._environment.meta
            )

    def _opened(self, create: bool = False) -> bool:
        """Open the log database, made if asked to; -> whether there is one. One that never recorded
        anything has none.
        """
        if self._db is None:
            self._db = self._environment.open_database(_LOG, create=create)
        return self._db is not None

    def _next(self, after: int) -> int | None:
        with self._environment.reading() as transaction, transaction.cursor(db=self._db) as cursor:
            return (
                int.from_bytes(cursor.key(), "big") if cursor.set_range(_key(after + 1)) else None
            )

    def _released(self, hold: Hold) -> None:
        with self._environment.write_lock:
            if hold in self._holds:
                self._holds.remove(hold)
            if not self._holds and not self._environment.is_closed:
                self.clear()


def _key(sequence: int) -> bytes:
    return sequence.to_bytes(_SEQUENCE_BYTES, "big")
