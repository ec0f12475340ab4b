"""What holds no more: a claim with its end, and the memories that are left without a claim.

Nothing is changed in place: the claim gets an end, and a memory is superseded once none of its
claims is left, unless it says much more than they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from plugins.graph import RelationshipRow, end_claim, note_bound, part_claim, refreshed
from plugins.ingestion import duplicates as merging
from plugins.ingestion.facts import RELATIVES
from plugins.ingestion.store import FACTS, TURN, FactRow
from plugins.memories import MemoryRow, find_rows_at
from runtime.api.context import WriteContext

UNCLAIMED_WORDS_MAX = 1  # a memory that says more beside its claims outlives them


@dataclass(slots=True)
class Superseded:
    """Memories that a new one leaves without a claim, by replacing or by ending them; and the one
    that is later than itself.
    """

    replaced: list[MemoryRow] = field(default_factory=list)
    ended: list[MemoryRow] = field(default_factory=list)
    later: MemoryRow | None = None


def end(
    ctx: WriteContext, row: RelationshipRow, at: int, memory: MemoryRow, superseded: list[MemoryRow]
) -> None:
    """End a claim, and note in `superseded` the memories that have no other claim left."""
    row = refreshed(ctx, row)
    if row.valid_to is not None and row.valid_to <= at:
        return  # another claim of the same memory has ended it
    row = _of_scope_alone(ctx, row, memory)
    end_claim(ctx, row, at, memory.id)
    note_bound(ctx, row, memory)
    for source in find_rows_at(ctx, row.sources):
        if not source.superseded and source.id != memory.id and not _still_says(ctx, source):
            superseded.append(source)


def _of_scope_alone(ctx: WriteContext, row: RelationshipRow, memory: MemoryRow) -> RelationshipRow:
    """The claim as the collection and the end user of a memory make it: what others say too is
    theirs, and no statement of somebody else ends it.
    """
    sources = find_rows_at(ctx, row.sources)
    scope = (memory.number, memory.user_id)
    own = [each for each in sources if (each.number, each.user_id) == scope]
    if not own or len(own) == len(sources):
        return row
    parted = part_claim(ctx, row, own)
    for each in own:
        for key, fact in list(ctx[FACTS].scan(each.id)):
            if fact.relationship_id == row.id:
                ctx[FACTS].put(key, msgspec.structs.replace(fact, relationship_id=parted.id))
    return parted


def _still_says(ctx: WriteContext, memory: MemoryRow) -> bool:
    """Whether a claim of this memory stands. A memory that nothing was extracted from is left
    alone.
    """
    facts = [row for _, row in ctx[FACTS].scan(memory.id)]
    if not facts:
        return True
    for fact in facts:
        if fact.polarity != "holds" or is_in_passing(fact, facts):
            continue
        row = merging.claim_of(ctx, fact)
        if row is None:
            return True
        if row.valid_to is None and row.invalidated_at is None:
            return True
    return memory.source_type == TURN and merging.words_beside(memory, facts) > UNCLAIMED_WORDS_MAX


def is_in_passing(fact: FactRow, facts: Sequence[FactRow]) -> bool:
    """Whether a claim only says who another one is about: that "my sister Ana" is Ana, where she
    "lives in Porto"; or that there is what "my car" takes for given.
    """
    if fact.predicate in ("has", "has_pet") and len(facts) > 1:
        quote, thing = fact.evidence.quote.casefold(), fact.object.casefold()
        return f"my {thing}" in quote or f"our {thing}" in quote
    around = fact.evidence
    return fact.predicate in RELATIVES and any(
        other.subject == fact.object
        and other.evidence.source == around.source
        and around.start <= other.evidence.start
        and other.evidence.end <= around.end
        for other in facts
    )
