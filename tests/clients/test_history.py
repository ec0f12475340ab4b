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
