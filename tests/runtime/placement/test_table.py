"""Versions of the placement on disk: each is published once, and none is lost from sight."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.installation import LAYOUT_FILE, Layout, LayoutError
from runtime.limits import PLACEMENT_VERSIONS_KEPT
from runtime.placement import (
    Move,
    Placement,
    PlacementTable,
    SharedPlacementTable,
    SlotMap,
)
from storage.replication import ObjectStore


@pytest.fixture
def table(tmp_path: Path) -> PlacementTable:
    Layout.load_or_create(tmp_path, 2)
    return PlacementTable(tmp_path)


def test_there_is_nothing_on_disk_until_something_changes(
    table: PlacementTable, tmp_path: Path
) -> None:
    placement = table.load()
    assert (placement.version, len(placement.shards), placement.cluster_id) == (
        0,
        2,
        Layout.load(tmp_path).cluster_id,
    )
    assert table.change(lambda newest: newest).version == 0
    assert not (tmp_path / "placement").exists() and not Layout.load(tmp_path).moved
    assert table.change(lambda newest: newest.planned([Move("a", (7,), 0, 1)])).version == 1
    assert PlacementTable(tmp_path).load().move("a").slots == (7,)
    assert Layout.load(tmp_path).moved


def test_of_many_who_change_it_at_once_each_sees_the_one_before(table: PlacementTable) -> None:
    def plan(number: int) -> None:
        table.change(lambda newest: newest.planned([Move(str(number), (number,), 0, 1)]))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(plan, range(40)))
    placement = table.load()
    assert placement.version == 40
    assert {move.id for move in placement.moves} == {str(number) for number in range(40)}


def test_a_file_of_another_name_is_no_version(table: PlacementTable, tmp_path: Path) -> None:
    """On disk and in an object store, where tools of others leave theirs."""
    objects = ObjectStore(f"file://{tmp_path / 'objects'}")
    for name in (".DS_Store", "000000000002.json~", "readme.json", "zz"):
        objects.put_new(f"placement/{name}", b"{}")
    objects.put_new(LAYOUT_FILE, (tmp_path / LAYOUT_FILE).read_bytes())
    assert SharedPlacementTable(objects).load().version == 0
    table.change(lambda newest: newest.planned([Move("a", (7,), 0, 1)]))
    for path in (tmp_path / "objects" / "placement").iterdir():
        shutil.copy(path, tmp_path / "placement")
    assert PlacementTable(tmp_path).load().version == 1
    objects.put_new("placement/000000000001.json", table.load().encode())
    assert SharedPlacementTable(objects).load().version == 1


def test_a_gateway_keeps_its_placement_while_there_is_none_to_read(
    table: PlacementTable, tmp_path: Path
) -> None:
    """It goes on looking for a lost shard, which it would not if reading ended its search."""
    known = SlotMap(table.load(), table)
    table.change(lambda newest: newest.planned([Move("a", (7,), 0, 1)]))
    (published,) = (tmp_path / "placement").iterdir()
    whole = published.read_bytes()
    published.write_bytes(b"{}")
    asyncio.run(known.refresh())
    assert known.placement.version == 0
    published.write_bytes(whole)
    asyncio.run(known.refresh())
    assert known.placement.version == 1


@pytest.mark.parametrize("versions", [0, 3])
def test_whoever_acts_on_an_old_version_publishes_nothing(
    table: PlacementTable, versions: int
) -> None:
    """Also where its name is free again, because versions that old were removed long ago."""
    for number in range(versions):
        table.change(
            lambda newest, number=number: newest.planned([Move(f"old{number}", (number,), 0, 1)])
        )
    old = table.load()
    for number in range(PLACEMENT_VERSIONS_KEPT + 5):
        table.change(
            lambda newest, number=number: newest.planned([Move(f"{number}", (100 + number,), 0, 1)])
        )
    newest = table.load()
    calls: list[Placement] = []

    def late(found: Placement) -> Placement:
        calls.append(found)
        return (old if len(calls) == 1 else found).planned([Move("late", (2000,), 0, 1)])

    assert table.change(late).version == newest.version + 1
    assert [found.version for found in calls] == [newest.version, newest.version]
    assert len(table.load().moves) == versions + PLACEMENT_VERSIONS_KEPT + 6


def test_a_placement_that_is_missing_or_damaged_is_named(
    table: PlacementTable, tmp_path: Path
) -> None:
    table.change(lambda newest: newest.resized(3))
    (file,) = (tmp_path / "placement").iterdir()
    raw = file.read_bytes()
    file.write_bytes(raw[:-5])
    with pytest.raises(LayoutError, match="is damaged"):
        table.load()
    shutil.rmtree(tmp_path / "placement")
    with pytest.raises(LayoutError, match="placement is missing"):
        table.load()
