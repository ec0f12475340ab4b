"""From a memory's text to what search needs of it: terms, features and vectors, made outside any
transaction.

A write gives its texts a short while (`write.ready_wait_ms`, or `write.wait_for_index_seconds_max`
for a caller who asks to wait). If the embedder answers in time, the write stores text and index
together and the memory is searchable at once. If it is late or down, or the caller prefers not to
wait, the write stores the text alone, and the job `memories.index` does the same work later, again
and again until the embedder answers.

The job names memories by id and content version and looks again inside its transaction: a memory
that was deleted or rewritten meanwhile is left alone, so an index never speaks for a text that is
gone.

Terms come from the speaker's name and the content, the vector from the content alone: who said it
is better matched than embedded. A text longer than a model reads is embedded in passages, the first
of which stands for the memory (plugins/memories/passages.py).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plugins.memories.features import TextFeatures
from plugins.memories.limits import (
    EMBEDDED_TOKENS_PER_REQUEST_MAX,
    INDEX_ATTEMPTS_MAX,
    INDEXED_INLINE_CHARS_MAX,
    PASSAGE_TOKENS_MAX,
    PASSAGES_INDEXED_PER_STEP,
    PASSAGES_PER_MEMORY_MAX,
    WORD_VECTORS_PER_MEMORY_MAX,
)
from plugins.memories.rows import Indexed
from plugins.memories.settings import WriteSettings
from plugins.memories.store import finish_indexing, pending_row
from runtime.api import jobs
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import Embedder, Embedding, InferenceUnavailable, Models, language
from runtime.long_work import aside
from storage.text import analyze, content_words, estimated_tokens, passages

Made = TypeVar("Made")
Text = tuple[str | None, str]  # speaker, content


class Analysed(NamedTuple):
    """What a text gives without a model: how often each term, and its features."""

    terms: Counter[str]
    features: TextFeatures


def wait_seconds(ctx: ReadContext, wait_for_index: bool) -> float:
    """How long this write may wait for its index; 0 for `Prefer: respond-async`, which wins over
    the body's wish.
    """
    if "respond-async" in ctx.call.prefer:
        return 0.0
    write = WriteSettings.of(ctx.settings)
    return float(write.wait_for_index_seconds_max) if wait_for_index else write.ready_wait_ms / 1000


async def index_in_time(
    texts: Sequence[Text], seconds: float, models: Models
) -> list[Indexed] | None:
    """As index_texts, or None when the embedder is down or not done within these seconds."""
    if not seconds or not texts:
        return None
    try:
        async with asyncio.timeout(seconds):
            return await index_texts(texts, models)
    except (TimeoutError, InferenceUnavailable):
        return None


async def index_texts(
    texts: Sequence[Text], models: Models, readings: dict[str, language.Reading] | None = None
) -> list[Indexed]:
    """One Indexed per text. readings: where what each text says is put, of the same run of the
    model where that takes the text as a whole. Raises InferenceUnavailable.
    """
    pieces = await _aside(texts, _pieces, texts)
    if readings is None:
        return await _index_pieces(texts, pieces, models)
    indexed: dict[int, Indexed] = {}
    for is_long in (False, True):
        rows = [row for row, own in enumerate(pieces) if (len(own) > 1) == is_long]
        part = [texts[row] for row in rows], [pieces[row] for row in rows]
        found = await _index_pieces(*part, models, None if is_long else readings)
        indexed |= dict(zip(rows, found, strict=True))
    left = list({content for _, content in texts if content not in readings})
    if left:
        readings |= dict(zip(left, await models.read_language(left), strict=True))
    return [indexed[row] for row in range(len(texts))]


async def index_in_current_space(texts: Sequence[Text], models: Models) -> list[Indexed]:
    """As index_texts, by the current model alone, of as many texts from the first on as one step
    may embed. Raises InferenceUnavailable.
    """
    pieces = await _aside(texts, _pieces, texts, PASSAGES_INDEXED_PER_STEP)
    return await _index_by(models.embedder, texts[: len(pieces)], pieces)


async def _index_pieces(
    texts: Sequence[Text],
    pieces: Sequence[Sequence[str]],
    models: Models,
    readings: dict[str, language.Reading] | None = None,
) -> list[Indexed]:
    """As index_texts, of texts that are in pieces already. readings: where what they say is put, if
    that is wanted.
    """
    indexed = await _index_by(models.embedder, texts, pieces, readings)
    if models.previous is None:
        return indexed
    older = await _index_by(models.previous, texts, pieces)
    return [replace(each, previous=before) for each, before in zip(indexed, older, strict=True)]


async def _index_by(
    embedder: Embedder,
    texts: Sequence[Text],
    pieces: Sequence[Sequence[str]],
    readings: dict[str, language.Reading] | None = None,
) -> list[Indexed]:
    if not texts:
        return []
    readable = embedder.readable
    words = await _aside(texts, _words, [[readable(piece) for piece in own] for own in pieces])
    # The vector of the beginning is that of the whole text, which the model reads as far as it can.
    whole = [
        readable(piece)
        for (_, content), own in zip(texts, pieces, strict=True)
        for piece in (content, *own[1:])
    ]
    embeddings: list[Embedding] = []
    for start, end in _requests([piece for own in pieces for piece in own]):
        if readings is None:
            embeddings += await embedder.embed_words(whole[start:end], words[start:end])
            continue
        found = await embedder.embed_read(whole[start:end], words[start:end])
        embeddings += [embedding for embedding, _ in found]
        read_of = (reading for _, reading in found)
        readings |= dict(zip(whole[start:end], read_of, strict=True))
    own = iter(embeddings)
    read = [list(islice(own, len(each))) for each in pieces]
    return await _aside(texts, _indexed, texts, read, embedder.space)


async def _aside(texts: Sequence[Text], work: Callable[..., Made], *args: Any) -> Made:
    """What this work on the texts makes; done in a thread when they are long, since the event loop
    has others to answer.
    """
    if sum(len(content) for _, content in texts) > INDEXED_INLINE_CHARS_MAX:
        return await aside(work, *args)
    return work(*args)


def _requests(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(start, end) of portions that the embedder is asked for one after the other, so that long
    texts do not hold up all others.
    """
    start = tokens = 0
    for end, piece in enumerate(pieces):
        size = estimated_tokens(piece)
        if end > start and tokens + size > EMBEDDED_TOKENS_PER_REQUEST_MAX:
            yield start, end
            start, tokens = end, 0
        tokens += size
    yield start, len(pieces)


def _pieces(texts: Sequence[Text], count_max: float = inf) -> list[list[str]]:
    """The passages that get a vector each: of as many texts as have this many together, and of the
    first in any case.
    """
    found: list[list[str]] = []
    count = 0
    for _, content in texts:
        own = [
            content[start:end]
            for start, end in passages(content, PASSAGE_TOKENS_MAX, PASSAGES_PER_MEMORY_MAX)
        ]
        count += len(own)
        if found and count > count_max:
            break
        found.append(own)
    return found


def _words(pieces: Sequence[Sequence[str]]) -> list[list[tuple[int, int]]]:
    return [
        [(word.start, word.end) for word in content_words(piece)] for own in pieces for piece in own
    ]


def analysed(texts: Sequence[Text]) -> list[Analysed]:
    """Terms and features, which need no model."""
    found = []
    for speaker, content in texts:
        own = analyze(content)
        terms = Counter(own if speaker is None else [*analyze(speaker), *own])
        found.append(Analysed(terms, TextFeatures.of(content, len(own))))
    return found


def _indexed(
    texts: Sequence[Text], embeddings: Sequence[Sequence[Embedding]], space: str
) -> list[Indexed]:
    """embeddings: of each text the one of its beginning, then those of its further passages."""
    found = []
    for each, (first, *further) in zip(analysed(texts), embeddings, strict=True):
        word_vectors = [one.words for one in (first, *further) if one.words is not None]
        words = None
        if word_vectors:
            words = np.concatenate(word_vectors)
            words = words[words.any(axis=1)]
            if len(words) > WORD_VECTORS_PER_MEMORY_MAX:  # of a long text some from everywhere
                kept = np.linspace(0, len(words) - 1, WORD_VECTORS_PER_MEMORY_MAX)
                words = words[kept.astype(int)]
        chunks = [one.vector for one in further]
        found.append(Indexed(each.terms, each.features, space, first.vector, words, chunks))
    return found


# --- the job --------------------------------------------------------------------------------------

Waiting = list[tuple[str, int, Text]]


def _load(ctx: ReadContext, payload: Mapping[str, Any]) -> Waiting:
    """(id, content version, text) of those that still wait."""
    waiting: Waiting = []
    for memory_id, content_version in payload["memories"]:
        row = pending_row(ctx, memory_id, content_version)
        if row is not None:
            waiting.append((memory_id, content_version, (row.speaker, row.content)))
    return waiting


async def _prepare(
    steps: JobSteps, loaded: Waiting, payload: Mapping[str, Any], models: Models
) -> list[tuple[str, int, Indexed]]:
    """Index the first of them: as many as one step allows, at least one."""
    texts = [text for _, _, text in loaded]
    pieces = await _aside(texts, _pieces, texts, PASSAGES_INDEXED_PER_STEP)
    indexed = await _index_pieces(texts[: len(pieces)], pieces, models)
    return [
        (memory_id, version, made)
        for (memory_id, version, _), made in zip(loaded, indexed, strict=False)
    ]


def _finish(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, int]:
    """`asked` is how many memories the job began with, once it takes several steps."""
    asked = payload.get("asked", len(payload["memories"]))
    done = payload.get("indexed", 0) + sum(
        finish_indexing(ctx, memory_id, version, made) for memory_id, version, made in ctx.prepared
    )
    taken = {memory_id for memory_id, _, _ in ctx.prepared}
    left = [
        each
        for each in payload["memories"]
        if each[0] not in taken and pending_row(ctx, *each) is not None
    ]
    if left:
        return Again({"memories": left, "asked": asked, "indexed": done})
    return {"indexed": done, "skipped": asked - done}


def indexed_at_once(ctx: WriteContext, count: int) -> str:
    """Record the job of memories that were stored together with their index; -> its id."""
    return jobs.record(ctx, INDEX_JOB.name, {"indexed": count, "skipped": 0})


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
    listed=True,
)
