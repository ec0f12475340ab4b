"""Titles in quotation marks, which are things, and other quotations, which are somebody's words."""

from __future__ import annotations

import regex as re

from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

_QUOTED = re.compile(r"[\"“„«](?P<said>[^\"“”„«»]*)[\"”“»]")
_QUOTES = frozenset('"“”„«»')
_SAYING = word_set(
    """say tell ask write reply answer shout yell whisper call text reckon think go mutter like
    claim joke scream hear mean"""
)
_JOINING = word_set("with from into over upon")
_SMALL_CHARS = 3  # words that a title may have in small letters
_TITLE_WORDS_MAX = 9


def titles(tree: Tree) -> frozenset[int] | None:
    """The tokens of the titles that a sentence has in quotation marks; None where what it has in
    them may be somebody else's words.
    """
    start, end = tree.sentence.start, tree.sentence.end
    told = tree.text[start:end]
    if _QUOTES.isdisjoint(told):
        return frozenset()
    spans = [each.span() for each in _QUOTED.finditer(told) if _is_title(each["said"])]
    if sum(told.count(each) for each in _QUOTES) != 2 * len(spans):
        return None
    inside = frozenset(
        place
        for place, token in enumerate(tree.tokens)
        if any(low <= token.start - start < high for low, high in spans)
    )
    before = [min(inside) - 1, *(place - 1 for place in inside if place - 1 not in inside)]
    if any(place < 0 or tree.tokens[place].tag == "PUNCT" for place in before):
        return None
    is_said = any(
        tree.tokens[each].lemma in _SAYING and tree.relations[each] != "acl"  # "a band called …"
        for each in before
    )
    return None if is_said else inside


def _is_title(said: str) -> bool:
    """Whether quoted words are written as those of a book or a song are, or are a single one."""
    words = said.replace("-", " ").split()
    if len(words) == 1 and said.isalpha():
        return True
    return 0 < len(words) <= _TITLE_WORDS_MAX and said[:1].isalnum() and all(
        not word[0].islower() or len(word) <= _SMALL_CHARS or word in _JOINING for word in words
    ) and not words[0][0].islower() and said[-1] not in ".,;:"  # fmt: skip
