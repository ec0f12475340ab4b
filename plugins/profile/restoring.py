"""Taking in exported profiles, as far as somebody set them: name, time zone, language, bio and
facts. What memories say of a user is read again from them, and a profile that has nothing else is
skipped.

A profile of which something is set here already is left alone. Dialectic sessions stay behind: an
export does not say whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from plugins.memories import ScopeName
from plugins.profile.limits import BIO_CHARS_MAX, FACTS_PER_PROFILE_MAX, GIVEN_FACTS_MAX
from plugins.profile.operations import Language, NewFact, Zone
from plugins.profile.store import PROFILES, GivenFact, ProfileRow, check_profiles, user_key
from runtime.api.context import WriteContext
from runtime.api.operation import Body
from runtime.api.restoring import Origin, Restore
from runtime.limits import ID_CHARS_MAX, NAME_CHARS_MAX
from runtime.timestamps import Timestamp


class ExportedFact(NewFact):
    """A fact as an export has it; what somebody set has no evidence."""

    id: Annotated[str, Field(max_length=ID_CHARS_MAX)]
    evidence_memory_ids: list[str]
    observed_at: Timestamp


class ExportedProfile(Body):
    """A profile as an export has it; given_name: the name that was set, which the texts of others
    do not change.
    """

    user_id: ScopeName | None = None
    given_name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)] | None = None
    timezone: Zone | None = None
    language: Language | None = None
    bio: Annotated[str, Field(max_length=BIO_CHARS_MAX)] | None = None
    static: list[ExportedFact] = Field(
        default_factory=list, max_length=GIVEN_FACTS_MAX + FACTS_PER_PROFILE_MAX
    )
    updated_at: Timestamp | None = None

    def given(self) -> list[ExportedFact]:
        return [fact for fact in self.static if not fact.evidence_memory_ids]


def restore_profiles(ctx: WriteContext, records: Sequence[ExportedProfile], origin: Origin) -> int:
    """Store what was set of users of whom nothing is set here; -> of how many. Raises
    PermissionDenied for want of room.
    """
    return sum(_restore_profile(ctx, record, origin) for record in records)


def _restore_profile(ctx: WriteContext, record: ExportedProfile, origin: Origin) -> bool:
    user = user_key(ctx, record.user_id)
    row = ctx[PROFILES].get(user)
    if row is None:
        check_profiles(ctx)
        row = ProfileRow(record.user_id or "")
    elif row.known and row.updated_at:
        return False
    row.known, row.updated_at = True, min(record.updated_at or ctx.now, ctx.now)
    row.name, row.timezone = record.given_name, record.timezone
    row.language, row.bio = record.language, record.bio
    chosen = {fact.key: fact for fact in record.given()[:GIVEN_FACTS_MAX]}
    row.given = [
        GivenFact(origin.renamed(fact.id), fact.key, fact.value, min(fact.observed_at, ctx.now))
        for fact in chosen.values()
    ]
    ctx[PROFILES].put((user,), row)
    return True


def _was_set(ctx: WriteContext, record: ExportedProfile) -> bool:
    said = (record.given_name, record.timezone, record.language, record.bio)
    return bool(record.given()) or any(each is not None for each in said)


RESTORE = {"profile": Restore(ExportedProfile, restore_profiles, _was_set)}
