"""The history of a conversation, kept by a real service."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mneme_client import Entry, History, Mneme

from tests.support.served import Served


@pytest.fixture(scope="module")
def client(service: Served) -> Iterator[Mneme]:
    with Mneme(base_url=service.url, api_key=service.register()) as client:
        yield client


@pytest.fixture
def history(client: Mneme) -> History:
    return History(client, uuid.uuid4().hex, user_id="ada")


def said(*texts: str) -> list[Entry]:
    return [Entry({"role": "user", "content": text}, text, "user") for text in texts]


def contents(history: History, limit: int | None = None) -> list[str]:
    return [item["content"] for item in history.items(limit)]


def test_objects_come_back_as_they_were_in_their_order(history: History) -> None:
    items: list[dict[str, Any]] = [
        {"b": 1, "a": [None, True, 1.5, {"": "ö🥜"}], "a.b": {}},
        {},
        {"output": "x" * 250_000, "type": "long"},
        {"output": "ö" * 8_000},
        {"last": " " * 100_000},
    ]
    history.add(Entry(item) for item in items)
    assert history.items() == items
    assert list(history.items()[0]) == ["b", "a", "a.b"]


def test_the_latest_are_given_oldest_first(history: History) -> None:
    for start in (0, 120):
        history.add(said(*(str(number) for number in range(start, start + 120))))
    assert contents(history) == [str(number) for number in range(240)]
    assert contents(history, 3) == ["237", "238", "239"]
    assert contents(history, 150)[0] == "90" and contents(history, 0) == []


def test_the_last_is_popped_whole(history: History) -> None:
    history.add([*said("a"), Entry({"content": "b" * 200_000})])
    assert history.pop() == {"content": "b" * 200_000}
    assert contents(history) == ["a"]
    assert history.pop() == {"role": "user", "content": "a"}
    assert history.pop() is None and history.items() == []


def test_each_of_several_callers_pops_another(history: History) -> None:
    history.add(said(*"abcdefgh"))
    with ThreadPoolExecutor(4) as threads:
        popped = [
            item["content"] for item in threads.map(lambda _: history.pop(), range(8)) if item
        ]
    assert sorted(popped) == list("abcdefgh") and history.pop() is None


def test_what_is_cleared_is_gone_and_may_begin_anew(history: History) -> None:
    history.add(said("a", "b"))
    history.clear()
    assert history.items() == []
    history.add(said("c"))
    assert contents(history) == ["c"]


def test_histories_are_apart(client: Mneme, history: History) -> None:
    name = uuid.uuid4().hex
    ada, ben = (History(client, name, user_id=user) for user in ("ada", "ben"))
    ada.add(said("a"))
    assert ben.items() == [] and history.items() == [] and contents(ada) == ["a"]
    client.memories.create(content="No object of it.", session_id=name, user_id="ada")
    assert contents(History(client, name, user_id="ada")) == ["a"]


def test_a_history_of_nobody_is_one_of_its_own(client: Mneme) -> None:
    """As is that of no agent, whatever is done to it."""
    name = uuid.uuid4().hex
    ada, agent = History(client, name, user_id="ada"), History(client, name, agent_id="a1")
    nobody, both = History(client, name), History(client, name, user_id="ada", agent_id="a1")
    for history, text in ((nobody, "n"), (ada, "a"), (agent, "g"), (both, "b")):
        history.add(said(text))
    for history, text in ((nobody, "n"), (ada, "a"), (agent, "g"), (both, "b")):
        assert contents(history) == contents(history, 1) == [text]
    assert nobody.pop() == {"role": "user", "content": "n"} and nobody.pop() is None
    nobody.add(said("n"))
    nobody.clear()
    ada.clear()
    assert contents(nobody) == contents(ada) == []
    assert contents(agent) == ["g"] and contents(both) == ["b"]


def test_a_history_of_no_collection_is_the_default_one_s(client: Mneme) -> None:
    name = uuid.uuid4().hex
    other = client.collections.create(name=name)["id"]
    here, there = History(client, name), History(client, name, collection_id=other)
    there.add(said("b"))
    assert here.items() == [] and here.pop() is None
    here.clear()
    assert contents(there) == ["b"]


def test_what_an_older_version_kept_is_read_popped_and_cleared(client: Mneme) -> None:
    name = uuid.uuid4().hex
    where: Any = {"session_id": name, "tags": ["history"]}
    kept: list[Any] = [{"item": {"n": 1}}, {"item": {}}]
    kept += [{"part": 0, "parts": 2}, {"part": 1, "parts": 2}]
    texts = ["one", "{}", '{"n": ', "3}"]
    client.memories.create_batch(
        [
            {"content": text, "metadata": {"history": told}, **where}
            for text, told in zip(texts, kept, strict=True)
        ]
    )
    history = History(client, name)
    history.add([Entry({"n": 4})])
    assert history.items() == [{"n": 1}, {}, {"n": 3}, {"n": 4}]
    assert [history.pop(), history.pop()] == [{"n": 4}, {"n": 3}]
    history.clear()
    assert history.items() == []


def test_memories_of_others_with_its_tag_are_no_part_of_it(client: Mneme) -> None:
    name = uuid.uuid4().hex
    foreign: Any = [
        {"content": f"my history lesson {number}", "tags": ["history"], "metadata": metadata}
        for number, metadata in enumerate(
            ({}, {"history": "old"}, {"history": {"item": "x"}}, {"history": {"part": 0}})
        )
    ]
    client.memories.create_batch([{**memory, "session_id": name} for memory in foreign])
    history = History(client, name)
    history.add(said("a", "b"))
    assert contents(history) == ["a", "b"] and contents(history, 1) == ["b"]
    assert history.pop() == {"role": "user", "content": "b"}
    history.clear()
    assert history.items() == [] and history.pop() is None
    left = {memory["content"] for memory in client.memories.list(session_id=name)}
    assert left == {memory["content"] for memory in foreign}


def test_a_part_of_white_space_a_deep_object_and_a_large_number_come_back(
    history: History,
) -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(200):
        inner["a"] = inner = {}
    items = [{"x": "x" * 89_000 + " " * 200_000 + "|y"}, deep, {"n": 2**200, "m": [-(2**64)]}]
    items += [{"n": [2**63 - 1, -(2**63)]}, {"x": "\r\n\t \x00\ufeff\u2028" * 20_000}]
    history.add(Entry(item) for item in items)
    assert history.items() == items
    assert history.pop() == items[-1]


def test_an_object_of_which_a_part_was_deleted_is_passed_over(client: Mneme) -> None:
    name = uuid.uuid4().hex
    history = History(client, name)
    history.add([*said("a"), Entry({"x": "y" * 200_000}), *said("b"), Entry({"z": "y" * 200_000})])
    for number in (0, 2):
        memory = next(
            memory
            for memory in client.memories.list(session_id=name)
            if memory["metadata"]["history"].get("part") == number
        )
        client.memories.delete(memory["id"])
    assert [sorted(item) for item in history.items()] == [
        ["content", "role"],
        ["x"],
        ["content", "role"],
    ]


def test_an_id_that_is_an_empty_text_is_refused(client: Mneme) -> None:
    for empty in ("", " "):
        with pytest.raises(ValueError, match="user_id is an empty text"):
            History(client, "monday", user_id=empty)
        with pytest.raises(ValueError, match="session_id is an empty text"):
            History(client, empty)
    with pytest.raises(ValueError, match="0 or more"):
        History(client, "monday").items(-1)


def test_searches_find_what_was_said(client: Mneme) -> None:
    user = uuid.uuid4().hex
    History(client, "monday", user_id=user).add(said("I am allergic to peanuts."))
    (memory,) = client.memories.list(user_id=user)
    client.wait_ready(memory)
    (hit,) = client.search("What am I allergic to?", user_id=user)["results"]
    assert hit["content"] == "I am allergic to peanuts." and hit["session_id"] == "monday"
    assert memory["role"] == "user"


@pytest.mark.parametrize(
    ("item", "error"),
    [({"n": math.nan}, ValueError), ({"s": {1}}, TypeError), ({"x": "y" * 9_000_000}, ValueError)],
)
def test_what_is_no_json_or_too_large_is_refused_before_anything_is_stored(
    history: History, item: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        history.add([*said("a"), Entry(item)])
    assert history.items() == []
