"""The agent of examples/ remembers from conversation to conversation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

AGENT = Path(__file__).parent.parent / "examples/agent.py"


def test_the_agent_answers_from_what_it_was_told_before() -> None:
    told = subprocess.run(
        [sys.executable, str(AGENT)], capture_output=True, text=True, timeout=300, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == [
        "Conversation 1",
        "> I eat no nuts.",
        "Noted.",
        "> I live in Lisbon.",
        "Noted.",
        "Conversation 2",
        "> My cello teacher is called Jonas.",
        "Noted.",
        "Conversation 3",
        "> What must I not eat?",
        "You said: I eat no nuts.",
        "> In which city do I live?",
        "You said: I live in Lisbon.",
        "> Who teaches me the cello?",
        "You said: My cello teacher is called Jonas.",
    ]
