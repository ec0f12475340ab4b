"""The log of commits: what it records, for whom it keeps it, and that it never has a hole."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.store import Identity, Scope, Store, Table, Transaction
from storage.store.commit_log import LogGap, ShippingState

IDENTITY = Identity("c", 0, 1, 4_096, 1)
WORDS = Table("words", ("word",), bytes)
KEY = bytes(range(32))
ONE, TWO = Scope(1, 1, b"k" * 32), Scope(2, 1, b"k" * 32)


def open_store(directory: Path) -> Store:
    return Store.open(directory, (WORDS,), identity=IDENTITY, create=True, service_key=KEY)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def put(store: Store, word: str, value: bytes = b"1", scope: Scope = ONE) -> int:
    return store.write(
        lambda transaction: transaction.bind(WORDS, scope).put((word,), value)
    ).sequence


def contents(store: Store) -> dict[bytes, bytes]:
    with store.snapshot() as snapshot, snapshot.inner.cursor() as cursor:
        return dict(cursor)


def test_nothing_is_recorded_or_made_for_nobody(store: Store) -> None:
    put(store, "a")
    assert store.log.size() == {"records": 0, "bytes": 0}
    assert store.environment.open_database(b"log", create=False) is None
    assert store.log.read(store.sequence) == []
    with pytest.raises(LogGap):
        store.log.read(0)
    with pytest.raises(LogGap):
        store.log.hold(0)
    store.log.hold(store.sequence).release()


def test_no_commit_is_dated_before_what_it_follows_from(store: Store) -> None:
    """Which may have happened by a clock that is ahead."""
    hold = store.log.hold()
    later = store.log.now() + 3_600_000
    for at in (later, later - 1_000, 0):
        store.log.not_before(at)
        put(store, "a")
        assert store.log.now() >= later
    assert [record.at >= later for record in store.log.read(hold.after)] == [True] * 3


def test_a_record_is_the_net_change_of_its_commit_without_what_was_undone(store: Store) -> None:
    put(store, "gone")
    before = contents(store)

    def work(transaction: Transaction) -> None:
        words = transaction.bind(WORDS, ONE)
        words.put(("a",), b"1")
        words.put(("a",), b"2")
        words.delete("gone")
        words.delete("never")
        with transaction.child() as child:
            child.bind(WORDS, ONE).put(("b",), b"3")
        with pytest.raises(ZeroDivisionError), transaction.child() as child:
            child.bind(WORDS, ONE).put(("undone",), b"4")
            raise ZeroDivisionError
        transaction.bind(WORDS, ONE).put(("x",), b"5")
        assert transaction.bind(WORDS, ONE).delete_prefix("x") == 1

    with store.log.hold() as hold:
        sequence = store.write(work).sequence
        (record,) = store.log.read(hold.after)
    after = contents(store)
    assert record.sequence == sequence
    assert {key: value for key, value in record.changes if value is not None} == {
        key: after[key] for key in after.keys() - before.keys()
    }
    assert {
        key for key, value in record.changes if value is None
    } - after.keys() >= before.keys() - after.keys()
    assert not any(b"undone" in key or b"never" in key for key, _ in record.changes)


def test_replaying_the_log_over_a_copy_gives_the_store(store: Store) -> None:
    source = random.Random(7)
    for _ in range(20):
        put(store, f"w{source.randrange(8)}", source.randbytes(3), source.choice((ONE, TWO)))
    with store.log.hold() as hold:
        copy = contents(store)
        for _ in range(60):
            word, scope = f"w{source.randrange(8)}", source.choice((ONE, TWO))
            if source.random() < 0.4:
                store.write(
                    lambda transaction, word=word, scope=scope: transaction.bind(
                        WORDS, scope
                    ).delete(word)
                )
            else:
                put(store, word, source.randbytes(3), scope)
        reached = hold.after
        while records := store.log.read(reached, bytes_max=200):
            for key, value in (change for record in records for change in record.changes):
                copy.pop(key, None) if value is None else copy.update({key: value})
            reached = records[-1].sequence
        assert reached == store.sequence
        assert copy == contents(store)


def test_a_reader_of_a_prefix_sees_only_that_and_how_far_it_has_come(store: Store) -> None:
    with store.log.hold() as hold:
        put(store, "a", scope=ONE)
        last = put(store, "b", scope=TWO)
        records = store.log.read(hold.after, prefix=ONE.prefix[:2])
        assert [len(record.changes) for record in records] == [1, 0]
        assert records[-1].sequence == last
        assert store.log.read(last) == []


def test_what_is_held_stays_and_what_nobody_holds_is_trimmed(store: Store) -> None:
    first, second = store.log.hold(), store.log.hold()
    for number in range(10):
        put(store, f"{number}")
    second.advance(store.sequence)
    put(store, "x")
    assert len(store.log.read(first.after)) == 11
    first.advance(store.sequence)
    put(store, "y")
    with pytest.raises(LogGap):
        store.log.read(first.after - 2)
    assert [record.sequence for record in store.log.read(second.after)] == [
        store.sequence - 1,
        store.sequence,
    ]
    with pytest.raises(LogGap):
        store.log.hold(0)
    first.release()
    second.release()
    assert store.log.size()["records"] == 0


def test_a_hole_is_told_and_never_skipped(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    hold = store.log.hold()
    put(store, "a")
    store.close()
    again = open_store(tmp_path)  # where nobody wants to know
    put(again, "b")
    again.log.hold()
    put(again, "c")
    with pytest.raises(LogGap):
        again.log.read(hold.after)
    again.close()


def test_a_hold_taken_beside_a_busy_writer_misses_no_commit(store: Store) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            put(store, "busy", b"%d" % store.sequence)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            with store.log.hold() as hold, store.snapshot() as snapshot:
                assert snapshot.sequence >= hold.after
                reached = store.log.read(hold.after)
                assert [record.sequence for record in reached] == list(
                    range(hold.after + 1, hold.after + 1 + len(reached))
                )
    finally:
        stop.set()
        writer.join()


def test_the_log_and_its_state_survive_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    hold = store.log.hold()
    for number in range(40):
        put(store, f"{number}", bytes(100_000))
    store.log.keep(ShippingState(epoch=3, number=5))
    assert store.log.state().number == 5
    put(store, "saves the state")
    store.close()
    store = open_store(tmp_path)
    assert store.log.state() == ShippingState(epoch=3, number=5)
    assert [record.sequence for record in store.log.read(hold.after, bytes_max=1 << 30)] == list(
        range(hold.after + 1, store.sequence + 1)
    )
    again = store.log.hold(hold.after)
    put(store, "further")
    assert store.log.read(again.after)[0].sequence == hold.after + 1
    store.log.save(ShippingState(epoch=4))
    store.log.clear()
    store.close()
    store = open_store(tmp_path)
    assert store.log.state().epoch == 4
    assert store.log.size()["records"] == 0
    store.close()
