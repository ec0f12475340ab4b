"""Taking in exported profiles, as far as somebody set them: name, time zone, language, bio and
facts; that one was deleted; and dialectic sessions. What memories say of a user is read again from
them, and a profile that has nothing else is skipped.

A profile of which something is set here already is left alone. One that was deleted is, too, where
the user has memories here from before those that came: what counts no more is told by the last of
them, and these would go along. A time zone that this release does not know is left out. A session
is left out where the export does not say whose it is, and so are its turns that rest on memories
which are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from plugins.memories import ScopeName, find_row
from plugins.profile.limits import (
    BIO_CHARS_MAX,
    DIALOGUE_HYPOTHESES_MAX,
    DIALOGUE_MEMORIES_MAX,
    DIALOGUE_TURN_CHARS_MAX,
    DIALOGUE_TURNS_KEPT_MAX,
    FACTS_PER_PROFILE_MAX,
    GIVEN_FACTS_MAX,
)
from plugins.profile.operations import Language, NewFact, is_zone
from plugins.profile.store import (
    DIALOGUES,
    PROFILE_FACTS,
    PROFILES,
    DialogueRow,
    GivenFact,
    Hypothesis,
    ProfileRow,
    Turn,
    check_profiles,
    keep_dialogue,
    memories_of,
    readable_part,
    session_key,
    user_key,
    withdraw,
)
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.limits import ID_CHARS_MAX, NAME_CHARS_MAX
from runtime.timestamps import Timestamp

MemoryId = Annotated[str, Field(max_length=ID_CHARS_MAX)]
MemoryIds = Annotated[list[MemoryId], Field(max_length=DIALOGUE_MEMORIES_MAX)]
Said = Annotated[str, Field(max_length=DIALOGUE_TURN_CHARS_MAX)]


class ExportedFact(NewFact):
    """A fact as an export has it; what somebody set has no evidence."""

    id: Annotated[str, Field(max_length=ID_CHARS_MAX)]
    evidence_memory_ids: list[str]
    observed_at: Timestamp


class ExportedProfile(Body):
    """A profile as an export has it; given_name: the name that was set, which the texts of others
    do not change; forgotten: the first and the last of the memories that count no more since it was
    deleted.
    """

    user_id: ScopeName | None = None
    given_name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)] | None = None
    timezone: Annotated[str, Field(max_length=NAME_CHARS_MAX)] | None = None
    language: Language | None = None
    bio: Annotated[str, Field(max_length=BIO_CHARS_MAX)] | None = None
    static: list[ExportedFact] = Field(
        default_factory=list, max_length=GIVEN_FACTS_MAX + FACTS_PER_PROFILE_MAX
    )
    updated_at: Timestamp | None = None
    forgotten: tuple[MemoryId, MemoryId] | None = None

    def given(self) -> list[ExportedFact]:
        return [fact for fact in self.static if not fact.evidence_memory_ids]


def restore_profiles(ctx: WriteContext, records: Sequence[ExportedProfile], origin: Origin) -> int:
    """Store what was set of users of whom nothing is set here; -> of how many. Raises
    PermissionDenied for want of room.
    """
    return sum(_restore_profile(ctx, record, origin) for record in records)


def _restore_profile(ctx: WriteContext, record: ExportedProfile, origin: Origin) -> bool:
    user = user_key(ctx, record.user_id)
    is_forgotten = _forget(ctx, record, origin)
    if not _is_set(record):
        return is_forgotten
    row = ctx[PROFILES].get(user)
    if row is None:
        check_profiles(ctx)
        row = ProfileRow(record.user_id or "")
    elif row.known and row.updated_at:
        return is_forgotten
    row.known, row.updated_at = True, min(record.updated_at or ctx.now, ctx.now)
    row.name = record.given_name
    row.timezone = record.timezone if record.timezone and is_zone(record.timezone) else None
    row.language, row.bio = record.language, record.bio
    chosen = {fact.key: fact for fact in record.given()[:GIVEN_FACTS_MAX]}
    row.given = [
        GivenFact(origin.renamed(fact.id), fact.key, fact.value, min(fact.observed_at, ctx.now))
        for fact in chosen.values()
    ]
    ctx[PROFILES].put((user,), row)
    return True


def _forget(ctx: WriteContext, record: ExportedProfile, origin: Origin) -> bool:
    """Let the memories that counted no more count no more here; -> whether some did until now."""
    if record.forgotten is None:
        return False
    first, last = (find_row(ctx, origin.renamed(name)) for name in record.forgotten)
    user, own = user_key(ctx, record.user_id), memories_of(ctx, record.user_id)
    row = ctx[PROFILES].get(user) or ProfileRow(record.user_id or "", known=False)
    if first is None or last is None or own.min() < first.ordinal or last.ordinal < row.since:
        return False
    if row.known and row.updated_at:
        return False
    row.since = last.ordinal + 1
    for _, fact in list(ctx[PROFILE_FACTS].scan(user)):
        for word in fact.evidence:
            if word.ordinal < row.since:
                withdraw(ctx, word.memory_id)
    row.known = next(ctx[PROFILE_FACTS].keys(user, limit=1), None) is not None
    ctx[PROFILES].put((user,), row)
    return True


def _is_set(record: ExportedProfile) -> bool:
    said = (record.given_name, record.timezone, record.language, record.bio)
    return bool(record.given()) or any(each is not None for each in said)


def _says_something(ctx: WriteContext, record: ExportedProfile) -> bool:
    return record.forgotten is not None or _is_set(record)


# --- dialectic sessions ---------------------------------------------------------------------------


class ExportedTurn(Body):
    """A question and its answer, and the memories that they rest on."""

    asked: Said
    answered: Said
    memory_ids: MemoryIds = Field(default_factory=list)


class ExportedHypothesis(Body):
    """A guess about a user."""

    statement: Said
    confidence: float = Field(ge=0, le=1)
    memory_ids: MemoryIds = Field(default_factory=list)


class ExportedDialogue(Body):
    """A dialectic session as an export has it. user_id: "" for the account's own, None where nobody
    knows whose it is.
    """

    session_id: ScopeName
    user_id: ScopeName | Literal[""] | None = None
    turns: list[ExportedTurn] = Field(default_factory=list, max_length=DIALOGUE_TURNS_KEPT_MAX)
    hypotheses: list[ExportedHypothesis] = Field(
        default_factory=list, max_length=DIALOGUE_HYPOTHESES_MAX
    )
    updated_at: Timestamp


def restore_dialogues(
    ctx: WriteContext, records: Sequence[ExportedDialogue], origin: Origin
) -> int:
    """Store the sessions that are not here yet, as far as the memories that they rest on are; ->
    how many.
    """
    return sum(_restore_dialogue(ctx, record, origin) for record in records)


def _restore_dialogue(ctx: WriteContext, record: ExportedDialogue, origin: Origin) -> bool:
    def renamed(memory_ids: Sequence[str]) -> list[str]:
        return [origin.renamed(memory_id) for memory_id in memory_ids]

    session_id = origin.renamed(record.session_id)
    key = session_key(ctx, record.user_id or None, session_id)
    if ctx[DIALOGUES].get(*key) is not None:
        return False
    told = DialogueRow(
        session_id,
        [Turn(each.asked, each.answered, renamed(each.memory_ids)) for each in record.turns],
        [
            Hypothesis(each.statement, each.confidence, renamed(each.memory_ids))
            for each in record.hypotheses
        ],
        min(record.updated_at, ctx.now),
        record.user_id or "",
    )
    kept = readable_part(ctx, told)
    if told.turns and not kept.turns:
        return False
    keep_dialogue(ctx, key, kept)
    return True


def _is_somebodys(ctx: WriteContext, record: ExportedDialogue) -> bool:
    return record.user_id is not None


RESTORE = {
    "profile": Restore(ExportedProfile, restore_profiles, _says_something),
    "dialogue": Restore(ExportedDialogue, restore_dialogues, _is_somebodys),
}
