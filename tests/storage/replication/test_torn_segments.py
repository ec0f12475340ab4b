"""A power failure amid a put into a directory: the last segment of the log is there, and ends
early.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.replication.object_store import ObjectStore, ObjectStoreFailed
from storage.replication.restore import restore
from storage.replication.segment import SEGMENTS, SegmentDamaged, is_torn
from tests.support.log_world import Model, Owner, contents, contents_of, owner

CUT = {
    "empty": lambda whole: b"",
    "in the head": lambda whole: whole[:20],
    "in the middle": lambda whole: whole[: len(whole) // 2],
    "before its last byte": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "zeros behind its beginning": lambda whole: whole[:1_024] + bytes(len(whole) - 1_024),
}


def flipped(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/objects", "c/0/")


def last_segment(objects: ObjectStore) -> Path:
    name = max(objects.names(SEGMENTS), key=lambda name: name.rpartition("/")[2])
    return Path(objects.url.removeprefix("file://")) / "c/0" / SEGMENTS / name


def torn(tmp_path: Path, objects: ObjectStore, cut: Callable[[bytes], bytes]) -> Model:
    """A shard of which the last segment is damaged so; -> what its directory has."""
    first = Owner(tmp_path / "a", objects).start()
    for number in range(6):
        first.put(f"w{number}", os.urandom(5_000))
        first.await_stored()
    expected = contents(first.store)
    first.crash()
    path = last_segment(objects)
    path.write_bytes(cut(path.read_bytes()))
    return expected


@pytest.mark.parametrize("cut", [*CUT.values(), flipped], ids=[*CUT, "a bit"])
def test_its_owner_stores_it_anew(
    tmp_path: Path, objects: ObjectStore, cut: Callable[[bytes], bytes]
) -> None:
    expected = torn(tmp_path, objects, cut)
    with owner(tmp_path / "a", objects) as again:
        assert contents(again.store) == expected
        again.put("further")
        again.await_stored()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == {**expected, (0, "further"): b"1"}


def of_an_earlier_release(objects: ObjectStore) -> None:
    """Have the claims say nothing of whole objects."""
    for path in (Path(objects.url.removeprefix("file://")) / "c/0/epochs").iterdir():
        claim = json.loads(path.read_bytes())
        del claim["whole"]
        path.write_bytes(json.dumps(claim).encode())


@pytest.mark.parametrize("take_over", [False, True])
@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
def test_a_restore_leaves_out_what_was_never_acknowledged(
    tmp_path: Path, objects: ObjectStore, cut: Callable[[bytes], bytes], take_over: bool
) -> None:
    expected = torn(tmp_path, objects, cut)
    of_an_earlier_release(objects)
    restore(objects, tmp_path / "b", take_over=take_over, owner="b")
    del expected[0, "w5"]
    if not take_over:
        assert contents_of(tmp_path / "b") == expected
        return
    with owner(tmp_path / "b", objects) as second:
        assert contents(second.store) == expected
        second.put("further")
        second.await_stored()
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == {**expected, (0, "further"): b"1"}


@pytest.mark.parametrize("take_over", [False, True])
@pytest.mark.parametrize("cut", [*CUT.values(), flipped], ids=[*CUT, "a bit"])
def test_a_restore_refuses_a_last_segment_that_may_have_been_acknowledged(
    tmp_path: Path, objects: ObjectStore, cut: Callable[[bytes], bytes], take_over: bool
) -> None:
    """This release stores each object whole: what is cut short was damaged since."""
    torn(tmp_path, objects, cut)
    if cut is flipped:
        of_an_earlier_release(objects)
    damaged = last_segment(objects).read_bytes()
    with pytest.raises(SegmentDamaged, match="may hold acknowledged writes"):
        restore(objects, tmp_path / "b", take_over=take_over, owner="b")
    assert last_segment(objects).read_bytes() == damaged
    assert not (tmp_path / "b/data.mdb").exists()


def test_a_segment_that_others_follow_is_never_taken_for_torn(
    tmp_path: Path, objects: ObjectStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        for number in range(6):
            first.put(f"w{number}")
            first.await_stored()
    name = sorted(objects.names(SEGMENTS))[-3]
    path = Path(objects.url.removeprefix("file://")) / "c/0" / SEGMENTS / name
    path.write_bytes(b"")
    with pytest.raises(SegmentDamaged, match="checksum"):
        restore(objects, tmp_path / "b")


def test_what_is_whole_or_no_segment_is_not_torn(tmp_path: Path, objects: ObjectStore) -> None:
    torn(tmp_path, objects, lambda whole: whole)
    whole = last_segment(objects).read_bytes()
    assert not is_torn(whole) and not is_torn(flipped(whole)) and not is_torn(whole + bytes(100))
    assert not is_torn(b"something else") and not is_torn(b"x" + whole[1:])
    assert is_torn(whole[:-1]) and is_torn(b"")


def test_of_many_who_replace_a_torn_object_one_succeeds(objects: ObjectStore) -> None:
    assert objects.put_new("a", b"")
    made, all_there = [], threading.Barrier(8)

    def replace(number: int) -> None:
        all_there.wait()
        if objects.replace_torn("a", b"", b"%d" % number):
            made.append(b"%d" % number)

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [objects.get("a")]


def test_what_is_half_written_has_no_name(tmp_path: Path) -> None:
    """What a killed process had begun to write lies beside, and is no object."""
    objects = ObjectStore(f"file://{tmp_path}/objects")
    (tmp_path / "objects/a").mkdir(parents=True)
    (tmp_path / "objects/a/1#77").write_bytes(b"half, of a process that was killed")
    assert objects.names("a") == [] and objects.stored_at("a") == {}
    assert objects.put_new("a/1", b"whole") and not objects.put_new("a/1", b"other")
    assert objects.names("a") == ["1"] and objects.get("a/1") == b"whole"
    assert sorted(path.name for path in (tmp_path / "objects/a").iterdir()) == ["1", "1#77"]


def test_a_directory_that_is_gone_is_told_and_not_made_again(tmp_path: Path) -> None:
    """It may be that of a disk that is not mounted."""
    objects = ObjectStore(f"file://{tmp_path}/objects")
    (tmp_path / "objects").rmdir()
    with pytest.raises(ObjectStoreFailed, match="is missing"):
        objects.put_new("a/1", b"1")
    assert not objects.replace_torn("a/1", b"", b"1")
    assert not (tmp_path / "objects").exists()
