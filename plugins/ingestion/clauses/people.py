"""Who is meant: the speaker, somebody named, somebody's relative or thing, a pronoun."""

from __future__ import annotations

from dataclasses import dataclass, field

import regex as re

from plugins.ingestion.clauses.clauses import Clause
from plugins.ingestion.clauses.predicates import ANIMALS, SEVERAL, is_work
from plugins.ingestion.clauses.stating import CONDITIONS, UNSURE
from plugins.ingestion.clauses.tree import ASIDES, Tree
from plugins.ingestion.rules.english import ENGLISH
from storage.text import word_set

RELATIVES = ENGLISH.relatives | {
    "nan": "grandmother", "nana": "grandmother", "gran": "grandmother", "granny": "grandmother",
    "nanna": "grandmother", "grandad": "grandfather", "granddad": "grandfather",
    "mommy": "mother", "mummy": "mother", "mam": "mother", "daddy": "father", "pa": "father",
    "auntie": "aunt", "aunty": "aunt", "niece": "niece", "nephew": "nephew", "mate": "friend",
    "housemate": "roommate", "granddaughter": "granddaughter", "grandson": "grandson",
    "hubby": "married_to", "fiancee": "engaged_to", "kid": "child", "tutor": "tutor",
    "coach": "coach", "physio": "physio", "tailor": "tailor", "advisor": "advisor",
    "flatmate": "roommate",
}  # fmt: skip
GENDERS = ENGLISH.genders | {
    "niece": "f", "nephew": "m", "granddaughter": "f", "grandson": "m",
}  # fmt: skip
# Who has no name for the family but this one.
_PARENTS = word_set("mother father grandmother grandfather")

_TITLES = word_set("aunt uncle")
_NOBODYS = word_set("sam jemima ben")  # "Uncle Sam"

FIRST = word_set("i me my mine we us our ours")
_OWN = word_set("mine ours")  # a thing of the speaker's, not the speaker
PRONOUNS = {"he": "m", "him": "m", "his": "m", "she": "f", "her": "f", "hers": "f"}
RECENT_SENTENCES = 3  # for so long a pronoun may mean who was spoken of
# Nouns that name nobody and nothing in particular.
VAGUE = word_set(
    """people person someone somebody anyone everyone everybody nobody one something anything
    everything nothing thing things stuff lot bit kind sort way part time times day days life rest
    guy guys folk folks other others some all most many fact point reason idea feeling moment
    place moments memory memories"""
)


_IN_LAW = re.compile(r"(?:-| )in(?:-| )law\b", re.IGNORECASE)
_TELLING = ("amod", "compound", "advmod")
_FORMER = word_set("former ex previous late last first")
_SEVERAL = word_set(  # of each of whom somebody may have more than one
    """sister brother daughter son friend colleague neighbor grandmother grandfather aunt uncle
    cousin roommate niece nephew granddaughter grandson child"""
)
_NO_OTHER = word_set(
    """new current old dear lovely beloved own favourite favorite poor line direct good great sweet
    wonderful amazing awesome beautiful darling"""
)
LETTERS_MAX = 5  # of a name like "DNS"; what is longer is said loudly
_CHILDREN = word_set("son daughter child grandson granddaughter")
_OF_NO_ONE_THING = word_set(
    """money cash love hope luck faith rain snow weather traffic work life time food music sleep
    school college water coffee tea sleep pain fear trust sun night morning evening power"""
)
_ENVIRONMENTS = word_set("production prod staging dev qa ci")  # there is one of each
_POINTING = word_set("this that these those no any every each some what such")


@dataclass(frozen=True, slots=True)
class Subject:
    """relative: by which relation alone it is known, to `owner`. kind: of entity, "" unknown."""

    name: str
    relative: str | None = None
    owner: str | None = None
    kind: str = "person"


@dataclass(slots=True)
class _Mention:
    """place: of the token where it was first named in that sentence."""

    subject: Subject
    gender: str | None
    sentence: int
    place: int


@dataclass(slots=True)
class Talk:
    """What one conversation has established so far. at: Unix milliseconds; sentence: how many were
    read.
    """

    at: int
    sentence: int = 0
    relatives: dict[tuple[str, str], str] = field(default_factory=dict)
    mentions: list[_Mention] = field(default_factory=list)

    def note(self, subject: Subject, gender: str | None, place: int) -> None:
        """Note that somebody was spoken of; the latest mention counts."""
        known = next((each for each in self.mentions if each.subject.name == subject.name), None)
        if known is not None:
            self.mentions.remove(known)
            gender = gender or known.gender
            if known.sentence == self.sentence:
                place = min(place, known.place)
        self.mentions.append(_Mention(subject, gender, self.sentence, place))

    def meant(self, word: str, speaker: str, place: int) -> Subject | None:
        """Whom "he" or "she" at this place means: the only one of late who agrees with it."""
        gender = PRONOUNS[word]
        agree = [
            each
            for each in self.mentions
            if each.gender in (gender, None)
            and (each.sentence, each.place) < (self.sentence, place)
            and self.sentence - each.sentence <= RECENT_SENTENCES
            and each.subject.name != speaker
        ]
        sure = [each for each in agree if each.gender == gender] or agree
        if len(sure) != 1 or any(
            each is not sure[0] and each.sentence >= sure[0].sentence for each in agree
        ):
            return None
        sure[0].gender, sure[0].sentence, sure[0].place = gender, self.sentence, -1
        return sure[0].subject


def subject_of(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> Subject | None:
    """Whom or what a clause is about; None where that is open."""
    if clause.subject is None:
        return Subject(speaker)
    opens = not any(each.tag != "PUNCT" for each in tree.tokens[: clause.subject])
    token = tree.tokens[clause.subject]
    is_small = token.tag == "PROPN" and tree.word(clause.subject).islower()  # "rent"
    if clause.is_copular and opens and tree.tokens[clause.subject].tag == "PROPN" and (
        tree.kind(clause.subject) is None and len(tree.phrase(clause.subject)) == 1 and not is_small
    ):  # fmt: skip
        return None  # "Garlic", which is written large for its place alone
    if clause.is_copular and (tree.tokens[clause.subject].tag == "NOUN" or is_small) and (
        tree.phrase(clause.subject) == [clause.subject]
        and (
            tree.is_time(clause.head)
            or tree.tokens[clause.head].tag == "NUM"
            or tree.first(clause.head, "nummod") is not None
        )
    ):  # fmt: skip
        return Subject(tree.word(clause.subject), kind="")  # "standup is at ten"
    found = meant(tree, clause.subject, speaker, talk)
    if found is None and opens and _is_of_one_event(tree, clause):
        return Subject(thing_of(tree, clause.subject), kind="")  # "boiler packed in on Sunday"
    return found


def _is_of_one_event(tree: Tree, clause: Clause) -> bool:
    """Whether a bare noun stands for the one thing that something happened to."""
    place = clause.subject
    assert place is not None
    token = tree.tokens[place]
    return (
        token.tag == "NOUN"
        and token.lemma == tree.word(place).casefold()
        and token.lemma not in VAGUE
        and token.lemma not in RELATIVES
        and token.lemma not in ANIMALS
        and token.lemma not in _OF_NO_ONE_THING
        and not clause.is_copular
        and not token.lemma.endswith("ing")
        and (clause.past or clause.passive)
        and not tree.of(place, "det", "nmod:poss", "conj", "nummod")
        and not clause.link
    )


def subjects_of(tree: Tree, clause: Clause, speaker: str, talk: Talk) -> list[Subject | None]:
    """Whom a clause is about, each of them: "Ana and Ben", "my wife and I"."""
    found = [subject_of(tree, clause, speaker, talk)]
    if clause.subject is None or not tree.children[clause.subject]:
        return found
    for place in _beside(tree, clause.subject):
        word = tree.word(place).casefold()
        is_somebody = word in ("i", "we", "me", "us") or tree.kind(place) == "person"
        is_somebody |= tree.tokens[place].lemma in RELATIVES and tree.tokens[place].tag == "NOUN"
        other = meant(tree, place, speaker, talk) if is_somebody else None
        if other is not None and other not in found:
            found.append(other)
    return found


def _beside(tree: Tree, subject: int) -> list[int]:
    """Who goes with a subject: of "my husband Tom and I", where a reading may take the name for a
    subject of its own, too.
    """
    named = called(tree, subject) if tree.tokens[subject].tag == "NOUN" else None
    found = [*tree.of(subject, "conj"), *(tree.of(named, "conj") if named is not None else ())]
    joints = {tree.tokens[cc].lemma for each in found for cc in tree.of(each, "cc")}
    return found if joints == {"and"} else []


def meant(tree: Tree, place: int, speaker: str, talk: Talk) -> Subject | None:
    """Whom or what a noun or pronoun names."""
    token, word = tree.tokens[place], tree.word(place).casefold()
    if word in FIRST:
        return None if word in _OWN else Subject(speaker)
    if token.tag == "PRON":
        return talk.meant(word, speaker, place) if word in ("he", "she") else None
    before = place - 1
    if token.tag == "PROPN" and before >= 0 and RELATIVES.get(tree.tokens[before].lemma) and (
        tree.kind(place) == "person"
    ):  # fmt: skip
        return Subject(tree.name(place, without=before))
    if is_named_animal(tree, place):
        return Subject(tree.word(place), kind="animal")
    if token.tag == "NUM" and word.isalpha():
        return None  # "one of my favourites"
    if (
        token.tag == "PROPN"
        and tree.kind(place) != "person"
        and any(tree.word(each).casefold() in _THEIRS for each in tree.of(place, "nmod:poss"))
    ):
        return None  # "their CI"
    if token.tag == "PROPN" or (token.tag in ("NUM", "SYM", "X") and len(word) > 1):
        return Subject(tree.name(place), kind=tree.kind(place) or "")
    if token.tag != "NOUN" or (token.lemma in VAGUE and not _is_own_day(tree, place)):
        return None
    if word in _ENVIRONMENTS and tree.phrase(place) == [place]:
        return Subject(word, kind="")  # "production runs on …"
    owner = owner_of(tree, place, speaker, talk)
    if owner is not None:
        relation = RELATIVES.get(token.lemma)
        if relation is None:
            named = called(tree, place)
            own = thing_of(tree, place, frozenset({"nmod:poss"}))
            if token.lemma.casefold() not in SEVERAL:
                own = own.removeprefix("new ").removeprefix("current ")
            own = f"{owner}'s {own}"
            thing = own if named is None else tree.name(named, without=place)
            return Subject(thing, kind=tree.kind(place) or "")
        return relative_of(tree, place, owner, talk)
    named = called(tree, place)
    if named is not None and named == place + 1 and tree.kind(named) == "person" and (
        tree.first(place, "det") is not None and tree.tokens[named].head == place
    ):  # fmt: skip
        return Subject(tree.name(named))  # "the plumber Sven"
    if is_labelled(tree, place):
        return Subject(thing_of(tree, place), kind=tree.kind(place) or "")
    if (whose := tree.first(place, "nmod:poss")) is not None:
        the = any(tree.tokens[each].lemma == "the" for each in tree.of(whose, "det"))
        if not the or tree.tokens[whose].tag != "NOUN":
            return None
        return Subject(tree.text_of(tree.phrase(place)[1:]), kind="")  # "the car's MOT"
    pointing = {tree.tokens[each].lemma for each in tree.of(place, "det")} & _POINTING
    if pointing or tree.first(place, "det", "compound", "nummod", "nmod") is None:
        return None  # "dogs", "good food": of all there are
    return Subject(thing_of(tree, place), kind=tree.kind(place) or "")


_THEIRS = word_set("their your his her")


def is_labelled(tree: Tree, place: int) -> bool:
    """Whether a noun names one thing by its letters or its number: "DNS", "Node 18"."""
    word, after = tree.word(place), place + 1
    is_numbered = after < len(tree.tokens) and tree.tokens[after].tag == "NUM" and (
        tree.tokens[after].head == place and tree.relations[after] == "flat"
    )  # fmt: skip
    return (is_numbered and word[0].isupper()) or (
        1 < len(word) <= LETTERS_MAX and word.isupper() and not tree.of(place, "det", "nmod:poss")
        and not tree.text[tree.sentence.start : tree.sentence.end].isupper()
    )  # fmt: skip


def _is_own_day(tree: Tree, place: int) -> bool:
    """ "my last day"."""
    return tree.tokens[place].lemma == "day" and all(
        tree.of(place, relation) for relation in ("nmod:poss", "amod")
    )


def relative_of(tree: Tree, place: int, owner: str, talk: Talk) -> Subject:
    """The relative of somebody that a noun of RELATIVES names: by name, where that was said."""
    relation, which = RELATIVES[tree.tokens[place].lemma], _told_apart(tree, place)
    named = talk.relatives.get((owner, which or relation))
    if named is not None:
        return Subject(named)
    if which:
        return Subject(f"{owner}'s {which}")
    return Subject(f"{owner}'s {relation_name(relation)}", relation, owner)


def note_relative(tree: Tree, place: int, owner: str, name: str, talk: Talk) -> bool:
    """Note the name of whom a noun of RELATIVES names; -> whether that says who is that relation
    now: not of "my former boss", "my mother-in-law", nor of "my eye doctor", who is not the doctor.
    """
    relation, which = RELATIVES[tree.tokens[place].lemma], _told_apart(tree, place)
    talk.relatives[(owner, which or relation)] = name
    words = {tree.tokens[each].lemma.casefold().rstrip("-") for each in tree.of(place, *_TELLING)}
    former = words & _FORMER - ({"first"} if relation in _CHILDREN else set())
    if former or _IN_LAW.match(tree.text, tree.tokens[place].end):
        return False
    return relation in _SEVERAL or not which


def _told_apart(tree: Tree, place: int) -> str:
    """A relative with what tells it from others of its kind, as "other sister", "mother-in-law";
    "" where nothing does.
    """
    law = _IN_LAW.match(tree.text, tree.tokens[place].end)
    whose = tree.first(place, "nmod:poss")
    first = -1 if whose is None else whose  # "it isn't my sister"
    telling = [each for each in tree.of(place, *_TELLING) if first < each < place]
    telling = [each for each in telling if tree.word(each).casefold() not in _NO_OTHER]
    if law is None and not telling:
        return ""
    start = tree.tokens[min(telling, default=place)].start
    return " ".join(tree.text[start : law.end() if law else tree.tokens[place].end].split())


def is_named_animal(tree: Tree, place: int) -> bool:
    """Whether it is the name in "my cat Biscuit"."""
    kind = "" if place == 0 else tree.tokens[place - 1].lemma.casefold()
    return kind in ANIMALS and tree.tokens[place].tag in ("NOUN", "PROPN") and (
        tree.word(place)[0].isupper()
    )  # fmt: skip


def relation_name(relation: str) -> str:
    return {"married_to": "spouse", "partner_of": "partner", "engaged_to": "fiancé"}.get(
        relation, relation
    )


def owner_of(tree: Tree, place: int, speaker: str, talk: Talk) -> str | None:
    """Whose it is said to be: "my sister", "Tariq's gran", "her house"."""
    for each in tree.of(place, "nmod:poss"):
        word, token = tree.word(each).casefold(), tree.tokens[each]
        if word in FIRST:
            return speaker
        if word in PRONOUNS:
            found = talk.meant(word, speaker, each)
            return None if found is None else found.name
        if token.tag == "PROPN":
            return tree.name(each).partition("'s ")[0]
        if token.tag == "NOUN" and (owner := owner_of(tree, each, speaker, talk)) is not None:
            is_relative = token.lemma in RELATIVES
            thing = f"{owner}'s {token.lemma}"
            return relative_of(tree, each, owner, talk).name if is_relative else thing
    relation = RELATIVES.get(tree.tokens[place].lemma)
    if relation in _PARENTS and not tree.of(place, "det", "nmod:poss", "amod"):
        return speaker  # "Dad was a bus driver"
    return speaker if relation in _TITLES and _is_title(tree, place) else None


def _is_title(tree: Tree, place: int) -> bool:
    """Whether a relation is said as part of a name: "Uncle Bob", not "her uncle Bob"."""
    after = place + 1
    return (
        after < len(tree.tokens)
        and tree.tokens[after].tag == "PROPN"
        and tree.kind(after) == "person"
        and tree.tokens[after].lemma.casefold() not in _NOBODYS
        and not tree.of(place, "det", "nmod:poss", "amod", "compound")
    )


def note_people(tree: Tree, speaker: str, talk: Talk) -> list[tuple[int, str, str, str]]:
    """Note who "my sister" is from now on, and whom a pronoun may mean; -> (place, owner, relation,
    name) of the relatives whose name is said.
    """
    found = []
    for place, token in enumerate(tree.tokens):
        if token.lemma in _BEFORE_NAMES and place:
            found += _by_name(tree, place - 1)
        is_kin = token.tag == "PROPN" and token.relation == "appos" and tree.word(place).islower()
        if token.tag != "NOUN" and not is_kin:
            continue
        if token.relation == "appos":
            found += _told_beside(tree, place, speaker, talk)
        relation = RELATIVES.get(token.lemma)
        if relation is None and token.lemma in ANIMALS:
            named = called(tree, place)
            owner = owner_of(tree, place, speaker, talk)
            if owner is None and named is not None and is_named_animal(tree, named):
                owner = owner_of(tree, named, speaker, talk)
            if named is not None and owner is not None:
                found.append((named, owner, "has_pet", tree.name(named, without=place)))
            continue
        if relation is None and place + 1 < len(tree.tokens) and (
            tree.tokens[place + 1].tag in ("PUNCT", "PROPN") and is_work(token.lemma)
        ):  # fmt: skip
            found += _by_work(tree, place, owner_of(tree, place, speaker, talk))
        if relation is None:
            continue
        if any(tree.word(each).casefold() in PRONOUNS for each in tree.of(place, "nmod:poss")):
            _note_named(tree, speaker, talk, found, place)
        named = called(tree, place)
        owner = owner_of(tree, place, speaker, talk)
        if owner is None and named is not None and token.head == named == place + 1:
            owner = owner_of(tree, named, speaker, talk)  # "my flatmate Ana", "my" being hers
        if owner is None:
            continue
        gender = GENDERS.get(relation) or _BY_WORD.get(token.lemma)
        if named is not None:
            name = tree.name(named, without=place)
            talk.note(Subject(name), gender, place)
            if note_relative(tree, place, owner, name, talk):
                found.append((named, owner, relation, name))
        else:
            talk.note(relative_of(tree, place, owner, talk), gender, place)
    _note_named(tree, speaker, talk, found, len(tree.tokens))
    return found


def _note_named(
    tree: Tree, speaker: str, talk: Talk, found: list[tuple[int, str, str, str]], end: int
) -> None:
    """Note who is named before a token: whom "his" may mean in "Ben and his sister"."""
    for span in tree.sentence.spans:
        if span.first < end and span.kind == "person" and tree.tokens[span.first].tag == "PROPN":
            name = tree.name(span.first)
            if name != speaker and not any(name == each[3] for each in found):
                talk.note(Subject(name), None, span.first)


def _by_name(tree: Tree, place: int) -> list[tuple[int, str, str, str]]:
    """Who somebody is by the word that a name follows or by where they are from: "a physio called
    Agnieszka", "Vikram from Orsa Capital".
    """
    token = tree.tokens[place]
    after = tree.tokens[place + 1].lemma
    if token.tag == "NOUN" and after != "from" and is_work(token.lemma):
        is_one = any(tree.tokens[each].lemma in ("a", "an") for each in tree.of(place, "det"))
        is_one &= not _is_unsure(tree, place)
        name = name_said(tree, place) if is_one else None
        return [] if name is None else [(place, name, "works_as", thing_before(tree, place))]
    if after != "from" or token.tag != "PROPN" or (
        tree.kind(place) != "person" and token.relation != "nsubj"
    ):  # fmt: skip
        return []
    for each in tree.of(place, "nmod"):
        case, named = tree.first(each, "case"), tree.tokens[each]
        if case is None or tree.tokens[case].lemma != "from" or tree.is_time(each):
            continue
        own = tree.of(each, "det", "nmod:poss", "acl", "acl:relcl")
        if case == place + 1 and named.tag == "PROPN" and not own:
            whole = [at for at in tree.phrase(each, (), ()) if at > case]
            named_so = tree.text_of(whole) if tree.of(each, "conj") else thing_of(tree, each)
            return [(each, tree.name(place), "is_from", named_so)]
    return []


def _is_unsure(tree: Tree, place: int) -> bool:
    """Whether what it stands in is a wish or a condition: "I'd love to meet …", "if … comes"."""
    while (place := tree.tokens[place].head) >= 0:
        around = tree.of(place, "aux", "mark")
        if any(tree.tokens[each].lemma in UNSURE | CONDITIONS for each in around):
            return True
    return False


_BEFORE_NAMES = word_set("call name from")


def thing_before(tree: Tree, place: int) -> str:
    """What a noun names with what stands before it, not what follows."""
    kept = [each for each in tree.phrase(place, ASIDES | {"det", "nmod"}) if each <= place]
    return tree.text_of(kept)


def _by_work(tree: Tree, place: int, owner: str | None) -> list[tuple[int, str, str, str]]:
    """Who somebody is whom a name stands beside: "my language instructor, Ms. Johnson, …" is named
    so, "the curator, Rachel Lee, …" is a curator.
    """
    named = called(tree, place)
    if named is None or named < place or tree.kind(named) != "person" or (
        tree.tokens[named - 1].tag != "PUNCT" and tree.tokens[named - 1].tag != "PROPN"
    ):  # fmt: skip
        return []
    name, thing = tree.name(named), thing_of(tree, place, frozenset({"nmod:poss", "conj"}))
    if owner is not None:
        return [(named, f"{owner}'s {thing}", "named", name)]
    is_the = any(tree.tokens[each].lemma == "the" for each in tree.of(place, "det"))
    return [(place, name, "works_as", thing)] if is_the else []


def _told_beside(
    tree: Tree, place: int, speaker: str, talk: Talk
) -> list[tuple[int, str, str, str]]:
    """Who a name is by what stands behind it: "Ravi, our tech lead", "Ana, my sister"."""
    named = tree.tokens[place].head
    if tree.tokens[named].tag != "PROPN" or tree.kind(named) != "person" or named > place:
        return []
    owner, name = owner_of(tree, place, speaker, talk), tree.name(named)
    relation = RELATIVES.get(tree.tokens[place].lemma)
    if relation is not None and owner is not None:
        return [(named, owner, relation, name)] if note_relative(
            tree, place, owner, name, talk
        ) else []  # fmt: skip
    if owner is None and not tree.of(place, "det"):
        return []
    thing = thing_of(tree, place, frozenset({"nmod:poss"}))
    return [(place, name, "works_as" if is_work(tree.tokens[place].lemma) else "is", thing)]


def called(tree: Tree, place: int) -> int | None:
    """The token with the name of "my sister Ana", "our rabbit, Hops", "a dog called Rex"."""
    for clause in tree.of(place, "acl"):
        if tree.tokens[clause].lemma in ("call", "name"):
            named = tree.first(clause, "xcomp", "obj", "obl")
            if named is not None and tree.tokens[named].tag == "PROPN":
                return named
    after = place + 1
    if after < len(tree.tokens) and tree.tokens[after].tag in ("PROPN", "NOUN") and (
        tree.word(after)[0].isupper()
    ):  # fmt: skip
        return after
    if after < len(tree.tokens) and tree.is_in_small_letters() and (
        tree.tokens[after].tag == "PROPN" and tree.kind(after) == "person"
    ):  # fmt: skip
        return after  # "my sister ana"
    named = tree.first(place, "appos", "flat")
    named = _beside_a_mark(tree, place) if named is None else named
    if named is None or tree.tokens[named].tag != "PROPN":
        return None
    if tree.of(named, "conj") or any(each != named for each in tree.of(place, "conj")):
        return None  # "my girlfriend, Toby and I"
    return named if tree.tokens[named].certainty >= NAMED_CERTAINTY_MIN else None


def name_said(tree: Tree, place: int) -> str | None:
    """The name in "a lad called Rhys"."""
    for clause in (*tree.of(place, "acl"), *tree.of(tree.tokens[place].head, "advcl")):
        if tree.tokens[clause].lemma in ("call", "name") and clause == place + 1:
            named = tree.first(clause, "xcomp", "obj", "obl")
            if named is not None and named == clause + 1 and tree.tokens[named].tag == "PROPN":
                return tree.name(named)
    return None


def _beside_a_mark(tree: Tree, place: int) -> int | None:
    """The name in "my teacher, Ms. Johnson, …", where a reading takes the two for a list."""
    for each in tree.of(place, "conj"):
        first = tree.opening(each)
        is_named = tree.kind(each) == "person" and not tree.of(each, "cc")
        if is_named and first == place + 2 and tree.word(first - 1) == ",":
            return each
    return None


NAMED_CERTAINTY_MIN = 0.5
_BY_WORD = {
    "wife": "f", "girlfriend": "f", "husband": "m", "boyfriend": "m", "landlady": "f",
    "fiancée": "f",
}  # fmt: skip


def thing_of(tree: Tree, place: int, without: frozenset[str] = frozenset()) -> str:
    """What a phrase names, without its article, its preposition and who has it; "a lad called Rhys"
    by the name.
    """
    if tree.tokens[place].tag == "NOUN" and (named := name_said(tree, place)) is not None:
        return named
    kept = tree.phrase(place, ASIDES | _AROUND | without)
    while (
        len(kept) > 1
        and not tree.is_joined(kept[0] + 1)
        and (
            tree.tokens[kept[0]].tag in ("DET", "PRON", "ADP", "PUNCT", "CCONJ", "SCONJ", "PART")
            or tree.word(kept[0]).casefold() in ("very", "really", "just", "so")
            or (tree.tokens[kept[0]].relation == "nmod:poss" and tree.tokens[kept[0]].tag == "PRON")
        )
    ):
        kept = kept[1:]
    after = place + 1
    if kept[-1] == place and tree.tokens[place].tag == "PROPN" and after < len(tree.tokens) and (
        tree.tokens[after].tag == "NUM" and tree.tokens[after].head == tree.tokens[place].head
    ):  # fmt: skip
        kept.append(after)  # "runs on Ubuntu 20.04", where a reading takes the two for two
    return tree.text_of(kept)


_AROUND = frozenset({"cop", "aux", "aux:pass", "mark", "nsubj", "nsubj:pass", "case", "expl",
                     "advmod", "obl:unmarked", "obl"})  # fmt: skip
