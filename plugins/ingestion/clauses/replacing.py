"""What a clause says took the place of what: "switched from Vim to Helix", "replaced Jenkins with
Buildkite", "upgraded to Postgres 16".
"""

from __future__ import annotations

from collections.abc import Iterator

import regex as re

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.people import thing_of
from plugins.ingestion.clauses.phrases import NOMINAL, Claim, happened, is_perfect, verb_name
from plugins.ingestion.clauses.tree import Tree
from plugins.ingestion.facts import ANY
from storage.text import word_set

# Verbs that go from one thing to another, and those that put one in the place of another.
_SWITCHING = frozenset({"switch", "switch over", "migrate", "move", "move over", "convert"})
_SWAPPING = {"replace": ("with", "by"), "swap": ("for",), "swap out": ("for",), "ditch": ("for",),
             "trade": ("for",), "trade in": ("for",), "exchange": ("for",),
             "drop": ("for",)}  # fmt: skip
# Verbs that go from one version of a thing to another.
_VERSIONS = word_set("upgrade downgrade update bump") | _SWITCHING
_VERSIONED = re.compile(r"(?P<base>\p{L}.*?)[ -]v?\d[\w.]*")
_VERSION = re.compile(r"v?\d[\w.]*")


def replaced(tree: Tree, clause: Clause) -> Iterator[Claim]:
    """What is over with what is there in its place, and that; nothing where a clause tells of no
    such two.
    """
    name = verb_name(tree, clause.verb)
    if clause.ability or clause.passive or not (clause.past or is_perfect(tree, clause)):
        return
    around = _around(tree, clause.verb)
    thing = tree.first(clause.verb, "obj")
    if name in _SWITCHING and thing is None and {"from", "to"} <= around.keys():
        old, new = around["from"], around["to"]
        if not _is_of_places(tree, name, old, new) and not tree.of(new, "det"):
            yield from _exchanged(tree, old, new)
            return
    if name in _VERSIONS and "to" in around:
        yield from _upgraded(tree, thing, around["to"])
    elif name in _SWAPPING and thing is not None and tree.tokens[thing].tag in NOMINAL:
        for case in _SWAPPING[name]:
            if case in around and tree.kind(around[case]) != "person":
                yield from _swapped(tree, clause, thing, around[case])
                return


def _around(tree: Tree, verb: int) -> dict[str, int]:
    """What a verb goes from, to and for, by preposition; a reading may hang one on another."""
    found: dict[str, int] = {}
    places = [*tree.of(verb, "obj", "obl")]
    for place in places:
        places += tree.of(place, "nmod")
        case = tree.first(place, "case")
        if case is not None and tree.tokens[place].tag in NOMINAL and not tree.is_time(place):
            found.setdefault(tree.tokens[case].lemma, place)
    return found


def _is_of_places(tree: Tree, name: str, old: int, new: int) -> bool:
    """Whether somebody moved house, or it may be that."""
    if not name.startswith("move"):
        return False
    kinds = {tree.kind(old), tree.kind(new)}
    named = all(tree.word(each)[0].isupper() for each in (old, new))
    return not named or "place" in kinds or kinds == {None}


def _exchanged(tree: Tree, old: int, new: int) -> Iterator[Claim]:
    gone, come = thing_of(tree, old), thing_of(tree, new)
    yield Claim("uses", old, gone, "ended", also=("*",), by=come)
    yield Claim("uses", new, come, changes=True)


def _upgraded(tree: Tree, thing: int | None, goal: int) -> Iterator[Claim]:
    """ "upgraded to Postgres 16", "bumped Node to 20": of whatever version it was before."""
    if thing is None:
        come = tree.name(goal)
        found = _VERSIONED.fullmatch(come)
        gone = "" if found is None else found["base"].rstrip(" -v")
        place = goal
    elif tree.tokens[thing].tag == "PROPN" and _VERSION.fullmatch(tree.word(goal)):
        gone, place = tree.name(thing), thing
        come = f"{gone} {tree.word(goal)}"
    else:
        return
    if gone:
        yield Claim("uses", place, gone, "ended", also=("*", ANY), by=come)
        yield Claim("uses", place, come, changes=True)


def _swapped(tree: Tree, clause: Clause, old: int, new: int) -> Iterator[Claim]:
    gone, come = thing_of(tree, old), thing_of(tree, new)
    yield Claim("uses", old, gone, "ended", also=("*", ANY), by=come)
    if tree.tokens[old].tag == tree.tokens[new].tag == "PROPN" and not tree.of(new, "det"):
        yield Claim("uses", new, come, changes=True)
    else:
        yield from happened(tree, clause)
