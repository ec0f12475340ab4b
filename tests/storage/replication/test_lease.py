"""Leases of a shard: when they end, who waits for them, and for whom nobody has to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.replication import (
    Lease,
    ObjectStore,
    ObjectStoreFailed,
    Superseded,
    lease,
    restore,
    shipper,
)
from tests.support.leases import LeaseTime, leaping
from tests.support.log_world import FaultyStore, Owner, until

SECONDS = 100.0
WITH_CLOCK_RATES = 110.0


@pytest.fixture
def clock() -> Iterator[LeaseTime]:
    with leaping() as found:
        yield found


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return FaultyStore(f"file://{tmp_path}/objects")


def served(directory: Path, objects: ObjectStore) -> Owner:
    """An owner whose first snapshot is stored."""
    owner = Owner(directory, objects, lease_seconds=SECONDS).start()
    owner.put("tea")
    owner.await_stored()
    until(lambda: owner.shipper.complete)
    return owner


def about(seconds: float) -> object:
    return pytest.approx(seconds, abs=SECONDS / 2)


def test_an_answer_is_good_for_so_long_from_before_it_was_asked_for(clock: LeaseTime) -> None:
    def slow() -> bool:
        clock.leap(SECONDS / 4)
        return True

    lease = Lease(SECONDS, slow, outlasts=False)
    assert not lease.is_valid
    assert lease.renew() and lease.is_valid
    clock.leap(SECONDS * 3 / 4 - 1)
    assert lease.is_valid
    clock.leap(1)
    assert not lease.is_valid


@pytest.mark.parametrize("outlasts", [False, True])
def test_a_question_without_an_answer_is_none_unless_that_is_wanted(
    clock: LeaseTime, outlasts: bool
) -> None:
    def lost() -> bool:
        raise ObjectStoreFailed("cut off")

    lease = Lease(SECONDS, lost, outlasts=outlasts)
    assert not lease.renew() and lease.is_valid is outlasts
    clock.leap(SECONDS)
    assert not lease.is_valid and lease.unconfirmed_seconds >= SECONDS


def test_a_restore_waits_for_the_owner_it_takes_the_shard_from(
    tmp_path: Path, objects: ObjectStore, clock: LeaseTime
) -> None:
    first = served(tmp_path / "a", objects)
    found = restore(objects, tmp_path / "b", take_over=True, owner="b")
    assert clock.rested == [about(WITH_CLOCK_RATES)] and found.alone_at > 0
    second = Owner(tmp_path / "b", objects, lease_seconds=SECONDS)
    assert len(clock.rested) == 1, "its restore waited already"
    second.close()
    first.close()


def test_a_restore_that_ends_while_it_waits_leaves_the_wait_to_the_next(
    tmp_path: Path, objects: ObjectStore, clock: LeaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = served(tmp_path / "a", objects)

    class Killed(BaseException):
        pass

    def killed(seconds: float) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(lease, "rest", killed)
        with pytest.raises(Killed):
            restore(objects, tmp_path / "b", take_over=True, owner="b")
    restore(objects, tmp_path / "c", take_over=True, owner="c")
    assert clock.rested == [about(WITH_CLOCK_RATES)]
    first.close()


def test_what_the_owner_stores_while_its_taker_waits_is_not_lost(
    tmp_path: Path, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper, "HEARTBEAT_SECONDS", 3_600)  # it does not ask whose it is
    first = served(tmp_path / "a", objects)

    def meanwhile(seconds: float) -> None:
        first.put("milk")
        first.await_stored()

    monkeypatch.setattr(lease, "rest", meanwhile)
    found = restore(objects, tmp_path / "b", take_over=True, owner="b")
    assert found.sequence == first.store.sequence
    first.crash()


def test_a_directory_waits_for_nobody_who_held_its_lock(
    tmp_path: Path, objects: ObjectStore, clock: LeaseTime
) -> None:
    served(tmp_path / "a", objects).crash()
    again = Owner(tmp_path / "a", objects, lease_seconds=SECONDS)
    assert clock.rested == []
    again.close()


def test_a_copy_of_a_directory_waits_since_the_other_may_be_served(
    tmp_path: Path, objects: ObjectStore, clock: LeaseTime
) -> None:
    first = served(tmp_path / "a", objects)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    copy = Owner(tmp_path / "copy", objects, lease_seconds=SECONDS)
    assert clock.rested == [about(WITH_CLOCK_RATES)]
    copy.crash()
    with pytest.raises(Superseded):
        first.shipper.open()
    first.crash()
    Owner(tmp_path / "copy", objects, lease_seconds=SECONDS).close()
    assert len(clock.rested) == 1, "it was alone when it ended"
