"""A memory's features as they are stored: what its text shows, who said it in which session, and
which memories stand beside it there.
"""

from __future__ import annotations

from plugins.memories.features import (
    NOTHING,
    TextFeatures,
    keyed_hash,
    links,
    pack,
    relinked,
)
from plugins.memories.rows import MEMORY_FEATURES, MEMORY_FIELDS, MemoryRow
from runtime.api.context import ReadContext, WriteContext


def speaker_hash(ctx: ReadContext, speaker: str) -> int:
    """The number that stands for a speaker in the features."""
    return keyed_hash(ctx.scope.key, "speaker", speaker)


def session_hash(ctx: ReadContext, row: MemoryRow) -> int:
    """The number of a row's session, in the features and in the field "session"; 0 for none. A
    session never spans collections or users.
    """
    return (
        0
        if row.session_id is None
        else keyed_hash(ctx.scope.key, "session", row.number, row.user_id or "", row.session_id)
    )


def put_features(ctx: WriteContext, row: MemoryRow, features: TextFeatures) -> None:
    """Keep what a memory's text shows, beside its neighbours in the session."""
    records = ctx.index(MEMORY_FEATURES)
    beside = links(records.get(row.ordinal))
    beside = beside if row.stands_in == row.rests_on else (NOTHING, NOTHING)
    records.put(row.ordinal, feature_record(ctx, row, features, *beside))


def feature_record(
    ctx: ReadContext, row: MemoryRow, features: TextFeatures, previous: int, following: int
) -> bytes:
    """A memory's features as stored, between its neighbours in the session."""
    return pack(
        features,
        created_at=row.created_at,
        occurred_at=row.occurred_at,
        session=session_hash(ctx, row),
        speaker=0 if row.speaker is None else speaker_hash(ctx, row.speaker),
        collection=row.number,
        previous=previous,
        following=following,
    )


def link(
    ctx: WriteContext, row: MemoryRow, turn: int | None, sessions: dict[int, int | None]
) -> None:
    """Put a new memory at the end of its session; one that rests on another only follows `turn`,
    the ordinal of what it stands in, and nothing follows it. sessions: session's hash -> its last
    ordinal, where it has been looked up.
    """
    session, records = session_hash(ctx, row), ctx.index(MEMORY_FEATURES)
    if row.rests_on is not None:
        if turn is not None:
            records.put(row.ordinal, relinked(records.get(row.ordinal), previous=turn))
        return
    if not session:
        return
    if session not in sessions:
        members = ctx.index(MEMORY_FIELDS).of("session", session)
        sessions[session] = members.max() if members else None
    last = sessions[session]
    sessions[session] = row.ordinal
    if last is not None:
        records.put(last, relinked(records.get(last), following=row.ordinal))
        records.put(row.ordinal, relinked(records.get(row.ordinal), previous=last))


def unlink(ctx: WriteContext, ordinal: int) -> None:
    """Take a memory's features away and join its session neighbours."""
    records = ctx.index(MEMORY_FEATURES)
    previous, following = links(records.get(ordinal))
    records.delete(ordinal)
    if previous != NOTHING and links(records.get(previous))[1] == ordinal:
        records.put(previous, relinked(records.get(previous), following=following))
    if following != NOTHING:
        records.put(following, relinked(records.get(following), previous=previous))
