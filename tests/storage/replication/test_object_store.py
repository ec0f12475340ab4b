"""The verbs of object storage on a directory and on S3, as moto plays it; and a shard's log on the
latter.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.replication.epochs import take_epoch
from storage.replication.object_store import ObjectStore, ObjectStoreFailed, ObjectStoreUnfit
from storage.replication.restore import restore
from tests.support.log_world import Owner, contents, contents_of, open_store, owner, until
from tests.support.s3 import s3 as s3_server
from tests.support.s3 import s3_without_conditions


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(params=["directory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "directory":
        return ObjectStore(f"file://{tmp_path}/with%20space").below("d")
    return ObjectStore(request.getfixturevalue("s3")).below(tmp_path.name)


def test_the_verbs(objects: ObjectStore) -> None:
    assert objects.put_new("a/1", b"one")
    assert not objects.put_new("a/1", b"other")
    assert objects.get("a/1") == b"one" and objects.get("a/2") is None
    assert objects.has("a/1") and not objects.has("a/2")
    assert objects.have("a", ["2", "1", "3"]) == [False, True, False]
    assert objects.have("nothing", ["1"]) == [False]
    big = bytes(range(256)) * 70_000
    objects.put_file("a/b/3", io.BytesIO(big))
    found = io.BytesIO()
    assert objects.fetch("a/b/3", found) and found.getvalue() == big
    assert not objects.fetch("nothing", io.BytesIO())
    assert objects.names("a") == ["1", "b/3"]
    assert objects.below("a").folders() == ["b"]
    assert objects.names("nothing") == []
    objects.delete(["a/1", "never/was"])
    assert objects.names("a") == ["b/3"]


def test_what_was_made_ready_is_the_next_object_of_its_folder_or_nothing(tmp_path: Path) -> None:
    def unnamed() -> set[str]:
        links = (os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.exists())
        return {link for link in links if str(tmp_path) in link}

    objects = ObjectStore(f"file://{tmp_path}/objects")
    objects.make_ready("a")  # it is not there yet
    assert objects.put_new("a/1", b"one") and not unnamed()
    for number in range(2, 5):
        objects.make_ready("a")
        objects.make_ready("a")
        assert len(unnamed()) == 1
        assert objects.put_new(f"b/{number}", b"beside")
        assert len(unnamed()) == 1
        assert objects.put_new(f"a/{number}", b"%d" % number) and not unnamed()
    objects.make_ready("a")
    assert not objects.put_new("a/1", b"other") and not unnamed()  # taken, and nothing is left open
    objects.make_ready("a")
    shutil.rmtree(tmp_path / "objects/a")
    with pytest.raises(ObjectStoreFailed, match="is missing; is its disk mounted"):
        objects.put_new("a/5", b"again")
    assert not unnamed()
    objects.make_ready("b")
    assert len(unnamed()) == 1 and objects.get("b/4") == b"beside"
    del objects
    assert not unnamed()


def test_a_url_that_means_nothing_and_an_endpoint_that_is_away_are_told(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ObjectStoreFailed):
        ObjectStore("nonsense://bucket")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ObjectStoreFailed, match="s3://bucket"):
        ObjectStore(s3).put_new("a", b"1")


def test_a_log_on_s3_is_fenced_and_restored(tmp_path: Path, s3: str) -> None:
    objects = ObjectStore(s3).below("shard")
    first = Owner(tmp_path / "a", objects).start()
    first.put("a")
    first.await_stored()
    restore(objects, tmp_path / "b", take_over=True, owner="b")
    sequence = first.put("too late")
    until(lambda: bool(first.fenced))
    assert first.stored < sequence
    first.crash()
    with owner(tmp_path / "b", objects) as second:
        second.put("b")
        second.await_stored()
        expected = contents(second.store)
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == expected
    assert {word for _, word in expected} == {"a", "b"}


def test_a_store_that_overwrites_against_its_orders_gets_no_shard(tmp_path: Path) -> None:
    with s3_without_conditions() as url:
        objects = ObjectStore(url).below("shard")
        assert objects.put_new("a", b"1") and objects.put_new("a", b"2"), "it does overwrite"
        for _ in range(2):  # a second start as the first
            with pytest.raises(ObjectStoreUnfit, match="conditional writes"):
                Owner(tmp_path / "a", objects)
        assert objects.names("segments") == []
        with pytest.raises(ObjectStoreUnfit, match="conditional writes"):  # as a restore does
            take_epoch(objects, 2, "token", "b")
    open_store(tmp_path / "a", create=False).close()
