"""What Zep's and Graphiti's own packages write is read in each of its shapes. zep.json holds what
zep-cloud 4.0, zep-python 2.0 and graphiti-core 0.31 made of a few rows of theirs: a file's name,
and the text that was in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.moving_in import Ledger, open_source
from runtime.cli.moving_in.zep import NO_TEXT_OF_ITS_OWN

WRITTEN: dict[str, str] = json.loads(Path(__file__).with_name("zep.json").read_text())
SAID = "I fly to Lisbon."
FLIES = "Ada flies to Lisbon in June."
NODE = "Ada is a traveller who eats no nuts."
OBSERVED, SUMMED_UP = "Ada travels by train when she can.", "Ada plans a trip to Lisbon."
TEXTS = {
    "nodes_page": [NODE],
    "nodes_list": [NODE],
    "edges_page": [FLIES],
    "edges_list": [FLIES],
    "edges_dump": [FLIES],
    "episodes_page": ["Ada: I fly to Lisbon."],
    "episodes_list": ["Ada: I fly to Lisbon."],
    "messages_page": [SAID, "Noted."],
    "messages_list": [SAID, "Noted."],
    "observations_page": [OBSERVED],
    "summaries_page": [SUMMED_UP],
    "threads_page": [],
    "context": [NODE, OBSERVED, SUMMED_UP, FLIES],
    "ce_facts": ["Ada eats no nuts."],
    "ce_memory": [SAID, "Ada eats no nuts.", "A trip."],
    "ce_messages": [SAID],
    "ce_search": ["Ada eats no nuts."],
    "graphiti_nodes": ["Ada eats no nuts."],
    "graphiti_edges": ["Ada flies to Lisbon."],
    "graphiti_episodes": ["Ada: I fly to Lisbon"],
    "graphiti_all": ["Ada: I fly to Lisbon", "Ada eats no nuts.", "Ada flies to Lisbon."],
}


def read(tmp_path: Path, name: str, ledger: Ledger | None = None) -> list[dict[str, Any]]:
    path = tmp_path / f"{name}.json"
    path.write_text(WRITTEN[name])
    source = open_source(path)
    assert source.form == "zep"
    return [record.body for record in source.records(ledger or Ledger())]


def test_every_file_is_looked_at() -> None:
    assert WRITTEN.keys() == TEXTS.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_read_once(tmp_path: Path, name: str) -> None:
    found = [body["content"] for body in read(tmp_path, name) if "content" in body]
    assert found == TEXTS[name]


def test_a_thread_s_messages_keep_who_said_them_and_when(tmp_path: Path) -> None:
    first, second = read(tmp_path, "messages_page")
    assert first["speaker"] == "Ada" and first["session_id"] == "th1"
    assert (first["role"], second["role"]) == ("user", "assistant")
    assert first["occurred_at"] == "2026-05-01T10:00:00.000Z"


def test_nodes_are_entities_and_observations_are_not(tmp_path: Path) -> None:
    found = read(tmp_path, "nodes_page")
    assert [(body["name"], body["type"]) for body in found if "name" in body] == [
        ("Ada", "Person"),
        ("Lisbon", "unknown"),
    ]
    assert found[0]["attributes"] == {"role": "engineer"}
    assert not any("type" in body for body in read(tmp_path, "observations_page"))


def test_edges_between_known_nodes_hold_in_their_time(tmp_path: Path) -> None:
    claims = [body for body in read(tmp_path, "edges_page") if "target" in body]
    assert [(claim["source"], claim["type"], claim["target"]) for claim in claims] == [
        ("Ada", "flies_to", "Lisbon"),
        ("Ada", "lived_in", "Lisbon"),
    ]
    assert claims[1]["valid_to"] == "2021-01-01T00:00:00.000Z"
    (claim,) = (body for body in read(tmp_path, "graphiti_all") if "target" in body)
    assert (claim["source"], claim["target"]) == ("Ada", "Lisbon")


def test_an_edge_finds_its_ends_among_the_nodes_of_an_earlier_page(tmp_path: Path) -> None:
    pages = [json.loads(WRITTEN[f"graphiti_{part}"]) for part in ("nodes", "edges")]
    lines = (json.dumps(row) for page in pages for row in page)
    path = tmp_path / "graph.jsonl"
    path.write_text("\n".join(lines))
    bodies = [record.body for record in open_source(path).records(Ledger())]
    assert [body["target"] for body in bodies if "target" in body] == ["Lisbon"]


def test_an_episode_s_name_is_no_speaker(tmp_path: Path) -> None:
    (episode,) = read(tmp_path, "graphiti_episodes")
    assert episode["title"] == "ep" and "speaker" not in episode


def test_what_has_no_text_of_its_own_is_said(tmp_path: Path) -> None:
    ledger = Ledger()
    assert read(tmp_path, "threads_page", ledger) == []
    assert ledger.left_out == {NO_TEXT_OF_ITS_OWN: 1}
