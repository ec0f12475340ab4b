"""What a checkpoint's folder says of its model, and whether it can be run.

    config.json                        architecture and sizes
    model.safetensors                  weights, float32 or float16
    tokenizer.json, or vocab.txt       the latter of WordPiece
    modules.json, 1_Pooling/config.json   pooling; a folder without them has its mean taken
    sentence_bert_config.json          the longest text
    config_sentence_transformers.json  prompts: what is put before a question and before a passage
    README.md                          languages, in its first lines
    word_vectors.npz                   directions of words, see `mneme models learn-words`

What could not be run as its makers ran it is refused, never guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from runtime.inference.bert_graph import Architecture
from runtime.inference.embedding import Prefixes
from runtime.inference.minilm.weights import ModelUnusable
from runtime.limits import EMBEDDED_TOKENS_MAX

WEIGHTS_FILE, TOKENIZER_FILE, VOCABULARY_FILE = "model.safetensors", "tokenizer.json", "vocab.txt"
WORD_VECTORS_FILE = "word_vectors.npz"
POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
KINDS = ("bert", *POSITIONS_AFTER_PADDING)
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("passage", "document")
TOKENS_MIN = 8
README_BYTES_READ = 16_384


@dataclass(frozen=True)
class Checkpoint:
    """kind: the model_type of config.json. token_types, distance_buckets: rows of the embeddings of
    those, for the architectures that have them. lowercase: whether vocab.txt is of small letters.
    languages: two- or three-letter codes, empty where the folder names none.
    """

    folder: Path
    kind: str
    architecture: Architecture
    vocabulary: int
    inner_width: int
    positions: int
    token_types: int
    distance_buckets: int
    lowercase: bool
    prefixes: Prefixes
    languages: frozenset[str]

    @property
    def width(self) -> int:
        return self.architecture.width

    @property
    def tokenizer_file(self) -> Path:
        """tokenizer.json, or vocab.txt where there is none."""
        whole = self.folder / TOKENIZER_FILE
        return whole if whole.exists() else self.folder / VOCABULARY_FILE

    @property
    def word_vectors_file(self) -> Path | None:
        path = self.folder / WORD_VECTORS_FILE
        return path if path.exists() else None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that its vectors depend on. Reads the weights."""
        files = [self.folder / WEIGHTS_FILE, self.tokenizer_file]
        parts = [self.kind, repr(self.architecture), repr(self.prefixes)]
        if self.word_vectors_file is not None:
            files.append(self.word_vectors_file)
        for path in files:
            with path.open("rb") as file:
                parts.append(hashlib.file_digest(file, "sha256").hexdigest())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def described(self) -> str:
        """One line for people."""
        languages = ", ".join(sorted(self.languages)) or "not named"
        words = "are" if self.word_vectors_file else "are not"
        return (
            f"{self.kind} of {self.folder}: {self.width} numbers a vector, reads "
            f"{self.architecture.tokens_max} tokens, languages {languages}; words {words} compared "
            f"one by one; its space is {self.space}"
        )

    @property
    def space(self) -> str:
        return f"{self.kind}-{self.digest[:12]}/{self.width}"


def read_checkpoint(
    folder: Path, *, query_prefix: str | None = None, passage_prefix: str | None = None
) -> Checkpoint:
    """What a folder holds. Prefixes that are given win over those of the folder.

    Raises ModelUnusable with what is wrong, and what to do.
    """
    config = _json(folder, "config.json")
    kind = config.get("model_type")
    if kind not in KINDS:
        raise unusable(
            folder,
            f"its architecture {kind!r} is not supported; those that are: {', '.join(KINDS)}",
        )
    _refuse_variants(folder, config)
    if not (folder / WEIGHTS_FILE).is_file():
        raise unusable(
            folder, f"{WEIGHTS_FILE} is missing; save the model with safe_serialization=True"
        )
    if not ((folder / TOKENIZER_FILE).is_file() or (folder / VOCABULARY_FILE).is_file()):
        raise unusable(
            folder, f"{TOKENIZER_FILE} is missing; save the model with its fast tokenizer"
        )
    padding = config.get("pad_token_id")
    first = 0
    if kind in POSITIONS_AFTER_PADDING:
        first = 1 + (padding if isinstance(padding, int) else 1)
    positions = _size(folder, config, "max_position_embeddings")
    pooling, prompts = _pooling(folder), _prompts(folder)
    width, heads = (_size(folder, config, key) for key in ("hidden_size", "num_attention_heads"))
    if width % heads:
        raise unusable(folder, f"its width {width} is no multiple of its {heads} heads")
    architecture = Architecture(
        layers=_size(folder, config, "num_hidden_layers"),
        heads=heads,
        width=width,
        tokens_max=min(_longest(folder), positions - first, EMBEDDED_TOKENS_MAX),
        norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        first_position=first,
        pooling=pooling,
    )
    if architecture.tokens_max < TOKENS_MIN:
        raise unusable(folder, f"it reads {architecture.tokens_max} tokens, fewer than a sentence")
    return Checkpoint(
        folder,
        kind,
        architecture,
        vocabulary=_size(folder, config, "vocab_size"),
        inner_width=_size(folder, config, "intermediate_size"),
        positions=positions,
        token_types=int(config.get("type_vocab_size", 2)),
        distance_buckets=int(config.get("relative_attention_num_buckets", 32)),
        lowercase=bool(
            _json(folder, "tokenizer_config.json", optional=True).get("do_lower_case", True)
        ),
        prefixes=Prefixes(
            prompts.query if query_prefix is None else query_prefix,
            prompts.passage if passage_prefix is None else passage_prefix,
        ),
        languages=_languages(folder),
    )


def unusable(folder: Path, why: str) -> ModelUnusable:
    """What is raised of a folder that holds no model to be used."""
    return ModelUnusable(f"embedder.model_path: the model in {folder} cannot be used: {why}.")


def _refuse_variants(folder: Path, config: Mapping[str, Any]) -> None:
    """What the graph would run as something else."""
    activation = config.get("hidden_act", "gelu")
    if activation != "gelu":
        raise unusable(folder, f"its activation {activation!r} is not supported, only 'gelu'")
    positions = config.get("position_embedding_type", "absolute")
    if positions not in ("absolute", None):
        raise unusable(folder, f"its positions are {positions!r}, and only 'absolute' is supported")
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise unusable(folder, "it is a decoder, not an encoder")
    told = _json(folder, "config_sentence_transformers.json", optional=True)
    if told.get("similarity_fn_name", "cosine") not in ("cosine", None) and not any(
        module.endswith(".Normalize") for module in _modules(folder)
    ):
        raise unusable(
            folder,
            f"its vectors are compared by {told['similarity_fn_name']!r}, and Mneme compares by "
            "cosine",
        )


def _modules(folder: Path) -> dict[str, str]:
    """Type -> path of each module, in order; of a folder without modules.json none."""
    path = folder / "modules.json"
    if not path.exists():
        return {}
    try:
        return {each["type"]: each["path"] for each in json.loads(path.read_bytes())}
    except (ValueError, TypeError, KeyError) as error:
        raise unusable(folder, f"modules.json makes no sense: {error!r}") from error


def _pooling(folder: Path) -> Literal["mean", "cls"]:
    modules = _modules(folder)
    where = None
    for kind, path in modules.items():
        name = kind.rpartition(".")[2]
        if name == "Pooling":
            where = path
        elif name not in ("Transformer", "Normalize"):
            raise unusable(folder, f"its module {name} is not supported")
    if where is None:
        if modules:
            raise unusable(folder, "modules.json names no pooling")
        return "mean"
    config = _json(folder, f"{where}/config.json")
    if config.get("include_prompt") is False:
        raise unusable(folder, "its pooling leaves prompts out, which is not supported")
    chosen = config.get("pooling_mode") or [
        name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for name, is_on in config.items()
        if name.startswith("pooling_mode_") and is_on
    ]
    modes = [chosen] if isinstance(chosen, str) else list(chosen)
    if modes == ["mean"]:
        return "mean"
    if modes == ["cls"]:
        return "cls"
    raise unusable(
        folder, f"its pooling {' + '.join(modes)!r} is not supported, only 'mean' and 'cls'"
    )


def _prompts(folder: Path) -> Prefixes:
    told = _json(folder, "config_sentence_transformers.json", optional=True)
    prompts = told.get("prompts") or {}
    default = prompts.get(told.get("default_prompt_name") or "", "")

    def one(names: tuple[str, ...]) -> str:
        return next((str(prompts[name]) for name in names if prompts.get(name)), default)

    return Prefixes(one(QUERY_PROMPTS), one(PASSAGE_PROMPTS))


def _longest(folder: Path) -> int:
    """Tokens of the longest text, as the folder has it; what it does not say is no bound."""
    bounds = [
        _json(folder, "sentence_bert_config.json", optional=True).get("max_seq_length"),
        _json(folder, "tokenizer_config.json", optional=True).get("model_max_length"),
    ]
    return int(min((bound for bound in bounds if bound), default=EMBEDDED_TOKENS_MAX))


def _languages(folder: Path) -> frozenset[str]:
    """The codes in the front matter of README.md."""
    try:
        text = (folder / "README.md").read_bytes()[:README_BYTES_READ].decode("utf-8", "replace")
    except OSError:
        return frozenset()
    if not text.startswith("---\n"):
        return frozenset()
    try:
        told = yaml.safe_load(text[4:].partition("\n---")[0])
    except yaml.YAMLError:
        return frozenset()
    named = told.get("language") if isinstance(told, dict) else None
    # YAML reads Norwegian's code as a denial.
    codes = ["no" if code is False else str(code) for code in _listed(named)]
    return frozenset() if "multilingual" in codes and len(codes) == 1 else frozenset(codes)


def _listed(value: object) -> list[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _size(folder: Path, config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise unusable(folder, f"config.json says {value!r} for {key}")
    return value


def _json(folder: Path, name: str, *, optional: bool = False) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        if optional:
            return {}
        raise unusable(folder, f"{name} is missing")
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise unusable(folder, f"{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise unusable(folder, f"{name} is no JSON object")
    return found
