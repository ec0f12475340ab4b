"""How well the shipped heads read the test parts of treebanks.

    python -m loadtests.language FOLDER [--heads heads.npz] [--small-letters]

FOLDER holds the treebanks of treebanks.py. Words are the treebank's own; arcs are counted with
punctuation, relations without subtypes. `tokens` is the F1 of words that are cut from the raw text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from loadtests.language.states import states_of, text_of
from loadtests.language.treebanks import Gold, read, with_names
from runtime.inference.language import Sentence, read_sentences
from runtime.inference.language.assembly import assemble
from runtime.inference.language.heads import FILE, Heads, load
from runtime.inference.language.segmentation import Segment


def read_all(heads: Heads, golds: Sequence[Gold]) -> list[Sentence]:
    found = []
    for gold, states in zip(golds, states_of(golds), strict=True):
        (parse,) = heads.parse([gold.words], states.astype("f4"))
        text, words = text_of(gold)
        found.append(assemble(heads, text, Segment(0, len(text), words), parse))
    return found


def percent(right: int, all_: int) -> str:
    return f"{100 * right / all_:.1f}" if all_ else "–"


def f1(found: set, gold: set) -> str:
    return percent(2 * len(found & gold), len(found) + len(gold))


def figures(golds: Sequence[Gold], read_: Sequence[Sentence]) -> dict[str, str]:
    counts = dict.fromkeys(("words", "tags", "lemmas", "arcs", "labelled", "said", "kinds"), 0)
    typed: tuple[set, set] = (set(), set())
    cut: tuple[set, set] = (set(), set())
    for at, (gold, sentence) in enumerate(zip(golds, read_, strict=True)):
        tokens = sentence.tokens
        if gold.tags and gold.lemmas and gold.heads and gold.relations:
            counts["words"] += len(tokens)
            counts["tags"] += sum(t.tag == g for t, g in zip(tokens, gold.tags, strict=True))
            counts["lemmas"] += sum(
                t.lemma.lower() == g.lower() for t, g in zip(tokens, gold.lemmas, strict=True)
            )
            for token, head, relation in zip(tokens, gold.heads, gold.relations, strict=True):
                right = token.head == head
                counts["arcs"] += right
                same = token.relation.partition(":")[0] == relation.partition(":")[0]
                counts["labelled"] += right and same
        if gold.genre not in ("web", "wnut17"):
            counts["said"] += 1
            counts["kinds"] += sentence.kind == gold.kind
        if gold.span_kinds:
            typed[0].update(
                (at, s.first, s.last, s.kind) for s in sentence.spans if s.kind in gold.span_kinds
            )
            typed[1].update((at, *span) for span in gold.spans)
        text, words = text_of(gold)
        cut[0].update((at, *word) for each in read_sentences(text) for word in each.words)
        cut[1].update((at, *word) for word in words)
    return {
        "UPOS": percent(counts["tags"], counts["words"]),
        "UAS": percent(counts["arcs"], counts["words"]),
        "LAS": percent(counts["labelled"], counts["words"]),
        "lemma": percent(counts["lemmas"], counts["words"]),
        "spans": f1(*typed),
        "untyped": f1(*({each[:3] for each in side} for side in typed)),
        "kind": percent(counts["kinds"], counts["said"]),
        "tokens": f1(*cut),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--heads", type=Path, default=FILE)
    parser.add_argument("--small-letters", action="store_true")
    chosen = parser.parse_args()
    heads = load(chosen.heads)
    folder = chosen.folder
    web = with_names(read(folder, "ewt-test.conllu.gz"), folder, "uner-ewt-test.iob2.gz")
    gum = [
        *read(folder, "gum-test.conllu.gz"),
        *read(folder, "gum-evaluation-only.conllu.gz"),
    ]
    sets = {"EWT test": web, "GUM test": gum}
    for genre in dict.fromkeys(gold.genre for gold in gum):
        sets[f"– {genre}"] = [gold for gold in gum if gold.genre == genre]
    sets["WNUT17 test"] = read(folder, "wnut17-test.conll.gz")
    for name, golds in sets.items():
        if chosen.small_letters:
            golds = [gold.in_small_letters() for gold in golds]
        found = figures(golds, read_all(heads, golds))
        if name == "EWT test":
            print(f"| | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
        print(f"| {name} | {' | '.join(found.values())} |", flush=True)


if __name__ == "__main__":
    main()
