"""The layout and the placement of an installation, beside its logs in object storage: without them
nobody knows whose a shard is.

<cluster id>/layout.json          as it is now
<cluster id>/placement/<version>  each version once; runtime/placement/table.py says what stands in
                                  it
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from io import BytesIO

from runtime.installation import LAYOUT_FILE
from runtime.placement.table import PLACEMENT_DIRECTORY
from runtime.settings import Settings
from storage.replication import ObjectStore


class LayoutCopies:
    """Follows the files of one data directory. Its call may be repeated, and made by several
    processes at once.

    is_owner  whether this process still owns its shard. One that was taken over and wakes up may
              have a placement of its own: what it published, its successor replaces
    """

    def __init__(self, objects: ObjectStore, settings: Settings, is_owner: Callable[[], bool]):
        self._objects, self._data_dir, self._is_owner = objects, settings.data_dir, is_owner
        self._shared = settings.cluster.name is not None
        self._layout: bytes | None = None
        self._versions: set[str] | None = None

    def follow(self) -> None:
        """Store what is new. Raises ObjectStoreFailed."""
        layout = self._data_dir / LAYOUT_FILE
        if self._shared or not layout.exists():
            return  # several nodes go by what is there; or it is a shard without an installation
        content, versions = (
            layout.read_bytes(),
            sorted((self._data_dir / PLACEMENT_DIRECTORY).glob("*.json")),
        )
        if self._versions is None:
            self._versions = set(self._objects.names(PLACEMENT_DIRECTORY)) - {
                path.name for path in versions[-1:]
            }
        new = [path for path in versions if path.name not in self._versions]
        if not (new or content != self._layout) or not self._is_owner():
            return
        for path in new:
            with contextlib.suppress(
                FileNotFoundError
            ):  # it was removed meanwhile, since there are many newer ones
                self._store(f"{PLACEMENT_DIRECTORY}/{path.name}", path.read_bytes())
            self._versions.add(path.name)
        if content != self._layout:
            self._objects.put_file(LAYOUT_FILE, BytesIO(content))
            self._layout = content

    def _store(self, name: str, content: bytes) -> None:
        if (
            not self._objects.put_new(name, content)
            and self._objects.get(name) != content
            and self._is_owner()
        ):
            self._objects.put_file(name, BytesIO(content))
