"""What a text costs with other embedding models: python loadtests/checkpoints.py [--only NAME …]
[--device cuda]

Writes checkpoints with random weights of the sizes that well-known models have, runs each as
`embedder.model_path` does, and times it as `mneme bench` times the model: the cost hangs on the
sizes and not on the weights. All read with the built-in model's tokenizer, so that all get the same
tokens; a multilingual one makes some more of a text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.cli.bench import machine, model_cost
from runtime.inference import packaged_files
from serve_app import LOCAL_PROFILE, Settings

VOCABULARY, POSITIONS, BUCKETS = 30_522, 512, 32
BUILT_IN = "built in"


@dataclass(frozen=True)
class Size:
    """An architecture of the BERT family."""

    kind: str
    layers: int
    width: int
    heads: int

    @property
    def inner(self) -> int:
        return 4 * self.width


SIZES = {
    "12 layers of 384": Size("bert", 12, 384, 12),
    "12 layers of 768": Size("bert", 12, 768, 12),
    "12 layers of 768, MPNet": Size("mpnet", 12, 768, 12),
    "24 layers of 1,024": Size("bert", 24, 1_024, 16),
}


def save(folder: Path, size: Size) -> None:
    """Write a checkpoint of this size with random weights."""
    folder.mkdir(parents=True)
    save_file(dict(_weights(size)), folder / "model.safetensors")
    shutil.copy(packaged_files() / "tokenizer.json", folder)
    config = {
        "model_type": size.kind,
        "hidden_size": size.width,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.inner,
        "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS + 2,
        "vocab_size": VOCABULARY,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 0,
        "relative_attention_num_buckets": BUCKETS,
    }
    (folder / "config.json").write_text(json.dumps(config))


def _weights(size: Size) -> Iterator[tuple[str, np.ndarray]]:
    """Name in the file -> values."""
    draw = np.random.default_rng(0)

    def table(rows: int, columns: int) -> np.ndarray:
        return draw.standard_normal((rows, columns), np.float32) * np.float32(columns**-0.5)

    def dense(name: str, outputs: int, inputs: int) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{name}.weight", table(outputs, inputs)
        yield f"{name}.bias", np.zeros(outputs, np.float32)

    def norm(name: str) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{name}.weight", np.ones(size.width, np.float32)
        yield f"{name}.bias", np.zeros(size.width, np.float32)

    is_mpnet = size.kind == "mpnet"
    yield "embeddings.word_embeddings.weight", table(VOCABULARY, size.width)
    yield "embeddings.position_embeddings.weight", table(POSITIONS + 2, size.width)
    if is_mpnet:
        yield "encoder.relative_attention_bias.weight", table(BUCKETS, size.heads)
    else:
        yield "embeddings.token_type_embeddings.weight", table(2, size.width)
    yield from norm("embeddings.LayerNorm")
    attention = ("attn.q", "attn.k", "attn.v", "attn.o", "LayerNorm")
    if not is_mpnet:
        attention = ("self.query", "self.key", "self.value", "output.dense", "output.LayerNorm")
    for layer in range(size.layers):
        at = f"encoder.layer.{layer}"
        for part in attention[:4]:
            yield from dense(f"{at}.attention.{part}", size.width, size.width)
        yield from norm(f"{at}.attention.{attention[4]}")
        yield from dense(f"{at}.intermediate.dense", size.inner, size.width)
        yield from dense(f"{at}.output.dense", size.width, size.inner)
        yield from norm(f"{at}.output.LayerNorm")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=(BUILT_IN, *SIZES), metavar="NAME")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    here = machine()
    print(f"{here['processor']}, {here['cores']} cores, load before {here['load_before']}")
    for name in options.only or (BUILT_IN, *SIZES):
        with tempfile.TemporaryDirectory(prefix="mneme-checkpoint-") as directory:
            changed = {}
            if name != BUILT_IN:
                save(Path(directory) / "model", SIZES[name])
                changed = {"embedder.model_path": str(Path(directory) / "model")}
            changed["embedder.timeout_seconds"] = 600
            changed["embedder.device"] = options.device
            told = model_cost(Settings.load(LOCAL_PROFILE, changed))
        print(name, flush=True)
        for text, cost in told.items():
            print(f"    {text:24} {cost['alone_ms']:8.2f} ms, of 32 {cost['of_32_ms']:8.2f} ms")


if __name__ == "__main__":
    main()
