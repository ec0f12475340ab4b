"""What a clause says that somebody or something is, or is called."""

from __future__ import annotations

from collections.abc import Iterator

import regex as re

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.people import (
    GENDERS,
    RELATIVES,
    Subject,
    Talk,
    note_relative,
    owner_of,
    thing_of,
)
from plugins.ingestion.clauses.phrases import (
    NOMINAL,
    Claim,
    happened,
    is_duration,
    listed,
    polarity_of,
    whole,
)
from plugins.ingestion.clauses.predicates import (
    ANIMALS,
    CONDITIONS,
    FAVOURITE,
    MUCH,
    OWNED,
    STATES,
    WHEN,
    WHERE,
    is_medicine,
    is_work,
)
from plugins.ingestion.clauses.stating import SUBJECT
from plugins.ingestion.clauses.tree import ASIDES, Tree
from plugins.ingestion.facts import ONE_OF, VALUE, Polarity
from storage.text import word_set

_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th)")
_MOODS = word_set("so really very super too pretty quite totally absolutely just")


def owned(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> Iterator[tuple[Subject, Claim]]:
    """ "my favourite colour is orange", "my dentist is Dr. Okafor", "Ana is my sister"."""
    head, subject = clause.head, clause.subject
    if subject is None or clause.past:
        return
    token, polarity = tree.tokens[subject], polarity_of(clause)
    owner = owner_of(tree, subject, speaker, talk) if token.tag == "NOUN" else None
    if owner is not None:
        lemma, about = token.lemma, Subject(owner)
        if any(tree.tokens[each].lemma in FAVOURITE
               for each in tree.of(subject, "amod", "compound")):  # fmt: skip
            if tree.tokens[head].tag in NOMINAL or tree.tokens[head].tag in ("ADJ", "VERB"):
                yield about, Claim("favorite", head, thing_of(tree, head), polarity, lemma)
                for other in tree.of(head, "conj"):  # "orange, not green any more"
                    if any(tree.tokens[each].lemma == "not" for each in tree.children[other]):
                        gone = thing_of(tree, other)
                        yield about, Claim("favorite", other, gone, "ended", lemma)
        elif tree.first(head, "case") is not None:
            return
        elif tree.tokens[head].tag == "PROPN" and (relation := RELATIVES.get(lemma)):
            name = tree.name(head)
            talk.note(Subject(name), GENDERS.get(relation), head)
            if note_relative(tree, subject, owner, name, talk):
                yield about, Claim(relation, head, name, polarity)
        elif lemma == "name" and (whose := tree.first(subject, "nmod:poss")) is not None and (
            tree.tokens[whose].tag == "NOUN"
        ):  # fmt: skip
            yield from name_of(tree, whose, tree.name(head), head, speaker, talk)
        elif lemma in OWNED and tree.tokens[head].tag in NOMINAL:
            yield about, Claim(OWNED[lemma], head, thing_of(tree, head), polarity)
    elif token.tag == "PROPN" and tree.tokens[head].tag == "NOUN":
        owner = owner_of(tree, head, speaker, talk)
        relation = RELATIVES.get(tree.tokens[head].lemma)
        name = tree.name(subject)
        if owner is None:
            return
        if relation is not None:
            if note_relative(tree, head, owner, name, talk):
                yield Subject(owner), Claim(relation, subject, name, polarity)
        elif any(tree.tokens[each].lemma in FAVOURITE
                 for each in tree.of(head, "amod", "compound")):  # fmt: skip
            kind = tree.tokens[head].lemma
            yield Subject(owner), Claim("favorite", subject, name, polarity, kind)


def name_of(
    tree: Tree, whose: int, name: str, place: int, speaker: str, talk: Talk
) -> Iterator[tuple[Subject, Claim]]:
    """Claim that "my dog", "my sister" has this name."""
    lemma, owner = tree.tokens[whose].lemma, owner_of(tree, whose, speaker, talk)
    if owner is None:
        return
    if relation := RELATIVES.get(lemma):
        if note_relative(tree, whose, owner, name, talk):
            yield Subject(owner), Claim(relation, place, name)
    elif lemma in ANIMALS:
        yield Subject(owner), Claim("has_pet", place, name, detail=lemma)
    else:
        yield Subject(f"{owner}'s {lemma}", kind=""), Claim("named", place, name)


def being(tree: Tree, clause: Clause, subject: Subject) -> Iterator[Claim]:
    """ "I'm allergic to nuts", "Ana is a nurse", "the standup is at ten"."""
    head, token = clause.head, tree.tokens[clause.head]
    polarity, thing = polarity_of(clause), thing_of(tree, head)
    is_owned = clause.subject is not None and any(
        tree.tokens[each].lemma in FAVOURITE for each in tree.of(clause.subject, "amod", "compound")
    )
    about = "" if clause.subject is None else tree.tokens[clause.subject].lemma
    is_owned = is_owned or about in OWNED or (about in RELATIVES and token.tag == "PROPN")
    if is_owned and tree.first(head, "case") is None:
        return
    case = tree.first(head, "case")
    preposition = "" if case is None else tree.tokens[case].lemma
    is_person = subject.kind in ("person", "animal")
    if not is_person and (_ORDINAL.fullmatch(tree.word(head)) or (
        token.tag == "ADJ" and tree.first(head, "nummod") is not None and token.lemma == "sharp"
    )):  # fmt: skip
        # "the 26th", "ten sharp"
        yield Claim(WHEN, head, _when(tree, clause), polarity)
    elif not is_person and token.lemma == "due" and (due := _times(tree, head)):
        yield _due(tree, due[0], polarity)
    elif token.tag == "ADJ" or (token.tag == "VERB" and not preposition) or _is_state(tree, head):
        yield from state(tree, clause, polarity)
    elif preposition == "to":  # "never been to Japan"
        yield from happened(tree, clause)
    elif preposition:
        yield from _at_something(tree, clause, preposition, is_person=is_person)
    elif token.tag in NOMINAL:
        if clause.past:
            yield from happened(tree, clause)
        elif token.tag == "NUM" and is_person:
            yield Claim("age", head, tree.word(head), polarity)
        elif (
            tree.is_time(head)
            and not is_person
            and about not in _NUMBERS
            and not is_duration(tree, head)
        ) or (
            not is_person
            and tree.word(head)[0].isdigit()
            and any(mark in tree.word(head) for mark in "/:")
        ):
            yield Claim(WHEN, head, _when(tree, clause), polarity)
        elif not is_person and (
            tree.text_of(amount := tree.phrase(head, _AMOUNT))[:1].isdigit()
            or is_duration(tree, head)
        ):
            yield Claim(MUCH, head, tree.text_of(amount), polarity)
        elif (
            token.tag == "NOUN"
            and is_person
            and is_work(token.lemma)
            and not tree.of(head, "nmod:poss")
        ):
            yield Claim("works_as", head, thing_of(tree, head, frozenset({"nmod"})), polarity)
            yield from workplace(tree, head, polarity)
            yield from work_town(tree, head, polarity)
        elif not is_person and (
            (about in ONE_OF and _is_named(tree, head)) or _is_holder(tree, clause)
        ):
            yield Claim("is", head, thing, polarity, VALUE)
        elif not is_person and token.tag == "PROPN" and tree.kind(head) == "place":
            yield Claim(WHERE, head, thing, polarity)
        elif _is_own_name(tree, clause, subject.name):
            yield Claim("named", head, tree.name(head), polarity)
        else:
            yield Claim("is", head, thing, polarity)


def _is_own_name(tree: Tree, clause: Clause, speaker: str) -> bool:
    """ "hi, I'm Marta", which "I'm Scorpio" need not be."""
    greets = tree.tokens[0].lemma.casefold() in ("hi", "hello", "hey", "hiya")
    if not greets and tree.name(clause.head).casefold() != speaker.casefold():
        return False
    return (
        clause.subject is not None
        and tree.word(clause.subject).casefold() == "i"
        and tree.tokens[clause.head].tag == "PROPN"
        and tree.kind(clause.head) in ("person", None)
        and not tree.of(clause.head, "det", "nmod", "amod", "nmod:poss")
        and not clause.denied
    )


def _at_something(
    tree: Tree, clause: Clause, preposition: str, *, is_person: bool
) -> Iterator[Claim]:
    """ "I'm from Lagos", "the standup is at ten", "I'm on metformin"."""
    head, token, polarity = clause.head, tree.tokens[clause.head], polarity_of(clause)
    if clause.past:
        yield from happened(tree, clause)
    elif token.tag not in NOMINAL:
        return
    elif not is_person and is_duration(tree, head):
        yield Claim(MUCH, head, tree.text_of(tree.phrase(head, ASIDES | _FRAME)), polarity)
    elif not is_person and (tree.is_time(head) or token.tag == "NUM"):
        yield Claim(WHEN, head, _when(tree, clause), polarity)
    elif tree.is_time(head):
        return
    elif is_person and preposition in ("on", "off") and is_medicine(token.lemma):
        over = "denied" if clause.denied or clause.ended else "ended"
        is_over = preposition == "off"
        if is_over and (clause.denied or clause.ended):
            return  # "I'm not off warfarin"
        if is_over and any(
            tree.tokens[case].lemma in ("for", "until", "till")
            for each in (*tree.of(head, "obl"), *tree.of(head, "nmod"))
            for case in tree.of(each, "case")
        ):
            return  # "I'm off warfarin for a week"
        yield Claim("take", head, thing_of(tree, head), over if is_over else polarity)
    else:
        away = (
            {"from": "comes_from", "into": "likes"}
            | ({"in": "stays_in"} if tree.kind(head) == "place" else {})
            if is_person
            else {"in": WHERE, "at": WHERE}
        )
        predicate = away.get(preposition, f"is_{preposition}")
        yield Claim(predicate, head, thing_of(tree, head), polarity)


def _when(tree: Tree, clause: Clause) -> str:
    """The time that something is at, less what leads up to it: "by the way"."""
    after = -1 if clause.subject is None else clause.subject
    told = [each for each in tree.phrase(clause.head, ASIDES | _FRAME) if each > after]
    return tree.text_of(told)


def _due(tree: Tree, place: int, polarity: Polarity) -> Claim:
    """ "due on Friday", which "not due until Friday" says, too."""
    case = tree.first(place, "case")
    until = case is not None and tree.tokens[case].lemma in ("until", "till")
    holds = "holds" if until and polarity == "denied" else polarity
    return Claim(WHEN, place, thing_of(tree, place), holds)


def _times(tree: Tree, head: int) -> list[int]:
    return [each for each in tree.of(head, "obl", "nmod") if tree.is_time(each)]


def _is_named(tree: Tree, place: int) -> bool:
    """Whether it says which one something is, as "a Golf" and "hunter2" do, not "a wreck"."""
    return not tree.of(place, "det") or not tree.word(place).islower()


def _is_holder(tree: Tree, clause: Clause) -> bool:
    """ "the on-call lead is Arjun now": who does it in the place of whoever did."""
    return clause.instead and clause.subject is not None and (
        tree.tokens[clause.head].tag == "PROPN"
        and tree.kind(clause.head) == "person"
        and tree.tokens[clause.subject].tag == "NOUN"
        and bool(tree.of(clause.subject, "det", "nmod:poss"))
    )  # fmt: skip


def _has_lasted(tree: Tree, head: int) -> bool:
    """ "vegetarian since 2010", "been vegan for years", which say so of who says it."""
    if tree.tokens[head].lemma.casefold() not in CONDITIONS:
        return False
    times = [each for each in tree.phrase(head, (), ()) if tree.is_time(each)]
    cases = {tree.tokens[case].lemma for each in times for case in tree.of(each, "case")}
    return bool(cases) and cases <= {"since", "for"}


def _is_reason(tree: Tree, place: int) -> bool:
    """Whether a clause says why something is so, which takes nothing back: "because …"."""
    marks = {tree.tokens[each].lemma for each in tree.of(place, "mark")}
    return tree.relations[place] == "advcl" and not marks.isdisjoint(_REASONS)


_REASONS = word_set("because since so")


def _lasts(tree: Tree, place: int) -> bool:
    """Whether an adjective tells of more than the moment: "vegetarian", "Irish"."""
    return tree.tokens[place].lemma.casefold() in CONDITIONS or tree.word(place)[0].isupper()


_NUMBERS = word_set("number code pin id postcode zip extension password account version phone")
_AMOUNT = ASIDES | {*SUBJECT, "cop", "aux", "mark", "advmod", "case", "obl", "obl:unmarked", "nmod"}
_TOWN = frozenset({"nmod", "appos"})
_FRAME = frozenset({*SUBJECT, "cop", "aux", "aux:pass", "mark", "expl", "advmod", "case"})


def workplace(tree: Tree, head: int, polarity: Polarity) -> Iterator[Claim]:
    """Where somebody who "is a nurse at St James's" works."""
    for place in tree.of(head, "nmod", "obl"):
        case = tree.first(place, "case")
        if case is None or tree.tokens[case].lemma not in ("at", "for") or tree.is_time(place):
            continue
        if tree.tokens[place].tag == "PROPN":
            yield Claim("works_at", place, tree.name(place), polarity)
        elif any(tree.tokens[each].tag == "PROPN"
                 for each in tree.of(place, "compound", "nmod:poss")):  # fmt: skip
            yield Claim("works_at", place, thing_of(tree, place, _TOWN), polarity)


def work_town(tree: Tree, head: int, polarity: Polarity) -> Iterator[Claim]:
    """Where somebody works of whom the town is said: "as a nurse in Dublin"."""
    beside = tree.of(head, "nmod", "obl")
    if tree.tokens[head].relation in ("obl", "xcomp"):  # it may hang on the verb as well
        beside += tree.of(tree.tokens[head].head, "obl")
    for place in (*beside, *(inner for each in beside for inner in tree.of(each, "nmod"))):
        case = tree.first(place, "case")
        if case is not None and tree.tokens[case].lemma in ("in", "near", "outside") and (
            tree.tokens[place].tag == "PROPN" and tree.kind(place) == "place"
        ):  # fmt: skip
            yield Claim("works_in", place, tree.name(place), polarity)


_TOWARDS = word_set("in with about of at for on to")


def _is_state(tree: Tree, head: int) -> bool:
    """Whether it is one of STATES, as "allergic to nuts" is, whatever its tag."""
    return any(name == tree.tokens[head].lemma for name, _ in STATES)


def state(tree: Tree, clause: Clause, polarity: Polarity) -> Iterator[Claim]:
    """An adjective with what it is towards, or alone."""
    head = clause.head
    lemma = tree.tokens[head].lemma
    for place in tree.of(head, "obl:unmarked", "nmod:unmarked"):
        count = tree.first(place, "nummod")
        if lemma == "old" and count is not None and tree.tokens[place].lemma == "year":
            yield Claim("age", count, tree.word(count), polarity)
            return
    for place in tree.of(head, "obl", "nmod"):
        case = tree.first(place, "case")
        if case is None or tree.is_time(place) or tree.tokens[place].tag == "PRON":
            continue
        key = (lemma, tree.tokens[case].lemma)
        if key in STATES and clause.past:  # "I was married to Ben"
            yield from happened(tree, clause)
            return
        if key in STATES:
            for each in listed(tree, place):
                yield Claim(STATES[key], each, thing_of(tree, each), polarity)
            return
    if clause.past or (clause.subject is None and not _has_lasted(tree, head)):
        return
    about = [(each, tree.first(each, "mark")) for each in tree.of(head, "advcl")]
    for each, mark in about:  # "interested in exploring Kyoto"
        if mark is not None and mark == head + 1 and tree.tokens[mark].lemma in _TOWARDS and (
            tree.has(each, "VerbForm=Ger")
        ):  # fmt: skip
            if " " in (thing := whole(tree, each)):
                predicate = f"{tree.word(head).casefold()}_{tree.tokens[mark].lemma}"
                yield Claim(predicate, each, thing, polarity, relates=False)
            return
    beside = tree.of(head, "ccomp", "xcomp", "advcl", "csubj", "expl")
    if any(not (_lasts(tree, head) and _is_reason(tree, each)) for each in beside):
        return
    for place in tree.of(head, "obl", "nmod"):  # "really happy with the new car"
        case = tree.first(place, "case")
        if (
            case is not None
            and case == head + 1
            and tree.tokens[case].lemma in _TOWARDS
            and tree.tokens[place].tag in NOMINAL
            and not (tree.is_time(place) or tree.of(head, "det"))
        ):
            predicate = f"{tree.word(head).casefold()}_{tree.tokens[case].lemma}"
            kept = tree.phrase(place, {"case", "punct", "acl:relcl"})
            kept = kept[1:] if tree.tokens[kept[0]].relation in ("det", "nmod:poss") else kept
            yield Claim(predicate, place, tree.text_of(kept), polarity, relates=False)
            return
    if {tree.tokens[each].lemma for each in tree.of(head, "advmod")} & _MOODS:
        return
    times = [each for each in tree.of(head, "obl", "nmod") if tree.is_time(each)]
    when = {each for place in times for each in tree.phrase(place, ())}
    # "lactose intolerant" is one thing, "two days late" is not
    before = [each for each in tree.of(head, "obl:unmarked", "nmod:unmarked", "compound")
              if each < head and tree.tokens[each].tag in ("NOUN", "PROPN")
              and not tree.is_time(each)]  # fmt: skip
    before += [at for each in tree.of(head, "obl:unmarked") if tree.word(each) == "%"
               for at in tree.phrase(each)]  # fmt: skip
    told = sorted({*tree.phrase(head, ASIDES | _FRAME | {"obl:unmarked"}), *before})
    thing = tree.text_of([each for each in told if each not in when])
    yield Claim("is", head, thing, polarity, relates=_lasts(tree, head))
