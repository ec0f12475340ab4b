"""Clauses as facts: who is meant, under which predicate, since when, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex as re

from plugins.ingestion.clauses.being import being, name_of, owned
from plugins.ingestion.clauses.clauses import Clause, clauses
from plugins.ingestion.clauses.doing import doing
from plugins.ingestion.clauses.endings import ended_things
from plugins.ingestion.clauses.having import had
from plugins.ingestion.clauses.ordering import ordered
from plugins.ingestion.clauses.parting import parted
from plugins.ingestion.clauses.people import Subject, Talk, note_people, subjects_of
from plugins.ingestion.clauses.phrases import NOMINAL, Claim, further_of, happened
from plugins.ingestion.clauses.predicates import MUCH, WHEN
from plugins.ingestion.clauses.stating import is_hedged
from plugins.ingestion.clauses.tree import Tree
from plugins.ingestion.clauses.worth import relates
from plugins.ingestion.facts import PREDICATES, Fact
from plugins.ingestion.rules.dates import resolve
from plugins.ingestion.rules.english import ENGLISH
from plugins.ingestion.sentences import is_quoted_line
from runtime.inference import language
from storage.text import word_set

CERTAINTY_MIN = 0.25
OBJECT_CHARS_MAX = 120
PREDICATE_CHARS_MAX = 40
_NO_THINGS = word_set(
    """it that this these those them him her me us you they he she we i one ones there what which
    who something anything everything nothing someone anyone everyone thing things stuff lot lots
    bit time way here so"""
)
_DATED = ("did", "plans")
# Of these somebody has several things at a time, which one more takes the place of none of.
_MANY = word_set("uses take wear eat grow cook")
_MORE = word_set("too also additionally")
# "in the mornings", "on weekdays", "for breakfast": what holds then need not hold at other times.
_AT_TIMES = re.compile(
    r"\b(?:(?:in|during|on|over|at) (?:the )?"
    r"(?:mornings?|afternoons?|evenings?|nights?|weekdays?|weekends?|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days|summers?|winters?|autumns?|springs?|holidays)"
    r"|for (?:breakfast|lunch|dinner|supper|dessert)|(?:part|some) of the (?:year|week|time))\b",
    re.IGNORECASE,
)
# Whoever stands in for somebody takes their place for a while.
_FOR_NOW = re.compile(
    r"\b(?:for now|for the time being|for the moment|this week|temporarily|until|till)\b",
    re.IGNORECASE,
)
_NO_QUOTES = str.maketrans("", "", '"“”„«»')
_BESIDE = frozenset({"conj", "parataxis", "advcl", "punct", "discourse", "cc"})


def read_facts(
    text: str, reading: language.Reading, speaker: str, source: int, talk: Talk
) -> Iterator[list[Fact]]:
    """The facts of a message, sentence by sentence, each with the words of its clause for a
    text.
    """
    for sentence in reading.sentences:
        if not sentence.tokens or is_quoted_line(text, sentence.start, sentence.end):
            continue
        tree, related, found = Tree(text, sentence), [], []
        talk.sentence += 1
        for place, owner, relation, name in note_people(tree, speaker, talk):
            related += _related(tree, place, owner, relation, name, source)
        for clause in clauses(tree):
            first, *others = subjects_of(tree, clause, speaker, talk)
            made = list(_claims(tree, clause, first, speaker, talk))
            made += [(each, claim) for each in others if each is not None
                     for claim in _said_of(tree, clause, each)]  # fmt: skip
            if is_hedged(tree, clause.head):
                made = [(each, claim) for each, claim in made if _is_sure_of_it(claim)]
            found += _facts(tree, clause, made, source, talk)
        found += _had(tree, speaker, source, found)
        found += _ordered(tree, speaker, source)
        over = {_claimed(fact) for fact in found if fact.polarity == "ended"}
        yield [*(fact for fact in related if _claimed(fact) not in over), *found]


def _is_sure_of_it(claim: Claim) -> bool:
    """Whether somebody who only thinks so knows it: "my favourite book is Rebecca", not "I lost my
    keys", "I have a good idea".
    """
    known = claim.predicate in PREDICATES or claim.predicate in (WHEN, MUCH)
    return claim.polarity == "holds" and known and claim.predicate not in (*_DATED, "habit")


def _claimed(fact: Fact) -> tuple[str, str, str]:
    """What "our cat Milo died" says is over, and "our cat Milo" by itself would say holds."""
    return fact.subject, fact.predicate, fact.object


def _related(
    tree: Tree, place: int, owner: str, relation: str, name: str, source: int
) -> Iterator[Fact]:
    """ "my sister Ana": that Ana is her."""
    start, end = tree.tokens[0].start, tree.tokens[-1].end
    text, certainty = tree.text[start:end], tree.certainty(place)
    if not text.rstrip().endswith("?"):
        yield Fact(owner, relation, name, text, source, start, end, confidence=certainty)


def _had(tree: Tree, speaker: str, source: int, found: list[Fact]) -> list[Fact]:
    """What the speaker has, as "my car" takes for given, where nothing else was told of it."""
    start, end = tree.tokens[0].start, tree.tokens[-1].end
    text = tree.text[start:end]
    if text.rstrip().endswith("?") or tree.sentence.kind == "question":
        return []
    told = {word for fact in found if fact.relates for word in fact.object.casefold().split()}
    return [
        Fact(
            speaker, claim.predicate, claim.thing, text, source, start, end, detail=claim.detail,
            confidence=round(tree.certainty(claim.place), 3), passing=True,
        )
        for claim in had(tree)
        if tree.tokens[claim.place].certainty >= CERTAINTY_MIN
        and tree.word(claim.place).casefold() not in told
    ]  # fmt: skip


def _ordered(tree: Tree, speaker: str, source: int) -> Iterator[Fact]:
    """What the speaker asks for once and for all."""
    start, end = tree.tokens[0].start, tree.tokens[-1].end
    for claim in ordered(tree):
        yield Fact(
            speaker, claim.predicate, claim.thing, tree.text[start:end], source, start, end,
            relates=False,
        )  # fmt: skip


def _facts(
    tree: Tree, clause: Clause, made: Iterable[tuple[Subject, Claim]], source: int, talk: Talk
) -> Iterator[Fact]:
    sure = [(each, claim, found) for each, claim in made if (found := _sure(tree, clause, claim))]
    if not sure:
        return
    phrase = tree.phrase(clause.head, _BESIDE)
    if clause.subject is not None:
        phrase += [clause.subject]
    told = tree.text[tree.tokens[min(phrase)].start : tree.tokens[max(phrase)].end]
    at = resolve(told, talk.at, ENGLISH.code, ahead=clause.planned)
    since = "since" in told.casefold().split()
    words = {tree.tokens[each].lemma.casefold() for each in phrase}
    is_one_more = not words.isdisjoint(_MORE) or "as well" in told.casefold()
    at_times = not (clause.past or clause.planned or clause.begins) and _AT_TIMES.search(told)
    for about, claim, (thing, certainty) in sure:
        polarity = claim.polarity
        if polarity == "holds" and any(
            tree.tokens[each].lemma in ("no", "neither", "nor")
            for each in tree.of(claim.place, "det", "cc", "cc:preconj")
        ):
            polarity = "denied"  # "Pro has no limit"
        holds = polarity == "holds"
        if claim.predicate == "plans" and not clause.planned:
            at = resolve(told, talk.at, ENGLISH.code, ahead=True)
        dated = claim.changes or since or clause.begins or claim.predicate in _DATED
        dated &= claim.predicate != WHEN  # its date is when it is, not since when that holds
        is_instead = clause.instead or (claim.changes and claim.predicate == "lives_in")
        if claim.predicate in _MANY:  # "I use Excel now" for who knows what
            is_instead &= "instead" in words
        held = phrase if claim.place in phrase else [*phrase, *tree.phrase(claim.place)]
        if claim.predicate == "did":
            held = [*held, *further_of(tree, claim.place)]
        start, end = tree.tokens[min(held)].start, tree.tokens[max(held)].end
        yield Fact(
            about.name, claim.predicate[:PREDICATE_CHARS_MAX].rstrip("_"), thing,
            _clause_text(tree, clause, about, start, end), source, start, end, polarity,
            valid_from=at if dated and holds else None,
            valid_to=at if polarity == "ended" else None,
            subject_type=about.kind, relative=about.relative, owner=about.owner,
            detail=claim.detail, confidence=round(certainty, 3), also=claim.also,
            relates=relates(tree, claim), instead=holds and is_instead,
            beside=is_one_more or (bool(at_times) and not claim.changes
                                   and not _is_then_instead(tree, clause, claim))
            or (claim.predicate in ("boss", WHEN) and _FOR_NOW.search(told) is not None)
            or (claim.predicate == "prefers" and _is_of_a_case(tree, clause, claim)),
            by=claim.by,
        )  # fmt: skip


def _is_then_instead(tree: Tree, clause: Clause, claim: Claim) -> bool:
    """ "the class is on Wednesdays now", which "the class is at ten on Wednesdays now" is not."""
    return claim.predicate == WHEN and clause.instead and tree.is_time(claim.place) and (
        not tree.of(claim.place, "nmod", "nummod")
    )  # fmt: skip


def _is_of_a_case(tree: Tree, clause: Clause, claim: Claim) -> bool:
    """Whether it is preferred at times, or for something: "sometimes I prefer coffee", "I prefer
    Java for big systems".
    """
    beside = [*tree.children[clause.verb], *tree.of(claim.place, "nmod", "advcl", "acl:relcl")]
    return any(
        tree.relations[each] in ("advcl", "acl:relcl")
        or tree.tokens[each].lemma.casefold() in _AT_TIMES_ONLY
        or any(tree.tokens[case].lemma in _CASES for case in tree.of(each, "case"))
        for each in beside
    )


_AT_TIMES_ONLY = word_set(
    """sometimes often usually mostly normally generally occasionally rarely tonight today then
    sometime whenever"""
)
_CASES = word_set("at in on for with during after before")


def _sure(tree: Tree, clause: Clause, claim: Claim) -> tuple[str, float] | None:
    """(what a claim names, how sure it is); None where it names nothing, or that is not sure."""
    place = claim.place
    if place not in (clause.verb, clause.head) and (
        tree.tokens[place].tag not in (*NOMINAL, "VERB", "ADJ")
    ):
        return None
    thing = claim.thing.translate(_NO_QUOTES).strip(" ,.;:!-–—'")
    if not thing or len(thing) > OBJECT_CHARS_MAX or thing.casefold() in _NO_THINGS:
        return None
    arcs = [*clause.link, *(() if clause.subject is None else (clause.subject,))]
    if clause.verb != clause.head:
        arcs.append(clause.verb)
    if tree.tokens[clause.head].relation == "acl:relcl":
        arcs.append(clause.head)  # what it hangs on is what it is about
    if place != clause.head:
        arcs.append(place)
    certainty = min([1.0, *(tree.tokens[each].certainty for each in arcs)])
    return None if certainty < CERTAINTY_MIN else (thing, certainty)


def _clause_text(tree: Tree, clause: Clause, subject: Subject, start: int, end: int) -> str:
    """The words of the clause, with the name in the place of a pronoun that leads it."""
    place = clause.subject
    if place is not None and tree.word(place).casefold() in ("he", "she"):
        token = tree.tokens[place]
        if token.start == start:
            return subject.name + tree.text[token.end : end]
    return tree.text[start:end]


def _claims(
    tree: Tree, clause: Clause, subject: Subject | None, speaker: str, talk: Talk
) -> Iterator[tuple[Subject, Claim]]:
    """What a clause says, of whatever it is about; without a subject that is known, what it says is
    over.
    """
    if clause.aside:
        if subject is not None:
            yield from ((subject, claim) for claim in _aside(tree, clause))
        return
    yield from ended_things(tree, clause, speaker, talk)
    yield from parted(tree, clause, subject, speaker)
    if subject is None:
        return
    if clause.is_copular:
        theirs = list(owned(tree, clause, speaker, talk))
        is_kin = any(claim.place == clause.subject for _, claim in theirs)
        for claim in being(tree, clause, subject):
            if claim.predicate != "is" or not is_kin:  # "Lars is my boyfriend" is one claim
                yield subject, claim
        yield from theirs
        return
    name = tree.first(clause.verb, "xcomp", "obj")
    if clause.passive and tree.tokens[clause.verb].lemma in ("call", "name") and name is not None:
        if clause.subject is not None and tree.tokens[name].tag == "PROPN" and not clause.denied:
            told = tree.name(name)
            if tree.tokens[clause.subject].tag == "NOUN":
                yield from name_of(tree, clause.subject, told, name, speaker, talk)
            else:
                yield subject, Claim("named", name, told)
        return
    for claim in doing(tree, clause, subject):
        yield subject, claim


def _aside(tree: Tree, clause: Clause) -> Iterator[Claim]:
    """What happened, of what is told in passing: not "when I was young"."""
    if not clause.is_copular or tree.first(clause.head, "case") is not None:
        yield from happened(tree, clause)


def _said_of(tree: Tree, clause: Clause, subject: Subject) -> Iterator[Claim]:
    """What a clause says of one of several that it is about."""
    if clause.aside:
        yield from _aside(tree, clause)
    elif clause.is_copular:
        yield from being(tree, clause, subject)
    else:
        yield from doing(tree, clause, subject)
