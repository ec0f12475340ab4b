"""What a claim that somebody enters in place of earlier ones does to them, and from when it holds.

Whoever asks for it says that the predicate has one target at a time, so the earlier claims end
where this one begins; without a beginning it begins now, or it would contradict them. A claim that
is over may be told again so: it holds from now on, as a claim of its own, and what was over stays
over.
"""

from __future__ import annotations

from plugins.graph.store import Claim, claims_of, end_claim, note_bound
from plugins.memories import MemoryRow
from runtime.api.context import ReadContext, WriteContext


def close_previous(ctx: WriteContext, claim: Claim, memory: MemoryRow | None) -> list[str]:
    """End the open claims of the same subject and predicate that began before this one; -> their
    ids. The ends go with the memory that this one is entered from, as it does.
    """
    begins = ctx.now if claim.valid_from is None else claim.valid_from
    closed = []
    for row in claims_of(ctx, claim.source.ordinal, claim.type):
        is_open = row.valid_to is None or row.valid_to > begins
        if (
            row.target != claim.target.ordinal
            and is_open
            and (row.begins is None or row.begins < begins)
        ):
            end_claim(ctx, row, begins, "" if memory is None else memory.id)
            if memory is not None:
                note_bound(ctx, row, memory)
            closed.append(row.id)
    return closed


def beginning(ctx: ReadContext, claim: Claim, *, has_closed: bool) -> int | None:
    """From when a claim holds that follows others, where nobody tells: where it stands already,
    from when it does; where others ended for it, or where it was over, from now.
    """
    if claim.valid_from is not None or (claim.valid_to is not None and claim.valid_to <= ctx.now):
        return claim.valid_from  # told, or of what was over before now
    same = [
        row
        for row in claims_of(ctx, claim.source.ordinal, claim.type)
        if row.target == claim.target.ordinal
    ]
    standing = [row for row in same if row.valid_to is None or row.valid_to > ctx.now]
    if standing:
        return standing[-1].valid_from
    return ctx.now if same or has_closed else None
