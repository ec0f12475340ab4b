"""The operations on profiles: their bodies, their answers, and what they do."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from plugins.memories import ScopeName
from plugins.profile import dialectic
from plugins.profile.limits import BIO_CHARS_MAX, FACT_VALUE_CHARS_MAX, GIVEN_FACTS_MAX
from plugins.profile.sections import Section
from plugins.profile.store import (
    PROFILES,
    GivenFact,
    ProfileRow,
    check_profiles,
    delete_profile,
    read_profile,
    user_key,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Flow, Idempotency, Patch, Query, Read, View, Write
from runtime.errors import NotFound
from runtime.limits import NAME_CHARS_MAX

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) | {"UTC"}


def _known_zone(name: str) -> str:
    if name not in _zones():
        raise ValueError("must be a name of the IANA time zone database, such as Europe/Lisbon")
    return name


def _language_tag(tag: str) -> str:
    if _LANGUAGE.fullmatch(tag) is None:
        raise ValueError("must be a language tag of BCP 47, such as pt-BR")
    return tag


# --- the wire -------------------------------------------------------------------------------------

Zone = Annotated[str, AfterValidator(_known_zone)]
Language = Annotated[str, AfterValidator(_language_tag)]


class ProfileQuery(Query):
    user_id: ScopeName | None = Field(
        default=None,
        description="The end user; absent: nobody in particular.",
    )


class NewFact(BaseModel):
    key: str = Field(
        pattern=r"^[a-z0-9_.-]{1,64}$", description="What it is about, such as `diet`."
    )
    value: str = Field(min_length=1, max_length=FACT_VALUE_CHARS_MAX, description="What is so.")


class ProfilePatch(Patch):
    """Absent fields stay; null clears. `static` replaces the facts that were set before; derived
    ones are not touched.
    """

    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)] | None = Field(
        default=None, description="What to call the user."
    )
    timezone: Zone | None = Field(default=None, description="IANA time zone.")
    language: Language | None = Field(default=None, description="BCP 47 language tag.")
    bio: Annotated[str, Field(max_length=BIO_CHARS_MAX)] | None = Field(
        default=None, description="A few sentences."
    )
    static: Annotated[list[NewFact], Field(max_length=GIVEN_FACTS_MAX)] | None = Field(
        default=None, description="Facts to hold as given."
    )


class Fact(View):
    id: str
    key: str
    value: str
    confidence: float = Field(
        description=(
            "1 for what was set; for what was derived it grows with the memories that say it."
        )
    )
    evidence_memory_ids: list[str] = Field(
        description="Memories that say it, latest first; empty for what was set."
    )
    observed_at: str = Field(description="When it was last said (ISO 8601).")


class ProfileSection(View):
    name: Section
    current: list[Fact] = Field(description="What holds, set facts first, then latest first.")
    former: list[Fact] = Field(
        description="What held once: replaced by a later value, or said to hold no more."
    )


class Profile(View):
    user_id: str | None
    name: str | None
    timezone: str | None
    language: str | None
    bio: str | None
    static: list[Fact] = Field(
        description="What stays: set facts first, then derived ones, latest first."
    )
    dynamic: list[Fact] = Field(description="What passes: plans, occupations of the moment.")
    sections: list[ProfileSection] = Field(
        description="The facts of both lists by what they are about, with former ones apart; "
        "sections without a fact are left out."
    )
    updated_at: str | None = Field(
        description="When something about it last changed (ISO 8601); null: never."
    )
    memory_count: int = Field(description="Readable memories of this user.")


class Deleted(View):
    deleted: bool


# --- handlers -------------------------------------------------------------------------------------


def get(ctx: ReadContext, body: None) -> dict[str, Any]:
    return read_profile(ctx, ctx.query.user_id)


def update(ctx: WriteContext, body: ProfilePatch) -> dict[str, Any]:
    """Set or clear what is named. A value set twice under one key: the last one."""
    user_id = ctx.query.user_id
    user = user_key(ctx, user_id)
    row = ctx[PROFILES].get(user)
    if row is None:
        check_profiles(ctx)
        row = ProfileRow(user_id or "")
    for name in body.model_fields_set & {"name", "timezone", "language", "bio"}:
        setattr(row, name, getattr(body, name))
    if "static" in body.model_fields_set:
        chosen = {fact.key: fact.value for fact in body.static or ()}
        before = {(fact.key, fact.value): fact for fact in row.given}
        row.given = [
            before.get(item) or GivenFact(ctx.new_id("fct"), *item, ctx.now)
            for item in chosen.items()
        ]
    if body.model_fields_set:
        row.known, row.updated_at = True, ctx.now
        ctx[PROFILES].put((user,), row)
    return read_profile(ctx, user_id)


def delete(ctx: WriteContext, body: None) -> dict[str, Any]:
    if not delete_profile(ctx, ctx.query.user_id):
        raise NotFound("There is no profile of this user.")
    return {"deleted": True}


# --- operations ----------------------------------------------------------------------------------

_MEMORY = "mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g"
_EXAMPLE_FACT = {
    "id": "fct_01kaeqz7c42t9w8r5n3v7x1y4b6d8f0g",
    "key": "lives_in",
    "value": "Lisbon",
    "confidence": 0.8,
    "evidence_memory_ids": [_MEMORY],
    "observed_at": "2026-05-08T13:56:00.000Z",
}
_EXAMPLE = {
    "user_id": "ada",
    "name": "Ada",
    "timezone": "Europe/Lisbon",
    "language": "pt-PT",
    "bio": None,
    "static": [_EXAMPLE_FACT],
    "dynamic": [],
    "sections": [{"name": "where", "current": [_EXAMPLE_FACT], "former": []}],
    "updated_at": "2026-05-08T13:56:01.000Z",
    "memory_count": 12,
}

OPERATIONS = (
    Read(
        name="profile.get",
        method="GET",
        path="/v1/profile",
        handler=get,
        response=Profile,
        query=ProfileQuery,
        summary="Get the profile of an end user",
        description="A user never seen has an empty one.",
        example_reply=_EXAMPLE,
    ),
    Write(
        name="profile.update",
        method="PATCH",
        path="/v1/profile",
        handler=update,
        body=ProfilePatch,
        response=Profile,
        scope="write",
        idempotency=Idempotency.CACHED,
        query=ProfileQuery,
        summary="Set what is known of an end user",
        description="Absent fields stay, null clears. `static` replaces the facts set before.",
        example={
            "name": "Ada",
            "timezone": "Europe/Lisbon",
            "language": "pt-PT",
            "static": [{"key": "diet", "value": "vegan"}],
        },
        example_reply=_EXAMPLE,
    ),
    Write(
        name="profile.delete",
        method="DELETE",
        path="/v1/profile",
        handler=delete,
        response=Deleted,
        scope="write",
        idempotency=Idempotency.CACHED,
        query=ProfileQuery,
        summary="Delete the profile of an end user",
        description=(
            "With its dialectic sessions. Memories stay; only those stored later feed a new "
            "profile. Again is 404."
        ),
        example_reply={"deleted": True},
    ),
    Flow(
        name="profile.dialectic",
        method="POST",
        path="/v1/profile/dialectic",
        load=dialectic.load,
        handler=dialectic.converse,
        finish=dialectic.finish,
        body=dialectic.DialecticBody,
        response=dialectic.DialecticReply,
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=10,
        summary="Talk about an end user",
        description="Answers from the profile and the memories of the user, and keeps "
        "hypotheses about "
        "them from turn to turn, each with "
        "the memories that support it.",
        example={
            "user_message": "Where does she live?",
            "user_id": "ada",
            "reasoning_level": "low",
        },
        example_reply={
            "session_id": "ses_01kaeqz8w02t9w8r5n3v7x1y4b6d8f0g",
            "assistant_message": "lives in: Lisbon.",
            "engine": "extractive",
            "evidence_memory_ids": [_MEMORY],
            "hypotheses": [
                {
                    "statement": "lives in: Lisbon",
                    "confidence": 0.8,
                    "evidence_memory_ids": [_MEMORY],
                }
            ],
            "follow_up_question": None,
            "abstain_recommended": False,
            "degraded": False,
        },
    ),
)
