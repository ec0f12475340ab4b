"""The copies of blobs in object storage: made when a blob is, fetched when its file is not here, removed after it.

A blob's copy has its name, `blobs/<owner>/<name>`, and never changes, so it is stored once. What is still to be done there is a file in
`<directory>/.outgoing`, made durable before the blob itself is made or removed, so no crash forgets it:

    <owner>.<name>.put     the blob was made; its copy may not be there yet
    <owner>.<name>.gone    the blob was removed; its copy may still be there. It waits for a .put of the same blob
    <owner>.gone           all blobs of the owner were

`settle` does what one such file asks, `sweep` does all; both may be repeated, and run beside each other, in any process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from storage.object_store import ObjectStore, ObjectStoreFailed

OUTGOING = ".outgoing"
PLACE = "blobs"
PUT, GONE = "put", "gone"


class BlobCopies:
    """at_once: a blob is not finished before its copy is stored; else whoever sweeps stores it."""

    def __init__(self, directory: Path, objects: ObjectStore, *, at_once: bool):
        self.at_once = at_once
        self._directory = directory
        self._outgoing = directory / OUTGOING
        self._objects = objects.below(PLACE)

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
        """Settle everything that is noted, until an attempt fails; -> how much is left."""
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
        return sorted(self._outgoing.glob("*"), key=lambda path: (path.suffix == f".{GONE}", path.name))

    def fetch(self, owner: str, name: str, target: Path) -> bool:
        """Write the copy to a new file; -> whether there is one. Raises ObjectStoreFailed."""
        with target.open("xb") as file:
            found = self._objects.fetch(f"{owner}/{name}", file)
            file.flush()
            os.fsync(file.fileno())
        return found

    def _store(self, owner: str, name: str) -> None:
        try:
            with (self._directory / owner / name[:2] / name).open("rb") as file:
                self._objects.put_file(f"{owner}/{name}", file)
        except FileNotFoundError:
            return  # it was removed again, or never finished
