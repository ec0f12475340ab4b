"""How well texts are found that others wrote and translated: python loadtests/translated.py
--english FILE --translated FILE [FILE …] [--multilingual] [--texts 400] [--among-english]

The files are descriptions of packages as Debian publishes them, `Translation-en.xz` and
`Translation-de.bz2` and the like, from `dists/bookworm/main/i18n` of any mirror: of each package a
line that says what it is, and some paragraphs, by people who translate them. The paragraphs are
stored, a collection for each language, and found by the line: in their own language; in English;
and in English without the words that the paragraphs have, too, names above all, which leaves
nothing but meaning. Printed are the shares that are first, and among the ten best.

--among-english stores as many English texts beside them, of other packages. --multilingual gives
the service the model of `embedder.multilingual`.
"""

from __future__ import annotations

import argparse
import bz2
import lzma
import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Installation, Remote

TEXT_CHARS_MAX = 600
WORDS_LEFT_MIN = 4  # of an English line without what its text has, too
BATCH = 100
_ENTRY = re.compile(
    r"Package: \S+\nDescription-md5: (\S+)\nDescription-\w+: (.*)\n((?: .*\n?)*)", re.MULTILINE
)


class Description(NamedTuple):
    """A package's line and its paragraphs, as one text."""

    line: str
    text: str


class Translated(NamedTuple):
    """One in another language, and what it was translated from."""

    own: Description
    english: Description

    @property
    def unshared(self) -> str:
        """The English line without words that the text has."""
        text = self.own.text.lower()
        words = re.findall(r"[\w'-]+", self.english.line)
        return " ".join(word for word in words if word.lower() not in text)


def read(path: Path) -> dict[str, Description]:
    """Digest of the English original -> description, of one file."""
    unpack = lzma.decompress if path.suffix == ".xz" else bz2.decompress
    entries = unpack(path.read_bytes()).decode("utf-8", "replace")
    found = {}
    for digest, line, paragraphs in _ENTRY.findall(entries):
        lines = (each.strip() for each in paragraphs.splitlines())
        text = " ".join(each for each in lines if each not in ("", "."))
        found[digest] = Description(line.strip(), text[:TEXT_CHARS_MAX].strip())
    return found


def paired(
    english: dict[str, Description], others: dict[str, Description], count: int
) -> list[Translated]:
    """`count` at random, each with a line and a text of its own that were translated."""
    seen: set[str] = set()
    found = []
    for digest in sorted(english.keys() & others.keys()):
        own, line = others[digest], english[digest].line
        is_new = not seen & {own.line, own.text}
        if is_new and line and own.line not in ("", line) and len(own.text) >= 40:
            seen |= {own.line, own.text}
            found.append(Translated(own, english[digest]))
    random.Random(1).shuffle(found)
    return found[:count]


def share_found(
    service: Remote, collection: str, asked: Iterable[tuple[str, str]]
) -> tuple[float, float]:
    """(question, its text) -> the shares first and among the ten best, from 0 to 1."""
    ranks = []
    for question, text in asked:
        body = {"query": question, "collection_id": collection, "limit": 10}
        found = [hit["content"] for hit in service.post("/v1/search", body)["results"]]
        ranks.append(found.index(text) + 1 if text in found else 0)
    if not ranks:
        return 0.0, 0.0
    return sum(rank == 1 for rank in ranks) / len(ranks), sum(map(bool, ranks)) / len(ranks)


def measure(service: Remote, name: str, texts: list[Translated], beside: list[Translated]) -> str:
    """A row of the table. beside: whose English texts are stored, too."""
    collection = service.post("/v1/collections", {"name": f"translated {name}"})["id"]
    stored = [each.own.text for each in texts] + [each.english.text for each in beside]
    random.Random(2).shuffle(stored)
    memories = [{"content": text} for text in stored]
    for first in range(0, len(memories), BATCH):
        batch = {"memories": memories[first : first + BATCH], "collection_id": collection}
        service.post("/v1/memories/batch", {**batch, "wait_for_index": True})
    unshared = [each for each in texts if len(each.unshared.split()) >= WORDS_LEFT_MIN]
    cells = [
        share_found(service, collection, asked)
        for asked in (
            [(each.own.line, each.own.text) for each in texts],
            [(each.english.line, each.own.text) for each in texts],
            [(each.unshared, each.own.text) for each in unshared],
        )
    ]
    told = " | ".join(f"{100 * first:.1f} / {100 * ten:.1f} %" for first, ten in cells)
    return f"| {name} | {len(texts)} | {told} ({len(unshared)}) |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--english", type=Path, required=True)
    parser.add_argument("--translated", type=Path, nargs="+", required=True)
    parser.add_argument("--multilingual", action="store_true")
    parser.add_argument("--among-english", action="store_true")
    parser.add_argument("--texts", type=int, default=400, help="of each language, at most")
    options = parser.parse_args()
    english = read(options.english)
    print("| language | texts | own line | English line | English, no word shared |")
    print("|---|---|---|---|---|")
    with Installation(**{"embedder.multilingual": options.multilingual}) as service:
        for path in options.translated:
            name = path.name.partition("-")[2].partition(".")[0]
            both = paired(english, read(path), 2 * options.texts)
            texts, others = both[: options.texts], both[options.texts :]
            beside = others if options.among_english else []
            print(measure(service, name, texts, beside), flush=True)


if __name__ == "__main__":
    main()
