"""How a fact stands to what is known: what says the same, what cannot hold beside it, what it ends.

Nothing is changed here. Claims are compared by subject and predicate, within the collection and the
end user; event time decides which is older, not arrival.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from plugins.graph import (
    FUNCTIONAL,
    UNKNOWN_TYPE,
    EntityRow,
    RelationshipRow,
    claims_of,
    get_entities,
    named,
)
from plugins.ingestion.countries import is_country
from plugins.ingestion.facts import ALL, ANY, ONE_OF, PREDICATES, RELATIVES, VALUE, Fact
from plugins.ingestion.spelling import in_one_spelling, in_other_spelling
from plugins.ingestion.statements import Target
from plugins.memories import find_row, find_rows_at
from runtime.api.context import ReadContext
from runtime.timestamps import DAY_MS
from storage.text import analyze, word_set

OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
ROLES = frozenset(  # whose holder somebody has one of at a time
    (
        *("boss", "dentist", "doctor", "landlord", "therapist", "accountant", "hairdresser"),
        *("advisor", "physio", "tailor", "coach", "tutor"),
        *("takes_place", "measures", "stays_in"),  # when a thing is, how much, and where one is now
    )
)
# What somebody thinks of a thing, and who is who, outlasts that the thing is gone or is replaced.
OUTLASTING = RELATIVES | {
    *("likes", "dislikes", "prefers", "favorite", "knows", "speaks", "born_in", "born_on", "named"),
    *("comes_from", "is", "habit", "grew_up_in", "fears", "allergic_to", "has_condition"),
}
# One more of these takes the place of no other: who plays a game now plays the drums all the same.
BESIDE = frozenset(["plays", "learns"])
# Of each of these somebody is one at a time.
EXCLUSIVE = (
    word_set("single bachelor engaged married divorced widowed husband wife"),
    word_set("vegan vegetarian veggie pescatarian omnivore carnivore"),
)
# Who is family is nobody's friend or colleague of the same name.
KIN = frozenset(
    (
        *("sister", "brother", "mother", "father", "daughter", "son", "child", "aunt", "uncle"),
        *("cousin", "niece", "nephew", "grandmother", "grandfather", "granddaughter", "grandson"),
    )
)
_ACQUAINTED = RELATIVES - KIN
# With whom somebody is who is not single.
COUPLED = frozenset({"partner_of", "engaged_to", "married_to"})
PARTNERS = word_set("boyfriend girlfriend partner husband wife fiancé fiancée fiance fiancee")
# What is said of them; a "tennis partner" and an "ex husband" are others.
_DEAR = word_set("new lovely great wonderful nice kind serious steady long-term")
_COMPARING = re.compile(r"\b(?:to|over|than|rather than|instead of)\b", re.IGNORECASE)
TOLD_LATE_MS = 31 * DAY_MS  # what was over for longer before something was told is something else
OF_LATE_MS = 366 * DAY_MS
UNRELATED = frozenset(
    {"plans", "did", "named", "age", "born_on"}
)  # their objects are no things one could meet again


@dataclass(slots=True)
class Verdict:
    """What is known of a claim's question.

    known   the claim that says the same
    rivals  claims that cannot hold beside it, and began no later: they end
    later   a claim that cannot hold beside it, and began after it: it is the older one
    ends    claims that it says hold no more
    returns it held before, if for somebody else, and ended; now it begins again
    beside  it may hold together with what it else would replace
    """

    kind: str
    known: RelationshipRow | None = None
    rivals: list[RelationshipRow] = field(default_factory=list)
    later: RelationshipRow | None = None
    ends: list[RelationshipRow] = field(default_factory=list)
    returns: bool = False
    beside: bool = False


def claim_type(fact: Fact) -> str:
    """The predicate, and for favourites of a kind that kind with it."""
    if fact.predicate == "favorite" and fact.detail:
        return "_".join(["favorite", *in_one_spelling(fact.detail).split()])[:64]
    return fact.predicate


def _kinds(fact: Fact, kind: str) -> list[str]:
    """The predicates that say the same: what somebody entered, or an earlier release stored, may
    have the other spelling.
    """
    if kind == fact.predicate or fact.detail is None:
        return [kind]
    other = "_".join(["favorite", *in_other_spelling(fact.detail).split()])[:64]
    return list(dict.fromkeys([kind, other]))


def is_functional(kind: str) -> bool:
    """Whether a subject has one object of this predicate at a time."""
    return kind in FUNCTIONAL or kind in ROLES or kind.startswith("favorite_")


def classify(ctx: ReadContext, fact: Fact, target: Target) -> Verdict:
    """Compare one fact with the claims of its subject that are of the target's scope."""
    kind = claim_type(fact)
    verdict = Verdict(kind)
    subject = subject_of(ctx, fact)
    if subject is None or kind in UNRELATED - FUNCTIONAL or not fact.relates:
        return verdict
    claims = [row for each in _kinds(fact, kind) for row in claims_of(ctx, subject.ordinal, each)]
    standing = [row for row in claims if _is_of_scope(ctx, row, target)]
    at = event_time(fact, target)
    same = _about(ctx, standing, fact)
    if fact.by is not None:
        verdict.rivals = _replaced(ctx, subject, fact, target)
        return verdict
    if fact.polarity != "holds":
        verdict.ends = [row for row in same if row.valid_to is None]
        if not verdict.ends and fact.polarity == "ended":
            verdict.ends = _meant(ctx, standing, fact)
            if not verdict.ends and fact.also:
                verdict.ends = _elsewhere(ctx, subject, fact, target)
        verdict.ends += _told_with(ctx, subject, verdict.ends)
        verdict.known = same[0] if same and not verdict.ends else None
        return verdict
    over = _about(ctx, [row for row in claims if row.valid_to is not None], fact)
    verdict.returns = any(row.valid_from is None for row in (*same, *over))
    for row in same:
        covers = row.valid_to is None or row.valid_to > at
        if covers and (fact.valid_from is None or row.begins in (None, fact.valid_from)):
            verdict.known = row
            return verdict
    if fact.beside:
        return verdict
    others = [row for row in standing if row not in same]
    if kind == "lives_in" and not fact.instead and fact.valid_from is None:
        others = [row for row in others if not _may_be_within(ctx, row, fact)]
        verdict.beside = len(others) < len(standing) - len(same)
    if not is_functional(kind):
        held = [row for row in others if row.valid_to is None]
        replaces = fact.detail == VALUE or (fact.instead and kind not in OUTLASTING | BESIDE)
        others = held if replaces and len(held) == 1 else []
        if kind == "is":
            others += _excluded(ctx, held, fact)
        if kind == "prefers":
            others += [row for row in held if _is_compared(ctx, row, fact)]
    others += _passed(ctx, subject, fact, target)
    opposite = OPPOSITES.get(kind)
    if opposite is not None:
        others += [
            row
            for row in _about(ctx, claims_of(ctx, subject.ordinal, opposite), fact)
            if _is_of_scope(ctx, row, target)
        ]
    for row in others:
        since = began(ctx, row)
        if since > at and not _is_moved_since(row, fact, since, target):
            verdict.later = (
                row if verdict.later is None or since < began(ctx, verdict.later) else verdict.later
            )
        elif row.valid_to is None or row.valid_to > at:
            verdict.rivals.append(row)
    return verdict


def subject_of(ctx: ReadContext, fact: Fact) -> EntityRow | None:
    """The entity it is about; "Ada's sister" is Clara when we know her."""
    if fact.relative is not None and fact.owner is not None:
        owner = _thing(ctx, fact.owner, None)
        relatives = [] if owner is None else claims_of(ctx, owner.ordinal, fact.relative)
        if len(relatives) == 1:
            return get_entities(ctx, [relatives[0].target])[0]
    return _thing(ctx, fact.subject, None)


def _thing(ctx: ReadContext, name: str, kind: str | None) -> EntityRow | None:
    """The entity an object names: one of its type, or of a type nobody knows."""
    return next(
        (row for row in named(ctx, name) if kind is None or row.type in (kind, UNKNOWN_TYPE)), None
    )


def _about(ctx: ReadContext, claims: list[RelationshipRow], fact: Fact) -> list[RelationshipRow]:
    """Those of the claims whose object is the fact's: the same entity, or the same words in other
    forms.
    """
    mine = _thing(ctx, fact.object, PREDICATES.get(fact.predicate))
    wanted = analyze(fact.object)
    things = get_entities(ctx, [row.target for row in claims])
    return [
        row
        for row, thing in zip(claims, things, strict=True)
        if (mine is not None and row.target == mine.ordinal)
        or (wanted and thing is not None and analyze(thing.name) == wanted)
    ]


def _meant(ctx: ReadContext, claims: list[RelationshipRow], fact: Fact) -> list[RelationshipRow]:
    """The one standing claim whose object has all the words of the fact's: "the Volvo" is the red
    Volvo, where there is no other one. Of several nobody knows which is meant.
    """
    wanted = set(analyze(fact.object))
    open_ones = [row for row in claims if row.valid_to is None]
    things = get_entities(ctx, [row.target for row in open_ones])
    found = [
        row
        for row, thing in zip(open_ones, things, strict=True)
        if wanted and thing is not None and wanted <= set(analyze(thing.name))
    ]
    return found if len(found) == 1 else []


def _excluded(ctx: ReadContext, claims: list[RelationshipRow], fact: Fact) -> list[RelationshipRow]:
    """Those of the claims that say what nobody is who is what the fact says."""
    said = frozenset(fact.object.casefold().split())
    others = [each - said for each in EXCLUSIVE if not said.isdisjoint(each)]
    things = get_entities(ctx, [row.target for row in claims])
    return [
        row
        for row, thing in zip(claims, things, strict=True)
        if thing is not None
        and any(not each.isdisjoint(thing.name.casefold().split()) for each in others)
    ]


def _elsewhere(
    ctx: ReadContext, subject: EntityRow, fact: Fact, target: Target
) -> list[RelationshipRow]:
    """The one standing claim about the thing that was said under another predicate; all of the
    subject's where all ends.
    """
    if ALL in fact.also:
        return [
            row
            for row in claims_of(ctx, subject.ordinal, None)
            if row.valid_to is None
            and not (row.type in OUTLASTING - {"is"} or row.type.startswith("favorite"))
            and _is_of_scope(ctx, row, target)
        ]
    anything = "*" in fact.also
    whatever = ANY in fact.also and not anything
    kinds = (fact.predicate,) if whatever else (None,) if anything else fact.also
    claims = [
        row
        for kind in kinds
        for row in claims_of(ctx, subject.ordinal, kind)
        if row.valid_to is None
        and not (anything and (row.type in OUTLASTING or row.type.startswith("favorite")))
        and (fact.valid_to is None or fact.valid_to > began(ctx, row) - TOLD_LATE_MS)
        and _is_of_scope(ctx, row, target)
    ]
    if whatever:  # "got fired"
        return claims if len(claims) == 1 else []
    if fact.predicate == "habit":  # "quit smoking", after "I smoke a pack a day"
        done = analyze(fact.object)
        found = [row for row in claims if analyze(row.type.replace("_", " ")) == done]
        return found if len(found) == 1 else []
    same = _about(ctx, claims, fact)
    found = same if len(same) == 1 else _meant(ctx, claims, fact)
    if not found and fact.predicate == "has_pet" and ANY in fact.also:
        found = _told_as(ctx, claims, fact)
    return found


def _told_as(ctx: ReadContext, claims: list[RelationshipRow], fact: Fact) -> list[RelationshipRow]:
    """The one animal that was told of by this word: "the dog" is Rex of "I have a dog called
    Rex".
    """
    wanted = set(analyze(fact.object))
    found = [
        row
        for row in claims
        if row.type == fact.predicate
        and any(wanted <= set(analyze(told.content)) for told in find_rows_at(ctx, row.sources))
    ]
    return found if len(found) == 1 else []


def _replaced(
    ctx: ReadContext, subject: EntityRow, fact: Fact, target: Target
) -> list[RelationshipRow]:
    """The standing claims about the one thing that gave way to another one: those of the subject
    itself, and what things are that it has one of, as "our database is Postgres 14".
    """
    wanted, now = set(analyze(fact.object)), set(analyze(fact.by or ""))
    owned = [name for noun in ONE_OF for name in (f"{subject.name}'s {noun}", noun)]
    things = [row for name in owned if (row := _thing(ctx, name, None)) is not None]
    open_ones = [
        row
        for one in (subject, *things)
        for row in claims_of(ctx, one.ordinal, "is" if one in things else None)
        if row.valid_to is None
        and (one in things or row.type not in OUTLASTING)
        and not row.type.startswith("favorite")
        and (fact.valid_to is None or fact.valid_to > began(ctx, row) - TOLD_LATE_MS)
        and _is_of_scope(ctx, row, target)
    ]
    named = get_entities(ctx, [row.target for row in open_ones])
    found = [
        row
        for row, thing in zip(open_ones, named, strict=True)
        if wanted and thing is not None and wanted <= (words := set(analyze(thing.name)))
        and not words <= now
    ]  # fmt: skip
    return found if len({row.target for row in found}) == 1 else []


def _passed(
    ctx: ReadContext, subject: EntityRow, fact: Fact, target: Target
) -> list[RelationshipRow]:
    """What somebody was before what they are now with somebody: single, or engaged."""
    words = set(fact.object.casefold().split())
    is_partner = bool(words & PARTNERS) and words <= PARTNERS | _DEAR
    claims: list[RelationshipRow] = []
    if fact.predicate in COUPLED or (fact.predicate == "has" and is_partner):
        single = [row for row in claims_of(ctx, subject.ordinal, "is") if row.valid_to is None]
        things = get_entities(ctx, [row.target for row in single])
        claims = [
            row
            for row, thing in zip(single, things, strict=True)
            if thing is not None and thing.name.casefold() in ("single", "bachelor")
        ]
    if fact.predicate == "married_to" or (fact.predicate == "is" and "married" in words):
        claims += claims_of(ctx, subject.ordinal, "engaged_to")
    return [row for row in claims if row.valid_to is None and _is_of_scope(ctx, row, target)]


def _is_compared(ctx: ReadContext, row: RelationshipRow, fact: Fact) -> bool:
    """Whether what is preferred now is what something else was preferred to: "tea to coffee"."""
    (thing,) = get_entities(ctx, [row.target])
    if thing is None or not (wanted := set(analyze(fact.object))):
        return False
    known = set(analyze(thing.name))
    told = [
        _COMPARING.split(each.content, maxsplit=1)[1:] for each in find_rows_at(ctx, row.sources)
    ]
    if wanted & known or not any(wanted <= set(analyze(each[0])) for each in told if each):
        return False  # "I prefer going to the beach" prefers the beach to nothing
    over = _COMPARING.split(fact.text, maxsplit=1)[1:]  # "coffee to tea", not "to chocolate"
    return not over or known <= set(analyze(over[0]))


def is_namesake(ctx: ReadContext, fact: Fact, facts: Sequence[Fact], target: Target) -> bool:
    """Whether a fact is about somebody who only has the name of somebody known: "my friend Divya",
    where Divya is a sister. What it says ends nothing of the other one.
    """
    for told in facts:
        if told.predicate not in RELATIVES or told.object != fact.subject or told is fact:
            continue
        owner = _thing(ctx, told.subject, None)
        person = _thing(ctx, told.object, "person")
        if owner is None or person is None:
            continue
        known = {
            row.type
            for row in claims_of(ctx, owner.ordinal, None)
            if row.target == person.ordinal and row.type in RELATIVES
            and row.valid_to is None and _is_of_scope(ctx, row, target)
        }  # fmt: skip
        others = known & KIN if told.predicate in _ACQUAINTED else known & _ACQUAINTED
        if told.predicate not in known and others and told.predicate in KIN | _ACQUAINTED:
            return True
    return False


def _told_with(
    ctx: ReadContext, subject: EntityRow, ended: list[RelationshipRow]
) -> list[RelationshipRow]:
    """As what and in which town somebody works, where all that says so also says that they work
    where they do no more: "I work at Siemens as a nurse".
    """
    sources = {source for row in ended if row.type == "works_at" for source in row.sources}
    return [
        row
        for kind in ("works_as", "works_in")
        for row in (claims_of(ctx, subject.ordinal, kind) if sources else ())
        if row.valid_to is None and not row.asked_for and sources.issuperset(row.sources)
    ]


def _may_be_within(ctx: ReadContext, row: RelationshipRow, fact: Fact) -> bool:
    """Whether one place may lie in the other: a country and what is none."""
    (place,) = get_entities(ctx, [row.target])
    return place is not None and is_country(place.name) != is_country(fact.object)


def _is_moved_since(row: RelationshipRow, fact: Fact, since: int, target: Target) -> bool:
    """Whether a move of late is told after where somebody lives was, who did not say since when:
    "Ana lives in Porto", and then "Ana moved to Madrid in June". A move of years ago is history.
    """
    return (
        fact.predicate == "lives_in"
        and fact.instead
        and row.begins is None
        and since <= target.at
        and event_time(fact, target) > target.at - OF_LATE_MS
    )


def _is_of_scope(ctx: ReadContext, row: RelationshipRow, target: Target) -> bool:
    """Whether a memory of the same collection and end user says so, or the API was asked to keep
    it.
    """
    if row.asked_for:
        return True
    memories = find_rows_at(ctx, row.sources)
    return any((memory.number, memory.user_id) == target.scope for memory in memories)


def event_time(fact: Fact, target: Target) -> int:
    """The time from which the fact holds: the moment it names, else that of the conversation."""
    return target.at if fact.valid_from is None else fact.valid_from


def began(ctx: ReadContext, row: RelationshipRow) -> int:
    """The time at which a claim began, or else was told."""
    if row.begins is not None:
        return row.begins
    memory = None if row.source_memory_id is None else find_row(ctx, row.source_memory_id)
    return row.recorded_at if memory is None else memory.occurred_at
