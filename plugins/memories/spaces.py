"""In which embedding space an account's memories are searched, and how it comes to another one.

Vectors of different models are never compared, so a new model begins in a space of its own, beside
the old one. While a service runs with both models (`previous_embedder`), each write lands in both
spaces and searches go on in the old one. The job `memories.re_embed` embeds what is there, some
memories a step, and in the transaction of its last step the account changes over: searches from
then on ask the new model. The old vectors go a while later, since a search that had its question
embedded before may still be on its way.

    memory_space   ()  -> SpaceRow   an account without one is searched in the one space it has

Each step is a transaction with its own place, so a process that ends goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from plugins.memories import passages
from plugins.memories.indexing import index_in_current_space
from plugins.memories.limits import (
    RE_EMBED_ATTEMPTS_MAX,
    RE_EMBEDDED_ROWS_PER_STEP,
    VECTORS_FREED_AFTER_SECONDS,
    VECTORS_FREED_PER_STEP,
)
from plugins.memories.rows import (
    MEMORIES,
    MEMORY_SPACE,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    Indexed,
    MemoryRow,
    SpaceRow,
)
from plugins.memories.vectors import space_in_use
from runtime.api import jobs, tenants
from runtime.api.checks import unfinished
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import Models
from runtime.limits import SLOTS
from storage.store import OpenStore, Reader, Scope


class _Step(NamedTuple):
    """rows: the next memories to be embedded; last: the ordinal up to which they were looked for;
    is_end: whether there is nothing behind it."""

    rows: list[MemoryRow]
    last: int
    is_end: bool


class _Made(NamedTuple):
    space: str
    rows: list[tuple[MemoryRow, Indexed]]
    last: int
    is_end: bool


def _load(ctx: ReadContext, payload: Mapping[str, Any]) -> _Step | None:
    if payload.get("frees"):
        return None
    after = None if payload["after"] < 0 else (payload["after"],)
    seen = [row for _, row in ctx[MEMORIES].scan(after=after, limit=RE_EMBEDDED_ROWS_PER_STEP)]
    space, vectors = payload.get("space"), ctx.index(MEMORY_VECTORS)
    return _Step(
        [
            row
            for row in seen
            if row.searchable and (space is None or vectors.get(space, row.ordinal) is None)
        ],
        seen[-1].ordinal if seen else payload["after"],
        len(seen) < RE_EMBEDDED_ROWS_PER_STEP,
    )


async def _prepare(
    steps: JobSteps, loaded: _Step | None, payload: Mapping[str, Any], models: Models
) -> _Made | None:
    if loaded is None:
        return None
    rows = loaded.rows
    if not rows:  # an endpoint tells its width with its first vector
        await models.embedder.embed(["width"])
    made = await index_in_current_space([(row.speaker, row.content) for row in rows], models)
    taken = list(zip(rows, made, strict=False))
    if len(made) == len(rows):
        return _Made(models.embedder.space, taken, loaded.last, loaded.is_end)
    return _Made(models.embedder.space, taken, rows[len(made) - 1].ordinal, False)


def _finish(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    if payload.get("frees"):
        return _free(ctx, payload)
    made: _Made = ctx.prepared
    state = ctx[MEMORY_SPACE].get()
    if state is None:
        state = SpaceRow(space_in_use(ctx, made.space) or made.space)
    if payload.get("space", made.space) != made.space:
        # The service was given yet another model meanwhile: what was made is not what is needed.
        return Again({"after": -1, "embedded": 0, "space": made.space})
    for row, indexed in made.rows:
        present = ctx[MEMORIES].get(row.ordinal)
        # A memory that changed meanwhile was embedded by that write, in both spaces.
        if (
            present is not None
            and present.searchable
            and present.content_version == row.content_version
        ):
            _put(ctx, row.ordinal, indexed)
    embedded = payload["embedded"] + len(made.rows)
    done = {"after": made.last, "embedded": embedded, "space": made.space}
    if not made.is_end:
        ctx[MEMORY_SPACE].put((), SpaceRow(state.space, made.space))
        (newest,) = next(ctx[MEMORIES].keys(reverse=True, limit=1), (made.last,))
        return Again(done, progress=min(0.99, (made.last + 1) / (newest + 1)))
    ctx[MEMORY_SPACE].put((), SpaceRow(made.space, _others(ctx, made.space)))
    return Again(
        {**done, "frees": True}, progress=1.0, delay_ms=1_000 * VECTORS_FREED_AFTER_SECONDS
    )


def _put(ctx: WriteContext, ordinal: int, indexed: Indexed) -> None:
    ctx.index(MEMORY_VECTORS).put(indexed.space, ordinal, indexed.vector)
    if indexed.words is not None:
        ctx.index(MEMORY_WORDS).put(indexed.space, ordinal, indexed.words)
    passages.put_in_further_space(ctx, indexed.space, ordinal, indexed.chunks)


def _others(ctx: ReadContext, space: str) -> str:
    """A space that holds vectors beside this one; "" when none does."""
    return next((held for held in ctx.index(MEMORY_VECTORS).spaces() if held != space), "")


def _free(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """One step of deleting what lies in other spaces than the one in use. Where another space is
    being filled again, its job does that at its end.
    """
    state, room = ctx[MEMORY_SPACE].get(), VECTORS_FREED_PER_STEP
    done = {"embedded": payload["embedded"], "space": payload["space"]}
    if state is None or _filling(ctx) is not None:
        return done
    space = state.space
    for index, table in (
        (MEMORY_VECTORS, MEMORY_VECTORS.vectors),
        (MEMORY_WORDS, MEMORY_WORDS.words),
        (passages.MEMORY_CHUNKS, passages.MEMORY_CHUNKS.vectors),
    ):
        while room and (other := _other_space(ctx, table, space)) is not None:
            keys = list(ctx[table].keys(other, limit=room))
            for held, ordinal in keys:
                ctx.index(index).delete(held, ordinal)
            room -= len(keys)
    if not room:
        return Again(payload, progress=1.0)
    ctx[MEMORY_SPACE].put((), SpaceRow(space))
    return done


def _filling(ctx: ReadContext) -> jobs.JobRow | None:
    """The job that fills a space now, if one does."""
    return next(
        (row for row in unfinished(ctx, RE_EMBED_JOB.name) if not row.payload.get("frees")), None
    )


def _other_space(ctx: ReadContext, table: Any, space: str) -> str | None:
    """A space that this table has rows in, other than the one given."""
    first = next(ctx[table].keys(limit=1), None)
    if first is not None and first[0] != space:
        return first[0]
    last = next(ctx[table].keys(reverse=True, limit=1), None)
    return None if last is None or last[0] == space else last[0]


RE_EMBED_JOB = Job(
    "memories.re_embed",
    _finish,
    load=_load,
    prepare=_prepare,
    retry=RetryStrategy(attempts=RE_EMBED_ATTEMPTS_MAX, base_ms=500, factor=2.0, max_ms=60_000),
)


class ReEmbedding(NamedTuple):
    """How a job is doing. status: running, switched (searches ask the new model) or failed."""

    job_id: str
    status: str
    embedded: int
    space: str | None
    error: str | None


def begin_re_embedding(ctx: WriteContext) -> str:
    """The id of the job that embeds all memories of the account by the current model: of the one
    under way, or of a new one.
    """
    found = _filling(ctx)
    if found is not None:
        return found.id
    return ctx.enqueue(RE_EMBED_JOB.name, {"after": -1, "embedded": 0})


def re_embedding(ctx: ReadContext, job_id: str) -> ReEmbedding:
    """How such a job is doing. Raises NotFound."""
    job = jobs.get(ctx, job_id, (RE_EMBED_JOB.name,))
    status = "running"
    if job.status == jobs.FAILED:
        status = "failed"
    elif job.status == jobs.COMPLETED or job.payload.get("frees"):
        status = "switched"
    told = job.result or job.payload
    return ReEmbedding(job_id, status, told["embedded"], space_in_use(ctx), job.error)


# --- at the start ---------------------------------------------------------------------------------


def unknown_space(store: OpenStore, models: Models) -> str | None:
    """A space that some account is searched in and that none of the models makes; None when there
    is none. It looks at every account once.
    """
    with store.snapshot() as snapshot:
        for space in _spaces_in_use(snapshot):
            if not models.makes(space):
                return space
    return None


def _spaces_in_use(reader: Reader) -> Iterable[str]:
    seen: set[tuple[str, ...]] = set()
    for slot in range(SLOTS):
        for _, account in reader.bind(tenants.TENANTS, Scope.of_slot(slot)).scan():
            if account.closed_at is not None:
                continue
            scope = tenants.scope_of(slot, account)
            state = reader.bind(MEMORY_SPACE, scope).get()
            held = (
                tuple(MEMORY_VECTORS.bind(reader, scope).spaces())
                if state is None
                else (state.space,)
            )
            # Vectors of several models lie in one account where one was changed without this.
            if len(held) == 1 and held not in seen:
                seen.add(held)
                yield held[0]


class Spaces:
    """What other packages may ask about the embedding spaces of accounts."""

    in_use = staticmethod(space_in_use)
    unknown = staticmethod(unknown_space)
    begin_re_embedding = staticmethod(begin_re_embedding)
    re_embedding = staticmethod(re_embedding)
