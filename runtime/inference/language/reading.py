"""What is read of a text, as plain values.

Words, tags, features and relations are those of Universal Dependencies, version 2
(https://universaldependencies.org), for English.
"""

from __future__ import annotations

from typing import NamedTuple

ROOT = -1  # the head of a sentence's root


class Token(NamedTuple):
    """A word, a part of one ("do" and "n't"), a number, or a mark.

    start, end  code points of the text, end exclusive
    lemma       the dictionary form, in small letters but for proper names
    tag         part of speech (UPOS), such as "VERB"
    features    morphology, such as {"Number=Plur"} or {"Tense=Past", "VerbForm=Fin"}
    head        the index in the sentence of the token it depends on; ROOT for the root
    relation    what it is to its head: a label without subtype, but for those of SUBTYPES
    certainty   0 … 1: how likely head and relation are right, taken together
    """

    start: int
    end: int
    lemma: str
    tag: str
    features: frozenset[str]
    head: int
    relation: str
    certainty: float


# The subtypes that relations keep.
SUBTYPES = (
    *("nsubj:pass", "csubj:pass", "aux:pass", "obl:agent", "nmod:poss", "compound:prt"),
    *("acl:relcl", "obl:unmarked", "nmod:unmarked"),
)


class Span(NamedTuple):
    """A named or described thing in a sentence.

    first, last  indices of its tokens, last exclusive
    kind         person, place, organization, event, time, object, animal or work
    certainty    0 … 1: how likely its tokens and its kind are right
    """

    first: int
    last: int
    kind: str
    certainty: float


class Sentence(NamedTuple):
    """A sentence of a text, or what stands for one in a chat.

    start, end  code points of the text, end exclusive
    tokens      in order; none where the text was not read
    spans       in order, disjoint
    kind        statement, question, command, exclamation ("Wow!") or fragment (no clause)
    """

    start: int
    end: int
    tokens: tuple[Token, ...] = ()
    spans: tuple[Span, ...] = ()
    kind: str = "fragment"


class Reading(NamedTuple):
    """A text's sentences, in order. Together they have all of its characters but white space."""

    sentences: tuple[Sentence, ...] = ()
