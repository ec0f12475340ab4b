"""Queries that say nothing, over HTTP with the built-in model, which reads no script but the Latin
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.inference import MiniLmEmbedder
from tests.support.in_process import InProcess

ANY_SCRIPT = (
    "I keep the vase in the cellar.",
    "Anna works at the bank.",
    "القطة تنام على الأريكة طوال اليوم.",
    "החתול ישן על הספה כל היום.",
    "猫整天睡在沙发上。",
    "猫は一日中ソファで寝ている。",
    "Café Müller in Zürich 🍰 has the best cake.",
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    directory = tmp_path_factory.mktemp("nothing")
    embedder = MiniLmEmbedder(Path(tmp_path_factory.mktemp("models")), timeout_seconds=120)
    service = InProcess(directory, embedder=embedder)
    yield service
    service.close()


@pytest.fixture(scope="module")
def any_script(service: InProcess) -> str:
    return account(service, "any@example.com", ANY_SCRIPT)


def account(service: InProcess, email: str, contents: tuple[str, ...]) -> str:
    who = service.register(email)
    for content in contents:
        body = {"content": content, "wait_for_index": True}
        assert service.request("POST", "/v1/memories", body, who=who).status_code == 201
    return who


def ask(service: InProcess, who: str, query: str, path: str = "", **asked: Any) -> dict[str, Any]:
    answer = service.request("POST", f"/v1/search{path}", {"query": query, **asked}, who=who)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "query", ["\u200b", "?", "...", "?! -", "&", "🍰", "🎉", "the", "The", "a", "of", "why", "und"]
)
def test_a_query_that_says_nothing_has_no_match(
    service: InProcess, any_script: str, query: str
) -> None:
    for path, asked in (("", {}), ("", {"search_type": "vector"}), ("/advanced", {})):
        answer = ask(service, any_script, query, path, **asked)
        assert answer["no_match"] and not answer["results"] and answer["query_confidence"] == 0
    block = service.request("POST", "/v1/context", {"query": query}, who=any_script).json()
    assert block["no_match"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("猫", {ANY_SCRIPT[4], ANY_SCRIPT[5]}),
        ("ソファ", {ANY_SCRIPT[5]}),
        ("القطة", {ANY_SCRIPT[2]}),
        ("🍰 cake", {ANY_SCRIPT[6]}),
        ("the bank", {ANY_SCRIPT[1]}),
    ],
)
def test_a_word_in_any_script_is_found(
    service: InProcess, any_script: str, query: str, found: set[str]
) -> None:
    assert {hit["content"] for hit in ask(service, any_script, query)["results"]} == found
