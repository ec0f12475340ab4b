"""Random histories of a shard and its owners over an object store that fails, held against a model
of what was acknowledged.

A history writes, waits for acknowledgements, kills owners and opens their directories again, leaves
owners behind as if they were stopped and has others take over, and has the object store refuse,
lose answers and be late. All of it follows from the seed, but for how far the shipping thread has
come when something happens.

Held throughout: after each take-over and at the end, what is restored is a state that the shard was
in, at or after the last commit that was acknowledged, and agrees with itself as `mneme admin
verify` has it; and an owner that was left behind has nothing more acknowledged.
tests/storage/replication/test_faults.py runs a few, loadtests/log_faults.py as many as you like.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from storage.replication import ObjectStoreFailed, restore
from tests.support.log_accounts import Accounts
from tests.support.log_world import FaultyStore, Model, Owner, contents, open_store, until

STEPS = 24
WORDS = 12


class Schedule:
    """One history: run() raises AssertionError where a promise is broken; `told` counts what
    happened.
    """

    def __init__(self, directory: Path, seed: int, accounts: Accounts):
        self._directory, self._accounts = directory, accounts
        self._memories: list[str] = []
        self._chance = random.Random(seed)
        self._faults = random.Random(seed + 1)
        self._machines = 0
        self._states: dict[int, Model] = {}  # of the present owner's history, by commit
        self._acknowledged = 0
        self.told = dict.fromkeys(
            (
                "writes",
                "acknowledged",
                "kills",
                "take_overs",
                "left_behind",
                "answers_lost",
                "verified",
            ),
            0,
        )
        first = self._machine()
        accounts.begin(first)
        self._owner = self._opened(first)

    def run(self) -> None:
        actions = (self._write,) * 8 + (
            self._wait,
            self._wait,
            self._fail,
            self._mend,
            self._mend,
            self._kill,
            self._take_over,
            self._snapshot,
        )
        for _ in range(STEPS):
            self._chance.choice(actions)()
            self._note()
        self._mend()
        self._wait()
        self._owner.close()
        found = self._restored("end")
        assert found == self._states[max(self._states)], (
            "what was acknowledged at the end is not what is restored"
        )

    def _machine(self) -> Path:
        self._machines += 1
        return self._directory / f"machine-{self._machines}"

    def _objects(self) -> FaultyStore:
        return FaultyStore(f"file://{self._directory}/objects", "c/0/", self._faults)

    def _opened(self, directory: Path) -> Owner:
        self._store = self._objects()
        owner = Owner(directory, self._store, kind=self._accounts.kind).start()
        self._states = {
            sequence: state
            for sequence, state in self._states.items()
            if sequence <= owner.store.sequence
        }
        self._states[owner.store.sequence] = contents(owner.store)
        return owner

    def _write(self) -> None:
        word, scope = f"w{self._chance.randrange(WORDS)}", self._chance.randrange(3)
        kind = self._chance.random()
        if kind < 0.2:
            self._owner.delete(word, scope)
        elif kind < 0.5:
            self._memories.append(self._accounts.remember(self._owner.store))
        elif kind < 0.6 and self._memories:
            self._accounts.forget(self._owner.store, self._chance.choice(self._memories))
        else:
            self._owner.put(word, self._chance.randbytes(8), scope)
        self._states[self._owner.store.sequence] = contents(self._owner.store)
        self.told["writes"] += 1

    def _note(self) -> None:
        """What was acknowledged meanwhile."""
        self._acknowledged = max(self._acknowledged, self._owner.stored)
        self.told["acknowledged"] = self._acknowledged
        assert not self._owner.fenced

    def _wait(self) -> None:
        if self._store.failing:
            return
        if not self._owner.shipper.complete:
            self._mend()  # a snapshot is many requests, all of which have to go well
        self._owner.await_stored()

    def _fail(self) -> None:
        kind = self._chance.randrange(3)
        self._store.failing, self._store.lossy, self._store.late = (
            kind == 0,
            0.3 * (kind == 1),
            0.01 * (kind == 2),
        )

    def _mend(self) -> None:
        self.told["answers_lost"] += self._store.answers_lost
        self._store.failing, self._store.lossy, self._store.late, self._store.answers_lost = (
            False,
            0.0,
            0.0,
            0,
        )

    def _kill(self) -> None:
        """The process ends without a word, and its directory is opened again."""
        self._owner.crash()
        self._note()
        self._mend()
        self._owner = self._opened(self._owner.directory)
        assert self._owner.store.sequence in self._states
        self.told["kills"] += 1

    def _take_over(self) -> None:
        """The machine is lost, or only seems to be: another goes on from object storage."""
        lost = self._owner
        if not lost.stored:
            # before the first snapshot nothing was acknowledged, and nothing can be restored
            return
        is_dead = self._chance.random() < 0.5
        if is_dead:
            lost.crash()
        else:
            self._store.failing = True  # stopped: nothing of it arrives until it wakes
            self._states[lost.put("left behind")] = contents(lost.store)
            self.told["left_behind"] += 1
        stopped = self._store
        directory = self._machine()
        restored = restore(
            self._objects(), directory, take_over=True, owner=directory.name
        ).sequence
        assert self._found(directory) == self._states[restored], (
            "it is no state that the shard was in"
        )
        self._owner = self._opened(directory)
        self.told["take_overs"] += 1
        stopped.failing = False  # it wakes
        if not is_dead:
            until(lambda: bool(lost.fenced))
            lost.crash()
        assert max(lost.stored, self._acknowledged) <= restored, "an acknowledged write is lost"

    def _snapshot(self) -> None:
        if not self._store.failing:
            with contextlib.suppress(ObjectStoreFailed):
                self._owner.taker.take()

    def _restored(self, name: str) -> Model:
        restore(self._objects(), self._directory / name)
        return self._found(self._directory / name)

    def _found(self, directory: Path) -> Model:
        """What a restored store holds, which agrees with itself."""
        store = open_store(directory, create=False, kind=self._accounts.kind)
        try:
            assert self._accounts.findings(store) == []
            self.told["verified"] += 1
            return contents(store)
        finally:
            store.close()
