from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from storage.blobs import FRAME_BYTES, TAG_BYTES, Blob, BlobDamaged, BlobMissing, BlobStore
from storage.blobs import copies as blobs_copies
from storage.blobs.copies import BlobCopies
from storage.replication import ObjectStore

OWNER = "usr_1"
SIZES = (0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES, 3 * FRAME_BYTES + 7)


def put(store: BlobStore, content: bytes, owner: str = OWNER, piece: int = 10_000) -> Blob:
    writer = store.writer(owner)
    for start in range(0, len(content), piece):
        writer.write(content[start : start + piece])
    return writer.finish()


def path_of(store: BlobStore, blob: Blob) -> Path:
    return store.directory / OWNER / blob.name[:2] / blob.name


@pytest.mark.parametrize("size", SIZES)
def test_what_goes_in_comes_out(tmp_path: Path, size: int) -> None:
    store, content = BlobStore(tmp_path), os.urandom(size)
    blob = put(store, content)
    assert (blob.size, blob.sha256) == (size, hashlib.sha256(content).hexdigest())
    assert b"".join(store.read(OWNER, blob)) == content
    with store.copy(OWNER, blob) as file:
        assert file.read() == content
        assert file.seek(0) == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [blob.name]


def test_nobody_reads_the_file_without_its_key(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    blob = put(store, b"canary " * 50_000)
    assert b"canary" not in path_of(store, blob).read_bytes()
    assert path_of(store, blob).stat().st_mode & 0o777 == 0o600
    with pytest.raises(BlobDamaged):
        list(store.read(OWNER, Blob(blob.name, blob.sha256, blob.size, bytes(32))))
    assert blob.key.hex() not in repr(blob)


@pytest.mark.parametrize("harm", ["cut", "frame cut off", "flipped", "swapped", "empty"])
def test_a_changed_file_does_not_open(tmp_path: Path, harm: str) -> None:
    store = BlobStore(tmp_path)
    blob = put(store, os.urandom(3 * FRAME_BYTES + 5))
    path, sealed = path_of(store, blob), bytearray(path_of(store, blob).read_bytes())
    frame = FRAME_BYTES + TAG_BYTES
    if harm == "cut":
        del sealed[-1:]
    elif harm == "frame cut off":
        del sealed[3 * frame :]
    elif harm == "flipped":
        sealed[70_000] ^= 1
    elif harm == "swapped":
        sealed[:frame], sealed[frame : 2 * frame] = sealed[frame : 2 * frame], sealed[:frame]
    else:
        sealed.clear()
    path.write_bytes(sealed)
    with pytest.raises(BlobDamaged):
        list(store.read(OWNER, blob))


def test_equal_content_has_files_of_its_own(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    one, two = put(store, b"same"), put(store, b"same")
    assert one.sha256 == two.sha256 and one.name != two.name
    assert store.remove(OWNER, one.name) and not store.remove(OWNER, one.name)
    assert b"".join(store.read(OWNER, two)) == b"same"
    with pytest.raises(BlobMissing):
        store.read(OWNER, one)


def test_what_is_not_finished_is_not_there(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    writer = store.writer(OWNER)
    writer.write(os.urandom(200_000))
    assert store.older(OWNER, -10, 10) == [
        path.name for path in (tmp_path / OWNER / "incoming").iterdir()
    ]
    writer.abort()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    blob = put(store, b"x")
    writer.abort()
    assert b"".join(store.read(OWNER, blob)) == b"x"


def test_the_old_are_found_and_an_owner_leaves_whole(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    old, young, other = put(store, b"old"), put(store, b"young"), put(store, b"other", "usr_2")
    os.utime(path_of(store, old), (0, 0))
    assert store.older(OWNER, 3_600, 10) == [old.name]
    assert store.older(OWNER, -10, 1) in ([old.name], [young.name])
    store.remove_owner(OWNER)
    with pytest.raises(BlobMissing):
        store.read(OWNER, young)
    assert b"".join(store.read("usr_2", other)) == b"other"


@pytest.mark.parametrize("name", ["../../etc/passwd", "incoming", "a" * 64, ""])
def test_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    store = BlobStore(tmp_path)
    with pytest.raises(BlobMissing):
        store.read(OWNER, Blob(name, "", 0, bytes(32)))
    with pytest.raises(ValueError):
        store.writer("../elsewhere")


def test_machines_share_blobs_through_their_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = ObjectStore(f"file://{tmp_path}/objects")
    copies = [
        BlobCopies(tmp_path / name, objects, at_once=False, shared=True)
        for name in ("here", "there")
    ]
    here, there = (
        BlobStore(tmp_path / name, copy)
        for name, copy in zip(("here", "there"), copies, strict=True)
    )
    blobs = []
    for content in (b"tea", b"coffee"):
        writer = here.writer("ten_a")
        writer.write(content)
        blobs.append(writer.finish())
    assert not list((tmp_path / "here" / "ten_a").glob("??/*")), "here is no more than elsewhere"
    for store in (there, here, there):
        assert [b"".join(store.read("ten_a", blob)) for blob in blobs] == [b"tea", b"coffee"]
    assert (
        sorted(there.older("ten_a", -1, 10)) == sorted(blob.name for blob in blobs)
        and there.older("ten_a", 60, 10) == []
    )
    with there.copy("ten_a", blobs[0]) as file:
        assert file.read() == b"tea"
    there.remove("ten_a", blobs[0].name)
    copies[1].sweep()
    with pytest.raises(BlobMissing):
        there.read("ten_a", blobs[0])
    assert b"".join(there.read("ten_a", blobs[1])) == b"coffee"
    there.remove_owner("ten_a")
    copies[1].sweep()
    assert not [path for path in (tmp_path / "objects").glob("**/*") if path.is_file()]
    monkeypatch.setattr(blobs_copies, "FETCHED_KEPT_SECONDS", 0)
    copies[0].expire()
    assert not [
        path
        for name in ("here", "there")
        for path in (tmp_path / name).glob("**/*")
        if path.is_file()
    ]
