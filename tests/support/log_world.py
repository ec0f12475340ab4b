"""A store whose log is shipped to a real directory or to S3 as moto plays it, with faults in front;
and owners of its shard.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storage.replication import LogShipper, ObjectStore, ObjectStoreFailed, SnapshotTaker
from storage.store import Identity, Scope, Store, Table

IDENTITY = Identity("c", 0, 1, 4_096, 1)
WORDS = Table("words", ("word",), bytes, sealed=True)
KEY = bytes(range(32))
SCOPES = tuple(Scope(slot, 1, b"k" * 32) for slot in range(3))
WAIT_SECONDS = 60

Model = dict[tuple[int, str], bytes]


class FaultyStore(ObjectStore):
    """An object store some of whose requests fail: before they have any effect, or after it.

    failing  every request fails; lossy: the share of them that does; late: seconds each takes
    """

    def __init__(self, url: str, place: str = "", faults: random.Random | None = None):
        super().__init__(url, place)
        self.failing, self.lossy, self.late = False, 0.0, 0.0
        self.answers_lost = 0
        self._faults = faults or random.Random(0)

    def _call(self, verb, path, *arguments, **options):  # type: ignore[no-untyped-def]
        time.sleep(self.late)
        if self.failing or self._faults.random() < self.lossy / 2:
            raise ObjectStoreFailed("the request was lost")
        answer = super()._call(verb, path, *arguments, **options)
        if self._faults.random() < self.lossy / 2:
            self.answers_lost += 1
            raise ObjectStoreFailed("the answer was lost")
        return answer


@dataclass(frozen=True)
class Kind:
    """What a store is, for whoever opens it."""

    tables: tuple[Table, ...] = (WORDS,)
    identity: Identity = IDENTITY
    service_key: bytes = KEY


PLAIN = Kind()


def open_store(directory: Path, *, create: bool = True, kind: Kind = PLAIN) -> Store:
    return Store.open(
        directory,
        kind.tables,
        identity=kind.identity,
        create=create,
        service_key=kind.service_key,
    )


class Owner:
    """A store and its shipper, as a shard has them."""

    def __init__(
        self,
        directory: Path,
        objects: ObjectStore,
        *,
        replicated: bool = True,
        backlog_bytes: int = 1 << 30,
        lease_seconds: float = 0,
        kind: Kind = PLAIN,
    ):
        self.directory = directory
        self.store = open_store(directory, kind=kind)
        self.stored = 0
        self.fenced = ""
        self.shipper = LogShipper(
            self.store,
            objects,
            owner=str(directory),
            replicated=replicated,
            interval_seconds=0.02,
            backlog_bytes=backlog_bytes,
            lease_seconds=lease_seconds,
            on_stored=self._on_stored,
            on_fenced=self._on_fenced,
        )
        self.taker = SnapshotTaker(
            self.store, objects, self.shipper, interval_seconds=3_600, log_bytes=1 << 30
        )
        try:
            self.shipper.open()
        except BaseException:
            self.store.close()
            raise

    def start(self, *, snapshots: bool = True) -> Owner:
        self.shipper.start()
        if snapshots:
            self.taker.start()
        return self

    def _on_stored(self, sequence: int) -> None:
        self.stored = max(self.stored, sequence)

    def _on_fenced(self, why: str) -> None:
        self.fenced = why

    def put(self, word: str, value: bytes = b"1", scope: int = 0) -> int:
        return self.store.write(
            lambda transaction: transaction.bind(WORDS, SCOPES[scope]).put((word,), value)
        ).sequence

    def delete(self, word: str, scope: int = 0) -> int:
        return self.store.write(
            lambda transaction: transaction.bind(WORDS, SCOPES[scope]).delete(word)
        ).sequence

    def await_stored(self, sequence: int | None = None) -> None:
        wanted = self.store.sequence if sequence is None else sequence
        until(lambda: self.stored >= wanted or bool(self.fenced))
        assert not self.fenced, self.fenced

    def close(self, seconds: float = 10.0) -> None:
        self.taker.close()
        self.shipper.close(seconds)
        self.store.close()

    def crash(self) -> None:
        """End as a killed process does: nothing more is shipped or saved."""
        self.shipper.fenced = True
        self.taker.close()
        self.shipper.close(0)
        self.store.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


def contents(store: Store) -> Model:
    found: Model = {}
    with store.snapshot() as snapshot:
        for number, scope in enumerate(SCOPES):
            found |= {(number, key[0]): row for key, row in snapshot.bind(WORDS, scope).scan()}
    return found


def contents_of(directory: Path) -> Model:
    store = open_store(directory, create=False)
    try:
        return contents(store)
    finally:
        store.close()


@contextmanager
def owner(directory: Path, objects: ObjectStore, **options) -> Iterator[Owner]:  # type: ignore[no-untyped-def]
    held = Owner(directory, objects, **options).start()
    try:
        yield held
    finally:
        held.close()
