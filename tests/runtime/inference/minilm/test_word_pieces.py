"""A text's tokens are those that the library itself makes of it, however they are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

from runtime.inference.minilm.weights import packaged_files
from runtime.inference.minilm.word_pieces import WordPieces, open_tokenizer
from runtime.limits import (
    EMBEDDED_TOKENS_MAX,
    WORDS_REMEMBERED_MAX,
    WORDWISE_CHARS_MAX,
)
from storage.text.analysis import CACHED_CHARS_MAX

PIECES = WordPieces.open()
LIBRARY = open_tokenizer(packaged_files() / "tokenizer.json")

PLAIN = "the Okafor's beagle unbelievably e-mail 3.14 12:30 _ ## ##ing ' ’ “ — – … ]"
MARKS = "[CLS] [MASK] [UNK] ["
BLANK = ["\t", "\n", "\r", "\u00a0", "\u200b", "\u2028", "\ufeff", "\x85"]
CONTROL = ["\x00", "\x0b", "\x1c", "\x7f"]
FOREIGN = "ſ ß İ é e\u0301 Ünï 北京 नमस्ते 🙂 \ud7a3 ﬁ ² ½ ǅ"

fragments = st.one_of(
    st.sampled_from([*PLAIN.split(), *MARKS.split(), *BLANK, *CONTROL, *FOREIGN.split()]),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=6),
    st.text(alphabet="abcXYZ019 .,'-_[]\t\n’", max_size=12),
)
texts = st.lists(st.tuples(fragments, st.sampled_from(["", " ", "  ", "\n"])), max_size=30).map(
    lambda parts: "".join(part + gap for part, gap in parts)
)


def same_as_the_library(text: str) -> None:
    expected = LIBRARY.encode(text)
    for _ in range(2):  # once of words that may be new, once of known ones
        (found,) = PIECES.encode([text])
        assert found.ids == expected.ids
        assert [tuple(place) for place in found.offsets] == expected.offsets[1:-1]
        assert PIECES.pieces(text) == len(expected.ids) - 2


@given(texts)
def test_tokens_are_the_librarys(text: str) -> None:
    same_as_the_library(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "a " * (EMBEDDED_TOKENS_MAX - 3) + "a",
        "a " * (EMBEDDED_TOKENS_MAX - 2) + "a",
        "a " * EMBEDDED_TOKENS_MAX,
        "x" * 100,
        "x" * 101,
        "q" * CACHED_CHARS_MAX + " " + "q" * (CACHED_CHARS_MAX + 1),
        "w" * (WORDWISE_CHARS_MAX + 1),
        "!" * 500,
    ],
)
def test_at_every_limit(text: str) -> None:
    same_as_the_library(text)


def test_more_words_than_are_remembered() -> None:
    pieces = WordPieces.open()
    for first in range(0, WORDS_REMEMBERED_MAX + 200, 100):
        text = " ".join(f"w{number:x}" for number in range(first, first + 100))
        assert pieces.encode([text])[0].ids == LIBRARY.encode(text).ids


def test_a_tokenizer_that_reads_otherwise_is_asked_itself() -> None:
    other = open_tokenizer(packaged_files() / "tokenizer.json")
    other.normalizer = normalizers.BertNormalizer(lowercase=False)
    text = "Maya met Dr. Okafor in Graz"
    (found,) = WordPieces(other).encode([text])
    assert found.ids == other.encode(text).ids != LIBRARY.encode(text).ids
