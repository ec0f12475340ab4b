"""Checkpoints of the BERT family as sentence-transformers saves them: small, with random weights,
and of the architecture asked for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, LAYERS, HEADS, INNER, POSITIONS, BUCKETS = 64, 2, 4, 128, 48, 32
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
