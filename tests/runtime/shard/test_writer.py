"""The writer of a shard: accounts in turns, nobody's tasks in their order, and a device that fails
while others wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

import serve_app
from runtime.api import Reply
from runtime.errors import Conflict, Unavailable
from runtime.limits import GROUP_COMMIT_SECONDS_MAX
from runtime.shard.writer import Joint, StorageFailed, WriteOutcome, Writer
from storage.store import Committed, DeviceFailed, StoreFull, Transaction
from tests.support.stores import ALICE, BLOBS, blobs, open_store
from tests.support.tiny_service import eventually


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


def test_a_disk_is_full_where_a_small_write_still_finds_room(tmp_path: Path) -> None:
    store = open_store(tmp_path / "shard")
    writer = Writer(store, serve_app.registry(), lambda due: None, lambda committed: None)

    def fill(transaction: Transaction) -> WriteOutcome:
        raise StoreFull("no space left on device")

    assert writer.stats()["disk_full_seconds"] == 0
    with pytest.raises(Unavailable):
        asyncio.run(writer.submit(fill, "large"))
    assert eventually(lambda: writer.stats()["disk_full_seconds"] > 0)
    asyncio.run(writer.submit(lambda transaction: WriteOutcome(Reply()), "small"))
    assert writer.stats()["disk_full_seconds"] > 0
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


def test_a_group_of_many_accounts_is_no_longer_than_its_bound(noting: Noting) -> None:
    """Whoever is first in it waits for all of it."""
    of_many = [(f"of {number}", f"account {number}") for number in range(40)]
    asyncio.run(noting.run(*of_many, seconds=GROUP_COMMIT_SECONDS_MAX / 2))
    groups = noting.groups()
    assert sum(map(len, groups)) == 40 and sorted(map(len, groups))[len(groups) // 2] <= 5, groups


def test_what_is_nobodys_comes_after_all_before_it_and_before_all_after_it(
    noting: Noting,
) -> None:
    before = [("eve 0", "eve"), ("eve 1", "eve"), ("ada 0", "ada")]
    after = [("bob 0", "bob"), ("eve 2", "eve")]
    asyncio.run(noting.run(*before, ("nobody", None), ("nobody too", None), *after))
    done = [name for name in noting.done if name is not None]
    assert done.index("nobody") == len(before) and done.index("nobody too") == len(before) + 1
    assert sorted(done[-2:]) == ["bob 0", "eve 2"]


class Joining:
    """A writer of tasks that put their name; those of one kind, which a hyphen ends, are joint."""

    def __init__(self, directory: Path):
        self.store = open_store(directory)
        self.writer = Writer(
            self.store, serve_app.registry(), lambda due: None, lambda committed: None
        )
        self.runs: list[list[str]] = []

    def put(self, transaction: Transaction, name: str) -> WriteOutcome:
        transaction.bind(BLOBS, ALICE).put((int(name[-1]),), name.encode())
        if name.startswith("refused"):
            raise Conflict("refused")
        return WriteOutcome(Reply(200, name))

    def put_all(self, transaction: Transaction, names: Sequence[str]) -> list[WriteOutcome]:
        self.runs.append(list(names))
        transaction.bind(BLOBS, ALICE).put((100 + len(self.runs),), b"of all")
        outcomes = [self.put(transaction, name) for name in names]
        if names[0].startswith("odd"):
            raise LookupError("not foreseen")
        return outcomes

    async def submit(self, *names: str) -> list[object]:
        """Submit all while the writer is busy; -> what each is told."""
        may_go = threading.Event()

        def hold(transaction: Transaction) -> WriteOutcome:
            may_go.wait()
            return WriteOutcome(Reply())

        held = asyncio.create_task(self.writer.submit(hold, "hold"))
        asked = []
        for name in names:
            kind, is_joint, _ = name.partition("-")
            joint = Joint(kind, name, self.put_all) if is_joint else None
            work = partial(self.put, name=name)
            task = self.writer.submit(work, name, account="ada", joint=joint)
            asked.append(asyncio.create_task(task))
        while self.writer.depth <= len(names):
            await asyncio.sleep(0.001)
        may_go.set()
        await held
        told = await asyncio.gather(*asked, return_exceptions=True)
        return [each.body if isinstance(each, Reply) else type(each) for each in told]

    def close(self) -> None:
        self.writer.close()
        self.store.close()


@pytest.fixture
def joining(tmp_path: Path) -> Iterator[Joining]:
    writer = Joining(tmp_path / "shard")
    yield writer
    writer.close()


def test_an_accounts_neighbours_of_one_kind_are_run_together(joining: Joining) -> None:
    names = ["a-1", "a-2", "b-3", "b-4", "alone5", "b-6", "b-7"]
    assert asyncio.run(joining.submit(*names)) == names
    assert joining.runs == [["a-1", "a-2"], ["b-3", "b-4"], ["b-6", "b-7"]]
    assert joining.writer.stats()["calls_together_total"] == 6
    assert len(blobs(joining.store)) == len(names) + 3


def test_tasks_that_fail_together_are_run_each_by_itself(
    joining: Joining, caplog: pytest.LogCaptureFixture
) -> None:
    """What they did together is undone; an unforeseen failure of that is in the log."""
    told = asyncio.run(joining.submit("refused-1", "refused-2"))
    assert told == [Conflict, Conflict] and not blobs(joining.store) and not caplog.records
    assert asyncio.run(joining.submit("odd-3", "odd-4")) == ["odd-3", "odd-4"]
    assert [record.message for record in caplog.records] == ["writes failed together: odd-3"]
    assert joining.runs == [["refused-1", "refused-2"], ["odd-3", "odd-4"]]
    assert joining.writer.stats()["calls_together_total"] == 0
    assert blobs(joining.store) == {3: b"odd-3", 4: b"odd-4"}
