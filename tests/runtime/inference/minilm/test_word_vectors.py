"""Word vectors of the real model: aligned with the words asked for, and alike where meanings
are.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from runtime.inference.minilm import MiniLm
from runtime.inference.minilm import word_vectors as minilm_words
from runtime.inference.minilm.learn_words import plain_words
from runtime.inference.minilm.word_vectors import WORD_WIDTH, word_vectors


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> MiniLm:
    return MiniLm.load(tmp_path_factory.mktemp("model"))


def words_of(model: MiniLm, text: str) -> dict[str, np.ndarray]:
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    (tokens,) = model.encode([text])
    vectors = word_vectors(model.embed_with_states([tokens])[1][0], tokens.offsets, spans)
    assert vectors.shape == (len(spans), WORD_WIDTH) and vectors.dtype == np.int8
    return {
        text[start:end]: vector / np.float32(127)
        for (start, end), vector in zip(spans, vectors, strict=True)
    }


def test_words_are_unit_vectors(model: MiniLm) -> None:
    lengths = [
        np.linalg.norm(vector)
        for vector in words_of(model, "Unbelievably, Ines photographed the lighthouse").values()
    ]
    assert lengths == pytest.approx([1.0] * len(lengths), abs=0.03)


def test_context_tells_one_word_from_another(model: MiniLm) -> None:
    river = words_of(model, "We sat on the muddy bank of the river and fished")["bank"]
    shore = words_of(model, "The children played at the shore of the lake")["shore"]
    money = words_of(model, "She opened an account at the bank and asked for a loan")["bank"]
    assert river @ shore > money @ shore


def test_related_words_come_nearer_than_others(model: MiniLm) -> None:
    said = words_of(model, "My sister adopted a kitten last week")
    asked = words_of(model, "Which pet does her family have")["pet"]
    assert said["kitten"] @ asked > max(said["week"] @ asked, said["last"] @ asked)


def test_what_the_model_did_not_read_has_no_vector(model: MiniLm) -> None:
    text = "river " * 400 + "harbour"
    (tokens,) = model.encode([text])
    vectors = word_vectors(
        model.embed_with_states([tokens])[1][0], tokens.offsets, [(0, 5), (2_400, 2_407)]
    )
    assert vectors[0].any() and not vectors[1].any()


def test_no_words_are_no_rows(model: MiniLm) -> None:
    (tokens,) = model.encode([""])
    assert word_vectors(model.embed_with_states([tokens])[1][0], tokens.offsets, []).shape == (
        0,
        WORD_WIDTH,
    )


def test_the_shipped_directions_are_those_the_model_teaches(
    model: MiniLm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small sample spans nearly the same space; a file of another model would not."""
    monkeypatch.setattr(minilm_words, "VOCABULARY_WORDS", 3_000)
    _, learned = minilm_words.learn(
        plain_words(model.vocabulary()),
        lambda text: model.embed_with_states(model.encode([text]))[1][0],
    )
    _, shipped = minilm_words.directions()
    shared = np.linalg.norm(learned.T @ shipped) ** 2 / WORD_WIDTH
    assert shared > 0.7
    assert Path(minilm_words.FILE).stat().st_size < 100_000
