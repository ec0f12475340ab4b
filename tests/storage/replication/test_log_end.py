"""The newest segments of a log that are gone: nothing lies behind them that would show it."""

from __future__ import annotations

import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from storage.replication.epochs import EPOCHS, Superseded, end_name, stored_end
from storage.replication.log_end import LogEndKeeper, missing_segments
from storage.replication.object_store import ObjectStore
from storage.replication.restore import restore
from storage.replication.segment import SEGMENTS, SegmentDamaged
from tests.support.clocks import next_millisecond
from tests.support.log_world import FaultyStore, Owner, contents, contents_of, owner


@pytest.fixture
def objects(tmp_path: Path) -> FaultyStore:
    return FaultyStore(f"file://{tmp_path}/objects", "c/0/")


def written(directory: Path, objects: ObjectStore, words: str, *, says: bool = True) -> Owner:
    """An owner that has stored these words, each in a segment, and said where its log ends."""
    first = Owner(directory, objects).start()
    keeper = LogEndKeeper(objects, first.shipper)
    for word in words:
        first.put(word)
        first.await_stored()
    if says:
        keeper.say()
    return first


def lose(objects: ObjectStore, count: int) -> None:
    names = sorted(objects.names(SEGMENTS), key=lambda name: name.rpartition("/")[2])
    objects.delete(f"{SEGMENTS}/{name}" for name in names[-count:])


def test_a_restore_says_what_is_missing_and_gives_what_there_was_until_then(
    tmp_path: Path, objects: FaultyStore
) -> None:
    first = written(tmp_path / "a", objects, "abcdef")
    end = first.shipper.state.number
    assert stored_end(objects) == (end, first.store.sequence)
    first.close()
    assert missing_segments(objects) == []
    restore(objects, tmp_path / "whole")
    lose(objects, 2)
    assert missing_segments(objects) == [end - 1, end]
    missing = rf"segment {end - 1} .* missing, although .* up to segment {end} \(commit"
    with pytest.raises(SegmentDamaged, match=missing):
        restore(objects, tmp_path / "refused")
    epochs = objects.names(EPOCHS)
    with pytest.raises(SegmentDamaged, match=f"segments {end - 1} to {end} .* are missing"):
        restore(objects, tmp_path / "refused", take_over=True)
    assert objects.names(EPOCHS) == epochs, "the shard is still its owner's"
    assert not (tmp_path / "refused" / "data.mdb").exists()
    until_then = first.store.sequence - 2
    with pytest.raises(SegmentDamaged) as refused:
        restore(objects, tmp_path / "refused")
    told = re.search(r"--at ([^)]*)", str(refused.value))
    assert told is not None
    at = round(datetime.fromisoformat(told[1]).timestamp() * 1000)
    assert restore(objects, tmp_path / "early", at=at).sequence == until_then
    assert contents_of(tmp_path / "early") == {(0, word): b"1" for word in "abcd"}
    with pytest.raises(SegmentDamaged, match=missing):
        restore(objects, tmp_path / "later", at=at + 1)


def test_a_log_that_nobody_said_the_end_of_is_restored_as_ever(
    tmp_path: Path, objects: FaultyStore
) -> None:
    written(tmp_path / "a", objects, "abc", says=False).close()
    lose(objects, 1)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == {(0, word): b"1" for word in "ab"}
    assert missing_segments(objects) == []


def test_its_own_directory_stores_what_is_missing_anew(
    tmp_path: Path, objects: FaultyStore
) -> None:
    """After a stop, and after a kill before it could write down that the last ones were stored."""
    for name, is_saved in (("a", True), ("b", False)):
        place = objects.below(name)
        first = written(tmp_path / name, place, "ab")
        before = first.store.log.state()
        for word in "cd":
            first.put(word)
            first.await_stored()
        LogEndKeeper(place, first.shipper).say()
        number, everything = first.shipper.state.number, contents(first.store)
        if not is_saved:
            first.store.log.save(before)
        first.close() if is_saved else first.crash()
        lose(place, 2)
        assert missing_segments(place) == [number - 1, number]
        with owner(tmp_path / name, place) as again:
            LogEndKeeper(place, again.shipper).say()
            again.await_stored()
            assert again.shipper.complete
        assert missing_segments(place) == []
        restore(place, tmp_path / f"{name} restored")
        assert contents_of(tmp_path / f"{name} restored") == everything


def test_a_directory_without_what_is_missing_is_refused(
    tmp_path: Path, objects: FaultyStore
) -> None:
    first = written(tmp_path / "a", objects, "ab")
    shutil.copytree(tmp_path / "a", tmp_path / "old")
    first.put("c")
    first.await_stored()
    LogEndKeeper(objects, first.shipper).say()
    first.crash()
    lose(objects, 1)
    with pytest.raises(Superseded, match="which is missing there"):
        Owner(tmp_path / "old", objects)
    with owner(tmp_path / "a", objects) as again:
        again.await_stored()


def test_what_was_left_out_by_a_restore_to_a_moment_does_not_count(
    tmp_path: Path, objects: FaultyStore
) -> None:
    """Its first owner's end is of later commits, and its log goes on behind them."""
    first = written(tmp_path / "a", objects, "ab")
    at = next_millisecond()
    next_millisecond()
    for word in "cdef":
        first.put(word)
        first.await_stored()
    LogEndKeeper(objects, first.shipper).say()
    first.close()
    restore(objects, tmp_path / "b", at=at, take_over=True)
    with owner(tmp_path / "b", objects) as second:
        second.await_stored()
        LogEndKeeper(objects, second.shipper).say()
        assert stored_end(objects).number == second.shipper.state.number
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == {(0, word): b"1" for word in "ab"}


def test_a_fenced_owner_says_nothing_that_is_not_so(tmp_path: Path, objects: FaultyStore) -> None:
    first = written(tmp_path / "a", objects, "ab")
    keeper = LogEndKeeper(objects, first.shipper)
    first.put("c")
    first.await_stored()
    restore(objects, tmp_path / "b", take_over=True)
    with owner(tmp_path / "b", objects) as second:
        second.put("d")
        second.await_stored()
        LogEndKeeper(objects, second.shipper).say()
        keeper.say()
        first.crash()
        assert missing_segments(objects, known=second.shipper.state.number) == []
        restore(objects, tmp_path / "c")
        assert contents_of(tmp_path / "c") == {(0, word): b"1" for word in "abcd"}


def test_packed_segments_and_those_before_a_snapshot_are_not_missing(
    tmp_path: Path, objects: FaultyStore
) -> None:
    first = written(tmp_path / "a", objects, "a" * 80)
    assert first.taker.packer.pack() > 0
    number = first.shipper.state.number
    assert missing_segments(objects, known=number) == []
    assert first.taker.take() is not None
    lose(objects, 2)
    assert missing_segments(objects, known=number) == []
    assert missing_segments(objects, known=number + 1) == [number + 1]
    first.close()


def test_a_log_of_which_nothing_is_listed_any_more_has_not_ended(
    tmp_path: Path, objects: FaultyStore
) -> None:
    """Whether its end was said or not, and though its snapshot is there."""
    first = written(tmp_path / "a", objects, "ab", says=False)
    first.taker.take()
    first.close()
    lose(objects, len(objects.names(SEGMENTS)))
    with pytest.raises(SegmentDamaged, match="lists none of the log's segments"):
        restore(objects, tmp_path / "b")
    epochs = objects.names(EPOCHS)
    with pytest.raises(SegmentDamaged, match="so the shard is not taken over"):
        restore(objects, tmp_path / "b", take_over=True)
    assert objects.names(EPOCHS) == epochs


def test_a_file_of_another_name_beside_what_is_said_is_passed_over(
    tmp_path: Path, objects: FaultyStore
) -> None:
    first = written(tmp_path / "a", objects, "ab")
    end = first.shipper.state.number
    for name in (".nfs000000000012", "000000000009-000000000009.part", "a-b"):
        assert objects.put_new(f"ends/{name}", b"")
    assert stored_end(objects) == (end, first.store.sequence)
    assert missing_segments(objects) == []
    first.close()
    restore(objects, tmp_path / "b")
    Owner(tmp_path / "a", objects).start().close()


def test_of_several_ends_that_are_said_the_furthest_counts(objects: FaultyStore) -> None:
    """A crash leaves the one before behind."""
    assert stored_end(objects) == (0, 0)
    for number, sequence in ((3, 40), (12, 41), (9, 41)):
        objects.put_new(end_name(number, sequence), b"")
    assert stored_end(objects) == (12, 41)
