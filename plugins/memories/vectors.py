"""The vectors of a memory: stored and taken away in each space that the account has, which is one
but while it comes to another model (plugins/memories/spaces.py).
"""

from __future__ import annotations

from plugins.memories import passages
from plugins.memories.rows import (
    MEMORY_SPACE,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    Indexed,
    MemoryRow,
    SpaceRow,
)
from runtime.api.context import ReadContext, WriteContext


def put_vectors(ctx: WriteContext, ordinal: int, indexed: Indexed) -> None:
    kept = _stored(ctx, indexed)
    for each in kept:
        ctx.index(MEMORY_VECTORS).put(each.space, ordinal, each.vector)
        if each.words is not None:
            ctx.index(MEMORY_WORDS).put(each.space, ordinal, each.words)
    passages.put_chunks(ctx, ordinal, {each.space: each.chunks for each in kept})


def _stored(ctx: WriteContext, indexed: Indexed) -> list[Indexed]:
    """What of a text is stored: in both spaces, while the account is searched in the one of the
    model that is being replaced."""
    older = indexed.previous
    if older is None:
        return [indexed]
    state = ctx[MEMORY_SPACE].get()
    if state is None:
        has_older = older.space in ctx.index(MEMORY_VECTORS).spaces()
        state = SpaceRow(older.space, indexed.space) if has_older else SpaceRow(indexed.space)
        ctx[MEMORY_SPACE].put((), state)
    return [indexed, older] if state.space == older.space else [indexed]


def space_in_use(ctx: ReadContext, default: str | None = None) -> str | None:
    """The space that the account's memories are searched in; `default` where it has vectors in
    none, or in several and nobody has said which.
    """
    state = ctx[MEMORY_SPACE].get()
    if state is not None:
        return state.space
    held = ctx.index(MEMORY_VECTORS).spaces()
    return held[0] if len(held) == 1 else default


def spaces_of(ctx: ReadContext, row: MemoryRow) -> set[str]:
    """The spaces that may hold vectors of a memory."""
    state = ctx[MEMORY_SPACE].get()
    found = {row.space} if state is None else {row.space, state.space, state.other}
    return found - {""}


def forget_vectors(ctx: WriteContext, row: MemoryRow) -> None:
    """Take away all vectors of a memory, in each space that may have some."""
    spaces = spaces_of(ctx, row)
    for space in spaces:
        ctx.index(MEMORY_VECTORS).delete(space, row.ordinal)
        ctx.index(MEMORY_WORDS).delete(space, row.ordinal)
    passages.delete_chunks(ctx, spaces, row.ordinal)
