"""Models the service calls, behind small protocols: the embedder, which turns text into a vector, the language model, a reranker.

    Embedder
    ├── MiniLmEmbedder   the embedded model, on one worker thread of this process
    └── OpenAiEmbedder   any OpenAI-compatible /embeddings endpoint
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
import random
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import httpx
import msgspec
import numpy as np

from runtime import limits, minilm
from runtime.language_model import LanguageModel, load_language_model
from runtime.minilm_words import Spans, word_vectors
from runtime.reading_models import Recogniser, Transcriber, load_recogniser, load_transcriber
from runtime.reranker import Reranker, load_reranker

if TYPE_CHECKING:
    from runtime.settings import Settings


class InferenceUnavailable(Exception):
    """A model is down, late or overloaded, or answered nonsense. The message says which, and holds no text and no secret."""


class Reading(NamedTuple):
    """A text as a model read it: its vector (width,), and the vectors of the words asked for, (w, 64) int8, or None."""

    vector: np.ndarray
    words: np.ndarray | None


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

    Raises minilm.ModelUnusable when the embedded model is not installed or not itself.
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


_Asked = tuple[str, tuple[tuple[int, int], ...] | None]  # a text, and the words whose vectors are wanted; None for none


class _RecentReadings:
    """What was read last, least recently used out first. Safe from any thread."""

    def __init__(self, entries_max: int):
        self._entries_max = entries_max
        self._readings: OrderedDict[_Asked, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, asked: Iterable[_Asked]) -> dict[_Asked, Reading]:
        """The remembered ones among these."""
        found = {}
        with self._lock:
            for each in asked:
                if each in self._readings:
                    self._readings.move_to_end(each)
                    found[each] = self._readings[each]
        return found

    def remember(self, asked: Iterable[_Asked], readings: Iterable[Reading]) -> None:
        with self._lock:
            for each, reading in zip(asked, readings, strict=True):
                # A copy: a row is a view, and would keep its whole batch alive.
                self._readings[each] = Reading(reading.vector.copy(), reading.words)
                self._readings.move_to_end(each)
            while len(self._readings) > self._entries_max:
                self._readings.popitem(last=False)


class _BoundedEmbedder(ABC):
    """What both embedders share: clean texts, equal texts once, the cache, the bounded queue, the time limit.

    A request of at most four texts is taken for a query: its texts are looked up in the cache and remembered. Larger ones
    are ingestion, whose texts are rarely asked for again and would only push the queries out.
    """

    def __init__(self, *, timeout_seconds: float, queue_max: int, cache_entries: int):
        self._timeout_seconds = timeout_seconds
        self._queue_max = queue_max
        self._texts_waiting = 0
        self._recent = _RecentReadings(cache_entries)
        self._stats = {"texts_total": 0, "known_total": 0, "refused_total": 0, "late_total": 0, "seconds_total": 0.0}
        self._closed = False

    @property
    @abstractmethod
    def width(self) -> int: ...

    @abstractmethod
    async def _compute(self, asked: list[_Asked], deadline: float) -> list[Reading]:
        """n ≥ 1 distinct texts with their words -> n readings, by `deadline` (seconds of the loop's clock) or not at all."""

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        readings = await self._read([(_cleaned(text), None) for text in texts])
        return np.stack([reading.vector for reading in readings]) if readings else np.empty((0, self.width), np.float32)

    def knows(self, word: str) -> bool:
        return True

    @abstractmethod
    def give_way(self, reads_wait: bool) -> None: ...

    async def read(self, texts: Sequence[str], words: Sequence[Spans]) -> list[Reading]:
        return await self._read([(_cleaned(text), tuple(spans)) for text, spans in zip(texts, words, strict=True)])

    def stats(self) -> dict[str, float]:
        """Texts asked for and those among them that the cache knew, requests refused by a full queue and late ones, seconds that requests
        took, and texts that wait now."""
        return {**self._stats, "waiting": self._texts_waiting}

    async def _read(self, asked: list[_Asked]) -> list[Reading]:
        if self._closed:
            raise InferenceUnavailable("the embedder is closed")
        is_small = len(asked) <= limits.EMBEDDER_SMALL_REQUEST_TEXTS_MAX
        known = self._recent.of(asked) if is_small else {}
        missing = [each for each in dict.fromkeys(asked) if each not in known]
        self._stats["texts_total"] += len(asked)
        self._stats["known_total"] += len(known)
        if missing:
            computed = await self._within_bounds(missing)
            known.update(zip(missing, computed, strict=True))
            if is_small:
                self._recent.remember(missing, computed)
        return [known[each] for each in asked]

    async def _within_bounds(self, texts: list[_Asked]) -> list[Reading]:
        if self._texts_waiting + len(texts) > self._queue_max:
            waiting, more = self._texts_waiting, len(texts)
            self._stats["refused_total"] += 1
            raise InferenceUnavailable(
                f"the embedder's queue is full: {waiting} texts wait and {more} more pass its limit of {self._queue_max}"
            )
        started = asyncio.get_running_loop().time()
        deadline = started + self._timeout_seconds
        self._texts_waiting += len(texts)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._compute(texts, deadline)
        except TimeoutError as error:
            self._stats["late_total"] += 1
            raise InferenceUnavailable(f"the embedder took longer than {self._timeout_seconds:g} seconds") from error
        finally:
            self._texts_waiting -= len(texts)
            self._stats["seconds_total"] += asyncio.get_running_loop().time() - started


def _cleaned(text: str) -> str:
    """The part of a text that is embedded, and can be: half a surrogate pair has no UTF-8 and becomes a question mark."""
    return text[: limits.EMBEDDED_CHARS_MAX].encode("utf-8", "replace").decode()


@dataclass(slots=True, eq=False)
class _Request:
    """One caller's texts on their way through the worker. `left` counts the readings still to be filled in."""

    texts: list[_Asked]
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


class MiniLmEmbedder(_BoundedEmbedder):
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
        """Blocks while the model loads, or is built into `model_directory` the first time. Raises minilm.ModelUnusable."""
        super().__init__(timeout_seconds=timeout_seconds, queue_max=queue_max, cache_entries=cache_entries)
        self._model = minilm.MiniLm.load(model_directory, model_path, threads=threads)
        self._vocabulary = self._model.vocabulary().keys()
        self._run_tokens_max = limits.EMBEDDER_RUN_TOKENS_PER_THREAD_MAX * threads
        self._small: deque[_Request] = deque()
        self._large: deque[_Request] = deque()
        self._runs: deque[list[_Item]] = deque()
        self._arrived = threading.Condition()
        self._gives_way = False
        self._worker = threading.Thread(target=self._work, name="embedder", daemon=True)
        self._worker.start()

    @property
    def space(self) -> str:
        return f"all-MiniLM-L6-v2/{minilm.WIDTH}"

    def knows(self, word: str) -> bool:
        return word.lower() in self._vocabulary

    @property
    def width(self) -> int:
        return minilm.WIDTH

    def give_way(self, reads_wait: bool) -> None:
        with self._arrived:
            self._gives_way = reads_wait
            if not reads_wait:
                self._arrived.notify()

    async def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        await asyncio.to_thread(self._worker.join)

    async def _compute(self, asked: list[_Asked], deadline: float) -> list[Reading]:
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


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Embedding]


_decode_answer = msgspec.json.Decoder(_Answer).decode


class _TryAgain(Exception):
    """An attempt failed in a way that may pass; `after_seconds` is what the endpoint asked for, 0 when it did not."""

    def __init__(self, reason: str, after_seconds: float = 0.0):
        super().__init__(reason)
        self.after_seconds = after_seconds


class OpenAiEmbedder(_BoundedEmbedder):
    """An OpenAI-compatible endpoint: POST {base_url}/embeddings, at most 128 texts a request.

    429, 408, 5xx and broken connections are tried again, four attempts in all, waiting 0.25 s, doubled each time, with
    jitter, or as long as Retry-After says; never past the caller's time limit: a wait that would pass it fails at once.
    Redirects, proxies of the environment and other 4xx are not followed: only the settings say where texts go.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        *,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
    ):
        super().__init__(timeout_seconds=timeout_seconds, queue_max=queue_max, cache_entries=cache_entries)
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model = model
        self._width: int | None = None
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=timeout_seconds,
            limits=httpx.Limits(max_connections=limits.REMOTE_EMBEDDING_CONNECTIONS_MAX),
            trust_env=False,
        )

    @property
    def space(self) -> str:
        return f"{self._model}/{self.width}"

    @property
    def width(self) -> int:
        if self._width is None:
            raise InferenceUnavailable(f"the width of {self._model} is known only after its endpoint's first answer")
        return self._width

    def give_way(self, reads_wait: bool) -> None:
        """It takes none of this machine's time."""

    async def close(self) -> None:
        self._closed = True
        await self._client.aclose()

    async def _compute(self, asked: list[_Asked], deadline: float) -> list[Reading]:
        texts, size = [text for text, _ in asked], limits.REMOTE_EMBEDDING_TEXTS_MAX
        batches = [await self._batch(texts[start : start + size], deadline) for start in range(0, len(texts), size)]
        return [Reading(vector, None) for vectors in batches for vector in vectors]

    async def _batch(self, texts: list[str], deadline: float) -> np.ndarray:
        clock = asyncio.get_running_loop().time
        for attempt in range(1, limits.REMOTE_EMBEDDING_ATTEMPTS_MAX + 1):
            try:
                return self._vectors(await self._post(texts), len(texts))
            except _TryAgain as failure:
                if attempt == limits.REMOTE_EMBEDDING_ATTEMPTS_MAX:
                    raise InferenceUnavailable(f"the embedding endpoint failed {attempt} times: {failure}") from failure
                wait = max(_backoff_seconds(attempt), failure.after_seconds)
                if clock() + wait >= deadline:
                    reason = f"the embedding endpoint failed: {failure}; its next attempt, in {wait:.1f} s, would be past the time limit"
                    raise InferenceUnavailable(reason) from failure
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _post(self, texts: list[str]) -> bytes:
        """One attempt -> the body of a 200. Raises _TryAgain or InferenceUnavailable."""
        # Endpoints refuse "", and would refuse the whole batch with it.
        asked = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            async with self._client.stream("POST", self._url, json=asked) as response:
                if response.status_code in (408, 429) or response.status_code >= 500:
                    raise _TryAgain(f"status {response.status_code}", _retry_after_seconds(response.headers.get("Retry-After")))
                if response.status_code != 200:
                    raise InferenceUnavailable(
                        f"the embedding endpoint answered {response.status_code}; check embedder.base_url, model and api_key"
                    )
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limits.REMOTE_EMBEDDING_ANSWER_BYTES_MAX:
                        raise InferenceUnavailable("the embedding endpoint's answer is larger than any answer should be")
                return bytes(body)
        except httpx.TransportError as error:
            raise _TryAgain(f"{type(error).__name__} {error}".strip()) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise InferenceUnavailable(f"the embedding endpoint cannot be used: {error}") from error

    def _vectors(self, body: bytes, count: int) -> np.ndarray:
        """The answer's unit rows in the order asked, once all that can be checked holds."""
        try:
            data = sorted(_decode_answer(body).data, key=lambda item: item.index)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InferenceUnavailable(f"the embedding endpoint's answer makes no sense: {error}") from error
        if [item.index for item in data] != list(range(count)):
            raise InferenceUnavailable(f"the embedding endpoint answered {len(data)} vectors that do not match {count} texts one to one")
        widths = {len(item.embedding) for item in data}
        expected = self._width or max(widths)
        if widths != {expected} or not expected:
            raise InferenceUnavailable(f"the embedding endpoint answered vectors of width {sorted(widths)}, expected {expected}")
        rows = np.array([item.embedding for item in data], np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise InferenceUnavailable("the embedding endpoint answered a vector without a direction")
        self._width = expected
        return (rows / norms).astype(np.float32)


def _backoff_seconds(attempt: int) -> float:
    """0.25 s doubled with each attempt from 1, at most 8 s, of which the upper half is left to chance."""
    full = min(limits.REMOTE_EMBEDDING_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1), limits.REMOTE_EMBEDDING_BACKOFF_SECONDS_MAX)
    return full * random.uniform(0.5, 1.0)


def _retry_after_seconds(header: str | None) -> float:
    """Retry-After as seconds or as an HTTP date -> seconds from now; 0 when absent, past or malformed."""
    if header is None:
        return 0.0
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
