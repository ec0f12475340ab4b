"""How far a "not" reaches: what is denied altogether, and what only at times, so much or with
somebody, which leaves open whether it is so.
"""

from __future__ import annotations

from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

NOT = word_set("not n't never no neither nor hardly barely")
# "not only" says that it is so.
_ONLY = word_set("only just merely simply solely")
_LIMITING = word_set(
    """only just always often every each all entire well alone together enough more less as so that
    daily weekly early late sometimes everyday everywhere full-time part-time"""
)
# Adverbs that say nothing of how or how much.
_PLAIN = word_set(
    """really actually currently presently honestly personally sadly unfortunately finally
    particularly especially recently lately simply certainly definitely possibly any"""
)
_DEGREES = word_set("very too")
_NOW = word_set("now nowadays moment currently presently day")
_FROM_THEN = word_set("since from of for until till")
_COMPANY = word_set("with without")
_CIRCUMSTANCES = word_set("when whenever while as than like where wherever unless before after")


def negations(tree: Tree, places: list[int]) -> list[int]:
    """Those of the tokens that deny what they depend on."""
    return [
        each
        for each in places
        if tree.tokens[each].lemma in NOT
        and not (each + 1 < len(tree.tokens) and tree.tokens[each + 1].lemma in _ONLY)
    ]


def is_limited(tree: Tree, head: int, verb: int, *, no_more: bool) -> bool:
    """Whether a clause denies something at times, in a degree, a manner or a company alone.

    no_more: it says that something is over, of which a place beside it takes nothing back
    """
    beside = sorted({*tree.children[head], *tree.children[verb]})
    begun = min((each for each in beside if tree.tokens[each].lemma in NOT), default=head)
    told = [each for each in _up_to_a_mark(tree, head, begun) if each > begun]
    return (
        any(_limits(tree, each, is_copular=tree.first(head, "cop") is not None) for each in told)
        or any(_is_at_times(tree, each) for each in beside if each in told)
        or any(_is_circumstance(tree, each) for place in (*told, head) for each in
               tree.of(place, "advcl"))
        or _is_beside_more(tree, [each for each in beside if each in told], no_more)
    )  # fmt: skip


def _up_to_a_mark(tree: Tree, head: int, begun: int) -> list[int]:
    """The tokens of a clause up to the first comma after its negation."""
    end = next(
        (n for n in range(begun, len(tree.tokens)) if tree.word(n) in (",", ";", ":", "(")),
        len(tree.tokens),
    )
    return [each for each in tree.phrase(head) if each < end]


def _limits(tree: Tree, place: int, *, is_copular: bool) -> bool:
    token = tree.tokens[place]
    lemma, before = token.lemma.casefold(), tree.word(place - 1).casefold() if place else ""
    if (
        before in ("any", "at")
        or (before, lemma) == ("no", "long")
        or token.tag not in ("ADV", "DET", "ADJ")
    ):
        return False  # "any more", "at all"
    if token.tag == "ADV" and lemma.endswith("ly"):
        return lemma not in _PLAIN
    if lemma in ("that", "as", "so"):
        return token.tag == "ADV"
    return lemma in _LIMITING or (is_copular and lemma in _DEGREES)


def _is_at_times(tree: Tree, place: int) -> bool:
    """ "on Fridays", "today": not "now", "since May"."""
    token, case = tree.tokens[place], tree.first(place, "case")
    return (
        token.relation in ("obl", "obl:unmarked", "nmod", "advmod")
        and tree.is_time(place)
        and token.lemma.casefold() not in _NOW
        and (case is None or tree.tokens[case].lemma not in _FROM_THEN)
    )


def _is_circumstance(tree: Tree, clause: int) -> bool:
    opening = tree.of(clause, "mark", "advmod")
    return any(tree.tokens[each].lemma in _CIRCUMSTANCES for each in opening)


def _is_beside_more(tree: Tree, beside: list[int], no_more: bool) -> bool:
    """Whether it is denied of several things at once, as of where and with whom; of what is over,
    with whom.
    """
    around = [
        each
        for each in beside
        if tree.tokens[each].relation in ("obj", "obl")
        and tree.tokens[each].tag in ("NOUN", "PROPN", "PRON", "NUM")
        and not tree.is_time(each)
    ]
    cases = {tree.tokens[case].lemma for each in around for case in tree.of(each, "case")}
    return len(around) > 1 and (not no_more or not cases.isdisjoint(_COMPANY))
