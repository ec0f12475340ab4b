"""Who waits for the model: short questions between two parts of a long run, accounts in turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.account_work import Work, account_work
from runtime.inference import Embedding, local_embedder, on_busy, remembered_for
from runtime.inference.local_embedder import LocalEmbedder, ModelWorker, Pause, Tokens
from runtime.long_work import Cores
from runtime.turns import in_turn_of

WAIT_SECONDS_MAX = 60
PARTS = 6  # of a long run


class SlowModel:
    """Reads a word as a token. It notes the texts of each run as they are through, and stops before
    each part of a long one while it is held.
    """

    space, width = "slow/2", 2
    run_tokens_max, threads_max, on_processor = 512, 3, True

    def __init__(self) -> None:
        self.runs: list[list[int]] = []
        self.shared_by: list[int] = []  # of each long run
        self.threads: list[int] = []  # of each other one
        self.at_part = threading.Semaphore(0)
        self.may_go = threading.Semaphore(0)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        return [Tokens(list(range(len(text.split()))), [], text) for text in texts]

    def embed(self, texts: Sequence[Tokens], pause: Pause | None = None) -> np.ndarray:
        is_long = pause is not None and pause.work is not None
        for _ in range(PARTS if is_long else 0):
            self.at_part.release()
            assert self.may_go.acquire(timeout=WAIT_SECONDS_MAX)
            assert pause is not None
            pause()
        self.runs.append([len(text.ids) for text in texts])
        (self.shared_by if is_long else self.threads).append(1 if pause is None else pause.threads)
        return np.ones((len(texts), 2), np.float32)

    def embed_with_words(
        self, texts: Sequence[Tokens], words: Sequence[Any], pause: Pause | None = None
    ) -> list[Embedding]:
        return [Embedding(vector, None) for vector in self.embed(texts, pause)]


class Waiting:
    """A slow model behind a queue, and the requests that wait for it."""

    def __init__(self) -> None:
        self.model = SlowModel()
        self.embedder = LocalEmbedderOf(self.model)

    async def begin_long(
        self, account: str, words: int, *, is_job: bool = True
    ) -> asyncio.Task[np.ndarray]:
        """A long text of this account, whose run has come to its first part."""
        with in_turn_of(account) if is_job else remembered_for(account):
            begun = asyncio.create_task(self.embedder.embed(["x " * words]))
        assert await asyncio.to_thread(self.model.at_part.acquire, timeout=WAIT_SECONDS_MAX)
        return begun

    async def ask(self, account: str, words: int) -> asyncio.Task[np.ndarray]:
        """A question of this account, in the queue."""
        with remembered_for(account):
            asked = asyncio.create_task(self.embedder.embed([f"{account} " * words]))
        await asyncio.sleep(0)
        return asked

    async def close(self) -> None:
        for _ in range(100):
            self.model.may_go.release()
        await self.embedder.close()


def before(runs: list[list[int]], words: int) -> list[int]:
    """The lengths of texts that were through before one of so many words."""
    through = [length for run in runs for length in run]
    return through[: through.index(words)]


class LocalEmbedderOf(LocalEmbedder):
    def __init__(self, model: SlowModel):
        super().__init__(
            ModelWorker(model),
            space="slow/2",
            width=2,
            timeout_seconds=WAIT_SECONDS_MAX,
            queue_max=10_000,
            cache_entries=0,
        )


def test_a_question_goes_between_two_parts_of_a_long_run() -> None:
    async def work() -> None:
        waiting = Waiting()
        long = await waiting.begin_long("eve", 500)
        asked = await waiting.ask("ada", 3)
        waiting.model.may_go.release()
        await asked
        assert not long.done() and waiting.model.runs == [[3]]
        await waiting.close()
        await asyncio.gather(long, return_exceptions=True)

    asyncio.run(work())


def test_threads_share_a_long_run_that_is_waited_for_unless_others_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        own = Cores(4)
        monkeypatch.setattr(local_embedder, "cores", lambda: own)
        waiting = Waiting()
        for _ in range(3 * PARTS):
            waiting.model.may_go.release()
        await (await waiting.begin_long("eve", 1_500, is_job=False))
        await (await waiting.begin_long("eve", 500))
        for account in ("ada", "eve"):
            own.asked(account)
        await (await waiting.begin_long("eve", 1_500, is_job=False))
        assert waiting.model.shared_by == [3, 1, 2], "of four cores, by a job, of two cores"
        await waiting.close()  # a run's loan ends after its answer is there
        assert own.spare() == 2

    asyncio.run(work())


def test_threads_share_a_text_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(cores: int, *others: str) -> list[int]:
        own = Cores(cores)
        monkeypatch.setattr(local_embedder, "cores", lambda: own)
        waiting = Waiting()
        for account in others:
            own.asked(account)
        await (await waiting.ask("ada", 7))
        with on_busy(lambda: None):  # somebody begins something else meanwhile
            await (await waiting.ask("ada", 8))
        await waiting.close()
        assert own.spare() == (cores // 2 if others else cores)
        return waiting.model.threads

    for cores, others, threads in (
        (1, (), 1),
        (2, (), 2),
        (8, (), 2),
        (2, ("ada", "eve"), 1),
        (4, ("ada", "eve"), 2),
    ):
        assert asyncio.run(work(cores, *others)) == [threads, 1], (cores, others)


def test_what_the_model_is_given_is_the_account_s_work() -> None:
    async def work() -> None:
        waiting, account = Waiting(), (4_095, 77)
        waiting.model.may_go.release(2 * PARTS)
        with remembered_for(account):
            await waiting.embedder.embed(["one two", "three"])
        await waiting.embedder.embed(["nobody's"])
        assert account_work().of(account)[0] == Work(embedded_chars=12)
        await waiting.close()

    asyncio.run(work())


def test_an_account_with_many_questions_waits_behind_itself() -> None:
    async def work() -> None:
        waiting = Waiting()
        long = await waiting.begin_long("joe", 500)
        many = [await waiting.ask("eve", 400) for _ in range(100)]
        few = [await waiting.ask(who, 3) for who in ("ada", "bob")]
        for _ in range(PARTS):
            waiting.model.may_go.release()
        await asyncio.gather(*few)
        assert before(waiting.model.runs, 3).count(400) < 50
        await waiting.close()
        await asyncio.gather(long, *many, return_exceptions=True)

    asyncio.run(work())


def test_an_account_with_many_long_texts_waits_behind_itself() -> None:
    async def work() -> None:
        waiting = Waiting()
        first = await waiting.begin_long("joe", 500)
        many = []
        with in_turn_of("eve"):
            for number in range(100):
                many.append(asyncio.create_task(waiting.embedder.embed(["x " * (300 + number)])))
        await asyncio.sleep(0)
        with in_turn_of("ada"):
            hers = asyncio.create_task(waiting.embedder.embed(["y " * 250]))
        await asyncio.sleep(0)
        for _ in range(1_000):
            waiting.model.may_go.release()
        await hers
        assert len(before(waiting.model.runs, 250)) < 50
        await asyncio.gather(first, *many)
        await waiting.close()

    asyncio.run(work())
