"""What the model takes texts apart with: the word pieces that stand in its vocabulary.

The library that does it reads a text character by character, several times over. Most texts are
plain: letters, digits, signs and spaces, of which every run of letters and digits, and every sign,
is taken apart by itself. Those are put together from the pieces of words met before, in an eighth
of the time; the pieces of a word are the library's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from runtime.inference.local_embedder import Tokens, tokens_of
from runtime.inference.minilm.weights import VOCABULARY, ModelUnusable, packaged_files
from runtime.limits import (
    EMBEDDED_TOKENS_MAX,
    WORDS_REMEMBERED_MAX,
    WORDWISE_CHARS_MAX,
)
from storage.text import is_remembered

# Without control characters, which the library takes out of words, and without the bracket that its
# own marks begin with.
_PLAIN = re.compile("[\t\n\r -Z\\\\-~‘’“”–—…]*")
_WORDS = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z\s]")
_WORDWISE_NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
_WORDWISE_SPLITTER = {"type": "BertPreTokenizer"}


class _Pieces(NamedTuple):
    """Of a word: the ids of its pieces, and where each stands in it."""

    ids: tuple[int, ...]
    places: tuple[tuple[int, int], ...]


class _Words(dict[str, _Pieces]):
    """Words met before. It empties itself when full: a fresh start costs less than keeping an order
    of use.
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> _Pieces:
        found = self._tokenizer.encode(word)
        pieces = _Pieces(tuple(found.ids[1:-1]), tuple(found.offsets[1:-1]))
        if is_remembered(word):
            if len(self) >= WORDS_REMEMBERED_MAX:
                self.clear()
            self[word] = pieces
        return pieces


class WordPieces:
    """What the model takes texts apart with. Calls block and may come from any thread."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._words = _Words(tokenizer) if _reads_wordwise(tokenizer) else None
        nothing = tokenizer.encode("").ids
        self._before, self._after = nothing[:1], nothing[1:]

    @classmethod
    def open(cls, model_path: Path | None = None) -> WordPieces:
        """model_path: as MiniLm.load. Raises ModelUnusable."""
        return cls(open_tokenizer((model_path or packaged_files()) / "tokenizer.json"))

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """The texts' tokens, at most EMBEDDED_TOKENS_MAX each; the rest of a longer text is left
        out.
        """
        return [self._tokens(text) for text in texts]

    def pieces(self, text: str) -> int:
        """How many tokens a text is, [CLS] and [SEP] left out; EMBEDDED_TOKENS_MAX - 2 at most."""
        return len(self._tokens(text).ids) - 2

    def vocabulary(self) -> dict[str, int]:
        """Word piece -> token id."""
        return self._tokenizer.get_vocab()

    def _tokens(self, text: str) -> Tokens:
        words = self._words
        if words is not None and len(text) <= WORDWISE_CHARS_MAX and _PLAIN.fullmatch(text):
            ids, places = self._before.copy(), list[tuple[int, int]]()
            for match in _WORDS.finditer(text):
                pieces = words[match[0]]
                ids += pieces.ids
                if len(pieces.ids) == 1:
                    places.append(match.span())
                else:
                    at = match.start()
                    places += [(at + start, at + end) for start, end in pieces.places]
            ids += self._after
            if len(ids) <= EMBEDDED_TOKENS_MAX:
                return Tokens(ids, places, text)
        found = tokens_of(self._tokenizer, text)
        return Tokens(found.ids, found.offsets[1:-1], text)


def open_tokenizer(path: Path) -> Tokenizer:
    """The model's tokenizer in this file. Raises ModelUnusable."""
    if not path.is_file():
        raise ModelUnusable(f"{path} is missing; the model needs its tokenizer beside its weights.")
    tokenizer = Tokenizer.from_file(str(path))
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise ModelUnusable(
            f"{path} has {tokenizer.get_vocab_size()} tokens instead of {VOCABULARY}; it belongs "
            "to another model."
        )
    tokenizer.no_padding()  # the file pads every text to 128
    tokenizer.enable_truncation(EMBEDDED_TOKENS_MAX)
    return tokenizer


def _reads_wordwise(tokenizer: Tokenizer) -> bool:
    """Whether it takes every word and every sign of a plain text apart by itself."""
    marks = tokenizer.get_added_tokens_decoder().values()
    return (
        _described(tokenizer.normalizer) == _WORDWISE_NORMALIZER
        and _described(tokenizer.pre_tokenizer) == _WORDWISE_SPLITTER
        and all(mark.content.startswith("[") for mark in marks)
        and len(tokenizer.encode("").ids) == 2
    )


def _described(part: Any) -> Any:
    """A part of a tokenizer as its file has it. The whole as text is its vocabulary, too."""
    return None if part is None else json.loads(part.__getstate__())
