"""The files that large resident states leave beside their store, so that the next load reads one
file and not every row.

It owns the format of these files; it does not know what their arrays mean. In one is what was
resident, a row of each array for each row of the index, and the tokens of what it derives from
(storage/indexes/change_tokens.py), so that whoever loads it knows which of it is what is stored
still, whatever the store went through.

Files, under `indexes/` in the store's directory:

    <index>-<slot>-<tenant>-<digest of the part>.head       magic ‖ digest of the rest ‖ msgpack of
                                                            _Head
    <the same>-<a number of its own>.rows                   the arrays one after another, sealed for
                                                            the tenant

Invariant: a head is written after the file it names, both synced and renamed into place, so a crash
leaves the former pair or the new one. What does not open under its name, or differs from its
digest where it is not sealed, or is laid out otherwise, is not used.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from storage.indexes.change_tokens import Tokens
from storage.store import Keyring, KeyShredded, Scope, StoreDamaged, publish, seal_file, unseal_file

DIRECTORY = "indexes"
KEPT_SHARE = 1 / 16  # of what is resident has changed when its file is written anew
ROWS_AT_ONCE = 16_384
# Memory that is used for the first time costs more than what is written there, and two threads get
# it in half the time.
COPYING_THREADS, PIECES_WAITING_MAX = 2, 4

_NAME = re.compile(r"-([0-9a-f]{4})-([0-9a-f]{8})-[0-9a-f]{16}\b")  # of a slot and a tenant
_MAGIC = b"mnemeVK2"
_DIGEST_BYTES = 16


class Kind(NamedTuple):
    """What an array holds in each row: numbers of one type, `width` of them, or of width 0 one."""

    dtype: str
    width: int = 0

    @classmethod
    def of(cls, array: NDArray[Any]) -> Kind:
        return cls(array.dtype.str, array.shape[1] if array.ndim > 1 else 0)


class Kept(NamedTuple):
    """What a file has: the tokens of then, arrays of `count` rows each with room for more behind
    them, and the one array that is apart from the rows.
    """

    tokens: Tokens
    count: int
    arrays: list[Any]
    apart: NDArray[np.float32]


@dataclass(frozen=True)
class KeptPlace:
    """Where the file of one part of one tenant's index is kept; with the keys of its store, sealed.

    layout  of the stored rows that it derives from: one of another says nothing
    """

    store_directory: Path
    index: str
    slot: int
    tenant: int
    part: str
    layout: str = ""
    keys: Keyring | None = field(default=None, compare=False, repr=False)

    @property
    def head(self) -> Path:
        part = hashlib.blake2b(self.part.encode(), digest_size=8).hexdigest()
        return (
            self.store_directory
            / DIRECTORY
            / f"{self.index}-{self.slot:04x}-{self.tenant:08x}-{part}.head"
        )

    def delete(self) -> None:
        """Delete the file, if there is one."""
        _delete(self.head)

    def write(
        self,
        tokens: Tokens,
        tokens_now: Callable[[], Tokens],
        arrays: Sequence[NDArray[Any]],
        rows: NDArray[np.integer],
        apart: NDArray[np.float32],
    ) -> None:
        """Keep these rows of the arrays, in their order, and all of the one (m, w) that is apart.
        The arrays are read a part at a time.

        tokens      of before the arrays are read, which have at least what these tell of
        tokens_now  asked after it: a range that has another one by then may be newer in the arrays
                    than `tokens` tells, so its is not kept
        """
        self.head.parent.mkdir(exist_ok=True)
        partial = self.head.with_suffix(".partial")
        number = secrets.token_hex(8)
        source = _Pieces(_pieces(arrays, rows, apart))
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
        later = tokens_now()
        same = {number: token for number, token in tokens.items() if later.get(number) == token}
        kinds = [Kind.of(each) for each in arrays]
        head = _Head(
            self.slot, self.tenant, self.part, self.layout, kinds, len(rows), apart.shape[0],
            apart.shape[1], number,
            digest, same,
        )  # fmt: skip
        body = msgspec.msgpack.encode(head)
        partial.write_bytes(_MAGIC + _digest(body) + body)
        publish(partial, self.head)
        for file in _contents_of(self.head):
            if file != content:
                file.unlink()

    def read(self, kinds: Sequence[Kind], room: Callable[[int], int]) -> Kept | None:
        """What was written of arrays of these kinds, in memory of its own; None where there is
        none, or it is damaged, laid out otherwise, or another tenant's.

        room  how many rows the arrays are to have for so many
        """
        head = _read_head(self.head)
        if (
            head is None
            or (head.part, head.layout, head.kinds) != (self.part, self.layout, list(kinds))
            or bool(head.digest) != (self.keys is None)
        ):
            return None
        path, content = self._content(head.number), _Content(head, room(head.count))
        try:
            with content:
                if self.keys is None:
                    raw = path.read_bytes()
                    if _digest(raw) != head.digest:
                        return None
                    content.write(raw)
                else:
                    scope, name = (
                        Scope(self.slot, self.tenant).prefix,
                        self._sealed_name(head.number),
                    )
                    unseal_file(self.keys, scope, name, path, content)
        # It is of another history of this store, or another one has come in its place.
        except (StoreDamaged, KeyShredded, FileNotFoundError, ValueError):
            return None
        return content.kept()

    def _content(self, number: str) -> Path:
        return self.head.with_name(f"{self.head.stem}-{number}.rows")

    def _sealed_name(self, number: str) -> str:
        return f"{self.index} {self.part} {number}"


class _Head(msgspec.Struct):
    """m, width: of the array apart; number: in the content's name; digest: of the content, where it
    is not sealed.
    """

    slot: int
    tenant: int
    part: str
    layout: str
    kinds: list[Kind]
    count: int
    m: int
    width: int
    number: str
    digest: bytes
    tokens: Tokens


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


def _pieces(
    arrays: Sequence[NDArray[Any]], rows: NDArray[np.integer], apart: NDArray[np.float32]
) -> Iterator[bytes]:
    yield apart.tobytes()
    for array in arrays:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            yield array[rows[start : start + ROWS_AT_ONCE]].tobytes()


class _Content:
    """Room for a file's content, which is written from its beginning to its end. Used as a context,
    at whose end all of it is there.
    """

    def __init__(self, head: _Head, room: int):
        self._head = head
        self._apart = np.empty((head.m, head.width), np.float32)
        self._arrays = [
            np.empty((room, kind.width) if kind.width else room, kind.dtype) for kind in head.kinds
        ]
        whole = [self._apart, *(each[: head.count] for each in self._arrays)]
        self._left = deque(each.reshape(-1).view(np.uint8) for each in whole if each.size)
        self._size = sum(len(each) for each in self._left)
        self._threads = ThreadPoolExecutor(COPYING_THREADS, thread_name_prefix="kept")
        self._copying: deque[Future[None]] = deque()

    def __enter__(self) -> _Content:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def write(self, piece: bytes) -> None:
        """Raises ValueError when there is more than room for."""
        if len(piece) > self._size:
            raise ValueError("the file has more than its head says")
        self._size -= len(piece)
        left = np.frombuffer(piece, np.uint8)
        while len(left):
            target = self._left.popleft()
            size = min(len(left), len(target))
            if len(self._copying) == PIECES_WAITING_MAX:
                self._copying.popleft().result()
            self._copying.append(self._threads.submit(np.copyto, target[:size], left[:size]))
            left = left[size:]
            if size < len(target):
                self._left.appendleft(target[size:])

    def kept(self) -> Kept | None:
        """What was written; None where something is missing."""
        if self._size:
            return None
        return Kept(self._head.tokens, self._head.count, self._arrays, self._apart)


def unkept(live: int, changes: int, least: int) -> int:
    """How much has changed of so many rows since their file was written, once it is to be written:
    of `least` rows on, when a share of them has changed; else 0.
    """
    return changes if live >= least and changes > KEPT_SHARE * live else 0


def sweep(store_directory: Path, index: str, is_alive: Callable[[KeptPlace], bool]) -> None:
    """Delete the index's files that are unreadable or not alive, and what a crash left that no head
    names. Nobody may be writing one meanwhile.
    """
    directory = store_directory / DIRECTORY
    for path in directory.glob(f"{index}-*.head"):
        head = _read_head(path)
        if head is None or not is_alive(
            KeptPlace(store_directory, index, head.slot, head.tenant, head.part)
        ):
            _delete(path)
    heads = {path.stem for path in directory.glob(f"{index}-*.head")}
    for path in directory.glob(f"{index}-*"):
        # What belongs to a head has its name, and a number behind that; also of earlier releases.
        if path.stem not in heads and path.stem.rpartition("-")[0] not in heads:
            path.unlink()


def erase(store_directory: Path, index: str, slot: int, tenant: int) -> None:
    """Delete every file of one tenant."""
    for path in (store_directory / DIRECTORY).glob(f"{index}-{slot:04x}-{tenant:08x}-*"):
        path.unlink(missing_ok=True)


def tenants_with_files(store_directory: Path, slot: int) -> set[Scope]:
    """The tenants of a slot of whom there is a file."""
    names = (path.name for path in (store_directory / DIRECTORY).glob(f"*-{slot:04x}-*"))
    found = (_NAME.search(name) for name in names)
    return {Scope(slot, int(each[2], 16)) for each in found if each and int(each[1], 16) == slot}


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
    """What belongs to a head; what an earlier release has written besides."""
    return [
        path
        for kind in ("rows", "vectors", "hnsw")
        for path in head.parent.glob(f"{head.stem}-*.{kind}")
    ]


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
