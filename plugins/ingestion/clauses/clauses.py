"""Clauses: who is said to do, be or have what, and whether that is stated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plugins.ingestion.clauses.denying import is_limited, negations
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

SUBJECT = ("nsubj", "nsubj:pass")
# What leaves open whether it is so.
UNSURE = word_set("would could might may should must ought shall")
CONDITIONS = word_set("if unless whether lest")
DOUBT = word_set("maybe perhaps probably possibly supposedly apparently almost nearly")
ASKING = word_set("what who whom whose which how why whoever whatever")
FICTION = word_set("dream nightmare novel story film movie game simulation fantasy")
INSTEAD = word_set("now instead nowadays currently")
_QUOTES = frozenset('"“”„«»')
NO_MORE = ("any more", "anymore", "any longer", "no longer")
# Verbs that tell what somebody holds possible, wishes or says, not what is.
SUPPOSING = word_set(
    """think guess believe suppose imagine wish hope doubt wonder consider pretend dream expect seem
    hear say tell ask claim assume feel suggest bet hate swear let remind help make"""
)
STOPPING = word_set("quit stop finish cease discontinue")
STARTING = word_set("start begin keep continue")
PLANNING = word_set("plan intend aim decide")
# Relations by which a clause stands beside the one it hangs on, and is stated as that is.
_BESIDE = ("conj", "parataxis")


@dataclass(frozen=True, slots=True)
class Clause:
    """Places of tokens. head: what is told, a verb or what somebody is; subject: None where it is
    the speaker without being said.

    verb      whose objects these are: the head, or the verb that it begins, stops or plans
    link      arcs that say whose clause it is: what its subject was taken over by
    ended     it held once and does no more; denied: it does not
    planned   it is to come; ability: "can"; past: it was so, or happened
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


def clauses(tree: Tree) -> Iterator[Clause]:
    """The stated clauses of a sentence, outer ones first."""
    if tree.sentence.kind == "question" or _is_quoted(tree):
        return
    if tree.text[: tree.sentence.end].rstrip("\"'”’)] ").endswith("?"):
        return
    for place, token in enumerate(tree.tokens):
        if token.head >= 0 and token.relation not in (*_BESIDE, "advcl"):
            continue
        if _is_stated(tree, place) and (clause := _clause(tree, place)) is not None:
            yield clause


def _is_quoted(tree: Tree) -> bool:
    told = tree.text[tree.sentence.start : tree.sentence.end]
    return not _QUOTES.isdisjoint(told)


def _clause(tree: Tree, head: int) -> Clause | None:
    token = tree.tokens[head]
    is_copular = _is_copular(tree, head)
    if token.tag not in ("VERB", "AUX") and not is_copular:
        return None
    if any(tree.tokens[each].lemma in ASKING for each in (min(tree.phrase(head)), head)):
        return None
    if tree.first(head, "expl", "csubj") is not None:
        return None  # "there is", "it is true that"
    found = _subject(tree, head)
    if found is None and not _speaks_of_itself(tree, head):
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
    verb, ended, planned, begins, passive = head, False, False, False, False
    inner = tree.first(head, "xcomp")
    if inner is not None and not is_copular and tree.tokens[inner].tag in ("VERB", "ADJ", "NOUN"):
        particles = {tree.tokens[each].lemma for each in tree.of(head, "compound:prt")}
        if token.lemma in STOPPING or (token.lemma == "give" and "up" in particles):
            verb, ended = inner, True
        elif token.lemma in STARTING:
            verb, begins = inner, token.lemma in ("start", "begin")
        elif token.lemma in PLANNING or (token.lemma == "go" and tree.has(head, "VerbForm=Ger")):
            verb, planned = inner, True
        elif token.lemma == "have" and tree.has(head, "Tense=Past") and tree.of(inner, "mark"):
            verb = inner  # "had to sell it"
        elif token.lemma == "use":  # "used to live"
            verb, ended = inner, True
        elif token.lemma == "get" and tree.has(inner, "VerbForm=Part"):  # "got engaged"
            verb, passive = inner, True
        elif token.lemma == "get" and tree.tokens[inner].lemma == "rid":
            verb = inner
    auxiliaries = {tree.tokens[each].lemma for each in tree.of(head, "aux")}
    if link and not auxiliaries and not tree.has(head, "Tense=Past"):  # "we can meet and have fun"
        auxiliaries |= {tree.tokens[each].lemma for each in tree.of(token.head, "aux")} & {"can"}
    near = [*tree.children[head], *tree.children[verb]]
    words = {tree.tokens[each].lemma for each in near}
    is_denied = bool(negations(tree, near))
    if ended and is_denied:
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
        ended=ended or no_more,
        denied=not no_more and is_denied,
        planned=planned or "will" in auxiliaries,
        ability="can" in auxiliaries,
        past=past,
        passive=passive or tree.first(head, "nsubj:pass", "aux:pass") is not None,
        begins=begins,
        instead=bool(words & INSTEAD),
    )


def _is_participle(tree: Tree, place: int) -> bool:
    """ "playing", without a form of "be" of its own."""
    return tree.has(place, "VerbForm=Ger") and not tree.of(place, "aux")


def _holds_no_more(tree: Tree, head: int) -> bool:
    told = tree.text[tree.sentence.start : tree.sentence.end].casefold()
    if not any(mark.partition(" ")[0] in told for mark in NO_MORE):
        return False
    said = f" {tree.text_of(tree.phrase(head)).casefold()} "
    return any(f" {mark} " in said for mark in NO_MORE)


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
    subject = tree.first(head, *SUBJECT)
    if subject is None:
        return tree.tokens[head].head < 0 and min(tree.phrase(head)) == head and bool(
            tree.of(head, "obl")
        )  # fmt: skip
    return any(tree.word(each) in ("'s", "’s") for each in tree.of(subject, "case"))


def _is_stated(tree: Tree, head: int) -> bool:
    """Whether nothing takes it back: a condition, a guess, a wish, a command."""
    token = tree.tokens[head]
    is_sent_off = sends_off(tree, head)
    if (
        token.lemma in SUPPOSING
        and tree.first(head, "ccomp", "xcomp") is not None
        and not is_sent_off
    ):
        return False
    if token.lemma in ("let", "imagine", "suppose") and not is_sent_off:
        return False
    if tree.has(head, "Mood=Imp"):
        return False
    if any(tree.tokens[each].lemma in UNSURE for each in tree.of(head, "aux")):
        return False
    if any(
        tree.tokens[each].lemma in CONDITIONS | DOUBT for each in tree.of(head, "mark", "advmod")
    ):
        return False
    if any(
        tree.tokens[mark].lemma in CONDITIONS
        for clause in tree.of(head, "advcl")
        for mark in tree.of(clause, "mark")
    ):
        return False
    if any(tree.tokens[each].lemma in FICTION for each in tree.of(head, "obl", "nmod")):
        return False  # "in my dream I was …"
    if token.relation == "parataxis" and not _is_apart(tree, head):
        return False
    if token.relation == "advcl":
        marks = {tree.tokens[each].lemma for each in tree.of(head, "mark")}
        return bool(marks & {"because", "since", "although", "though", "so"})
    if token.relation in _BESIDE and token.head >= 0:
        outer = tree.tokens[token.head]
        beside_told = token.relation == "conj" or tree.first(head, *SUBJECT) is not None
        # What hangs on a clause inside of another one is of its kind: "I think that … and …".
        inside = outer.relation in ("ccomp", "csubj", "acl", "acl:relcl", "xcomp", "advcl")
        return (
            beside_told
            and not inside
            and (token.relation == "parataxis" or outer.head < 0 or _is_stated(tree, token.head))
        )
    return True


def sends_off(tree: Tree, verb: int) -> bool:
    """Whether somebody was "let go" or "made redundant": they "let me go"."""
    then = tree.first(verb, "xcomp", "ccomp")
    told = (tree.tokens[verb].lemma, None if then is None else tree.tokens[then].lemma)
    if told not in (("let", "go"), ("make", "redundant")) or tree.first(verb, *SUBJECT) is None:
        return False
    whom = [tree.word(each).casefold() for each in tree.of(verb, "obj")]
    return tree.has(verb, "Tense=Past") and (whom == ["me"] or bool(tree.of(verb, "aux:pass")))


def _is_apart(tree: Tree, head: int) -> bool:
    """Whether a mark or a conjunction is before a clause, as it is not in "I said I like opera"."""
    first = min(tree.phrase(head))
    return first == 0 or tree.tokens[first - 1].tag in ("PUNCT", "SYM", "CCONJ", "INTJ")


def _subject(tree: Tree, head: int) -> tuple[int, tuple[int, ...]] | None:
    """(its own subject or that of the clause that it goes on with, the arcs between)."""
    link: list[int] = []
    for _ in range(len(tree.tokens)):
        token, own = tree.tokens[head], tree.first(head, *SUBJECT)
        for each in tree.of(head, "aux", "aux:pass"):  # "Ben got" "married", as it may be read
            own = tree.first(each, *SUBJECT) if own is None else own
        if own is not None:
            return own, tuple(link)
        if token.relation != "conj":
            return None
        link.append(head)
        head = token.head
    return None


def _may_be_meant(tree: Tree, place: int) -> bool:
    """Whether a token names somebody or something by itself: not a time, nor "at home"."""
    return (
        tree.tokens[place].tag in ("NOUN", "PROPN", "PRON")
        and tree.first(place, "case") is None
        and not tree.is_time(place)
    )


def _speaks_of_itself(tree: Tree, head: int) -> bool:
    """Whether a clause without a subject is about who says it: "moved to Oslo", "can't swim"."""
    token = tree.tokens[head]
    first = min(tree.phrase(head))
    before = tree.tokens[first - 1] if first else None
    opens = before is None or before.tag in ("PUNCT", "INTJ", "CCONJ", "SYM")
    if any(each < head and _may_be_meant(tree, each) for each in tree.children[head]):
        return False  # "Ben got married", where the reading is not sure who that is
    if _is_copular(tree, head):
        opening = tree.tokens[first].lemma
        return opens and (first == head or opening in ("never", "not", "always", "still"))
    if tree.tokens[first].lemma == "do" and first != head:
        return False  # "don't worry"
    finite = tree.has(head, "Tense=Past") or tree.first(head, "aux") is not None
    return opens and token.tag == "VERB" and finite
