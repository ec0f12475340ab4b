"""Resident state: bounded bytes, least use goes first, one loader per key."""

import threading
from dataclasses import dataclass
from functools import partial

import pytest

from storage.store.resident import ResidentCache


@dataclass
class State:
    nbytes: int


def test_the_account_least_used_goes_first_and_whole():
    residents = ResidentCache(bytes_max=40)
    for account in (1, 2, 3):
        residents.put(("a", account), State(6))
        residents.put(("b", account), State(6))
    assert [residents.bytes_of(account) for account in (1, 3, 4)] == [12, 12, 0]
    residents.get(("a", 1), lambda: pytest.fail("account 1 is resident"))
    residents.put(("a", 4), State(10))
    assert residents.peek(("a", 2)) is None and residents.peek(("b", 2)) is None
    assert all(residents.peek((name, account)) for name in "ab" for account in (1, 3))
    assert residents.stats() == {
        "accounts": 3,
        "states": 5,
        "bytes": 34,
        "bytes_max": 40,
        "bytes_over": 0,
        "hits": 1,
        "misses": 0,
        "evictions": 1,
    }


def test_growth_counts_when_announced():
    residents = ResidentCache(bytes_max=30)
    first, second = State(10), State(10)
    residents.put(("a", 1), first)
    residents.put(("a", 2), second)
    second.nbytes = 25
    residents.resize(("a", 2))
    assert residents.peek(("a", 1)) is None
    assert residents.stats()["bytes"] == 25
    residents.resize(("gone", 1))


def test_an_account_larger_than_the_bound_is_loaded_once_and_stays_until_another_is_used():
    residents = ResidentCache(bytes_max=10)
    loads = []

    def load(name: str, size: int) -> State:
        loads.append(name)
        return State(size)

    def search(account: int, size: int) -> None:
        for name in "abcd":
            residents.get((name, account), partial(load, name, size))

    for _ in range(20):
        search(1, 100)
    assert loads == ["a", "b", "c", "d"]
    assert residents.stats()["bytes_over"] == 390
    search(2, 1)
    assert all(residents.peek((name, 1)) is None for name in "abcd")
    assert residents.stats()["bytes_over"] == 0


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
