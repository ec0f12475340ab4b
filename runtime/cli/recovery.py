"""An installation made again from its object store: the layout, every shard, each as of one moment.

Below the URL lies a folder for each installation, named by its cluster id:

    <cluster id>/layout.json …        how many shards there are, and whose slots are where
                                      (runtime/placement/copies.py)
    <cluster id>/shards/NNNN/…        a shard's log and snapshots (storage/replication/shipper.py,
                                      storage/replication/snapshots.py)

Beside them lie the blobs of all (storage/blobs/copies.py), which a restored installation fetches
when it needs them.

The secrets are not there: whoever could read them beside the log could read the log. They come from
the settings, or are put into `secrets/` of the new data directory beforehand, from wherever the
operator keeps them.

An account whose erasure was asked for after the moment of a restore is not brought back: what the
log says of it later is read too (runtime/cli/erased_again.py).

Shards are independent: nothing spans two stores, so each as of the same moment is a state the
service was in, together with the placement of that moment (Placement.at): it decides which of two
shards has a slot that was on its way. Moves that were under way go on, or back, when the
installation is served.

An installation that is taken over is still served by whoever held it until its last shard is taken,
so the placement is read after the shards: what it says was stored in them before. One that is only
looked at may not move slots meanwhile.
"""

from __future__ import annotations

import bisect
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from runtime.api.erasures import ERASED, ErasedRow
from runtime.installation import (
    LAYOUT_FILE,
    LOCK_FILE,
    Layout,
    LayoutError,
    Secrets,
    held,
    read_key_ring,
    shard_directory,
    shard_place,
)
from runtime.placement import (
    PLACEMENT_DIRECTORY,
    Placement,
    as_version,
    version_name,
    version_names,
)
from runtime.settings import Settings
from storage.blobs import BLOBS
from storage.replication import LeftOut, ObjectStore, Restored, RestoreFailed, restore
from storage.store import (
    KEYS_FILE,
    Key,
    Scope,
    StoreMismatch,
    check_identity,
    figures,
    scopes,
)

SHARDS_RESTORED_AT_ONCE = 8

_MAY_BE_THERE = {"secrets", LOCK_FILE}


def restore_installation(
    settings: Settings,
    *,
    cluster_id: str | None,
    at: int | None,
    take_over: bool,
    report: Callable[[int, Restored], None],
    erased_again: Callable[[int], None] = lambda _: None,
) -> Layout:
    """Make the data directory of the settings, which holds nothing but `secrets`. at: Unix
    milliseconds; report: after each shard; erased_again: how many accounts were back that had been
    erased since.

    layout.json comes last: without it no service takes the directory for its own. Raises
    RestoreFailed, LayoutError, SecretsError, ObjectStoreFailed, and what
    storage/replication/restore.py raises.
    """
    if settings.object_store.url is None:
        raise RestoreFailed(
            "object_store.url is not set: name a backup's directory, or the object store that "
            "holds the log."
        )
    objects, data_dir = ObjectStore(settings.object_store.url, make=False), settings.data_dir
    if data_dir.exists() and {path.name for path in data_dir.iterdir()} - _MAY_BE_THERE:
        raise LayoutError(
            f"{data_dir} is not empty; a restore goes into a new directory that holds nothing but "
            "secrets."
        )
    secrets = Secrets.of(settings)
    layout = _layout(objects, cluster_id)
    with held(data_dir), _all_or_nothing(data_dir):
        erased: dict[tuple[int, int], ErasedRow] = {}

        def erased_since(scope: Scope, key: Key, raw: bytes) -> None:
            erased[scope.slot, key[0]] = ERASED.decode(raw)

        left_out = LeftOut(ERASED.name, erased_since)
        placements = _Placements(objects.below(layout.cluster_id), layout, at)
        before, made = placements.read(), 0

        def make(number: int) -> Restored:
            return _shard(settings, secrets, objects, layout, number, at, take_over, left_out)

        while made < len((placement := placements.read()).shards):
            due = range(made, len(placement.shards))
            # at once, because each may wait for the end of a lease
            with ThreadPoolExecutor(SHARDS_RESTORED_AT_ONCE) as pool:
                for number, found in zip(due, pool.map(make, due), strict=True):
                    report(number, found)
            made = len(placement.shards)
        placements.check(before, placement, data_dir, take_over)
        if placement.version:
            _write_placement(placement, data_dir)
        if placement.version and take_over:  # several nodes go by what is there
            objects.below(layout.cluster_id).put_new(
                f"{PLACEMENT_DIRECTORY}/{version_name(placement.version)}", placement.encode()
            )
        again = _erase_again(settings, layout, len(placement.shards), erased)
        if again:
            erased_again(again)
        layout.restored(data_dir)
    return layout


@contextmanager
def _all_or_nothing(data_dir: Path) -> Iterator[None]:
    """Leave none of what a restore made where it fails, so that it can be asked for again."""
    try:
        yield
    except BaseException:
        for name in ("shards", PLACEMENT_DIRECTORY):
            shutil.rmtree(data_dir / name, ignore_errors=True)
        raise


def _shard(
    settings: Settings,
    secrets: Secrets,
    objects: ObjectStore,
    layout: Layout,
    number: int,
    at: int | None,
    take_over: bool,
    left_out: LeftOut,
) -> Restored:
    directory = shard_directory(settings.data_dir, number)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = restore(
        objects.below(shard_place(layout.cluster_id, number)),
        directory,
        at=at,
        take_over=take_over,
        owner=f"restore of {settings.data_dir}",
        map_bytes=settings.storage.map_bytes_max,
        left_out=left_out,
    )
    try:
        check_identity(directory, figures(directory).identity, layout.identity(number))
    except StoreMismatch as other:
        raise _damaged(f"{objects.url}/{layout.cluster_id}/{LAYOUT_FILE}", other) from None
    if (directory / KEYS_FILE).exists():
        # A wrong service key is told here, not at the first request.
        read_key_ring(directory / KEYS_FILE, secrets).close()
    return found


def _erase_again(
    settings: Settings, layout: Layout, shards: int, erased: Mapping[tuple[int, int], ErasedRow]
) -> int:
    """Close the accounts again in whichever restored shard has them; -> how many were back."""
    if not erased:
        return 0
    from runtime.cli.erased_again import erase_again  # with all that a shard stands on

    return sum(erase_again(settings, layout, number, erased) for number in range(shards))


class _Placements:
    """The versions of an installation's placement that lie in its object store."""

    def __init__(self, objects: ObjectStore, layout: Layout, at: int | None):
        self._objects, self._layout, self._at = objects, layout, at
        self._loaded: dict[str, Placement] = {}

    def read(self) -> Placement:
        """The placement of the time asked for. One that was followed by others becomes the newest:
        its installation goes on from there.
        """
        stored = self._objects.stored_at(PLACEMENT_DIRECTORY)
        names = version_names(stored)
        count = len(names)
        if self._at is not None:  # versions of an earlier release have no time in them
            count = bisect.bisect_right(
                names, self._at, key=lambda name: self._load(name).at or stored[name]
            )
        if not names and self._layout.moved:
            raise RestoreFailed(
                f"{self._objects.url}/{self._layout.cluster_id}/{PLACEMENT_DIRECTORY} is empty, "
                "although slots have moved: without it nobody knows which shard has which account. "
                "Put it back from a copy."
            )
        placement = (
            self._load(names[count - 1])
            if count
            else Placement.even(self._layout.shards, self._layout.cluster_id)
        )
        if count == len(names):
            return placement
        return replace(
            placement, version=self._load(names[-1]).version + 1, at=time.time_ns() // 1_000_000
        )

    def check(
        self, before: Placement, placement: Placement, data_dir: Path, take_over: bool
    ) -> None:
        """Raise RestoreFailed unless the placement is the one that the restored stores were written
        under. before: as it was before they were read.
        """
        misplaced = placement.misplaced(
            {
                number: scopes(shard_directory(data_dir, number))
                for number in range(len(placement.shards))
            }
        )
        has_moved = placement.owners != before.owners or (
            misplaced and placement.version != before.version
        )
        if has_moved and not take_over:
            raise RestoreFailed(
                "slots changed their shard while their shards were read: restore again, or as of a "
                "time that is over."
            )
        if misplaced:
            raise RestoreFailed(
                f"the rows of slot {misplaced[0]} and {len(misplaced) - 1} others lie in another "
                f"shard than {self._objects.url}/{PLACEMENT_DIRECTORY} says: its newest versions "
                "are missing or altered. Put them back from a copy."
            )

    def _load(self, name: str) -> Placement:
        if name not in self._loaded:
            place = f"{PLACEMENT_DIRECTORY}/{name}"
            try:
                self._loaded[name] = as_version(
                    name, Placement.decode(self._objects.get(place) or b"")
                )
            except (msgspec.MsgspecError, ValueError) as damaged:
                raise _damaged(
                    f"{self._objects.url}/{self._layout.cluster_id}/{place}", damaged
                ) from None
        return self._loaded[name]


def _write_placement(placement: Placement, data_dir: Path) -> None:
    (data_dir / PLACEMENT_DIRECTORY).mkdir(mode=0o700)
    with (data_dir / PLACEMENT_DIRECTORY / version_name(placement.version)).open("xb") as file:
        file.write(placement.encode())
        file.flush()
        os.fsync(file.fileno())


def _layout(objects: ObjectStore, cluster_id: str | None) -> Layout:
    found = [name for name in objects.folders() if name != BLOBS and cluster_id in (None, name)]
    if not found and cluster_id and objects.get(f"{cluster_id}/{LAYOUT_FILE}") is not None:
        raise RestoreFailed(
            f"{objects.url} lists nothing below {cluster_id}, although it has its layout: see that "
            "its credentials may list."
        )
    if not found:
        raise RestoreFailed(
            f"{objects.url} lists no log of "
            f"{'this installation' if cluster_id else 'any installation'}: check the prefix in "
            "object_store.url, and that its credentials may list."
        )
    if len(found) > 1:
        raise RestoreFailed(
            f"{objects.url} holds the logs of several installations: name one with --cluster. They "
            f"are {', '.join(found)}."
        )
    content = objects.get(f"{found[0]}/{LAYOUT_FILE}")
    if content is None:
        raise RestoreFailed(f"{objects.url}/{found[0]} has no {LAYOUT_FILE}.")
    try:
        layout = Layout.decode(content)
        if layout.cluster_id != found[0]:
            raise ValueError(f"it is that of {layout.cluster_id}")
        return layout
    except (ValueError, TypeError) as damaged:
        raise _damaged(f"{objects.url}/{found[0]}/{LAYOUT_FILE}", damaged) from None


def _damaged(place: str, why: Exception) -> RestoreFailed:
    return RestoreFailed(f"{place} is damaged: {why}. Put it back from a copy.")
