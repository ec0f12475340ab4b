"""Many small segments become few objects: nothing is lost by it, whenever it is broken off, and no
name of the log is free for anybody who comes back.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.replication import Superseded, packs, restore
from storage.replication.object_store import ObjectStoreFailed
from storage.replication.segment import SEGMENTS, RecentSegments, SegmentDamaged
from storage.replication.snapshots import snapshots
from tests.support.log_world import FaultyStore, Owner, contents, contents_of, owner
from tests.support.s3 import s3

WRITES, TOGETHER = 40, 8


@pytest.fixture(params=["directory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyStore]:
    if request.param == "directory":
        yield FaultyStore(f"file://{tmp_path}/objects", "c/0/")
    else:
        with s3() as url:
            yield FaultyStore(url, "c/0/")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PACKED_AT_ONCE", TOGETHER)


def begun(directory: Path, objects: FaultyStore) -> Owner:
    """An owner with a snapshot, who has stored many small segments since."""
    held = Owner(directory, objects).start(snapshots=False)
    held.taker.take()
    held.await_stored()
    return held


def write(held: Owner, name: str, count: int = WRITES) -> None:
    for number in range(count):
        held.put(f"{name} {number}", b"%d" % number)
        held.await_stored()


def numbers(objects: FaultyStore) -> list[int]:
    """Of the segments that lie by themselves."""
    return sorted(int(name[-12:]) for name in objects.names(SEGMENTS))


def test_a_restore_reads_few_objects(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one")
    before = numbers(objects)
    packed = held.taker.packer.pack()
    assert packed >= WRITES - 2 * TOGETHER and packed % TOGETHER == 0
    assert len(numbers(objects)) == len(before) - packed
    assert len(objects.names(packs.PACKS)) == packed / TOGETHER
    write(held, "two", TOGETHER)
    expected = contents(held.store)
    held.close()
    read: list[str] = []
    get = type(objects).get

    def noted(self: FaultyStore, path: str) -> bytes | None:
        read.append(path)
        return get(self, path)

    monkeypatch.setattr(type(objects), "get", noted)
    restored = restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected
    assert restored.segments > WRITES
    assert sum(path.startswith(packs.PACKS) for path in read) == packed / TOGETHER
    assert not any(path.endswith(f"{before[2]:012d}") for path in read)


def test_packing_waits_for_a_flood_to_end_but_not_for_ever(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SEGMENTS_BETWEEN", 2 * TOGETHER)
    monkeypatch.setattr(packs, "SEGMENTS_BETWEEN_IN_A_FLOOD", 4 * TOGETHER)
    monkeypatch.setattr(packs, "FEW_SEGMENTS", 2)

    def written_until_due(each: int) -> int:
        """How many were stored, so many between two questions."""
        written = 0
        while True:
            write(held, f"{each} {written}", each)
            written += each
            if packer.is_due():
                packer.pack()
                return written

    held = begun(tmp_path / "a", objects)
    packer = held.taker.packer
    packer.pack()
    assert (
        3 * TOGETHER < written_until_due(each=4) <= 4 * TOGETHER + 4
    )  # some were left from before
    assert TOGETHER <= written_until_due(each=2) <= 2 * TOGETHER
    write(held, "more", 2 * TOGETHER)
    assert [packer.is_due(), packer.is_due()] == [False, True]
    held.close()


def test_what_was_stored_a_moment_ago_is_packed_without_being_fetched(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begun(tmp_path / "a", objects)
    held.shipper.recent = RecentSegments(bytes_max=6_000)
    write(held, "one", WRITES)
    names = {f"{SEGMENTS}/{name}" for name in objects.names(SEGMENTS)}
    recent = {name for name in names if held.shipper.recent.get(name)}
    assert TOGETHER < len(recent) < WRITES
    fetched: set[str] = set()
    get = type(objects).get

    def noted(self: FaultyStore, path: str) -> bytes | None:
        fetched.add(path)
        return get(self, path)

    monkeypatch.setattr(type(objects), "get", noted)
    assert held.taker.packer.pack()
    assert fetched and not fetched & recent
    gone = names - {f"{SEGMENTS}/{name}" for name in objects.names(SEGMENTS)}
    assert gone & recent and not any(held.shipper.recent.get(name) for name in gone)
    expected = contents(held.store)
    held.close()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_packing_that_is_broken_off_anywhere_loses_nothing(
    tmp_path: Path, objects: FaultyStore
) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one")
    expected, whole = contents(held.store), numbers(objects)
    for number in range(9):  # more than there are requests of a kind
        objects.lossy = 0.3
        with contextlib.suppress(ObjectStoreFailed):
            held.taker.packer.pack()
        objects.lossy = 0.0
        restore(objects, tmp_path / f"b{number}")
        assert contents_of(tmp_path / f"b{number}") == expected
    held.taker.packer.pack()
    assert len(numbers(objects)) <= len(whole) - WRITES + 2 * TOGETHER
    held.close()


def test_an_owner_goes_on_after_packing_and_a_crash(tmp_path: Path, objects: FaultyStore) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one")
    assert held.taker.packer.pack()
    held.crash()
    with owner(tmp_path / "a", objects) as again:
        write(again, "two", 2)
        expected = contents(again.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_whoever_was_fenced_removes_nothing(tmp_path: Path, objects: FaultyStore) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one")
    expected, before = contents(held.store), numbers(objects)
    restore(objects, tmp_path / "b", take_over=True, owner="b")
    held.taker.packer.pack()
    assert held.fenced
    assert set(before) <= set(numbers(objects))
    held.crash()
    assert contents_of(tmp_path / "b") == expected


def test_a_directory_of_before_finds_no_name_of_the_log_free(
    tmp_path: Path, objects: FaultyStore
) -> None:
    held = begun(tmp_path / "a", objects)
    shutil.copytree(tmp_path / "a", tmp_path / "old", ignore=shutil.ignore_patterns("lock.mdb"))
    write(held, "one")
    assert held.taker.packer.pack()
    expected = contents(held.store)
    held.crash()
    with pytest.raises(Superseded, match="goes on to segment"):
        Owner(tmp_path / "old", objects)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_packs_go_with_the_snapshots_that_need_them(tmp_path: Path, objects: FaultyStore) -> None:
    held = begun(tmp_path / "a", objects)
    for name in ("one", "two", "three"):
        write(held, name, 2 * TOGETHER + 2)
        assert held.taker.packer.pack()
        held.taker.take()
    kept = snapshots(objects)[0][1].state.number
    assert all(last > kept for _, last in packs.packs(objects))
    expected = contents(held.store)
    held.close()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_a_damaged_pack_is_told(tmp_path: Path, objects: FaultyStore) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one")
    assert held.taker.packer.pack()
    held.close()
    name = f"{packs.PACKS}/{objects.names(packs.PACKS)[1]}"
    content = bytearray(objects.get(name) or b"")
    content[-1] ^= 1
    objects.delete([name])
    assert objects.put_new(name, bytes(content))
    with pytest.raises(SegmentDamaged, match="damaged"):
        restore(objects, tmp_path / "b")


def test_files_of_other_names_beside_segments_and_packs_are_passed_over(
    tmp_path: Path, objects: FaultyStore
) -> None:
    held = begun(tmp_path / "a", objects)
    write(held, "one", TOGETHER)
    last = max(objects.names(SEGMENTS))
    for name in (".DS_Store", f"{last}.part", "000000000001/notes.txt", "README"):
        assert objects.put_new(f"{SEGMENTS}/{name}", b"")
    for name in (".DS_Store", "000000000001-000000000008.part", "a-b"):
        assert objects.put_new(f"{packs.PACKS}/{name}", b"")
    write(held, "two", 2 * TOGETHER)
    assert held.taker.packer.pack()
    assert held.taker.take()
    expected = contents(held.store)
    held.close()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected
    with owner(tmp_path / "a", objects) as again:
        assert contents(again.store) == expected
