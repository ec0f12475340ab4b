"""What somebody has by what they call it: "my car needs new tyres", "my book club"."""

from __future__ import annotations

from collections.abc import Iterator

from plugins.ingestion.clauses.people import (
    FIRST,
    RELATIVES,
    called,
    is_named_animal,
    thing_of,
)
from plugins.ingestion.clauses.phrases import Claim, verb_name
from plugins.ingestion.clauses.predicates import ANIMALS, CIRCLES, ENDING
from plugins.ingestion.clauses.stating import UNSURE
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

_KINDS = frozenset({"object", "animal", "plant", "place"})
_GATHERED = CIRCLES | word_set("class course shop store farm garden collection")
# What is no more, is not yet, or is somebody's in a manner of speaking.
_OTHER = word_set(
    """former ex previous late last first old next future own ideal dream possible potential
    upcoming childhood planned favorite favourite main whole only second third"""
)
_PARTS = word_set(
    """way home house place room floor kitchen bedroom bathroom backyard garage yard fridge head
    hand body face hair eye arm leg foot back skin heart
    nose mouth ear finger knee shoulder stomach neck brain life world order step side area city town
    country neighborhood neighbourhood spot street space hometown stuff thing one love baby buddy
    pic picture photo post page list note answer door window table address number god goodness
    lunch dinner breakfast meal food recipe diet drink snack"""
)
_NEW = word_set(
    """buy get build make write order choose find pick design create want need open start launch
    rent book plan lose miss return borrow replace"""
)
_DYING = frozenset({"die", "pass away", "pass on"})
_ENDING = frozenset(verb for verb, _ in ENDING)


def had(tree: Tree) -> Iterator[Claim]:
    """What is the speaker's, by "my" or "our", where the sentence says nothing else of its being
    so: not what was sold, is to be bought, or may be.
    """
    owners = (each for each, relation in enumerate(tree.relations) if relation == "nmod:poss")
    own = [tree.tokens[each].head for each in owners if tree.word(each).casefold() in FIRST]
    for place in own:
        token = tree.tokens[place]
        if token.tag != "NOUN" or tree.of(place, "cop") or not _is_here(tree, place):
            continue
        if is_named_animal(tree, place):
            continue  # "my cat Biscuit", who is told of by name
        lemma = token.lemma.casefold()
        is_animal = lemma in ANIMALS
        if is_animal:
            is_had = called(tree, place) is None
        else:
            is_had = lemma in _GATHERED or (lemma not in _PARTS and _kind(tree, place) in _KINDS)
        if is_had and lemma not in RELATIVES and not _is_open(tree, place):
            thing = thing_of(tree, place, frozenset({"nmod"}))
            detail = lemma if is_animal else None
            yield Claim("has_pet" if is_animal else "has", place, thing, detail=detail)


def _is_here(tree: Tree, place: int) -> bool:
    """Whether nothing says that it was or will be somebody's, or is one of several."""
    return not any(
        tree.tokens[each].lemma.casefold().rstrip("-") in _OTHER
        for each in tree.of(place, "amod", "compound", "advmod")
    )


def _kind(tree: Tree, place: int) -> str | None:
    features = tree.tokens[place].features
    return next((each[5:] for each in features if each.startswith("Kind=")), None)


def _is_open(tree: Tree, place: int) -> bool:
    """Whether the verb that it hangs on is one of having it no more or not yet."""
    for _ in range(len(tree.tokens)):
        token = tree.tokens[place]
        if token.head < 0:
            return False
        is_done_to, place = token.relation != "nsubj", token.head
        if tree.tokens[place].tag in ("VERB", "AUX"):
            name = verb_name(tree, place)
            if name in _DYING or not is_done_to:
                return name in _DYING
            if (
                name in _ENDING
                or name.split()[0] in _NEW
                or any(tree.tokens[each].lemma in UNSURE for each in tree.of(place, "aux"))
            ):
                return True
    return False
