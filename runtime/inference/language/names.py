"""Names in languages that no heads read: Chinese, Japanese and Korean, by the taggers of others,
each with a dictionary of its own (the extra `languages`). Without them no names are found there.

A tagger is loaded with the first text of its script, which takes about a second, and then stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import regex

from runtime.extras import LANGUAGES

_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_HANGUL = regex.compile(r"\p{Hangul}")
_HAN = regex.compile(r"\p{Han}")
_NAME_CHARS_MIN = 2  # a single character is a word of any kind more often than a name
_LOCK = threading.Lock()  # a tagger serves one caller at a time


class Name(NamedTuple):
    """A proper name: code points start to end, end exclusive, and what it is a name of: person,
    place, organization, or "" where nobody knows.
    """

    start: int
    end: int
    kind: str


_Find = Callable[[str], Iterator[Name]]


def names(text: str) -> list[Name]:
    """The names in a text, in order; none where the taggers are not installed."""
    load = _loader_of(text)
    if load is None or LANGUAGES.is_missing:
        return []
    with _LOCK:
        return [name for name in load()(text) if name.end - name.start >= _NAME_CHARS_MIN]


def _loader_of(text: str) -> Callable[[], _Find] | None:
    if text.isascii():
        return None
    if _KANA.search(text):
        return _japanese
    if _HANGUL.search(text):
        return _korean
    return _chinese if _HAN.search(text) else None


@cache
def _chinese() -> _Find:
    import jieba
    import jieba.posseg

    words = jieba.Tokenizer()
    # What it would else do itself, and keep in a file that anybody may write.
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    tagger = jieba.posseg.POSTokenizer(words)
    kinds = {"nr": "person", "nrt": "person", "nrfg": "person", "ns": "place", "nt": "organization"}

    def find(text: str) -> Iterator[Name]:
        at = 0
        for pair in tagger.cut(text):
            end = at + len(pair.word)
            if pair.flag in kinds:
                yield Name(at, end, kinds[pair.flag])
            at = end

    return find


@cache
def _japanese() -> _Find:
    import fugashi

    tagger = fugashi.Tagger()  # pyright: ignore[reportAttributeAccessIssue]
    kinds = {"人名": "person", "地名": "place"}

    def find(text: str) -> Iterator[Name]:
        at, held = 0, None
        for word in tagger(text):
            start = text.index(word.surface, at)
            at = start + len(word.surface)
            features = word.feature
            kind = kinds.get(features.pos3, "") if features.pos2 == "固有名詞" else None
            if held is not None and kind == held.kind == "person" and held.end == start:
                held = held._replace(end=at)  # family name and given name
                continue
            if held is not None:
                yield held
            held = None if kind is None else Name(start, at, kind)
        if held is not None:
            yield held

    return find


@cache
def _korean() -> _Find:
    import kiwipiepy

    tagger: Any = kiwipiepy.Kiwi()

    def find(text: str) -> Iterator[Name]:
        for token in tagger.tokenize(text):
            if token.tag == "NNP":
                yield Name(token.start, token.start + token.len, "")

    return find
