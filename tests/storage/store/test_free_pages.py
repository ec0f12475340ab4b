"""The list of free pages, read from the file: against LMDB's own count, and from files that were
tampered with.
"""

from __future__ import annotations

import contextlib
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from storage.store import Identity, Scope, Store, Table
from storage.store.directory import StoreDamaged, check_data_file
from storage.store.free_pages import NO_PAGE, Unreadable, free_from

BLOBS: Table[bytes] = Table("blobs", key=("number",), row=bytes)
PAGE = 4096


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A closed store of which much was deleted, bit by bit."""
    identity = Identity(cluster_id="", shard=0, shards=1, slots=4096, format_version=1)
    store = Store.open(tmp_path / "shard", (BLOBS,), identity=identity, create=True)
    scope, chance = Scope(3, 1), random.Random(5)

    def put(start: int):
        return lambda t: [
            t.bind(BLOBS, scope).put((n,), bytes(chance.choice((50, 3_000, 20_000))))
            for n in range(start, start + 150)
        ]

    def delete(start: int):
        return lambda t: [t.bind(BLOBS, scope).delete(n) for n in range(start, start + 150, 2)]

    for start in range(0, 3_000, 150):
        store.write(put(start))
    with (
        store.snapshot()
    ):  # what it sees cannot be used again, so every deletion adds an entry to the list
        for start in range(0, 3_000, 150):
            store.write(delete(start))
    store.close()
    return tmp_path / "shard" / "data.mdb"


def newest(data: Path) -> tuple[int, int]:
    """(root of the free list, last page) of the newer meta page."""
    raw = data.read_bytes()[: 2 * PAGE]
    metas = [raw[at + 16 : at + 152] for at in (0, PAGE)]
    meta = max(metas, key=lambda meta: struct.unpack_from("=Q", meta, 128))
    return struct.unpack_from("=Q", meta, 64)[0], struct.unpack_from("=Q", meta, 120)[0]


def test_every_page_is_free_or_holds_something(data: Path) -> None:
    """What a compacted copy leaves out is what is free: LMDB's own tool and ours agree on how much
    that is.
    """
    root, last = newest(data)
    with data.open("rb") as file:
        free = free_from(file, PAGE, root, 0)
    assert len(free) > 500 and max(free) <= last and not free & {0, 1}
    target = data.parent.parent / "copy"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "lmdb",
            "--read",
            "--compact",
            "--env",
            str(data.parent),
            "copy",
            str(target),
        ],
        check=True,
    )
    _, last_compact = newest(target / "data.mdb")
    free_list_pages = last - last_compact - len(free)
    assert 0 <= free_list_pages < 40, "the pages of the list itself are left out too"


def test_an_empty_list_has_no_root(data: Path) -> None:
    with data.open("rb") as file:
        assert free_from(file, PAGE, NO_PAGE, 0) == set()


def test_a_list_that_was_tampered_with_is_unreadable_or_another_list(data: Path) -> None:
    """Never an error of another kind, and never a walk without end."""
    root, last = newest(data)
    with data.open("r+b") as file:
        file.truncate(max(last - 3, root + 1) * PAGE)
        file.seek(root * PAGE)
        whole = file.read(PAGE)
        for seed in range(200):
            chance = random.Random(seed)
            page = bytearray(whole)
            for _ in range(chance.randint(1, 60)):
                page[chance.randrange(PAGE)] = chance.randrange(256)
            file.seek(root * PAGE)
            file.write(page)
            file.flush()
            with contextlib.suppress(Unreadable):
                assert all(isinstance(number, int) for number in free_from(file, PAGE, root, 0))
            with contextlib.suppress(StoreDamaged):
                check_data_file(data)
