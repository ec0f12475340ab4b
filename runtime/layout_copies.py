"""The layout and the placement of an installation, beside its logs in object storage: without them nobody knows whose a shard is.

<cluster id>/layout.json          as it is now
<cluster id>/placement/<version>  each version once; runtime/placement_table.py says what stands in it
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from runtime.layout import LAYOUT_FILE
from runtime.placement_table import DIRECTORY as PLACEMENT
from storage.object_store import ObjectStore


class LayoutCopies:
    """Follows the files of one data directory. Its call may be repeated, and made by several processes at once."""

    def __init__(self, objects: ObjectStore, data_dir: Path):
        self._objects, self._data_dir = objects, data_dir
        self._layout: bytes | None = None
        self._versions: set[str] = set()

    def follow(self) -> None:
        """Store what is new. Raises ObjectStoreFailed."""
        layout = self._data_dir / LAYOUT_FILE
        if not layout.exists():
            return  # a shard without an installation
        content = layout.read_bytes()
        for path in sorted((self._data_dir / PLACEMENT).glob("*.json")):
            if path.name not in self._versions:
                self._objects.put_new(f"{PLACEMENT}/{path.name}", path.read_bytes())
                self._versions.add(path.name)
        if content != self._layout:
            self._objects.put_file(LAYOUT_FILE, BytesIO(content))
            self._layout = content
