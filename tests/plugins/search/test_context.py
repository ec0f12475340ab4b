"""What is known of a question as one block: what it holds, how it is told, and that it fits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plugins.search.context import ContextBody, ContextReply
from plugins.search.layout import Line, Part, in_one_line, laid_out
from runtime.inference import count_tokens
from runtime.timestamps import iso
from tests.support.search_harness import SearchHarness

MONDAY = "2024-03-04T10:00:00Z"


class ContextHarness(SearchHarness):
    def said(self, content: str, speaker: str, session: str = "s", **fields: Any) -> str:
        return self.add(content, speaker=speaker, session_id=session, **fields)

    def block(self, query: str, **fields: Any) -> dict[str, Any]:
        answer = self("search.context", {"query": query, **fields}, who=self.me)
        assert answer.status == 200, answer
        body = answer.body
        ContextReply.model_validate(body)
        text = body["context"]
        text = text if isinstance(text, str) else json.dumps(text, separators=(",", ":"))
        assert body["tokens"] <= fields.get("token_budget", 1_500)
        assert abs(body["tokens"] - count_tokens(text)) <= 2
        shown = [each for section in body["sections"] for each in section["memory_ids"]]
        assert len(set(shown)) == len(shown) and set(shown) <= {
            each["memory_id"] for each in body["citations"]
        }
        return body


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[ContextHarness]:
    harness = ContextHarness(tmp_path)
    yield harness
    harness.close()


def test_notes_come_first_and_conversations_in_the_order_of_time(notebook: ContextHarness) -> None:
    late = notebook.said("My violin teacher moved.", "Ada", "b", occurred_at="2024-05-02T00:00:00Z")
    early = notebook.said("I bought a violin.", "Ada", "a", occurred_at="2024-03-04T00:00:00Z")
    note = notebook.add("Ada plays the violin.", occurred_at="2024-06-01T00:00:00Z")
    body = notebook.block("violin")
    assert [section["memory_ids"] for section in body["sections"]] == [[note], [early], [late]]
    assert body["context"].splitlines()[1:] == [
        "",
        "## Notes",
        "- [1] 2024-06-01: Ada plays the violin.",
        "",
        "## 2024-03-04",
        "- [2] Ada: I bought a violin.",
        "",
        "## 2024-05-02",
        "- [3] Ada: My violin teacher moved.",
    ]
    assert body["citations"][0] == {"marker": "1", "memory_id": note, "start": 0, "end": 21}
    assert set(body["evidence_ids"]) == {note, early, late} and not body["no_match"]


def test_a_turn_that_says_little_brings_what_it_answers(notebook: ContextHarness) -> None:
    before = notebook.said("Did the piano arrive on Friday after all?", "Bob")
    answer = notebook.said("Yes, with a squirrel!", "Ada")
    assert notebook.block("squirrel")["sections"][0]["memory_ids"] == [before, answer]


def test_what_stands_beside_is_in_scope_too(notebook: ContextHarness) -> None:
    notebook.said("Did the piano arrive on Friday after all?", "Bob", user_id="bob")
    answer = notebook.said("Yes, with a squirrel!", "Ada", user_id="ada")
    body = notebook.block("squirrel", user_id="ada")
    assert body["sections"][0]["memory_ids"] == [answer]


def test_what_says_the_same_is_one_line_that_cites_both(notebook: ContextHarness) -> None:
    ids = {
        notebook.add(text) for text in ("The cellar key hangs left.", "the cellar key hangs LEFT")
    }
    body = notebook.block("cellar key")
    assert body["context"].count("[1]") == 1 and "[2]" not in body["context"]
    assert {each["memory_id"] for each in body["citations"]} == ids
    assert {each["marker"] for each in body["citations"]} == {"1"}


def test_of_a_long_memory_the_passages_that_answer_are_shown(notebook: ContextHarness) -> None:
    filler = "The weather was mild and the meeting went on as these meetings do. " * 40
    content = f"{filler}The platypus is called Benedict. {filler}"
    memory = notebook.add(content)
    body = notebook.block("What is the platypus called?", token_budget=300)
    assert "Benedict" in body["context"]
    for cited in body["citations"]:
        assert cited["memory_id"] == memory
        shown = " ".join(content[cited["start"] : cited["end"]].split())
        assert shown and shown in body["context"]


def test_the_best_fit_into_a_small_budget(notebook: ContextHarness) -> None:
    for number in range(60):
        notebook.add(f"Roses grow in garden {number}, beside the {chr(97 + number % 26) * 5}.")
    best = notebook.add("Gardens: roses need gardens and gardens need roses.")
    small = notebook.block("roses in gardens", token_budget=100)
    assert best in small["sections"][0]["memory_ids"]
    large = notebook.block("roses in gardens", token_budget=1_000)
    shown = [len(each["sections"][0]["memory_ids"]) for each in (small, large)]
    assert 1 <= shown[0] < shown[1]


def test_nothing_known_is_an_empty_block(notebook: ContextHarness) -> None:
    for style, empty in (("markdown", ""), ("json", {})):
        body = notebook.block("squirrel", style=style)
        assert body["no_match"] and body["abstain_recommended"] and body["tokens"] == 0
        assert body["context"] == empty and body["sections"] == body["citations"] == []


def test_relative_times_say_which_day_they_mean(notebook: ContextHarness) -> None:
    notebook.said("I sold the boat yesterday, and last month the car.", "Ada", occurred_at=MONDAY)
    text = notebook.block("boat")["context"]
    assert "yesterday [2024-03-03], and last month [2024-02-01 to 2024-02-29] the car" in text


def test_the_past_is_told_as_it_was_known(notebook: ContextHarness) -> None:
    notebook.add("The boat is blue.")
    known = notebook.now_ms
    notebook.now_ms += 10_000
    notebook.add("The boat is red by now.")
    text = notebook.block("boat", as_of=iso(known))["context"]
    assert "blue" in text and "red" not in text


def test_a_bad_request_says_what_is_wrong(notebook: ContextHarness) -> None:
    for wrong in ({"token_budget": 10}, {"style": "html"}, {"query": " "}):
        with pytest.raises(ValidationError) as refused:
            ContextBody.model_validate({"query": "x", **wrong})
        assert refused.value.errors()[0]["loc"] == (next(iter(wrong)),)
    answer = notebook("search.context", {"query": "x", "filters": {"a": {"b": 1}}}, who=notebook.me)
    assert answer.status == 422


# --- telling it -----------------------------------------------------------------------------------


texts = st.text(max_size=60)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4), texts)
def test_no_text_leaves_its_place(said: list[tuple[str, str]], title: str) -> None:
    day = date(2024, 3, 4)
    lines = [
        Line(str(n), day, in_one_line(speaker, day) or None, in_one_line(text, day))
        for n, (speaker, text) in enumerate(said, 1)
    ]
    part = Part(in_one_line(title, day), day, lines)
    markdown, _ = laid_out([part], "markdown")
    assert len(str(markdown).splitlines()) == 3 + len(lines)
    assert len(re.findall(r"^- \[\d+\]", str(markdown), re.MULTILINE)) == len(lines)
    xml, _ = laid_out([part], "xml")
    printable = "".join(c for c in str(xml) if c in "\t\n" or 31 < ord(c) < 0xD800)
    assert len(ElementTree.fromstring(printable).findall("section/memory")) == len(lines)
    made, _ = laid_out([part], "json")
    assert [each["text"] for each in made["sections"][0]["memories"]] == [  # type: ignore[index]
        line.text for line in lines
    ]
