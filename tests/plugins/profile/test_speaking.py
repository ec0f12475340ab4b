"""Whose profile it is, where several speak under one user_id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import serve_app
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

pytestmark = pytest.mark.usefixtures("without_delay")

Line = tuple[str | None, str]
BEN = ("Ben", "I live in Porto. I am allergic to nuts. My wife is Carla.")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(WordEmbedder()))
    yield harness
    harness.close()


def known(harness: ShardHarness, operation: str, user: str, *lines: Line) -> set[tuple[str, str]]:
    """What the profile of a user has after these lines."""
    me = harness.register()
    messages = [
        {"role": "user", "content": text, **({} if name is None else {"name": name})}
        for name, text in lines
    ]
    harness(operation, {"messages": messages, "user_id": user}, who=me)
    harness.settle()
    shown = harness("profile.get", who=me, query={"user_id": user}).body
    return {(fact["key"], fact["value"]) for fact in (*shown["static"], *shown["dynamic"])}


@pytest.mark.parametrize("operation", ["memories.process", "memories.create"])
@pytest.mark.parametrize(
    ("user", "name"),
    [("ada", "Ada"), ("ada-42", "Ada"), ("ada", "Ada Lovelace"), ("u-17", None), ("ada", None)],
)
def test_the_user_is_who_goes_by_the_user_id_or_by_none(
    harness: ShardHarness, operation: str, user: str, name: str | None
) -> None:
    found = known(
        harness, operation, user, (name, "I live in Lisbon. I work at Siemens."), BEN,
        (name, "My sister is Eva."),
    )  # fmt: skip
    assert found == {("lives_in", "Lisbon"), ("works_at", "Siemens"), ("sister", "Eva")}


@pytest.mark.parametrize("operation", ["memories.process", "memories.create"])
def test_of_several_other_names_none_is_the_user(harness: ShardHarness, operation: str) -> None:
    ada = ("Ada Smith", "I live in Lisbon.")
    assert known(harness, operation, "u-17", ada, ("Ben Smith", BEN[1])) == set()


@pytest.mark.parametrize("operation", ["memories.process", "memories.create"])
@pytest.mark.parametrize("name", ["Ada", "Ada Lovelace", "42"])
def test_who_speaks_alone_is_the_user(harness: ShardHarness, operation: str, name: str) -> None:
    lines = ((name, "I live in Lisbon."), (name, "I work at Siemens."))
    found = known(harness, operation, "u-17", *lines)
    assert found == {("lives_in", "Lisbon"), ("works_at", "Siemens")}


def test_what_others_say_of_the_user_by_name_counts(harness: ShardHarness) -> None:
    said = (("Ada", "I like tea."), ("Ben", "Ada lives in Lisbon."))
    assert ("lives_in", "Lisbon") in known(harness, "memories.create", "ada", *said)
