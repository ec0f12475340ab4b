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
from runtime.inference.tiles import TILE_COLUMNS

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
        self._entry = _in_panels(floats["entry.weight"], floats["entry.bias"])
        near = [(floats[f"near.{layer}.weight"], floats[f"near.{layer}.bias"]) for layer in (0, 1)]
        panels, biases = zip(*(_in_panels(*each) for each in near), strict=True)
        self._near = np.stack(panels), np.stack(biases)
        self._said = _in_panels(floats["said.weight"], floats["said.bias"])
        self._kinds = floats["kinds.weight"], floats["kinds.bias"]
        self._roots = floats["arc_root"], floats["label_root"]
        self._arcs = floats["arcs"], floats["distances"]
        # (numbers, relations, numbers) -> relations first, and a pair of numbers as one
        labels = floats["labels"].transpose(1, 0, 2).reshape(floats["labels"].shape[1], -1)
        self._labels = _in_panels(labels, np.zeros(len(labels), np.float32), float(kernels.NEVER))
        arc, label = floats["arcs"].shape[1], floats["labels"].shape[2] - 1
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
        hidden = np.empty((len(x), len(self._entry[1])), np.float32)
        scores = np.empty((len(x), len(self._said[1])), np.float32)
        kernels.score(x, edges, *self._entry, *self._near, *self._said, hidden, scores)
        read = self._read(hidden, scores, edges)
        ends = edges.tolist()
        return [
            Parse(*[each[first:last] for each in read], kind=kind)
            for first, last, kind in zip(
                ends[:-1], ends[1:], self._kinds_of(hidden, edges), strict=True
            )
        ]

    def _read(self, hidden: np.ndarray, scores: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
        """What a Parse has, of the words of all sentences, but for the kinds of those."""
        words = len(scores)
        tags, detailed, edits, spans, nominal, *ends = (scores[:, part] for part in self._parts)
        dependents, heads, labelled, labelling = (np.maximum(each, np.float32(0)) for each in ends)
        labels, tree, relations = (np.empty(words, np.int64) for _ in range(3))
        likely, arcs, certainties = (np.empty(words, np.float32) for _ in range(3))
        kernels.find_spans(np.ascontiguousarray(spans), edges, labels, likely)
        kernels.find_trees(dependents, heads, edges, self._roots[0], *self._arcs, tree, arcs)
        kernels.label_trees(
            *(labelled, labelling, edges, tree, self._roots[1], *self._labels),
            *(arcs, relations, certainties),
        )
        classes = [each.argmax(axis=1) for each in (tags, detailed, edits, nominal)]
        return [*classes, labels, likely, tree, relations, certainties]

    def _kinds_of(self, hidden: np.ndarray, edges: np.ndarray) -> list[int]:
        weight, bias = self._kinds
        means = np.add.reduceat(hidden, edges[:-1]) / np.diff(edges)[:, None].astype(np.float32)
        pooled = np.concatenate([means, np.maximum.reduceat(hidden, edges[:-1])], axis=1)
        return (pooled @ weight.T + bias).argmax(axis=1).tolist()


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


def _in_panels(
    weight: np.ndarray, bias: np.ndarray, filling: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(outputs, inputs) and (outputs,) -> (panels, inputs, TILE_COLUMNS), and the bias as long;
    filling: of outputs that there are none of.
    """
    more = -len(weight) % TILE_COLUMNS
    filled = np.pad(weight, ((0, more), (0, 0)))
    panels = filled.reshape(-1, TILE_COLUMNS, weight.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(panels), np.pad(bias, (0, more), constant_values=filling)
