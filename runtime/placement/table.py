"""Where the placement is kept: one file for each version, of which each is written once.

    placement/000000000017.json     in the data directory

The newest version counts. Publishing version n + 1 is making a file that must not be there yet, so
of two who read version n one succeeds and the other learns that it acted on an old one: nobody
needs a lock, and nobody needs to know who else is at work. There is no file before the first slot
moves: until then the slots are divided evenly over the layout's shards. From then on a directory
without any is refused, because it would send tenants to shards that do not hold them.

Several nodes have no directory in common. Their table lies in the object store, beside their logs,
and every version stays there: so whoever knows one finds the newest by asking for the next.

    <cluster.name>/placement/000000000017.json
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from runtime.installation import Layout, LayoutError, read_shared_layout, shared_objects
from runtime.limits import PLACEMENT_ATTEMPTS_MAX, PLACEMENT_BYTES_MAX, PLACEMENT_VERSIONS_KEPT
from runtime.placement.placement import Placement, PlacementError
from runtime.settings import Settings
from storage.replication import ObjectStore

PLACEMENT_DIRECTORY = "placement"
_SUFFIX = ".json"
_VERSION_NAME = re.compile(rf"[0-9]{{12}}{re.escape(_SUFFIX)}")


class PlacementTable:
    """The placement of one data directory. Safe from any thread and process. `of` gives that of an
    installation, wherever it lies.
    """

    def __init__(self, data_dir: Path):
        self._data_dir = data_dir
        self._directory = data_dir / PLACEMENT_DIRECTORY

    @staticmethod
    def of(settings: Settings) -> PlacementTable:
        """Open the table where the settings say it is kept. Raises ObjectStoreFailed."""
        return (
            PlacementTable(settings.data_dir)
            if settings.cluster.name is None
            else SharedPlacementTable(shared_objects(settings))
        )

    def load(self) -> Placement:
        """The newest version. Raises LayoutError, and on several nodes ObjectStoreFailed."""
        while True:
            names = self._names()
            if not names:
                return self._first()
            with contextlib.suppress(
                FileNotFoundError
            ):  # it was removed meanwhile, since there are newer ones
                return self._read(self._directory / names[-1])

    def change(self, change: Callable[[Placement], Placement]) -> Placement:
        """Publish what `change` makes of the newest version; -> it. Nothing is published when it
        raises, or gives back what it got.
        """
        for _ in range(PLACEMENT_ATTEMPTS_MAX):
            newest = self.load()
            wanted = change(newest)
            if wanted is newest:
                return newest
            wanted = replace(wanted, at=max(wanted.at, time.time_ns() // 1_000_000))
            if self._publish(wanted):
                return wanted
        raise LayoutError("The placement changes faster than it can be written.")

    def resize(self, count: int) -> None:
        """As many shards as the settings ask for: new ones are empty at first, and only empty ones
        can be left out. Raises LayoutError.
        """
        try:
            self.change(
                lambda newest: newest if len(newest.shards) == count else newest.resized(count)
            )
        except PlacementError as refused:
            raise LayoutError(f"shards.count is {count}. {refused}") from None

    def _first(self) -> Placement:
        layout = Layout.load(self._data_dir)
        if layout.moved:
            raise LayoutError(
                f"{self._directory} is missing: without it nobody knows which shard holds which "
                "tenant."
            )
        return Placement.even(layout.shards, layout.cluster_id)

    def _names(self) -> list[str]:
        try:
            return version_names(os.listdir(self._directory))
        except FileNotFoundError:
            return []

    def _read(self, path: Path) -> Placement:
        try:
            with path.open("rb") as file:
                return as_version(path.name, Placement.decode(file.read(PLACEMENT_BYTES_MAX)))
        except (msgspec.MsgspecError, ValueError) as unreadable:
            raise LayoutError(f"{path} is damaged: {unreadable}.") from None

    def _publish(self, wanted: Placement) -> bool:
        """Write a version unless somebody did; -> whether it is ours. It is durable then."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        unfinished = self._directory / f"{os.urandom(8).hex()}.new"
        try:
            with unfinished.open("xb") as file:
                file.write(wanted.encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(unfinished, self._directory / version_name(wanted.version))
        except FileExistsError:
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        names = self._names()
        if not self._follows(wanted.version, names):
            (self._directory / version_name(wanted.version)).unlink(missing_ok=True)
            return False
        Layout.load(self._data_dir).slots_moved(self._data_dir)
        for name in names[:-PLACEMENT_VERSIONS_KEPT]:
            (self._directory / name).unlink(missing_ok=True)
        return True

    def _follows(self, version: int, names: list[str]) -> bool:
        """Whether the name was free because nobody had used it, not because its version was removed
        long ago, the oldest first.
        """
        return (
            version == 1 and names[:2] in ([version_name(1)], [version_name(1), version_name(2)])
        ) or version_name(version - 1) in names


class SharedPlacementTable(PlacementTable):
    """The placement of an installation on several nodes, in the object store. Safe from any thread
    and process.
    """

    def __init__(self, objects: ObjectStore):
        self._objects = objects
        self._newest: Placement | None = None

    def load(self) -> Placement:
        newest = self._newest or self._listed()
        while (content := self._objects.get(_object_name(newest.version + 1))) is not None:
            newest = self._decoded(newest.version + 1, content)
        self._newest = newest
        return newest

    def _listed(self) -> Placement:
        names = version_names(self._objects.names(PLACEMENT_DIRECTORY))
        if not names:
            layout = read_shared_layout(self._objects)
            return Placement.even(layout.shards, layout.cluster_id)
        return self._decoded(
            int(names[-1].removesuffix(_SUFFIX)),
            self._objects.get(f"{PLACEMENT_DIRECTORY}/{names[-1]}") or b"",
        )

    def _decoded(self, version: int, content: bytes) -> Placement:
        try:
            return as_version(version_name(version), Placement.decode(content))
        except (msgspec.MsgspecError, ValueError) as unreadable:
            raise LayoutError(
                f"{_object_name(version)} in {self._objects.url} is damaged: {unreadable}."
            ) from None

    def _publish(self, wanted: Placement) -> bool:
        name, content = _object_name(wanted.version), wanted.encode()
        return self._objects.put_new(name, content) or self._objects.get(name) == content


def version_name(version: int) -> str:
    return f"{version:012d}{_SUFFIX}"


def version_names(names: Iterable[str]) -> list[str]:
    """The names of versions among these, oldest first. A file of another name is none."""
    return sorted(name for name in names if _VERSION_NAME.fullmatch(name))


def as_version(name: str, placement: Placement) -> Placement:
    """The placement that was read under this name. Raises ValueError when it is another version."""
    if version_name(placement.version) != name:
        raise ValueError(f"it says that it is version {placement.version}")
    return placement


def _object_name(version: int) -> str:
    return f"{PLACEMENT_DIRECTORY}/{version_name(version)}"
