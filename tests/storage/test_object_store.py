"""The verbs of object storage on a directory and on S3, as moto plays it; and a shard's log on the latter."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from moto.server import ThreadedMotoServer

from storage.object_store import ObjectStore, ObjectStoreFailed
from storage.replay import restore
from tests.storage.log_world import Owner, contents, contents_of, owner, until


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ENDPOINT": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }.items():
            environment.setenv(name, value)
        httpx.put(f"http://{host}:{port}/bucket", trust_env=False).raise_for_status()
        yield "s3://bucket/prefix"
    server.stop()


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


def test_a_url_that_means_nothing_and_an_endpoint_that_is_away_are_told(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
