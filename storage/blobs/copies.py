"""The copies of blobs in object storage: made when a blob is, fetched when its file is not here,
removed after it.

A blob's copy has its name, `blobs/<owner>/<name>`, and never changes, so it is stored once. What is
still to be done there is a file in `<directory>/.outgoing`, made durable before the blob itself is
made or removed, so no crash forgets it:

    <owner>.<name>.put     the blob was made; its copy may not be there yet
    <owner>.<name>.gone    the blob was removed; its copy may still be there. It waits for a .put of
                           the same blob
    <owner>.gone           all blobs of the owner were

`settle` does what one such file asks, `sweep` does all; both may be repeated, and run beside each
other, in any process.

What was fetched lies in `<directory>/.fetched` for a while, as `<owner>.<name>`: whoever removes
the blob may do so elsewhere. Where several machines write blobs, each keeps its own there as well
once their copies are stored, and the copies alone are the blobs.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from storage.replication import ObjectStore, ObjectStoreFailed

OUTGOING, FETCHED = ".outgoing", ".fetched"
FETCHED_KEPT_SECONDS = 3_600
EXPIRY_SECONDS = 60  # between two looks at what was fetched
BLOBS = "blobs"
PUT, GONE = "put", "gone"


class BlobCopies:
    """Copies of blobs in object storage.

    at_once  a blob is not finished before its copy is stored; else whoever sweeps stores it
    shared   other machines write, read and remove the blobs too
    """

    def __init__(
        self, directory: Path, objects: ObjectStore, *, at_once: bool, shared: bool = False
    ):
        self.at_once, self.shared = at_once or shared, shared
        self._directory = directory
        self._fetched = directory / FETCHED
        self._expired_at = 0.0
        self._outgoing = directory / OUTGOING
        self._objects = objects.below(BLOBS)

    def note(self, what: str, owner: str, name: str = "") -> Path:
        """Write down, durably, what has to be done; -> the file that says so."""
        self._outgoing.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._outgoing / ".".join(part for part in (owner, name, what) if part)
        path.touch(mode=0o600)
        descriptor = os.open(self._outgoing, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return path

    def settle(self, noted: Path) -> None:
        """Do what this file asks, and remove it. Raises ObjectStoreFailed."""
        owner, *name, what = noted.name.split(".")
        if what == PUT:
            self._store(owner, name[0])
        elif any(self._outgoing.glob(".".join([owner, *(name or "*"), PUT]))):
            return
        elif name:
            self._objects.delete([f"{owner}/{name[0]}"])
        else:
            self._objects.delete([f"{owner}/{each}" for each in self._objects.names(owner)])
        noted.unlink(missing_ok=True)

    def sweep(self, going_on: Callable[[], bool] = lambda: True) -> int:
        """Settle everything that is noted, until an attempt fails; -> how much is left. Now and
        then, expire what was fetched.
        """
        if time.monotonic() - self._expired_at > EXPIRY_SECONDS:
            self._expired_at = time.monotonic()
            self.expire()
        waiting = self.waiting()
        for position, path in enumerate(waiting):
            try:
                if not going_on():
                    return len(waiting) - position
                self.settle(path)
            except ObjectStoreFailed:
                return len(waiting) - position
        return len(self.waiting())

    def waiting(self) -> list[Path]:
        """What is noted, blobs to be stored first."""
        return sorted(
            self._outgoing.glob("*"), key=lambda path: (path.suffix == f".{GONE}", path.name)
        )

    def fetch(self, owner: str, name: str) -> BinaryIO | None:
        """The copy, open; None when there is none. Raises ObjectStoreFailed."""
        path = self._fetched / f"{owner}.{name}"
        try:
            return path.open("rb")
        except FileNotFoundError:
            self._fetched.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.urandom(8).hex()}")
        try:
            with unfinished.open("xb") as file:
                if not self._objects.fetch(f"{owner}/{name}", file):
                    return None
            found = unfinished.open("rb")
            unfinished.rename(path)
            return found
        finally:
            unfinished.unlink(missing_ok=True)

    def forget(self, owner: str, name: str = "*") -> None:
        """Remove what was fetched of one blob, or of all of an owner."""
        for path in self._fetched.glob(f"{owner}.{name}"):
            path.unlink(missing_ok=True)

    def expire(self) -> None:
        """Remove what was fetched long ago."""
        for path in self._fetched.glob("*"):
            try:
                if path.stat().st_mtime <= time.time() - FETCHED_KEPT_SECONDS:
                    path.unlink()
            except FileNotFoundError:
                continue  # somebody else did

    def older(self, owner: str, seconds: float, limit: int) -> list[str]:
        """Names of at most `limit` copies that were stored more than so many seconds ago. Raises
        ObjectStoreFailed.
        """
        before = (time.time() - seconds) * 1000
        return [
            name
            for name, stored_at in sorted(self._objects.stored_at(owner).items())
            if stored_at < before
        ][:limit]

    def _store(self, owner: str, name: str) -> None:
        path = self._directory / owner / name[:2] / name
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return  # it was removed again, or never finished
        with file:
            self._objects.put_file(f"{owner}/{name}", file)
        if self.shared:
            self._fetched.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                path.rename(self._fetched / f"{owner}.{name}")
