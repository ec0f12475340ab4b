"""Quotes: the sentences of found memories that answer a question, and the check that a quote is
really one.

Nothing is generated here. `best_quotes` picks whole sentences out of what a search returned: those
that share the question's words and show the kind of thing it asks for (kinds.py). A sentence that
cannot answer without showing such a thing, and does not, is never picked, nor is one that only asks
the question itself, as a stored conversation does.
`verify` takes a quote that somebody else claims to have found, looks it up in the memory and gives
back the memory's own characters, or nothing. So whatever leaves this module is `content[start:end]`
of its memory, counted in code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugins.answers.kinds import Kind, can_answer, kind_of, shows
from storage.text import analyze, query_terms

QUOTES_MAX = 3
SENTENCES_MAX = 200  # of one memory, that are looked at closely
BEGINNING_CHARS = 4  # of a word, by which sentences of a long memory are chosen for that
SENTENCE_CHARS_MAX = 600
VERIFIED_CHARS_MAX = 2_000

# A result this much weaker than the best (share of its normalized_score) adds nothing to an
# extractive answer.
SUPPORT_SHARE_MIN = 0.6

_MARKS, _CLOSERS = "[.!?…。！？]++", "[\"'”’)\\]]*+"
_TITLES = "|".join(rf"(?<=\b{title})" for title in ("Dr", "Mr", "Mrs", "Ms", "Prof", "St"))
# Everything but line ends and those marks that white space or nothing follows, unless a title and a
# name are about the mark; then these. No character is looked at more than a few times.
_SENTENCE = re.compile(
    rf"\S(?:[^\n.!?…。！？]|(?:{_TITLES})\.(?= [^\W\d_])|{_MARKS}(?!{_CLOSERS}(?:\s|\Z)))*+"
    rf"(?:{_MARKS}{_CLOSERS})?"
)
_QUESTION_MARKS = ("?", "？", "؟")
_SAYS_NOTHING = frozenset(["yes", "no"])
_SPACE = re.compile(r"\s+")
_CURLY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})


@dataclass(frozen=True, slots=True)
class Quote:
    """content[start:end] == quote, of the memory at `place` in the results."""

    place: int
    start: int
    end: int
    quote: str

    def citation(self, memory_id: str) -> dict[str, Any]:
        return {"memory_id": memory_id, "start": self.start, "end": self.end, "quote": self.quote}


def best_quotes(
    question: str, hits: Sequence[Mapping[str, Any]], quotes_max: int = QUOTES_MAX
) -> list[Quote]:
    """The best sentence of each of the best memories, best first; none of a memory far behind the
    first, nor of one without a sentence that shows what is asked for and says something, or whose
    best is superseded.
    """
    if not hits:
        return []
    terms = frozenset(query_terms(question))
    wanted = kind_of(question)
    floor = SUPPORT_SHARE_MIN * hits[0]["normalized_score"]
    found = []
    for place, memory in enumerate(hits):
        if memory["normalized_score"] < floor or len(found) == quotes_max:
            break
        content = memory["content"]
        spans = _worth_a_look(content, terms)
        start, end = max(
            (
                span
                for span in spans
                if can_answer(wanted, content[slice(*span)])
                and not _only_asks(content[slice(*span)], terms)
            ),
            key=lambda span, of=content: _fitness(of[span[0] : span[1]], terms, wanted),
            default=(0, 0),
        )
        if end > start and not _is_outdated(memory, start, end):
            found.append(Quote(place, start, end, content[start:end]))
    return found


def _only_asks(sentence: str, terms: frozenset[str]) -> bool:
    """Whether it is a question, and brings no word that the terms of the one asked have not."""
    asks = sentence.rstrip("\"'”’»)] \t").endswith(_QUESTION_MARKS)
    return asks and terms.issuperset(query_terms(sentence))


def _is_outdated(memory: Mapping[str, Any], start: int, end: int) -> bool:
    """Whether something between these code points of a result has been superseded."""
    return any(each["start"] < end and start < each["end"] for each in memory.get("outdated") or ())


def _worth_a_look(content: str, terms: frozenset[str]) -> list[tuple[int, int]]:
    """The sentences of a memory; of a long one the SENTENCES_MAX in which most terms have a word
    that begins as they do.
    """
    spans = list(_sentences(content))
    if len(spans) <= SENTENCES_MAX:
        return spans
    text, beginnings = content.casefold(), {term[:BEGINNING_CHARS] for term in terms}
    if len(text) == len(content):  # else the spans are not those of the folded text
        shared = [-sum(each in text[start:end] for each in beginnings) for start, end in spans]
        spans = [spans[place] for place in np.argsort(shared, kind="stable").tolist()]
    return spans[:SENTENCES_MAX]


def verify(quote: str, content: str, place: int) -> Quote | None:
    """Where the memory says this, the memory's own characters; None when it does not.

    Models straighten quotation marks and fold white space, so those may differ; letters and their
    case may not.
    """
    if len(quote) > VERIFIED_CHARS_MAX:
        return None
    wanted = _SPACE.sub(" ", quote.translate(_CURLY)).strip().strip("\"'")
    text = content.translate(_CURLY)  # which keeps every code point in its place
    at = _SPACE.sub(" ", text).find(wanted) if wanted else -1
    if at == -1:
        return None
    start, end = _unfolded(text, at), _unfolded(text, at + len(wanted))
    return Quote(place, start, end, content[start:end])


def _unfolded(text: str, place: int) -> int:
    """The place in a text of this place in the same text with every run of white space folded into
    one space.
    """
    for run in _SPACE.finditer(text):
        if run.start() >= place:
            break
        place += run.end() - run.start() - 1
    return place


def is_supported(claim: str, question: str, evidence: str) -> bool:
    """Whether a sentence says something that the evidence bears out: one of its terms that the
    question did not bring along.

    A claim with a number is let pass, since dates and sums are worked out ("yesterday"); so is one
    without terms of its own ("yes").
    """
    if any(char.isdigit() for char in claim):
        return True
    own = frozenset(query_terms(claim)) - frozenset(query_terms(question)) - _SAYS_NOTHING
    return not own or not own.isdisjoint(analyze(evidence))


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in _sentences(text)]


def _fitness(sentence: str, terms: frozenset[str], wanted: Kind) -> tuple[float, int]:
    """How well a sentence answers; ties go to the longer one."""
    shared = len(frozenset(analyze(sentence)) & terms)
    asks = sentence.rstrip().endswith("?")
    return shared + 0.8 * shows(wanted, sentence) - 0.5 * asks, min(len(sentence), 120)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of code points. A long sentence is cut at white space, so that no quote grows without
    end.
    """
    for match in _SENTENCE.finditer(text):
        start, end = match.start(), match.end()
        while end - start > SENTENCE_CHARS_MAX:
            cut = text.rfind(" ", start + 1, start + SENTENCE_CHARS_MAX)
            cut = start + SENTENCE_CHARS_MAX if cut == -1 else cut
            yield start, cut
            start = cut + 1 if text[cut : cut + 1].isspace() else cut
        if end > start:
            yield start, end
