"""From a parse's numbers to sentences, tokens and spans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from runtime.inference.language.heads import Heads
from runtime.inference.language.lemmas import completed, edited
from runtime.inference.language.parse import Parse
from runtime.inference.language.reading import Sentence, Span, Token
from runtime.inference.language.segmentation import Segment

# Universal features of the detailed tags (Penn Treebank).
_OF_TAG = {
    "NN": "Number=Sing", "NNS": "Number=Plur", "NNP": "Number=Sing", "NNPS": "Number=Plur",
    "VB": "VerbForm=Inf", "VBD": "Tense=Past VerbForm=Fin", "VBG": "VerbForm=Ger",
    "VBN": "Tense=Past VerbForm=Part", "VBP": "Tense=Pres VerbForm=Fin",
    "VBZ": "Tense=Pres VerbForm=Fin Number=Sing Person=3", "MD": "VerbForm=Fin Mood=Modal",
    "JJR": "Degree=Cmp", "JJS": "Degree=Sup", "RBR": "Degree=Cmp", "RBS": "Degree=Sup",
    "PRP$": "Poss=Yes", "WP$": "Poss=Yes", "CD": "NumType=Card", "FW": "Foreign=Yes",
}  # fmt: skip
_OF_PRONOUN = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), "Person=1 Number=Sing"),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), "Person=1 Number=Plur"),
    **dict.fromkeys(("you", "your", "yours", "yourself", "yourselves", "u", "ur"), "Person=2"),
    **dict.fromkeys(("he", "him", "his", "himself"), "Person=3 Number=Sing Gender=Masc"),
    **dict.fromkeys(("she", "her", "hers", "herself"), "Person=3 Number=Sing Gender=Fem"),
    **dict.fromkeys(("it", "its", "itself"), "Person=3 Number=Sing Gender=Neut"),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), "Person=3 Number=Plur"),
}


def assemble(heads: Heads, text: str, segment: Segment, parse: Parse) -> Sentence:
    """One sentence. A noun phrase's head has the kind of thing it stands for among its features,
    such as "Kind=place".
    """
    lists = heads.lists
    tokens = []
    rows = zip(
        segment.words,
        *(parse.tags.tolist(), parse.detailed.tolist(), parse.edits.tolist()),
        *(parse.nominal.tolist(), parse.tree.tolist(), parse.relations.tolist()),
        parse.certainties.tolist(),
        strict=True,
    )
    for (start, end), tag, detailed, edit, nominal, head, relation, certainty in rows:
        word, name = text[start:end], lists["tags"][tag]
        tokens.append(
            Token(
                start,
                end,
                _lemma(heads, word, name, lists["edits"][edit]),
                name,
                _features(
                    lists["detailed"][detailed],
                    word.lower() if name in ("PRON", "DET") else "",
                    lists["nominal"][nominal] if name in ("NOUN", "PROPN", "PRON") else "",
                ),
                head,
                lists["relations"][relation] if head >= 0 else "root",
                certainty,
            )
        )
    spans = _spans(lists["spans"], parse.spans.tolist(), parse.span_certainties.tolist())
    return Sentence(segment.start, segment.end, tuple(tokens), spans, lists["kinds"][parse.kind])


def _lemma(heads: Heads, word: str, tag: str, edit: str) -> str:
    small = word.lower()
    known = heads.exceptions.get((tag, small))
    if known is not None:
        return known
    lemma = edited(word if tag == "PROPN" else small, edit)
    return completed(lemma) if tag == "VERB" else lemma


@cache
def _features(detailed: str, pronoun: str, nominal: str) -> frozenset[str]:
    found = _OF_TAG.get(detailed, "").split() + _OF_PRONOUN.get(pronoun, "").split()
    return frozenset([*found, f"Kind={nominal}"] if nominal else found)


def _spans(
    names: Sequence[str], labels: Sequence[int], certainties: Sequence[float]
) -> tuple[Span, ...]:
    found: list[Span] = []
    for at, (label, certainty) in enumerate(zip(labels, certainties, strict=True)):
        begins, _, kind = names[label].partition("-")
        if begins == "B":
            found.append(Span(at, at + 1, kind, certainty))
        elif begins == "I":
            span = found[-1]
            found[-1] = Span(span.first, at + 1, kind, min(span.certainty, certainty))
    return tuple(found)
