"""Rows of a slot in two stores are compared by digests of spans, whatever counts in one store
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.store import Store, slot_rows
from storage.store.schema import Identity, Scope, Table
from storage.store.slot_rows import Comparison, Digest, Span

SLOT = 7
LETTERS = Table("letters", key=("name",), row=bytes)
STAMPS = Table("stamps", key=("number",), row=bytes, stamped=True)
NOTES = Table("notes", key=("number",), row=bytes, level="slot")
TABLES = {table.name: table for table in (LETTERS, STAMPS, NOTES)}
ADA, BEN = Scope(SLOT, 1), Scope(SLOT, 2)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores of the same rows, with other table codes and other sequences."""
    opened = []
    for number, tables in enumerate([(LETTERS, STAMPS, NOTES), (NOTES, STAMPS, LETTERS)]):
        store = Store.open(
            tmp_path / str(number), tables, identity=Identity("c", number, 2, 4096, 1), create=True
        )
        for _ in range(number):
            store.write(
                lambda transaction: transaction.bind(NOTES, Scope(9, 0)).put_raw((0,), b"elsewhere")
            )

        def fill(transaction) -> None:
            for scope in (ADA, BEN):
                for letter in "abcdefgh":
                    transaction.bind(LETTERS, scope).put_raw((letter,), letter.encode() * 50)
            transaction.bind(STAMPS, ADA).put_raw(
                (1,), transaction.sequence.to_bytes(8, "little") + b"stamped"
            )
            transaction.bind(NOTES, Scope(SLOT, 0)).put_raw((1,), b"of the slot")
            transaction.bind(LETTERS, Scope(SLOT + 1, 1)).put_raw(("a",), b"of another slot")

        store.write(fill)
        opened.append(store)
    yield opened[0], opened[1]
    for store in opened:
        store.close()


def all_of(store: Store, bytes_max: int) -> list[Digest]:
    found, after = [], b""
    while True:
        with store.snapshot() as snapshot:
            some, after = slot_rows.digests(
                snapshot, slot_rows.by_code(store, TABLES.values()), SLOT, after, bytes_max, 150
            )
        found += some
        if not after:
            return found


def differing(store: Store, digests: list[Digest]) -> list[Span]:
    with store.snapshot() as snapshot:
        return [
            each.span for each in digests if slot_rows.digest(snapshot, TABLES, each.span) != each
        ]


def test_equal_rows_have_equal_digests_however_they_are_read(stores: tuple[Store, Store]) -> None:
    here, there = stores
    digests = all_of(here, 1_000_000)
    assert all_of(here, 1) == all_of(here, 400) == digests
    assert differing(there, digests) == [] and differing(here, all_of(there, 1)) == []
    assert sum(each.rows for each in digests) == 18
    assert sum(each.span.table == "letters" for each in digests) == 6, (
        "a table of many rows is several spans"
    )
    last = [each.span for each in digests if each.span.until is None]
    assert len(last) == len({(span.scope, span.table) for span in last}) == 4, (
        "each table has one that is open at its end"
    )


def test_no_row_is_left_out_whatever_byte_a_piece_ends_with(stores: tuple[Store, Store]) -> None:
    here, there = stores
    scope, numbers = Scope(SLOT, 0), [*range(-300, 700), 65_535, 65_536, -0.5, 0.5, float("inf")]

    def fill(transaction) -> None:
        for number in numbers:
            transaction.bind(NOTES, scope).put_raw((number,), bytes(150))

    here.write(fill)
    digests = all_of(here, 1)
    of_notes = [each for each in digests if each.span.table == "notes"]
    assert sum(each.rows for each in of_notes) == len(numbers)
    assert digests == all_of(here, 1_000_000)
    assert {span.table for span in differing(there, digests)} == {"notes"}


def test_whatever_changes_makes_its_span_differ(stores: tuple[Store, Store]) -> None:
    here, there = stores
    digests = all_of(here, 1_000_000)
    codes = slot_rows.by_code(there, TABLES.values())
    comparison = Comparison()
    for each in digests:
        comparison.add_span(each.span)
    for scope, name, raw in (
        (ADA, "b", b"changed"),
        (BEN, "g", None),
        (BEN, "aa", b"new"),
        (ADA, "z", b"at the end"),
    ):
        hold = there.log.hold()

        def change(transaction, scope=scope, name=name, raw=raw) -> None:
            rows = transaction.bind(LETTERS, scope)
            rows.delete(name) if raw is None else rows.put_raw((name,), raw)

        before = differing(there, digests)
        there.write(change)
        (record,) = there.log.read(hold.after)
        for place, _ in record.changes:
            comparison.changed(codes, place)
        hold.release()
        (found,) = set(differing(there, digests)) - set(before)
        assert found in comparison.doubts
    assert comparison.doubts == set(differing(there, digests))
    comparison.begin(SLOT)
    assert not comparison.doubts


def test_rows_of_a_table_that_is_empty_at_the_other_store_are_in_doubt(
    stores: tuple[Store, Store],
) -> None:
    here, there = stores
    comparison = Comparison()
    for each in all_of(here, 1_000_000):
        comparison.add_span(each.span)
    there.write(
        lambda transaction: transaction.bind(STAMPS, BEN).put_raw((1,), bytes(8) + b"stray")
    )
    with there.snapshot() as snapshot:
        comparison.end(snapshot, slot_rows.by_code(there, TABLES.values()), SLOT)
    assert comparison.doubts == {Span(BEN.prefix[:6], "stamps")}
    with here.snapshot() as snapshot:
        (span,) = comparison.doubts
        assert differing(there, [slot_rows.digest(snapshot, TABLES, span)]) == [span]
