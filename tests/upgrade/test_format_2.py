"""A store of format 2, in which the vectors of texts and of their words lay open: after it was
opened once they do not.
"""

from __future__ import annotations

from pathlib import Path

import lmdb
import msgspec
import pytest

from storage.store import upgrade
from tests.upgrade.house import UpgradeHarness
from tests.upgrade.keep import unpacked

TABLES = (b"memory_vectors.vectors", b"memory_words.words")


def open_rows(data_file: Path) -> list[bytes]:
    """The rows of the tables of vectors, as they are stored, but for their commit's sequence."""
    with lmdb.open(str(data_file), subdir=False, readonly=True, lock=False, max_dbs=4) as opened:
        main, meta = opened.open_db(b"main", create=False), opened.open_db(b"meta", create=False)
        with opened.begin() as transaction:
            codes = [
                msgspec.msgpack.decode(transaction.get(b"table:" + name, db=meta))["code"]
                for name in TABLES
            ]
            with transaction.cursor(db=main) as cursor:
                return [raw[8:] for key, raw in cursor if int.from_bytes(key[6:8], "big") in codes]


def test_vectors_lie_open_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "SEALED_STEP_BYTES", 500)
    unpacked(2, tmp_path)
    data_file = tmp_path / "shards/0000/data.mdb"
    rows = open_rows(data_file)
    assert len(rows) > 10 and all(row in data_file.read_bytes() for row in rows)
    UpgradeHarness(tmp_path).close()
    assert [row for row in rows if row in data_file.read_bytes()] == []
    assert len(open_rows(data_file)) == len(rows)
