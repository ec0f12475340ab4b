"""What `mneme doctor` says of one thing."""

from __future__ import annotations

from dataclasses import dataclass

MARKS = {"ok": "✓", "advice": "!", "wrong": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    verdict: "ok", "advice" or "wrong". remedy: what to do, empty when there is nothing to do.
    """

    verdict: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{MARKS[self.verdict]} {self.what}" + (
            f"\n    → {self.remedy}" if self.remedy else ""
        )
