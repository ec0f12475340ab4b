"""Resident state: bounded bytes, least use goes first, one loader per key."""

import threading
from dataclasses import dataclass

import pytest

from storage.store.resident import ResidentCache


@dataclass
class State:
    nbytes: int


def test_least_used_goes_first():
    residents = ResidentCache(bytes_max=30)
    for name in "abc":
        residents.put((name, 1), State(10))
    residents.get(("a", 1), lambda: pytest.fail("a is resident"))
    residents.put(("d", 1), State(10))
    assert residents.peek(("b", 1)) is None
    assert all(residents.peek((name, 1)) for name in "acd")
    assert residents.stats() == {
        "states": 3,
        "bytes": 30,
        "bytes_max": 30,
        "hits": 1,
        "misses": 0,
        "evictions": 1,
    }


def test_growth_counts_when_announced():
    residents = ResidentCache(bytes_max=30)
    first, second = State(10), State(10)
    residents.put(("a", 1), first)
    residents.put(("b", 1), second)
    second.nbytes = 25
    residents.resize(("b", 1))
    assert residents.peek(("a", 1)) is None
    assert residents.stats()["bytes"] == 25
    residents.resize(("gone", 1))


def test_a_state_larger_than_the_bound_stays_until_the_next():
    residents = ResidentCache(bytes_max=10)
    residents.get(("a", 1), lambda: State(100))
    assert residents.peek(("a", 1)) is not None
    residents.put(("b", 1), State(1))
    assert residents.peek(("a", 1)) is None


def test_drop_and_clear_give_bytes_back():
    residents = ResidentCache(bytes_max=100)
    residents.put(("a", 1), State(10))
    residents.put(("b", 1), State(10))
    residents.drop(("a", 1))
    residents.drop(("a", 1))
    assert residents.stats()["bytes"] == 10
    residents.clear()
    assert residents.stats()["bytes"] == 0


def test_one_loader_runs_and_all_share_its_result():
    residents = ResidentCache(bytes_max=100)
    started, release, loads = threading.Event(), threading.Event(), []

    def load() -> State:
        loads.append(1)
        started.set()
        assert release.wait(10)
        return State(1)

    found: list[State] = []
    threads = [
        threading.Thread(target=lambda: found.append(residents.get(("a", 1), load)))
        for _ in range(4)
    ]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    residents.get(("b", 1), lambda: State(1))  # another key does not wait
    release.set()
    for thread in threads:
        thread.join(10)
    assert len(loads) == 1
    assert len(found) == 4 and all(state is found[0] for state in found)


def test_a_failed_load_reaches_its_caller_and_leaves_room_for_another():
    residents = ResidentCache(bytes_max=100)
    with pytest.raises(OSError, match="disk"):
        residents.get(("a", 1), lambda: (_ for _ in ()).throw(OSError("disk")))
    assert residents.get(("a", 1), lambda: State(7)).nbytes == 7
