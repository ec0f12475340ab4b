"""Claims, and the parts of a clause that they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.denying import NOT
from plugins.ingestion.clauses.people import VAGUE, thing_of
from plugins.ingestion.clauses.predicates import CHANGING, ENDING, GONE, PARTED_VERBS, STATUS
from plugins.ingestion.clauses.stating import SUBJECT
from plugins.ingestion.clauses.tree import ASIDES, Tree
from plugins.ingestion.facts import Polarity
from storage.text import word_set

# Verbs of changes; what they tell in the present for another time is a plan.
TURNING = frozenset(verb.split()[0] for verb, _ in (*CHANGING, *ENDING)) | frozenset(
    (*(name.split()[0] for name in GONE), *STATUS, "start", "begin", "become")
)
_LATER = word_set("soon tomorrow tonight later")
_NOT_LATER = word_set("today now moment nowadays morning afternoon evening night")
_AGAIN = ("days", "mornings", "evenings", "nights", "weekends", "summers", "winters")
NOMINAL = ("NOUN", "PROPN", "NUM", "SYM", "X")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a clause says of its subject. place: the token its object hangs on; also: further
    predicates under which it ends what it names, ("*",) for all; relates: to something that could
    be met again; by: of what is ended, what is there in its place.
    """

    predicate: str
    place: int
    thing: str
    polarity: Polarity = "holds"
    detail: str | None = None
    also: tuple[str, ...] = ()
    changes: bool = False
    relates: bool = True
    by: str | None = None


def polarity_of(clause: Clause) -> Polarity:
    return "ended" if clause.ended else "denied" if clause.denied else "holds"


def happened(tree: Tree, clause: Clause) -> Iterator[Claim]:
    """What was or happened, as it was told."""
    verb = clause.head
    told, done = whole(tree, verb, further=True), gap_of(tree, verb)
    if done is None and any(tree.tokens[each].lemma in _RELATIVE for each in tree.of(verb, "obj")):
        return  # "the one that I bought"
    if done is not None:  # "the car I bought last year": bought car last year
        verb_words = tree.word(verb)
        told = f"{verb_words} {thing_of(tree, done)}{told.partition(verb_words)[2]}"
    if len(told.split()) > 1:
        polarity = "denied" if clause.denied else "holds"
        yield Claim("did", verb, told, polarity, relates=False)


def verb_name(tree: Tree, verb: int) -> str:
    particle = tree.first(verb, "compound:prt")
    lemma = tree.tokens[verb].lemma.casefold()
    if lemma in ("'ve", "’ve"):
        return "have"  # "I've a very nice sofa"
    if particle is None and lemma in PARTED_VERBS:
        after = (each for each in tree.of(verb, "advmod", "obl", "case") if each > verb)
        names = ((each, f"{lemma} {tree.word(each).casefold()}") for each in after)
        particle = next((each for each, name in names if name in PARTED_VERBS[lemma]), None)
    if lemma == "rid":
        return "get rid"
    if particle is None and lemma in ("come", "go", "move"):
        back = (each for each in tree.of(verb, "advmod") if tree.tokens[each].lemma == "back")
        particle = next(back, None)
    return lemma if particle is None else f"{lemma} {tree.tokens[particle].lemma}"


def objects(tree: Tree, verb: int) -> list[tuple[int, str]]:
    """(place, preposition) of what a verb is done to, the direct object first."""
    direct = [each for each in tree.of(verb, "obj") if is_thing(tree, each)]
    if not direct and (gap := gap_of(tree, verb)) is not None:
        direct = [gap]
    found = [(max(direct, key=tree.certainty), "")] if direct else []
    for place in tree.of(verb, "obl", "obl:agent", "obl:unmarked"):
        if tree.is_time(place) or tree.tokens[place].tag not in NOMINAL:
            continue
        case = tree.first(place, "case")
        if case is not None:
            found.append((place, tree.tokens[case].lemma))
        elif not found and place > verb and tree.tokens[place].tag in NOMINAL:
            found.append((place, ""))
    return found


def gap_of(tree: Tree, verb: int) -> int | None:
    """What a relative clause is about, where it has that for its object: "the car I bought"."""
    token = tree.tokens[verb]
    if token.relation != "acl:relcl" or tree.tokens[token.head].tag not in NOMINAL:
        return None
    objects_, subject = tree.of(verb, "obj"), tree.first(verb, *SUBJECT)
    is_taken = any(tree.tokens[each].lemma not in _RELATIVE for each in objects_)
    is_stranded = any(
        tree.tokens[each].tag == "ADP" or tree.tokens[each].lemma in _PLACING
        for each in (*tree.children[verb], tree.opening(verb))
    )
    if subject is None or tree.tokens[subject].lemma in _RELATIVE or is_taken or is_stranded:
        return None
    return None if tree.is_time(token.head) or tree.tokens[token.head].lemma in VAGUE else (
        token.head
    )  # fmt: skip


_RELATIVE = word_set("who whom which that")
_PLACING = word_set("where when why how in at on to with from for of about")


def is_thing(tree: Tree, place: int) -> bool:
    """Whether a token names something, as "Finnish" does where it is what one speaks."""
    tag = tree.tokens[place].tag
    return tag in NOMINAL or (tag == "ADJ" and tree.word(place)[0].isupper())


def is_of_another_time(tree: Tree, verb: int) -> bool:
    """ "I got fired once": of a time that is past, whatever holds now."""
    around = tree.of(verb, "advmod", "obl", "obl:unmarked")
    return any(tree.tokens[each].lemma.casefold() in _ONCE for each in around)


_ONCE = word_set("once twice before previously formerly twenties thirties teens childhood youth")


def listed(tree: Tree, place: int) -> list[int]:
    """The members of a list, the first of which is named."""
    return [place, *(each for each in tree.of(place, "conj") if is_thing(tree, each))]


FURTHER_CHARS_MAX = 100


def whole(tree: Tree, verb: int, *, further: bool = False) -> str:
    """The verb with all that belongs to it, but for its subject. further: and with how or what for
    it was done, where a clause without a mark before it says so: "playing football".
    """
    kept = [
        each
        for each in tree.phrase(verb, _AROUND_VERB)
        if each == verb or not _leads(tree, each, verb)
    ]
    lead = [each for each in tree.of(verb, "cop") if tree.tokens[verb].tag not in ("VERB", "AUX")]
    told = tree.text_of(sorted([*kept, *lead]))
    if further and (beside := further_of(tree, verb)):
        longer = tree.text_of(sorted({*kept, *lead, *beside}))
        told = longer if len(longer) <= FURTHER_CHARS_MAX else told
    return told


def further_of(tree: Tree, verb: int) -> list[int]:
    """How or what for something was done: "broke my arm" "playing football", "went there" "to study
    music".
    """
    for each in tree.of(verb, "advcl"):
        marks = [tree.tokens[mark].lemma for mark in tree.of(each, "mark")]
        is_how = tree.has(each, "VerbForm=Ger") and not marks
        is_what_for = marks == ["to"] and tree.tokens[each].tag == "VERB" and (
            not tree.of(each, "advmod", "cop")
        )  # fmt: skip
        first = tree.opening(each)
        if each > verb and (is_how or is_what_for) and not tree.of(each, *SUBJECT) and (
            tree.tokens[first - 1].tag != "PUNCT"
        ):  # fmt: skip
            return tree.phrase(each, ASIDES - {"advcl"})
    return []


def _leads(tree: Tree, place: int, verb: int) -> bool:
    """Whether a token belongs to what leads up to a verb: "not", "yesterday", "by the way"."""
    while tree.tokens[place].head != verb:
        place = tree.tokens[place].head
    token = tree.tokens[place]
    return token.lemma in NOT or (
        place < verb and token.relation in ("advmod", "obl", "obl:unmarked", "nmod", "dep")
    )


_AROUND_VERB = ASIDES | {*SUBJECT, "aux", "aux:pass", "mark", "expl", "cop", "csubj"}


def is_place(tree: Tree, place: int) -> bool:
    return tree.kind(place) in ("place", "organization", None)


def is_duration(tree: Tree, place: int) -> bool:
    """ "30 days", "under four hours": how long, not when."""
    case = tree.first(place, "case")
    is_counted = tree.first(place, "nummod") is not None
    return is_counted and tree.tokens[place].lemma.casefold() in _UNITS and (
        case is None or tree.tokens[case].lemma in ("under", "over", "about", "to")
    )  # fmt: skip


_UNITS = word_set("second minute hour day week month year sec min hr ms")


def is_perfect(tree: Tree, clause: Clause) -> bool:
    """ "have seen"."""
    return any(tree.tokens[each].lemma == "have" for each in tree.of(clause.head, "aux"))


def is_ahead(tree: Tree, clause: Clause) -> bool:
    """ "we move to Wien next month": a change that is told in the present, for another time."""
    finite = [clause.head, *tree.of(clause.head, "aux", "aux:pass")]
    verbs, places = {clause.head, clause.verb}, {clause.head, clause.verb}
    places |= set(tree.of(clause.verb, "xcomp"))
    if clause.is_copular or is_perfect(tree, clause) or not any(
        tree.tokens[each].lemma in TURNING for each in verbs
    ):  # fmt: skip
        return False
    times = [
        each
        for place in places
        for each in tree.of(place, "obl", "obl:unmarked", "advmod", "nmod")
        if _is_later(tree, each)
    ]
    if clause.past:  # "I quit next month", which is written as what was
        alike = tree.word(clause.head).casefold() == tree.tokens[clause.head].lemma
        return alike and any(_is_next(tree, each) for each in times)
    return bool(times) and any(tree.has(each, "Tense=Pres") for each in finite)


def _is_next(tree: Tree, place: int) -> bool:
    words = (place, *tree.of(place, "amod"))
    return any(tree.tokens[each].lemma.casefold() in {*_LATER, "next"} for each in words)


def _is_later(tree: Tree, place: int) -> bool:
    """ "next month", "on Friday", "soon": not "today", "at nine", "on Fridays"."""
    lemma, word = tree.tokens[place].lemma.casefold(), tree.word(place).casefold()
    if lemma in _LATER:
        return True
    case, words = tree.first(place, "case"), tree.of(place, "det")
    return (
        tree.is_time(place)
        and tree.tokens[place].tag in NOMINAL
        and word not in _NOT_LATER
        and not word.endswith(_AGAIN)
        and not any(tree.tokens[each].lemma in ("every", "each", "this", "these") for each in words)
        and (case is None or tree.tokens[case].lemma in ("in", "on", "by", "after", "within"))
    )


def is_to_come(tree: Tree, clause: Clause) -> bool:
    """ "is moving to Porto": in progress, of what happens at once."""
    helping = {tree.tokens[each].lemma for each in tree.of(clause.head, "aux")}
    return tree.has(clause.head, "VerbForm=Ger") and "be" in helping and "have" not in helping


def has_gone_on(tree: Tree, clause: Clause) -> bool:
    """ "has been buying"."""
    return tree.has(clause.head, "VerbForm=Ger") and is_perfect(tree, clause)
