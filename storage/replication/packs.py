"""Segments put together, so that a log of many small ones is few objects to read.

    packs/<first>-<last>    the segments of these numbers, as they were stored: for each
                            u32 bytes ‖ the bytes

A segment stays what it is, with its hash and its place in the chain; only its own object goes, when
the pack is stored. Whoever reads the log looks for a number in the packs where there is no object
of its name.

That no name of the log is ever free that was taken once (storage/replication/segment.py) holds for
whoever may put the next segment: it looks for the end of the log after it took an epoch, and finds
there the highest number. What goes was listed before its owner heard that no such epoch had been
taken, is older than the last segment of its folder, and older than what the owner's own directory
knows to be stored. So a later end of the log was there before the epoch was, and stays; and a
directory that knows of less is refused (LogShipper.open).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise

from storage.replication.object_store import ObjectStore, ObjectStoreFailed
from storage.replication.segment import (
    ALONE_BYTES,
    SegmentDamaged,
    segment_name,
    segment_places,
)
from storage.replication.shipper import LogShipper
from storage.store import Store

PACKS = "packs"
PACKED_AT_ONCE = 64  # segments
SEGMENTS_BETWEEN = 256  # new ones, before some are packed while few come
FEW_SEGMENTS = 32  # from one question whether it is due to the next, a second later
# and while many come: whoever writes waits for its own segment, and a directory's file system for
# the places of those that went a moment ago
SEGMENTS_BETWEEN_IN_A_FLOOD = 2_048

_READ_AT_ONCE = 8
_LENGTH = struct.Struct("<I")

Place = tuple[int, int]  # (epoch of the folder, number) of a segment


def pack_name(first: int, last: int) -> str:
    return f"{PACKS}/{first:012d}-{last:012d}"


def packs(objects: ObjectStore) -> list[tuple[int, int]]:
    """(first, last) of every pack, in order. A file of another name is none."""
    return [
        (int(first), int(last))
        for first, _, last in (name.partition("-") for name in objects.names(PACKS))
        if first.isdecimal() and last.isdecimal()
    ]


class SegmentPacker:
    """Packs what the owner of a shard has stored."""

    def __init__(self, store: Store, objects: ObjectStore, shipper: LogShipper):
        self._store, self._objects, self._shipper = store, objects, shipper
        self._done = 0  # what is older was looked at
        self._last = 0  # when it was asked whether it is due

    def is_due(self) -> bool:
        """Whether many segments were stored since it packed; where many were since it was last
        asked, very many.
        """
        last, self._last = self._last, self._shipper.state.number
        is_flood = self._last - last > FEW_SEGMENTS
        between = SEGMENTS_BETWEEN_IN_A_FLOOD if is_flood else SEGMENTS_BETWEEN
        return self._last - self._done >= between

    def pack(self) -> int:
        """Pack what is stored and still lies by itself; -> how many segments. Raises
        ObjectStoreFailed.
        """
        if not self._shipper.complete:  # what a snapshot is to take the place of, few have read
            self._done = self._shipper.state.number
            return 0
        known, packed = self._store.log.saved.number, 0
        places = sorted(segment_places(self._objects))
        # The last of a folder stays: it is what ended an epoch, or the end of the log.
        going = [
            place
            for place, following in pairwise(places)
            if place[0] == following[0] and self._done < place[1] < known
        ]
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            for run in _runs(going):
                found: list[tuple[Place, bytes]] = []
                for start in range(0, len(run), _READ_AT_ONCE):
                    some = run[start : start + _READ_AT_ONCE]
                    reads = [pool.submit(self._stored, segment_name(*place)) for place in some]
                    contents = [read.result() or b"" for read in reads]
                    found += zip(some, contents, strict=True)
                for together in _small(found):
                    if not self._pack(together):
                        return packed
                    packed += len(together)
        self._done = max(self._done, known - PACKED_AT_ONCE)
        return packed

    def _stored(self, name: str) -> bytes | None:
        return self._shipper.recent.get(name) or self._objects.get(name)

    def _pack(self, segments: list[tuple[Place, bytes]]) -> bool:
        """Store segments as a pack, and remove them; False where this is no owner any more."""
        name = pack_name(segments[0][0][1], segments[-1][0][1])
        content = b"".join(_LENGTH.pack(len(each)) + each for _, each in segments)
        if not self._objects.put_new(name, content) and self._objects.get(name) != content:
            raise ObjectStoreFailed(f"{name} is there and holds something else")
        if not self._shipper.verify():
            return False
        names = [segment_name(*place) for place, _ in segments]
        self._objects.delete(names)
        self._shipper.recent.forget(names)
        return True


class PackedSegments:
    """Reads segments out of packs. Lives in one thread."""

    def __init__(self, objects: ObjectStore):
        self._objects = objects
        self._packs = packs(objects)
        self._held: dict[int, bytes] = {}

    def holds(self, number: int) -> bool:
        """Whether the segment is known to be in a pack."""
        return any(first <= number <= last for first, last in self._packs)

    def get(self, number: int, *, look_again: bool = False) -> bytes | None:
        """The segment as it was stored; None where it is in no pack that is known. Raises
        SegmentDamaged.

        look_again  learn first of packs that were stored meanwhile
        """
        if look_again:
            self._packs = packs(self._objects)
        if number not in self._held:
            self._held = {}
            for first, last in self._packs:
                if first <= number <= last:
                    content = self._objects.get(pack_name(first, last))
                    if content is not None:
                        self._held = dict(enumerate(_segments(content, first, last), first))
                        break
        return self._held.get(number)


def _segments(content: bytes, first: int, last: int) -> list[bytes]:
    found, at = [], 0
    while at + _LENGTH.size <= len(content):
        end = at + _LENGTH.size + _LENGTH.unpack_from(content, at)[0]
        found.append(content[at + _LENGTH.size : end])
        at = end
    if at != len(content) or len(found) != last - first + 1:
        raise SegmentDamaged(f"{pack_name(first, last)} is damaged: its length.")
    return found


def _runs(places: list[Place]) -> Iterator[list[Place]]:
    """Neighbours of one folder, PACKED_AT_ONCE together; fewer only where no more can follow."""
    run: list[Place] = []
    for place in places:
        if run and (place != (run[-1][0], run[-1][1] + 1) or len(run) == PACKED_AT_ONCE):
            yield run
            run = []
        run.append(place)
    if len(run) == PACKED_AT_ONCE:
        yield run


def _small(segments: list[tuple[Place, bytes]]) -> Iterator[list[tuple[Place, bytes]]]:
    """Neighbours of which each is too small for an object of its own; b"" is none."""
    for is_small, some in groupby(segments, lambda each: 0 < len(each[1]) < ALONE_BYTES):
        together = list(some)
        if is_small and len(together) > 1:
            yield together
