"""How well notes in other languages than English are found: python loadtests/languages.py
[--base-url URL --key KEY] [--languages zh ja] [--failures] [--json FILE]
[--multilingual]

Fills a service with the notes of languages/, a collection for each language, asks the questions
that each note answers, and prints by language the share of questions whose note is first, the mean
reciprocal rank, how many of the wrong first results have a `query_confidence` above one half and
the highest among them, the mean confidence of the right ones, and the share without any result.
`--failures` shows each question whose note is not first.

A file of languages/ is one language. A line that begins with # is a comment; every other one is a
note and, each after a tab, the questions it answers, in the words somebody would ask them in, at
least one of which the note has, perhaps in another form. The notes are invented, about everyday
things, and many of one file are about the same thing, so that a question has to be told apart by
more than its subject.

Some 70 questions a language: three points are within chance. It is a guard against a language that
is not found at all.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Installation, Remote

SET = Path(__file__).resolve().parent / "languages"
SURE = 0.5
COLUMNS = ("n", "right first", "MRR", "wrong but sure", "surest wrong", "right, mean", "no match")


class BadNotes(Exception):
    """A file that cannot be used; the message says which line of which."""


@dataclass(frozen=True)
class Asked:
    """What one question brought. rank: of its note, 0 when it is not among the results; first: the
    content of the first result, "" when there is none.
    """

    question: str
    note: str
    rank: int
    first: str
    confidence: float


def read_notes(path: Path) -> list[tuple[str, list[str]]]:
    """(note, its questions) of one file. Raises BadNotes."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        note, *questions = line.split("\t")
        if not note or not questions or not all(questions):
            raise BadNotes(f"{path.name}, line {number}: expected a note, a tab and a question")
        found.append((note, questions))
    return found


def ask(service: Remote, language: str, notes: list[tuple[str, list[str]]]) -> list[Asked]:
    """Store the notes in a collection of their own, and ask every question there. Raises
    Refused.
    """
    collection = service.post("/v1/collections", {"name": f"language {language}"})["id"]
    memories = [{"content": note} for note, _ in notes]
    service.post(
        "/v1/memories/batch",
        {"memories": memories, "collection_id": collection, "wait_for_index": True},
    )
    answers = []
    for note, question in ((note, question) for note, asked in notes for question in asked):
        reply = service.post(
            "/v1/search", {"query": question, "collection_id": collection, "limit": len(notes)}
        )
        found = [hit["content"] for hit in reply["results"]]
        rank = found.index(note) + 1 if note in found else 0
        first = found[0] if found else ""
        answers.append(Asked(question, note, rank, first, reply["query_confidence"]))
    return answers


def figures(answers: list[Asked]) -> dict[str, float]:
    """One line of the table: shares from 0 to 1, but for `n` and `wrong but sure`, which count."""
    right = [asked.confidence for asked in answers if asked.rank == 1]
    wrong = [asked.confidence for asked in answers if asked.rank != 1 and asked.first]
    return {
        "n": len(answers),
        "right first": len(right) / len(answers),
        "MRR": fmean(1 / asked.rank if asked.rank else 0 for asked in answers),
        "wrong but sure": sum(confidence > SURE for confidence in wrong),
        "surest wrong": max(wrong, default=0.0),
        "right, mean": fmean(right) if right else 0.0,
        "no match": sum(not asked.first for asked in answers) / len(answers),
    }


def shown(rows: dict[str, dict[str, float]]) -> str:
    """A Markdown table."""
    lines = ["| language | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for language, row in rows.items():
        cells = [_cell(column, row[column]) for column in COLUMNS]
        lines.append(f"| {language} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(column: str, value: float) -> str:
    if column in ("right first", "no match"):
        return f"{100 * value:.1f} %"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base-url", help="a running service; without it, one is made in this process"
    )
    parser.add_argument("--key", help="API key or access token for --base-url")
    parser.add_argument("--languages", nargs="+", help="names of files; all of them without it")
    parser.add_argument(
        "--multilingual",
        action="store_true",
        help="give the one in this process the model of embedder.multilingual",
    )
    parser.add_argument("--failures", action="store_true", help="show what was not found first")
    parser.add_argument("--json", type=Path, help="also write every answer to this file")
    options = parser.parse_args()
    languages = options.languages or sorted(path.stem for path in SET.glob("*.txt"))
    answers: dict[str, list[Asked]] = {}
    with (
        Remote.at(options.base_url, options.key or "")
        if options.base_url
        else Installation(**{"embedder.multilingual": options.multilingual}) as service
    ):
        for language in languages:
            answers[language] = ask(service, language, read_notes(SET / f"{language}.txt"))
    print(shown({language: figures(asked) for language, asked in answers.items()}))
    if options.failures:
        for language, told in answers.items():
            for asked in told:
                if asked.rank != 1:
                    sure = f"{asked.confidence:.2f}".lstrip("0")
                    print(f"\n{language}, rank {asked.rank}: {asked.question}\n  {asked.note}")
                    print(f"  first, {sure}: {asked.first}")
    if options.json:
        listed = {language: [asdict(asked) for asked in told] for language, told in answers.items()}
        options.json.write_text(json.dumps(listed, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
