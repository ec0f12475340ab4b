"""A segment: some commits of one shard's log as one object, and how a history is read from them in
order.

Segments of a shard are numbered from 1 without gaps, whoever stored them, and each holds the hash
of the one before: a missing, exchanged or damaged one shows. The one after a segment of epoch e has
the name segments/<e>/<number>, whoever stores it: so an epoch's own segments lie in its folder, and
the last object there is the first segment of the epoch that ended it. There is one name for what
comes next, and an owner whose epoch was ended finds it taken, however late it comes, for as long as
that last object is kept. An object is

    8 bytes "mnemelg1" ‖ 32 bytes SHA-256 of what follows ‖ zstd(MessagePack of Segment)

and that SHA-256 is the segment's hash.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator

import msgspec

from storage.replication.object_store import ObjectStore
from storage.store import StoreError

SEGMENTS = "segments"
SEGMENT_BYTES_MAX = 4 << 20  # of records, a longer single record aside
ALONE_BYTES = 256 << 10  # a segment of so many is worth an object of its own
RECENT_BYTES_MAX = 16 << 20
NO_HASH = bytes(32)

_MAGIC = b"mnemelg1"
_HEAD_BYTES = len(_MAGIC) + len(NO_HASH)
_SECTOR_BYTES = 512
_LEVEL = 1  # sealed bytes are noise: a higher one takes longer and gains nothing


class SegmentDamaged(StoreError):
    """A segment is not what was stored, or does not follow the one before it."""


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """Some commits of a log as one object.

    number     1, 2, 3 …
    epoch      of the owner that stored it
    previous   hash of the segment before it
    continues  whether its history goes on where that one ended; else it begins at a snapshot that
               was made since
    at         when it was made, Unix milliseconds
    first      sequence of its first record
    last       sequence of its last record; first - 1 when it has none
    ring       records of keys.ring that are new or were overwritten: (place, 64 bytes)
    records    records of the commit log, as they are stored there
    """

    number: int
    epoch: int
    previous: bytes
    continues: bool
    at: int
    first: int
    last: int
    ring: list[tuple[int, bytes]]
    records: list[bytes]

    def packed(self) -> tuple[bytes, bytes]:
        """-> (the object's bytes, its hash)"""
        import zstandard  # an extra: imported by who ships or restores

        content = zstandard.ZstdCompressor(level=_LEVEL).compress(msgspec.msgpack.encode(self))
        digest = hashlib.sha256(content).digest()
        return _MAGIC + digest + content, digest

    @property
    def ring_end(self) -> int:
        """One past the last place in keys.ring that it knows; 0 for none."""
        return max((place + 1 for place, _ in self.ring), default=0)


class RecentSegments:
    """The newest small segments of an owner, as they were stored: what puts them together soon
    after need not fetch each. Safe from any thread.
    """

    def __init__(self, bytes_max: int = RECENT_BYTES_MAX):
        self._bytes_max = bytes_max
        self._held: dict[str, bytes] = {}  # by name, oldest first
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes) -> None:
        """Keep it, unless it stays an object of its own."""
        if len(content) >= ALONE_BYTES:
            return
        with self._lock:
            self._held[name] = content
            self._bytes += len(content)
            while self._bytes > self._bytes_max:
                self._bytes -= len(self._held.pop(next(iter(self._held))))

    def get(self, name: str) -> bytes | None:
        """The segment, unless it is too old or was none of this owner's."""
        return self._held.get(name)

    def forget(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._bytes -= len(self._held.pop(name, b""))


_decode_segment = msgspec.msgpack.Decoder(Segment).decode


def segment_folder(tail: int) -> str:
    """Where the segment that follows one of this epoch lies; 0 for the first."""
    return f"{SEGMENTS}/{tail:012d}"


def segment_name(tail: int, number: int) -> str:
    """Name the segment. tail: the epoch of the segment before; 0 for the first."""
    return f"{segment_folder(tail)}/{number:012d}"


def segment_places(objects: ObjectStore) -> Iterator[tuple[int, int]]:
    """(epoch of the folder, number) of every segment. A file of another name, such as a copying
    tool leaves, is none.
    """
    for name in objects.names(SEGMENTS):
        folder, _, number = name.partition("/")
        if folder.isdecimal() and number.isdecimal():
            yield int(folder), int(number)


def is_torn(content: bytes) -> bool:
    """Whether this is what a write leaves that did not come to its end: a segment's beginning, and
    nothing or whole sectors of zeros behind it. An object that was whole once and was damaged since
    is none.
    """
    sectors = -(-len(content.rstrip(b"\0")) // _SECTOR_BYTES)
    begun = content[: sectors * _SECTOR_BYTES]
    if len(begun) <= _HEAD_BYTES:
        return begun.startswith(_MAGIC) or _MAGIC.startswith(begun)
    import zstandard

    stream = zstandard.ZstdDecompressor().decompressobj()
    try:
        stream.decompress(begun[_HEAD_BYTES:])
    except zstandard.ZstdError:
        return False
    return begun.startswith(_MAGIC) and not stream.eof


def unpacked(content: bytes, number: int, previous: bytes) -> tuple[Segment, bytes]:
    """An object's bytes -> (segment, hash). Raises SegmentDamaged unless it is whole, has this
    number and follows `previous`.
    """
    digest, packed = content[len(_MAGIC) : _HEAD_BYTES], content[_HEAD_BYTES:]
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(packed).digest() != digest:
        raise SegmentDamaged(f"segment {number} of the log is damaged: checksum.")
    import zstandard

    segment = _decode_segment(zstandard.ZstdDecompressor().decompress(packed))
    if segment.number != number:
        raise SegmentDamaged(
            f"segment {number} of the log is damaged: it is segment {segment.number}."
        )
    if segment.previous != previous:
        raise SegmentDamaged(
            f"segment {number} of the log does not follow segment {number - 1}: the chain of "
            "hashes is broken."
        )
    return segment, digest
