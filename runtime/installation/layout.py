"""The data directory: what lies where, how many shards it has, and who holds it.

    layout.json   cluster id, number of shards, whether every store was created
    shards/NNNN/  one store each
    secrets/      the service's own keys and the operator token, mode 0600
    logs/         what shards and gateways have to say
    placement/    which shard holds which slot, once one has moved
    serve.lock    held with flock while a service runs on the directory; contains its process id

The number of shards is decided once, when the directory is made; slots move between them, and to
others, through the placement (runtime/placement/table.py). Invariant: a store is created only while
the layout is incomplete, which it is until every shard of the first start was open. From then on a
store that has gone missing is an error with a name, never an empty shard in its place.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_type_hints

from runtime.limits import LAYOUT_BYTES_MAX, SLOTS
from storage.store import NEWER, Identity, make_directory

# 2: rows are sealed and texts in bitmap keys are digests. 3: so are the rows of vectors. 4: changes
# are told by tokens, which a release that draws none must not make wrong. A store of
# an earlier format is brought there when it is opened
FORMAT_VERSION = 4
LAYOUT_FILE = "layout.json"
LOCK_FILE = "serve.lock"


class LayoutError(Exception):
    """The data directory cannot be used; the message is one sentence that names the path."""


class DirectoryInUse(LayoutError):
    """A service runs on the data directory."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What layout.json says.

    shards    how many there were at the beginning; shards that came later are in the placement
    complete  False until every store of the first start was created
    moved     slots have moved, so the slots' shards are to be read in placement/
              (runtime/placement/table.py)
    """

    cluster_id: str
    shards: int
    slots: int = SLOTS
    format_version: int = FORMAT_VERSION
    complete: bool = False
    moved: bool = False

    @classmethod
    def decode(cls, raw: bytes) -> Layout:
        """What `save` wrote. Raises ValueError, TypeError."""
        layout = cls(**json.loads(raw))
        for name, kind in get_type_hints(cls).items():
            value = getattr(layout, name)
            if type(value) is not kind or (kind is int and value < 1):
                raise ValueError(f"its {name} is {value!r}")
        return layout

    @classmethod
    def load(cls, data_dir: Path) -> Layout:
        """Read an existing directory's layout. Raises LayoutError."""
        path = data_dir / LAYOUT_FILE
        try:
            with path.open("rb") as file:
                layout = cls.decode(file.read(LAYOUT_BYTES_MAX))
        except FileNotFoundError:
            raise LayoutError(
                f"{data_dir} holds no data of this service: {LAYOUT_FILE} does not exist there."
            ) from None
        except OSError as refused:
            raise LayoutError(f"{path} cannot be read: {refused.strerror}.") from None
        except (ValueError, TypeError) as unreadable:
            raise LayoutError(f"{path} is damaged: {unreadable}.") from None
        if layout.format_version > FORMAT_VERSION:
            raise LayoutError(
                f"{path} was written by a newer version of this service (format "
                f"{layout.format_version}). {NEWER}"
            )
        return layout

    @classmethod
    def load_or_create(cls, data_dir: Path, shards: int) -> Layout:
        """The directory's layout; a new one with `shards` shards where there is none."""
        if (data_dir / LAYOUT_FILE).exists():
            layout = cls.load(data_dir)
            if layout.format_version < FORMAT_VERSION:
                # Said before the first store is brought up to it, so that an older release does not
                # open some of them.
                layout = replace(layout, format_version=FORMAT_VERSION)
                layout.save(data_dir)
            return layout
        if (data_dir / "shards").exists():
            raise LayoutError(without_layout(data_dir))
        layout = cls(cluster_id=secrets.token_hex(16), shards=shards)
        layout.save(data_dir)
        return layout

    def completed(self, data_dir: Path) -> Layout:
        """Record that every store exists; from now on none is created."""
        if self.complete:
            return self
        layout = replace(Layout.load(data_dir), complete=True)
        layout.save(data_dir)
        return layout

    def restored(self, data_dir: Path) -> None:
        """Write it into a directory whose stores came from elsewhere."""
        replace(self, complete=True).save(data_dir)

    def slots_moved(self, data_dir: Path) -> None:
        """Record that the slots are no longer divided as they were at the beginning."""
        if not self.moved:
            replace(self, moved=True).save(data_dir)

    def identity(self, number: int) -> Identity:
        """What the store of shard `number` must be."""
        return Identity(self.cluster_id, number, self.shards, self.slots, FORMAT_VERSION)

    def save(self, data_dir: Path) -> None:
        make_directory(data_dir)
        unfinished = data_dir / f"{LAYOUT_FILE}.{os.urandom(8).hex()}.new"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(data_dir / LAYOUT_FILE)
        descriptor = os.open(data_dir, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def without_layout(data_dir: Path) -> str:
    """What is said of a directory with stores that no layout tells of, and what can be done."""
    return (
        f"{data_dir / LAYOUT_FILE} is missing, although {data_dir / 'shards'} holds stores. Put it "
        "back from a backup; where a restore into this directory was broken off, remove it and "
        "restore again."
    )


def shard_directory(data_dir: Path, number: int) -> Path:
    return data_dir / "shards" / f"{number:04d}"


def shard_place(cluster_id: str, number: int) -> str:
    """Where a shard's log lies below the URL of the object store."""
    return f"{cluster_id}/shards/{number:04d}"


@contextmanager
def held(data_dir: Path) -> Iterator[int]:
    """Keep every other service off this directory, until the end of the block or of this process;
    -> the lock's descriptor. Raises DirectoryInUse, LayoutError.
    """
    try:
        make_directory(data_dir)
        file = (data_dir / LOCK_FILE).open("a+", encoding="ascii")
    except OSError as refused:
        raise LayoutError(f"{data_dir} cannot be used: {refused.strerror}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise DirectoryInUse(
                f"{data_dir} is in use by process {file.read(32).strip() or 'unknown'}."
            ) from None
        try:
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())
        except OSError as refused:  # as of a full disk
            raise LayoutError(f"{data_dir} cannot be used: {refused.strerror}.") from None
        yield file.fileno()
