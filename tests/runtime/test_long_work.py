"""Long work: beside the event loop, so much at once, accounts in turns."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from runtime import long_work
from runtime.long_work import Cores, LongWork, aside
from runtime.turns import in_turn_of

WAIT_SECONDS_MAX = 60


class Held:
    """Work that says when it begins and waits until it may end."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(WAIT_SECONDS_MAX)
        return "done"


def test_an_account_that_asks_for_much_waits_behind_itself() -> None:
    work, order, held = LongWork(1, Cores(1)), list[str](), Held()
    first = work.submit("eve", held)
    assert held.begun.wait(WAIT_SECONDS_MAX)
    others = [work.submit("eve", lambda: order.append("eve")) for _ in range(20)]
    asked = work.submit("ada", lambda: order.append("ada"))
    held.may_end.set()
    assert first.result(WAIT_SECONDS_MAX) == "done"
    for each in (asked, *others):
        each.result(WAIT_SECONDS_MAX)
    assert order.index("ada") <= 1


def test_one_piece_of_an_accounts_at_a_time() -> None:
    work, held, second, other = LongWork(2, Cores(2)), Held(), Held(), Held()
    running = work.submit("eve", held)
    assert held.begun.wait(WAIT_SECONDS_MAX)
    waiting = work.submit("eve", second)
    beside = work.submit("ada", other)
    assert other.begun.wait(WAIT_SECONDS_MAX) and not second.begun.is_set()
    for each in (held, second, other):
        each.may_end.set()
    assert [f.result(WAIT_SECONDS_MAX) for f in (running, waiting, beside)] == ["done"] * 3


def test_what_is_not_wanted_any_more_is_not_begun() -> None:
    work, held = LongWork(1, Cores(1)), Held()
    running: Future[str] = work.submit("eve", held)
    assert held.begun.wait(WAIT_SECONDS_MAX)
    given_up = work.submit("ada", lambda: pytest.fail("nobody wants it"))
    assert given_up.cancel()
    held.may_end.set()
    assert running.result(WAIT_SECONDS_MAX) == "done"
    assert work.submit("ada", lambda: 7).result(WAIT_SECONDS_MAX) == 7


def test_a_failure_is_its_callers_and_ends_nothing_else() -> None:
    work = LongWork(1, Cores(1))

    def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError):
        work.submit("eve", fail).result(WAIT_SECONDS_MAX)
    assert work.submit("eve", lambda: 7).result(WAIT_SECONDS_MAX) == 7


def test_cores_are_given_to_whoever_has_had_least_and_to_nobody_who_gave_up() -> None:
    cores, order = Cores(1), list[str]()
    assert cores.take("eve") and not in_thread(lambda: cores.take("ada", 0.001))
    begun = [threading.Event() for _ in range(3)]

    def work(place: int, account: str) -> None:
        begun[place].set()
        with cores.held(account):
            order.append(account)

    threads = [
        threading.Thread(target=work, args=(place, account))
        for place, account in enumerate(("eve", "eve", "bob"))
    ]
    for thread, each in zip(threads, begun, strict=True):
        thread.start()
        assert each.wait(WAIT_SECONDS_MAX)
    spend_processor_time()
    cores.leave()
    for thread in threads:
        thread.join(WAIT_SECONDS_MAX)
    assert sorted(order) == ["bob", "eve", "eve"]
    assert cores.take("ada", 0.001)


def test_an_account_that_is_alone_has_all_cores_and_half_of_them_beside_others() -> None:
    cores = Cores(2)
    for _ in range(2):
        cores.asked("eve")
    assert in_thread(lambda: cores.take("eve", 0.001)) and cores.take("eve", 0.001)
    cores.leave()
    cores.asked("ada")
    assert not cores.take("eve", 0.001), "one is taken, and the other is for who is answered soon"


def test_cores_that_nobody_has_or_waits_for_are_lent_for_a_while() -> None:
    cores, came = Cores(4), threading.Event()
    assert cores.take("ada", 0)
    assert cores.spare() == 3 and cores.lend(2) == 2 and cores.lend(9) == 1 == 1 + cores.lend(9)

    def wait() -> None:
        with cores.held("ada"):
            came.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not came.wait(0.02)
    cores.take_back(1)
    assert came.wait(WAIT_SECONDS_MAX)
    waiting.join()
    cores.take_back(2)
    assert cores.spare() == 3
    for account in ("ada", "eve"):
        cores.asked(account)
    assert cores.spare() == 1 == cores.lend(3), "half are for others, while they ask"
    cores.take_back(1)
    cores.leave()


def test_long_work_lets_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "LONG_WORK_SLICE_SECONDS", 0.0)
    cores, came = Cores(1), threading.Event()
    cores.breathe()  # who has no core has none to give away

    def other() -> None:
        with cores.held("ada"):
            came.set()

    with cores.held("eve"):
        thread = threading.Thread(target=other)
        thread.start()
        while not came.is_set():
            cores.breathe()
    thread.join(WAIT_SECONDS_MAX)
    assert came.is_set()


def in_thread(work: Callable[[], bool]) -> bool:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result(WAIT_SECONDS_MAX)


def spend_processor_time() -> None:
    begun = time.thread_time()
    while time.thread_time() == begun:
        pass


def test_it_is_done_beside_the_loop_in_the_context_of_whoever_asks() -> None:
    told: ContextVar[str] = ContextVar("told")

    async def ask() -> tuple[int, str, bool]:
        told.set("by ada")

        def work(number: int) -> tuple[int, str, bool]:
            beside = threading.current_thread() is not threading.main_thread()
            return number, told.get(), beside

        with in_turn_of("ada"):
            return await aside(work, 7)

    assert asyncio.run(ask()) == (7, "by ada", True)
