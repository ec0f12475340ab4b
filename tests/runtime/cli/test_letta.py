"""What a running Letta wrote is read in each of its shapes. letta.json holds the answers that a
server of letta 0.16.8 gave of one agent: a file's name, and the text that was in it, with prompts,
tools and vectors shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.moving_in import Ledger, open_source

WRITTEN: dict[str, str] = json.loads(Path(__file__).with_name("letta.json").read_text())
PASSAGES = ["Ada flew to Porto in 2024.", "Ada prefers trains."]
SAID = ["I fly to Lisbon on 12 June.", "Noted, Ada: a window seat and no nuts."]
BLOCKS = ["I plan trips.", "Name: Ada. She eats no nuts."]
TEXTS = {
    "passages.json": PASSAGES,
    "search.json": PASSAGES,
    "messages.json": SAID,
    "blocks.json": BLOCKS,
    "agent.af": [*SAID, *reversed(BLOCKS)],
}


def read(tmp_path: Path, name: str, ledger: Ledger | None = None) -> list[dict[str, Any]]:
    path = tmp_path / name
    path.write_text(WRITTEN[name])
    source = open_source(path)
    assert source.form == "letta"
    return [record.body for record in source.records(ledger or Ledger())]


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_read_and_no_prompt(tmp_path: Path, name: str) -> None:
    assert [body["content"] for body in read(tmp_path, name)] == TEXTS[name]


@pytest.mark.parametrize("name", ["messages.json", "agent.af"])
def test_messages_keep_who_said_them_and_when(tmp_path: Path, name: str) -> None:
    ledger = Ledger()
    asked, answered = read(tmp_path, name, ledger)[:2]
    assert (asked["role"], answered["role"]) == ("user", "assistant")
    assert asked["occurred_at"].startswith("2026-11-25T19:59:29.")
    assert sum(ledger.left_out.values()) == 1  # the system's


def test_passages_found_by_a_search_keep_their_time(tmp_path: Path) -> None:
    first = read(tmp_path, "search.json")[0]
    assert first["occurred_at"] == "2026-11-25T19:59:28.700Z" and first["tags"] == ["travel"]


def test_agents_of_two_files_stay_two(tmp_path: Path) -> None:
    """Each file calls its first agent agent-0."""
    assert {body.get("agent_id") for body in read(tmp_path, "agent.af")} == {"planner", None}
