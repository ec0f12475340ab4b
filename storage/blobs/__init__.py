"""Files of any size, one directory per owner: streamed in, hashed, sealed, fsynced, and streamed
out again.

A blob is written through a BlobWriter and exists from `finish` on, when its bytes and its name are
on disk. Its name is the SHA-256 of its content and 8 random bytes, `<digest>-<nonce>`. So a name
says what is in the file and is never used twice: removing a blob cannot take away the file of a
later upload of the same content. To keep equal content once is the business of whoever keeps the
names.

Each file is sealed under a random key of its own, which only its Blob holds and the caller stores.
Where the last Blob goes, the content is gone too, whatever a disk may still remember. The bytes are
cut into frames of 64 KiB, each AES-GCM under a nonce of its number and a mark on the last one:
frames cannot be exchanged, and a file that was cut short does not open.

    <directory>/<owner>/<first two digits of the digest>/<name>     a blob
    <directory>/<owner>/incoming/<random>                           one that is being written

Invariant: what `finish` returned can be read back, byte for byte, or reading raises BlobDamaged.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.blobs.copies import BLOBS, GONE, PUT, BlobCopies
from storage.replication import ObjectStoreFailed
from storage.store import make_directory

__all__ = [
    "BLOBS",
    "Blob",
    "BlobCopies",
    "BlobDamaged",
    "BlobMissing",
    "BlobStore",
    "BlobWriter",
]

FRAME_BYTES = 64 * 1024
TAG_BYTES = 16
KEY_BYTES = 32
INCOMING = "incoming"
_OWNER = re.compile(r"[a-z0-9_]{1,64}")
_NAME = re.compile(r"[0-9a-f]{64}-[0-9a-f]{16}")


class BlobMissing(Exception):
    """There is no such blob (any more)."""


class BlobDamaged(Exception):
    """The file is not what was written."""


@dataclass(frozen=True, slots=True)
class Blob:
    """What is needed to read a blob again. sha256 (hex) and size (bytes) are of the content."""

    name: str
    sha256: str
    size: int
    key: bytes = field(repr=False)


# The one place where bytes are sealed and opened.


def _sealed(cipher: AESGCM, number: int, last: bool, chunk: bytes) -> bytes:
    return cipher.encrypt(number.to_bytes(11, "big") + bytes([last]), chunk, None)


def _opened(cipher: AESGCM, number: int, last: bool, frame: bytes) -> bytes:
    try:
        return cipher.decrypt(number.to_bytes(11, "big") + bytes([last]), frame, None)
    except InvalidTag:
        raise BlobDamaged("a stored file is not what was written") from None


class BlobStore:
    """All blobs below one directory. Safe from any thread and process: files are written once and
    never changed.
    """

    def __init__(self, directory: Path, copies: BlobCopies | None = None):
        self.directory = directory
        self._copies = copies

    def writer(self, owner: str) -> BlobWriter:
        """A new blob of this owner, to be written and then finished or aborted."""
        return BlobWriter(self._home(owner), self._copies)

    def read(self, owner: str, blob: Blob) -> Iterator[bytes]:
        """The content in pieces of at most FRAME_BYTES. Raises BlobMissing, ObjectStoreFailed at
        once, BlobDamaged on the way.
        """
        path = self._path(owner, blob.name)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            file = None if self._copies is None else self._copies.fetch(owner, blob.name)
            if file is None:
                raise BlobMissing("a stored file is gone") from None
        return _frames(file, AESGCM(blob.key))

    def copy(self, owner: str, blob: Blob) -> BinaryIO:
        """The content as a seekable file without a name, which is gone when it is closed. Raises
        BlobMissing, BlobDamaged.
        """
        pieces = self.read(owner, blob)
        make_directory(self._home(owner))
        file = tempfile.TemporaryFile(dir=self._home(owner))  # noqa: SIM115 (the caller closes it)
        try:
            for piece in pieces:
                file.write(piece)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def remove(self, owner: str, name: str) -> bool:
        """Remove a blob or an unfinished one; -> whether it was there."""
        path = (
            self._path(owner, name)
            if _NAME.fullmatch(name)
            else self._home(owner) / INCOMING / Path(name).name
        )
        if self._copies is not None and _NAME.fullmatch(name):
            self._copies.note(GONE, owner, name)
            self._copies.forget(owner, name)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    def remove_owner(self, owner: str) -> None:
        """Remove everything of one owner."""
        if self._copies is not None:
            self._copies.note(GONE, owner)
            self._copies.forget(owner)
        shutil.rmtree(self._home(owner), ignore_errors=True)

    def older(self, owner: str, seconds: float, limit: int) -> list[str]:
        """Names of at most `limit` blobs, and unfinished ones that are here, last written more than
        so many seconds ago.
        """
        before, found = time.time() - seconds, []
        for path in sorted(self._home(owner).glob("*/*")):
            if len(found) == limit:
                break
            try:
                if path.stat().st_mtime < before:
                    found.append(path.name)
            except FileNotFoundError:
                continue  # it was finished or removed just now
        if self._copies is not None and self._copies.shared:
            found += self._copies.older(owner, seconds, limit - len(found))
        return found

    def _home(self, owner: str) -> Path:
        if not _OWNER.fullmatch(owner):
            raise ValueError("an owner is named by lower-case letters, digits and underscores")
        return self.directory / owner

    def _path(self, owner: str, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise BlobMissing("this is not the name of a stored file")
        return self._home(owner) / name[:2] / name


class BlobWriter:
    """One blob on its way in. Not thread-safe; its calls block for the disk."""

    def __init__(self, home: Path, copies: BlobCopies | None = None):
        self._home = home
        self._copies = copies
        self._incoming = home / INCOMING / os.urandom(16).hex()
        make_directory(self._incoming.parent)
        self._key = AESGCM.generate_key(8 * KEY_BYTES)
        self._cipher = AESGCM(self._key)
        self._digest = hashlib.sha256()
        self._waiting = bytearray()
        self._frames = 0
        self.size = 0
        self._file = os.fdopen(
            os.open(self._incoming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        )

    def write(self, piece: bytes | bytearray) -> None:
        """Append bytes of the content."""
        self._digest.update(piece)
        self.size += len(piece)
        self._waiting += piece
        # One frame stays behind: which one is the last is known at the end.
        while len(self._waiting) > FRAME_BYTES:
            self._put(bytes(self._waiting[:FRAME_BYTES]), last=False)
            del self._waiting[:FRAME_BYTES]

    def finish(self) -> Blob:
        """Make it durable under its name. Raises ObjectStoreFailed when its copy has to be stored
        and is not; it is gone then.
        """
        self._put(bytes(self._waiting), last=True)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        digest = self._digest.hexdigest()
        name = f"{digest}-{os.urandom(8).hex()}"
        target = self._home / name[:2]
        make_directory(target)
        noted = None if self._copies is None else self._copies.note(PUT, self._home.name, name)
        self._incoming.rename(target / name)
        _sync(target)
        if self._copies is not None and noted is not None and self._copies.at_once:
            try:
                self._copies.settle(noted)
            except ObjectStoreFailed:
                (target / name).unlink(missing_ok=True)
                raise
        return Blob(name, digest, self.size, self._key)

    def abort(self) -> None:
        """Leave nothing behind. After `finish` it does nothing."""
        self._file.close()
        self._incoming.unlink(missing_ok=True)

    def _put(self, chunk: bytes, *, last: bool) -> None:
        self._file.write(_sealed(self._cipher, self._frames, last, chunk))
        self._frames += 1


def _frames(file: BinaryIO, cipher: AESGCM) -> Iterator[bytes]:
    with file:
        number, frame = 0, file.read(FRAME_BYTES + TAG_BYTES)
        while True:
            following = file.read(FRAME_BYTES + TAG_BYTES)
            yield _opened(cipher, number, not following, frame)
            if not following:
                return
            number, frame = number + 1, following


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
