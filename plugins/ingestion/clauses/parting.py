"""What a clause says is over between people, and between somebody and their work, whoever its
subject is: "Sam and I broke up", "Lars left me", "they fired me", "I quit my job".
"""

from __future__ import annotations

from collections.abc import Iterator

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.people import FIRST, RELATIVES, Subject, called
from plugins.ingestion.clauses.phrases import (
    NOMINAL,
    Claim,
    is_of_another_time,
    is_perfect,
    objects,
    verb_name,
)
from plugins.ingestion.clauses.predicates import JOBS
from plugins.ingestion.clauses.stating import sends_off
from plugins.ingestion.clauses.tree import Tree
from plugins.ingestion.facts import ANY
from storage.text import word_set

_COUPLES = ("partner_of", "engaged_to", "married_to")
# Verbs by which two part, and as what they were together.
_PARTING = {
    "divorce": ("married_to",), "break up": ("partner_of", "engaged_to"), "split up": _COUPLES,
    "separate": _COUPLES,
}  # fmt: skip
_LEAVING = word_set("leave dump divorce")
_BONDS = {
    "engagement": ("engaged_to",),
    "marriage": ("married_to",),
    "relationship": ("partner_of",),
}
_BREAKING = frozenset({"call off", "break off", "end", "break", "cancel"})
_DISMISSING = frozenset({"fire", "sack", "dismiss", "lay off", "axe"})
_QUITTING = frozenset({"quit", "leave", "lose", "give up", "pack in", "ditch", "chuck"})
_EMPLOYERS = word_set("they boss manager company employer firm")
_THE_SAME = word_set("old current")  # a job that is no other than the one somebody has


def parted(
    tree: Tree, clause: Clause, subject: Subject | None, speaker: str
) -> Iterator[tuple[Subject, Claim]]:
    """Who is no longer with whom, and who no longer has their work."""
    if clause.denied or clause.planned or clause.ability or clause.is_copular or not (
        clause.past or clause.passive or is_perfect(tree, clause)
    ) or is_of_another_time(tree, clause.verb):  # fmt: skip
        return
    name = verb_name(tree, clause.verb)
    if name in _PARTING:
        yield from _couple(tree, clause, name, speaker)
    if name in _LEAVING and clause.subject is not None:
        yield from _left(tree, clause, speaker)
    if _is_speaker(tree, clause) and name in _BREAKING:
        yield from _broken(tree, clause, speaker)
    yield from _dismissed(tree, clause, name, subject, speaker)
    if subject is not None and name in _QUITTING:
        yield from _quit(tree, clause, subject)


def _is_speaker(tree: Tree, clause: Clause) -> bool:
    return clause.subject is None or tree.word(clause.subject).casefold() in FIRST


def _couple(tree: Tree, clause: Clause, name: str, speaker: str) -> Iterator[tuple[Subject, Claim]]:
    """ "Sam and I broke up", "we got divorced": not "we broke up for the holidays", "we split up
    to search for it".
    """
    if tree.first(clause.verb, "obj", "iobj", "xcomp", "advcl") is not None or any(
        case in ("for", "with", "into", "from") for _, case in objects(tree, clause.verb)
    ):
        return
    members = [] if clause.subject is None else [clause.subject, *tree.of(clause.subject, "conj")]
    others = [each for each in members if tree.word(each).casefold() not in FIRST]
    if len(others) == len(members) and members:
        if len(members) == 2 and all(tree.tokens[each].tag == "PROPN" for each in members):
            one, other = (tree.name(each) for each in members)
            kinds = _PARTING[name]
            yield Subject(one), _of(kinds, members[1], other)
            yield Subject(other), _of(kinds, members[0], one)
        return
    if not others:
        yield from _whoever(speaker, _PARTING[name], clause.verb, tree)
    elif len(others) == 1:
        yield from _from(tree, others[0], _PARTING[name], speaker)


def _of(kinds: tuple[str, ...], place: int, name: str) -> Claim:
    return Claim(kinds[0], place, name, "ended", also=kinds)


def _whoever(
    speaker: str, kinds: tuple[str, ...], place: int, tree: Tree
) -> Iterator[tuple[Subject, Claim]]:
    for kind in kinds:
        yield Subject(speaker), Claim(kind, place, tree.word(place), "ended", also=(ANY,))


def _from(
    tree: Tree, place: int, kinds: tuple[str, ...], speaker: str
) -> Iterator[tuple[Subject, Claim]]:
    """The speaker parts from somebody who is named, or is "my husband"."""
    relation = RELATIVES.get(tree.tokens[place].lemma)
    if tree.tokens[place].tag == "PROPN":
        yield Subject(speaker), _of(kinds, place, tree.name(place))
    elif relation in kinds and any(
        tree.word(each).casefold() in FIRST for each in tree.of(place, "nmod:poss")
    ):
        named = called(tree, place)
        if named is None:
            yield from _whoever(speaker, (relation,), place, tree)
        else:
            yield Subject(speaker), _of((relation,), named, tree.name(named, without=place))


def _left(tree: Tree, clause: Clause, speaker: str) -> Iterator[tuple[Subject, Claim]]:
    """ "Lars left me": not "left me his keys", "left me at the station", "left me behind"."""
    verb, whom = clause.verb, tree.first(clause.verb, "obj")
    if clause.subject is None or whom is None or tree.word(whom).casefold() != "me":
        return
    if tree.first(verb, "iobj", "xcomp", "ccomp", "compound:prt", "conj") is not None or any(
        not tree.is_time(each) for each in tree.of(verb, "advmod")
    ):
        return
    if all(case == "for" for _, case in objects(tree, verb)):
        yield from _from(tree, clause.subject, _COUPLES, speaker)


def _broken(tree: Tree, clause: Clause, speaker: str) -> Iterator[tuple[Subject, Claim]]:
    """ "we called off the engagement", not "the engagement party"."""
    bond = tree.first(clause.verb, "obj")
    kinds = None if bond is None else _BONDS.get(tree.tokens[bond].lemma)
    if bond is not None and kinds and tree.first(bond, "compound", "amod", "nmod") is None and (
        tree.of(bond, "det", "nmod:poss")
    ):  # fmt: skip
        yield from _whoever(speaker, kinds, bond, tree)


def _dismissed(
    tree: Tree, clause: Clause, name: str, subject: Subject | None, speaker: str
) -> Iterator[tuple[Subject, Claim]]:
    """ "they fired me", "I was let go", "I was made redundant"."""
    verb, is_sent = clause.verb, sends_off(tree, clause.verb)
    going = tree.first(verb, "xcomp", "ccomp")
    if is_sent and any(
        not tree.is_time(each)
        for place in (verb, going) if place is not None
        for each in tree.of(place, "obl", "advmod", "obl:unmarked", "xcomp", "advcl", "mark")
        if each != going
    ):  # fmt: skip
        return  # "they let me go early"
    if clause.passive:
        if is_sent and subject is not None and subject.kind == "person":
            yield subject, Claim("works_at", verb, tree.word(verb), "ended", also=(ANY,))
        return
    whom = [tree.word(each).casefold() for each in tree.of(verb, "obj", "iobj")]
    if not (name in _DISMISSING or is_sent) or not {"me"}.issuperset(whom) or not whom:
        return
    by = clause.subject
    if by is not None and (
        name in _DISMISSING
        or tree.tokens[by].lemma.casefold() in _EMPLOYERS
        or tree.kind(by) == "organization"
    ):
        yield Subject(speaker), Claim("works_at", verb, tree.word(verb), "ended", also=(ANY,))


def _quit(tree: Tree, clause: Clause, subject: Subject) -> Iterator[tuple[Subject, Claim]]:
    """ "I quit my job", "I left my job at Siemens": not "my second job"."""
    job = tree.first(clause.verb, "obj")
    if job is None or tree.tokens[job].lemma not in JOBS or not tree.of(job, "nmod:poss"):
        return
    if any(
        tree.tokens[each].lemma not in _THE_SAME
        for each in tree.of(job, "amod", "compound", "nummod", "appos")
    ):
        return
    for place in (*tree.of(job, "nmod"), *tree.of(clause.verb, "obl")):
        case = tree.first(place, "case")
        if case is not None and tree.tokens[case].lemma in ("at", "with", "for") and (
            tree.tokens[place].tag in NOMINAL and not tree.is_time(place)
        ):  # fmt: skip
            named = tree.tokens[place].tag == "PROPN"
            if named:
                yield subject, _of(("works_at",), place, tree.name(place))
            return
    yield subject, Claim("works_at", job, tree.word(job), "ended", also=(ANY,))
