"""A store of three small tables, and the ways tests write and read it."""

from pathlib import Path

import msgspec

from storage.store import Committed, Identity, Scope, Store, Table

IDENTITY = Identity(cluster_id="", shard=0, shards=1, slots=4096, format_version=1)
ALICE, BOB = Scope(3, 1), Scope(3, 2)
MAP_BYTES_SMALL = 1 << 18


class Note(msgspec.Struct):
    text: str
    stars: int = 0


NOTES: Table[Note] = Table("notes", key=("shelf", "number"), row=Note)
BLOBS: Table[bytes] = Table("blobs", key=("number",), row=bytes)
LOGINS: Table[bytes] = Table("logins", key=("name",), row=bytes, level="slot")
TABLES = (NOTES, BLOBS, LOGINS)


def open_store(
    directory: Path, tables=TABLES, *, create=True, identity=IDENTITY, **options
) -> Store:
    return Store.open(directory, tables, identity=identity, create=create, **options)


def put_blobs(store: Store, rows: dict[int, bytes], scope: Scope = ALICE) -> Committed:
    def work(transaction):
        table = transaction.bind(BLOBS, scope)
        for number, raw in rows.items():
            table.put((number,), raw)

    return store.write(work)


def blobs(store: Store, scope: Scope = ALICE) -> dict[int, bytes]:
    with store.snapshot() as snapshot:
        return {number: raw for (number,), raw in snapshot.bind(BLOBS, scope).scan()}


A1, A2, A300, B1, B2 = ("a", 1), ("a", 2), ("a", 300), ("b", 1), ("b", 2)
