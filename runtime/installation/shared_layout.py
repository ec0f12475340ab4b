"""The layout of an installation on several nodes, which have no directory in common: it lies in the
object store.

    <cluster.name>/layout.json   made with put-if-absent; whoever comes later takes what is there

Each node has a copy in its own data directory, so that whatever reads a data directory finds one,
and so that no node takes the directory of another installation for its own. The name of the cluster
is the installation's cluster id: one that ran on a single node with an object store goes on under
its id, since its log, its layout and its placement lie where they are looked for.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from runtime.installation.layout import LAYOUT_FILE, Layout, LayoutError
from runtime.settings import Settings
from storage.replication import ObjectStore


def shared_objects(settings: Settings) -> ObjectStore:
    """What the nodes of the installation share. Raises ObjectStoreFailed."""
    return ObjectStore(str(settings.object_store.url)).below(str(settings.cluster.name))


def read_shared_layout(objects: ObjectStore) -> Layout:
    """What every node goes by. Raises LayoutError, ObjectStoreFailed."""
    content = objects.get(LAYOUT_FILE)
    if content is None:
        raise LayoutError(f"{objects.url} holds no cluster of that name. Is its disk mounted?")
    try:
        return Layout.decode(content)
    except (ValueError, TypeError) as unreadable:
        raise LayoutError(f"{LAYOUT_FILE} in {objects.url} is damaged: {unreadable}.") from None


def make_shared_layout(objects: ObjectStore, name: str, shards: int) -> Layout:
    """The layout; a new one with `shards` shards where there is none. Raises LayoutError,
    ObjectStoreFailed.
    """
    new = Layout(cluster_id=name, shards=shards, complete=True, moved=True)
    objects.put_new(LAYOUT_FILE, json.dumps(asdict(new), indent=2).encode())
    return read_shared_layout(objects)


def copy_layout(layout: Layout, data_dir: Path) -> None:
    """Keep the layout in a node's data directory. Raises LayoutError where that belongs to another
    installation.
    """
    if (data_dir / LAYOUT_FILE).exists() and (
        found := Layout.load(data_dir)
    ).cluster_id != layout.cluster_id:
        raise LayoutError(f"{data_dir} holds data of another installation, {found.cluster_id}.")
    replace(layout, moved=True).restored(
        data_dir
    )  # without its placement the directory is refused on a single node
