"""What a clause says that somebody or something does, did, will do, or does no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plugins.ingestion.clauses.being import work_town, workplace
from plugins.ingestion.clauses.clauses import NO_MORE, Clause, contrasted
from plugins.ingestion.clauses.people import FIRST, RELATIVES, VAGUE, Subject, called, thing_of
from plugins.ingestion.clauses.phrases import (
    NOMINAL,
    Claim,
    happened,
    has_gone_on,
    is_ahead,
    is_of_another_time,
    is_perfect,
    is_place,
    is_to_come,
    listed,
    objects,
    polarity_of,
    verb_name,
    whole,
)
from plugins.ingestion.clauses.predicates import (
    ANIMALS,
    BECOMING,
    CHANGING,
    CIRCLES,
    ENDING,
    GETTING,
    GONE,
    JOBS,
    LASTING,
    SOLD,
    STATUS,
    is_work,
)
from plugins.ingestion.clauses.replacing import replaced
from plugins.ingestion.clauses.schooling import name_of_school, school_of
from plugins.ingestion.clauses.stating import SUPPOSING, carries_on, considered
from plugins.ingestion.clauses.tree import Tree
from plugins.ingestion.facts import ANY, Polarity
from storage.text import word_set

# Verbs that tell nothing of a habit where they stand alone.
_LIGHT = word_set(
    """know mean see understand agree care try wait go come look be do have get sound matter happen
    thank apologize hurry work help joke kid think start rock deserve count will would can could
    shall should may might must promise admit practice bond hope vow
    need want"""
)
_EVER = word_set("before once twice ever never")
# What is only said.
_TELLING = word_set("say mention tell admit know ask")
# Verbs in progress of what a time that is named is to bring.
_COMING = word_set("fly travel visit head leave arrive return host throw meet start see")
# Verbs of how something strikes somebody.
_SEEMING = word_set("look sound seem feel taste smell appear remain matter")
_THANKING = word_set("appreciate realize mean remember forget know see hear guess")
# Verbs that relate to nothing by themselves: what is "made", a difference or a cake, tells more.
_VAGUE = word_set(
    """do make give find need bring keep put hit push say miss feel let lend think believe
    decide focus rely depend discuss talk chat hear sit stand lie lean look bond share face hang"""
)


def doing(tree: Tree, clause: Clause, subject: Subject) -> Iterator[Claim]:
    verb, name, polarity = clause.verb, verb_name(tree, clause.verb), polarity_of(clause)
    if tree.first(verb, "csubj") is not None:
        return
    if ahead := list(_ahead(tree, clause, name)):
        yield from ahead
        return
    if clause.head != clause.verb and clause.ended and tree.tokens[clause.head].lemma != "use":
        yield from _stopped(tree, clause, subject)
        return
    places = objects(tree, verb)
    if name in STATUS and not places and (clause.passive or clause.past):
        yield from _status(tree, clause, name, polarity)
        return
    keys = [(each, (_way(tree, each, name, case), case)) for each, case in places]
    changing = [(each, CHANGING[key]) for each, key in keys if key in CHANGING]
    if polarity == "holds" and (over := list(_over(tree, clause, subject, keys))):
        yield from over
        return
    if changing and _was_so(tree, clause):
        told = f"was {whole(tree, clause.head)}"
        yield Claim("did", clause.head, told, polarity, relates=False)
        return
    if changing and not clause.ability and not has_gone_on(tree, clause):
        yield from _changed(tree, clause, subject, changing, polarity)
        return
    become = _become(tree, verb, name)
    if become is not None:
        kind = "works_as" if is_work(tree.tokens[become].lemma) else "is"
        yield Claim(kind, become, thing_of(tree, become), polarity, changes=True)
        return
    if name == "get" and is_perfect(tree, clause):  # "we've got two cats"
        keys = [
            (each, ("have", case) if not case else key) for each, key in keys for case in [key[1]]
        ]
    if (
        clause.ability
        and (clause.denied or clause.ended)
        and name in ("stand", "bear", "abide")
        and places
    ):
        for each in listed(tree, places[0][0]):  # "can't stand karaoke"
            yield Claim("dislikes", each, thing_of(tree, each))
        return
    works = _works(tree, verb, places[0][0], name, polarity) if places else ()
    for claim in works:  # "got a job at Spotify"
        yield replace(claim, changes=name != "have")
        return
    if name in _COMING and is_to_come(tree, clause) and any(
        tree.is_time(each) for each in tree.of(verb, "obl", "obl:unmarked", "advmod")
    ):  # fmt: skip
        # "we're flying to Rome in June"
        yield Claim("plans", verb, whole(tree, verb), polarity, relates=False)
        return
    if (school := school_of(tree, clause, subject, keys)) is not None:
        yield Claim(
            "studies_at", school, name_of_school(tree, school), polarity, changes=clause.past
        )
        return
    lasting = [(each, LASTING[key]) for each, key in keys if key in LASTING]
    is_past = clause.past and not clause.ended and not clause.begins
    is_past |= is_perfect(tree, clause) and any(
        tree.tokens[each].lemma in _EVER for each in tree.of(verb, "advmod")
    )  # "I've played chess before", "I've never had sushi"
    if lasting and not is_past and not clause.ability:
        for place, predicate in lasting:
            yield from _lasting(tree, place, predicate, _polarity_of(tree, clause, place))
        return
    yield from _other(tree, clause, subject, places, polarity)


def _status(tree: Tree, clause: Clause, name: str, polarity: Polarity) -> Iterator[Claim]:
    """ "got married", which "was married before" tells of another time."""
    if is_of_another_time(tree, clause.verb):
        yield from happened(tree, clause)
    else:
        yield Claim("is", clause.verb, STATUS[name], polarity, changes=True)


# A job beside the one that somebody has.
_FURTHER = word_set(
    """second third another extra additional side part-time weekend evening night saturday sunday
    holiday summer temp voluntary volunteer freelance unpaid casual blog first"""
)


def _way(tree: Tree, place: int, name: str, case: str) -> str:
    """The verb of "moved up to Newcastle" without where that is on the map."""
    verb, _, way = name.partition(" ")
    is_far = way in _WAYS and case == "to" and tree.kind(place) == "place"
    return verb if is_far and (verb, case) in CHANGING else name


_WAYS = word_set("up down over out across on in")


def _works(tree: Tree, verb: int, job: int, name: str, polarity: Polarity) -> Iterator[Claim]:
    """ "got a job at Spotify", where a reading may take the place for one of the getting."""
    if name == "find" and any(tree.of(each, "acl:relcl") for each in tree.phrase(job)):
        return  # "found a job at Lidl that looks interesting"
    kinds = {tree.tokens[each].lemma.casefold() for each in tree.of(job, "amod", "compound", "det")}
    if tree.tokens[job].lemma in JOBS and name in GETTING | {"have"} and kinds.isdisjoint(_FURTHER):
        at = list(workplace(tree, job, polarity))
        yield from at or (workplace(tree, verb, polarity) if name in GETTING else ())


def _polarity_of(tree: Tree, clause: Clause, place: int) -> Polarity:
    """That of the clause, but for what has a "not" of its own: "in Notion, not in the wiki any
    more".
    """
    if clause.denied or clause.ended or place not in contrasted(tree, clause.verb):
        return polarity_of(clause)
    said = f" {tree.text_of(tree.phrase(place, (), ())).casefold()} "
    return "ended" if any(f" {mark} " in said for mark in NO_MORE) else "denied"


def _was_so(tree: Tree, clause: Clause) -> bool:
    """ "I was engaged to Rhys", which "I got engaged to Rhys" is not."""
    helping = {tree.tokens[each].lemma for each in tree.of(clause.head, "aux:pass", "cop")}
    return clause.past and helping == {"be"} and tree.tokens[clause.verb].lemma in STATUS


def _ahead(tree: Tree, clause: Clause, name: str) -> Iterator[Claim]:
    """What is planned, or thought of: "we're getting married", "I'm thinking of moving"."""
    is_coming = name in STATUS and is_to_come(tree, clause)
    is_coming |= is_ahead(tree, clause)
    polarity = "denied" if clause.denied else "holds"
    if clause.planned or is_coming:
        told = clause.head if is_coming else clause.verb
        yield Claim(
            "must" if clause.duty else "plans", told, whole(tree, told), polarity, relates=False
        )
    elif (inner := considered(tree, clause.head)) is not None:
        for each in (inner, *tree.of(inner, "conj")):
            yield Claim("considers", each, whole(tree, each), polarity, relates=False)


def _over(
    tree: Tree, clause: Clause, subject: Subject, keys: list[tuple[int, tuple[str, str]]]
) -> Iterator[Claim]:
    """What is over, or gave way to something else: "sold the car", "retired", "switched to Helix
    from Vim".
    """
    ending = [(each, key) for each, key in keys if key in ENDING]
    if ending and not (clause.past or is_perfect(tree, clause) or is_to_come(tree, clause)) and (
        tree.tokens[ending[0][0]].tag in NOMINAL and not clause.passive
    ):  # fmt: skip
        return  # "my shop sells rice"
    if ending and not any(key in CHANGING for _, key in keys):
        yield from _ended(tree, clause, subject, ending)
        return
    gone = _gone(tree, clause.verb, verb_name(tree, clause.verb))
    if gone is None or keys or not clause.past or is_of_another_time(tree, clause.verb):
        yield from replaced(tree, clause)
        return
    for kind in gone:
        yield Claim(kind, clause.verb, whole(tree, clause.verb), "ended", also=(ANY,))
    yield from happened(tree, clause)


def _gone(tree: Tree, verb: int, name: str) -> tuple[str, ...] | None:
    """What of somebody's is over where nothing is named: "resigned", "dropped out"."""
    after = tree.word(verb + 1) if verb + 1 < len(tree.tokens) else ""
    has_particle = after in ("out", "off") and not name.endswith(after)
    return GONE.get(f"{name} {after}" if has_particle else name)


def _become(tree: Tree, verb: int, name: str) -> int | None:
    """What somebody becomes: "a father", not as in "gets the job done", "got to volunteer"."""
    become = tree.first(verb, "xcomp")
    if name not in BECOMING or become is None or tree.tokens[become].tag not in ("ADJ", "NOUN"):
        return None
    if tree.first(verb, "obj") is not None or tree.of(become, "mark"):
        return None
    return become


def _other(
    tree: Tree,
    clause: Clause,
    subject: Subject,
    places: list[tuple[int, str]],
    polarity: Polarity,
) -> Iterator[Claim]:
    """What has no name of its own: what happened as a whole, a habit by its verb."""
    verb, name = clause.verb, verb_name(tree, clause.verb)
    is_sought = name == "look" and is_to_come(tree, clause) and places and places[0][1] == "for"
    if name in _SEEMING and not is_sought and not (clause.ability and clause.denied and places):
        return
    if clause.ability:
        is_offer = clause.subject is not None and tree.word(clause.subject).casefold() == "we"
        is_bare = name in _VAGUE and not places
        if name not in _LIGHT and not is_bare and (clause.denied or not is_offer):
            yield Claim("can", verb, whole(tree, verb), polarity, relates=False)
    elif (clause.past and not clause.ended) or is_perfect(tree, clause):
        yield from happened(tree, clause)
    elif clause.passive:
        yield Claim("is", verb, whole(tree, verb), polarity, relates=False)
    elif name in _THANKING and not (name == "see" and _is_of_somebody(tree, clause, places)):
        return  # "I see", which "I'm seeing a therapist" is not
    elif places and not _is_about_a_clause(tree, verb):
        place, preposition = places[0]
        predicate = "_".join([*name.split(), *([preposition] if preposition else [])])
        if predicate == "take" and (taught := _taught(tree, place)):
            told = tree.text_of([at for each in taught for at in tree.phrase(each)])
            yield Claim("learns", taught[0], told, polarity)
            return
        if predicate == "live_with":
            yield from _home(tree, place, polarity)
        for each in listed(tree, place):
            relates = name not in _VAGUE and tree.tokens[each].tag != "NUM"
            relates &= not preposition or (
                predicate not in ("go_for", "come_for") and _is_towards(tree, verb)
            )
            named = called(tree, each) if tree.tokens[each].lemma in RELATIVES else None
            thing = thing_of(tree, each) if named is None else tree.name(named, without=each)
            yield Claim(predicate, each, thing, polarity, relates=relates)
    elif name == "learn" and (inner := tree.first(verb, "xcomp")) is not None and (
        tree.first(inner, "obj") is not None
    ):  # fmt: skip
        for each, _ in objects(tree, inner)[:1]:  # "learning to play the cello"
            yield Claim("learns", each, thing_of(tree, each), polarity)
    elif (inner := tree.first(verb, "xcomp")) is not None:
        if tree.has(inner, "VerbForm=Ger") and (name, "") in LASTING:  # "I love swimming in lakes"
            for each in (inner, *tree.of(inner, "conj")):
                if tree.has(each, "VerbForm=Ger"):
                    yield Claim(LASTING[(name, "")], each, whole(tree, each), polarity)
        elif tree.tokens[inner].lemma not in _TELLING:
            yield Claim("does", verb, whole(tree, verb), polarity, relates=False)
    elif tree.first(verb, "ccomp", "obj") is None and not places and name not in SUPPOSING | _LIGHT:
        is_habit = (
            subject.kind == "person"
            and tree.tokens[verb].tag == "VERB"
            and not tree.has(verb, "VerbForm=Ger")
        )
        predicate = "habit" if is_habit else name.replace(" ", "_")
        yield Claim(predicate, verb, whole(tree, verb), polarity, relates=is_habit)


def _is_about_a_clause(tree: Tree, verb: int) -> bool:
    """ "told me that …", not where a verb after a comma is read as what another one says."""
    return any(not carries_on(tree, each) for each in tree.of(verb, "xcomp", "ccomp"))


def _taught(tree: Tree, place: int) -> list[int]:
    """What is learned by "taking piano lessons"."""
    if tree.tokens[place].lemma not in ("lesson", "class", "course"):
        return []
    around = {tree.tokens[each].lemma for each in tree.of(place, "det", "amod")}
    kinds = tree.of(place, "compound")
    is_when = any(tree.is_time(each) or tree.tokens[each].lemma in _NO_SKILLS for each in kinds)
    return [] if is_when or "the" in around else kinds


_NO_SKILLS = word_set("evening morning night weekend summer online crash trial college university")


def _is_of_somebody(tree: Tree, clause: Clause, places: list[tuple[int, str]]) -> bool:
    """ "seeing a therapist", "seeing a guy called Emeka"."""
    if not places or not is_to_come(tree, clause):
        return False
    lemma = tree.tokens[places[0][0]].lemma
    is_person = tree.has(places[0][0], "Kind=person") or tree.kind(places[0][0]) == "person"
    return is_person or lemma in RELATIVES or is_work(lemma)


def _home(tree: Tree, company: int, polarity: Polarity) -> Iterator[Claim]:
    """Where somebody lives of whom it is told with whom: "with Dave and our kids in Leeds"."""
    for place in tree.phrase(company, (), ()):
        case = tree.first(place, "case")
        if case is not None and tree.tokens[case].lemma == "in" and (
            tree.tokens[place].tag == "PROPN" and tree.kind(place) == "place"
        ):  # fmt: skip
            yield Claim("lives_in", place, tree.name(place), polarity)


def _is_towards(tree: Tree, verb: int) -> bool:
    """Whether what follows a preposition is all that the verb is about, as it is not in "take them
    on trips", "go there for her", "go crazy for it".
    """
    return tree.first(verb, "obj", "iobj", "xcomp") is None and not any(
        tree.tokens[each].tag == "PRON" for each in tree.of(verb, "obl")
    ) and not any(tree.tokens[each].tag == "ADJ" or tree.tokens[each].lemma == "there"
                  for each in tree.of(verb, "advmod"))  # fmt: skip


def _lasting(tree: Tree, place: int, predicate: str, polarity: Polarity) -> Iterator[Claim]:
    if predicate == "works_as":
        yield Claim(predicate, place, thing_of(tree, place, frozenset({"nmod"})), polarity)
        yield from workplace(tree, place, polarity)
        yield from work_town(tree, place, polarity)
        return
    if predicate == "boss" and not (
        (tree.tokens[place].tag == "PROPN" and tree.kind(place) != "place")
        or tree.has(place, "Kind=person")
    ):
        return  # "I report to her weekly"
    if predicate == "likes" and polarity == "denied":
        predicate, polarity = "dislikes", "holds"
    whole_list = listed(tree, place)
    if predicate == "has" and tree.tokens[place].lemma.casefold() in ANIMALS and (
        names := _names_of_several(tree, place)
    ):  # fmt: skip
        kind = tree.tokens[place].lemma
        for each in names:  # "two cats, Milo and Luna"
            yield Claim("has_pet", each, tree.name(each), polarity, kind)
        whole_list = [each for each in whole_list if each not in (place, *names)]
    for each in whole_list:
        token = tree.tokens[each]
        named = called(tree, each)
        relation = RELATIVES.get(token.lemma)
        if token.lemma == "partner" and tree.of(each, "compound"):
            relation = None  # "a gym partner called Sam"
        if relation and any(
            tree.word(one).casefold() not in FIRST for one in tree.of(each, "nmod:poss")
        ):
            continue  # "Ben and his sister Zofia"
        if predicate == "has" and token.lemma.casefold() in ANIMALS:
            yield _pet(tree, each, polarity)
        elif predicate == "has" and relation is not None and named is not None:
            yield Claim(relation, each, tree.name(named), polarity)
        elif predicate == "has" and relation is not None and (names := _names(tree, each)):
            for name in names:  # "two kids, Tom and Lily"
                yield Claim(relation, name, tree.name(name), polarity)
        else:
            yield Claim(predicate, each, thing_of(tree, each), polarity)


def _names_of_several(tree: Tree, place: int) -> list[int]:
    """The names that follow a number of animals, after a mark or as a list of their own."""
    if tree.word(place).casefold() == tree.tokens[place].lemma.casefold():
        return []
    beside = [*tree.of(place, "appos"), *tree.of(place, "conj")]
    names = sorted({*beside, *(each for at in beside for each in tree.of(at, "conj"))})
    is_after_a_mark = bool(names) and tree.tokens[tree.opening(names[0]) - 1].tag == "PUNCT"
    are_names = all(tree.tokens[each].tag == "PROPN" for each in names)
    return names if is_after_a_mark and are_names else []


def _names(tree: Tree, place: int) -> list[int]:
    """The names that a number of people are told by."""
    named = tree.first(place, "appos")
    names = [] if named is None else [named, *tree.of(named, "conj")]
    return names if all(tree.tokens[each].tag == "PROPN" for each in names) else []


def _pet(tree: Tree, place: int, polarity: Polarity, *, changes: bool = False) -> Claim:
    named = called(tree, place)
    thing = thing_of(tree, place) if named is None else tree.name(named)
    return Claim("has_pet", place, thing, polarity, tree.tokens[place].lemma, changes=changes)


def _changed(
    tree: Tree, clause: Clause, subject: Subject, found: list[tuple[int, str]], polarity: Polarity
) -> Iterator[Claim]:
    place, predicate = found[0]
    name = tree.tokens[clause.verb].lemma
    if predicate == "lives_in" and tree.tokens[place].lemma.casefold() in _HOMES:
        place = _town_of(tree, place)
    if predicate == "lives_in" and _is_for_a_time(tree, clause.verb):
        yield from happened(tree, clause)
        return
    if predicate in ("lives_in", "stays_in") and (
        subject.kind != "person" or tree.first(clause.verb, "obj") is not None
        or tree.tokens[place].tag != "PROPN" or not is_place(tree, place)
    ):  # fmt: skip
        yield from happened(tree, clause)
        return
    if predicate == "works_at" and name == "join" and tree.kind(place) != "organization":
        yield from happened(tree, clause)
        return
    if predicate == "age" and tree.tokens[place].tag != "NUM":
        return
    if clause.planned or is_to_come(tree, clause):
        yield Claim("plans", clause.verb, whole(tree, clause.verb), polarity, relates=False)
        return
    if tree.tokens[place].lemma.casefold() in ANIMALS and predicate in ("owns", "has_pet"):
        yield _pet(tree, place, polarity, changes=True)
        return
    if predicate == "has_pet" or (predicate == "owns" and _is_for_others(tree, clause.verb)):
        yield from happened(tree, clause)
        return
    yield Claim(predicate, place, thing_of(tree, place), polarity, changes=True)
    if name == "move" and polarity == "holds":
        for origin in tree.of(clause.verb, "obl"):
            case = tree.first(origin, "case")
            if case is not None and tree.tokens[case].lemma == "from":
                yield Claim("lives_in", origin, thing_of(tree, origin), "ended")


def _is_for_a_time(tree: Tree, verb: int) -> bool:
    """ "moved to Paris for the summer"."""
    around = [each for place in tree.of(verb, "obl") for each in (place, *tree.of(place, "nmod"))]
    return any(
        tree.is_time(each) and tree.tokens[case].lemma == "for"
        for each in around
        for case in tree.of(each, "case")
    )


def _town_of(tree: Tree, home: int) -> int:
    """The town of "the Harrogate house", "a flat in Leith"; the home where none is said."""
    for each in (*tree.of(home, "compound"), *tree.of(home, "nmod")):
        case = tree.first(each, "case")
        is_in = case is None or tree.tokens[case].lemma in ("in", "near")
        if is_in and tree.tokens[each].tag == "PROPN" and not tree.is_time(each):
            return each
    return home


_HOMES = word_set("house home flat apartment studio cottage bungalow condo")


def _is_for_others(tree: Tree, verb: int) -> bool:
    """ "bought a console for my partner"."""
    for place in tree.of(verb, "obl"):
        case = tree.first(place, "case")
        if case is not None and tree.tokens[case].lemma == "for" and (
            tree.tokens[place].lemma in RELATIVES or tree.kind(place) == "person"
        ):  # fmt: skip
            return True
    return tree.first(verb, "iobj") is not None


def _ended(
    tree: Tree, clause: Clause, subject: Subject, found: list[tuple[int, tuple[str, str]]]
) -> Iterator[Claim]:
    """ "we sold the car", "I quit Acme": what is over, whatever it was said to be."""
    if is_to_come(tree, clause):
        yield Claim("plans", clause.verb, whole(tree, clause.verb), relates=False)
        return
    place, key = found[0]
    if tree.first(place, "cop") is not None:  # "stopped being a vegetarian"
        yield Claim("is", place, thing_of(tree, place), "ended", also=("works_as",))
        return
    if tree.tokens[place].tag not in NOMINAL or not (clause.past or is_perfect(tree, clause)):
        yield from happened(tree, clause)
        return
    predicates = ENDING[key]
    if claims := list(_left_for_good(tree, clause, place, key)):
        yield from claims
        return
    if key[0] in ("leave", "move") and tree.tokens[place].tag != "PROPN":
        yield from happened(tree, clause)
        return
    if (key[0] == "leave" and _is_departure(tree, clause.verb)) or (
        key == ("go", "off") and tree.of(place, "det")
    ):  # "went off the road"
        yield from happened(tree, clause)
        return
    first = predicates[0] if predicates else "owns" if key[0] in SOLD else "has"
    thing = thing_of(tree, place)
    yield Claim(first, place, thing, "ended", also=predicates or ("*",))


def _left_for_good(tree: Tree, clause: Clause, place: int, key: tuple[str, str]) -> Iterator[Claim]:
    """ "I left the climbing club", "dropped out of law school", "moved out of the flat"."""
    lemma, thing = tree.tokens[place].lemma, thing_of(tree, place)
    if tree.tokens[place].tag != "NOUN" or lemma in VAGUE:
        return
    if key == ("leave", "") and lemma in CIRCLES and not _is_departure(tree, clause.verb):
        for predicate, also in (("has", ("*",)), ("is", ("is",))):  # "a member of the club"
            yield Claim(predicate, place, thing, "ended", also=also)
    elif key in _DROPPING and (subject := tree.first(place, "compound")) is not None:
        yield Claim("studies_at", place, thing, "ended", also=("studies_at",))
        yield Claim("studies", subject, tree.word(subject), "ended", also=("studies",))
    elif key in _MOVING_OUT and tree.first(clause.verb, "obj") is None:
        yield Claim("lives_in", place, thing, "ended", also=("lives_in", "rent", "share"))


def _is_departure(tree: Tree, verb: int) -> bool:
    """ "left Siemens at six", "left Graz by train", "left early": for the day, or on a way."""
    around = tree.of(verb, "advmod", "obl:unmarked")
    around += [inner for each in around for inner in tree.of(each, "advmod", "amod")]
    if any(tree.tokens[each].lemma in _HOURS for each in around):
        return True
    for place in tree.of(verb, "obl"):
        case = tree.first(place, "case")
        if tree.tokens[place].lemma in _HOURS or (
            case is not None
            and tree.tokens[case].lemma in ("at", "by", "before", "around", "on", "after")
            and tree.tokens[place].lemma.casefold() not in _YEARS
            and (tree.tokens[case].lemma in ("at", "by") or not tree.is_time(place))
        ):
            return True
    return False


_DROPPING = frozenset({("drop out", "of"), ("drop", "of")})
_MOVING_OUT = frozenset({("move out", "of"), ("move", "of")})
_HOURS = word_set("early late again soon quickly hurriedly hour minute morning night evening noon")
_YEARS = word_set("year month decade age week day")


def _stopped(tree: Tree, clause: Clause, subject: Subject) -> Iterator[Claim]:
    """ "I stopped playing the cello", "I quit smoking", "he is done being vegetarian"."""
    verb = clause.verb
    if tree.tokens[clause.head].lemma == "finish":  # a thing once, not a habit
        yield from happened(tree, clause)
        return
    if tree.tokens[verb].tag != "VERB":
        yield Claim("is", verb, thing_of(tree, verb), "ended", also=("works_as",))
        return
    places, name = objects(tree, verb), verb_name(tree, verb)
    if tree.first(verb, "cop") is not None:
        yield Claim("is", verb, thing_of(tree, verb), "ended", also=("works_as",))
    elif places:
        place, case = places[0]
        predicate = LASTING.get((name, case)) or CHANGING.get((name, case))
        predicate = predicate or "_".join([*name.split(), *([case] if case else [])])
        also = ("*",) if predicate == "uses" else ()  # whatever it was used for
        for each in listed(tree, place):
            yield Claim(predicate, each, thing_of(tree, each), "ended", also=also)
    else:
        yield Claim("habit", verb, tree.word(verb), "ended", also=("*",))
