"""The log in object storage: one owner at a time, nothing lost that was stored, nothing said to be
stored that was not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from storage.replication import packs, shipper
from storage.replication.epochs import EPOCHS, Superseded, take_epoch
from storage.replication.object_store import ObjectStore, ObjectStoreFailed, ObjectStoreUnfit
from storage.replication.restore import RestoreFailed, restore
from storage.replication.segment import SEGMENTS, SegmentDamaged
from storage.replication.shipper import refuse_superseded
from storage.replication.snapshots import snapshots
from storage.store import Transaction
from tests.support.clocks import next_millisecond
from tests.support.log_world import (
    SCOPES,
    WORDS,
    FaultyStore,
    Owner,
    contents,
    contents_of,
    open_store,
    owner,
    until,
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.2)


@pytest.fixture
def objects(tmp_path: Path) -> FaultyStore:
    return FaultyStore(f"file://{tmp_path}/objects", "c/0/")


def segments(objects: ObjectStore) -> list[str]:
    return [f"{SEGMENTS}/{name}" for name in objects.names(SEGMENTS)]


def path_of(objects: ObjectStore, name: str) -> Path:
    return Path(objects.url.removeprefix("file://")) / "c/0" / name


def test_what_is_stored_is_restored_on_an_empty_machine(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        for number in range(20):
            first.put(f"w{number}", b"%d" % number, number % 3)
        first.delete("w0")
        first.await_stored()
        expected = contents(first.store)
    restored = restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected
    assert len(expected) == 19
    assert restored.segments > 0


def test_a_fenced_owner_has_nothing_stored_however_late_it_wakes(
    tmp_path: Path, objects: FaultyStore
) -> None:
    paused = Owner(tmp_path / "a", objects).start()
    paused.put("before")
    paused.await_stored()
    objects.failing = True  # as long as it is stopped, nothing of it arrives
    sequence = paused.put("while paused")
    until(lambda: paused.shipper.failures > 0)

    other = FaultyStore(objects.url, "c/0/")
    restore(other, tmp_path / "b", take_over=True, owner="b")
    with owner(tmp_path / "b", other) as second:
        for number in range(3):
            second.put(f"after {number}")
            second.await_stored()
        for _ in range(3):  # the segments that the first owner knew are let go of
            second.put("more")
            second.await_stored()
            second.taker.take()
        assert len(snapshots(other)) == 2
        objects.failing = False
        until(lambda: bool(paused.fenced))
        assert paused.stored < sequence
        assert not second.fenced
        assert (0, "while paused") not in contents(second.store)
    paused.crash()
    restore(other, tmp_path / "c")
    assert {word for _, word in contents_of(tmp_path / "c")} == {
        "before",
        "after 0",
        "after 1",
        "after 2",
        "more",
    }


def test_two_owners_of_one_directory_copy(tmp_path: Path, objects: FaultyStore) -> None:
    older = Owner(tmp_path / "a", objects).start()
    older.put("a")
    older.await_stored()
    older.store.backup(tmp_path / "b")
    newer = Owner(tmp_path / "b", objects).start()
    sequence = older.put("by the older")
    until(lambda: bool(older.fenced))
    assert older.stored < sequence
    newer.put("by the newer")
    newer.await_stored()
    newer.close()
    older.crash()
    with pytest.raises(Superseded):
        Owner(tmp_path / "a", objects)
    restore(objects, tmp_path / "c")
    assert set(contents_of(tmp_path / "c")) == {(0, "a"), (0, "by the newer")}


def test_what_a_former_owner_stores_while_its_epoch_is_taken_is_not_passed_over(
    tmp_path: Path, objects: FaultyStore
) -> None:
    older = Owner(tmp_path / "a", objects).start()
    older.put("before")
    older.await_stored()
    older.store.backup(tmp_path / "b")
    taken: list[str] = []

    class Slow(ObjectStore):
        def put_new(self, path: str, content: bytes) -> bool:
            made = super().put_new(path, content)
            if path.startswith(EPOCHS) and not taken:
                taken.append(path)
                older.put("meanwhile")
                older.await_stored()
            return made

    with pytest.raises(Superseded, match="that this directory has not"):
        Owner(tmp_path / "b", Slow(objects.url, "c/0/"))
    assert taken
    older.crash()
    restore(objects, tmp_path / "c")
    assert set(contents_of(tmp_path / "c")) == {(0, "before"), (0, "meanwhile")}


@pytest.mark.parametrize("packed", [False, True])
def test_a_directory_that_is_behind_is_refused_before_it_ends_anybodys_epoch(
    tmp_path: Path, objects: FaultyStore, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older backup that was restored beside it, say: the directory with all goes on."""
    monkeypatch.setattr(packs, "PACKED_AT_ONCE", 4)
    with owner(tmp_path / "a", objects) as held:
        held.put("one")
        held.await_stored()
        held.store.backup(tmp_path / "old")
        for number in range(12):
            held.put(f"more {number}")
            held.await_stored()
        if packed:
            assert held.taker.packer.pack()
    with pytest.raises(Superseded, match="Restore the shard from object storage"):
        Owner(tmp_path / "old", objects)
    with owner(tmp_path / "a", objects) as again:
        again.put("two")
        again.await_stored()
        expected = contents(again.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_an_idle_owner_learns_that_it_is_none_any_more(
    tmp_path: Path, objects: FaultyStore
) -> None:
    idle = Owner(tmp_path / "a", objects).start()
    idle.put("a")
    idle.await_stored()
    restore(objects, tmp_path / "b", take_over=True, owner="b")
    until(lambda: bool(idle.fenced))
    until(lambda: idle.store.log.state().superseded)
    idle.crash()
    store = open_store(tmp_path / "a")
    with pytest.raises(Superseded, match="without it"):
        refuse_superseded(store)
    store.close()
    with pytest.raises(Superseded, match="without it"):
        Owner(tmp_path / "a", FaultyStore(f"file://{tmp_path}/elsewhere", "c/0/"))


def test_a_directory_that_finds_out_as_it_is_opened_remembers_it(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.put("a")
        first.await_stored()
    restore(objects, tmp_path / "b", take_over=True, owner="b")
    with pytest.raises(Superseded, match="was taken by b"):
        Owner(tmp_path / "a", objects)
    store = open_store(tmp_path / "a")
    with pytest.raises(Superseded, match="without it"):
        refuse_superseded(store)
    store.close()


def test_a_directory_that_was_restored_to_look_at_is_no_owner(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.put("a")
        first.await_stored()
        restore(objects, tmp_path / "b")
        with pytest.raises(Superseded):
            Owner(tmp_path / "b", objects)
        first.put("b")
        first.await_stored()


def test_answers_that_are_lost_store_nothing_twice_and_lose_nothing(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.await_stored()
        objects.lossy = 0.5
        for number in range(40):
            first.put(f"w{number}")
            if number % 4 == 0:
                first.await_stored()
        first.await_stored()
        objects.lossy = 0.0
        assert objects.answers_lost > 0
        expected = contents(first.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_nothing_counts_as_stored_while_the_store_fails_and_all_of_it_does_after(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.await_stored()
        objects.failing = True
        before = first.stored
        for number in range(5):
            first.put(f"w{number}")
        until(lambda: first.shipper.failures > 2)
        assert first.stored == before
        lag = first.shipper.lag()
        assert lag["records"] == 5 and lag["seconds"] > 0
        objects.failing = False
        first.await_stored()
        assert first.shipper.lag()["records"] == 0


def test_a_killed_owner_goes_on_where_the_store_stands(
    tmp_path: Path, objects: FaultyStore
) -> None:
    expected = {}
    for turn in range(4):
        objects.failing = False
        killed = Owner(tmp_path / "a", objects).start()
        killed.await_stored()
        for number in range(6):
            killed.put(f"{turn}.{number}")
            if number == 2:
                killed.await_stored()
                objects.failing = turn % 2 == 0
        expected = contents(killed.store)
        killed.crash()
    objects.failing = False
    with owner(tmp_path / "a", objects) as last:
        last.await_stored()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected
    assert len(expected) == 24


def test_a_segment_that_landed_before_the_crash_is_found_again(
    tmp_path: Path, objects: FaultyStore
) -> None:
    first = Owner(tmp_path / "a", objects).start()
    first.put("a")
    first.await_stored()
    state = first.store.log.state()
    first.put("b")
    first.await_stored()
    first.store.log.save(
        state
    )  # the crash came before the next commit could save where the log stands
    expected = contents(first.store)
    first.crash()
    with owner(tmp_path / "a", objects) as again:
        again.put("c")
        again.await_stored()
    restore(objects, tmp_path / "b")
    assert set(contents_of(tmp_path / "b")) == {*expected, (0, "c")}


def test_a_missing_segment_and_a_damaged_one_end_a_restore(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        for number in range(6):
            first.put(f"w{number}")
            first.await_stored()
    path = path_of(objects, segments(objects)[-3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(SegmentDamaged, match="checksum"):
        restore(objects, tmp_path / "b")
    path.unlink()
    with pytest.raises(
        SegmentDamaged, match=r"missing.*restore what there was until then .--at 20"
    ):
        restore(objects, tmp_path / "b")
    path.write_bytes(path_of(objects, segments(objects)[-1]).read_bytes())
    with pytest.raises(SegmentDamaged):
        restore(objects, tmp_path / "b")
    assert not (tmp_path / "b" / "data.mdb").exists()
    path.write_bytes(whole)
    restore(objects, tmp_path / "b")


def test_a_segment_of_another_history_ends_a_restore(tmp_path: Path, objects: FaultyStore) -> None:
    """Whole, and of that number: the log of another shard, say, or an older copy of this one."""
    others = FaultyStore(objects.url, "c/1/")
    for directory, place in (("a", objects), ("other", others)):
        with owner(tmp_path / directory, place) as first:
            for number in range(6):
                first.put(f"w{number}")
                first.await_stored()
    name = segments(objects)[-3]
    foreign = others.get(name)
    assert foreign is not None
    path_of(objects, name).write_bytes(foreign)
    with pytest.raises(SegmentDamaged, match="does not follow"):
        restore(objects, tmp_path / "b")
    assert not (tmp_path / "b" / "data.mdb").exists()


def test_a_damaged_or_missing_snapshot_is_told(tmp_path: Path, objects: FaultyStore) -> None:
    with pytest.raises(RestoreFailed, match="no snapshot"):
        restore(objects, tmp_path / "b")
    with owner(tmp_path / "a", objects) as first:
        first.put("a")
        first.await_stored()
    (place, _), *_ = snapshots(objects)
    path = path_of(objects, f"{place}/pages-0000")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RestoreFailed, match="checksum"):
        restore(objects, tmp_path / "b")


def test_a_point_in_time_is_the_state_of_that_time(tmp_path: Path, objects: FaultyStore) -> None:
    moments = []
    with owner(tmp_path / "a", objects) as first:
        for number in range(12):
            first.put(f"w{number % 5}", b"%d" % number, number % 3)
            first.await_stored()
            if number == 6:
                begun = time.monotonic()
                first.taker.take()
                age, most = first.taker.age_seconds, time.monotonic() - begun
                assert age <= most + 0.001, "as new as what it has, in whole milliseconds"
            moments.append((next_millisecond(), contents(first.store)))
            next_millisecond()
        with pytest.raises(RestoreFailed, match="oldest"):
            restore(objects, tmp_path / "too early", at=1_000)
        for number, (at, expected) in enumerate(moments):
            restore(objects, tmp_path / f"at {number}", at=at)
            assert contents_of(tmp_path / f"at {number}") == expected
        assert not first.fenced
    # From one of them the shard goes on, and what it leaves behind stays out.
    at, expected = moments[4]
    restore(objects, tmp_path / "b", at=at, take_over=True, owner="b")
    with owner(tmp_path / "b", objects) as second:
        second.put("on the other branch")
        second.await_stored()
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == {**expected, (0, "on the other branch"): b"1"}


def test_a_key_that_was_shredded_later_opens_the_rows_of_a_moment_before(
    tmp_path: Path, objects: FaultyStore
) -> None:
    """Also where one segment holds the rows, what erased them, and the shredded key."""
    with owner(tmp_path / "a", objects) as first:
        first.put("passing", scope=1)
        first.await_stored()
        objects.failing = True
        first.put("kept", scope=0)
        first.put("passing", b"2", scope=1)
        moment, expected = next_millisecond(), contents(first.store)
        next_millisecond()
        first.delete("passing", scope=1)
        assert first.store.keys.shred(SCOPES[1].prefix)
        objects.failing = False
        first.await_stored()
        until(lambda: first.shipper.state.sequence == first.store.sequence)
    restore(objects, tmp_path / "then", at=moment)
    assert contents_of(tmp_path / "then") == expected
    restore(objects, tmp_path / "now")
    store = open_store(tmp_path / "now", create=False)
    assert store.keys.is_shredded(SCOPES[1].prefix)
    store.close()


def behind_a_gap(tmp_path: Path, objects: FaultyStore) -> Owner:
    """An owner that has "b" where its log does not continue, and no snapshot yet; before it, "a"
    was acknowledged.
    """
    with owner(tmp_path / "a", objects) as first:
        first.put("a")
        first.await_stored()
    store = open_store(tmp_path / "a")
    store.write(
        lambda transaction: transaction.bind(WORDS, SCOPES[0]).put(("without a log",), b"1")
    )
    store.close()
    again = Owner(tmp_path / "a", objects).start(snapshots=False)
    again.put("b")
    until(lambda: again.shipper.state.sequence == again.store.sequence)
    return again


def test_commits_without_a_log_are_covered_by_a_snapshot(
    tmp_path: Path, objects: FaultyStore
) -> None:
    again = behind_a_gap(tmp_path, objects)
    assert again.stored == 0  # it is there, but nothing leads to it yet
    with pytest.raises(RestoreFailed, match="does not continue"):
        restore(objects, tmp_path / "b")
    again.taker.start()
    again.await_stored()
    again.close()
    restore(objects, tmp_path / "b")
    assert {word for _, word in contents_of(tmp_path / "b")} == {"a", "without a log", "b"}


def test_where_the_log_does_not_continue_the_state_before_has_all_that_was_acknowledged(
    tmp_path: Path, objects: FaultyStore
) -> None:
    lost = behind_a_gap(tmp_path, objects)
    assert lost.stored == 0
    lost.crash()
    with pytest.raises(RestoreFailed, match=r"durability\.mode to replicated"):
        restore(objects, tmp_path / "b", take_over=True, owner="b")
    restore(objects, tmp_path / "b", take_over=True, owner="b", replicated=True)
    with owner(tmp_path / "b", objects) as second:
        assert set(contents(second.store)) == {(0, "a")}
        second.put("c")
        second.await_stored()
        expected = contents(second.store)
    restore(objects, tmp_path / "c")
    assert contents_of(tmp_path / "c") == expected
    with pytest.raises(Superseded):
        Owner(tmp_path / "a", objects)


def test_a_snapshot_that_a_taker_may_not_have_found_acknowledges_nothing(
    tmp_path: Path, objects: FaultyStore
) -> None:
    former = behind_a_gap(tmp_path, objects)
    assert take_epoch(objects, former.shipper.state.epoch + 1, "token", "taker")
    former.taker.take()
    assert (former.stored, former.shipper.complete) == (0, False)
    assert former.fenced
    former.close()


class DeafStore(FaultyStore):
    """While it is deaf, nobody learns which epochs were taken."""

    deaf = False

    def have(self, folder: str, names: Sequence[str]) -> list[bool]:
        if self.deaf and folder == EPOCHS:
            raise ObjectStoreFailed("no answer")
        return super().have(folder, names)


def test_a_snapshot_counts_as_soon_as_its_owner_is_known_to_be_the_owner(tmp_path: Path) -> None:
    objects = DeafStore(f"file://{tmp_path}/objects", "c/0/")
    again = behind_a_gap(tmp_path, objects)
    objects.deaf = True
    with pytest.raises(ObjectStoreFailed):
        again.taker.take()
    assert again.stored == 0
    objects.deaf = False
    again.taker.take()
    assert again.stored == again.store.sequence
    again.close()


class SlowToTell(FaultyStore):
    """Whoever asks which epochs were taken waits, once, on the thread that set `meanwhile`."""

    meanwhile: Callable[[], None] | None = None
    thread = 0

    def have(self, folder: str, names: Sequence[str]) -> list[bool]:
        if folder == EPOCHS and threading.get_ident() == self.thread and self.meanwhile:
            waiting, self.meanwhile = self.meanwhile, None
            waiting()
        return super().have(folder, names)


def test_a_snapshot_covers_no_gap_that_comes_while_its_owner_asks_whether_it_is_the_owner(
    tmp_path: Path,
) -> None:
    objects = SlowToTell(f"file://{tmp_path}/objects", "c/0/")
    first = Owner(tmp_path / "a", objects, replicated=False, backlog_bytes=1_000_000)
    first.start(snapshots=False)
    first.put("a")
    until(lambda: first.shipper.state.sequence == first.store.sequence)

    def drop_some() -> None:
        objects.failing = True
        for number in range(40):
            first.put(f"w{number}", bytes([number]) * 200_000)
        until(lambda: first.put("trims") > 0 and first.store.log.size()["bytes"] < 1_000_000)
        objects.failing = False
        until(lambda: first.shipper.dropped > 0)

    objects.thread, objects.meanwhile = threading.get_ident(), drop_some
    first.taker.take()
    assert first.shipper.dropped and not first.stored
    with pytest.raises(RestoreFailed, match="does not continue"):
        restore(objects, tmp_path / "b")
    first.taker.take()
    first.await_stored()
    expected = contents(first.store)
    first.crash()
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_a_backlog_that_grows_too_large_makes_way_for_a_snapshot(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects, replicated=False, backlog_bytes=1_000_000) as first:
        until(lambda: first.taker.taken == 1)
        objects.failing = True
        first.put("waits")
        until(lambda: first.shipper.failures > 0)
        for number in range(
            40
        ):  # more than one segment holds, so that no attempt under way has all of it
            first.put(f"w{number}", bytes([number]) * 200_000)
        until(lambda: first.put("trims") > 0 and first.store.log.size()["bytes"] < 1_000_000)
        objects.failing = False
        until(lambda: first.shipper.dropped > 0)
        first.await_stored()
        expected = contents(first.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_an_owner_whose_writes_wait_for_the_log_drops_nothing_of_it(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects, replicated=True, backlog_bytes=1_000_000) as first:
        objects.failing = True
        for number in range(40):
            first.put(f"w{number}", bytes([number]) * 200_000)
        failures = first.shipper.failures
        until(lambda: first.shipper.failures > failures + 2)
        first.put("trims what nobody holds")
        assert first.store.log.size()["bytes"] > 40 * 200_000
        objects.failing = False
        first.await_stored()
        assert first.shipper.complete and not first.shipper.dropped
        expected = contents(first.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_keys_made_and_shredded_after_the_snapshot_come_along(
    tmp_path: Path, objects: FaultyStore
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.put("a", scope=0)
        first.await_stored()
        first.put("b", scope=1)
        first.put("c", scope=2)
        first.store.write(lambda transaction: _erase(transaction, 0))
        first.store.keys.shred(_prefix(0))
        first.put("d", scope=1)
        first.await_stored()
    assert len(snapshots(objects)) == 1
    restore(objects, tmp_path / "b")

    store = open_store(tmp_path / "b", create=False)
    assert store.keys.is_shredded(_prefix(0))
    with store.snapshot() as snapshot:
        assert [key for scope in SCOPES[1:] for key in snapshot.bind(WORDS, scope).keys()] == [  # noqa: SIM118 (a table, no dict)
            ("b",),
            ("d",),
            ("c",),
        ]
    store.close()


def _prefix(scope: int) -> bytes:

    return SCOPES[scope].prefix


def _erase(transaction: Transaction, scope: int) -> None:

    transaction.bind(WORDS, SCOPES[scope]).delete_prefix()


def test_old_snapshots_and_segments_are_let_go_of(tmp_path: Path, objects: FaultyStore) -> None:
    with owner(tmp_path / "a", objects) as first:
        for number in range(5):
            for word in range(4):
                first.put(f"{number}.{word}")
                first.await_stored()
            first.taker.take()
        kept = snapshots(objects)
        assert len(kept) == 2
        oldest = min(int(name[-12:]) for name in objects.names(SEGMENTS) if int(name[:12]) > 0)
        assert oldest > kept[0][1].state.number - 1
        expected = contents(first.store)
    restore(objects, tmp_path / "b")
    assert contents_of(tmp_path / "b") == expected


def test_an_object_store_that_lists_nothing_is_named_and_not_another_owner(
    tmp_path: Path, objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner(tmp_path / "a", objects) as first:
        first.put("kept")
        first.await_stored()
    with monkeypatch.context() as patched:
        patched.setattr(objects, "names", lambda folder: [])
        with pytest.raises(ObjectStoreUnfit, match="the right to list"):
            Owner(tmp_path / "a", objects).start()
    with owner(tmp_path / "a", objects) as again:
        assert len(contents(again.store)) == 1
