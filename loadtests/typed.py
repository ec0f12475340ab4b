#!/usr/bin/env python3
"""Writes a copy of a file of conversations whose questions are as people type them, for whatever
measures how well questions are answered.

    python loadtests/typed.py --way small|slips --data conversations.json --to FILE [--seed 0]

    small   all in small letters, without question marks
    slips   one slip of the fingers in each question: in a word of four letters or more that is no
            function word, drawn at random, names among them, two neighbouring letters change
            places, one is left out, doubled, or becomes one beside it on the keyboard; the first
            letter stays

The data is as for answers.py (`qa`, with a `question` each), or records with a `question`, as
LongMemEval's; either may be gzipped. What cannot have a slip stays as it is, and is counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from storage.text import read_query

SLIP_CHARS_MIN = 4
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LETTERS = re.compile(r"[A-Za-z]+")


def small(question: str, chance: random.Random) -> str:
    """Without capitals and question marks."""
    return question.lower().replace("?", "").strip()


def slip(question: str, chance: random.Random) -> str:
    """With one slip in a word that says something; the same where there is none."""
    words = [
        (word.start, word.end)
        for word in read_query(question).words
        if word.end - word.start >= SLIP_CHARS_MIN
        and _LETTERS.fullmatch(question[word.start : word.end])
    ]
    if not words:
        return question
    start, end = chance.choice(words)
    return question[:start] + slipped(question[start:end], chance) + question[end:]


def slipped(word: str, chance: random.Random) -> str:
    """Another spelling, one slip away."""
    ways = (_swapped, _left_out, _doubled, _beside)
    while (found := chance.choice(ways)(word, chance.randrange(1, len(word)), chance)) == word:
        pass
    return found


def _swapped(word: str, at: int, chance: random.Random) -> str:
    at = max(at, 2)
    return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


def _left_out(word: str, at: int, chance: random.Random) -> str:
    return word[:at] + word[at + 1 :]


def _doubled(word: str, at: int, chance: random.Random) -> str:
    return word[:at] + word[at] + word[at:]


def _beside(word: str, at: int, chance: random.Random) -> str:
    row = next(row for row in ROWS if word[at].lower() in row)
    place = row.index(word[at].lower())
    return (
        word[:at]
        + chance.choice(row[max(place - 1, 0) : place] + row[place + 1 :][:1])
        + word[at + 1 :]
    )


WAYS: dict[str, Callable[[str, random.Random], str]] = {"small": small, "slips": slip}


def questions(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What has a `question`, in the order of the file."""
    for record in records:
        yield from record.get("qa", [record])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    content, is_packed = options.data.read_bytes(), options.data.suffix == ".gz"
    records = json.loads(gzip.decompress(content) if is_packed else content)
    chance, changed, count = random.Random(options.seed), 0, 0
    for asked in questions(records):
        typed = WAYS[options.way](asked["question"], chance)
        changed, count = changed + (typed != asked["question"]), count + 1
        asked["question"] = typed
    written = json.dumps(records, ensure_ascii=False).encode()
    options.to.write_bytes(gzip.compress(written) if options.to.suffix == ".gz" else written)
    print(f"{changed} of {count} questions changed")


if __name__ == "__main__":
    main()
