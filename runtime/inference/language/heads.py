"""The learned heads: loaded once, when a text is first read.

File: heads.npz beside this one. Matrices are int8 with a float32 scale a row ("<name>.scales");
lists of words are lines of text, compressed with zlib ("list.<name>").
`python -m loadtests.language.train` writes it; its licence is in NOTICE.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from runtime.inference.language import kernels
from runtime.inference.language.parse import Parse
from runtime.inference.language.spelling import spell

FILE = Path(__file__).with_name("heads.npz")


class Heads:
    """The heads in memory. Calls block, and may come from any thread."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.lists = {
            name[5:]: zlib.decompress(value.tobytes()).decode().split("\n")
            for name, value in arrays.items()
            if name.startswith("list.")
        }
        self.exceptions = {
            (tag, word): lemma
            for tag, word, lemma in (line.split(" ", 2) for line in self.lists["exceptions"])
        }
        floats = {
            name: _floats(value, arrays.get(f"{name}.scales"))
            for name, value in arrays.items()
            if not name.startswith("list.") and not name.endswith(".scales")
        }
        self._tables = [floats[f"{name}.weight"] for name in ("words", "suffixes", "prefixes")]
        self._entry = _turned(floats["entry.weight"]), floats["entry.bias"]
        self._near = (
            np.stack([_turned(floats[f"near.{layer}.weight"]) for layer in range(2)]),
            np.stack([floats[f"near.{layer}.bias"] for layer in range(2)]),
        )
        self._said = _turned(floats["said.weight"]), floats["said.bias"]
        self._kinds = floats["kinds.weight"], floats["kinds.bias"]
        self._roots = floats["arc_root"], floats["label_root"]
        self._arcs, self._labels = (floats["arcs"], floats["distances"]), floats["labels"]
        arc, label = floats["arcs"].shape[1], self._labels.shape[2] - 1
        names = ("tags", "detailed", "edits", "spans", "nominal")
        sizes = [*(len(self.lists[name]) for name in names), arc, arc, label, label]
        ends = np.cumsum(sizes).tolist()
        self._parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def parse(self, sentences: Sequence[Sequence[str]], states: np.ndarray) -> list[Parse]:
        """Sentences of one word and more, and (words, 768) states of all their words -> a parse
        each.
        """
        edges = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum([len(words) for words in sentences], out=edges[1:])
        spelt = [spell(words) for words in sentences]
        buckets = np.concatenate([each for each, _ in spelt])
        looked_up = [table[buckets[:, part]] for part, table in enumerate(self._tables)]
        x = np.concatenate([states, *looked_up, *[np.concatenate([m for _, m in spelt])]], axis=1)
        hidden = np.empty((len(x), self._entry[0].shape[1]), np.float32)
        scores = np.empty((len(x), self._parts[-1].stop), np.float32)
        kernels.score(x, edges, *self._entry, *self._near, *self._said, hidden, scores)
        return [
            self._read(hidden[first:last], scores[first:last])
            for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]

    def _read(self, hidden: np.ndarray, scores: np.ndarray) -> Parse:
        words = len(scores)
        tags, detailed, edits, spans, nominal, dependents, heads, labelled, labelling = (
            scores[:, part] for part in self._parts
        )
        labels, likely = np.empty(words, np.int64), np.empty(words, np.float32)
        kernels.find_spans(np.ascontiguousarray(spans), labels, likely)
        tree, relations = np.empty(words, np.int64), np.empty(words, np.int64)
        arcs, certainties = np.empty((words, 1 + words), np.float32), np.empty(words, np.float32)
        kernels.find_tree(
            _positive(dependents), _positive(heads), self._roots[0], *self._arcs, arcs, tree
        )
        kernels.label_tree(
            *(_positive(labelled), _positive(labelling), self._roots[1], self._labels),
            *(arcs, tree, relations, certainties),
        )
        weight, bias = self._kinds
        kind = weight @ np.concatenate([hidden.mean(axis=0), hidden.max(axis=0)]) + bias
        return Parse(
            tags.argmax(axis=1),
            detailed.argmax(axis=1),
            edits.argmax(axis=1),
            nominal.argmax(axis=1),
            labels,
            likely,
            tree,
            relations,
            certainties,
            int(kind.argmax()),
        )


@cache
def heads() -> Heads:
    """The shipped heads."""
    return load(FILE)


def load(path: Path) -> Heads:
    """The heads of a file."""
    with np.load(path) as stored:
        return Heads(dict(stored))


def _floats(codes: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    if scales is None:
        return codes.astype(np.float32)
    return codes.astype(np.float32) * scales.reshape(-1, *[1] * (codes.ndim - 1))


def _turned(weight: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weight.T)


def _positive(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.float32(0))
