"""Snapshots in proportion to what changed: what is stored, what comes back, and what goes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import zstandard

import storage.replication.snapshots
from storage.replication import ObjectStoreFailed, RestoreFailed, pages, restore
from storage.replication.snapshots import PAGES_KNOWN, SCRATCH, SnapshotManifest, snapshots
from storage.store import copy_data, geometry
from tests.support.log_world import (
    SCOPES,
    FaultyStore,
    Owner,
    contents,
    contents_of,
)
from tests.support.log_world import WORDS as WORDS_TABLE

WORDS = 600
TEXT = b"this was said " * 100


@pytest.fixture
def objects(tmp_path: Path) -> FaultyStore:
    return FaultyStore(f"file://{tmp_path}/objects")


def path_of(objects: FaultyStore, name: str) -> Path:
    return Path(objects.url.removeprefix("file://")) / name


def fill(first: Owner) -> None:
    """Some hundred pages in one commit."""

    def write(transaction) -> None:  # type: ignore[no-untyped-def]
        for number in range(WORDS):
            transaction.bind(WORDS_TABLE, SCOPES[0]).put((f"w{number:04d}",), TEXT + b"%d" % number)

    first.store.write(write)


def took(first: Owner) -> SnapshotManifest:
    manifest = first.taker.take()
    assert manifest is not None
    return manifest


@contextmanager
def owner(directory: Path, objects: FaultyStore) -> Iterator[Owner]:
    """An owner that takes snapshots when the test does."""
    held = Owner(directory, objects).start(snapshots=False)
    try:
        yield held
    finally:
        held.close()


def stored_bytes(manifest: SnapshotManifest) -> int:
    return sum(size for name, size in manifest.sizes.items() if name.startswith("pages-"))


def test_a_snapshot_stores_what_changed_and_comes_back_whole(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        whole = took(first)
        assert whole.bases == [] and stored_bytes(whole) > WORDS * len(TEXT) / 2
        for number in range(3):
            first.put(f"more {number}")
            part = took(first)
            assert len(part.bases) == number + 1 and stored_bytes(part) < stored_bytes(whole) / 4
            restore(objects, tmp_path / f"b{number}")
            assert contents_of(tmp_path / f"b{number}") == contents(first.store)
    assert contents_of(tmp_path / "b2").keys() >= {(0, "more 2"), (0, "w0599")}


def test_what_nothing_stands_on_any_more_goes(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.replication.snapshots, "CHANGES_MAX", 2)
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        depths = []
        for number in range(5):
            first.put("again", b"%d" % number)
            depths.append(took(first).depth)
        assert depths == [0, 1, 2, 0, 1]
        kept = snapshots(objects)
        needed = {path for place, each in kept for path, _ in each.bases + each.objects(place)}
        names = {f"snapshots/{name}" for name in objects.names("snapshots")}
        assert {name for name in names if "/pages-" in name} == needed
        expected = contents(first.store)
    restore(objects, tmp_path / "b", at=kept[0][1].at)
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == expected


@pytest.mark.parametrize("damage", ["lost", "another", "cut"])
def test_without_the_digests_of_the_one_before_it_is_whole(
    tmp_path: Path, objects: FaultyStore, damage: str
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        known = tmp_path / "a" / PAGES_KNOWN
        took(first)
        older = known.read_bytes()
        first.put("more")
        assert took(first).bases
        if damage == "lost":
            known.unlink()
        else:
            known.write_bytes(older if damage == "another" else known.read_bytes()[:-1])
        first.put("even more")
        assert took(first).bases == []


def test_another_owner_begins_with_one_that_is_whole(tmp_path: Path, objects: FaultyStore) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        took(first)
    restore(objects, tmp_path / "b", take_over=True, owner="b")
    with owner(tmp_path / "b", objects) as second:
        second.put("more")
        assert took(second).bases == []
        second.put("even more")
        assert took(second).bases != []


@pytest.mark.parametrize("missing", [False, True])
def test_pages_that_another_stands_on_are_checked(
    tmp_path: Path, objects: FaultyStore, missing: bool
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        took(first)
        first.put("more")
        ((base, _),) = took(first).bases
    at = path_of(objects, base)
    at.unlink() if missing else at.write_bytes(at.read_bytes()[:-1])
    with pytest.raises(RestoreFailed, match="missing" if missing else "checksum"):
        restore(objects, tmp_path / "b")


def test_pages_that_do_not_make_the_file_that_was_copied_are_told(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        took(first)
    ((place, manifest), *_) = snapshots(objects)[-1:]
    wrong = msgspec.structs.replace(manifest, image="00" * 32)
    path_of(objects, f"{place}/manifest.json").write_bytes(msgspec.json.encode(wrong))
    with pytest.raises(RestoreFailed, match="its pages do not fit"):
        restore(objects, tmp_path / "b")


def test_what_was_removed_is_in_no_page_that_holds_nothing(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        took(first)

        def remove(transaction) -> None:  # type: ignore[no-untyped-def]
            for number in range(0, WORDS // 20):
                transaction.bind(WORDS_TABLE, SCOPES[0]).delete(f"w{number:04d}")

        first.store.write(remove)
        part = took(first)
    made = tmp_path / "made"
    for path, _ in part.bases + part.objects(snapshots(objects)[-1][0]):
        with path_of(objects, path).open("rb") as packed:
            pages.unpack(packed, made)
    assert any(free_pages(made)), "they hold what the one before had there"
    pages.blank_free_pages(made)
    assert not any(free_pages(made)) and pages.pages_of(made).image == part.image


def free_pages(data_file: Path) -> list[bytes]:
    """What is in pages that hold nothing, without zeros."""
    found, content = geometry(data_file), data_file.read_bytes()
    return [
        content[at * found.page_bytes : (at + 1) * found.page_bytes].strip(b"\0")
        for at in found.free
    ]


def test_a_large_copy_is_several_objects_of_which_none_is_sent_twice(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGES_MAX", 20)
    sent: list[str] = []
    put_file = objects.put_file

    def unsteady(path: str, file) -> None:  # type: ignore[no-untyped-def]
        sent.append(path)
        if sent.count(path) == 1 and path.endswith("pages-0002"):
            objects.failing = True
        try:
            put_file(path, file)
        finally:
            objects.failing = False

    with owner(tmp_path / "a", objects) as first:
        fill(first)
        monkeypatch.setattr(objects, "put_file", unsteady)
        manifest = took(first)
        expected = contents(first.store)
    own = [name for name in manifest.sha256 if name.startswith("pages-")]
    assert len(own) > 3 and len(sent) == len(manifest.sha256) + 1
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


@pytest.mark.parametrize("ended", ["tried again", "restarted", "damaged", "too old"])
def test_a_sending_that_is_broken_off_goes_on_with_what_is_left(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    monkeypatch.setattr(pages, "PAGES_MAX", 20)
    monkeypatch.setattr(storage.replication.snapshots, "UPLOAD_SECONDS_MAX", 0)
    sent: list[str] = []
    put_file = objects.put_file

    def counted(path: str, file) -> None:  # type: ignore[no-untyped-def]
        objects.failing = len(sent) == 4
        put_file(path, file)
        sent.append(path)

    first = Owner(tmp_path / "a", objects).start(snapshots=False)
    took(first)
    fill(first)
    first.await_stored()
    monkeypatch.setattr(objects, "put_file", counted)
    with pytest.raises(ObjectStoreFailed):
        first.taker.take()
    begun = [path.rpartition("/")[0] for path in sent]
    sent.append("")  # the store answers again
    objects.failing = False
    if ended == "restarted":
        first.close()
        first = Owner(tmp_path / "a", objects).start(snapshots=False)
    elif ended == "damaged":
        left = sorted((tmp_path / "a" / SCRATCH).glob("pages-*"))[-1]
        left.write_bytes(left.read_bytes()[:-1])
    elif ended == "too old":
        manifest = tmp_path / "a" / SCRATCH / "manifest.json"
        older = msgspec.json.decode(manifest.read_bytes(), type=SnapshotManifest)
        older = msgspec.structs.replace(older, begun_at=older.begun_at - 4_000_000)
        manifest.write_bytes(msgspec.json.encode(older))
    first.put("meanwhile")
    manifest = took(first)
    goes_on = ended in ("tried again", "restarted")
    again = sent[5:]
    assert len(again) == len(manifest.sha256) - (4 if goes_on else 0)
    assert ({path.rpartition("/")[0] for path in again} == set(begun)) == goes_on
    assert not (tmp_path / "a" / SCRATCH).exists()
    first.await_stored()
    expected = contents(first.store)
    first.close()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_a_compacted_copy_of_an_earlier_release_is_restored(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        fill(first)
        took(first)
        expected = contents(first.store)
        copy_data(tmp_path / "a", tmp_path / "copy")
    ((place, manifest), *_) = snapshots(objects)[-1:]
    for path, _ in manifest.objects(place):
        path_of(objects, path).unlink()
    packed = zstandard.ZstdCompressor().compress((tmp_path / "copy/data.mdb").read_bytes())
    path_of(objects, f"{place}/data.mdb.zst").write_bytes(packed)
    kept = {name: value for name, value in manifest.sha256.items() if name == "keys.ring"}
    kept["data.mdb.zst"] = hashlib.sha256(packed).hexdigest()
    older = msgspec.to_builtins(msgspec.structs.replace(manifest, sha256=kept))
    for name in ("bases", "changed", "image", "begun_at"):
        del older[name]
    path_of(objects, f"{place}/manifest.json").write_bytes(msgspec.json.encode(older))
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected
