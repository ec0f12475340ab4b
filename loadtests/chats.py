"""Chats of a user with an assistant whose questions have known evidence: histories of LongMemEval
(Wu et al., ICLR 2025, MIT licence), https://github.com/xiaowu0162/LongMemEval, which has them.

The file is its longmemeval_oracle.json, gzipped or not, or a part of it. Each question has a
history of a few sessions; `Chats` stores all of them in one collection, each session as an app of
its own, and asks within parts of it of three sizes:

    alone    the history of one question
    tens     those of ten
    halves   those of half of the questions

In each part its own questions have an answer, and those of the next part, whose sessions are not in
it, have none: questions in the same style about other things. Halves are also the folds: what one
teaches is judged on the other.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from loadtests.asking import Remote

SIZES = {"alone": 1, "tens": 10, "halves": None}
SEED = 1
STORED_AT_ONCE = 25  # long replies take their time
_DAY_OF_WEEK = re.compile(r" \(\w+\)")


@dataclass(frozen=True)
class History:
    """A question and the sessions it was asked after: id -> (begun, (role, text) of its turns)."""

    id: str
    question: str
    asked: datetime
    sessions: dict[str, tuple[datetime, list[tuple[str, str]]]]
    answerable: bool


@dataclass(frozen=True)
class Part:
    """Histories that are searched together, and the questions whose answer none of them has."""

    fold: int
    histories: list[History]
    strange: list[History]

    @property
    def sessions(self) -> list[str]:
        return sorted({session for history in self.histories for session in history.sessions})


def read_histories(path: Path) -> list[list[History]]:
    """Both halves, the same for the same file."""
    content = path.read_bytes()
    records = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    histories = sorted(map(_history, records), key=lambda history: history.id)
    random.Random(SEED).shuffle(histories)
    return [histories[::2], histories[1::2]]


def _history(record: dict[str, Any]) -> History:
    named = zip(
        record["haystack_session_ids"],
        record["haystack_dates"],
        record["haystack_sessions"],
        strict=True,
    )
    sessions = {
        session: (read_time(begun), [(turn["role"], turn["content"]) for turn in turns])
        for session, begun, turns in named
    }
    has_answer = any(
        turn.get("has_answer") for turns in record["haystack_sessions"] for turn in turns
    )
    answerable = has_answer and not record["question_id"].endswith("_abs")
    asked = read_time(record["question_date"])
    return History(record["question_id"], record["question"], asked, sessions, answerable)


def read_time(text: str) -> datetime:
    """Of the file's form: 2023/05/20 (Sat) 02:21."""
    return datetime.strptime(_DAY_OF_WEEK.sub("", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def parts(halves: list[list[History]], size: int | None) -> Iterator[Part]:
    """Parts of so many histories, of one half each; of all of them without a size."""
    for fold, half in enumerate(halves):
        groups = [half, halves[1 - fold]]
        if size is not None:
            groups = [half[start : start + size] for start in range(0, len(half), size)]
        for number, group in enumerate(groups[: 1 if size is None else len(groups)]):
            here = {session for history in group for session in history.sessions}
            strange = [
                other
                for other in groups[(number + 1) % len(groups)]
                if other.answerable and here.isdisjoint(other.sessions)
            ]
            yield Part(fold, group, strange)


class Chats:
    """Histories that a service holds in one collection."""

    def __init__(self, service: Remote, path: Path, *, withheld: bool):
        """Store them; withheld: without roles and sessions, as notes. Raises Refused."""
        self.halves = read_histories(path)
        self._service = service
        self._collection = service.post("/v1/collections", {"name": f"chats {withheld}"})["id"]
        self._turns: dict[str, int] = {}
        found: dict[str, tuple[datetime, list[tuple[str, str]]]] = {}
        for history in (history for half in self.halves for history in half):
            found |= history.sessions
        bodies = []
        for session, (begun, turns) in sorted(found.items(), key=lambda item: item[1][0]):
            said = [(role, text) for role, text in turns if text.strip()]
            self._turns[session] = len(said)
            for number, (role, text) in enumerate(said):
                told = {} if withheld else {"session_id": session, "speaker": role}
                at = (begun + timedelta(seconds=number)).isoformat()
                bodies.append({"content": text, "app_id": session, "occurred_at": at, **told})
        for start in range(0, len(bodies), STORED_AT_ONCE):
            batch = {
                "memories": bodies[start : start + STORED_AT_ONCE],
                "collection_id": self._collection,
                "wait_for_index": True,
            }
            service.post("/v1/memories/batch", batch)

    def searched(self, part: Part) -> int:
        """Memories of a part."""
        return sum(self._turns[session] for session in part.sessions)

    def ask(self, part: Part, history: History, **search: Any) -> dict[str, Any]:
        """The reply to one question within a part. Raises Refused."""
        body = {
            "query": history.question,
            "collection_id": self._collection,
            "reference_date": max(one.asked for one in part.histories).isoformat(),
            "filters": {"app_id": {"in": part.sessions}},
            **search,
        }
        return self._service.post("/v1/search", body)
