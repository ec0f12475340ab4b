"""What every embedder does for those who wait: a bounded queue, a time limit, a memory of recent texts.

A kind of embedder says how texts become readings (`_compute`); how many may wait, for how long, which texts are the same and which
were asked for a moment ago is decided here, the same for all.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from runtime import limits
from runtime.minilm_words import Spans


class InferenceUnavailable(Exception):
    """A model is down, late or overloaded, or answered nonsense. The message says which, and holds no text and no secret."""


class Reading(NamedTuple):
    """A text as a model read it: its vector (width,), and the vectors of the words asked for, (w, 64) int8, or None."""

    vector: np.ndarray
    words: np.ndarray | None


Asked = tuple[str, tuple[tuple[int, int], ...] | None]  # a text, and the words whose vectors are wanted; None for none


class _RecentReadings:
    """What was read last, least recently used out first. Safe from any thread."""

    def __init__(self, entries_max: int):
        self._entries_max = entries_max
        self._readings: OrderedDict[Asked, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, asked: Iterable[Asked]) -> dict[Asked, Reading]:
        """The remembered ones among these."""
        found = {}
        with self._lock:
            for each in asked:
                if each in self._readings:
                    self._readings.move_to_end(each)
                    found[each] = self._readings[each]
        return found

    def remember(self, asked: Iterable[Asked], readings: Iterable[Reading]) -> None:
        with self._lock:
            for each, reading in zip(asked, readings, strict=True):
                # A copy: a row is a view, and would keep its whole batch alive.
                self._readings[each] = Reading(reading.vector.copy(), reading.words)
                self._readings.move_to_end(each)
            while len(self._readings) > self._entries_max:
                self._readings.popitem(last=False)


class BoundedEmbedder(ABC):
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
    async def _compute(self, asked: list[Asked], deadline: float) -> list[Reading]:
        """n ≥ 1 distinct texts with their words -> n readings, by `deadline` (seconds of the loop's clock) or not at all."""

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        readings = await self._read([(_cleaned(text), None) for text in texts])
        return np.stack([reading.vector for reading in readings]) if readings else np.empty((0, self.width), np.float32)

    def knows(self, word: str) -> bool:
        return True

    @abstractmethod
    def give_way(self, reads_wait: bool) -> None: ...

    @abstractmethod
    def meanwhile(self, call: Callable[[], object]) -> None: ...

    async def read(self, texts: Sequence[str], words: Sequence[Spans]) -> list[Reading]:
        return await self._read([(_cleaned(text), tuple(spans)) for text, spans in zip(texts, words, strict=True)])

    def stats(self) -> dict[str, float]:
        """Texts asked for and those among them that the cache knew, requests refused by a full queue and late ones, seconds that requests
        took, and texts that wait now."""
        return {**self._stats, "waiting": self._texts_waiting}

    async def _read(self, asked: list[Asked]) -> list[Reading]:
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

    async def _within_bounds(self, texts: list[Asked]) -> list[Reading]:
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
