"""Whether a claim relates to something that one could meet again: a relationship of the graph, not
only what a turn says.

"I have two cats" does, "I have a chance" does not; "I love yoga" does, "I love this" does not.
"""

from __future__ import annotations

from plugins.ingestion.clauses.people import VAGUE
from plugins.ingestion.clauses.phrases import Claim
from plugins.ingestion.clauses.predicates import CONDITIONS, MUCH, WHEN, WHERE, is_medicine
from plugins.ingestion.clauses.tree import Tree
from plugins.ingestion.facts import PREDICATES, VALUE
from storage.text import word_set

# What is somebody's, or what is done, of these kinds is there to be met again.
_THINGS = frozenset(["person", "place", "organization", "animal", "plant", "object", "substance"])
_OF_PLACES = frozenset([WHERE, "stays_in", "comes_from"])
_HAD = frozenset(["has", "owns", "uses"])
_POINTING = word_set("this that these those such")
# Who or what is meant, the words do not tell.
_PRONOUNS = word_set(
    """it its they them their this that these those he him his she her you your yours himself
    herself itself themselves yourself mine what which who whom how"""
)
# Nouns that say nothing by themselves.
_EMPTY = word_set(
    """feeling sense way chance time blast lot bunch ton memory bond potential path power talent
    skill attitude mindset effect impact feedback problem inspiration past ups down up idea plan
    goal color colour texture work commitment rush mix match weakness motivation journey process
    experience opportunity challenge moment need middle top end awe mind lookout support energy
    vibe strength passion interest effort progress success difference stuff look fun step piece
    bit part rest topic issue stage side area fan must hit win escape reminder reward risk result
    reason sign way thing favorite favourite world life year day week month minute hour point
    question answer thought place spot smell connection lesson theme break shape hand game favorite
    death freedom man woman guy"""
)
_HEALTH = word_set(
    """allergy intolerance diabetes asthma autism adhd anxiety depression arthritis cancer migraine
    condition disease illness injury fever cold flu insomnia dyslexia epilepsy class lesson job
    degree licence license subscription membership"""
)


def relates(tree: Tree, claim: Claim) -> bool:
    """Whether the claim is about something in particular."""
    token = tree.tokens[claim.place]
    lemma, kind = token.lemma.casefold(), _kind(tree, claim.place)
    if not claim.relates or _is_of_nobody(tree, claim):
        return False
    if claim.predicate in (WHEN, MUCH) or claim.detail == VALUE:
        return True
    if claim.polarity == "ended":
        return _is_had(tree, claim.place)
    if claim.predicate in _OF_PLACES:
        named = token.tag == "PROPN"
        return named or (lemma not in _EMPTY and claim.predicate in (WHERE, "stays_in")
                         and kind in ("place", "organization"))  # fmt: skip
    if claim.predicate == "is":
        return _is_told_of(tree, claim, kind)
    if claim.predicate.startswith("is_"):
        return token.tag == "PROPN"
    if token.tag in ("PROPN", "NUM") or _is_written_large(tree, claim.place):
        return True
    if claim.predicate == "take" and is_medicine(token.lemma):
        return True
    if claim.predicate == "habit":
        return token.tag == "VERB" and not tree.of(claim.place, "compound:prt", "xcomp")
    if lemma in _EMPTY or lemma in VAGUE:
        return False
    if claim.predicate == "owns" and token.head >= 0 and tree.tokens[token.head].lemma == "own":
        return True
    if claim.predicate in _HAD:
        return kind in _THINGS or lemma in _HEALTH or token.tag != "NOUN"
    if claim.predicate in ("likes", "dislikes") and kind == "abstract":
        return not _is_of_one_thing(tree, claim.place)
    if claim.predicate in PREDICATES:
        return True
    return _is_done(tree, claim, kind)


def _is_of_nobody(tree: Tree, claim: Claim) -> bool:
    """Whether who or what is meant, is said by a pronoun: "working on it", "their design"."""
    said = {word.strip(".,!?") for word in claim.thing.casefold().split()}
    if claim.predicate in ("did", "plans") or tree.tokens[claim.place].tag in ("VERB", "AUX"):
        return not said.isdisjoint(_PRONOUNS)
    own = {tree.word(each).casefold() for each in tree.of(claim.place, "det", "nmod:poss")}
    return not (said | own).isdisjoint(_PRONOUNS)


def _is_of_one_thing(tree: Tree, place: int) -> bool:
    """Whether it is an aspect of what was spoken of: "the idea and the acting"."""
    token = tree.tokens[place]
    first = token.head if token.relation == "conj" and token.head >= 0 else place
    own = [each for at in (place, first) for each in tree.of(at, "det", "nmod:poss")]
    return any(tree.tokens[each].lemma == "the" or tree.word(each).casefold() in _PRONOUNS
               for each in own)  # fmt: skip


def _is_had(tree: Tree, place: int) -> bool:
    """Whether what is gone was a thing of somebody's: "lost my job", not "lost power"."""
    head = tree.tokens[place].head
    if head < 0 or tree.tokens[head].lemma != "lose":
        return True
    return _kind(tree, place) != "person" and bool(
        tree.of(place, "det", "nmod:poss", "nummod", "amod", "compound")
    )


def _is_told_of(tree: Tree, claim: Claim, kind: str) -> bool:
    """Whether what somebody or something "is" tells of more than a mood or an opinion."""
    token = tree.tokens[claim.place]
    if token.tag == "PROPN":
        return True
    if token.tag != "NOUN":
        named = claim.thing[0].isupper()
        return named or not CONDITIONS.isdisjoint([token.lemma.casefold(), claim.thing.casefold()])
    return token.lemma.casefold() not in _EMPTY and kind in _THINGS


def _is_written_large(tree: Tree, place: int) -> bool:
    """Whether a noun is a name by how it is written: "Obsidian" in "I use Obsidian now"."""
    said = tree.text[tree.sentence.start : tree.sentence.end].split()
    return (
        place > 0
        and tree.tokens[place].tag == "NOUN"
        and tree.word(place)[:1].isupper()
        and tree.tokens[place - 1].tag != "PUNCT"
        and not tree.of(place, "det", "nmod:poss")
        and 2 * sum(word[:1].isupper() for word in said) <= len(said) + 1
    )


def _is_done(tree: Tree, claim: Claim, kind: str) -> bool:
    """Whether what is done by a verb of its own is done to a thing, and by a verb that is one
    word.
    """
    head = tree.tokens[claim.place].head
    after = head + 1
    hyphened = head >= 0 and after < len(tree.tokens) and tree.word(after) == "-"
    return not hyphened and (kind in _THINGS or kind == "event")


def _kind(tree: Tree, place: int) -> str:
    said = tree.kind(place)
    if said is not None:
        return said
    features = tree.tokens[place].features
    return next((each[5:] for each in features if each.startswith("Kind=")), "")
