"""What every embedder does for those who wait: a bounded queue, a time limit, a memory of recent
texts.

A kind of embedder says how texts become embeddings (`_compute`); how many may wait, for how long,
which texts are the same and which were asked for a moment ago is decided here, the same for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from runtime import limits, tracing
from runtime.account_work import account_work
from runtime.inference.language import Reading, unread
from runtime.inference.language.parse import Parse, ToRead
from runtime.turns import account_in_turn, in_turn_of


class InferenceUnavailable(Exception):
    """A model is down, late or overloaded, or answered nonsense. The message says which, and holds
    no text and no secret.
    """


class Embedding(NamedTuple):
    """A text's vector (width,), and the vectors of the words asked for, (w, 64) int8, or None;
    where it was read, a parse of each sentence. Of a text that was only read the vector is empty.
    """

    vector: np.ndarray
    words: np.ndarray | None
    parses: Sequence[Parse] = ()


Spans = Sequence[tuple[int, int]]  # code points (start, end) of words


class Prefixes(NamedTuple):
    """What a model was taught to see before a text: before a question, and before a passage, which
    is all that is not one."""

    query: str = ""
    passage: str = ""


NO_PREFIXES = Prefixes()

Asked = tuple[
    str, tuple[tuple[int, int], ...] | ToRead | None
]  # a text, and the words whose vectors are wanted, or those to be read; None for none


_ASKING: ContextVar[Hashable] = ContextVar("asking", default=None)


@contextlib.contextmanager
def remembered_for(account: Hashable) -> Iterator[None]:
    """Let what is embedded within be remembered for this account, and be answered from what was;
    it waits for the account's turn.

    How soon an answer comes tells whether a text was known: nobody may learn so what others ask.
    """
    before = _ASKING.set(account)
    try:
        with in_turn_of(account):
            yield
    finally:
        _ASKING.reset(before)


def asking_account() -> Hashable:
    """The account whose request is being answered; None in a job."""
    return _ASKING.get()


_ON_BUSY: ContextVar[Callable[[], object] | None] = ContextVar("on_busy", default=None)


@contextlib.contextmanager
def on_busy(call: Callable[[], object] | None) -> Iterator[None]:
    """Have this called, from any thread, once a model of this machine works on what is embedded
    within. Where no model has to work it never is.
    """
    before = _ON_BUSY.set(call)
    try:
        yield
    finally:
        _ON_BUSY.reset(before)


def busy_callback() -> Callable[[], object] | None:
    """What `on_busy` was given; None elsewhere."""
    return _ON_BUSY.get()


class _EmbeddingCache:
    """The last embeddings of all accounts, each account's its own, least recently used out first.
    Safe from any thread.
    """

    def __init__(self, entries_max: int):
        self._entries_max = entries_max
        self._embeddings: OrderedDict[tuple[Hashable, Asked], Embedding] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, account: Hashable, asked: Iterable[Asked]) -> dict[Asked, Embedding]:
        """The remembered ones among these."""
        found = {}
        with self._lock:
            for each in asked:
                if (account, each) in self._embeddings:
                    self._embeddings.move_to_end((account, each))
                    found[each] = self._embeddings[account, each]
        return found

    def remember(
        self, account: Hashable, asked: Iterable[Asked], embeddings: Iterable[Embedding]
    ) -> None:
        with self._lock:
            for each, embedding in zip(asked, embeddings, strict=True):
                # A copy: a row is a view, and would keep its whole batch alive.
                self._embeddings[account, each] = embedding._replace(vector=embedding.vector.copy())
                self._embeddings.move_to_end((account, each))
            while len(self._embeddings) > self._entries_max:
                self._embeddings.popitem(last=False)


class _Pace:
    """How many a second there have been lately: one counts for about EMBEDDER_PACE_SECONDS."""

    def __init__(self) -> None:
        self._count, self._at = 0.0, 0.0

    def add(self, count: int, now: float) -> None:
        """Remember an embedding. now: seconds of a clock that runs evenly."""
        self._count, self._at = self._left(now) + count, now

    def per_second(self, now: float) -> float:
        return self._left(now) / limits.EMBEDDER_PACE_SECONDS

    def _left(self, now: float) -> float:
        return self._count * math.exp((self._at - now) / limits.EMBEDDER_PACE_SECONDS)


class BoundedEmbedder(ABC):
    """What both embedders share: clean texts, equal texts once, the cache, the bounded queue, the
    time limit.

    A request of at most four texts is taken for a query: its texts are looked up among those of its
    account, and remembered for it (`remembered_for`); without an account they are not. Larger ones
    are ingestion, whose texts are rarely asked for again and would only push the queries out.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        queue_max: int,
        cache_entries: int,
        prefixes: Prefixes = NO_PREFIXES,
    ):
        self._prefixes = prefixes
        self.timeout_seconds = timeout_seconds
        self._queue_max = queue_max
        self._texts_waiting = 0
        self._recent = _EmbeddingCache(cache_entries)
        self._pace = _Pace()
        self._stats = {
            "texts_total": 0,
            "known_total": 0,
            "refused_total": 0,
            "late_total": 0,
            "seconds_total": 0.0,
        }
        self._closed = False

    @property
    @abstractmethod
    def width(self) -> int: ...

    @abstractmethod
    async def _compute(self, asked: list[Asked], deadline: float) -> list[Embedding]:
        """n ≥ 1 distinct texts with their words -> n embeddings, by `deadline` (seconds of the
        loop's clock) or not at all.
        """

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        prefix = self._prefix(is_query)
        embeddings = await self._embed([(prefix + _cleaned(text), None) for text in texts])
        return (
            np.stack([embedding.vector for embedding in embeddings])
            if embeddings
            else np.empty((0, self.width), np.float32)
        )

    @property
    @abstractmethod
    def space(self) -> str: ...

    @property
    def words_of_one_language(self) -> bool:
        return False

    def makes(self, space: str) -> bool:
        return space == self.space

    def knows(self, word: str) -> bool:
        return True

    def spellings(self, word: str) -> list[str]:
        return []

    def slips_undone(self, word: str) -> dict[str, float]:
        return {}

    def readable(self, text: str) -> str:
        return text

    def taught(self, language: str) -> bool:
        return True

    @abstractmethod
    def yield_to_reads(self, reads_wait: bool) -> None: ...

    async def embed_words(
        self, texts: Sequence[str], words: Sequence[Spans], *, is_query: bool = False
    ) -> list[Embedding]:
        prefix = self._prefix(is_query)
        at = len(prefix)
        return await self._embed(
            [
                (prefix + _cleaned(text), tuple((start + at, end + at) for start, end in spans))
                for text, spans in zip(texts, words, strict=True)
            ]
        )

    async def read_language(self, texts: Sequence[str]) -> list[Reading]:
        return await asyncio.to_thread(lambda: [unread(text) for text in texts])

    async def embed_read(
        self, texts: Sequence[str], words: Sequence[Spans]
    ) -> list[tuple[Embedding, Reading]]:
        embeddings = await self.embed_words(texts, words)
        return list(zip(embeddings, await self.read_language(texts), strict=True))

    def _prefix(self, is_query: bool) -> str:
        return self._prefixes.query if is_query else self._prefixes.passage

    def stats(self) -> dict[str, float]:
        """Texts asked for and those among them that the cache knew, requests refused by a full
        queue and late ones, seconds that requests took, texts that wait now, and how many a second
        were asked for lately, but for those that are to be read."""
        lately = self._pace.per_second(time.monotonic())
        return {**self._stats, "waiting": self._texts_waiting, "texts_per_second": round(lately, 3)}

    async def _embed(self, asked: list[Asked]) -> list[Embedding]:
        if self._closed:
            raise InferenceUnavailable("the embedder is closed")
        account = asking_account()
        is_query = account is not None and len(asked) <= limits.EMBEDDER_SMALL_REQUEST_TEXTS_MAX
        known = self._recent.of(account, asked) if is_query else {}
        missing = [each for each in dict.fromkeys(asked) if each not in known]
        self._stats["texts_total"] += len(asked)
        only_read = sum(isinstance(each, ToRead) and each.embedded is None for _, each in asked)
        self._pace.add(len(asked) - only_read, time.monotonic())
        self._stats["known_total"] += len(known)
        if missing:
            with tracing.part("model", "embedder", texts=len(missing)):
                computed = await self._within_bounds(missing)
            known.update(zip(missing, computed, strict=True))
            if is_query:
                self._recent.remember(account, missing, computed)
        return [known[each] for each in asked]

    async def _within_bounds(self, texts: list[Asked]) -> list[Embedding]:
        if self._texts_waiting + len(texts) > self._queue_max:
            waiting, more = self._texts_waiting, len(texts)
            self._stats["refused_total"] += 1
            raise InferenceUnavailable(
                f"the embedder's queue is full: {waiting} texts wait and {more} more pass its "
                f"limit of {self._queue_max}"
            )
        started = asyncio.get_running_loop().time()
        deadline = started + self.timeout_seconds
        self._texts_waiting += len(texts)
        try:
            async with asyncio.timeout_at(deadline):
                account_work().note(
                    account_in_turn(), embedded_chars=sum(len(text) for text, _ in texts)
                )
                return await self._compute(texts, deadline)
        except TimeoutError as error:
            self._stats["late_total"] += 1
            raise InferenceUnavailable(
                f"the embedder took longer than {self.timeout_seconds:g} seconds"
            ) from error
        finally:
            self._texts_waiting -= len(texts)
            self._stats["seconds_total"] += asyncio.get_running_loop().time() - started


def _cleaned(text: str) -> str:
    """The part of a text that is embedded, and can be: half a surrogate pair has no UTF-8 and
    becomes a question mark.
    """
    return text[: limits.EMBEDDED_CHARS_MAX].encode("utf-8", "replace").decode()
