"""The file that a large space leaves behind, so that its next load reads one file and not every
row.

It owns the format of these files. What is in one is what was resident, and beside each ordinal the
*mark* of the row that it came from: the first bytes of the row as stored, in which a row differs
from all that were ever put. So whoever loads compares marks and reads anew what has changed since,
whatever the store went through.

Files, under `indexes/` in the store's directory:

    <index>-<slot>-<tenant>-<digest of the space>.head      magic ‖ digest of the rest ‖ msgpack of
                                                            _Head
    <the same>-<a number of its own>.vectors                the arrays of `Kept` one after another,
                                                            sealed for the tenant

Invariant: a head is written after the file it names, both synced and renamed into place, so a crash
leaves the former pair or the new one. What does not open under its name, or differs from its
digest where it is not sealed, is not used.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from storage.indexes.ordinals import Ordinals
from storage.indexes.row_map import Rows
from storage.indexes.vectors.quantised import Codes, Vectors
from storage.store import Keyring, KeyShredded, Scope, StoreDamaged, publish, seal_file, unseal_file

DIRECTORY = "indexes"
MARK_BYTES = 12  # of a stored row: what it is sealed with differs there, or its commit and numbers
ROWS_AT_ONCE = 16_384

_MAGIC = b"mnemeVK1"
_DIGEST_BYTES = 16

Marks = NDArray[np.void]
MARK = np.dtype((np.void, MARK_BYTES))


class Kept(NamedTuple):
    """n rows: ordinals, marks, stamps, codes and the cell of each, or NO_CELL; and the (m, w)
    centres of the cells, of which there may be none.
    """

    ordinals: Ordinals
    marks: Marks
    stamps: NDArray[np.uint64]
    codes: Codes
    cell_of: NDArray[np.int32]
    centres: Vectors

    def take(self, rows: NDArray[np.intp]) -> Kept:
        """Some of the rows."""
        return Kept(
            self.ordinals[rows],
            self.marks[rows],
            self.stamps[rows],
            self.codes.take(rows),
            self.cell_of[rows],
            self.centres,
        )


@dataclass(frozen=True)
class KeptPlace:
    """Where the file of one space of one tenant is kept; with the keys of its store, sealed."""

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

    def delete(self) -> None:
        """Delete the file, if there is one."""
        _delete(self.head)

    def write(self, kept: Kept, rows: Rows) -> None:
        """Keep these rows of the arrays, in their order. The arrays are read a part at a time."""
        self.head.parent.mkdir(exist_ok=True)
        partial = self.head.with_suffix(".partial")
        number = secrets.token_hex(8)
        source = _Pieces(_pieces(kept, rows))
        if self.keys is None:
            with partial.open("wb") as target:
                while piece := source.read(ROWS_AT_ONCE):
                    target.write(piece)
        else:
            name = self._sealed_name(number)
            seal_file(self.keys, Scope(self.slot, self.tenant).prefix, name, source, partial)
        digest = b"" if self.keys is not None else _file_digest(partial)
        content = self._content(number)
        publish(partial, content)
        width, centres = kept.codes.codes.shape[1], len(kept.centres)
        head = _Head(self.slot, self.tenant, self.space, width, len(rows), centres, number, digest)
        body = msgspec.msgpack.encode(head)
        partial.write_bytes(_MAGIC + _digest(body) + body)
        publish(partial, self.head)
        for file in _contents_of(self.head):
            if file != content:
                file.unlink()

    def read(self) -> Kept | None:
        """What was written, in memory of its own; None where there is none, or it is damaged
        or another tenant's.
        """
        head = _read_head(self.head)
        if head is None or head.space != self.space or bool(head.digest) != (self.keys is None):
            return None
        path, content = self._content(head.number), _Content(head)
        try:
            if self.keys is None:
                raw = path.read_bytes()
                if _digest(raw) != head.digest:
                    return None
                content.write(raw)
            else:
                scope, name = Scope(self.slot, self.tenant).prefix, self._sealed_name(head.number)
                unseal_file(self.keys, scope, name, path, content)
        # It is of another history of this store, or another one has come in its place.
        except (StoreDamaged, KeyShredded, FileNotFoundError, ValueError):
            return None
        return content.arrays()

    def _content(self, number: str) -> Path:
        return self.head.with_name(f"{self.head.stem}-{number}.vectors")

    def _sealed_name(self, number: str) -> str:
        return f"{self.index} {self.space} {number}"


class _Head(msgspec.Struct):
    """number: in the content's name; digest: of the content, where it is not sealed."""

    slot: int
    tenant: int
    space: str
    width: int
    count: int
    centres: int
    number: str
    digest: bytes


_decode_head = msgspec.msgpack.Decoder(_Head).decode


class _Pieces:
    """A file that is read from its beginning to its end, out of pieces."""

    def __init__(self, pieces: Iterable[bytes]):
        self._pieces = iter(pieces)
        self._left = b""

    def read(self, size: int) -> bytes:
        gathered, have = [self._left], len(self._left)
        while have < size and (piece := next(self._pieces, None)) is not None:
            gathered.append(piece)
            have += len(piece)
        whole = b"".join(gathered)
        self._left = whole[size:]
        return whole[:size]


def _pieces(kept: Kept, rows: Rows) -> Iterator[bytes]:
    codes, scales, residuals = kept.codes
    yield kept.centres.tobytes()
    for array in (kept.stamps, kept.ordinals, scales, residuals, kept.cell_of, kept.marks, codes):
        for start in range(0, len(rows), ROWS_AT_ONCE):
            yield array[rows[start : start + ROWS_AT_ONCE]].tobytes()


class _Content:
    """Room for a file's content, which is written from its beginning to its end."""

    def __init__(self, head: _Head):
        n, width = head.count, head.width
        # Eight bytes wide ones first, so that each lies where a processor wants it.
        self._kinds = (
            (np.float32, (head.centres, width)),
            (np.uint64, (n,)),
            (np.uint32, (n,)),
            (np.float32, (n,)),
            (np.float32, (n,)),
            (np.int32, (n,)),
            (MARK, (n,)),
            (np.int8, (n, width)),
        )
        sizes = [np.dtype(kind).itemsize * math.prod(shape) for kind, shape in self._kinds]
        self._ends = list(itertools.accumulate(sizes))
        self._raw = np.empty(self._ends[-1], np.uint8)
        self._written = 0

    def write(self, piece: bytes) -> None:
        """Raises ValueError when there is more than room for."""
        end = self._written + len(piece)
        self._raw[self._written : end] = np.frombuffer(piece, np.uint8)
        self._written = end

    def arrays(self) -> Kept | None:
        """The arrays; None where something is missing."""
        if self._written < len(self._raw):
            return None
        starts = (0, *self._ends)
        found: list[Any] = [
            self._raw[start:end].view(kind).reshape(shape)
            for (kind, shape), start, end in zip(self._kinds, starts, self._ends, strict=False)
        ]
        centres, stamps, ordinals, scales, residuals, cell_of, marks, codes = found
        codes = Codes(codes, scales, residuals)
        return Kept(ordinals, marks, stamps, codes, cell_of, centres)


def sweep(store_directory: Path, index: str, is_alive: Callable[[KeptPlace], bool]) -> None:
    """Delete the index's files that are unreadable or not alive."""
    directory = store_directory / DIRECTORY
    for path in directory.glob(f"{index}-*.head"):
        head = _read_head(path)
        if head is None or not is_alive(
            KeptPlace(store_directory, index, head.slot, head.tenant, head.space)
        ):
            _delete(path)
    for path in directory.glob(f"{index}-*.hnsw"):  # of a release that kept graphs
        path.unlink()


def erase(store_directory: Path, index: str, slot: int, tenant: int) -> None:
    """Delete every file of one tenant."""
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


def _contents_of(head: Path) -> list[Path]:
    return [*head.parent.glob(f"{head.stem}-*.vectors"), *head.parent.glob(f"{head.stem}-*.hnsw")]


def _delete(head: Path) -> None:
    for path in (head, *_contents_of(head)):
        path.unlink(missing_ok=True)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)
        ).digest()
