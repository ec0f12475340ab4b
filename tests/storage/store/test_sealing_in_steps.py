"""Rows that were stored open and are sealed from a later version on: taken over a part at a time,
from wherever an earlier start was broken off.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storage.store import Keyring, Scope, StoreMismatch, StoreTooNew, Table, upgrade
from storage.store import store as opening
from tests.support.stores import ALICE, BOB, IDENTITY, open_store

SERVICE_KEY = b"s" * 32
OPEN: Table[bytes] = Table("rows", key=("space", "number"), row=bytes)
SEALED = replace(OPEN, version=2, sealed=True, sealed_from=2)
NEXT = replace(IDENTITY, format_version=2)
ROWS = {
    (scope, space, number): f"{scope.tenant} {space} {number} ".encode() * 8
    for scope in (ALICE, BOB, Scope(4, 1))
    for space in ("a", "b")
    for number in range(30)
}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A store with open rows."""
    store = open_store(tmp_path / "shard", [OPEN], service_key=SERVICE_KEY)

    def work(transaction) -> None:
        for (scope, space, number), raw in ROWS.items():
            transaction.bind(OPEN, scope).put((space, number), raw)

    store.write(work)
    store.close()
    return tmp_path / "shard"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "SEALED_STEP_BYTES", 1_000)


def sealed(directory: Path, table: Table = SEALED, identity=NEXT):
    return open_store(directory, [table], create=False, identity=identity, service_key=SERVICE_KEY)


def rows_of(store, table: Table = SEALED) -> dict[tuple[Scope, str, int], bytes]:
    with store.snapshot() as snapshot:
        return {
            (scope, *key): raw
            for scope in snapshot.scopes()
            for key, raw in snapshot.bind(table, scope).scan()
        }


def lying_open(directory: Path) -> list[bytes]:
    content = (directory / "data.mdb").read_bytes()
    return [raw for raw in ROWS.values() if raw in content]


class PowerFailure(BaseException):
    pass


def broken_off_after(steps: int, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """A start that ends in the middle."""
    done = []

    def counted(*given) -> bool:
        if len(done) == steps:
            raise PowerFailure
        done.append(given)
        return upgrade.seal_some(*given)

    with monkeypatch.context() as patched, pytest.raises(PowerFailure):
        patched.setattr(opening, "seal_some", counted)
        sealed(directory)


def test_open_rows_are_sealed_and_read_as_before(kept: Path) -> None:
    assert lying_open(kept)
    for _ in range(2):
        store = sealed(kept)
        assert rows_of(store) == ROWS
        store.close()
        assert lying_open(kept) == []


def test_each_step_is_bounded(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def measured(transaction, *given) -> bool:
        before = transaction.get_meta(b"sealing:rows")
        more = upgrade.seal_some(transaction, *given)
        assert transaction.get_meta(b"sealing:rows") != before or not more
        sizes.append(more)
        return more

    monkeypatch.setattr(opening, "seal_some", measured)
    sealed(kept).close()
    assert len(sizes) >= sum(map(len, ROWS.values())) // 1_200


def test_a_start_that_is_broken_off_is_made_up_for(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off_after(3, monkeypatch, kept)
    assert len(lying_open(kept)) > 0
    broken_off_after(5, monkeypatch, kept)
    begun = []
    with monkeypatch.context() as patched:
        patched.setattr(
            opening,
            "seal_some",
            lambda transaction, *given: (
                begun.append(transaction.get_meta(b"sealing:rows"))
                or upgrade.seal_some(transaction, *given)
            ),
        )
        store = sealed(kept)
    assert rows_of(store) == ROWS and None not in begun, "it went on where it was"
    store.close()
    assert lying_open(kept) == []


def test_what_is_half_sealed_opens_for_nobody_else(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off_after(3, monkeypatch, kept)
    with pytest.raises(StoreTooNew):
        sealed(kept, OPEN, IDENTITY)
    with pytest.raises(StoreMismatch, match="of an older release"):
        opening.Store.open_to_read(kept, [SEALED], identity=NEXT, service_key=SERVICE_KEY)


def test_rows_whose_key_was_shredded_are_left_to_nobody(kept: Path) -> None:
    ring = Keyring.open(kept / "keys.ring", SERVICE_KEY, create=False)
    ring.seal(BOB.prefix, b"place", b"gives it a key")
    ring.shred(BOB.prefix)
    ring.close()
    store = sealed(kept)
    assert rows_of(store) == {place: raw for place, raw in ROWS.items() if place[0] != BOB}
    store.close()
    assert lying_open(kept) == []


def test_rows_under_a_prefix_come_opened(kept: Path) -> None:
    store = sealed(kept)
    with store.snapshot() as snapshot:
        found = [raw for _, raw in snapshot.bind(SEALED, BOB).raw_under("b")]
    assert found == [ROWS[BOB, "b", number] for number in range(30)]
    store.close()
