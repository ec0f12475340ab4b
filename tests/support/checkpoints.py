"""Checkpoints of the BERT family as sentence-transformers saves them: small, with random weights,
and of the architecture asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, LAYERS, HEADS, INNER, POSITIONS, BUCKETS = 64, 2, 4, 128, 48, 32
TEXTS = (
    "the lease ends in may",
    "anna",
    "bis zum sommer wohnt sie in graz",
    "вода и хлеб",
    "a text that is so long that its end is not read by a model which reads forty tokens of it",
)
LETTERS = "abcdefghijklmnopqrstuvwxyzäöüéабвгдежзийклмнопрстуфхцчшщъыьэюя0123456789"
MARKS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
    "xlm-roberta": ("<s>", "<pad>", "</s>", "<unk>"),
    "mpnet": ("<s>", "<pad>", "</s>", "[UNK]"),
}


def save_checkpoint(
    folder: Path,
    kind: str = "bert",
    *,
    seed: int = 1,
    pooling: str = "mean",
    prompts: dict[str, str] | None = None,
    max_seq_length: int = 40,
    words: Sequence[str] = (),
    readme: str = "",
) -> dict[str, np.ndarray]:
    """Write a checkpoint; -> its weights by BERT's names. words: what its vocabulary has whole,
    beside letters."""
    rng = np.random.default_rng(seed)
    vocabulary = _save_tokenizer(folder, kind, words)
    weights = random_weights(rng, kind, len(vocabulary))
    save_file({_saved_name(kind, name): each for name, each in weights.items()},
              folder / "model.safetensors")  # fmt: skip
    padding = vocabulary[MARKS[kind][1 if kind != "bert" else 0]]
    _write(folder / "config.json", {
        "model_type": kind, "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "vocab_size": len(vocabulary),
        "type_vocab_size": 2 if kind == "bert" else 1, "layer_norm_eps": 1e-5,
        "pad_token_id": padding, "relative_attention_num_buckets": BUCKETS,
    })  # fmt: skip
    names = ("Transformer", "Pooling", "Normalize")
    _write(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "",
         "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)
    ])  # fmt: skip
    (folder / "1_Pooling").mkdir()
    _write(folder / "1_Pooling/config.json", {
        "word_embedding_dimension": WIDTH,
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": pooling == "max",
    })  # fmt: skip
    _write(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length})
    if prompts is not None:
        _write(folder / "config_sentence_transformers.json", {"prompts": prompts})
    if readme:
        (folder / "README.md").write_text(readme)
    return weights


def random_weights(rng: np.random.Generator, kind: str, vocabulary: int) -> dict[str, np.ndarray]:
    """Tensors by BERT's names, of sizes at which each part of the model counts."""
    weights: dict[str, np.ndarray] = {}

    def dense(name: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"] = rng.normal(0, inputs**-0.5, (outputs, inputs))
        weights[f"{name}.bias"] = rng.normal(0, 0.1, outputs)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = rng.normal(1, 0.1, WIDTH)
        weights[f"{name}.bias"] = rng.normal(0, 0.1, WIDTH)

    weights["embeddings.word_embeddings.weight"] = rng.normal(0, 1, (vocabulary, WIDTH))
    weights["embeddings.position_embeddings.weight"] = rng.normal(0, 0.3, (POSITIONS, WIDTH))
    if kind == "mpnet":
        weights["encoder.relative_attention_bias.weight"] = rng.normal(0, 1, (BUCKETS, HEADS))
    else:
        types = 2 if kind == "bert" else 1
        weights["embeddings.token_type_embeddings.weight"] = rng.normal(0, 0.3, (types, WIDTH))
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{prefix}.attention.self.{part}", WIDTH, WIDTH)
        dense(f"{prefix}.attention.output.dense", WIDTH, WIDTH)
        norm(f"{prefix}.attention.output.LayerNorm")
        dense(f"{prefix}.intermediate.dense", INNER, WIDTH)
        dense(f"{prefix}.output.dense", WIDTH, INNER)
        norm(f"{prefix}.output.LayerNorm")
    return {name: each.astype(np.float32) for name, each in weights.items()}


def _saved_name(kind: str, name: str) -> str:
    if kind != "mpnet":
        return name
    for ours, theirs in (
        (".attention.self.query.", ".attention.attn.q."),
        (".attention.self.key.", ".attention.attn.k."),
        (".attention.self.value.", ".attention.attn.v."),
        (".attention.output.dense.", ".attention.attn.o."),
        (".attention.output.LayerNorm.", ".attention.LayerNorm."),
    ):
        name = name.replace(ours, theirs)
    return name


def _save_tokenizer(folder: Path, kind: str, words: Sequence[str]) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    marks = MARKS[kind]
    first, last = ("[CLS]", "[SEP]") if kind == "bert" else ("<s>", "</s>")
    unknown = "<unk>" if kind == "xlm-roberta" else "[UNK]"
    if kind == "xlm-roberta":
        pieces = [*marks, *("▁" + word for word in words), "▁", *LETTERS]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        scored = [(piece, -1.0 if len(piece) > 1 else -9.0) for piece in pieces]
        tokenizer = Tokenizer(models.Unigram(scored, unk_id=vocabulary[unknown]))
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        pieces = [*marks, *words, *LETTERS, *("##" + letter for letter in LETTERS)]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return vocabulary


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def reference(
    kind: str, weights: dict[str, np.ndarray], ids: Sequence[int], pooling: str
) -> np.ndarray:
    """One text by the papers' formulas, in float64 -> (width,) unit vector."""
    of = {name: each.astype(np.float64) for name, each in weights.items()}
    first = {"bert": 0, "xlm-roberta": 2, "mpnet": 2}[kind]
    count, size = len(ids), WIDTH // HEADS
    x = of["embeddings.word_embeddings.weight"][list(ids)]
    x = x + of["embeddings.position_embeddings.weight"][first : first + count]
    if kind != "mpnet":
        x = x + of["embeddings.token_type_embeddings.weight"][0]
    x = normed(x, of, "embeddings.LayerNorm")
    bias = np.zeros((HEADS, count, count))
    if kind == "mpnet":
        table = of["encoder.relative_attention_bias.weight"]
        for at in range(count):
            for seen in range(count):
                bias[:, at, seen] = table[bucket(seen - at, len(table))]
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        query, key, value = (
            dense(x, of, f"{prefix}.attention.self.{part}").reshape(count, HEADS, size)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(size) + bias
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", shares, value).reshape(count, WIDTH)
        x = normed(x + dense(seen, of, f"{prefix}.attention.output.dense"), of,
                   f"{prefix}.attention.output.LayerNorm")  # fmt: skip
        inner = dense(x, of, f"{prefix}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normed(x + dense(inner, of, f"{prefix}.output.dense"), of, f"{prefix}.output.LayerNorm")
    pooled = x[0] if pooling == "cls" else x.mean(0)
    return pooled / np.linalg.norm(pooled)


def bucket(ahead: int, buckets: int) -> int:
    """MPNet's bucket of a distance: half of them exact, then logarithmic up to 128."""
    half, start = buckets // 2, buckets // 2 if ahead > 0 else 0
    distance, exact = abs(ahead), buckets // 4
    if distance < exact:
        return start + distance
    shared = math.log(distance / exact) / math.log(128 / exact) * (half - exact)
    return start + min(half - 1, exact + int(shared))


def dense(x: np.ndarray, of: dict[str, np.ndarray], name: str) -> np.ndarray:
    return x @ of[f"{name}.weight"].T + of[f"{name}.bias"]


def normed(x: np.ndarray, of: dict[str, np.ndarray], name: str) -> np.ndarray:
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - x.mean(-1, keepdims=True)) / spread * of[f"{name}.weight"] + of[f"{name}.bias"]
