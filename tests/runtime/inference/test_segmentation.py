"""Sentences and words of texts as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.inference import language

CASES = {
    "Dr. Okafor. She's here at 5pm!": "Dr. Okafor . | She 's here at 5 pm !",
    "ok. sure thing :) See you": "ok . | sure thing :) | See you",
    "i dont know... maybe later": "i do nt know ... maybe later",
    "Don't! I cannot.": "Do n't ! | I can not .",
    "list:\n- milk\n- eggs": "list : | - milk | - eggs",
    "1. Buy it. 2. Eat it.": "1 . Buy it . | 2 . Eat it .",
    "Ask anna@b.org, or www.foo.com. Now.": "Ask anna@b.org , or www.foo.com . | Now .",
    '"What?" he said.': '" What ? " he said .',
    "U.S. troops left the U.S. They did.": "U.S. troops left the U.S. | They did .",
    "Really?! yes": "Really ?! | yes",
    "at 10:30 a.m. on Friday etc. and more": "at 10:30 a.m. on Friday etc. and more",
    "a well-known e-mail": "a well - known e-mail",
    "James' dog's bowl": "James ' dog 's bowl",
    "no marks at all\nbut two lines": "no marks at all | but two lines",
}
PIECES = st.sampled_from(
    [
        *"aA7 \n\t.!?…-_/'\"“([<{%@:=中é#*^~😂\u200d\ufe0f\ud83d",
        "n't",
        "Dr. ",
        "http://",
        ":)",
        "st",
    ]
)


@pytest.mark.parametrize("text", CASES)
def test_sentences_and_words(text: str) -> None:
    found = [
        " ".join(text[start:end] for start, end in sentence.words)
        for sentence in language.read_sentences(text)
    ]
    assert " | ".join(found) == CASES[text]


@given(st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_words_have_every_character_but_white_space(text: str) -> None:
    sentences = language.read_sentences(text)
    words = [word for sentence in sentences for word in sentence.words]
    at = 0
    for start, end in words:
        assert at <= start < end and not text[at:start].strip()
        at = end
    assert not text[at:].strip()
    assert all(
        (each.start, each.end) == (each.words[0][0], each.words[-1][1])
        and len(each.words) <= language.SENTENCE_TOKENS_MAX
        for each in sentences
    )


def test_a_long_text_is_cut_into_sentences_of_bounded_length() -> None:
    words = sum(len(each.words) for each in language.read_sentences("word " * 20_000))
    assert words == 20_000


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("My sister moved to Oslo.", True),
        ("My brother Tom lives in Kiel.", True),
        ("Gates C & D, J. T. Moore", True),
        ("Ich wohne in Kiel und arbeite bei der Post.", False),
        ("ok", True),
        ("", False),
        ("12:30 ... 😂", False),
        ("Моя сестра переехала в Осло.", False),
        ("Meine Schwester ist nach Oslo gezogen, weil sie dort eine Arbeit hat.", False),
    ],
)
def test_what_is_readable(text: str, read: bool) -> None:
    assert language.readable(text) is read
