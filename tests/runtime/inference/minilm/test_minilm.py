"""The model in int8 against its mathematics in float32, in each way that this processor can run
it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models

from runtime.inference import ModelUnusable, minilm, packaged_files
from runtime.inference.bert_graph import weight_bits_here
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.onnx import GraphMiniLm
from runtime.inference.minilm.weights import WIDTH
from runtime.limits import EMBEDDED_TOKENS_MAX
from storage.indexes import byte_products

NETWORKS = {"graph": None} | ({"compiled": byte_products()} if byte_products() else {})
TEXTS = [
    "Mara went hiking up the ridge last weekend with her cousin.",
    "Tobias finally finished painting the kitchen in that pale green.",
    "I got the offer from the observatory and I start in March!",
    "The kids were so excited about the science fair on Friday.",
    "We booked the train tickets to Lisbon for the second week of June.",
    "My knee has been hurting since the half marathon.",
    "Do you still play the cello in that quartet?",
    "ok",
    "Invoice 2024-0193 was paid on 3 May; the reference is XK-77-B.",
    "日本語の文章も一つ入れておきます。",
    "def mean(values): return sum(values) / len(values)",
    "Thanks so much for the book recommendation, I read it in two evenings and then started again "
    "from the first page.",
]


@pytest.fixture(scope="module", params=NETWORKS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MiniLm:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minilm, "byte_products", lambda: NETWORKS[request.param])
        return MiniLm.load(tmp_path_factory.mktemp("models"))


class Reference:
    """BERT in float32 NumPy, one text at a time, written from the architecture and not from the
    graph.
    """

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = weights

    def embed(self, ids: list[int]) -> np.ndarray:
        w = self.weights
        x = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: len(ids)]
        )
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(6):
            name = f"encoder.layer.{layer}"
            x = self.norm(
                x
                + self.dense(
                    self.attend(x, f"{name}.attention.self"), f"{name}.attention.output.dense"
                ),
                f"{name}.attention.output.LayerNorm",
            )
            inner = self.dense(x, f"{name}.intermediate.dense")
            inner = (
                inner
                * 0.5
                * (1 + np.frompyfunc(math.erf, 1, 1)(inner / math.sqrt(2)).astype(np.float32))
            )
            x = self.norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def dense(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred
            / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
            * self.weights[name + ".weight"]
            + self.weights[name + ".bias"]
        )

    def attend(self, x: np.ndarray, name: str) -> np.ndarray:
        query, key, value = (
            self.dense(x, f"{name}.{part}").reshape(len(x), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(32)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ value).transpose(1, 0, 2).reshape(len(x), 384)


@pytest.fixture(scope="module")
def expected(model: MiniLm) -> np.ndarray:
    reference = Reference(load_file(packaged_files() / "model.safetensors"))
    return np.stack([reference.embed(text.ids) for text in model.encode(TEXTS)])


def test_vectors_are_those_of_the_float_model(model: MiniLm, expected: np.ndarray) -> None:
    vectors = model.embed(model.encode(TEXTS))
    cosines = (vectors * expected).sum(axis=1)
    # The graph's weights have seven bits where the processor adds products in sixteen.
    is_coarse = isinstance(model.network, GraphMiniLm) and weight_bits_here() < 8
    usual, least = (0.994, 0.98) if is_coarse else (0.995, 0.985)
    assert cosines.mean() > usual and cosines.min() > least


def test_vectors_are_unit_rows(model: MiniLm) -> None:
    vectors = model.embed(model.encode(TEXTS))
    assert vectors.shape == (len(TEXTS), WIDTH) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_in_any_company(model: MiniLm) -> None:
    rows = model.encode(TEXTS)
    together = model.embed(rows)
    alone = np.concatenate([model.embed([row]) for row in rows])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert (together * alone).sum(axis=1).min() > 0.99999


def test_meaning_shows(model: MiniLm) -> None:
    question, answer, other = model.embed(
        model.encode(
            [
                "Where does she work?",
                "Her job is at the observatory in Granada.",
                "The soup needs more salt and a little lemon.",
            ]
        )
    )
    assert question @ answer > question @ other + 0.2


def test_reading_gives_the_same_vector_and_one_state_per_token(model: MiniLm) -> None:
    texts = model.encode(TEXTS)
    vectors, states = model.embed_with_states(texts)
    np.testing.assert_allclose(vectors, model.embed(texts), atol=1e-6)
    for text, found in zip(texts, states, strict=True):
        assert found.shape == (len(text.offsets), WIDTH) and len(text.ids) == len(text.offsets) + 2


def test_long_texts_are_read_to_their_limit(model: MiniLm) -> None:
    short, longer = "river " * (EMBEDDED_TOKENS_MAX - 2), "river " * 2_000
    rows = model.encode([short, longer, ""])
    assert [len(row.ids) for row in rows] == [EMBEDDED_TOKENS_MAX, EMBEDDED_TOKENS_MAX, 2]
    assert rows[0][:2] == rows[1][:2]
    assert np.isfinite(model.embed(rows)).all()


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json is missing"):
        MiniLm.load(tmp_path, tmp_path)
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelUnusable, match="belongs to another model"):
        MiniLm.load(tmp_path, tmp_path)


def test_each_processor_gets_what_it_can_run(model: MiniLm, request: pytest.FixtureRequest) -> None:
    named = {"graph": "GraphMiniLm", "compiled": "CompiledMiniLm"}
    assert type(model.network).__name__ == named[request.node.callspec.params["model"]]
