"""The treebanks in memory: sentences with tags, lemmas, trees, names and kinds.

What a corpus does not say is None, and is neither learned nor judged.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from runtime.inference.language.reading import SUBTYPES

CHECKSUMS = {
    # SHA-256 of each file
    "ewt-dev.conllu.gz": "500fb2bccd6bf3613ecbf99bf06071422392b6f63b0f24da78980c0306e176ac",
    "ewt-test.conllu.gz": "de7e310eedbb69aca6470ed39ef7b2a0b4ad85f4d454fe0cbb9f6d9c5b451d1a",
    "ewt-train.conllu.gz": "8ac5d419770a5046d284a491281db06aca4336305c212eca1c28680c8c18dfab",
    "gum-dev.conllu.gz": "d2a42a11543fb7098469be6ffba6b72e81ae6eb871ab173e805000a5dc3809ce",
    "gum-evaluation-only.conllu.gz": "5d7ce73a574bed79e9310c9168aeb1e169768b68eb605b42c5bb57eba29bf6fa",  # noqa: E501
    "gum-test.conllu.gz": "819d596250a02872ca1407f18b6a38d51161687af5d0d8163fbddcabd85acac7",
    "gum-train.conllu.gz": "1a99cdd5dce5078bd2709fc9bfb5299067fb8c0598a2f7931e1e05577c3fadc7",
    "uner-ewt-dev.iob2.gz": "7ef261dc5d6d05f262c75381fb5ba8bb71ffaed8ac1eb75452aa296d8268eedb",
    "uner-ewt-test.iob2.gz": "ea013ab0c18e6e6fd85cb78b3e4a0fe5c8bdf96d5307380cd86bf42e284c5a5a",
    "wnut17-dev.conll.gz": "0ead94f2ab835315c2ae05d9fa07a4eab2796525fd364f6684d5ec0de8f4ca6f",
    "wnut17-test.conll.gz": "57e41b6068fda545abbae383909693d1a9a4a3fd3a75bd305c61364310fac39a",
    "wnut17-train.conll.gz": "30f6ff22763b457ee8c19edd5f4135b03c2d238238080a825b50b6f6807b4c79",
}
SPAN_KINDS = ("person", "place", "organization", "event", "time", "object", "animal", "work")
NOMINAL_KINDS = (
    *("person", "place", "organization", "event", "time", "object", "animal", "plant"),
    *("substance", "abstract"),
)
KINDS = ("statement", "question", "command", "exclamation", "fragment")
_OF_GUM = {"abstract": "work", "plant": "object", "substance": "object"}
_OF_UNER = {"PER": "person", "LOC": "place", "ORG": "organization"}
_OF_WNUT = {
    **{"person": "person", "location": "place", "corporation": "organization"},
    **{"group": "organization", "product": "object", "creative-work": "work"},
}
_KIND_OF_GUM = {
    **{"decl": "statement", "sub": "statement", "multiple": "statement", "q": "question"},
    **{"wh": "question", "imp": "command", "intj": "exclamation", "frag": "fragment"},
}


@dataclass(slots=True)
class Gold:
    """One sentence of a treebank; lists have one entry a word.

    spans         (first, last, kind), disjoint
    span_kinds    the kinds that the corpus marks; none where it marks no spans
    nominal       the kind of thing that a noun phrase's head stands for
    """

    words: list[str]
    glued: list[bool]  # to the word after it
    document: str
    genre: str
    tags: list[str] | None = None
    detailed: list[str] | None = None
    lemmas: list[str] | None = None
    heads: list[int] | None = None
    relations: list[str] | None = None
    spans: list[tuple[int, int, str]] = field(default_factory=list)
    span_kinds: tuple[str, ...] = ()
    nominal: list[str | None] | None = None
    kind: str | None = None
    paragraph: bool = False

    def in_small_letters(self) -> Gold:
        return replace(self, words=[word.lower() for word in self.words])

    def without_end(self) -> Gold:
        """Less its last word, which is a mark."""
        cut = slice(0, len(self.words) - 1)
        parts = ("tags", "detailed", "lemmas", "heads", "relations", "nominal")
        return replace(
            self,
            words=self.words[cut],
            glued=self.glued[cut],
            **{part: values[cut] for part in parts if (values := getattr(self, part)) is not None},
        )


def simple(relation: str) -> str:
    """A relation as a reading has it."""
    return relation if relation in SUBTYPES else relation.partition(":")[0]


def read(folder: Path, name: str) -> list[Gold]:
    """The sentences of one file. SystemExit where it is not the file that is meant."""
    path = folder / name
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
        raise SystemExit(f"{path} is not the file that the figures were measured with.")
    text = gzip.decompress(content).decode().replace("\r", "")
    blocks = text.split("\n\n")
    if name.startswith("wnut17"):
        return [
            _wnut(part.split("\n"))
            for part in re.split(r"\n\s*\n", "\n\n".join(blocks))
            if part.strip()
        ]
    found = list(_trees(blocks, "gum" if name.startswith("gum") else "web"))
    return found


def with_names(trees: list[Gold], folder: Path, name: str) -> list[Gold]:
    """The trees with the spans of another file over the same sentences."""
    content = (folder / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
        raise SystemExit(f"{folder / name} is not the file that the figures were measured with.")
    blocks = [b for b in gzip.decompress(content).decode().split("\n\n") if b.strip()]
    by_words = {
        tuple(row[1] for row in rows): [row[2] for row in rows]
        for block in blocks
        if (rows := [line.split("\t") for line in block.split("\n") if line and line[0] != "#"])
    }
    kinds = tuple(_OF_UNER.values())
    return [
        replace(tree, spans=_of_bio(labels, _OF_UNER), span_kinds=kinds)
        if (labels := by_words.get(tuple(tree.words))) is not None
        else tree
        for tree in trees
    ]


def _wnut(lines: list[str]) -> Gold:
    rows = [line.split("\t") for line in lines if "\t" in line and line.split("\t")[0].strip()]
    words = [row[0].strip() for row in rows]
    return Gold(
        words,
        [False] * len(words),
        "",
        "wnut17",
        spans=_of_bio([row[1].strip() for row in rows], _OF_WNUT),
        span_kinds=tuple(dict.fromkeys(_OF_WNUT.values())),
    )


def _of_bio(labels: list[str], kinds: dict[str, str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for at, label in enumerate(labels):
        prefix, _, kind = label.partition("-")
        if kind not in kinds:
            continue
        if prefix == "I" and found and found[-1][1:] == (at, kinds[kind]):
            found[-1] = (found[-1][0], at + 1, kinds[kind])
        else:
            found.append((at, at + 1, kinds[kind]))
    return found


def _trees(blocks: list[str], corpus: str) -> Iterator[Gold]:
    document, open_mentions = "", {}
    for block in blocks:
        comments = dict(
            line[2:].split(" = ", 1)
            for line in block.split("\n")
            if line.startswith("# ") and " = " in line
        )
        if "newdoc id" in comments:
            document, open_mentions = comments["newdoc id"], {}
        rows = [line.split("\t") for line in block.split("\n") if line and line[0] != "#"]
        parts = {
            number: row[9]
            for row in rows
            if "-" in row[0]
            for number in range(*map(int, row[0].split("-")))
        }
        rows = [row for row in rows if row[0].isdigit()]
        if not rows:
            continue
        gold = Gold(
            [row[1] for row in rows],
            ["SpaceAfter=No" in row[9] or int(row[0]) in parts for row in rows],
            document,
            document.split("_")[1] if corpus == "gum" else "web",
            [row[3] for row in rows],
            [row[4] for row in rows],
            [row[2] for row in rows],
            [int(row[6]) - 1 for row in rows],
            [simple(row[7]) for row in rows],
            paragraph="newpar" in block,
        )
        if corpus == "gum":
            _add_mentions(gold, rows, open_mentions)
            gold.kind = _KIND_OF_GUM.get(comments.get("s_type", ""), "fragment")
        else:
            gold.kind = _kind_of_tree(gold, [row[5] for row in rows])
        yield gold


def _kind_of_tree(gold: Gold, features: list[str]) -> str:
    """The kind of a sentence that no corpus names, from its tree."""
    assert gold.heads and gold.tags and gold.relations
    root = gold.heads.index(-1)
    below = [at for at, head in enumerate(gold.heads) if head == root]
    if "?" in "".join(gold.words[-2:]):
        return "question"
    if "Mood=Imp" in features[root]:
        return "command"
    if gold.tags[root] == "INTJ":
        return "exclamation"
    finite = any(
        "VerbForm=Fin" in features[at]
        for at in (root, *below)
        if at == root or gold.relations[at].startswith(("aux", "cop"))
    )
    return "statement" if finite else "fragment"


def _add_mentions(gold: Gold, rows: list[list[str]], open_mentions: dict) -> None:
    """GUM marks every mention, nested; named ones and times become spans, each one's head gets its
    kind.
    """
    assert gold.tags and gold.heads
    stack: list[tuple[str, str, int]] = []
    mentions = []
    for at, row in enumerate(rows):
        entity = next((part[7:] for part in row[9].split("|") if part.startswith("Entity=")), "")
        for match in re.finditer(r"\((\d+)-([a-z]+)-([^()]*)(\))?|(\d+)\)", entity):
            if match[1]:
                stack.append((match[1], match[2], at))
            if match[4] or match[5]:
                wanted = match[5] or match[1]
                for place in range(len(stack) - 1, -1, -1):
                    if stack[place][0] == wanted:
                        mentions.append((stack[place][2], at + 1, stack[place][1]))
                        del stack[place]
                        break
    gold.nominal = [None] * len(rows)
    named = []
    for first, last, kind in mentions:
        head = next((at for at in range(first, last) if not first <= gold.heads[at] < last), first)
        if kind in NOMINAL_KINDS:
            gold.nominal[head] = kind
        if kind == "time" and last - first <= 6:
            while first < head and gold.tags[first] in ("ADP", "DET", "PUNCT"):
                first += 1
            named.append((first, last, "time"))
        elif gold.tags[head] == "PROPN":
            begin, end = head, head + 1
            while begin > first and _in_name(gold, begin - 1):
                begin -= 1
            while end < last and _in_name(gold, end):
                end += 1
            named.append((begin, end, _OF_GUM.get(kind, kind)))
    taken: set[int] = set()
    for first, last, kind in sorted(named, key=lambda span: span[0] - span[1]):
        if not taken & set(range(first, last)) and kind in SPAN_KINDS:
            taken |= set(range(first, last))
            gold.spans.append((first, last, kind))
    gold.spans.sort()
    gold.span_kinds = SPAN_KINDS


def _in_name(gold: Gold, at: int) -> bool:
    assert gold.tags
    word, tag = gold.words[at], gold.tags[at]
    return tag == "PROPN" or (tag in ("NOUN", "ADJ", "NUM") and word[0].isupper()) or word in "-’'s"
