"""From a memory's text to what search needs of it: terms, cues and vectors, made outside any transaction.

A write gives its texts a short while (`write.ready_wait_ms`, or `write.wait_for_index_seconds_max` for a caller who asks to
wait). If the embedder answers in time, the write stores text and index together and the memory is searchable at once. If it is
late or down, or the caller prefers not to wait, the write stores the text alone, and the job `memories.index` does the same
work later, again and again until the embedder answers.

The job names memories by id and content version and looks again inside its transaction: a memory that was deleted or rewritten
meanwhile is left alone, so an index never speaks for a text that is gone.

Terms come from the speaker's name and the content, the vector from the content alone: who said it is better matched than embedded.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plugins.memory_cues import read_cues
from plugins.memory_store import Indexed, finish_indexing, pending_row
from runtime.inference import InferenceUnavailable, Models, Reading
from runtime.limits import EMBEDDED_CHARS_MAX, INDEX_ATTEMPTS_MAX, INDEXED_INLINE_CHARS_MAX
from runtime.operation import ReadContext, WriteContext
from runtime.plugin import Job, RetryStrategy
from storage.analysis import analyze, content_words

Text = tuple[str | None, str]  # speaker, content


def wait_seconds(ctx: ReadContext, wait_for_index: bool) -> float:
    """How long this write may wait for its index; 0 for `Prefer: respond-async`, which wins over the body's wish."""
    if "respond-async" in ctx.call.prefer:
        return 0.0
    write = ctx.settings.write
    return float(write.wait_for_index_seconds_max) if wait_for_index else write.ready_wait_ms / 1000


async def index_in_time(texts: Sequence[Text], seconds: float, models: Models) -> list[Indexed] | None:
    """As index_texts, or None when the embedder is down or not done within these seconds."""
    if not seconds or not texts:
        return None
    try:
        async with asyncio.timeout(seconds):
            return await index_texts(texts, models)
    except (TimeoutError, InferenceUnavailable):
        return None


async def index_texts(texts: Sequence[Text], models: Models) -> list[Indexed]:
    """One Indexed per text. Raises InferenceUnavailable."""
    words = [[(word.start, word.end) for word in content_words(content[:EMBEDDED_CHARS_MAX])] for _, content in texts]
    readings = await models.embedder.read([content for _, content in texts], words)
    space = models.embedder.space
    if sum(len(content) for _, content in texts) > INDEXED_INLINE_CHARS_MAX:
        return await asyncio.to_thread(analysed, texts, readings, space)
    return analysed(texts, readings, space)


def analysed(texts: Sequence[Text], readings: Sequence[Reading], space: str) -> list[Indexed]:
    """What search needs of each text, which depends on nothing but the text and its reading."""
    found = []
    for (speaker, content), reading in zip(texts, readings, strict=True):
        own = analyze(content)
        terms = Counter(own if speaker is None else [*analyze(speaker), *own])
        words = None if reading.words is None else reading.words[reading.words.any(axis=1)]
        found.append(Indexed(terms, read_cues(content, len(own)), space, reading.vector, words))
    return found


# --- the job ----------------------------------------------------------------------------------------------------------

Waiting = list[tuple[str, int, Text]]


def _load(ctx: ReadContext, payload: Mapping[str, Any]) -> Waiting:
    """(id, content version, text) of those that still wait."""
    waiting: Waiting = []
    for memory_id, content_version in payload["memories"]:
        row = pending_row(ctx, memory_id, content_version)
        if row is not None:
            waiting.append((memory_id, content_version, (row.speaker, row.content)))
    return waiting


async def _prepare(loaded: Waiting, payload: Mapping[str, Any], models: Models) -> list[tuple[str, int, Indexed]]:
    if not loaded:
        return []
    indexed = await index_texts([text for _, _, text in loaded], models)
    return [(memory_id, version, made) for (memory_id, version, _), made in zip(loaded, indexed, strict=True)]


def _finish(ctx: WriteContext, payload: Mapping[str, Any]) -> dict[str, int]:
    done = sum(finish_indexing(ctx, memory_id, version, indexed) for memory_id, version, indexed in ctx.prepared)
    return {"indexed": done, "skipped": len(payload["memories"]) - done}


def _give_up(ctx: WriteContext, payload: Mapping[str, Any], reason: str) -> None:
    for memory_id, content_version in payload["memories"]:
        finish_indexing(ctx, memory_id, content_version, None)


# Once a minute for more than a day: an embedder that comes back finds nothing lost.
INDEX_JOB = Job(
    "memories.index",
    _finish,
    load=_load,
    prepare=_prepare,
    failed=_give_up,
    retry=RetryStrategy(attempts=INDEX_ATTEMPTS_MAX, base_ms=500, factor=2.0, max_ms=60_000),
)
