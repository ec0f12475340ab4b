"""Everyday statements, over HTTP without a language model: each is kept word for word, and what it
says is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.inference import MiniLmEmbedder
from tests.support.in_process import InProcess, in_process

Claims = set[tuple[str, str, str]]
SAID_AT, LATER = "2024-03-01T10:00:00Z", "2024-06-10T10:00:00Z"
# What is said -> what holds then, and what holds no more.
KNOWN: dict[str, tuple[Claims, Claims]] = {
    "My dentist is Dr. Okafor.": ({("Ada", "dentist", "Dr. Okafor")}, set()),
    "I've been vegetarian since 2019.": ({("Ada", "is", "vegetarian")}, set()),
    "We adopted a beagle named Biscuit last spring.": ({("Ada", "has_pet", "Biscuit")}, set()),
    "I moved from Lisbon to Oslo.": (
        {("Ada", "lives_in", "Oslo")},
        {("Ada", "lives_in", "Lisbon")},
    ),
    "My favourite colour is now orange, not green any more.": (
        {("Ada", "favorite_colour", "orange")},
        set(),
    ),
    "I quit smoking.": (set(), {("Ada", "habit", "smoking")}),
    "We sold the car.": (set(), {("Ada", "owns", "car")}),
    "I'm allergic to peanuts.": ({("Ada", "allergic_to", "peanuts")}, set()),
    "My sister Ana lives in Porto.": (
        {("Ada", "sister", "Ana"), ("Ana", "lives_in", "Porto")},
        set(),
    ),
    "I work as a nurse in Dublin.": (
        {("Ada", "works_as", "nurse"), ("Ada", "works_in", "Dublin")},
        set(),
    ),
    "I'm a nurse at St Mary's hospital in Dublin.": (
        {
            ("Ada", "works_as", "nurse"),
            ("Ada", "works_at", "St Mary's hospital"),
            ("Ada", "works_in", "Dublin"),
        },
        set(),
    ),
    "Our cat Milo passed away.": (set(), {("Ada", "has_pet", "Milo")}),
    "My daughter plays the violin.": ({("Ada's daughter", "plays", "violin")}, set()),
    "I'm learning Japanese.": ({("Ada", "learns", "Japanese")}, set()),
    "I have two kids, Tom and Lily.": ({("Ada", "child", "Tom"), ("Ada", "child", "Lily")}, set()),
    "My boss is called Marta.": ({("Ada", "boss", "Marta")}, set()),
}
ENDED = [
    ("I live in Lisbon.", "I moved from Lisbon to Oslo.", ("Ada", "lives_in", "Lisbon")),
    (
        "My favourite colour is green.",
        "My favourite colour is now orange, not green any more.",
        ("Ada", "favorite_colour", "green"),
    ),
    ("I smoke a pack a day.", "I quit smoking.", ("Ada", "smoke", "pack")),
    ("We have a car.", "We sold the car.", ("Ada", "has", "car")),
    ("We have a cat called Milo.", "Our cat Milo passed away.", ("Ada", "has_pet", "Milo")),
    ("We have a dog named Rex.", "Our old dog Rex died in May.", ("Ada", "has_pet", "Rex")),
]
FOREIGN = ("我妹妹住在成都，她是医生。", "我对花生过敏。", "我们上个月搬到了杭州。")


ALWAYS = ["1900-01-01T00:00:00Z", "2100-01-01T00:00:00Z"]


class Account:
    """Somebody who says things over HTTP."""

    def __init__(self, service: InProcess, number: int):
        self.service, self.token = service, service.register(f"ada{number}@example.com")

    def hear(self, text: str, at: str = SAID_AT) -> dict[str, Any]:
        """The result of its job."""
        said = [{"role": "user", "name": "Ada", "content": text}]
        return self.service.ingested({"messages": said, "occurred_at": at}, who=self.token)

    def contents(self) -> list[str]:
        answer = self.service.request("GET", "/v1/memories?limit=100", who=self.token)
        return [memory["content"] for memory in answer.json()["items"]]

    def claims(self, *of: str, current: bool) -> Claims:
        """What the graph says of these: what holds, or what has ended."""
        found: Claims = set()
        for entity in of:
            answer = self.service.request(
                "POST",
                "/v1/knowledge-graph/query",
                {"entity": entity, "between": ALWAYS},
                who=self.token,
            )
            assert answer.status_code in (200, 404), answer.text
            if answer.status_code == 200:
                found |= {
                    (each["source"]["name"], each["type"], each["target"]["name"])
                    for each in answer.json()["relationships"]
                    if (each["valid_to"] is None) == current
                }
        return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    embedder = MiniLmEmbedder(tmp_path_factory.mktemp("models"), timeout_seconds=120)
    with in_process(tmp_path_factory.mktemp("everyday"), embedder=embedder) as service:
        yield service


NUMBERS = itertools.count()


@pytest.fixture
def ada(service: InProcess) -> Account:
    return Account(service, next(NUMBERS))


@pytest.mark.parametrize("text", KNOWN)
def test_what_is_said_any_day_is_kept_and_known(ada: Account, text: str) -> None:
    holds, over = KNOWN[text]
    assert not any(ada.hear(text)["statements"]["left_out"].values())
    assert text in ada.contents()
    names = {"Ada", *(name for name, _, _ in holds | over)}
    current, ended = ada.claims(*names, current=True), ada.claims(*names, current=False)
    assert (holds - current, over - ended, over & current) == (set(), set(), set()), current


def test_a_plan_is_known_with_its_time(ada: Account) -> None:
    result = ada.hear("We're flying to Rome in June.")
    assert (result["facts_extracted"], ada.contents()) == (1, ["We're flying to Rome in June."])
    assert not ada.claims("Ada", current=True), "it is no habit"


@pytest.mark.parametrize("text", FOREIGN)
def test_what_is_said_in_another_language_is_kept(ada: Account, text: str) -> None:
    ada.hear(text)
    assert ada.contents() == [text]


def test_names_in_another_language_are_mentioned(ada: Account) -> None:
    ada.hear(FOREIGN[0])
    answer = ada.service.request("GET", "/v1/knowledge-graph/entities", who=ada.token)
    assert ("成都", "place") in {(each["name"], each["type"]) for each in answer.json()["items"]}
    body = {"query": "成都"}
    found = ada.service.request("POST", "/v1/search/graph", body, who=ada.token).json()["results"]
    assert [memory["content"] for memory in found] == [FOREIGN[0]]


@pytest.mark.parametrize(("first", "then", "over"), ENDED)
def test_what_is_over_is_known_to_have_been(
    ada: Account, first: str, then: str, over: tuple[str, str, str]
) -> None:
    ada.hear(first)
    assert over in ada.claims("Ada", current=True)
    ada.hear(then, LATER)
    assert over in ada.claims("Ada", current=False)
    assert over not in ada.claims("Ada", current=True)
