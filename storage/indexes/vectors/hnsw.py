"""An HNSW graph over the vectors of one space, and the files that let it survive a restart.

It owns the graph (hnswlib lives here alone) and the format of its checkpoint. It does not know
rows, commits or who may see what: storage/indexes/vectors/__init__.py decides what goes in, and
scores what the graph proposes from its own matrix.

Files, under `indexes/` in the store's directory:

    <index>-<slot>-<tenant>-<digest of the space>.head            magic ‖ digest of the rest ‖
                                                                  msgpack of _Head
    <the same>-<digest of the content>.hnsw                       hnswlib's own file, named by the
                                                                  head and sealed for the tenant

hnswlib's file holds the vectors, from which texts can be guessed. So it comes open into memory
alone: hnswlib writes and reads an anonymous file there.

Invariants
- A head is written after the file it names, both synced and renamed into place, so a crash leaves
  the former checkpoint or the new one. Nothing is used whose digest does not match: hnswlib trusts
  its file and would crash on a damaged one.
- `members` are in the graph and were not dropped since; `pending` should be in it but are absent,
  or there in an older form.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import hnswlib
import msgspec
import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.store import Keyring, KeyShredded, Scope, StoreDamaged, publish, seal_file, unseal_file

LINKS, BUILD_BREADTH = 16, 100  # hnswlib's M and ef_construction
# hnswlib's ef, at least. Of 100,000 clustered vectors of 384 numbers 64 recalls 0.95 of the ten
# nearest, 128 0.990, 192 0.995, and the step from 64 to 192 costs 0.1 ms a query.
SEARCH_BREADTH = 192
WASTE_MAX = 1.5  # a graph is wasteful when it holds this many times its members
DIRECTORY = "indexes"

_MAGIC = b"mnemeHN2"
_DIGEST_BYTES = 16
_ELEMENTS_MIN = 1_024

Vectors = NDArray[np.float32]


class Graph:
    """HNSW by dot product; labels are ordinals.

    Its sets belong to whoever holds the lock of its space, who so decides what is to be taken up;
    the index itself has a lock of its own. So a commit never waits for an insertion, and a search
    for one call of `take` at most, since hnswlib lets no search meet a change.
    """

    def __init__(
        self, width: int, index: hnswlib.Index | None = None, members: BitMap | None = None
    ):
        if index is None:
            index = hnswlib.Index("ip", width)
            index.init_index(_ELEMENTS_MIN, M=LINKS, ef_construction=BUILD_BREADTH)
        self.width = width
        self.members = BitMap() if members is None else members
        self.pending = BitMap()
        self._gone = BitMap()  # what the index may still find
        self._index = index
        self._turn = threading.Lock()
        self._unmarked = BitMap(self.members)  # labels of the index that it finds
        self._changed = members is None

    @property
    def nbytes(self) -> int:
        """Bytes held, reckoned from hnswlib's layout: vector, links of the lowest level twice M,
        label and bookkeeping.
        """
        return self._index.get_max_elements() * (4 * self.width + 8 * LINKS + 48)

    @property
    def is_wasteful(self) -> bool:
        """Whether deleted vectors have come to weigh too much."""
        return self._index.get_current_count() > WASTE_MAX * len(self.members)

    @property
    def is_behind(self) -> bool:
        """Whether `take` has anything to do."""
        return bool(self.pending or self._gone)

    def drop(self, ordinal: int) -> None:
        """Let the ordinal be found no more."""
        self.pending.discard(ordinal)
        self.members.discard(ordinal)
        self._gone.add(ordinal)

    def handed_over(self) -> BitMap:
        """What was dropped since the last call, for `take`."""
        gone, self._gone = self._gone, BitMap()
        return gone

    def took(self, ordinals: BitMap) -> None:
        """Count what was given to `take` as taken up."""
        self.members |= ordinals
        self.pending -= ordinals

    def take(self, ordinals: NDArray[np.int64], vectors: Vectors, gone: BitMap) -> None:
        """Add vectors, or replace those of ordinals already in; find no more what is `gone`. Calls
        come one after the other.
        """
        with self._turn:
            self._mark(gone)
            if len(ordinals):
                needed = self._index.get_current_count() + len(ordinals)
                if needed > self._index.get_max_elements():
                    self._index.resize_index(needed * 3 // 2)
                self._index.add_items(vectors, ordinals, num_threads=1)
                self._unmarked |= BitMap(ordinals.astype(np.uint32))
                self._changed = True

    def _mark(self, gone: BitMap) -> None:
        for ordinal in gone & self._unmarked:
            self._index.mark_deleted(ordinal)
            self._changed = True
        self._unmarked -= gone

    def near(self, queries: Vectors, fetch: int) -> NDArray[np.uint64] | None:
        """(queries, fetch) ordinals, nearest first, or None when the walk through the graph reached
        fewer. Some may have been dropped meanwhile.
        """
        with self._turn:
            self._index.set_ef(max(SEARCH_BREADTH, 2 * fetch))
            try:
                return self._index.knn_query(queries, k=fetch, num_threads=1)[0]
            except RuntimeError:  # hnswlib's way to say so
                return None

    def vectors(self, ordinals: NDArray[np.int64]) -> Vectors:
        """The members' vectors, aligned with `ordinals`."""
        return np.asarray(self._index.get_items(ordinals.tolist()), np.float32).reshape(
            len(ordinals), self.width
        )

    def save(self, place: CheckpointPlace, sequence: int) -> bool:
        """Write the checkpoint unless the one there is of this very state. -> whether it was
        written. Nothing is taken up meanwhile.
        """
        with self._turn:
            self._mark(self.handed_over())
        if not self._changed:
            return False
        place.head.parent.mkdir(exist_ok=True)
        partial = place.head.with_suffix(".partial")
        with _memory() as file:
            with self._turn:
                self._index.save_index(_path(file))
            place.put(file, partial)
        digest = _file_digest(partial)
        publish(partial, place.graph(digest))
        head = _Head(
            place.slot,
            place.tenant,
            place.space,
            self.width,
            sequence,
            digest,
            self.members.serialize(),
            place.keys is not None,
        )
        body = msgspec.msgpack.encode(head)
        partial.write_bytes(_MAGIC + _digest(body) + body)
        publish(partial, place.head)
        for file in place.graphs():
            if file != place.graph(digest):
                file.unlink()
        self._changed = False
        return True


@dataclass(frozen=True)
class CheckpointPlace:
    """Where the graph of one space of one tenant is kept; with the keys of its store, sealed."""

    store_directory: Path
    index: str
    slot: int
    tenant: int
    space: str
    keys: Keyring | None = field(default=None, compare=False, repr=False)

    @property
    def head(self) -> Path:
        space = hashlib.blake2b(self.space.encode(), digest_size=8).hexdigest()
        return (
            self.store_directory
            / DIRECTORY
            / f"{self.index}-{self.slot:04x}-{self.tenant:08x}-{space}.head"
        )

    def graph(self, digest: bytes) -> Path:
        return self.head.with_name(f"{self.head.stem}-{digest.hex()}.hnsw")

    def graphs(self) -> list[Path]:
        return _graphs_of(self.head)

    def delete(self) -> None:
        _delete(self.head)

    def put(self, source: BinaryIO, path: Path) -> None:
        """Keep a graph's file at the path."""
        if self.keys is None:
            with path.open("wb") as target:
                shutil.copyfileobj(source, target)
        else:
            seal_file(self.keys, Scope(self.slot, self.tenant).prefix, self._name, source, path)

    def fetch(self, path: Path, target: BinaryIO) -> None:
        """The graph's file as it was given to `put`. Raises StoreDamaged, KeyShredded."""
        if self.keys is None:
            with path.open("rb") as source:
                shutil.copyfileobj(source, target)
            target.flush()
        else:
            unseal_file(self.keys, Scope(self.slot, self.tenant).prefix, self._name, path, target)

    @property
    def _name(self) -> str:
        return f"{self.index} {self.space}"


class _Head(msgspec.Struct):
    """members: a serialised bitmap of the ordinals in the graph; sequence: the last commit the
    graph may know of; sealed: whether the graph's file is.
    """

    slot: int
    tenant: int
    space: str
    width: int
    sequence: int
    graph_digest: bytes
    members: bytes
    sealed: bool


_decode_head = msgspec.msgpack.Decoder(_Head).decode


def read_checkpoint(
    place: CheckpointPlace, width: int, sequence_max: int
) -> tuple[Graph, int] | None:
    """The graph and the sequence it covers; None when there is none, or it is damaged, of another
    width or beyond sequence_max.
    """
    head = _read_head(place.head)
    if (
        head is None
        or (head.space, head.width) != (place.space, width)
        or head.sequence > sequence_max
        or head.sealed != (place.keys is not None)
    ):
        return None
    file = place.graph(head.graph_digest)
    if not file.exists() or _file_digest(file) != head.graph_digest:
        return None
    index = hnswlib.Index("ip", width)
    try:
        with _memory() as opened:
            place.fetch(file, opened)
            index.load_index(_path(opened))
    except (StoreDamaged, KeyShredded):  # of another history of this store
        return None
    return Graph(width, index, BitMap.deserialize(head.members)), head.sequence


def sweep_checkpoints(
    store_directory: Path, index: str, is_alive: Callable[[CheckpointPlace], bool]
) -> None:
    """Delete the index's checkpoints that are unreadable or not alive."""
    for path in (store_directory / DIRECTORY).glob(f"{index}-*.head"):
        head = _read_head(path)
        if head is None or not is_alive(
            CheckpointPlace(store_directory, index, head.slot, head.tenant, head.space)
        ):
            _delete(path)


def erase_checkpoints(store_directory: Path, index: str, slot: int, tenant: int) -> None:
    """Delete every checkpoint of one tenant."""
    for path in (store_directory / DIRECTORY).glob(f"{index}-{slot:04x}-{tenant:08x}-*.head"):
        _delete(path)


def _read_head(path: Path) -> _Head | None:
    """The head, or None when there is none or it is not what was written."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    if raw[:start] != _MAGIC + _digest(raw[start:]):
        return None
    return _decode_head(raw[start:])


def _graphs_of(head: Path) -> list[Path]:
    return list(head.parent.glob(f"{head.stem}-*.hnsw"))


def _delete(head: Path) -> None:
    for path in (head, *_graphs_of(head)):
        path.unlink(missing_ok=True)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _memory() -> BinaryIO:
    """A new file that lies in memory and has no name."""
    return os.fdopen(os.memfd_create("graph"), "w+b")


def _path(file: BinaryIO) -> str:
    """What this process opens it by."""
    return f"/proc/self/fd/{file.fileno()}"


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)
        ).digest()
