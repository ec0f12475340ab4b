"""Turns among accounts: who has had least comes next, and nobody saves up."""

from __future__ import annotations

import time

import pytest

from runtime.limits import CROWDED_SECONDS
from runtime.turns import Crowd, InTurns, account_in_turn, in_turn_of


def filled(**waiting: int) -> InTurns[str]:
    turns: InTurns[str] = InTurns()
    for account, count in waiting.items():
        for number in range(count):
            turns.put(account, f"{account}{number}")
    return turns


def taken(turns: InTurns[str], **costs: float) -> list[str]:
    """All that waits, in its order; costs: of one thing of each account's."""
    order = []
    while (thing := turns.take()) is not None:
        order.append(thing)
        account = thing.rstrip("0123456789")
        turns.charge(account, costs.get(account, 0.0))
    return order


def test_accounts_come_one_after_the_other_and_an_accounts_things_in_their_order() -> None:
    turns = filled(ada=1, eve=3, bob=2)
    assert (len(turns), turns.waiting("eve"), turns.waiting("joe")) == (6, 3, 0)
    assert sorted(turns) == ["ada0", "bob0", "bob1", "eve0", "eve1", "eve2"]
    assert taken(turns) == ["ada0", "eve0", "bob0", "eve1", "bob1", "eve2"]
    assert not turns and turns.take() is None


def test_a_run_is_of_one_account_and_ends_at_what_does_not_fit() -> None:
    turns = filled(ada=5, bob=1)
    fits = lambda first, other: first != "ada0" or other != "ada2"  # noqa: E731
    assert turns.take_run(4, fits) == ["ada0", "ada1"] and len(turns) == 4
    turns.charge("ada", 1.0)
    assert turns.take_run(4, fits) == ["bob0"]
    assert turns.take_run(2, fits) == ["ada2", "ada3"]
    assert turns.take_run(2, fits, may=lambda account: account != "ada") == []
    assert turns.take_run(2, fits) == ["ada4"] and turns.take_run(2) == [] and not turns
    turns.put("ada", "ada5")
    assert turns.take() == "ada5"


def test_what_costs_ten_times_as_much_comes_a_tenth_as_often() -> None:
    order = taken(filled(eve=5, ada=30), eve=10.0, ada=1.0)
    assert [order.index(f"eve{number}") for number in range(3)] == [0, 11, 22]


def test_who_comes_to_a_crowd_waits_for_none_of_what_waits_there() -> None:
    turns = filled(eve=9)
    for _ in range(3):
        turns.take()
        turns.charge("eve", 5.0)
    turns.put("ada", "ada0")
    assert turns.take() == "ada0"


def test_nobody_saves_up_by_waiting_and_nobody_pays_for_what_was_free() -> None:
    turns = filled(eve=2)
    taken(turns, eve=100.0)
    turns.put("ada", "ada0")
    taken(turns, ada=100.0)  # while eve was away
    for account in ("eve", "ada"):
        for number in range(4):
            turns.put(account, f"{account}{number}")
    order = taken(turns, eve=1.0, ada=1.0)
    assert sorted(order[:2]) == ["ada0", "eve0"] and sorted(order[2:4]) == ["ada1", "eve1"]


def test_who_has_had_less_than_those_that_wait_is_due() -> None:
    turns = filled(eve=2)
    assert not turns.is_due("ada"), "she has had as much, and came later"
    turns.take()
    turns.charge("eve", 5.0)
    assert turns.is_due("ada") and not turns.is_due("eve")
    turns.charge("ada", 6.0)
    assert not turns.is_due("ada")
    turns.clear()
    turns.forget()
    turns.put("eve", "eve3")
    turns.put("ada", "ada0")
    assert turns.take() == "eve3", "nothing of what she had is counted any more"


def test_a_crowd_is_several_accounts_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    crowd = Crowd()
    for account in ("eve", None, "eve"):
        crowd.asked(account)
    assert not crowd.is_here()
    crowd.asked("ada")
    assert crowd.is_here()
    now += CROWDED_SECONDS
    assert not crowd.is_here()


def test_who_may_not_go_now_keeps_the_turn() -> None:
    turns = filled(eve=2, ada=2)
    assert turns.take(lambda account: account != "eve") == "ada0"
    assert turns.take(lambda account: False) is None
    assert len(turns) == 3
    assert taken(turns) == ["eve0", "ada1", "eve1"]


def test_accounts_that_had_something_once_are_forgotten() -> None:
    turns: InTurns[int] = InTurns()
    for account in range(10_000):
        turns.put(account, account)
        assert turns.take() == account
        turns.charge(account, 1.0)
    turns.put("ada", 1)
    turns.put("eve", 2)
    turns.clear()
    assert not turns and turns.take() is None
    turns.put("eve", 3)
    assert turns.take() == 3


def test_whom_something_is_done_for_is_known_within() -> None:
    assert account_in_turn() is None
    with in_turn_of("ada"):
        with in_turn_of("eve"):
            assert account_in_turn() == "eve"
        assert account_in_turn() == "ada"
    assert account_in_turn() is None
