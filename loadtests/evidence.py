"""Conversations with questions whose evidence is known: the text format of retrieval/, and the
figures that ranking is judged by.

The set in retrieval/ is the project's own: invented people, invented facts, written for this
purpose, under the project's licence. A file is one conversation, or one person's notes:

    # a comment
    @ 2024-03-02 18:40           a session begins; the time of day may be left out
    Ruth #shed: The roof leaks.  a turn: speaker, a label when a question needs one, text
    * #tyres: They are in rack 3. a note, which has neither speaker nor session; `@` then only says
      its day
    ? fact shed: What leaks?     a question: its kind, the labels of its evidence, text
    ? unsaid: Who sings?         kinds of UNANSWERABLE have no evidence

Turns follow each other by a minute. Figures are shares from 0 to 1, averaged over questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean

SET = Path(__file__).resolve().parent / "retrieval"
ANSWERABLE = ("fact", "several", "time", "inference", "reworded")
UNANSWERABLE = ("unsaid", "wrong_person")  # nobody said it; somebody said it, of somebody else
CUTOFFS = (5, 10, 20)
BETWEEN_TURNS = timedelta(minutes=1)

_DAY = re.compile(r"@ (\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?")
_NOTE = re.compile(r"\* (?:#(\w+): )?(.+)")
_QUESTION = re.compile(r"\? (\w+)((?: \w+)*): (.+)")
_TURN = re.compile(r"([^#:]+?)(?: #(\w+))?: (.+)")


class BadEvidence(Exception):
    """A file that cannot be used; the message says which line of which, and why."""


@dataclass(frozen=True)
class Turn:
    """One memory. id: unique in the whole set. session: None for a note, as is speaker."""

    id: str
    speaker: str | None
    session: str | None
    at: datetime
    text: str


@dataclass(frozen=True)
class Question:
    kind: str
    text: str
    evidence: tuple[str, ...]  # ids of turns

    @property
    def answerable(self) -> bool:
        return self.kind in ANSWERABLE


@dataclass(frozen=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def told(self) -> bool:
        """Whether its turns have speakers and sessions."""
        return any(turn.session for turn in self.turns)


def read_set(path: Path = SET) -> list[Conversation]:
    """Every .txt of a directory, or one file, by name. Raises BadEvidence."""
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise BadEvidence(f"{path} holds no .txt file")
    return [parse(file.stem, file.read_text(encoding="utf-8")) for file in files]


def parse(name: str, text: str) -> Conversation:
    """One conversation of a file's text. Raises BadEvidence."""
    reader = _Reader(name)
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#"):
            try:
                reader.read(line)
            except ValueError as wrong:
                raise BadEvidence(f"{name}, line {number}: {wrong}") from None
    return Conversation(name, tuple(reader.turns), tuple(reader.questions))


class _Reader:
    """What has been read of one file so far."""

    def __init__(self, name: str):
        self.turns: list[Turn] = []
        self.questions: list[Question] = []
        self._name = name
        self._labels: dict[str, str] = {}
        self._sessions = 0
        self._at: datetime | None = None

    def read(self, line: str) -> None:
        """Raises ValueError."""
        if line.startswith("@"):
            self._begin(_matched(_DAY, line, "@ 2024-03-02 18:40"))
        elif line.startswith("*"):
            label, text = _matched(_NOTE, line, "* #label: text").groups()
            self._add(None, None, label, text)
        elif line.startswith("?"):
            self._ask(*_matched(_QUESTION, line, "? kind label: text").groups())
        else:
            speaker, label, text = _matched(_TURN, line, "Speaker #label: text").groups()
            self._add(speaker, f"{self._name}/{self._sessions}", label, text)

    def _begin(self, day: re.Match[str]) -> None:
        self._sessions += 1
        self._at = datetime.fromisoformat(f"{day[1]} {day[2] or '12:00'}").replace(tzinfo=UTC)

    def _add(self, speaker: str | None, session: str | None, label: str | None, text: str) -> None:
        if self._at is None:
            raise ValueError("no @ line says when")
        turn = Turn(f"{self._name}/{len(self.turns)}", speaker, session, self._at, text)
        if label is not None and self._labels.setdefault(label, turn.id) != turn.id:
            raise ValueError(f"the label {label} is taken")
        self.turns.append(turn)
        self._at += BETWEEN_TURNS

    def _ask(self, kind: str, labels: str, text: str) -> None:
        unknown = [label for label in labels.split() if label not in self._labels]
        if kind not in (*ANSWERABLE, *UNANSWERABLE):
            raise ValueError(f"{kind} is no kind of question")
        if unknown:
            raise ValueError(f"no turn above has the label {unknown[0]}")
        if (kind in ANSWERABLE) != bool(labels):
            raise ValueError(f"a question of kind {kind} has {'no' if labels else 'some'} evidence")
        self.questions.append(
            Question(kind, text, tuple(self._labels[label] for label in labels.split()))
        )


def _matched(pattern: re.Pattern[str], line: str, shape: str) -> re.Match[str]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(f"expected {shape!r}")
    return found


# --- figures --------------------------------------------------------------------------------------


def figures(evidence: Sequence[str], found: Sequence[str]) -> dict[str, float]:
    """Of one question: R@k, the share of its evidence among the first k found; MRR, 1 / rank of the
    first evidence, else 0.
    """
    ranks = [rank for rank, id in enumerate(found, 1) if id in evidence]
    shares = {f"R@{k}": sum(rank <= k for rank in ranks) / len(evidence) for k in CUTOFFS}
    return {**shares, "MRR": 1 / ranks[0] if ranks else 0.0}


def mean(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure; nothing of nothing."""
    rows = list(rows)
    return {name: fmean(row[name] for row in rows) for name in rows[0]} if rows else {}


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """How often a positive is above a negative; ties count half. NaN when one side is empty."""
    if not positives or not negatives:
        return float("nan")
    above = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)
    return above / (len(positives) * len(negatives))
