"""The shard under simulation: everything random or timed is the seed's, and the process can die at
each step of a commit.

Death is taken from the disk: at the moment of the crash the directory's files are copied, all of
the old shard is thrown away, and a new one opens the copy. What the old one still had in memory is
lost as it would be with its process. The steps:

    before     nothing of the write transaction has happened
    inside     its work has run, the commit has not begun
    torn       its pages have reached the file, the meta page that makes them count has not
    committed  it is on disk; no index in memory has learnt of it
    fed        indexes have learnt of it; nobody has been answered
    embedding  between the steps of a call or a job, while its text is embedded or its event is sent

Jobs are run one at a time, when the history says so, and never by the clock.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

import runtime.shard.shard
import serve_app
from plugins.memories import MEMORY_FEATURES, MEMORY_TEXT, MEMORY_VECTORS
from runtime.api import jobs
from runtime.api.operation import Call, Reply
from runtime.errors import ApiError
from runtime.inference import Models
from runtime.installation import Secrets
from runtime.shard import Shard, job_loop, usage_buffer
from runtime.shard.job_loop import JobLoop
from runtime.shard.writer import StorageFailed, WriteOutcome
from serve_app import Settings
from storage.indexes import change_tokens
from storage.indexes.builder import Builder
from storage.indexes.vectors import space as vectors_space
from storage.store import DATA_FILE, LOCK_FILE, Committed, Identity, Transaction
from tests.simulation.recording_receivers import RecordingReceivers
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, Answer, ShardHarness, answer_of

START_MS = 1_790_000_000_000
TIMES = {
    "write": {"ready_wait_ms": 4},
    "search": {"embedding_wait_ms": 4},
    "auth": {**CHEAP["auth"], "token_seconds": 3 * 24 * 3600},
    "webhooks": {"disable_after_seconds": 366 * 24 * 3600},
}
SURVIVES = {
    "before": False,
    "inside": False,
    "torn": False,
    "committed": True,
    "fed": True,
    "embedding": False,
}
META_BYTES = 2 * 4096  # LMDB's two meta pages
JOBS_MAX = 500


class SimulatedCrash(BaseException):
    """The process is gone from here on; only what is on disk counts."""


class SteppedJobs(JobLoop):
    """The shard's jobs, each run when `step` is awaited. Ids they make come from the seed of the
    simulation.
    """

    def start(self, owns: Callable[[int], bool]) -> None:
        with self._parts.store.snapshot() as snapshot:
            self.add(jobs.unfinished(snapshot, filter(owns, snapshot.slots())))

    async def step(self) -> bool:
        """Run the most overdue job; False when none is due."""
        if not self._heap or self._heap[0][0] > self._parts.now_ms():
            return False
        due = heapq.heappop(self._heap)
        await self._run_one(due.slot, due.tenant, due.job_id, due.trace)
        return True


class MortalShard(Shard):
    """A shard on the simulation's clock, whose writes may be its last."""

    def __init__(self, world: World, *arguments: Any):
        super().__init__(*arguments)
        self._world = world
        self._dies_when_fed = False

    async def open(self, *, create: bool) -> None:
        with patch.object(runtime.shard.shard, "JobLoop", SteppedJobs):
            await super().open(create=create)
        self._commit, self._learn = self.store.write, self._writer.feed
        self.store.write, self._writer.feed = self._write_or_die, self._feed_or_die
        # Turns go by measured time; here what comes together is one group, in the order it came.
        self._submit = self._writer.submit
        self._writer.submit = self._submit_in_order  # type: ignore[method-assign]

    async def _submit_in_order(
        self, work: Any, label: str, ended: Any = None, account: Any = None, joint: Any = None
    ) -> Reply:
        return await self._submit(work, label, ended, "all", joint)

    def _now_ms(self) -> int:
        return self._world.now_ms

    def _write_or_die(self, work: Callable[[Transaction], Any]) -> Committed:
        step = self._world.step_of_write()
        if step == "before":
            self._world.die()
        if step == "inside":
            return self._commit(lambda transaction: (work(transaction), self._world.die()))
        metas = self.store.data_file.read_bytes()[:META_BYTES] if step == "torn" else None
        committed = self._commit(work)
        if step == "torn":
            self._world.die(metas)
        if step == "committed":
            self._world.die()
        self._dies_when_fed = step == "fed"
        return committed

    def _feed_or_die(self, committed: Committed) -> None:
        self._learn(committed)
        if self._dies_when_fed:
            self._world.die()


class MortalEmbedder(WordEmbedder):
    """WordEmbedder, during whose work the process may die."""

    def __init__(self, world: World):
        super().__init__()
        self._world = world
        self.asked = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        if self._world.armed == "embedding":
            self._world.die()
        self.asked.set()
        return await super().embed(texts)


class World(ShardHarness):
    """A ShardHarness over a shard that dies and comes back. `crashed` says that the last thing
    asked of it was too much.
    """

    def __init__(self, directory: Path, seed: int, vectors_exact_max: int):
        self._chance = random.Random(f"world {seed}")
        self._root = directory
        self._lives = 0
        self._seeds = 0
        self.settings = Settings.load({**CHEAP, **TIMES})
        self.secrets = Secrets(
            self._chance.randbytes(32),
            self._chance.randbytes(32),
            "mem_op_" + self._chance.randbytes(20).hex(),
        )
        self.registry = serve_app.registry()
        self.now_ms = START_MS
        self.embedder = MortalEmbedder(self)
        self.receivers = RecordingReceivers(self, random.Random(f"ears {seed}"))
        self._models = Models(self.embedder)
        self.arm(None)
        self.crashed = False
        self._held: asyncio.Task | None = None
        self._patches = ExitStack()
        self._patches.enter_context(
            patch.object(job_loop, "os", SimpleNamespace(urandom=self._chance.randbytes))
        )
        self._patches.enter_context(patch.object(job_loop, "random", self._chance))
        # Usage is written when an operation asks for it, not by the clock.
        self._patches.enter_context(
            patch.object(usage_buffer, "USAGE_WRITTEN_AFTER_SECONDS", 10**6)
        )
        self._patches.enter_context(patch.object(MEMORY_VECTORS, "exact_max", vectors_exact_max))
        # Files of vectors and records are written at checkpoints, and by no thread at its own time;
        # what changed since is told by four ordinals.
        self._patches.enter_context(patch.object(vectors_space, "KEPT_MIN", 4))
        self._patches.enter_context(patch.object(MEMORY_FEATURES, "kept_min", 4))
        self._patches.enter_context(patch.object(change_tokens, "RANGE_SHIFT", 2))
        self._patches.enter_context(patch.object(MEMORY_TEXT, "held_min", 3))
        self._patches.enter_context(patch.object(Builder, "want"))
        self._runner = asyncio.Runner()
        self._directory = directory / "0"
        self.open(create=True)

    def open(self, *, create: bool) -> None:
        identity = Identity("", 0, 1, 4096, 1)
        self.shard = MortalShard(
            self,
            self._directory,
            self.registry,
            self.settings,
            self._models,
            identity,
            self.secrets,
        )
        self.shard.environment = replace(self.shard.environment, outbound=self.receivers)
        self._runner.run(self.shard.open(create=create))

    def close(self) -> None:
        self._runner.run(self.shard.close())
        self._runner.close()
        self._patches.close()

    # --- asking -----------------------------------------------------------------------------------

    def ask(self, calls: list[Call | ApiError]) -> list[Answer | None]:
        """The answers; None for a call that the crash left without one. Writes among several calls
        share one commit.
        """
        return [
            None if reply is None else answer_of(reply)
            for reply in self._runner.run(self._ask(calls))
        ]

    async def _ask(self, calls: list[Call | ApiError]) -> list[Reply | None]:
        if len(calls) == 1:
            replies = await asyncio.gather(self._reply(calls[0]), return_exceptions=True)
        else:
            replies = await self._ask_at_once(calls)
        for reply in replies:
            if isinstance(reply, BaseException) and not (
                self.crashed and isinstance(reply, StorageFailed | SimulatedCrash)
            ):
                raise reply
        return [None if isinstance(reply, BaseException) else reply for reply in replies]

    async def _ask_at_once(self, calls: list[Call | ApiError]) -> list[Any]:
        """Hold the writer until every call has reached it, so that they form one group whatever the
        threads do.
        """
        begun, go_on = threading.Event(), threading.Event()

        def plug(transaction: Transaction) -> WriteOutcome:
            begun.set()
            go_on.wait()
            return WriteOutcome(Reply())

        armed, self.armed = self.armed, None
        plugged = asyncio.create_task(self.shard.parts.writer.submit(plug, "plug"))
        await asyncio.to_thread(begun.wait)
        self.armed = armed
        asked = [asyncio.create_task(self._reply(call)) for call in calls]
        while sum(task.done() for task in asked) + self.shard.parts.writer.depth < len(asked) + 1:
            await asyncio.sleep(0)
        go_on.set()
        await plugged
        return await asyncio.gather(*asked, return_exceptions=True)

    # --- jobs -------------------------------------------------------------------------------------

    def run_jobs(self, count: int) -> None:
        """Run at most so many due jobs; a crash ends it."""
        self._runner.run(self._run_jobs(count))

    async def _run_jobs(self, count: int) -> None:
        try:
            for _ in range(count):
                if not await self.shard.jobs.step():
                    return
        except (SimulatedCrash, StorageFailed):
            if not self.crashed:
                raise

    def hold_job(self) -> None:
        """Run due jobs up to the first one that embeds, which then waits in its embedding until
        `release_job`.
        """
        self.embedder.late = True
        self.embedder.asked.clear()
        self._runner.run(self._hold_job())

    async def _hold_job(self) -> None:
        self._held = asyncio.create_task(self._run_jobs(JOBS_MAX))
        asked = asyncio.create_task(self.embedder.asked.wait())
        await asyncio.wait([self._held, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()

    def release_job(self) -> None:
        held, self._held = self._held, None
        self.embedder.late = False
        if held is not None:
            self._runner.run(_ended(held))

    # --- dying ------------------------------------------------------------------------------------

    def step_of_write(self) -> str | None:
        """The step at which the write that begins now is to end."""
        if self.armed is None or self.armed == "embedding":
            return None
        self.writes_left -= 1
        return self.armed if self.writes_left == 0 else None

    def arm(self, step: str | None, writes: int = 1) -> None:
        """Die at this step of the write so many writes from now; None takes it back."""
        self.armed, self.writes_left = step, writes

    def die(self, metas: bytes | None = None) -> None:
        """Keep the files as they are now, with the given meta pages, and end."""
        self._lives += 1
        copy = self._root / str(self._lives)
        shutil.copytree(self._directory, copy, ignore=shutil.ignore_patterns(LOCK_FILE, "lock.mdb"))
        if metas is not None:
            with (copy / DATA_FILE).open("r+b") as file:
                file.write(metas)
        self.armed, self.crashed = None, True
        raise SimulatedCrash

    def recover(self) -> None:
        """A new shard on what the last one left."""
        if self._held is not None:
            self._held.cancel()
            self._runner.run(_ended(self._held))
            self._held = None
        self.embedder.late = False
        self._runner.run(
            self.shard.close()
        )  # it may do as it likes: nobody opens its directory again
        shutil.rmtree(self._directory)
        self._directory = self._root / str(self._lives)
        self.crashed = False
        self.open(create=False)

    def checkpoint(self) -> None:
        self._runner.run(self.shard.checkpoint())


async def _ended(task: asyncio.Task) -> None:
    await asyncio.gather(task, return_exceptions=True)
