"""The ledger of what accounts took: of one to two minutes, and bounded."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from runtime.account_work import AccountWork, Work
from runtime.limits import ACCOUNT_WORK_ACCOUNTS_MAX

ADA, EVE = (7, 1), (7, 2)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_it_has_the_minute_that_runs_and_the_one_before() -> None:
    clock = Clock()
    ledger = AccountWork(clock)
    ledger.note(ADA, calls=1, read_seconds=0.5)
    clock.now += 50
    ledger.note(ADA, write_seconds=0.25)
    assert ledger.of(ADA) == (Work(calls=1, read_seconds=0.5, write_seconds=0.25), 50.0)
    clock.now += 20  # another minute has begun
    ledger.note(ADA, calls=2)
    assert ledger.of(ADA) == (Work(calls=3, read_seconds=0.5, write_seconds=0.25), 70.0)
    clock.now += 61
    assert ledger.of(ADA) == (Work(calls=2), 61.0)
    clock.now += 200
    assert ledger.of(ADA) == (Work(), 0.0)


def test_the_busiest_come_first() -> None:
    ledger = AccountWork(Clock())
    ledger.note(ADA, calls=90, waited_seconds=100, embedded_chars=9_000)
    ledger.note(EVE, write_seconds=0.1, beside_seconds=0.1)
    ledger.note((9, 1), read_seconds=0.15)
    ledger.note((8, 1), read_seconds=5)
    among, _ = ledger.busiest(2, lambda account: account[0] != 8)
    assert [account for account, _ in among] == [EVE, (9, 1)]
    everybody, _ = ledger.busiest(9)
    assert [account for account, _ in everybody] == [(8, 1), EVE, (9, 1), ADA]


@pytest.mark.parametrize("nobody", [None, "usage"])
def test_nobody_takes_nothing(nobody: Hashable) -> None:
    ledger = AccountWork(Clock())
    ledger.note(nobody, read_seconds=1)
    assert ledger.busiest(9)[0] == []


def test_what_another_process_noted_comes_once() -> None:
    clock = Clock()
    here, there = AccountWork(Clock()), AccountWork(clock)
    here.note(ADA, calls=1)
    there.note(ADA, read_seconds=0.25)
    clock.now += 61
    there.note(ADA, read_seconds=0.25)
    there.note(EVE, read_seconds=0.25)
    for _ in range(2):
        here.take_over(there.hand_over())
    assert here.of(ADA)[0] == Work(calls=1, read_seconds=0.5)
    assert here.of(EVE)[0] == Work(read_seconds=0.25)


def test_of_many_accounts_it_notes_so_many() -> None:
    ledger = AccountWork(Clock())
    for number in range(ACCOUNT_WORK_ACCOUNTS_MAX + 10):
        ledger.note((1, number), calls=1)
    ledger.note((1, 3), calls=1)
    ledger.take_over({(2, 1): Work(calls=1)})
    assert len(ledger.busiest(2 * ACCOUNT_WORK_ACCOUNTS_MAX)[0]) == ACCOUNT_WORK_ACCOUNTS_MAX
    assert ledger.of((1, 3))[0].calls == 2
