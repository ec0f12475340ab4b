"""A copy of a data file as objects: all of its pages, or those that differ from an earlier copy.

    zstd(8 bytes "mnemepg1" ‖ u32 bytes of a page ‖ u64 pages of the file
         ‖ (u64 number ‖ page) for each page that is in it)

Pages that hold nothing (storage/store/free_pages.py) are in none, and zeros in a file that is made
from them. What differs is found by the pages' digests, which a directory keeps of the copy that it
stored last, in a file of its own; without that file the next copy is whole. The digest of all
digests goes with each copy, and is compared when the pages of several make a file again.
"""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from storage.store import StoreDamaged, geometry

if TYPE_CHECKING:
    import zstandard  # an extra: imported by who ships or restores

DIGEST_BYTES = 16
PAGES_MAX = 1 << 15  # of one object: 128 MiB where a page has 4 KiB

_MAGIC = b"mnemepg1"
_HEAD, _NUMBER = struct.Struct("<IQ"), struct.Struct("<Q")
_NOTHING = bytes(DIGEST_BYTES)  # the digest of a page that holds nothing
_LEVEL = 3
_BUFFER_BYTES = 1 << 20
_SHA256_BYTES = 32


@dataclass(frozen=True)
class Pages:
    """The digests of a data file's pages, one after the other.

    page_bytes  of one page
    used        pages that hold something
    """

    page_bytes: int
    digests: bytes
    used: int

    @property
    def image(self) -> str:
        """Stands for all that the file holds."""
        return hashlib.sha256(self.digests).hexdigest()

    def of(self, number: int) -> bytes:
        return self.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]


def pages_of(data_file: Path) -> Pages:
    """Read all pages of a file that nobody writes. Raises StoreDamaged."""
    found = geometry(data_file)
    digests = bytearray()
    with data_file.open("rb", buffering=_BUFFER_BYTES) as file:
        for number in range(found.pages):
            page = file.read(found.page_bytes)
            is_used = len(page) == found.page_bytes and number not in found.free
            digests += (
                hashlib.blake2b(page, digest_size=DIGEST_BYTES).digest() if is_used else _NOTHING
            )
    used = found.pages - sum(
        digests.startswith(_NOTHING, at) for at in range(0, len(digests), DIGEST_BYTES)
    )
    return Pages(found.page_bytes, bytes(digests), used)


def changed(now: Pages, before: Pages | None) -> array[int]:
    """Numbers of the pages that hold something, and held something else before."""
    same_size = before is not None and before.page_bytes == now.page_bytes
    numbers = range(len(now.digests) // DIGEST_BYTES)
    return array(
        "Q",
        (
            number
            for number in numbers
            if (digest := now.of(number)) != _NOTHING
            and not (same_size and before is not None and before.of(number) == digest)
        ),
    )


def pack(data_file: Path, now: Pages, numbers: array[int], start: Path) -> list[Path]:
    """Write objects with these pages of the file -> their files, which are called `start` and a
    number.
    """
    import zstandard

    made = []
    with data_file.open("rb") as file:
        for first in range(0, len(numbers) or 1, PAGES_MAX):
            made.append(start.with_name(f"{start.name}{len(made):04d}"))
            with (
                made[-1].open("wb") as raw,
                zstandard.ZstdCompressor(level=_LEVEL).stream_writer(raw) as out,
            ):
                out.write(_MAGIC + _HEAD.pack(now.page_bytes, len(now.digests) // DIGEST_BYTES))
                for number in numbers[first : first + PAGES_MAX]:
                    file.seek(number * now.page_bytes)
                    out.write(_NUMBER.pack(number) + file.read(now.page_bytes))
    return made


def unpack(source: BinaryIO, data_file: Path) -> None:
    """Put an object's pages into the file, which gets the length it had. Raises StoreDamaged."""
    import zstandard

    with (
        zstandard.ZstdDecompressor().stream_reader(source) as stream,
        data_file.open("r+b" if data_file.exists() else "w+b") as file,
    ):
        head = _whole(stream, len(_MAGIC) + _HEAD.size)
        if not head.startswith(_MAGIC):
            raise StoreDamaged("pages of a snapshot are damaged: they do not begin as such.")
        page_bytes, pages = _HEAD.unpack(head[len(_MAGIC) :])
        while record := _whole(stream, _NUMBER.size + page_bytes):
            (number,) = _NUMBER.unpack_from(record)
            file.seek(number * page_bytes)
            file.write(record[_NUMBER.size :])
        file.truncate(pages * page_bytes)


def blank_free_pages(data_file: Path) -> None:
    """Leave nothing of what earlier copies had in pages that hold nothing now."""
    found = geometry(data_file)
    with data_file.open("r+b") as file:
        for number in found.free:
            file.seek(number * found.page_bytes)
            if file.read(found.page_bytes).strip(b"\0"):
                file.seek(number * found.page_bytes)
                file.write(bytes(found.page_bytes))


def _whole(stream: zstandard.ZstdDecompressionReader, size: int) -> bytes:
    """Read so many bytes; none at the end. Raises StoreDamaged where it ends between."""
    found = b""
    while len(found) < size and (more := stream.read(size - len(found))):
        found += more
    if found and len(found) < size:
        raise StoreDamaged("pages of a snapshot are damaged: they end too early.")
    return found


def remember(path: Path, manifest: bytes, pages: Pages) -> None:
    """Keep the digests of the copy that this manifest is of."""
    content = hashlib.sha256(manifest).digest() + _HEAD.pack(pages.page_bytes, pages.used)
    content += pages.digests
    building = path.with_name(path.name + ".new")
    with building.open("wb") as file:
        file.write(hashlib.sha256(content).digest() + content)
        file.flush()
        os.fsync(file.fileno())
    building.replace(path)


def remembered(path: Path, manifest: bytes) -> Pages | None:
    """The digests that are kept of the copy with this manifest; None when there are none."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    content = raw[_SHA256_BYTES:]
    is_whole = hashlib.sha256(content).digest() == raw[:_SHA256_BYTES]
    if not is_whole or content[:_SHA256_BYTES] != hashlib.sha256(manifest).digest():
        return None
    page_bytes, used = _HEAD.unpack_from(content, _SHA256_BYTES)
    return Pages(page_bytes, content[_SHA256_BYTES + _HEAD.size :], used)
