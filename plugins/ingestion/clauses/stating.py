"""Whether a clause is stated: by itself, beside another one, or as what another one takes for
given: "I'm glad I sold the car", "my sister, who lives in Graz", "when I was at school".
"""

from __future__ import annotations

from plugins.ingestion.clauses.denying import NOT
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

SUBJECT = ("nsubj", "nsubj:pass")
# What leaves open whether it is so.
UNSURE = word_set("would could might may should must ought shall")
CONDITIONS = word_set("if unless whether lest")
DOUBT = word_set("maybe perhaps probably possibly supposedly apparently almost nearly")
FICTION = word_set("dream nightmare novel story film movie game simulation fantasy")
# Verbs that tell what somebody holds possible, wishes or says, not what is.
SUPPOSING = word_set(
    """think guess believe suppose imagine wish hope doubt wonder consider pretend dream expect seem
    hear say tell ask claim assume feel suggest bet hate swear let remind help make"""
)
# Verbs and adjectives that take for given what they are about.
_TAKING_FOR_GIVEN = word_set(
    """realize realise know notice discover mention remember regret recall glad happy proud excited
    sad sorry relieved grateful thankful lucky pleased surprised delighted thrilled bummed upset
    stoked amazed aware"""
)
# Verbs by which speakers tell what is so of themselves: "I think my favourite book is Rebecca".
_HEDGING = word_set("think guess believe suppose reckon figure say bet")
_SURELY = word_set(
    "really honestly pretty quite fairly very still just actually definitely so but and"
)
_AM = word_set("am 'm ’m m")
# What somebody is asked to keep: "remember that …", "keep in mind that …".
_NOTING = word_set("remember remind note know keep forget")
# What is told by these is not said to be so: "the rumour that I live in Oslo".
_HEARSAY = word_set(
    """rumour rumor claim idea notion suggestion allegation myth lie theory belief assumption
    possibility chance impression thought story"""
)
_REMINDERS = word_set("reminder note update heads-up fyi")
# What people must feel, know or be is a guess.
_NO_DUTIES = word_set(
    """be have admit say confess know feel love like enjoy miss mean look seem sound think want need
    hate remember see hear come"""
)
_SHARED = word_set("but and so")
_REASONS = word_set("because since although though so")
_MEANWHILE = word_set("when while after once as until where")
_ESPECIALLY = word_set("especially particularly even mostly")
_RELATIVE = word_set("who which that where")
_PROMISING = word_set("promise assure convince warn inform swear find know mean read write")
_CONSIDERING = word_set("think consider contemplate")
_WITHIN = ("ccomp", "csubj", "acl", "acl:relcl", "xcomp", "advcl")
# Relations by which a clause stands beside the one it hangs on, and is stated as that is.
BESIDE = ("conj", "parataxis")
_NOTED_BY = (*BESIDE, "ccomp", "acl", "acl:relcl")
STATED_BY = (*BESIDE, "advcl", "ccomp", "acl:relcl", "acl")


def is_stated(tree: Tree, head: int) -> bool:
    """Whether nothing takes it back: a condition, a guess, a wish, a command."""
    token = tree.tokens[head]
    if _is_supposed(tree, head) or tree.has(head, "Mood=Imp"):
        return False
    if any(tree.tokens[each].lemma in UNSURE for each in tree.of(head, "aux")) and not (
        is_duty(tree, head)
    ):  # fmt: skip
        return False
    if any(
        tree.tokens[each].lemma in CONDITIONS | DOUBT for each in tree.of(head, "mark", "advmod")
    ):
        return False
    if any(_is_condition(tree, each) for each in tree.of(head, "advcl")):
        return False
    if any(tree.tokens[each].lemma in FICTION for each in tree.of(head, "obl", "nmod")):
        return False  # "in my dream I was …"
    if token.relation in _NOTED_BY and _is_to_be_noted(tree, head):
        return True
    if token.relation == "acl":
        return False
    if carries_on(tree, head):
        return is_stated(tree, token.head)
    if token.relation == "parataxis" and not (_is_apart(tree, head) or _runs_on(tree, head)):
        return False
    if token.relation == "acl:relcl":
        return _is_given(tree, head)
    if token.relation == "ccomp":
        return (
            tree.tokens[token.head].lemma in _TAKING_FOR_GIVEN and is_stated(tree, token.head)
        ) or is_hedged(tree, head)
    if token.relation == "advcl":
        return _is_circumstance(tree, head)
    if token.relation in BESIDE and token.head >= 0:
        return _goes_on(tree, head)
    return True


def _is_supposed(tree: Tree, head: int) -> bool:
    """Whether what it tells is what somebody holds possible, says, or should do."""
    lemma = tree.tokens[head].lemma
    if lemma not in SUPPOSING or sends_off(tree, head) or considered(tree, head) is not None:
        return False
    if (inner := tree.first(head, "ccomp", "xcomp")) is not None:
        if lemma == "hate" and tree.relations[inner] == "xcomp" and not tree.of(inner, "mark"):
            return False  # "I hate waiting in queues"
        return (lemma, tree.tokens[inner].lemma) != ("make", "sure")
    return lemma in ("let", "imagine", "suppose")


def is_hedged(tree: Tree, head: int) -> bool:
    """Whether it is what speakers say of what is theirs, as far as they know: "I guess I'm a
    vegetarian now", "pretty sure I'm allergic to nuts"; not what they suppose of others, once did,
    no longer do, or do at times.
    """
    outer = tree.tokens[head].head
    if tree.tokens[head].relation != "ccomp" or outer < 0:
        return False
    if tree.tokens[outer].relation not in ("root", "conj", "parataxis") or not _is_of_now(
        tree, outer
    ):
        return False
    around = tree.of(outer, "advmod", "obl", "obl:unmarked", "advcl", "cc")
    if any(tree.tokens[each].lemma.casefold() not in _SURELY for each in around):
        return False
    if any(_is_condition(tree, each) for each in tree.of(head, "advcl")) or any(
        tree.tokens[each].lemma == "or" for place in tree.phrase(head, ()) for each in
        tree.of(place, "cc")
    ):  # fmt: skip
        return False
    own = tree.first(head, *SUBJECT)
    return own is not None and (
        tree.word(own).casefold() == "i"
        or any(tree.word(each).casefold() in ("my", "our") for each in tree.of(own, "nmod:poss"))
    )


def _is_of_now(tree: Tree, outer: int) -> bool:
    """ "I think", "I'd say", "I'm sure", "pretty sure"."""
    said, lemma = tree.first(outer, *SUBJECT), tree.tokens[outer].lemma
    if said is not None and tree.word(said).casefold() != "i":
        return False
    helping = [tree.word(each).casefold() for each in tree.of(outer, "aux")]
    if lemma == "sure":
        being = tree.of(outer, "cop")
        is_told = not helping and all(tree.word(each).casefold() in _AM for each in being)
        return is_told and bool(being) == (said is not None)
    if said is None or lemma not in _HEDGING:
        return False
    if helping:
        return lemma in ("say", "guess", "bet") and helping[0] in ("'d", "’d", "would")
    return lemma != "say" and tree.has(outer, "Tense=Pres")


def _is_to_be_noted(tree: Tree, head: int) -> bool:
    """Whether it is what somebody is asked to keep, or finds to be so: "remember that I'm allergic
    to nuts", "it turns out I'm allergic to nuts".
    """
    outer = tree.tokens[head].head
    lemma, said = tree.tokens[outer].lemma, tree.first(outer, *SUBJECT)
    around = {tree.tokens[each].lemma for each in tree.of(outer, "obl", "compound:prt", "advmod")}
    if lemma in _REMINDERS and tree.tokens[outer].tag == "NOUN":  # "just a reminder that …"
        own = tree.first(head, *SUBJECT)
        return tree.tokens[outer].head < 0 and own is not None and own > outer and not (
            tree.of(outer, "nmod:poss") or around & NOT
        )  # fmt: skip
    if tree.relations[head] in ("acl", "acl:relcl"):
        return False
    if lemma == "turn":  # "it turns out that …"
        if "out" not in around or (said is not None and tree.tokens[said].lemma != "it"):
            return False
    elif lemma not in _NOTING or said is not None or tree.of(outer, "cc") or (
        (lemma == "forget") != bool(tree.of(outer, "aux"))  # "don't forget that …"
    ):  # fmt: skip
        return False
    if (lemma == "keep" and "mind" not in around) or (lemma != "forget" and around & NOT):
        return False
    marks = [tree.tokens[each].lemma for each in tree.of(head, "mark")]
    return tree.tokens[outer].head < 0 and marks in ([], ["that"]) and (
        tree.first(head, *SUBJECT) is not None
    )  # fmt: skip


def _is_condition(tree: Tree, clause: int) -> bool:
    """ "if …", which "especially if …" is not."""
    marks = [each for each in tree.of(clause, "mark") if tree.tokens[each].lemma in CONDITIONS]
    return any(
        tree.tokens[mark - 1].lemma.casefold() not in _ESPECIALLY if mark else True
        for mark in marks
    )


def _goes_on(tree: Tree, head: int) -> bool:
    """Whether a clause that stands beside another one is stated as that is."""
    token = tree.tokens[head]
    outer = tree.tokens[token.head]
    if token.relation == "parataxis" and tree.first(head, *SUBJECT) is None:
        return False
    if outer.relation in _WITHIN:  # what hangs on a clause inside of another one is of its kind
        return token.relation == "conj" and outer.relation in STATED_BY and (
            is_stated(tree, token.head)
        )  # fmt: skip
    return token.relation == "parataxis" or outer.head < 0 or is_stated(tree, token.head)


def _is_circumstance(tree: Tree, head: int) -> bool:
    """Whether an adverbial clause tells what is or was: why, or when something was; or goes on
    after a comma, as people write.
    """
    marks = {tree.tokens[each].lemma.casefold() for each in tree.of(head, "mark")}
    if marks & _REASONS:
        return True
    if is_meanwhile(tree, head):
        return _is_in_the_past(tree, head)
    own = tree.first(head, *SUBJECT)
    first = tree.opening(head)
    return (
        not marks
        and own is not None
        and own < head
        and first > 0
        and (tree.tokens[first - 1].tag == "PUNCT" or _is_joined_by(tree, head, first - 1))
        and first in tree.phrase(own)
        and tree.tokens[head].head < head
    )


def is_meanwhile(tree: Tree, head: int) -> bool:
    """Whether a clause says when another one was: "when I was at school"."""
    return tree.tokens[head].relation == "advcl" and any(
        tree.tokens[each].lemma.casefold() in _MEANWHILE for each in tree.of(head, "mark", "advmod")
    )


def _is_in_the_past(tree: Tree, head: int) -> bool:
    finite = tree.of(head, "cop", "aux", "aux:pass") or [head]
    return any(
        tree.has(each, "Tense=Past") and not tree.has(each, "VerbForm=Part") for each in finite
    )


def _is_given(tree: Tree, head: int) -> bool:
    """Whether a relative clause is about somebody or something in particular: "my sister, who …",
    "the car I bought", not "a car that starts".
    """
    noun = tree.tokens[head].head
    if tree.tokens[noun].tag not in ("NOUN", "PROPN") or tree.tokens[noun].lemma in _HEARSAY:
        return False
    first = tree.tokens[tree.opening(head)]
    opens = first.lemma.casefold() in _RELATIVE or first.relation in (*SUBJECT, "nmod:poss", "det")
    return opens and (
        tree.tokens[noun].tag == "PROPN"
        or bool(tree.of(noun, "nmod:poss"))
        or any(tree.tokens[each].lemma == "the" for each in tree.of(noun, "det"))
    )


def considered(tree: Tree, head: int) -> int | None:
    """What somebody is thinking of doing: "I'm thinking of moving"."""
    if tree.tokens[head].lemma not in _CONSIDERING or not tree.has(head, "VerbForm=Ger"):
        return None
    for each in tree.of(head, "advcl", "xcomp"):
        marks = {tree.tokens[mark].lemma for mark in tree.of(each, "mark")}
        is_about = bool(marks & {"of", "about"}) or tree.tokens[head].lemma != "think"
        if tree.has(each, "VerbForm=Ger") and is_about:
            return each
    return None


def sends_off(tree: Tree, verb: int) -> bool:
    """Whether somebody was "let go" or "made redundant": they "let me go"."""
    then = tree.first(verb, "xcomp", "ccomp")
    told = (tree.tokens[verb].lemma, None if then is None else tree.tokens[then].lemma)
    if told not in (("let", "go"), ("make", "redundant")) or tree.first(verb, *SUBJECT) is None:
        return False
    whom = [tree.word(each).casefold() for each in tree.of(verb, "obj")]
    return tree.has(verb, "Tense=Past") and (whom == ["me"] or bool(tree.of(verb, "aux:pass")))


def _is_joined_by(tree: Tree, head: int, place: int) -> bool:
    """Whether a word joins a clause to the one before it, which a reading may take it to depend on:
    "it's cheap, but the printer needs ink".
    """
    return place in tree.of(head, "cc") and tree.tokens[place].lemma in _SHARED


def carries_on(tree: Tree, head: int) -> bool:
    """Whether a verb without a subject goes on after a comma with what the clause before it is
    about: "I've worked there for years, started on the tills".
    """
    token = tree.tokens[head]
    if token.relation not in ("advcl", "ccomp", "parataxis") or not 0 <= token.head < head:
        return False
    first = tree.opening(head)
    if token.tag != "VERB" or not tree.has(head, "VerbForm=Fin") or first == 0 or (
        tree.word(first - 1) != "," or tree.of(head, *SUBJECT, "mark", "cc", "expl")
    ):  # fmt: skip
        return False
    outer = token.head
    own = tree.first(outer, *SUBJECT)
    if own is None or own > head or tree.tokens[outer].lemma in SUPPOSING | _TAKING_FOR_GIVEN:
        return False
    if any(tree.tokens[each].lemma in _RELATIVE for each in tree.of(head, "advmod", "obj")):
        return False
    is_third = tree.tokens[own].tag in ("NOUN", "PROPN") or tree.word(own).casefold() in (
        "he", "she"
    )  # fmt: skip
    return tree.has(head, "Tense=Past") or (tree.has(head, "Person=3") and is_third)


def _runs_on(tree: Tree, head: int) -> bool:
    """Whether a clause of the speaker's follows a whole one without a mark, and not as what that
    one says: "I love my job I work at Tesco".
    """
    outer, own = tree.tokens[head].head, tree.first(head, *SUBJECT)
    if own is None or tree.word(own) != "I" or outer > head or (
        tree.tokens[outer].lemma in SUPPOSING | _TAKING_FOR_GIVEN | _PROMISING
    ):  # fmt: skip
        return False
    first = tree.first(outer, *SUBJECT)
    return first is not None and tree.opening(head) == own and bool(
        tree.of(outer, "obj", "obl", "cop")
    )  # fmt: skip


def is_duty(tree: Tree, head: int) -> bool:
    """Whether a "must" tells what is to be done by the speaker or with a thing: "I must renew my
    passport", "the return must be filed by June", not "she must be tired".
    """
    helping = [tree.tokens[each].lemma for each in tree.of(head, "aux")]
    if helping != ["must"] or tree.tokens[head].tag != "VERB" or tree.of(head, "cop") or (
        tree.tokens[head].lemma in _NO_DUTIES
    ):  # fmt: skip
        return False
    own = tree.first(head, *SUBJECT)
    return own is not None and (
        tree.word(own).casefold() in ("i", "we")
        or (tree.tokens[own].tag in ("NOUN", "PROPN") and bool(tree.of(head, "aux:pass")))
    )


def _is_apart(tree: Tree, head: int) -> bool:
    """Whether a mark or a conjunction is before a clause, as it is not in "I said I like opera"."""
    first = tree.opening(head)
    return first == 0 or tree.tokens[first - 1].tag in ("PUNCT", "SYM", "CCONJ", "INTJ")
