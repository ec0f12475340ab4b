"""Where somebody learns, by the name of a school."""

from __future__ import annotations

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.people import Subject, thing_of
from plugins.ingestion.clauses.phrases import is_perfect
from plugins.ingestion.clauses.predicates import SCHOOLING, SCHOOLS
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set


def school_of(
    tree: Tree, clause: Clause, subject: Subject, keys: list[tuple[int, tuple[str, str]]]
) -> int | None:
    """Where somebody learns, by name: "goes to Hillside Primary", "started at Park High School"."""
    if subject.kind != "person" or clause.ability or clause.ended or clause.denied:
        return None
    for place, key in keys:
        is_there = key in SCHOOLING and not clause.past and not is_perfect(tree, clause)
        is_there |= key == ("start", "at") and clause.past
        words = {word.casefold() for word in name_of_school(tree, place).split()}
        is_named = tree.tokens[place].tag == "PROPN" or any(
            tree.tokens[each].tag == "PROPN" for each in tree.of(place, "compound", "nmod:poss")
        )
        words |= {tree.tokens[each].lemma.casefold() for each in tree.of(place, "compound")}
        is_named &= words.isdisjoint(_LESSONS)
        last = name_of_school(tree, place).partition(" of ")[0].split()[-1:]
        is_named &= not any(each.islower() and each not in SCHOOLS for each in last)  # "library"
        if is_there and is_named and not words.isdisjoint(SCHOOLS):
            return None if _is_for_something(tree, clause.verb) else place
    return None


def _is_for_something(tree: Tree, verb: int) -> bool:
    """ "goes to Park School for band practice", "after school": where somebody need not learn."""
    cases = [
        tree.tokens[case].lemma
        for each in tree.of(verb, "obl", "obl:unmarked")
        for case in tree.of(each, "case")
    ]
    return not {"for", "after", "before", "during"}.isdisjoint(cases)


def name_of_school(tree: Tree, place: int) -> str:
    """ "Hillside Primary", which a reading may take for two."""
    thing = max(thing_of(tree, place), tree.name(place), key=len)
    after = tree.word(place + 1) if place + 1 < len(tree.tokens) else ""
    is_cut = thing.endswith(tree.word(place)) and after[:1].isupper() and (
        after.casefold() in SCHOOLS
    )  # fmt: skip
    return f"{thing} {after}" if is_cut else thing


# What a school beside the one that somebody goes to is of: "Sunday school", "ballet school".
_LESSONS = word_set(
    """sunday saturday summer night evening driving riding ballet dance music drama swimming
    language stage cookery art"""
)
