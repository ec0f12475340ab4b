"""Files beside a store that are sealed like its rows: what derives from texts and takes too long to
make again.

A file is sealed for one scope in frames of FRAME_BYTES. The place that a frame opens at is the
file's name, the frame's number and whether it is the last one, so frames neither change their order
nor go missing unnoticed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from storage.store.directory import StoreDamaged
from storage.store.keyring import SEALED_EXTRA_BYTES, Keyring

FRAME_BYTES = 4 << 20


class Target(Protocol):
    """What a file is written to, from its beginning to its end."""

    def write(self, piece: bytes, /) -> object: ...


class Source(Protocol):
    """What a file is read from: as many bytes as asked for, fewer only at its end."""

    def read(self, size: int, /) -> bytes: ...


def seal_file(keys: Keyring, scope: bytes, name: str, source: Source, target: Path) -> None:
    """Write what `source` has from its place on. Raises KeyShredded."""
    with target.open("wb") as file:
        number, frame = 0, source.read(FRAME_BYTES)
        while True:
            following = source.read(FRAME_BYTES)
            file.write(keys.seal(scope, _place(name, number, not following), frame))
            if not following:
                return
            number, frame = number + 1, following


def unseal_file(keys: Keyring, scope: bytes, name: str, source: Path, target: Target) -> None:
    """Write what was sealed in `source`. Raises KeyShredded, or StoreDamaged when it is not what
    was sealed under this name.
    """
    size = FRAME_BYTES + SEALED_EXTRA_BYTES
    with source.open("rb") as file:
        number, frame = 0, file.read(size)
        while frame:
            if len(frame) < SEALED_EXTRA_BYTES:
                raise StoreDamaged(f"{source} was cut short.")
            following = file.read(size)
            target.write(keys.unseal(scope, _place(name, number, not following), frame))
            number, frame = number + 1, following


def _place(name: str, number: int, is_last: bool) -> bytes:
    return b"file" + number.to_bytes(8, "big") + bytes((is_last,)) + name.encode()
