"""What of the graph a search within a scope sees.

Entities and claims are the account's own: what several end users say of one Anna is one entity. A
search that is asked for some memories alone sees of them what those memories say, and what the API
was told without a memory, which is everybody's. It walks over nothing else, so that no answer tells
what is known from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from pyroaring import BitMap

from plugins.graph.limits import MEMORIES_PER_ENTITY_MAX
from plugins.graph.rows import MENTIONS, EntityRow, RelationshipRow
from plugins.memories import find_rows_at, readable
from plugins.search import SearchedMemories, filtered
from runtime.api.context import ReadContext


@dataclass(frozen=True, slots=True)
class Scoping:
    """memories: ordinals of those that are asked for, superseded and unread ones included; None
    where all are.
    """

    ctx: ReadContext
    memories: BitMap | None

    @classmethod
    def of(cls, ctx: ReadContext, asked: SearchedMemories) -> Scoping:
        """What the scope fields and filters of `asked` leave.

        Raises as plugins.memories.readable does, and ValidationFailed for a filter that is none.
        """
        if all(getattr(asked, name) in (None, {}) for name in SearchedMemories.model_fields):
            return cls(ctx, None)
        found = readable(ctx, asked, include_superseded=True)
        return cls(ctx, filtered(ctx, found, asked.filters))

    def sees(self, row: EntityRow) -> bool:
        """Whether a memory of the scope mentions it, or the API was told of it."""
        return self.memories is None or row.asked_for or self._is_mentioned(row.ordinal)

    def sees_claim(self, row: RelationshipRow) -> bool:
        """Whether a memory of the scope says it, or the API was told it."""
        if self.memories is None or row.asked_for:
            return True
        return any(source in self.memories for source in row.sources)

    def sourced(self, claims: Sequence[RelationshipRow]) -> list[RelationshipRow]:
        """The claims, each with a source that the scope has, or none."""
        if self.memories is None:
            return list(claims)
        inside = [next((m for m in row.sources if m in self.memories), None) for row in claims]
        rows = find_rows_at(self.ctx, {memory for memory in inside if memory is not None})
        ids = {row.ordinal: row.id for row in rows}
        return [
            msgspec.structs.replace(
                row, source_memory_id=None if memory is None else ids.get(memory)
            )
            for row, memory in zip(claims, inside, strict=True)
        ]

    def _is_mentioned(self, entity: int) -> bool:
        return self.memories is not None and bool(mentioning(self.ctx, entity, self.memories))


def mentioning(ctx: ReadContext, entity: int, allowed: BitMap) -> list[int]:
    """Those of the newest memories that mention an entity that are among `allowed`, newest first.

    Where others' mentions are the newest, the newest of `allowed` are looked up one by one.
    """
    keys = ctx[MENTIONS].keys(entity, reverse=True, limit=MEMORIES_PER_ENTITY_MAX)
    newest = [memory for _, memory in keys]
    found = [memory for memory in newest if memory in allowed]
    if len(newest) < MEMORIES_PER_ENTITY_MAX or len(found) == len(newest):
        return found
    older = list(reversed((allowed - BitMap(found))[-MEMORIES_PER_ENTITY_MAX:]))
    held = ctx[MENTIONS].get_many([(entity, memory) for memory in older])
    found += [memory for memory, mention in zip(older, held, strict=True) if mention is not None]
    return sorted(found, reverse=True)[:MEMORIES_PER_ENTITY_MAX]
