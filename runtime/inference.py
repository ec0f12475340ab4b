"""Models the service calls, behind small protocols: the embedder, which turns text into a vector, the language model, a reranker.

    Embedder
    ├── MiniLmEmbedder   the embedded model, on one worker thread of this process
    └── OpenAiEmbedder   runtime/openai_embedder.py; what both share is in runtime/embedding.py
    LanguageModel        runtime/language_model.py
    Reranker             runtime/reranker.py

Owns waiting: how many texts may queue, how they share a run of the model, how long a caller waits, which vectors are
remembered, which failures are tried again. Does not know what a text is for.

What holds for each embedder:
- Rows are unit vectors in the order of the texts, and a text's vector does not depend on the texts beside it.
- `space` names the model and its width. Vectors of different spaces must never be compared.
- Whatever goes wrong below is InferenceUnavailable: down, late, overloaded, or an answer that makes no sense. Callers go
  on without vectors.
- An embedder belongs to the event loop that uses it; close it in that loop.

A text longer than the model reads (256 tokens for MiniLM; 8,192 characters for any) is embedded by its beginning alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from runtime import limits, minilm, minilm_weights
from runtime.embedding import Asked, BoundedEmbedder, InferenceUnavailable, Reading
from runtime.language_model import LanguageModel, load_language_model
from runtime.minilm_words import Spans, word_vectors
from runtime.openai_embedder import OpenAiEmbedder
from runtime.reading_models import Recogniser, Transcriber, load_recogniser, load_transcriber
from runtime.reranker import Reranker, load_reranker

if TYPE_CHECKING:
    from runtime.settings import Settings


class Embedder(Protocol):
    """Text to unit vectors of one space.

    space  the model and its width, such as "all-MiniLM-L6-v2/384"
    width  numbers per vector

    A remote embedder learns both from its first answer; before that, asking raises InferenceUnavailable.
    """

    @property
    def space(self) -> str: ...

    @property
    def width(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        """n texts -> (n, width) float32 unit rows; none -> (0, width). Raises InferenceUnavailable."""
        ...

    async def read(self, texts: Sequence[str], words: Sequence[Spans]) -> list[Reading]:
        """As embed, and for each text the vectors of some of its words, given by their code points (start, end).

        An embedder whose model shows no tokens gives None for the words. Raises InferenceUnavailable.
        """
        ...

    def knows(self, word: str) -> bool:
        """Whether the model has met this word as one; of a remote model nobody can tell, and it counts as known."""
        ...

    def give_way(self, reads_wait: bool) -> None:
        """Told, from any thread, whether reads that are ready wait for their turn: what is embedded meanwhile would only wait beside
        them, so a model of this machine may rather gather texts for a fuller run."""
        ...

    def meanwhile(self, call: Callable[[], object]) -> None:
        """Call this once, from any thread, when the model is busy with what is asked next: what it starts will not stand in its way.

        Only the last one counts, so that none is kept where nothing more is asked: whoever told an earlier one may never be called.
        """
        ...

    def stats(self) -> dict[str, float]:
        """Figures for metrics; counters end in `_total`."""
        ...

    async def close(self) -> None:
        """Give up what still waits and free what is held. May be called twice."""
        ...


@dataclass(slots=True)
class Models:
    """Every model this process was given. A gateway has no embedder: what needs one is asked of a shard."""

    embedder: Embedder | None
    language_model: LanguageModel | None = None
    transcriber: Transcriber | None = None
    recogniser: Recogniser | None = None
    reranker: Reranker | None = None

    async def close(self) -> None:
        for model in (self.embedder, self.language_model, self.reranker):
            if model is not None:
                await model.close()


def load_models(settings: Settings, data_dir: Path) -> Models:
    """What the settings ask for. Blocks: seconds the first time in a data directory, a tenth of a second later.

    Raises minilm_weights.ModelUnusable when the embedded model is not installed or not itself.
    """
    chosen = settings.embedder
    if chosen.backend == "openai":
        # The settings refuse a backend "openai" without these two.
        assert chosen.base_url and chosen.model
        return Models(
            OpenAiEmbedder(
                chosen.base_url,
                chosen.api_key.get_secret_value() if chosen.api_key else None,
                chosen.model,
                timeout_seconds=chosen.timeout_seconds,
                queue_max=chosen.queue_max,
                cache_entries=chosen.cache_entries,
            ),
            load_language_model(settings),
            transcriber=load_transcriber(settings),
            recogniser=load_recogniser(settings),
            reranker=load_reranker(settings),
        )
    return Models(
        MiniLmEmbedder(
            data_dir / "models",
            chosen.model_path,
            threads=chosen.threads or max(1, (os.cpu_count() or 1) // 2),
            timeout_seconds=chosen.timeout_seconds,
            queue_max=chosen.queue_max,
            cache_entries=chosen.cache_entries,
        ),
        load_language_model(settings),
        transcriber=load_transcriber(settings),
        recogniser=load_recogniser(settings),
        reranker=load_reranker(settings),
    )


@dataclass(slots=True, eq=False)
class _Request:
    """One caller's texts on their way through the worker. `left` counts the readings still to be filled in."""

    texts: list[Asked]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[Reading]]
    readings: list[Reading | None]
    left: int
    taken: int = 0
    failed: bool = False

    def is_wanted(self) -> bool:
        return not self.failed and not self.answer.cancelled()


@dataclass(slots=True)
class _Item:
    """One text of a request: where its reading goes, its tokens, and the words wanted."""

    request: _Request
    row: int
    tokens: minilm.Tokens
    words: Spans | None

    @property
    def length(self) -> int:
        return len(self.tokens.ids)


class MiniLmEmbedder(BoundedEmbedder):
    """The embedded model on a worker thread that batches whatever waits.

    Two queues. Small requests (queries, single writes) go next, so a query waits for at most one run of a large request;
    after a turn of small ones a run of the large ones follows, so neither starves. While reads wait for their turn, the next run waits
    too, for moments: the model's weights are fetched from memory for each run, whatever it holds. Large requests are taken in rounds,
    sorted by length and cut into runs of like length: little padding, and a run fits the processor's cache.
    """

    def __init__(
        self,
        model_directory: Path,
        model_path: Path | None = None,
        *,
        threads: int = 1,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
    ):
        """Blocks while the model loads, or is built into `model_directory` the first time. Raises minilm_weights.ModelUnusable."""
        super().__init__(timeout_seconds=timeout_seconds, queue_max=queue_max, cache_entries=cache_entries)
        self._model = minilm.MiniLm.load(model_directory, model_path, threads=threads)
        self._vocabulary = self._model.vocabulary().keys()
        self._run_tokens_max = limits.EMBEDDER_RUN_TOKENS_PER_THREAD_MAX * threads
        self._small: deque[_Request] = deque()
        self._large: deque[_Request] = deque()
        self._runs: deque[list[_Item]] = deque()
        self._arrived = threading.Condition()
        self._gives_way = False
        self._meanwhile: Callable[[], object] | None = None
        self._worker = threading.Thread(target=self._work, name="embedder", daemon=True)
        self._worker.start()

    @property
    def space(self) -> str:
        return f"{minilm_weights.NAME}/{minilm_weights.WIDTH}"

    def knows(self, word: str) -> bool:
        return word.lower() in self._vocabulary

    @property
    def width(self) -> int:
        return minilm_weights.WIDTH

    def give_way(self, reads_wait: bool) -> None:
        with self._arrived:
            self._gives_way = reads_wait
            if not reads_wait:
                self._arrived.notify()

    def meanwhile(self, call: Callable[[], object]) -> None:
        with self._arrived:
            self._meanwhile = call

    async def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        await asyncio.to_thread(self._worker.join)

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Reading]:
        loop = asyncio.get_running_loop()
        request = _Request(asked, loop, loop.create_future(), [None] * len(asked), left=len(asked))
        with self._arrived:
            (self._small if len(asked) <= limits.EMBEDDER_SMALL_REQUEST_TEXTS_MAX else self._large).append(request)
            self._arrived.notify()
        return await request.answer

    def _work(self) -> None:
        """The worker thread, until close."""
        small_went_last = False
        while True:
            with self._arrived:
                while not (self._closed or self._small or self._large or self._runs):
                    self._arrived.wait()
                self._arrived.wait_for(lambda: self._closed or not self._gives_way, limits.EMBEDDER_GIVES_WAY_SECONDS_MAX)
                if self._closed:
                    break
                large_waits = bool(self._large or self._runs)
                small_goes = bool(self._small) and not (small_went_last and large_waits)
                if small_goes:
                    taken = _take(self._small, limits.EMBEDDER_SMALL_TURN_TEXTS_MAX)
                else:
                    taken = [] if self._runs else _take(self._large, limits.EMBEDDER_ROUND_TEXTS_MAX)
            small_went_last = small_goes
            runs = self._cut(taken)
            if not small_goes:
                self._runs.extend(runs)
                runs = [self._runs.popleft()] if self._runs else []
            for run in runs:
                self._run(run)
        waiting = {id(r): r for r in [*self._small, *self._large, *(item.request for run in self._runs for item in run)]}
        self._fail(waiting.values(), "the embedder is closed")

    def _cut(self, taken: list[tuple[_Request, range]]) -> list[list[_Item]]:
        """Tokenize, sort by length, and cut where a run would grow too large or its padding too wasteful."""
        items = []
        for request, rows in taken:
            if not request.is_wanted():
                continue
            try:
                asked = request.texts[rows.start : rows.stop]
                tokens = self._model.encode([text for text, _ in asked])
            except Exception as error:  # tokenizers, too, raises bare Exceptions; the worker must outlive them
                self._fail([request], f"a text could not be tokenized: {error}")
                continue
            items += [_Item(request, row, each, words) for row, each, (_, words) in zip(rows, tokens, asked, strict=True)]
        items.sort(key=lambda item: item.length)
        runs: list[list[_Item]] = []
        for item in items:
            length = item.length
            run = runs[-1] if runs else []
            if run and length * (len(run) + 1) <= self._run_tokens_max and length <= 1.25 * run[0].length + 4:
                run.append(item)
            else:
                runs.append([item])
        return runs

    def _run(self, run: list[_Item]) -> None:
        """One run of the model; whoever has all their rows now gets them."""
        run = [item for item in run if item.request.is_wanted()]
        if not run:
            return
        with self._arrived:
            call, self._meanwhile = self._meanwhile, None
        if call is not None:
            call()
        try:
            readings = self._readings(run)
        except Exception as error:  # onnxruntime raises bare Exceptions; each goes to those who wait for this run
            self._fail({id(item.request): item.request for item in run}.values(), f"the embedding model failed: {error}")
            return
        done = []
        for item, reading in zip(run, readings, strict=True):
            item.request.readings[item.row] = reading
            item.request.left -= 1
            if not item.request.left:
                done.append(item.request)
        _tell(done, lambda request: request.answer.set_result(request.readings))

    def _readings(self, run: list[_Item]) -> list[Reading]:
        texts = [item.tokens for item in run]
        if all(item.words is None for item in run):
            return [Reading(vector, None) for vector in self._model.embed(texts)]
        vectors, states = self._model.read(texts)
        return [
            Reading(vector, None if item.words is None else word_vectors(hidden, item.tokens.offsets, item.words))
            for item, vector, hidden in zip(run, vectors, states, strict=True)
        ]

    def _fail(self, requests: Iterable[_Request], reason: str) -> None:
        failed = list(requests)
        for request in failed:
            request.failed = True
        _tell(failed, lambda request: request.answer.set_exception(InferenceUnavailable(reason)))


def _take(queue: deque[_Request], texts_max: int) -> list[tuple[_Request, range]]:
    """Up to `texts_max` texts from the front of a queue; a request that is not through stays there."""
    taken = []
    while queue and texts_max > 0:
        request = queue[0]
        rows = range(request.taken, min(request.taken + texts_max, len(request.texts)))
        taken.append((request, rows))
        texts_max -= len(rows)
        request.taken = rows.stop
        if request.taken == len(request.texts):
            queue.popleft()
    return taken


def _tell(requests: Sequence[_Request], deliver: Callable[[_Request], None]) -> None:
    """From the worker: resolve the waiting futures, in one call per event loop; a caller that gave up is passed over."""
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
