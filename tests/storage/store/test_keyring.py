"""Sealing: what opens, where, with what; what a shredded key leaves; and what a crash may do to the
key file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from storage.store import Identity, Scope, Store, Table
from storage.store.directory import StoreDamaged, StoreError
from storage.store.keycode import encode as encode_key
from storage.store.keyring import (
    KEYS_FILE,
    NONCE_BYTES,
    RECORD_BYTES,
    SEALED_EXTRA_BYTES,
    Keyring,
    KeyShredded,
    WrongServiceKey,
)


class Note(msgspec.Struct):
    text: str


NOTES: Table[Note] = Table("notes", ("folder", "number"), Note)
OTHERS: Table[Note] = Table("others", ("folder", "number"), Note)
PLAIN: Table[bytes] = Table("plain", ("number",), bytes)
BLOBS: Table[bytes] = Table("blobs", ("number",), bytes, sealed=True)
PEOPLE: Table[Note] = Table("people", ("number",), Note, level="slot", owner="number")
TABLES = (NOTES, OTHERS, PLAIN, BLOBS, PEOPLE)
SERVICE_KEY = b"s" * 32
ADA, BOB = Scope(7, 1), Scope(7, 2)
SECRET = "the canary sings"


def open_store(
    directory: Path, service_key: bytes | None = SERVICE_KEY, create: bool = False
) -> Store:
    return Store.open(
        directory,
        TABLES,
        identity=Identity("", 0, 1, 4096, 2),
        create=create,
        service_key=service_key,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store", create=True)
    yield opened
    opened.close()


def put(store: Store, table: Table, scope: Scope, key: tuple, row: object) -> None:
    store.write(lambda transaction: transaction.bind(table, scope).put(key, row))


def stored(store: Store, table: Table, scope: Scope, *key: object) -> bytes:
    """The bytes under a key as LMDB has them."""
    code, _ = store.places[table.name]
    with store.snapshot() as snapshot:
        return snapshot.inner.get(scope.prefix + code + encode_key(key))


def test_rows_read_back_in_every_way(store: Store) -> None:
    for number in range(5):
        put(store, NOTES, ADA, ("a", number), Note(f"{SECRET} {number}"))
    put(store, BLOBS, ADA, (1,), SECRET.encode())
    with store.snapshot() as snapshot:
        notes = snapshot.bind(NOTES, ADA)
        assert notes.get("a", 3) == Note(f"{SECRET} 3") and notes.get("a", 9) is None
        assert [row.text[-1] for _, row in notes.scan("a", after=("a", 1), limit=2)] == ["2", "3"]
        assert [key for key, _ in notes.scan(reverse=True)] == [
            ("a", number) for number in (4, 3, 2, 1, 0)
        ]
        assert notes.get_many([("a", 4), ("b", 1), ("a", 0)]) == [
            Note(f"{SECRET} 4"),
            None,
            Note(f"{SECRET} 0"),
        ]
        assert notes.first() == (("a", 0), Note(f"{SECRET} 0")) and notes.last()[0] == ("a", 4)
        assert (notes.count("a"), notes.has("a", 0), notes.has("b", 0)) == (5, True, False)
        assert (
            snapshot.bind(BLOBS, ADA).get(1)
            == snapshot.bind(BLOBS, ADA).get_raw(1)
            == SECRET.encode()
        )
        assert snapshot.bind(NOTES, BOB).count() == 0


def test_a_sealed_row_lies_nowhere_in_the_clear(store: Store) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    put(store, BLOBS, ADA, (1,), SECRET.encode())
    put(store, PEOPLE, ADA, (1,), Note(SECRET))
    put(store, PLAIN, ADA, (1,), b"plain as day")
    everything = b"".join(path.read_bytes() for path in store.directory.iterdir())
    assert SECRET.encode() not in everything and b"plain as day" in everything
    assert len(stored(store, BLOBS, ADA, 1)) == len(SECRET) + SEALED_EXTRA_BYTES


def test_no_two_rows_share_a_nonce(store: Store) -> None:
    nonces = set()
    for _ in range(3):
        for number in range(50):
            put(store, BLOBS, ADA if number % 2 else BOB, (number,), b"same")
            nonces.add(stored(store, BLOBS, ADA if number % 2 else BOB, number)[:NONCE_BYTES])
        store.close()
        reopened = open_store(store.directory)
        store.__dict__.update(reopened.__dict__)
    assert len(nonces) == 150


def test_two_copies_of_a_directory_never_seal_under_one_key(store: Store, tmp_path: Path) -> None:
    """A restored backup counts on from where it was; what keeps its rows apart from the original's
    is the salt.
    """
    put(store, BLOBS, ADA, (1,), b"known")
    store.close()
    shutil.copytree(store.directory, tmp_path / "copy")
    sealed = []
    for directory in (store.directory, tmp_path / "copy"):
        opened = open_store(directory)
        put(opened, BLOBS, ADA, (2,), b"the same text")
        sealed.append(stored(opened, BLOBS, ADA, 2))
        opened.close()
    assert sealed[0][:NONCE_BYTES] == sealed[1][:NONCE_BYTES]
    assert sealed[0][NONCE_BYTES:] != sealed[1][NONCE_BYTES:]
    store.__dict__.update(open_store(store.directory).__dict__)


@pytest.mark.parametrize(
    ("table", "scope", "key"),
    [(NOTES, ADA, ("a", 2)), (OTHERS, ADA, ("a", 1)), (NOTES, BOB, ("a", 1))],
)
def test_a_row_opens_at_its_own_place_only(
    store: Store, table: Table, scope: Scope, key: tuple
) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    put(store, NOTES, BOB, ("b", 1), Note("Bob has a key as well"))
    moved = stored(store, NOTES, ADA, "a", 1)

    def move(transaction) -> None:
        bound = transaction.bind(table, scope)
        super(type(bound), bound).put_raw(key, moved)

    store.write(move)
    with store.snapshot() as snapshot, pytest.raises(StoreDamaged):
        snapshot.bind(table, scope).get(*key)


def test_a_changed_byte_is_noticed(store: Store) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    raw = stored(store, NOTES, ADA, "a", 1)
    with store.snapshot() as snapshot:
        assert snapshot.bind(NOTES, ADA).get("a", 1) == Note(
            SECRET
        )  # what was opened before is no excuse

    def damage(transaction, position: int) -> None:
        bound = transaction.bind(NOTES, ADA)
        super(type(bound), bound).put_raw(
            ("a", 1), raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        )

    for position in (0, NONCE_BYTES - 1, NONCE_BYTES, len(raw) - 1):
        store.write(lambda transaction, position=position: damage(transaction, position))
        with store.snapshot() as snapshot, pytest.raises(StoreDamaged):
            snapshot.bind(NOTES, ADA).get("a", 1)


def test_a_shredded_tenant_is_gone_and_stays_gone(store: Store) -> None:
    for scope in (ADA, BOB):
        put(store, NOTES, scope, ("a", 1), Note(SECRET))
        put(store, PEOPLE, scope, (scope.tenant,), Note(SECRET))
    before = (store.directory / KEYS_FILE).read_bytes()
    wrapped = [
        before[at + 8 : at + 48]
        for at in range(0, len(before), RECORD_BYTES)
        if before[at : at + 7] == b"K" + ADA.prefix
    ]
    assert len(wrapped) == 1
    with store.snapshot() as snapshot:  # what is kept of rows that were read goes, too
        assert snapshot.bind(NOTES, ADA).get("a", 1) == snapshot.bind(PEOPLE, ADA).get(1)
        assert snapshot.secret(ADA) == snapshot.secret(ADA) != snapshot.secret(BOB)
    assert store.keys.shred(ADA.prefix) and not store.keys.shred(ADA.prefix)
    for _ in range(2):
        assert wrapped[0] not in (store.directory / KEYS_FILE).read_bytes()
        with store.snapshot() as snapshot:
            for table, key in ((NOTES, ("a", 1)), (PEOPLE, (1,))):
                with pytest.raises(KeyShredded):
                    snapshot.bind(table, ADA).get(*key)
            with pytest.raises(KeyShredded):
                snapshot.secret(ADA)
            assert (
                snapshot.bind(NOTES, BOB).get("a", 1)
                == snapshot.bind(PEOPLE, BOB).get(2)
                == Note(SECRET)
            )
        with pytest.raises(KeyShredded):
            put(store, NOTES, ADA, ("a", 2), Note("a resurrection"))
        store.close()
        store.__dict__.update(open_store(store.directory).__dict__)
    # What is left of the tenant can still be swept: that needs no key.
    assert store.write(lambda transaction: transaction.bind(NOTES, ADA).delete_prefix()).result == 1


def test_a_backup_opens_with_the_same_key(store: Store, tmp_path: Path) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    store.backup(tmp_path / "backup")
    store.keys.shred(ADA.prefix)
    copied = open_store(tmp_path / "backup")
    with copied.snapshot() as snapshot:
        assert snapshot.bind(NOTES, ADA).get("a", 1) == Note(SECRET), (
            "which is why backups have to be deleted too"
        )
    copied.close()
    (tmp_path / "backup" / KEYS_FILE).unlink()
    with pytest.raises(StoreDamaged, match="is missing"):
        open_store(tmp_path / "backup")


def test_another_service_key_is_refused_at_once(store: Store) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    store.close()
    with pytest.raises(WrongServiceKey):
        open_store(store.directory, b"x" * 32)
    store.__dict__.update(open_store(store.directory).__dict__)
    with store.snapshot() as snapshot:
        assert snapshot.bind(NOTES, ADA).get("a", 1) == Note(SECRET)


def test_without_a_key_what_is_sealed_stays_shut(store: Store) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    put(store, PLAIN, ADA, (1,), b"plain")
    store.close()
    opened = open_store(store.directory, None)
    with opened.snapshot() as snapshot:
        assert snapshot.bind(PLAIN, ADA).get(1) == b"plain"
        with pytest.raises(StoreError, match="open the store with the service key"):
            snapshot.bind(NOTES, ADA)
    opened.close()
    store.__dict__.update(open_store(store.directory).__dict__)


def test_a_store_without_its_ring_is_never_given_a_new_one(store: Store) -> None:
    put(store, NOTES, ADA, ("a", 1), Note(SECRET))
    store.close()
    ring = (store.directory / KEYS_FILE).rename(store.directory.parent / "ring")
    with pytest.raises(StoreDamaged, match="is missing"):
        open_store(store.directory)
    assert not (store.directory / KEYS_FILE).exists()
    ring.rename(store.directory / KEYS_FILE)
    store.__dict__.update(open_store(store.directory).__dict__)


@pytest.mark.parametrize(
    "tail", [b"K", b"\0" * RECORD_BYTES, b"\0" * (RECORD_BYTES + 5), b"K" * (RECORD_BYTES - 1)]
)
def test_a_record_that_a_crash_cut_short_is_dropped(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / KEYS_FILE
    ring = Keyring.open(path, SERVICE_KEY, create=True)
    sealed = ring.seal(ADA.prefix, b"place", SECRET.encode())
    ring.close()
    path.write_bytes(path.read_bytes() + tail)
    ring = Keyring.open(path, SERVICE_KEY, create=False)
    assert ring.unseal(ADA.prefix, b"place", sealed) == SECRET.encode()
    later = ring.seal(BOB.prefix, b"place", SECRET.encode())
    ring.close()
    ring = Keyring.open(path, SERVICE_KEY, create=False)
    assert (
        ring.unseal(ADA.prefix, b"place", sealed)
        == ring.unseal(BOB.prefix, b"place", later)
        == SECRET.encode()
    )
    ring.close()


def test_a_reader_beside_the_owner_learns_of_new_tenants(tmp_path: Path) -> None:
    path = tmp_path / KEYS_FILE
    owner = Keyring.open(path, SERVICE_KEY, create=True)
    reader = Keyring.open(path, SERVICE_KEY, create=False, readonly=True)
    sealed = [owner.seal(scope.prefix, b"place", SECRET.encode()) for scope in (ADA, BOB)]
    assert [
        reader.unseal(scope.prefix, b"place", row)
        for scope, row in zip((ADA, BOB), sealed, strict=True)
    ] == [SECRET.encode()] * 2
    size = path.stat().st_size
    for attempt in (
        lambda: reader.seal(ADA.prefix, b"place", b""),
        lambda: reader.secret(b"nobody"),
        lambda: reader.shred(ADA.prefix),
    ):
        with pytest.raises(StoreError, match="read only"):
            attempt()
    assert path.stat().st_size == size
    reader.close()
    owner.close()


def test_a_key_that_is_shredded_while_it_is_unwrapped_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Keyring.open(tmp_path / KEYS_FILE, SERVICE_KEY, create=True)
    sealed = ring.seal(ADA.prefix, b"place", b"text")
    ring.close()
    ring, read = Keyring.open(tmp_path / KEYS_FILE, SERVICE_KEY, create=False), os.pread

    def read_before_it_is_shredded(*given: int) -> bytes:
        raw = read(*given)
        monkeypatch.setattr(os, "pread", read)
        assert ring.shred(ADA.prefix)
        return raw

    monkeypatch.setattr(os, "pread", read_before_it_is_shredded)
    for _ in range(2):
        with pytest.raises(KeyShredded):
            ring.unseal(ADA.prefix, b"place", sealed)
    for use in (lambda: ring.seal(ADA.prefix, b"late", b"text"), lambda: ring.secret(ADA.prefix)):
        with pytest.raises(KeyShredded):
            use()
    ring.close()


def test_a_reader_beside_the_owner_follows_keys_that_are_shredded_and_replaced(
    tmp_path: Path,
) -> None:
    owner = Keyring.open(tmp_path / KEYS_FILE, SERVICE_KEY, create=True)
    elsewhere = Keyring.open(tmp_path / "elsewhere", SERVICE_KEY, create=True)
    sealed = owner.seal(ADA.prefix, b"place", SECRET.encode())
    moved = elsewhere.seal(ADA.prefix, b"place", SECRET.encode())
    reader = Keyring.open(tmp_path / KEYS_FILE, SERVICE_KEY, create=False, readonly=True)
    changed: list[int] = []
    owner.on_changed = changed.append
    assert reader.unseal(ADA.prefix, b"place", sealed) == SECRET.encode()
    assert not changed

    owner.shred(ADA.prefix)
    assert reader.follow(changed.pop()) == ADA.prefix
    assert reader.is_shredded(ADA.prefix) and not changed
    for attempt in (
        lambda: reader.unseal(ADA.prefix, b"place", sealed),
        lambda: reader.secret(ADA.prefix),
    ):
        with pytest.raises(KeyShredded):
            attempt()

    owner.adopt(elsewhere.wrapped([ADA.prefix]))
    assert [reader.follow(place) for place in changed] == [ADA.prefix]
    assert reader.secret(ADA.prefix) == owner.secret(ADA.prefix) == elsewhere.secret(ADA.prefix)
    with pytest.raises(StoreDamaged):  # it was sealed with the key before
        reader.unseal(ADA.prefix, b"place", sealed)
    assert elsewhere.unseal(ADA.prefix, b"place", moved) == SECRET.encode()
    for ring in (reader, owner, elsewhere):
        ring.close()


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / KEYS_FILE
    ring = Keyring.open(path, SERVICE_KEY, create=True)
    ring.seal(ADA.prefix, b"place", b"")
    ring.close()
    whole = path.read_bytes()
    for at in range(3, len(whole), RECORD_BYTES // 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreDamaged, match=r"keys\.ring"):
            Keyring.open(path, SERVICE_KEY, create=False)


def test_the_ring_is_readable_by_its_owner_only(store: Store, tmp_path: Path) -> None:
    store.backup(tmp_path / "backup")
    for directory in (store.directory, tmp_path / "backup"):
        assert (directory / KEYS_FILE).stat().st_mode & 0o777 == 0o600


def test_what_can_be_declared() -> None:
    assert (NOTES.sealed, PLAIN.sealed, BLOBS.sealed, PEOPLE.sealed) == (True, False, True, True)
    with pytest.raises(ValueError, match="belongs to no tenant"):
        Table("t", ("a",), Note, level="slot", sealed=True)
    with pytest.raises(ValueError, match="an owner is the first part"):
        Table("t", ("a", "b"), Note, level="slot", owner="b")
