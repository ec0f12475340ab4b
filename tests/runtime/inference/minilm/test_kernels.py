"""The compiled model against the graph, at each number of tokens that its tiles and blocks treat
differently.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from runtime.inference import packaged_files
from runtime.inference.bert_graph import weight_bits_here
from runtime.inference.local_embedder import Pause
from runtime.inference.minilm import MiniLm, kernels
from runtime.inference.minilm.kernels import BLOCK_ROWS, TILE_ROWS, CompiledMiniLm, packed
from runtime.inference.minilm.onnx import GraphMiniLm
from runtime.inference.minilm.weights import kept

LENGTHS = [
    *range(2, 2 * TILE_ROWS + 2),
    31,
    32,
    33,
    64,
    BLOCK_ROWS - 1,
    BLOCK_ROWS,
    BLOCK_ROWS + 1,
    256,
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def compiled(directory: Path) -> CompiledMiniLm:
    return CompiledMiniLm.open(kept(directory / "packed", packaged_files(), packed), 1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    """Token ids of texts of every length above, each about other words."""
    words = Path(kernels.__file__).read_text().split()
    encode = MiniLm.load(tmp_path_factory.mktemp("tokenizer")).encode
    return [
        [*encode([" ".join(words[length : length + 300])])[0].ids[: length - 1], 102]
        for length in LENGTHS
    ]


def test_it_computes_what_the_graph_computes(
    directory: Path, compiled: CompiledMiniLm, texts: list[list[int]]
) -> None:
    graph = GraphMiniLm.load(directory, packaged_files(), 1)
    # A number that rounds the other way at one layer moves those of the next, so they agree in
    # direction, not in each digit; less so where the graph's weights have seven bits.
    least, usual = (0.995, 0.999) if weight_bits_here() == 8 else (0.96, 0.99)
    cosines = []
    for ids in texts:
        vectors, (layers,) = compiled.run([ids], inner=True)
        expected, (expected_layers,) = graph.run([ids], inner=True)
        cosines.append((vectors @ expected.T).item())
        tokens = (
            (layers * expected_layers).sum(axis=2)
            / np.linalg.norm(layers, axis=2)
            / np.linalg.norm(expected_layers, axis=2)
        )
        assert layers.shape == (3, len(ids), 384), len(ids)
        assert cosines[-1] > least and tokens.mean() > 0.99, len(ids)
    assert np.mean(cosines) > usual


def test_texts_of_any_length_share_a_run(compiled: CompiledMiniLm, texts: list[list[int]]) -> None:
    together, states = compiled.run(texts)
    for ids, vector, state in zip(texts, together, states, strict=True):
        (alone,), (alone_state,) = compiled.run([ids])
        np.testing.assert_array_equal(vector, alone)
        np.testing.assert_array_equal(state, alone_state)


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads_share_texts_and_change_nothing(
    directory: Path, compiled: CompiledMiniLm, texts: list[list[int]], threads: int
) -> None:
    several = CompiledMiniLm.open(directory / "packed", threads)
    one = CompiledMiniLm.open(directory / "packed", 1, threads)
    paused: list[int] = []
    shared = [Pause(lambda: paused.append(1), share) for share in (1, threads)]
    shared.append(Pause(threads=threads))
    runs = [several.run, *(partial(one.run, pause=pause) for pause in shared)]
    for some, run in itertools.product((texts, texts[:1], texts[:2], texts[:3]), runs):
        vectors, states = run(some)
        expected, expected_states = compiled.run(some)
        np.testing.assert_array_equal(vectors, expected)
        for state, expected_state in zip(states, expected_states, strict=True):
            np.testing.assert_array_equal(state, expected_state)
    assert paused, "whoever waits is let in between"


def test_threads_that_never_come_are_not_waited_for(
    directory: Path, compiled: CompiledMiniLm, texts: list[list[int]]
) -> None:
    """One thread is there for as many as are asked for, and comes when others are through."""
    alone = CompiledMiniLm.open(directory / "packed", 1, 2)
    for _ in range(20):
        for some in (texts[10:11], texts[:3]):
            np.testing.assert_array_equal(
                alone.run(some, pause=Pause(threads=9))[0], compiled.run(some)[0]
            )


ELSEWHERE = {
    "AVX-512 VNNI": {
        "NUMBA_CPU_NAME": "icelake-server",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,"
        "+bmi,+bmi2,+lzcnt,+movbe,+popcnt,+sse4.2",
    },
    "AVX-VNNI": {
        "NUMBA_CPU_NAME": "alderlake",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+avxvnni,+bmi,+bmi2,+lzcnt,+movbe,+popcnt,+sse4.2",
    },
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+popcnt,+sse4.2",
    },
}
RUN = """
import sys
from pathlib import Path
import numpy as np
from runtime.inference.minilm.kernels import CompiledMiniLm
from storage.indexes import byte_products

texts = [list(map(int, line.split())) for line in sys.stdin]
print(byte_products())
np.save(sys.argv[2], CompiledMiniLm.open(Path(sys.argv[1]), 1).run(texts)[0])
"""


def test_each_set_of_instructions_computes_the_same_to_the_bit(
    directory: Path, compiled: CompiledMiniLm, texts: list[list[int]], tmp_path: Path
) -> None:
    """As does what was compiled just now, and what was loaded."""
    expected = compiled.run(texts)[0]
    told = "\n".join(" ".join(map(str, ids)) for ids in texts)
    has = {name for name, there in binding.get_host_cpu_features().items() if there}
    for name, environment in ELSEWHERE.items():
        if not has >= {each[1:] for each in environment["NUMBA_CPU_FEATURES"].split(",")}:
            continue  # this machine cannot run it
        for turn in ("compiled", "loaded"):
            found = subprocess.run(
                [sys.executable, "-c", RUN, directory / "packed", tmp_path / f"{turn}.npy"],
                input=told, capture_output=True, text=True, timeout=120, check=True,
                env={**os.environ, **environment, "NUMBA_CACHE_DIR": str(tmp_path / name)},
            )  # fmt: skip
            assert found.stdout.strip() == name
            np.testing.assert_array_equal(np.load(tmp_path / f"{turn}.npy"), expected)


def test_gelu_is_that_of_the_error_function() -> None:
    x = np.linspace(-12, 12, kernels.INNER, dtype=np.float32)[None]
    expected = [value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x[0].astype(float)]
    kernels.gelu(x)
    np.testing.assert_allclose(x[0], expected, atol=2e-6)


def test_softmax_is_that_of_the_exponential() -> None:
    scores = np.concatenate([np.linspace(-90, 3, 40), np.full(24, 50.0)]).astype(np.float32)
    expected = np.exp(scores[:40].astype(float) - 3)
    kernels.softmax(scores, 40)
    np.testing.assert_allclose(scores[:40], expected / expected.sum(), rtol=2e-5, atol=1e-30)
    assert not scores[40:].any()  # not of the forty
