"""The embedding model by PyTorch: on a GPU in half precision where there is one, else on the
processor. `make test-gpu` alone runs these, since PyTorch is no part of a service.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from runtime.inference import packaged_files
from runtime.inference.checkpoint import CheckpointModel, read_checkpoint
from runtime.inference.checkpoint.model import read_weights
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.onnx import ARCHITECTURE, GraphMiniLm
from runtime.inference.minilm.weights import INNER_LAYERS, WIDTH, checked_weights
from runtime.inference.torch_encoder import TorchEncoder
from runtime.limits import EMBEDDER_GPU_RUN_TOKENS_MAX
from tests.support import ROOT
from tests.support.checkpoints import TEXTS, reference, save_checkpoint
from tests.support.served import served

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NEAR = 0.9999  # cosine of half precision with the float arithmetic
AS_INT8 = 0.98  # of the int8 model with it, at the least; on average .997
SENTENCES = [
    "My dentist is Dr. Okafor.",
    "We adopted a beagle named Biscuit last spring, and he sleeps on the couch.",
    "no",
    "The lease ends in May. " * 30,
]


@pytest.fixture(scope="module")
def on_torch() -> GraphMiniLm:
    weights = checked_weights(packaged_files() / "model.safetensors")
    return GraphMiniLm(TorchEncoder(ARCHITECTURE, weights, DEVICE))


@pytest.fixture(scope="module")
def on_processor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniLm]:
    yield MiniLm.load(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "mpnet"])
def test_each_architecture_gives_the_vectors_of_its_formulas(
    tmp_path: Path, kind: str, pooling: str
) -> None:
    weights = save_checkpoint(tmp_path / "model", kind, pooling=pooling)
    checkpoint = read_checkpoint(tmp_path / "model")
    encode = CheckpointModel.load(checkpoint, tmp_path / "graphs").encode
    encoder = TorchEncoder(checkpoint.architecture, read_weights(checkpoint), DEVICE)
    ids = [text.ids for text in encode(TEXTS)]
    found, states = encoder.run(ids)
    expected = np.array([reference(kind, weights, text, pooling) for text in ids])
    assert (found * expected).sum(1).min() > NEAR
    assert [each.shape for each in states] == [(len(text), checkpoint.width) for text in ids]


def test_it_shows_the_layers_that_the_processors_model_shows(
    on_torch: GraphMiniLm, on_processor: MiniLm
) -> None:
    ids = [text.ids for text in on_processor.encode(SENTENCES)]
    vectors, layers = on_torch.run(ids, inner=True)
    expected, shown = on_processor.network.run(ids, inner=True)
    assert (vectors * expected).sum(1).min() > AS_INT8
    for found, wanted in zip(layers, shown, strict=True):
        assert found.shape == wanted.shape and len(found) == len(INNER_LAYERS) + 1
        cosines = (found * wanted).sum(-1) / (
            np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted, axis=-1)
        )
        assert np.median(cosines) > AS_INT8
    unseen, without_last = on_torch.run(ids, inner=True, last=False)
    assert unseen.shape == (len(ids), 0)
    np.testing.assert_array_equal(without_last[0], layers[0][:-1])


def test_a_text_has_the_same_vector_in_any_company(
    on_torch: GraphMiniLm, on_processor: MiniLm
) -> None:
    ids = [text.ids for text in on_processor.encode(SENTENCES)]
    together = on_torch.run(ids)[0]
    alone = np.concatenate([on_torch.run([text])[0] for text in ids])
    assert together.shape == (len(ids), WIDTH)
    assert (together * alone).sum(1).min() > NEAR


def test_a_run_that_is_too_large_is_made_in_parts(
    on_torch: GraphMiniLm, on_processor: MiniLm
) -> None:
    long = on_processor.encode(["river " * 300])[0].ids
    count = EMBEDDER_GPU_RUN_TOKENS_MAX // len(long) + 1
    pauses: list[int] = []
    vectors, layers = on_torch.run([long] * count, pause=lambda: pauses.append(1))
    assert len(pauses) == 1 and len(vectors) == len(layers) == count
    assert (vectors @ vectors[0]).min() > NEAR


def test_without_a_gpu_it_says_so() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "from runtime.inference import gpu_name; gpu_name()"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ModelUnusable: embedder.device is cuda, and PyTorch" in said.stderr
    assert "finds no GPU" in said.stderr


@pytest.mark.parametrize("processes", [0, 1])
def test_a_service_searches_by_its_vectors(tmp_path: Path, processes: int) -> None:
    engine = "ray" if processes else "local"
    chosen = {"embedder__device": DEVICE, "embedder__processes": processes}
    with served(tmp_path / "data", engine, **chosen) as service:
        service.http.headers["Authorization"] = f"Bearer {service.register()}"
        for content in ("I am afraid of spiders.", "The lease ends in May."):
            assert service.http.post("/v1/memories", json={"content": content}).status_code == 201
        found = service.http.post("/v1/search", json={"query": "arachnophobia"}).json()
        assert not found["degraded"]
        assert found["results"][0]["content"] == "I am afraid of spiders."
