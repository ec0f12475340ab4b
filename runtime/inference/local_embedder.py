"""A model of this installation's own, and the worker that runs it: a thread that batches what
waits, of this process or of another one that serves all shards (runtime/cluster/shared_model.py).

Each request's texts are tokenized, sorted by length and cut into runs of the model; a run's vectors
go to whoever has all of theirs by then. A caller that gave up is passed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from tokenizers import Encoding, Tokenizer

from runtime import limits
from runtime.inference.embedding import (
    NO_PREFIXES,
    Asked,
    BoundedEmbedder,
    Embedding,
    InferenceUnavailable,
    Prefixes,
    Spans,
    asking_account,
    busy_callback,
)
from runtime.inference.language.parse import ToRead
from runtime.long_work import cores
from runtime.processor_turns import come_soon
from runtime.turns import InTurns, account_in_turn


class Tokens(NamedTuple):
    """A text as a model takes it: ids, the model's own marks included, where each of the others
    stands, in code points, and the text itself.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    text: str


def tokens_of(tokenizer: Tokenizer, text: str) -> Encoding:
    """What a tokenizer makes of a text; of a long one without the interpreter's lock."""
    if len(text) <= limits.TOKENIZED_AT_ONCE_CHARS_MAX:
        return tokenizer.encode(text)
    # A batch of one: several would spread over every core.
    return tokenizer.encode_batch([text])[0]


@dataclass(frozen=True, slots=True)
class Pause:
    """What a run is given: called between two of its parts, it goes on when that returns; another
    run may be made in it. work: None where nothing is to be done then, and the run need not come in
    parts; threads: how many may share the run.
    """

    work: Callable[[], object] | None = None
    threads: int = 1

    def __call__(self) -> None:
        if self.work is not None:
            self.work()


class LocalModel(Protocol):
    """A model that runs in this process. Calls block. pause: of a long run."""

    @property
    def space(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def run_tokens_max(self) -> int:
        """Tokens of the largest run that is worth its while, padding included."""
        ...

    @property
    def threads_max(self) -> int:
        """How many threads may share a long run; 1 where it is not told by Pause.threads."""
        ...

    @property
    def on_processor(self) -> bool:
        """Whether runs take the processor's time, which padding is a waste of."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """The texts' tokens, as many as the model reads; the rest of a longer text is left out."""
        ...

    def embed(self, texts: Sequence[Tokens], pause: Pause | None = None) -> np.ndarray:
        """n ≥ 1 texts -> (n, width) float32 unit rows."""
        ...

    def embed_with_words(
        self,
        texts: Sequence[Tokens],
        words: Sequence[Spans | ToRead | None],
        pause: Pause | None = None,
    ) -> list[Embedding]:
        """As embed, with the vectors of these words of each text, where the model has any, or with
        what it reads of them.
        """
        ...


class Caller(NamedTuple):
    """Who wants texts embedded. account: whose turn it costs; waits: whether somebody waits for the
    answer, rather than a job.
    """

    account: Hashable
    waits: bool


class Worker(Protocol):
    """What runs a model for an embedder, wherever."""

    async def compute(
        self, asked: list[Asked], caller: Caller, on_run: Callable[[], object] | None
    ) -> list[Embedding]:
        """n ≥ 1 texts with their words -> n embeddings. on_run: called, from any thread, when a
        run of the model has some of them. Raises InferenceUnavailable.
        """
        ...

    def yield_to_reads(self, reads_wait: bool) -> None:
        """As Embedder.yield_to_reads."""
        ...

    async def close(self) -> None:
        """Give up what still waits. May be called twice."""
        ...


class LocalEmbedder(BoundedEmbedder):
    """A model of the installation's own, behind a worker."""

    def __init__(
        self,
        worker: Worker,
        *,
        space: str,
        width: int,
        timeout_seconds: float,
        queue_max: int,
        cache_entries: int,
        prefixes: Prefixes = NO_PREFIXES,
    ):
        super().__init__(
            timeout_seconds=timeout_seconds,
            queue_max=queue_max,
            cache_entries=cache_entries,
            prefixes=prefixes,
        )
        self._worker = worker
        self._space, self._width = space, width

    @property
    def space(self) -> str:
        return self._space

    @property
    def width(self) -> int:
        return self._width

    def yield_to_reads(self, reads_wait: bool) -> None:
        self._worker.yield_to_reads(reads_wait)

    async def close(self) -> None:
        self._closed = True
        await self._worker.close()

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Embedding]:
        caller = Caller(account_in_turn(), waits=asking_account() is not None)
        return await self._worker.compute(asked, caller, busy_callback())


@dataclass(slots=True, eq=False)
class _Request:
    """One caller's texts on their way through the worker. `left` counts the embeddings still to be
    filled in; on_run is called when a run has its texts.
    """

    texts: list[Asked]
    caller: Caller
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[Embedding]]
    embeddings: dict[int, Embedding]
    left: int
    on_run: Callable[[], object] | None
    taken: int = 0
    failed: bool = False

    def in_order(self) -> list[Embedding]:
        """The texts' embeddings, when all are there."""
        return [self.embeddings[row] for row in range(len(self.texts))]

    def is_small(self) -> bool:
        return (
            self.caller.waits
            and len(self.texts) <= limits.EMBEDDER_SMALL_REQUEST_TEXTS_MAX
            and sum(len(text) for text, _ in self.texts) <= limits.EMBEDDER_SMALL_REQUEST_CHARS_MAX
        )

    def is_wanted(self) -> bool:
        return not self.failed and not self.answer.cancelled()


@dataclass(slots=True)
class _Item:
    """One text of a request: where its embedding goes, its tokens, and the words wanted."""

    request: _Request
    row: int
    tokens: Tokens
    words: Spans | ToRead | None

    @property
    def length(self) -> int:
        return len(self.tokens.ids)


class ModelWorker:
    """A model of this process on a thread that batches whatever waits.

    Two queues, in which accounts take turns by the tokens that they have had read. Small requests
    that somebody waits for (queries, short writes) go next: a run of the others stops for them
    between two of its parts, so a query waits for milliseconds; where they would go on and on, the
    others have a share of the time all the same. While reads wait for their turn, the next run
    waits too, for moments: the model's weights are fetched from memory for each run, whatever it
    holds. What is taken is sorted by length and cut into runs of like length: little padding, and a
    run is as large as the model likes. A run of the others is shared by threads for the cores that
    nobody else has work for.
    """

    def __init__(self, model: LocalModel):
        self._model = model
        self._small: InTurns[_Request] = InTurns()
        self._large: InTurns[_Request] = InTurns()
        self._runs: deque[list[_Item]] = deque()
        self._arrived = threading.Condition()
        self._closed = self._yields = False
        self._thread = threading.Thread(target=self._work, name="embedder", daemon=True)
        self._thread.start()

    def yield_to_reads(self, reads_wait: bool) -> None:
        with self._arrived:
            self._yields = reads_wait
            if not reads_wait:
                self._arrived.notify()

    async def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        await asyncio.to_thread(self._thread.join)

    async def compute(
        self, asked: list[Asked], caller: Caller, on_run: Callable[[], object] | None
    ) -> list[Embedding]:
        loop = asyncio.get_running_loop()
        request = _Request(
            asked, caller, loop, loop.create_future(), {}, left=len(asked), on_run=on_run
        )
        with self._arrived:
            if self._closed:
                raise InferenceUnavailable("the embedder is closed")
            queue = self._small if request.is_small() else self._large
            queue.put(caller.account, request)
            self._arrived.notify()
        return await request.answer

    def _work(self) -> None:
        """The worker thread, until close."""
        come_soon()
        while True:
            with self._arrived:
                while not (self._closed or self._small or self._large or self._runs):
                    self._arrived.wait()
                self._arrived.wait_for(
                    lambda: self._closed or not self._yields,
                    limits.EMBEDDER_YIELDS_SECONDS_MAX,
                )
                if self._closed:
                    break
            self._run_small()
            if not self._runs:
                threads = 1 + min(self._model.threads_max - 1, cores().spare())
                self._runs.extend(
                    self._taken(self._large, limits.EMBEDDER_ROUND_TEXTS_MAX, threads)
                )
            if self._runs:
                self._run_large()
        runs = (item.request for run in self._runs for item in run)
        waiting = {id(each): each for each in (*self._small, *self._large, *runs)}
        self._fail(waiting.values(), "the embedder is closed")

    def _run_large(self) -> None:
        """The next run of the others, unless no core comes for it: then it is tried again soon."""
        if not self._model.on_processor:
            self._run(self._runs.popleft(), self._pause(1))
            return
        account = self._runs[0][0].request.caller.account
        if not cores().take(account, limits.EMBEDDER_CORE_SECONDS_MAX):
            return
        lent = 0
        try:
            # What a job wants read is in no hurry.
            is_waited_for = any(item.request.caller.waits for item in self._runs[0])
            if is_waited_for and not (self._small or self._yields):
                lent = cores().lend(self._model.threads_max - 1)
            self._run(self._runs.popleft(), self._pause(1 + lent))
        finally:
            cores().take_back(lent)
            cores().leave()

    def _run_small(self) -> None:
        for run in self._taken(self._small, limits.EMBEDDER_SMALL_TURN_TEXTS_MAX):
            most = min(self._model.threads_max, limits.EMBEDDER_TEXT_THREADS_MAX) - 1
            # This thread has one of the cores that are spare, though it takes none.
            lent = cores().lend(most, spared=1) if self._alone(run) else 0
            try:
                self._run(run, Pause(threads=1 + lent) if lent else None)
            finally:
                cores().take_back(lent)

    def _alone(self, run: list[_Item]) -> bool:
        """Whether one text is all that somebody waits for, and all that happens for him."""
        return len(run) == 1 and not self._small and run[0].request.on_run is None

    def _pause(self, threads: int) -> Pause:
        """What a run of the others is given, for so many threads: between its parts small requests
        go, as long as that leaves it its share of the time.
        """
        began, for_small = time.monotonic(), 0.0

        def pause() -> None:
            nonlocal for_small
            now = time.monotonic()
            if self._small and for_small <= limits.EMBEDDER_SMALL_SHARE_MAX * (now - began):
                self._run_small()
                for_small += time.monotonic() - now

        return Pause(pause, threads)

    def _taken(
        self, queue: InTurns[_Request], texts_max: int, threads: int = 1
    ) -> list[list[_Item]]:
        """The next runs of a queue, each for so many threads."""
        with self._arrived:
            taken = _take(queue, texts_max)
        items = self._items(taken)
        with self._arrived:
            for item in items:
                queue.charge(item.request.caller.account, item.length)
        return self._cut(items, self._model.run_tokens_max * threads)

    def _items(self, taken: list[tuple[_Request, range]]) -> list[_Item]:
        """Tokenize what was taken."""
        items: list[_Item] = []
        for request, rows in taken:
            try:
                asked = request.texts[rows.start : rows.stop]
                tokens = self._model.encode([text for text, _ in asked])
            except (
                Exception
            ) as error:  # tokenizers, too, raises bare Exceptions; the worker must outlive them
                self._fail([request], f"a text could not be tokenized: {error}")
                continue
            items += [
                _Item(request, row, each, words)
                for row, each, (_, words) in zip(rows, tokens, asked, strict=True)
            ]
        return items

    def _cut(self, items: list[_Item], tokens_max: int) -> list[list[_Item]]:
        """Sort by length, and cut where a run would grow too large or its padding too wasteful."""
        items.sort(key=lambda item: item.length)
        runs: list[list[_Item]] = []
        for item in items:
            length = item.length
            run = runs[-1] if runs else []
            if (
                run
                and length * (len(run) + 1) <= tokens_max
                and (length <= 1.25 * run[0].length + 4 or not self._model.on_processor)
            ):
                run.append(item)
            else:
                runs.append([item])
        return runs

    def _run(self, run: list[_Item], pause: Pause | None = None) -> None:
        """One run of the model; whoever has all their rows now gets them."""
        run = [item for item in run if item.request.is_wanted()]
        if not run:
            return
        for item in run:
            if item.request.on_run is not None:
                item.request.on_run()
        try:
            embeddings = self._embeddings(run, pause)
        except (
            Exception
        ) as error:  # onnxruntime raises bare Exceptions; each goes to those who wait for this run
            self._fail(
                {id(item.request): item.request for item in run}.values(),
                f"the embedding model failed: {error}",
            )
            return
        done = []
        for item, embedding in zip(run, embeddings, strict=True):
            item.request.embeddings[item.row] = embedding
            item.request.left -= 1
            if not item.request.left:
                done.append(item.request)
        _tell(done, lambda request: request.answer.set_result(request.in_order()))

    def _embeddings(self, run: list[_Item], pause: Pause | None) -> list[Embedding]:
        texts = [item.tokens for item in run]
        if all(item.words is None for item in run):
            return [Embedding(vector, None) for vector in self._model.embed(texts, pause)]
        return self._model.embed_with_words(texts, [item.words for item in run], pause)

    def _fail(self, requests: Iterable[_Request], reason: str) -> None:
        failed = list(requests)
        for request in failed:
            request.failed = True
        _tell(failed, lambda request: request.answer.set_exception(InferenceUnavailable(reason)))


def _take(queue: InTurns[_Request], texts_max: int) -> list[tuple[_Request, range]]:
    """Take up to `texts_max` texts, as long as one round may be, in turns from a queue; a request
    that is not through waits for its account's next turn, behind its others.
    """
    taken, chars_left = [], limits.EMBEDDER_ROUND_CHARS_MAX
    while texts_max > 0 and chars_left > 0 and (request := queue.take()) is not None:
        if not request.is_wanted():
            continue
        first = request.taken
        last = min(first + min(texts_max, limits.EMBEDDER_TURN_TEXTS_MAX), len(request.texts))
        while request.taken < last and chars_left > 0:
            chars_left -= len(request.texts[request.taken][0])
            request.taken += 1
        taken.append((request, range(first, request.taken)))
        texts_max -= request.taken - first
        if request.taken < len(request.texts):
            queue.put(request.caller.account, request)
    return taken


def _tell(requests: Sequence[_Request], deliver: Callable[[_Request], None]) -> None:
    """Resolve, from the worker, the waiting futures, in one call per event loop; a caller that gave
    up is passed over.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[_Request]] = {}
    for request in requests:
        by_loop.setdefault(request.loop, []).append(request)

    def resolve(waiting: list[_Request]) -> None:
        for request in waiting:
            if not request.answer.done():
                deliver(request)

    for loop, waiting in by_loop.items():
        # A closed loop refuses the call, and nobody is left in it to wait.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(resolve, waiting)
