"""An installation made again from its object store: the layout, every shard, each as of one moment.

Below the URL lies a folder for each installation, named by its cluster id:

    <cluster id>/layout.json …        how many shards there are, and whose slots are where (runtime/layout_copies.py)
    <cluster id>/shards/NNNN/…        a shard's log and snapshots (storage/log_shipping.py, storage/log_snapshots.py)

Beside them lie the blobs of all (storage/blob_copies.py), which a restored installation fetches when it needs them.

The secrets are not there: whoever could read them beside the log could read the log. They come from the settings, or are put into
`secrets/` of the new data directory beforehand, from wherever the operator keeps them.

Shards are independent: nothing spans two stores, so each as of the same moment is a state the service was in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from runtime.durability import shard_place
from runtime.layout import LAYOUT_FILE, LOCK_FILE, Layout, LayoutError, held, shard_directory
from runtime.placement import Placement
from runtime.placement_table import DIRECTORY as PLACEMENT
from runtime.secrets import Secrets
from runtime.settings import Settings
from storage.blob_copies import PLACE as BLOBS
from storage.envelope import KEYS_FILE, Keyring
from storage.object_store import ObjectStore
from storage.replay import Restored, RestoreFailed, restore

_MAY_BE_THERE = {"secrets", LOCK_FILE}


def restore_installation(
    settings: Settings, *, cluster_id: str | None, at: int | None, take_over: bool, told: Callable[[int, Restored], None]
) -> Layout:
    """Make the data directory of the settings, which holds nothing but `secrets`. at: Unix milliseconds; told: after each shard.

    layout.json comes last: without it no service takes the directory for its own. Raises RestoreFailed, LayoutError, SecretsError,
    ObjectStoreFailed, and what storage/replay.py raises.
    """
    if settings.object_store.url is None:
        raise RestoreFailed("object_store.url is not set: name a backup's directory, or the object store that holds the log.")
    objects, data_dir = ObjectStore(settings.object_store.url), settings.data_dir
    if data_dir.exists() and {path.name for path in data_dir.iterdir()} - _MAY_BE_THERE:
        raise LayoutError(f"{data_dir} is not empty; a restore goes into a new directory that holds nothing but secrets.")
    secrets = Secrets.of(settings)
    layout = _layout(objects, cluster_id)
    with held(data_dir):
        for number in range(_restore_placement(objects.below(layout.cluster_id), data_dir, at) or layout.shards):
            directory = shard_directory(data_dir, number)
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = objects.below(shard_place(layout.cluster_id, number))
            found = restore(place, directory, at=at, take_over=take_over, owner=f"restore of {data_dir}")
            if (directory / KEYS_FILE).exists():  # a wrong service key is told here, not at the first request
                Keyring.open(directory / KEYS_FILE, secrets.service, create=False, readonly=True).close()
            told(number, found)
        layout.restored(data_dir)
    return layout


def _restore_placement(objects: ObjectStore, data_dir: Path, at: int | None) -> int:
    """Put the newest placement of that time into the data directory; -> how many shards it has, 0 where no slot had moved."""
    stored = objects.stored_at(PLACEMENT)
    names = sorted(name for name, when in stored.items() if at is None or when <= at)
    if not names:
        return 0
    content = objects.get(f"{PLACEMENT}/{names[-1]}") or b""
    (data_dir / PLACEMENT).mkdir(mode=0o700)
    with (data_dir / PLACEMENT / names[-1]).open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return len(Placement.decode(content).shards)


def _layout(objects: ObjectStore, cluster_id: str | None) -> Layout:
    found = [name for name in objects.folders() if name != BLOBS and cluster_id in (None, name)]
    if not found:
        raise RestoreFailed(f"{objects.url} holds no log of {'this installation' if cluster_id else 'any installation'}.")
    if len(found) > 1:
        raise RestoreFailed(f"{objects.url} holds the logs of several installations: name one with --cluster. They are {', '.join(found)}.")
    content = objects.get(f"{found[0]}/{LAYOUT_FILE}")
    if content is None:
        raise RestoreFailed(f"{objects.url}/{found[0]} has no {LAYOUT_FILE}.")
    return Layout(**json.loads(content))
