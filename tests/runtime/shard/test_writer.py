"""The writer of a shard: accounts in turns, nobody's tasks in their order, and a device that fails
while others wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

import pytest

import serve_app
from runtime.api import Reply
from runtime.shard.writer import StorageFailed, WriteOutcome, Writer
from storage.store import Committed, DeviceFailed, Transaction
from tests.support.stores import ALICE, BLOBS, blobs, open_store


def test_nothing_that_waits_behind_a_failure_of_the_device_is_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "shard")
    writer = Writer(store, serve_app.registry(), lambda due: None, lambda committed: None)
    has_begun, is_followed = threading.Event(), threading.Event()

    def fail(transaction: Transaction) -> WriteOutcome:
        has_begun.set()
        is_followed.wait()
        raise DeviceFailed("its device failed")

    def write(transaction: Transaction) -> WriteOutcome:
        transaction.bind(BLOBS, ALICE).put((1,), b"too late")
        return WriteOutcome(Reply())

    async def submit() -> tuple[Reply | BaseException, ...]:
        first = asyncio.create_task(writer.submit(fail, "first"))
        await asyncio.to_thread(has_begun.wait)
        second = asyncio.create_task(writer.submit(write, "second"))
        await asyncio.sleep(0)  # until it stands in the queue
        is_followed.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    told = asyncio.run(submit())
    assert [type(answer) for answer in told] == [StorageFailed] * 2
    assert blobs(store) == {}
    writer.close()
    store.close()


class Noting:
    """A writer, and what it did: each task's name in its order, None where a commit is through."""

    def __init__(self, directory: Path):
        self.done: list[str | None] = []
        self._store = open_store(directory)
        self._writer = Writer(
            self._store, serve_app.registry(), lambda due: None, self._has_committed
        )
        self._number = 0

    def groups(self) -> list[list[str]]:
        """The tasks of each commit that has any."""
        groups: list[list[str]] = [[]]
        for name in self.done:
            if name is None:
                groups.append([])
            else:
                groups[-1].append(name)
        return [group for group in groups if group]

    def _has_committed(self, committed: Committed) -> None:
        self.done.append(None)

    async def run(self, *tasks: tuple[str, Hashable], seconds: float = 0.0) -> None:
        """Submit (name, account) of each while the writer is busy, and wait for all of them."""
        has_begun, is_followed = threading.Event(), threading.Event()

        def hold(transaction: Transaction) -> WriteOutcome:
            has_begun.set()
            is_followed.wait()
            return WriteOutcome(Reply())

        held = asyncio.create_task(self._writer.submit(hold, "held"))
        await asyncio.to_thread(has_begun.wait)
        asked = []
        for name, account in tasks:
            work = self._noting(name, seconds)
            asked.append(asyncio.create_task(self._writer.submit(work, name, account=account)))
            await asyncio.sleep(0)  # until it stands in the queue
        is_followed.set()
        await asyncio.gather(held, *asked)

    def _noting(self, name: str, seconds: float) -> Callable[[Transaction], WriteOutcome]:
        def work(transaction: Transaction) -> WriteOutcome:
            time.sleep(seconds)  # as much work
            self._number += 1
            transaction.bind(BLOBS, ALICE).put((self._number,), name.encode())
            self.done.append(name)
            return WriteOutcome(Reply())

        return work

    def close(self) -> None:
        self._writer.close()
        self._store.close()


@pytest.fixture
def noting(tmp_path: Path) -> Iterator[Noting]:
    writer = Noting(tmp_path / "shard")
    yield writer
    writer.close()


def test_accounts_take_turns_and_an_accounts_tasks_keep_their_order(noting: Noting) -> None:
    of_eve = [f"eve {number}" for number in range(20)]
    asyncio.run(noting.run(*((name, "eve") for name in of_eve), ("ada", "ada")))
    done = [name for name in noting.done if name is not None]
    assert done.index("ada") < 2 and [name for name in done if name != "ada"] == of_eve


def test_an_account_alone_has_a_whole_group_and_in_a_crowd_as_long_as_the_commit(
    noting: Noting,
) -> None:
    of_eve = [(f"eve {number}", "eve") for number in range(20)]
    asyncio.run(noting.run(*of_eve, seconds=0.02))
    assert noting.groups() == [[name for name, _ in of_eve]]
    noting.done.clear()
    asyncio.run(noting.run(*of_eve, ("ada", "ada"), seconds=0.02))
    groups = noting.groups()
    assert "ada" in groups[0] and len(groups[0]) <= 4, "no longer than a commit, or the other one"
    assert all(len(group) <= 3 for group in groups[1:]) and sum(map(len, groups)) == 21


def test_what_is_nobodys_comes_after_all_before_it_and_before_all_after_it(
    noting: Noting,
) -> None:
    before = [("eve 0", "eve"), ("eve 1", "eve"), ("ada 0", "ada")]
    after = [("bob 0", "bob"), ("eve 2", "eve")]
    asyncio.run(noting.run(*before, ("nobody", None), ("nobody too", None), *after))
    done = [name for name in noting.done if name is not None]
    assert done.index("nobody") == len(before) and done.index("nobody too") == len(before) + 1
    assert sorted(done[-2:]) == ["bob 0", "eve 2"]
