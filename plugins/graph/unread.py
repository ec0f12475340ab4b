"""How far the memories of an account were read for their mentions (reading.py), and what is to be
read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from pyroaring import BitMap

from plugins.graph.limits import MEMORIES_PASSED_MAX, READING_DELAY_MS
from plugins.graph.rows import READING, UNREAD, ReadingRow
from plugins.memories import MEMORY_FIELDS
from runtime.api.checks import Pursued
from runtime.api.context import ReadContext, WriteContext

READ_JOB_NAME = "graph.read"


def wake(ctx: WriteContext) -> None:
    """Have the account's memories read soon; one look where that is under way."""
    state = reading(ctx)
    if not state.waits:
        ctx[READING].put((), msgspec.structs.replace(state, waits=True))
        _enqueue(ctx)


def _enqueue(ctx: WriteContext) -> None:
    ctx.enqueue(READ_JOB_NAME, {}, delay_ms=READING_DELAY_MS, group=READ_JOB_NAME)


@contextmanager
def read_at_once(ctx: WriteContext) -> Iterator[None]:
    """Have no new memory wake the job within; what is unread at its end does."""
    state = reading(ctx)
    if state.waits:
        yield
        return
    ctx[READING].put((), msgspec.structs.replace(state, waits=True))
    yield
    state = reading(ctx)
    ctx[READING].put((), msgspec.structs.replace(state, waits=False))
    if is_left(ctx, state.read):
        wake(ctx)


def is_left(ctx: ReadContext, read: int) -> bool:
    """Whether a memory is to be read when those below `read` were."""
    return bool(behind(ctx, read)) or next(ctx[UNREAD].keys(limit=1), None) is not None


def read_again(ctx: WriteContext, ordinal: int) -> None:
    """Have a memory read once more."""
    ctx[UNREAD].put((ordinal,), b"")
    wake(ctx)


def reading(ctx: ReadContext) -> ReadingRow:
    """How far they were read."""
    return ctx[READING].get() or ReadingRow()


def behind(ctx: ReadContext, read: int) -> BitMap:
    """The ordinals of memories from `read` on."""
    live = ctx.index(MEMORY_FIELDS).of("live", 1)
    return live[live.rank(read - 1) :] if read else live


def pass_over(ctx: WriteContext, ordinals: BitMap) -> None:
    """Leave these memories, which have been read, to no job. The unread ones before them are read
    first; where there are more of those than MEMORIES_PASSED_MAX, all are read in their order.
    """
    state = reading(ctx)
    before = behind(ctx, state.read) - ordinals
    before.remove_range(ordinals.max(), 1 << 32)
    if len(before) <= MEMORIES_PASSED_MAX:
        for ordinal in before:
            ctx[UNREAD].put((ordinal,), b"")
        read = max(state.read, ordinals.max() + 1)
        ctx[READING].put((), msgspec.structs.replace(state, read=read))


def unread(ctx: ReadContext, newest: int) -> BitMap:
    """The ordinals of the newest memories that are still to be read, about so many at most."""
    again = (ordinal for (ordinal,) in ctx[UNREAD].keys(reverse=True, limit=newest))
    return behind(ctx, reading(ctx).read)[-newest:] | BitMap(again)


CHECK = Pursued(
    READ_JOB_NAME,
    READING,
    waiting=lambda ctx: [((), "memories to be read")] if reading(ctx).waits else [],
    covers=lambda payload: [()],
    enqueue=lambda ctx, forgotten: _enqueue(ctx),
)
