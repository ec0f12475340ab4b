"""Clauses: who is said to do, be or have what, and whether that is stated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from plugins.ingestion.clauses.denying import is_limited, negations
from plugins.ingestion.clauses.predicates import ANIMALS, SEVERAL
from plugins.ingestion.clauses.quoting import titles
from plugins.ingestion.clauses.stating import (
    STATED_BY,
    SUBJECT,
    carries_on,
    is_meanwhile,
    is_stated,
)
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

ASKING = word_set("what who whom whose which how why whoever whatever")
INSTEAD = word_set("now instead nowadays currently")
NO_MORE = ("any more", "anymore", "any longer", "no longer")
STOPPING = word_set("quit stop finish cease discontinue")
STARTING = word_set("start begin keep continue")
PLANNING = word_set("plan intend aim decide")
_RELATIVE = word_set("who which that")
_NO_COMMANDS = word_set("own have like")
_AT_PRESENT = word_set("currently still now nowadays presently")
_REMEMBERING = word_set("remember recall regret")


@dataclass(frozen=True, slots=True)
class Clause:
    """Places of tokens. head: what is told, a verb or what somebody is; subject: None where it is
    the speaker without being said.

    verb      whose objects these are: the head, or the verb that it begins, stops or plans
    link      arcs that say whose clause it is: what its subject was taken over by
    ended     it held once and does no more; denied: it does not
    planned   it is to come; ability: "can"; past: it was so, or happened
    aside     it was so once, told for the sake of another clause: nothing is said of now
    duty      "must"
    """

    head: int
    subject: int | None
    verb: int
    link: tuple[int, ...] = ()
    is_copular: bool = False
    ended: bool = False
    denied: bool = False
    planned: bool = False
    ability: bool = False
    past: bool = False
    passive: bool = False
    begins: bool = False
    instead: bool = False
    aside: bool = False
    duty: bool = False


def clauses(tree: Tree) -> Iterator[Clause]:
    """The stated clauses of a sentence, outer ones first."""
    quoted = titles(tree)
    if tree.sentence.kind == "question" or quoted is None:
        return
    if tree.text[: tree.sentence.end].rstrip("\"'”’)] ").endswith("?"):
        return
    for place, token in enumerate(tree.tokens):
        if token.head >= 0 and token.relation not in STATED_BY:
            continue
        if place in quoted or not is_stated(tree, place):
            continue
        if (clause := _clause(tree, place)) is not None and clause.subject not in quoted:
            yield clause


def _clause(tree: Tree, head: int) -> Clause | None:
    token = tree.tokens[head]
    is_copular = _is_copular(tree, head)
    if token.tag not in ("VERB", "AUX") and not is_copular:
        return None
    is_relative = token.relation == "acl:relcl"
    opening = (head,) if is_relative else (tree.opening(head), head)
    if any(tree.tokens[each].lemma in ASKING for each in opening):
        return None
    if tree.first(head, "expl", "csubj") is not None:
        return None  # "there is", "it is true that"
    found = _subject(tree, head)
    if found is None and (is_relative or not _speaks_of_itself(tree, head)):
        return None
    subject, link = (None, ()) if found is None else found
    if any(
        token.lemma == "neither" and token.head not in (head, *tree.of(head, "xcomp"))
        for token in tree.tokens[:head]
    ):
        return None  # "neither my wife nor I"
    if link and tree.has(head, "VerbForm=Inf") and not tree.of(head, "aux"):
        return None  # "you can show it and get …", "talk soon, have fun!"
    if link and _is_participle(tree, head) and not _is_participle(tree, tree.tokens[link[-1]].head):
        return None  # "the hall was loud, and playing there"
    inner = _inner(tree, head) if not is_copular else _Inner(head)
    verb = inner.verb
    auxiliaries = {tree.tokens[each].lemma for each in tree.of(head, "aux")}
    if link and not auxiliaries and not tree.has(head, "Tense=Past"):  # "we can meet and have fun"
        auxiliaries |= {tree.tokens[each].lemma for each in tree.of(token.head, "aux")} & {"can"}
    near = [*tree.children[head], *tree.children[verb]]
    words = {tree.tokens[each].lemma for each in near if not _is_now_and_then(tree, each)}
    is_denied = bool(negations(tree, near))
    if is_relative and _is_said_not_to_be(tree, token.head):  # "it wasn't Ben who broke it"
        if is_denied or inner.ended:
            return None
        is_denied = True
    if inner.ended and is_denied:
        return None  # "I can't stop writing", "she never quit smoking"
    no_more = _holds_no_more(tree, head)
    finite = tree.of(head, "cop", "aux", "aux:pass") or [head]
    past = any(_is_past(tree, each, head) for each in finite)
    if (no_more or is_denied) and not past and is_limited(tree, head, verb, no_more=no_more):
        return None  # "I don't work on Fridays"
    return Clause(
        head,
        subject,
        verb,
        link,
        is_copular,
        ended=inner.ended or no_more,
        denied=not no_more and is_denied,
        planned=inner.planned or not {"will", "must"}.isdisjoint(auxiliaries),
        ability="can" in auxiliaries,
        past=past,
        passive=inner.passive or tree.first(head, "nsubj:pass", "aux:pass") is not None,
        begins=inner.begins,
        instead=bool(words & INSTEAD)
        or _is_of_these_days(tree, near)
        or (_is_new(tree, subject) and "will" not in auxiliaries),
        aside=past and _is_aside(tree, head),
        duty="must" in auxiliaries,
    )


def _is_now_and_then(tree: Tree, place: int) -> bool:
    after = [tree.word(n).casefold() for n in range(place, min(place + 3, len(tree.tokens)))]
    return after in (["now", "and", "then"], ["now", "and", "again"])


def _is_of_these_days(tree: Tree, places: list[int]) -> bool:
    """ "I drink tea these days"."""
    return any(
        tree.tokens[each].lemma == "day" and tree.word(each - 1).casefold() == "these"
        for each in places
    )


def _is_new(tree: Tree, subject: int | None) -> bool:
    """ "my new trainer is Kim", in the place of whoever was it before."""
    return (
        subject is not None
        and tree.tokens[subject].lemma.casefold() not in ANIMALS | SEVERAL
        and bool(tree.of(subject, "nmod:poss"))
        and any(tree.tokens[each].lemma == "new" for each in tree.of(subject, "amod"))
    )


def _is_said_not_to_be(tree: Tree, noun: int) -> bool:
    """ "it was not Ben", of whom what follows is denied."""
    own = tree.first(noun, *SUBJECT)
    return (
        own is not None
        and tree.tokens[own].lemma in ("it", "that")
        and tree.first(noun, "cop") is not None
        and bool(negations(tree, tree.children[noun]))
    )


def _is_aside(tree: Tree, head: int) -> bool:
    """ "when I moved", "the house where I lived", "I remember that I lived there"."""
    token = tree.tokens[head]
    return (
        token.relation == "acl:relcl"
        or is_meanwhile(tree, head)
        or (token.relation == "ccomp" and tree.tokens[token.head].lemma in _REMEMBERING)
    )


class _Inner(NamedTuple):
    """The verb that one is of, which says that it begins, ends or is planned."""

    verb: int
    ended: bool = False
    planned: bool = False
    begins: bool = False
    passive: bool = False


def _inner(tree: Tree, head: int) -> _Inner:
    """The verb of "stopped smoking", "used to live", "got engaged"; itself where it is of none."""
    lemma, inner = tree.tokens[head].lemma, tree.first(head, "xcomp")
    if inner is None and lemma in PLANNING:
        inner = next((each for each in tree.of(head, "advcl") if _is_of_plan(tree, each)), None)
    if inner is None or tree.tokens[inner].tag not in ("VERB", "ADJ", "NOUN"):
        return _Inner(head)
    particles = {tree.tokens[each].lemma for each in tree.of(head, "compound:prt")}
    if lemma == "stop" and tree.has(inner, "VerbForm=Inf") and tree.of(inner, "mark"):
        return _Inner(head)  # "stopped to buy milk"
    if lemma in STOPPING or (lemma == "give" and "up" in particles) or lemma == "use":
        return _Inner(inner, ended=True)
    if lemma in STARTING:
        return _Inner(inner, begins=lemma in ("start", "begin"))
    if lemma in PLANNING or (lemma == "go" and tree.has(head, "VerbForm=Ger")):
        return _Inner(inner, planned=True)
    if lemma == "have" and tree.has(head, "Tense=Past") and tree.of(inner, "mark"):
        return _Inner(inner)  # "had to sell it"
    if lemma == "get" and tree.has(inner, "VerbForm=Part"):
        return _Inner(inner, passive=True)
    is_rid = lemma == "get" and tree.tokens[inner].lemma == "rid"
    return _Inner(inner if is_rid else head)


def _is_of_plan(tree: Tree, place: int) -> bool:
    """ "planning on visiting"."""
    marks = {tree.tokens[each].lemma for each in tree.of(place, "mark")}
    return tree.has(place, "VerbForm=Ger") and marks == {"on"}


def _is_participle(tree: Tree, place: int) -> bool:
    """ "playing", without a form of "be" of its own."""
    return tree.has(place, "VerbForm=Ger") and not tree.of(place, "aux")


def _holds_no_more(tree: Tree, head: int) -> bool:
    told = tree.text[tree.sentence.start : tree.sentence.end].casefold()
    if not any(mark.partition(" ")[0] in told for mark in NO_MORE):
        return False
    phrase = tree.phrase(head)
    for each in contrasted(tree, head):
        gone = tree.phrase(each, (), ())
        phrase = [at for at in phrase if at not in gone]
    said = f" {tree.text_of(phrase).casefold()} "
    return any(f" {mark} " in said for mark in NO_MORE)


def contrasted(tree: Tree, head: int) -> list[int]:
    """What a clause says of something else by a "not" of its own: "in Notion, not in the wiki"."""
    if not any(token.lemma == "not" for token in tree.tokens[head + 1 :]):
        return []
    return [
        each
        for each in tree.phrase(head)
        if each > head
        and tree.relations[each] in ("obl", "obj", "nmod", "obl:unmarked")
        and negations(tree, tree.children[each])
        and tree.word(tree.opening(each) - 1) == ","
    ]


def _is_past(tree: Tree, place: int, head: int) -> bool:
    """Whether a verb or auxiliary puts its clause into the past: "was", "went", not "has been"."""
    if place == head:
        return tree.has(place, "Tense=Past") and not tree.word(place).endswith("s")
    return (
        tree.has(place, "Tense=Past")
        and not tree.has(place, "VerbForm=Part")
        and tree.tokens[place].lemma != "have"
    )


def _is_copular(tree: Tree, head: int) -> bool:
    """Whether it says what somebody is: with a form of "be", or as "Tariq's vegetarian" and
    "allergic to nuts" do.
    """
    if tree.first(head, "cop") is not None:
        return True
    if tree.tokens[head].tag != "ADJ":
        return False
    if tree.first(head, "aux:pass") is not None:
        return True  # "is gone from the shelf"
    subject = tree.first(head, *SUBJECT)
    if subject is None:
        return tree.tokens[head].head < 0 and tree.opening(head) == head and bool(
            tree.of(head, "obl")
        )  # fmt: skip
    return any(tree.word(each) in ("'s", "’s") for each in tree.of(subject, "case"))


def _subject(tree: Tree, head: int) -> tuple[int, tuple[int, ...]] | None:
    """(its own subject or that of the clause that it goes on with, the arcs between)."""
    link: list[int] = []
    for _ in range(len(tree.tokens)):
        token, own = tree.tokens[head], tree.first(head, *SUBJECT)
        for each in tree.of(head, "aux", "aux:pass"):  # "Ben got" "married", as it may be read
            own = tree.first(each, *SUBJECT) if own is None else own
        if own is not None:
            if link and not _agree(tree, link[0], own):
                return None  # "we see my nan, she's old and does it herself"
            is_relative = token.relation == "acl:relcl" and tree.tokens[own].lemma in _RELATIVE
            return token.head if is_relative else own, tuple(link)
        if carries_on(tree, head):
            head = token.head
            continue
        if token.relation != "conj":
            return None
        link.append(head)
        head = token.head
    return None


def _agree(tree: Tree, verb: int, subject: int) -> bool:
    """Whether a verb can have this subject: "does" is not of "we"."""
    finite = (verb, *tree.of(verb, "aux", "aux:pass", "cop"))
    is_third = any(tree.has(each, "Person=3") for each in finite)
    return not (is_third and tree.word(subject).casefold() in ("i", "we", "you", "they"))


def _may_be_meant(tree: Tree, place: int) -> bool:
    """Whether a token names somebody or something by itself: not a time, nor "at home"."""
    return (
        tree.tokens[place].tag in ("NOUN", "PROPN", "PRON")
        and tree.first(place, "case") is None
        and not tree.is_time(place)
    )


def _is_no_command(tree: Tree, head: int) -> bool:
    """ "don't own a car", which "don't own up to it" and "don't like that post" are."""
    thing = tree.first(head, "obj")
    if thing is None or tree.tokens[head].lemma not in _NO_COMMANDS:
        return False
    pointing = any(tree.tokens[each].lemma in ("this", "that") for each in tree.of(thing, "det"))
    return not pointing and not tree.of(head, "compound:prt")


def _speaks_of_itself(tree: Tree, head: int) -> bool:
    """Whether a clause without a subject is about who says it: "moved to Oslo", "can't swim"."""
    token = tree.tokens[head]
    first = tree.opening(head)
    before = tree.tokens[first - 1] if first else None
    opens = before is None or before.tag in ("PUNCT", "INTJ", "CCONJ", "SYM")
    if any(
        each < head and tree.relations[each] != "compound" and _may_be_meant(tree, each)
        for each in tree.children[head]
    ):
        return False  # "Ben got married", where the reading is not sure who that is
    if _is_copular(tree, head):
        opening = tree.tokens[first].lemma
        return opens and (
            first == head
            or opening in ("never", "not", "always", "still")
            or (tree.word(first).casefold() == "been" and token.tag == "ADJ")
        )
    if tree.tokens[first].lemma == "do" and first != head and not _is_no_command(tree, head):
        return False  # "don't worry"
    if any(tree.has(each, "Person=3") for each in (head, *tree.of(head, "aux", "aux:pass"))):
        return False  # "is marking ten years"
    finite = tree.has(head, "Tense=Past") or tree.first(head, "aux") is not None
    finite |= (
        token.head < 0
        and tree.has(head, "VerbForm=Ger")
        and tree.tokens[first].lemma.casefold() in _AT_PRESENT
        and bool(tree.of(head, "obj", "obl"))
    )  # "currently learning Welsh"
    return opens and token.tag == "VERB" and finite
