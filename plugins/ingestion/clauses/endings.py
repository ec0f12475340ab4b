"""What a clause says is over, or is elsewhere in time or amount, of a thing that is not the one who
says it: "the class was cancelled", "they moved our standup to ten", "Rex died".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.people import (
    RELATIVES,
    Subject,
    Talk,
    called,
    is_named_animal,
    meant,
    owner_of,
    thing_of,
)
from plugins.ingestion.clauses.phrases import (
    NOMINAL,
    Claim,
    is_duration,
    is_perfect,
    verb_name,
    whole,
)
from plugins.ingestion.clauses.predicates import ANIMALS, MUCH, WHEN
from plugins.ingestion.clauses.tree import ASIDES, Tree
from plugins.ingestion.facts import ALL, ANY, ONE_OF, VALUE
from storage.text import word_set

# Verbs in the passive that say that a thing is no more, and what it is then.
_ENDED = word_set(
    """cancel scrap discontinue abolish decommission retire deprecate remove delete uninstall unplug
    disable lift dissolve disband sell demolish scupper"""
)
_ENDED_WITH = frozenset(
    {"call off", "switch off", "turn off", "shut down", "take down", "phase out"}
)
_OVER = word_set("over off gone finished done dead kaput cancelled canceled defunct history")
# Verbs that set another time, or another amount, of what is their object or passive subject.
_MOVING = word_set("move shift push postpone reschedule delay bump change")
_SETTING = word_set("raise increase bump lower reduce cut set change drop lift put")
# The same of things that do so by themselves.
_SHIFTING = word_set("move shift slip change")
_RISING = word_set("go rise increase drop fall jump climb come")
_DIRECTIONS = word_set("up down")
_NUMBERED = ("nummod", "flat", "appos")
_DYING = frozenset({"die", "pass away", "pass on"})
_PARTED = frozenset({"has_pet", "married_to", "engaged_to", "partner_of"})  # by a death
_BURYING = frozenset({"bury", "put down", "put to sleep", "cremate"})


def ended_things(
    tree: Tree, clause: Clause, speaker: str, talk: Talk
) -> Iterator[tuple[Subject, Claim]]:
    """What is over of which thing, or when and how much it is from now on."""
    if clause.denied or clause.planned or clause.ability:
        return
    if _is_over(tree, clause):
        yield from _over(tree, clause, speaker, talk)
    elif not clause.is_copular:
        yield from _moved(tree, clause, speaker, talk)
        yield from _dead(tree, clause, speaker, talk)


def _is_over(tree: Tree, clause: Clause) -> bool:
    if clause.subject is None or tree.tokens[clause.subject].tag not in ("NOUN", "PROPN"):
        return False
    name = verb_name(tree, clause.verb)
    if clause.passive and (name in _ENDED_WITH or tree.tokens[clause.verb].lemma in _ENDED):
        return True
    further = tree.of(clause.head, "obl", "xcomp", "ccomp", "obj", "nmod")
    return clause.is_copular and not clause.past and name in _OVER and all(
        tree.is_time(each) for each in further
    )  # fmt: skip


def _over(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> Iterator[tuple[Subject, Claim]]:
    """The thing, for whoever says it; and when it was to be."""
    assert clause.subject is not None
    if tree.kind(clause.subject) == "person":
        return
    thing = thing_of(tree, clause.subject)
    yield Subject(speaker), Claim("has", clause.subject, thing, "ended", also=("*", ANY))
    about = meant(tree, clause.subject, speaker, talk)
    if about is not None and about.kind != "person":
        yield about, Claim(WHEN, clause.head, whole(tree, clause.head), "ended", also=(ANY,))


def _moved(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> Iterator[tuple[Subject, Claim]]:
    """ "they moved the standup to ten", "the gate was raised to 85 %"."""
    verb, lemma = clause.verb, tree.tokens[clause.verb].lemma
    if not (clause.past or clause.passive or is_perfect(tree, clause)):
        return
    place = clause.subject if clause.passive else tree.first(verb, "obj")
    if place is None and (lemma in _SHIFTING or (lemma in _RISING and _is_up_or_down(tree, verb))):
        if any(tree.of(each, "advcl", "acl:relcl") for each in (verb, *tree.of(verb, "obl"))):
            return  # "my weight dropped to 70 kg when I was ill"
        place = clause.subject  # "the standup has moved to ten", "the rent went up to 950"
    if place is None or lemma not in _MOVING | _SETTING | _RISING or tree.tokens[place].tag not in (
        "NOUN", "PROPN"
    ):  # fmt: skip
        return
    about = meant(tree, place, speaker, talk)
    if about is None or about.kind == "person":
        return
    goals = (*tree.of(verb, "obl"), *tree.of(place, "nmod"))
    further = [each for goal in goals for each in tree.of(goal, "nmod")]
    is_narrow = any(_narrows(tree, each) for each in (*goals, *further))
    for goal in goals:
        case = tree.first(goal, "case")
        if case is None or tree.tokens[case].lemma not in ("to", "until", "till"):
            continue
        told = tree.text_of(tree.phrase(goal, ASIDES | {"case", "advmod"}))
        if is_narrow and (lemma in _SETTING | _RISING or place == clause.subject):
            continue
        if is_duration(tree, goal):
            yield about, Claim(MUCH, goal, told, changes=True)
        elif tree.is_time(goal) and (lemma in _MOVING or tree.of(goal, "nummod")):
            yield about, Claim(WHEN, goal, told, changes=True)
        elif tree.tokens[goal].lemma in ONE_OF and (number := tree.first(goal, *_NUMBERED)):
            # "moved staging to port 9090": in the place of whatever it was before.
            now = f"{tree.word(goal)} {tree.word(number)}"
            yield about, Claim("uses", goal, tree.word(goal), "ended", also=("*", ANY), by=now)
            yield about, Claim("uses", goal, now, changes=True)
        elif tree.tokens[place].lemma in ONE_OF and goal > place:
            # A reading may take "the port to 9090" for one thing.
            what = replace(about, name=about.name.partition(f" {tree.word(case)} ")[0])
            yield what, Claim("is", place, _written(tree, goal), detail=VALUE, changes=True)
        elif (
            lemma in _SETTING | _RISING
            and told.lstrip("£$€")[:1].isdigit()
            and not tree.is_time(goal)
        ):
            yield about, Claim(MUCH, goal, told, changes=True)


def _is_up_or_down(tree: Tree, verb: int) -> bool:
    after = verb + 1
    return tree.tokens[verb].lemma not in ("go", "come") or (
        after < len(tree.tokens) and tree.tokens[after].lemma in _DIRECTIONS
    )


def _narrows(tree: Tree, place: int) -> bool:
    """ "in the tests", "for guests": what is set there alone."""
    case = tree.first(place, "case")
    return case is not None and tree.tokens[case].lemma in ("in", "for", "on") and (
        not tree.is_time(place)
    )  # fmt: skip


def _written(tree: Tree, place: int) -> str:
    """The written word that a token begins: a password's "maple-forty" is no phrase."""
    start = tree.tokens[place].start
    return tree.text[start:].split(maxsplit=1)[0].rstrip(".,;:!?")


def _dead(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> Iterator[tuple[Subject, Claim]]:
    """Whoever had an animal has it no more, and what passes is over for it, or for who died."""
    name = verb_name(tree, clause.verb)
    with_particle = {f"{name} {tree.tokens[each].lemma}" for each in tree.of(clause.verb, "advmod")}
    if {name, *with_particle} & _DYING:
        place = clause.subject
    elif name in _BURYING or (
        name == "let"
        and (going := tree.first(clause.verb, "xcomp", "ccomp")) is not None
        and tree.tokens[going].lemma == "go"
    ):
        place = tree.first(clause.verb, "obj")
    else:
        return
    if place is None or tree.tokens[place].tag not in NOMINAL:
        return
    if tree.word(place).islower() and tree.tokens[place].lemma not in RELATIVES and (
        tree.tokens[place].lemma.casefold() not in ANIMALS and not tree.has(place, "Kind=animal")
        and not tree.has(place, "Kind=person") and called(tree, place) is None
    ):  # fmt: skip
        return  # "my phone died", which is to be charged
    yield from _parted(tree, place, speaker, talk)
    about = meant(tree, place, speaker, talk)
    if about is not None:
        yield about, Claim("lives", clause.verb, tree.word(clause.verb), "ended", also=(ALL,))


def _parted(tree: Tree, place: int, speaker: str, talk: Talk) -> Iterator[tuple[Subject, Claim]]:
    """Who has whom no more: "our cat Milo", "my husband Sean", somebody's "Rex"."""
    kind, named = place, called(tree, place)
    if is_named_animal(tree, place):
        kind, named = place - 1, place
    lemma, owner = tree.tokens[kind].lemma.casefold(), owner_of(tree, place, speaker, talk)
    relation = "has_pet" if lemma in ANIMALS else RELATIVES.get(lemma)
    if named is not None and owner is not None and relation in _PARTED:
        name = tree.name(named, without=kind)
        yield Subject(owner), Claim(relation, named, name, "ended", lemma, also=("*",))
    elif relation in (None, "has_pet") and (owner is not None or not tree.of(place, "nmod:poss")):
        is_named = tree.tokens[place].tag == "PROPN"
        name = tree.name(place) if is_named else thing_of(tree, place)
        whose = Subject(owner or speaker)
        yield whose, Claim("has_pet", place, name, "ended", also=("*", ANY))
