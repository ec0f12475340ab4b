"""Reading every memory for whom it mentions: the job `graph.read`.

A write reads nothing. It wakes the job of its account, unless that is under way; the job goes over
the memories in the order in which they came, some at a step, once for each text that a memory has
had. A step is one transaction with its own place, so a process that ends goes on where it was. An
account that was written by a release without mentions is read from its first memory on, from the
next start of its shard (`CATCH_UP`).

Reading costs as much as embedding, so it takes the time that is left over. While the shard's
process works on something else it waits, for at most READING_LOOKS_MAX looks before each step; and
after a step it pauses, so that all steps together take `graph.reading_share` of a core. So a flood
of writes and the searches behind it are as fast as without it, what they leave is read when they
are over, and a process that is never at rest reads all the same. With a share of 1 it neither waits
nor pauses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plugins.graph.limits import (
    READING_ATTEMPTS_MAX,
    READING_CHARS_PER_MEMORY_MAX,
    READING_CHARS_PER_STEP_MAX,
    READING_LOOK_SECONDS,
    READING_LOOKS_MAX,
    READING_MEMORIES_PER_STEP,
    READING_YIELDS_SHARE,
)
from plugins.graph.mentions import Mentioned, mentioned_by
from plugins.graph.noting import note
from plugins.graph.rows import READING, UNREAD, ReadingRow
from plugins.graph.settings import GraphSettings
from plugins.graph.unread import READ_JOB_NAME, behind, is_left, reading, wake
from plugins.memories import MEMORY_FIELDS, MemoryRow, find_rows_at
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.plugin import CatchUp, Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import Models, language
from runtime.long_work import aside


class _Step(NamedTuple):
    """rows: the memories to be read; again: the ordinals among them, or gone, of UNREAD; read: up
    to which ordinal, exclusive, all will be read then; share: of a core, for all steps together.
    """

    rows: list[MemoryRow]
    again: list[int]
    read: int
    share: float


class _Prepared(NamedTuple):
    """What a step's memories mention, and how long to pause after it."""

    step: _Step
    read: list[tuple[MemoryRow, Mentioned]]
    pause_ms: int


def on_created(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a new memory is read soon."""
    wake(ctx)


def _load(ctx: ReadContext, payload: Mapping[str, Any]) -> _Step:
    state = reading(ctx)
    again = [ordinal for (ordinal,) in ctx[UNREAD].keys(limit=READING_MEMORIES_PER_STEP)]
    following = behind(ctx, state.read)[: READING_MEMORIES_PER_STEP - len(again)]
    found = find_rows_at(ctx, dict.fromkeys([*again, *following]))
    room, rows = READING_CHARS_PER_STEP_MAX, found
    for count, row in enumerate(found):
        room -= min(len(row.content), READING_CHARS_PER_MEMORY_MAX)
        if room < 0 and count:
            rows = found[:count]
            break
    left = [row.ordinal for row in found[len(rows) :] if row.ordinal in following]
    end = following[-1] + 1 if following else state.read
    return _Step(rows, again, min([end, *left]), GraphSettings.of(ctx.settings).reading_share)


async def _prepare(
    steps: JobSteps, loaded: _Step, payload: Mapping[str, Any], models: Models
) -> _Prepared:
    if not loaded.rows:
        return _Prepared(loaded, [], 0)
    if loaded.share < 1:
        await _until_quiet()
    begun = time.monotonic()
    texts = [row.content[:READING_CHARS_PER_MEMORY_MAX] for row in loaded.rows]
    readings = await models.read_language(texts)
    read = await aside(_mentions, loaded.rows, texts, readings)
    pause_seconds = (time.monotonic() - begun) * (1 / loaded.share - 1)
    return _Prepared(loaded, read, round(pause_seconds * 1000))


async def _until_quiet() -> None:
    """Wait while the process works on something else, for so many looks at most."""
    for _ in range(READING_LOOKS_MAX):
        begun = processor_seconds()
        await asyncio.sleep(READING_LOOK_SECONDS)
        if processor_seconds() - begun <= READING_YIELDS_SHARE * READING_LOOK_SECONDS:
            return


def processor_seconds() -> float:
    """What this process has used of processors, all threads together."""
    return time.process_time()


def _mentions(
    rows: Sequence[MemoryRow], texts: Sequence[str], readings: Sequence[language.Reading]
) -> list[tuple[MemoryRow, Mentioned]]:
    found = []
    for row, text, said in zip(rows, texts, readings, strict=True):
        whose = {"speaker": row.speaker, "role": row.role, "user_id": row.user_id}
        found.append((row, mentioned_by(text, said, **whose)))
    return found


def _finish(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, int]:
    step, read, pause_ms = ctx.prepared
    stored = {row.ordinal: row for row in find_rows_at(ctx, [row.ordinal for row, _ in read])}
    note(
        ctx,
        (
            (now, mentioned)
            for row, mentioned in read
            if (now := stored.get(row.ordinal)) is not None
            and now.content_version == row.content_version
        ),
    )
    return _go_on(ctx, step, pause_ms) or {"read": len(read)}


def _go_on(ctx: WriteContext, step: _Step, pause_ms: int = 0) -> Again | None:
    """Note that a step's memories are read; None where there are no further ones."""
    done = {row.ordinal: row.content_version for row in step.rows}
    put_off = (ordinal for ordinal in done if ctx[UNREAD].get(ordinal) is not None)
    looked_at = list(dict.fromkeys([*step.again, *put_off]))
    present = {row.ordinal: row.content_version for row in find_rows_at(ctx, looked_at)}
    for ordinal in looked_at:
        if ordinal not in present or done.get(ordinal) == present[ordinal]:
            ctx[UNREAD].delete(ordinal)
    read = max(step.read, reading(ctx).read)
    goes_on = is_left(ctx, read)
    ctx[READING].put((), ReadingRow(read, waits=goes_on))
    return Again({}, delay_ms=pause_ms) if goes_on else None


def _pass_over(ctx: WriteContext, payload: Mapping[str, Any], reason: str) -> None:
    """Leave the memories of a step that failed for good, and go on behind them."""
    step = _load(ctx, payload)
    if _go_on(ctx, step) is not None:
        ctx[READING].put((), ReadingRow(reading(ctx).read))
        wake(ctx)


READ_JOB = Job(
    READ_JOB_NAME,
    _finish,
    load=_load,
    prepare=_prepare,
    failed=_pass_over,
    retry=RetryStrategy(attempts=READING_ATTEMPTS_MAX, base_ms=500, factor=2.0, max_ms=60_000),
    keep=False,
)


def _is_owed(ctx: ReadContext) -> bool:
    """Whether the account has memories from before there were mentions."""
    return ctx[READING].get() is None and bool(ctx.index(MEMORY_FIELDS).of("live", 1))


CATCH_UP = CatchUp(_is_owed, wake)
