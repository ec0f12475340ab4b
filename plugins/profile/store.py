"""Profiles as they are stored: what is known of an end user, with the memories that say so.

Owns how facts come and go. It does not know requests; plugins/profile/__init__.py and
plugins/profile/dialectic.py read it.

A fact is a key and a value; its evidence is the memories that say it. A memory that is stored or
changed is noted in the same transaction, and the job `profile.refresh` reads what it says
(plugins/profile/rules.py). A memory that goes takes its evidence along in its own transaction; one
that is merely out of reach (expired, superseded, hidden) is left out when a profile is read.

Invariants
- a derived fact that is shown has at least one readable memory behind it; facts that a caller set
  have none and say so by confidence 1 and an empty list;
- of a key that holds one value at a time, the value observed last is shown; the others are former
  ones, and come back when it goes;
- after a deletion only memories stored later count: `since` is the first ordinal that does;
- a turn of a dialogue may quote the memories it rests on, and goes with the first of them.

Memories without a user_id make up the account's own profile, under user_id "". Texts that repeat
memories (tag `recalled`) and chunks of documents say nothing about anybody.

    profiles         (user,)                       -> ProfileRow
    profile_facts    (user, fact)                  -> FactRow
    profile_sources  (memory id, user, fact)       -> b""    what a memory is evidence for
    profile_pending  (memory id,)                  -> b""    to be read by the job
    profile_alarm    ()                            -> b""    whether the job is waiting
    dialogues        (user, digest of session id)  -> DialogueRow
    dialogue_sources (memory id, user, session)    -> b""    whose turns rest on a memory

`user` is the keyed digest of the user_id, 16 bytes; `fact` the same of its key and value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from pyroaring import BitMap

from plugins.answers import RECALLED
from plugins.ingestion import FactRow as Claim
from plugins.ingestion import facts_of, in_one_spelling
from plugins.memories import MEMORY_FIELDS, MemoryRow, find_row, readable
from plugins.profile.limits import (
    FACT_EVIDENCE_MEMORIES_MAX,
    FACT_VALUE_CHARS_MAX,
    FACTS_PER_PROFILE_MAX,
    PROFILE_MEMORIES_PER_STEP,
    PROFILE_REFRESH_DELAY_MS,
    PROFILES_KEPT,
)
from plugins.profile.rules import DYNAMIC, FUNCTIONAL, Observation, observations
from plugins.profile.sections import in_sections, section_of
from plugins.profile.speaking import is_the_user
from runtime.api.checks import Derived
from runtime.api.context import COUNTERS, ReadContext, WriteContext
from runtime.api.exporting import Exported, sections
from runtime.api.jobs import Again
from runtime.api.tiers import check_room, records_limit
from runtime.timestamps import iso
from storage.store import Key, Table

UNREAD_SOURCES = frozenset(["document", "memory_file"])
# Each further memory that says the same takes this share off what is left of the doubt.
DOUBT_KEPT = 0.6
CLAIMED = 0.8  # how sure what ingestion read is
# Not to have or take these is a fact of its own: "I don't eat meat".
_DENIABLE = {"eat": "diet", "drink": "diet"}


class GivenFact(msgspec.Struct):
    id: str
    key: str
    value: str
    at: int


class ProfileRow(msgspec.Struct, omit_defaults=True):
    """What callers set. since: ordinal of the first memory that counts. known: whether there is a
    profile to delete.
    """

    user_id: str
    since: int = 0
    known: bool = True
    name: str | None = None
    timezone: str | None = None
    language: str | None = None
    bio: str | None = None
    given: list[GivenFact] = []
    updated_at: int = 0


class Evidence(msgspec.Struct):
    """One memory's word. at: when it happened, Unix milliseconds. holds: whether it says yes or
    no.
    """

    memory_id: str
    ordinal: int
    at: int
    confidence: float
    holds: bool


class ProfileFactRow(msgspec.Struct):
    id: str
    key: str
    value: str
    evidence: list[Evidence]
    updated_at: int


class Turn(msgspec.Struct):
    asked: str
    answered: str
    memory_ids: list[str] = []


class Hypothesis(msgspec.Struct):
    statement: str
    confidence: float
    memory_ids: list[str]


class DialogueRow(msgspec.Struct):
    session_id: str
    turns: list[Turn] = []
    hypotheses: list[Hypothesis] = []
    updated_at: int = 0


PROFILES: Table[ProfileRow] = Table(
    "profiles", key=("user",), row=ProfileRow, doc="what callers set of an end user"
)
PROFILE_FACTS: Table[ProfileFactRow] = Table(
    "profile_facts", key=("user", "fact"), row=ProfileFactRow, doc="derived facts with evidence"
)
PROFILE_SOURCES: Table[bytes] = Table(
    "profile_sources",
    key=("memory_id", "user", "fact"),
    row=bytes,
    doc="the facts a memory is evidence for",
)
PROFILE_PENDING: Table[bytes] = Table(
    "profile_pending",
    key=("memory_id",),
    row=bytes,
    doc="memories whose facts are still to be read",
)
PROFILE_ALARM: Table[bytes] = Table(
    "profile_alarm", key=(), row=bytes, doc="there while the job that reads them is waiting"
)
DIALOGUES: Table[DialogueRow] = Table(
    "dialogues",
    key=("user", "session_hmac"),
    row=DialogueRow,
    doc="dialectic sessions",
    version=2,  # 2: what their turns rest on
)
DIALOGUE_SOURCES: Table[bytes] = Table(
    "dialogue_sources",
    key=("memory_id", "user", "session_hmac"),
    row=bytes,
    doc="the dialectic sessions with turns that rest on a memory",
)
TABLES: tuple[Table, ...] = (
    PROFILES,
    PROFILE_FACTS,
    PROFILE_SOURCES,
    PROFILE_PENDING,
    PROFILE_ALARM,
    DIALOGUES,
    DIALOGUE_SOURCES,
)


def user_key(ctx: ReadContext, user_id: str | None) -> bytes:
    return ctx.digest("profile user", user_id or "")


def session_key(ctx: ReadContext, user_id: str | None, session_id: str) -> tuple[bytes, bytes]:
    """The key of a dialectic session."""
    return user_key(ctx, user_id), ctx.digest("profile session", session_id)


# --- room -----------------------------------------------------------------------------------------


def figures(ctx: ReadContext) -> dict[str, int]:
    """How many profiles there are, deleted ones of users who have memories included."""
    return {"profiles": ctx[PROFILES].count()}


def check_profiles(ctx: ReadContext) -> None:
    """Raise PermissionDenied where the tier has no room for one more profile."""
    tier = ctx.principal.tier
    if records_limit(ctx.settings, tier, PROFILES_KEPT) is not None:  # they are counted one by one
        check_room(ctx.settings, tier, PROFILES_KEPT, ctx[PROFILES].count())


# --- reading --------------------------------------------------------------------------------------


def read_profile(ctx: ReadContext, user_id: str | None) -> dict[str, Any]:
    """Make the view of a user's profile; an empty one for a user never seen."""
    user = user_key(ctx, user_id)
    row = ctx[PROFILES].get(user) or ProfileRow(user_id or "")
    derived = {"static": [], "dynamic": []}
    given = [_given_view(fact) for fact in row.given]
    taken = {fact["key"] for fact in given}
    facts, over = _current(ctx, user)
    for fact, kept in facts:
        if fact.key not in taken:
            derived["dynamic" if fact.key in DYNAMIC else "static"].append(_view(fact, kept))
    holding = [*given, *derived["static"], *derived["dynamic"]]
    name = row.name or next((fact.value for fact, _ in facts if fact.key == "named"), None)
    changes = [row.updated_at, *(fact.updated_at for fact, _ in facts)]
    return {
        "user_id": user_id,
        "name": name,
        "timezone": row.timezone,
        "language": row.language,
        "bio": row.bio,
        "static": given + derived["static"],
        "dynamic": derived["dynamic"],
        "sections": in_sections(holding, [_view(fact, kept) for fact, kept in over]),
        "updated_at": iso(max(changes)) if max(changes) else None,
        "memory_count": len(memories_of(ctx, user_id)),
    }


def since_of(ctx: ReadContext, user_id: str | None) -> int:
    """The first ordinal that counts for this user; it grows with each deletion of the profile."""
    row = ctx[PROFILES].get(user_key(ctx, user_id))
    return 0 if row is None else row.since


def memories_of(ctx: ReadContext, user_id: str | None) -> BitMap:
    """The readable memories of one end user; those of nobody in particular for None."""
    fields, live = ctx.index(MEMORY_FIELDS), readable(ctx)
    return (
        live & fields.of("user_id", user_id)
        if user_id is not None
        else live - fields.range("user_id", None, None)
    )


_Kept = tuple[ProfileFactRow, list[Evidence]]


def _current(ctx: ReadContext, user: bytes) -> tuple[list[_Kept], list[_Kept]]:
    """The facts that hold now, each with its readable evidence, latest first; and likewise those
    that held once: that a later value replaced, or that were said to hold no more.
    """
    live, stored = readable(ctx), readable(ctx, include_superseded=True)
    holding: list[_Kept] = []
    over: list[_Kept] = []
    for _, fact in ctx[PROFILE_FACTS].scan(user):
        evidence = [one for one in fact.evidence if one.ordinal in live]
        if evidence and _last(evidence).holds:
            holding.append((fact, [one for one in evidence if one.holds]))
        elif held := [one for one in fact.evidence if one.holds and one.ordinal in stored]:
            over.append((fact, held))
    holding = _latest_first(holding)
    current, decided = [], set()
    for fact, evidence in holding:
        if is_functional(fact.key):
            asked = _in_one_spelling(fact.key)
            if asked in decided:
                over.append((fact, evidence))
                continue
            decided.add(asked)
        current.append((fact, evidence))
    return current, _latest_first(over)


def _in_one_spelling(key: str) -> str:
    """The key of a favourite as it is compared: earlier releases kept it as it was said."""
    head, dot, detail = key.partition(".")
    return f"{head}{dot}{in_one_spelling(detail)}"


def _latest_first(facts: list[_Kept]) -> list[_Kept]:
    """Order by when they were last said; what was said at once has an order of its own."""
    by_name = sorted(facts, key=lambda item: (item[0].key, item[0].value))
    return sorted(by_name, key=lambda item: _order(_last(item[1])), reverse=True)


def is_functional(key: str) -> bool:
    return key in FUNCTIONAL or key.startswith("favorite.")


def _order(one: Evidence) -> tuple[int, int]:
    """Order by when it happened; at the same moment by arrival."""
    return one.at, one.ordinal


def _last(evidence: list[Evidence]) -> Evidence:
    return max(evidence, key=_order)


def _view(fact: ProfileFactRow, evidence: list[Evidence]) -> dict[str, Any]:
    doubt = (1 - max(one.confidence for one in evidence)) * DOUBT_KEPT ** (len(evidence) - 1)
    return {
        "id": fact.id,
        "key": fact.key,
        "value": fact.value,
        "confidence": round(1 - doubt, 4),
        "evidence_memory_ids": [
            one.memory_id for one in sorted(evidence, key=_order, reverse=True)
        ],
        "observed_at": iso(_last(evidence).at),
    }


def _given_view(fact: GivenFact) -> dict[str, Any]:
    view = {
        "id": fact.id,
        "key": fact.key,
        "value": fact.value,
        "confidence": 1.0,
        "evidence_memory_ids": [],
    }
    return view | {"observed_at": iso(fact.at)}


# --- evidence comes -------------------------------------------------------------------------------


def note(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a memory was stored or changed, or its claims were; what it said counts no more,
    what it says is read soon.
    """
    if kind != "memory.created":
        withdraw(ctx, resource_id)
    ctx[PROFILE_PENDING].put((resource_id,), b"")
    if not ctx[PROFILE_ALARM].has():
        ctx[PROFILE_ALARM].put((), b"")
        ctx.enqueue("profile.refresh", {}, delay_ms=PROFILE_REFRESH_DELAY_MS)


def refresh(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job: one step through the memories that wait to be read."""
    waiting = [
        memory_id for (memory_id,) in ctx[PROFILE_PENDING].keys(limit=PROFILE_MEMORIES_PER_STEP)
    ]
    for memory_id in waiting:
        ctx[PROFILE_PENDING].delete(memory_id)
        row = find_row(ctx, memory_id)
        if row is not None:
            learn(ctx, row)
    if len(waiting) == PROFILE_MEMORIES_PER_STEP:
        return Again(payload)
    ctx[PROFILE_ALARM].delete()
    return {"read": len(waiting)}


def learn(ctx: WriteContext, row: MemoryRow) -> None:
    """Add a memory's word to the facts of its user."""
    user = user_key(ctx, row.user_id)
    profile = ctx[PROFILES].get(user)
    if profile is not None and row.ordinal < profile.since:
        return
    said = derived(ctx, row, profile)
    if said and (profile is None or not profile.known):
        since = 0 if profile is None else profile.since
        ctx[PROFILES].put((user,), ProfileRow(row.user_id or "", since=since))
    for observation in said:
        key = (
            user,
            ctx.digest("profile fact", f"{observation.key}\0{observation.value.casefold()}"),
        )
        fact = ctx[PROFILE_FACTS].get(*key)
        if fact is None and not observation.holds:
            key, fact = _meant(ctx, user, observation) or (key, None)
        if fact is None:
            if not observation.holds or ctx[PROFILE_FACTS].count(user) >= FACTS_PER_PROFILE_MAX:
                continue
            fact = ProfileFactRow(
                ctx.new_id("fct"), observation.key, observation.value, [], ctx.now
            )
        word = Evidence(
            row.id, row.ordinal, row.occurred_at, observation.confidence, observation.holds
        )
        kept = sorted([*fact.evidence, word], key=_order)
        for dropped in kept[:-FACT_EVIDENCE_MEMORIES_MAX]:
            ctx[PROFILE_SOURCES].delete(dropped.memory_id, *key)
        fact.evidence, fact.updated_at = kept[-FACT_EVIDENCE_MEMORIES_MAX:], ctx.now
        ctx[PROFILE_FACTS].put(key, fact)
        if word in fact.evidence:
            ctx[PROFILE_SOURCES].put((row.id, *key), b"")


_OF_PLACES = frozenset({"works_at", "studies_at"})


def _meant(
    ctx: ReadContext, user: bytes, observation: Observation
) -> tuple[tuple[bytes, bytes], ProfileFactRow] | None:
    """The one fact that is meant by fewer words where something is over: "I left Asda", of who
    "works at Asda head office".
    """
    if observation.key not in _OF_PLACES:
        return None  # who is not allergic to nuts may be to pine nuts
    wanted = set(observation.value.casefold().split())
    found = [
        ((user, key[-1]), fact)
        for key, fact in ctx[PROFILE_FACTS].scan(user)
        if fact.key == observation.key
        and wanted <= set(fact.value.casefold().split())
        and _last(fact.evidence).holds
    ]
    return found[0] if wanted and len(found) == 1 else None


def derived(ctx: ReadContext, row: MemoryRow, profile: ProfileRow | None) -> list[Observation]:
    """What one memory says of its user. The one place that knows where observations come from: what
    smart ingestion found in it, and what else the rules find.
    """
    if RECALLED in row.tags or row.source_type in UNREAD_SOURCES:
        return []
    names = [name for name in (row.user_id, None if profile is None else profile.name) if name]
    known = {"user", *(name.casefold() for name in names)}
    own = is_the_user(ctx, row, names)
    me = known | ({row.speaker.casefold()} if own and row.speaker is not None else set())
    found = [_observed(claim, me) for claim in facts_of(ctx, row.id)]
    claimed = [one for one in found if one is not None]
    by_rules = observations(
        row.content, own=own, names=[*names, *({name.capitalize() for name in names} - set(names))]
    )
    keys = {one.key for one in claimed}
    # a claim says "favorite" of all that is, and the rules what it is of
    told = {one.value.casefold() for one in by_rules if one.key.startswith("favorite.")}
    kept = [one for one in claimed if one.key != "favorite" or one.value.casefold() not in told]
    return [*kept, *(one for one in by_rules if one.key not in keys)]


def _observed(claim: Claim, me: set[str]) -> Observation | None:
    """A claim about the user, or about when a thing of theirs takes place, as a fact of the
    profile; None of anything else.
    """
    subject, key, value = claim.subject, claim.predicate, claim.object
    owner, _, thing = subject.rpartition("'s ")
    if key == "takes_place" and owner.casefold() in me:
        value = f"{thing}: {value}"
    elif subject.casefold() not in me or key == "takes_place":
        return None
    if claim.polarity == "denied" and key in _DENIABLE:
        key, value = _DENIABLE[key], f"no {value}"
    elif claim.polarity == "denied":
        return Observation(key, value, CLAIMED, holds=False)
    if section_of(key, value) is None or len(value) > FACT_VALUE_CHARS_MAX:
        return None
    return Observation(key, value, CLAIMED, holds=claim.polarity == "holds")


# --- evidence goes --------------------------------------------------------------------------------


def forget(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Remove, as a subscriber, what a memory that is gone was evidence for."""
    ctx[PROFILE_PENDING].delete(resource_id)
    withdraw(ctx, resource_id)
    for _, *key in list(ctx[DIALOGUE_SOURCES].keys(resource_id)):
        dialogue = ctx[DIALOGUES].row(*key)
        keep_dialogue(ctx, tuple(key), _resting(dialogue, lambda one: one != resource_id))


def withdraw(ctx: WriteContext, memory_id: str) -> None:
    """Take a memory's word back. A fact without any left is deleted."""
    for _, *key in list(ctx[PROFILE_SOURCES].keys(memory_id)):
        ctx[PROFILE_SOURCES].delete(memory_id, *key)
        fact = ctx[PROFILE_FACTS].get(*key)
        if fact is None:
            continue
        fact.evidence = [one for one in fact.evidence if one.memory_id != memory_id]
        if fact.evidence:
            ctx[PROFILE_FACTS].put(tuple(key), fact)
        else:
            ctx[PROFILE_FACTS].delete(*key)


def delete_profile(ctx: WriteContext, user_id: str | None) -> bool:
    """Erase facts, what was set, and sessions; -> whether there was anything. Memories stored so
    far count no more.
    """
    user = user_key(ctx, user_id)
    row = ctx[PROFILES].get(user)
    since = 0 if row is None else row.since
    counted = BitMap(range(since)) if since else BitMap()
    sessions = ctx[DIALOGUES].count(user)
    if (
        not (row is not None and row.known)
        and not sessions
        and not memories_of(ctx, user_id) - counted
    ):
        return False
    for key, fact in list(ctx[PROFILE_FACTS].scan(user)):
        for one in fact.evidence:
            ctx[PROFILE_SOURCES].delete(one.memory_id, *key)
    ctx[PROFILE_FACTS].delete_prefix(user)
    for key, dialogue in list(ctx[DIALOGUES].scan(user)):
        keep_dialogue(ctx, key, DialogueRow(dialogue.session_id))
    ctx[DIALOGUES].delete_prefix(user)
    if user_id is not None and not ctx.index(MEMORY_FIELDS).of("user_id", user_id):
        ctx[PROFILES].delete(user)  # no memory of theirs could be read once more
        return True
    last = ctx[COUNTERS].get("memories")
    following = 0 if last is None else int.from_bytes(last, "big") + 1
    ctx[PROFILES].put((user,), ProfileRow(user_id or "", since=following, known=False))
    return True


# --- dialogues ------------------------------------------------------------------------------------


def keep_dialogue(ctx: WriteContext, key: tuple[Any, ...], dialogue: DialogueRow) -> None:
    """Store a session, and which memories its turns rest on."""
    stored = ctx[DIALOGUES].get(*key)
    before, now = set(), sources_of(dialogue)
    if stored is not None:
        before = sources_of(stored)
    for memory_id in before - now:
        ctx[DIALOGUE_SOURCES].delete(memory_id, *key)
    for memory_id in now - before:
        ctx[DIALOGUE_SOURCES].put((memory_id, *key), b"")
    ctx[DIALOGUES].put(key, dialogue)


def sources_of(dialogue: DialogueRow) -> set[str]:
    return {memory_id for turn in dialogue.turns for memory_id in turn.memory_ids}


def readable_part(ctx: ReadContext, dialogue: DialogueRow) -> DialogueRow:
    """A session without what rests on memories that cannot be read any more."""
    return _resting(dialogue, lambda memory_id: find_row(ctx, memory_id) is not None)


def _resting(dialogue: DialogueRow, stands: Callable[[str], bool]) -> DialogueRow:
    """The turns all of whose memories stand, and the hypotheses some of whose do, with these."""
    turns = [turn for turn in dialogue.turns if all(map(stands, turn.memory_ids))]
    guesses = [
        Hypothesis(one.statement, one.confidence, left)
        for one in dialogue.hypotheses
        if (left := [memory_id for memory_id in one.memory_ids if stands(memory_id)])
    ]
    return DialogueRow(dialogue.session_id, turns, guesses, dialogue.updated_at)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all profiles of the tenant. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext) -> Iterator[Exported]:
    """("profile", record) for each user with one, and ("dialogue", record) for each session.

    given_name: the name that was set, where `name` may be one that a memory says.
    """
    return sections(ctx, _profiles, _dialogues)


def _profiles(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, row in ctx[PROFILES].scan(after=after):
        if row.known:
            shown = read_profile(ctx, row.user_id or None)
            yield "profile", {**shown, "given_name": row.name}, key


def _dialogues(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    for key, dialogue in ctx[DIALOGUES].scan(after=after):
        shown = msgspec.to_builtins(readable_part(ctx, dialogue))
        record = {**shown, "updated_at": iso(dialogue.updated_at)}
        yield "dialogue", record, key


def _sources(
    ctx: ReadContext, key: tuple[Any, ...], fact: ProfileFactRow
) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    return (((word.memory_id, *key), b"") for word in fact.evidence)


def _dialogue_sources(
    ctx: ReadContext, key: tuple[Any, ...], dialogue: DialogueRow
) -> Iterator[tuple[tuple[Any, ...], bytes]]:
    return (((memory_id, *key), b"") for memory_id in sorted(sources_of(dialogue)))


CHECKS = (
    Derived(PROFILE_SOURCES, PROFILE_FACTS, _sources),
    Derived(DIALOGUE_SOURCES, DIALOGUES, _dialogue_sources),
)
