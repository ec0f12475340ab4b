"""Teaches the language heads, and writes them as the service reads them.

    python -m loadtests.language.train FOLDER --states /tmp/states.npz --out heads.npz

FOLDER holds the treebanks of treebanks.py. The embedding model reads each sentence once, in windows
of one to five; its states are kept in the file that --states names. One core, half an hour.
"""

from __future__ import annotations

import argparse
import random
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from loadtests.language.network import Heads
from loadtests.language.states import states_of
from loadtests.language.treebanks import (
    KINDS,
    NOMINAL_KINDS,
    SPAN_KINDS,
    Gold,
    read,
    with_names,
)
from runtime.inference.language.lemmas import edit_of
from runtime.inference.language.spelling import spell

SMALL_LETTERS_SHARE = 0.3
ENDLESS_SHARE = 0.5  # of those in small letters
EDITS_MAX, BATCH_WORDS = 160, 900
TAGS_OF_SPANS = ("O", *(f"{p}-{kind}" for kind in SPAN_KINDS for p in "BI"))
WEIGHTS = {"tags": 1.0, "detailed": 0.7, "edits": 0.5, "spans": 0.7, "nominal": 0.4}


def corpus(folder: Path, seed: int) -> list[Gold]:
    """What is learned from, copies in small letters among it."""
    plain = [
        *read(folder, "ewt-train.conllu.gz"),
        *read(folder, "gum-train.conllu.gz"),
        *read(folder, "wnut17-train.conll.gz"),
        *(
            gold
            for gold in with_names(
                read(folder, "ewt-dev.conllu.gz"), folder, "uner-ewt-dev.iob2.gz"
            )
        ),
    ]
    rng = random.Random(seed)
    copies = []
    for gold in plain:
        if rng.random() < SMALL_LETTERS_SHARE:
            copy = gold.in_small_letters()
            ends = len(gold.words) > 2 and gold.words[-1] in (".", "!", "?")
            ends = ends and gold.heads is not None and len(gold.words) - 1 not in gold.heads
            copies.append(copy.without_end() if ends and rng.random() < ENDLESS_SHARE else copy)
    return [gold for gold in [*plain, *copies] if gold.words]


class Labels:
    """The classes of every output, and sentences as numbers of them; -100 for what is not told."""

    def __init__(self, golds: list[Gold]):
        trees = [gold for gold in golds if gold.tags]
        self.tags = _commonest(tag for gold in trees for tag in gold.tags or ())
        self.detailed = _commonest(tag for gold in trees for tag in gold.detailed or ())
        self.relations = _commonest(each for gold in trees for each in gold.relations or ())
        self.edits = _commonest(
            edit_of(form(word, tag), lemma)
            for gold in trees
            for word, tag, lemma in zip(gold.words, gold.tags, gold.lemmas, strict=True)
        )[:EDITS_MAX]
        self.nominal = ["", *NOMINAL_KINDS]
        self.exceptions = self._exceptions(trees)

    def outputs(self) -> dict[str, int]:
        return {
            "tags": len(self.tags),
            "detailed": len(self.detailed),
            "edits": len(self.edits),
            "spans": len(TAGS_OF_SPANS),
            "nominal": len(self.nominal),
        }

    def of(self, gold: Gold) -> dict[str, np.ndarray]:
        count = len(gold.words)
        found = {
            name: np.full(count, -100)
            for name in ("tags", "detailed", "edits", "nominal", "heads", "relations")
        }
        if gold.tags:
            found["tags"] = _numbers(gold.tags, self.tags)
            found["detailed"] = _numbers(gold.detailed, self.detailed)
            found["relations"] = _numbers(gold.relations, self.relations)
            found["heads"] = np.array(gold.heads) + 1
            edits = [
                edit_of(form(word, tag), lemma)
                for word, tag, lemma in zip(gold.words, gold.tags, gold.lemmas, strict=True)
            ]
            found["edits"] = _numbers(edits, self.edits)
        if gold.nominal:
            found["nominal"] = _numbers([kind or "" for kind in gold.nominal], self.nominal)
        allowed = np.ones((count, len(TAGS_OF_SPANS)), bool)
        if gold.span_kinds:
            marked = np.array([tag[2:] in gold.span_kinds for tag in TAGS_OF_SPANS])
            allowed[:] = ~marked
            for first, last, kind in gold.spans:
                allowed[first:last] = False
                allowed[first, TAGS_OF_SPANS.index(f"B-{kind}")] = True
                allowed[first + 1 : last, TAGS_OF_SPANS.index(f"I-{kind}")] = True
        found["allowed"] = allowed
        found["kind"] = np.array(KINDS.index(gold.kind) if gold.kind else -100)
        return found

    def _exceptions(self, trees: list[Gold]) -> dict[str, str]:
        """Words whose lemma no ordinary edit gives: "tag word" -> lemma."""
        usual = set(self.edits[:40])
        seen: dict[str, Counter] = {}
        for gold in trees:
            for word, tag, lemma in zip(gold.words, gold.tags, gold.lemmas, strict=True):
                if tag in ("VERB", "AUX", "NOUN", "ADJ", "ADV", "PRON", "DET", "PART"):
                    seen.setdefault(f"{tag} {word.lower()}", Counter())[lemma.lower()] += 1
        best = {key: found.most_common(1)[0] for key, found in seen.items()}
        return {
            key: lemma
            for key, (lemma, count) in sorted(best.items())
            if lemma != "_"
            and key.split(" ", 1)[1].isascii()
            and (count > 3 or (count > 1 and edit_of(key.split(" ", 1)[1], lemma) not in usual))
            and key.split(" ", 1)[1] != lemma
        }


def form(word: str, tag: str) -> str:
    """A word as its lemma is made from it."""
    return word if tag == "PROPN" else word.lower()


def _commonest(values: object) -> list[str]:
    return [value for value, _ in Counter(values).most_common()]


def _numbers(values: list[str], classes: list[str]) -> np.ndarray:
    index = {value: at for at, value in enumerate(classes)}
    return np.array([index.get(value, -100) for value in values])


def _padded(arrays: list[np.ndarray], fill: float) -> torch.Tensor:
    longest = max(len(each) for each in arrays)
    found = np.full((len(arrays), longest, *arrays[0].shape[1:]), fill, arrays[0].dtype)
    for row, each in zip(found, arrays, strict=True):
        row[: len(each)] = each
    return torch.from_numpy(found)


def loss_of(heads: Heads, batch: list[dict[str, np.ndarray]]) -> torch.Tensor:
    states = _padded([each["states"] for each in batch], 0).float()
    mask = _padded([np.ones(len(each["states"]), np.float32) for each in batch], 0)
    said, arcs, labels, kinds = heads(
        states,
        _padded([each["buckets"] for each in batch], 0),
        _padded([each["marks"] for each in batch], 0),
        mask,
    )
    total = torch.zeros(())
    for name, weight in WEIGHTS.items():
        if name == "spans":
            allowed = _padded([each["allowed"] for each in batch], True)
            scores = said[name]
            missed = scores.logsumexp(-1) - scores.masked_fill(~allowed, -1e9).logsumexp(-1)
            count = (~allowed.all(-1)).sum().clamp(min=1)
            total = total + weight * (missed * mask).sum() / count
        else:
            wanted = _padded([each[name] for each in batch], -100)
            if (wanted >= 0).any():
                total = total + weight * functional.cross_entropy(
                    said[name].flatten(0, 1), wanted.flatten()
                )
    wanted = _padded([each["heads"] for each in batch], -100)
    if (wanted >= 0).any():
        total = total + functional.cross_entropy(arcs.flatten(0, 1), wanted.flatten())
        rows, columns = (wanted >= 0).nonzero(as_tuple=True)
        to = wanted[rows, columns]
        rooted = torch.cat([heads.label_root.expand(len(batch), 1, -1), labels[1]], 1)
        relations = _padded([each["relations"] for each in batch], -100)[rows, columns]
        scores = heads.label_scores(labels[0][rows, columns], rooted[rows, to])
        total = total + functional.cross_entropy(scores, relations, ignore_index=-100)
    wanted = torch.tensor(np.stack([each["kind"] for each in batch]))
    if (wanted >= 0).any():
        total = total + 0.3 * functional.cross_entropy(kinds, wanted)
    return total


def batches(items: list[dict], rng: random.Random) -> list[list[dict]]:
    order = sorted(items, key=lambda item: len(item["states"]) + 3 * rng.random())
    found: list[list[dict]] = []
    for item in order:
        if not found or len(item["states"]) * (len(found[-1]) + 1) > BATCH_WORDS:
            found.append([])
        found[-1].append(item)
    rng.shuffle(found)
    return found


def write(path: Path, heads: Heads, labels: Labels) -> None:
    """Matrices in eight bits with a scale a column, tables with a scale a row."""
    arrays: dict[str, np.ndarray] = {}
    state = {name: value.detach().numpy() for name, value in heads.state_dict().items()}
    for name, value in state.items():
        if value.ndim == 1:
            arrays[name] = value.astype(np.float32)
            continue
        flat = value.reshape(len(value), -1)
        scales = np.maximum(np.abs(flat).max(1), 1e-8) / 127
        arrays[name] = np.rint(flat / scales[:, None]).astype(np.int8).reshape(value.shape)
        arrays[f"{name}.scales"] = scales.astype(np.float32)
    texts = {
        "tags": labels.tags,
        "detailed": labels.detailed,
        "edits": labels.edits,
        "relations": labels.relations,
        "spans": TAGS_OF_SPANS,
        "nominal": labels.nominal,
        "kinds": KINDS,
        "exceptions": [f"{key} {lemma}" for key, lemma in labels.exceptions.items()],
    }
    for name, lines in texts.items():
        packed = zlib.compress("\n".join(lines).encode(), 9)
        arrays[f"list.{name}"] = np.frombuffer(packed, np.uint8)
    np.savez_compressed(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", type=Path, default=Path("/tmp/mneme-language-states.npy"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(chosen.seed)
    golds = corpus(chosen.folder, chosen.seed)
    labels = Labels(golds)
    print(
        f"{len(golds)} sentences, {len(labels.exceptions)} words of their own",
        flush=True,
    )
    states = states_of(golds, chosen.states)
    items = []
    for gold, mine in zip(golds, states, strict=True):
        buckets, marks = spell(gold.words)
        items.append({"states": mine, "buckets": buckets, "marks": marks, **labels.of(gold)})
    heads = Heads(labels.outputs(), len(labels.relations), len(KINDS))
    rng = random.Random(chosen.seed)
    steps = chosen.epochs * len(batches(items, rng))
    optimizer = torch.optim.AdamW(heads.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps + 99, pct_start=0.08)
    for epoch in range(chosen.epochs):
        started, total = time.monotonic(), 0.0
        for batch in batches(items, rng):
            optimizer.zero_grad()
            loss = loss_of(heads, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(heads.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        print(
            f"epoch {epoch + 1}: loss {total:.0f}, {time.monotonic() - started:.0f} s", flush=True
        )
        write(chosen.out, heads.eval(), labels)
        heads.train()


if __name__ == "__main__":
    main()
