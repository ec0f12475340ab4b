"""Rows of a large table that a later version rewrites: a part at a time, each once, from wherever
an earlier start was broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage.store import Scope, StoreMismatch, StoreTooNew, Table, upgrade
from storage.store import store as opening
from tests.support.stores import ALICE, BOB, IDENTITY, open_store

SERVICE_KEY = b"s" * 32
FIRST: Table[bytes] = Table("rows", key=("space", "number"), row=bytes, sealed=False)
SECOND = replace(FIRST, version=2)
SLOTS_OWN: Table[bytes] = Table("own", key=("number",), row=bytes, level="slot")
DERIVED: Table[bytes] = Table("lengths", key=("space", "number"), row=bytes, sealed=False)
NEXT = replace(IDENTITY, format_version=2)
ROWS = {
    (scope, space, number): f"{scope.tenant} {space} {number} ".encode() * 8
    for scope in (ALICE, BOB, Scope(4, 1))
    for space in ("a", "b")
    for number in range(30)
}
SIZE = sum(map(len, ROWS.values()))
MIGRATED = {place: raw + b"+" for place, raw in ROWS.items()}
STEP_BYTES = 1_000


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A store of the version before."""
    tables = [FIRST, SLOTS_OWN, DERIVED]
    store = open_store(tmp_path / "shard", tables, service_key=SERVICE_KEY)

    def work(transaction: Any) -> None:
        for (scope, space, number), raw in ROWS.items():
            transaction.bind(FIRST, scope).put((space, number), raw)
            transaction.bind(SLOTS_OWN, scope).put((number,), b"%d of the slot's own" % number * 3)

    store.write(work)
    store.close()
    return tmp_path / "shard"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "MIGRATED_STEP_BYTES", STEP_BYTES)


def migrated(directory: Path, *, table: Table = SECOND, **further: Any) -> Any:
    """Each row gets a mark, so that one that is rewritten twice has two."""
    given = {"migrations": {("rows", 1): lambda raw: raw + b"+"}, **further}
    return open_store(
        directory, [table], create=False, identity=NEXT, service_key=SERVICE_KEY, **given
    )


def as_before(directory: Path) -> Any:
    """As the release before opens it."""
    return open_store(directory, [FIRST], create=False, service_key=SERVICE_KEY)


def rows_of(store: Any, table: Table = SECOND) -> dict[tuple[Scope, str, int], bytes]:
    with store.snapshot() as snapshot:
        return {
            (scope, *key): raw
            for scope in snapshot.scopes()
            for key, raw in snapshot.bind(table, scope).scan()
        }


class PowerFailure(BaseException):
    pass


def broken_off_after(steps: int, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """A start that ends in the middle."""
    done = []

    def counted(*given: Any) -> bool:
        if len(done) == steps:
            raise PowerFailure
        done.append(given)
        return upgrade.migrate_some(*given)

    with monkeypatch.context() as patched, pytest.raises(PowerFailure):
        patched.setattr(opening, "migrate_some", counted)
        migrated(directory)


def test_each_transaction_is_bounded(kept: Path) -> None:
    store = as_before(kept)
    before = store.sequence
    store.close()
    store = migrated(kept)
    assert rows_of(store) == MIGRATED
    steps = store.sequence - before
    store.close()
    assert steps >= SIZE // (STEP_BYTES + max(map(len, ROWS.values())))
    store = migrated(kept)
    assert (rows_of(store), store.sequence) == (MIGRATED, before + steps), "once is enough"
    store.close()


def test_a_small_table_goes_with_all_the_rest(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "MIGRATED_STEP_BYTES", SIZE * 2)
    store = as_before(kept)
    before = store.sequence
    store.close()
    store = migrated(kept)
    assert (rows_of(store), store.sequence) == (MIGRATED, before + 1)
    store.close()


def test_a_start_that_is_broken_off_is_made_up_for_and_rewrites_no_row_twice(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for steps in (1, 3, 0, 2):
        broken_off_after(steps, monkeypatch, kept)
    store = migrated(kept)
    assert rows_of(store) == MIGRATED
    store.close()


def test_what_is_half_migrated_opens_for_nobody_else(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off_after(3, monkeypatch, kept)
    with pytest.raises(StoreTooNew, match="half way to version 2"):
        as_before(kept)
    with pytest.raises(StoreMismatch, match="half way to version 2"):
        migrated(kept, table=replace(FIRST, version=3))
    with pytest.raises(StoreMismatch, match="of an older release"):
        opening.Store.open_to_read(kept, [SECOND], identity=NEXT, service_key=SERVICE_KEY)
    store = migrated(kept)
    assert rows_of(store) == MIGRATED
    store.close()


def test_a_migration_that_fails_at_the_last_row_leaves_the_store_as_it_was(kept: Path) -> None:
    last = list(ROWS.values())[-1]

    def step(raw: bytes) -> bytes:
        if raw == last:
            raise KeyError("no such field")
        return raw + b"+"

    told = "table 'rows' from version 1 to 2 fails: KeyError: 'no such field'. Nothing was changed"
    with pytest.raises(StoreMismatch, match=told):
        migrated(kept, migrations={("rows", 1): step})
    store = as_before(kept)
    assert rows_of(store, FIRST) == ROWS
    store.close()


def test_rows_of_the_slots_are_rewritten_once_too(kept: Path) -> None:
    further = replace(SLOTS_OWN, version=2)
    store = migrated(kept, table=further, migrations={("own", 1): lambda raw: raw + b"+"})
    with store.snapshot() as snapshot:
        found = [raw for _, raw in snapshot.bind(further, Scope(4, 0)).scan()]
    store.close()
    assert found and all(raw.count(b"+") == 1 for raw in found)


def test_what_derives_from_them_is_made_of_the_new_rows(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off_after(2, monkeypatch, kept)
    derived, seen = replace(DERIVED, version=2), []

    def remake(reader: Any, scope: Scope) -> list[Any]:
        if scope == BOB:
            seen.extend(raw for _, raw in reader.bind(SECOND, BOB).scan())
        return []

    store = open_store(
        kept,
        [SECOND, derived],
        create=False,
        identity=NEXT,
        service_key=SERVICE_KEY,
        migrations={("rows", 1): lambda raw: raw + b"+", ("lengths", 1): lambda raw: raw},
        rebuild={"lengths": remake},
    )
    store.close()
    assert seen == [raw for (scope, *_), raw in MIGRATED.items() if scope == BOB]


class Remade:
    """Makes `lengths` anew, and may be broken off after so many rows. asked: for which tenants;
    rows: how many were made
    """

    def __init__(self, rows_max: int = 1_000):
        self.rows_max, self.rows, self.asked = rows_max, 0, list[Scope]()

    def __call__(self, reader: Any, scope: Scope) -> Iterator[Callable[[Any], None]]:
        self.asked.append(scope)
        for key, raw in reader.bind(FIRST, scope).scan():
            length = b"%d" % len(raw) * 20
            if reader.bind(LENGTHS, scope).get(*key) != length:
                yield partial(self._make, scope, key, length)

    def _make(self, scope: Scope, key: Any, length: bytes, transaction: Any) -> None:
        if self.rows == self.rows_max:
            raise PowerFailure
        self.rows += 1
        transaction.bind(LENGTHS, scope).put(key, length)


LENGTHS = replace(DERIVED, version=2, reshape={1: lambda rows, key, secret: rows.delete(*key)})
REMADE = {place: b"%d" % len(raw) * 20 for place, raw in ROWS.items()}


def rebuilt(directory: Path, remake: Remade) -> Any:
    return open_store(
        directory, [FIRST, LENGTHS], create=False, identity=NEXT, service_key=SERVICE_KEY,
        rebuild={"lengths": remake},
    )  # fmt: skip


@pytest.fixture
def derived(kept: Path) -> Path:
    """A store whose derived table is large, too, and wrong."""
    store = open_store(kept, [FIRST, DERIVED], create=False, service_key=SERVICE_KEY)

    def work(transaction: Any) -> None:
        for (scope, space, number), raw in ROWS.items():
            transaction.bind(DERIVED, scope).put((space, number), raw[::-1])

    store.write(work)
    store.close()
    return kept


def test_a_large_table_that_derives_from_others_is_made_again_some_rows_at_a_time(
    derived: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    def counted(transaction: Any, *given: Any) -> bool:
        is_more = upgrade.rebuild_some(transaction, *given)
        steps.append(transaction.stored_bytes)
        return is_more

    monkeypatch.setattr(opening, "rebuild_some", counted)
    remake = Remade()
    store = rebuilt(derived, remake)
    before = store.sequence
    assert rows_of(store, LENGTHS) == REMADE
    store.close()
    assert remake.rows == len(REMADE) and len(remake.asked) == len(set(remake.asked)) >= 3
    row = max(map(len, REMADE.values()))
    assert len(steps) > len(remake.asked) and max(steps) < STEP_BYTES + row
    again = Remade()
    store = rebuilt(derived, again)
    assert (again.asked, store.sequence) == ([], before), "once is enough"
    store.close()


def test_a_start_that_is_broken_off_while_it_makes_rows_again_is_made_up_for(
    derived: Path,
) -> None:
    done, row, account = 0, max(map(len, REMADE.values())), len(REMADE) // 3
    assert account * row > 2 * STEP_BYTES, "no account goes in one transaction"
    for rows_max in (0, account - 1, 3, account):
        remake = Remade(rows_max)
        with pytest.raises(PowerFailure):
            rebuilt(derived, remake)
        with pytest.raises(StoreMismatch):
            opening.Store.open_to_read(
                derived, [FIRST, LENGTHS], identity=NEXT, service_key=SERVICE_KEY
            )
        with pytest.raises(StoreTooNew):
            open_store(derived, [FIRST, DERIVED], create=False, service_key=SERVICE_KEY)
        done += remake.rows
    rest = Remade()
    store = rebuilt(derived, rest)
    assert rows_of(store, LENGTHS) == REMADE
    again = done + rest.rows - len(REMADE)  # those of transactions that were broken off
    assert 0 < again <= 4 * (STEP_BYTES // min(map(len, REMADE.values())) + 1)
    store.close()


def halved(rows: Any, key: Any, secret: bytes) -> None:
    """Two rows in the place of each that is whole, one of them before it."""
    space, number = key
    raw = rows.get(*key)
    if number < 1_000 and not raw.endswith(b"!"):
        rows.put((space, number), raw[::2] + b"!")
        rows.put((space, number + 1_000), raw[1::2] + b"!")


def bared(rows: Any, key: Any, secret: bytes) -> None:
    rows.put(key, rows.get(*key).rstrip(b"!"))


HALVED = replace(FIRST, version=4, reshape={1: halved, 3: bared})
HALVES = {
    (scope, space, number + further): (raw + b"+")[part::2]
    for (scope, space, number), raw in ROWS.items()
    for part, further in ((0, 0), (1, 1_000))
}


@pytest.mark.parametrize("breaks", [(), (1, 0, 2, 5, 7, 9, 10)], ids=["at once", "broken off"])
def test_rows_of_one_account_that_take_the_place_of_others_do_so_some_at_a_time(
    kept: Path, monkeypatch: pytest.MonkeyPatch, breaks: tuple[int, ...]
) -> None:
    given = {"table": HALVED, "migrations": {("rows", 2): lambda raw: raw + b"+"}}
    sizes: list[int] = []
    done: list[int] = []

    def counted(transaction: Any, *given: Any) -> bool:
        if breaks and len(sizes) == sum(breaks[: len(done) + 1]):
            done.append(len(sizes))
            raise PowerFailure
        is_more = upgrade.migrate_some(transaction, *given)
        sizes.append(transaction.stored_bytes)
        return is_more

    monkeypatch.setattr(opening, "migrate_some", counted)
    for _ in breaks:
        with pytest.raises(PowerFailure):
            migrated(kept, **given)
    monkeypatch.setattr(opening, "migrate_some", counted if not breaks else upgrade.migrate_some)
    store = migrated(kept, **given)
    assert rows_of(store, HALVED) == HALVES
    store.close()
    row = max(map(len, ROWS.values()))
    assert len(sizes) > 3 * SIZE // (2 * STEP_BYTES) and max(sizes) <= STEP_BYTES + 2 * row


def test_rows_that_get_sealed_besides_are_rewritten_and_lie_open_nowhere(kept: Path) -> None:
    third = replace(FIRST, version=3, sealed=True, sealed_from=3)
    store = migrated(kept, table=third, migrations={("rows", 1): lambda raw: raw + b"+"})
    assert rows_of(store, third) == MIGRATED
    store.close()
    content = (kept / "data.mdb").read_bytes()
    assert not [raw for raw in ROWS.values() if raw in content]
