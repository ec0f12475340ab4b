"""What a text mentions: names and owned things are found, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from plugins.graph.mentions import Mention, mentions_of
from runtime.inference import MiniLmEmbedder

Read = Callable[[str], list[Mention]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    embedder = MiniLmEmbedder(tmp_path_factory.mktemp("models"), timeout_seconds=120)
    with asyncio.Runner() as runner:

        def mentions(text: str) -> list[Mention]:
            (reading,) = runner.run(embedder.read_language([text]))
            return mentions_of(text, reading, "Mira")

        yield mentions
        runner.run(embedder.close())


NAMES = {
    "The Blue Heron lighthouse was designed by Ines Moreau in 1902.": {
        "Blue Heron lighthouse": "place",
        "Ines Moreau": "person",
    },
    "We met Priya and Tomas at the Kettle Club in Rotterdam.": {
        "Priya": "person",
        "Tomas": "person",
        "Kettle Club": "place",
        "Rotterdam": "place",
    },
    'I am reading "The Salt Roads of Winter" at the moment.': {"The Salt Roads of Winter": "work"},
    "My neighbour's van broke down on my way to work.": {
        "Mira's neighbour": "person",
        "Mira's neighbour's van": "object",
    },
    "My dog sleeps on my violin case.": {"Mira's dog": "animal", "Mira's violin case": "object"},
}


@pytest.mark.parametrize("text", NAMES)
def test_names_and_owned_things_are_mentions(read: Read, text: str) -> None:
    assert {each.name: each.kind for each in read(text) if each.is_sure} == NAMES[text]


@pytest.mark.parametrize(
    "text",
    [
        "My sister Ana lives by the sea.",
        "Ana, my sister, is a nurse.",
        "My sister is Ana.",
        "my sister's name is Ana",
    ],
)
def test_whoever_is_named_beside_what_is_owned_is_the_same(read: Read, text: str) -> None:
    assert [(each.name, each.aliases) for each in read(text)] == [("Ana", ("Mira's sister",))]


@pytest.mark.parametrize(
    "text",
    [
        "Unconditional love is so important.",
        "It's a reminder of my roots and my strength.",
        "Yoga helps me with my life, my mind and my back.",
        "That was on Monday the 3rd of May, wasn't it? Wow!",
        "Life is about happiness, and Time flies.",
        "She told him that they would do it.",
        "THIS IS SO GREAT, I LOVE IT",
        "Our schools need our support and their teachers.",
        "Las hermanas viven en la casa.",
        "",
    ],
)
def test_what_is_no_entity_is_none(read: Read, text: str) -> None:
    assert [each for each in read(text) if each.is_sure] == []


def test_a_word_that_begins_a_sentence_may_be_any_word(read: Read) -> None:
    assert all(not each.is_sure for each in read("Pottery is great. Nature is, too."))


def test_nobody_s_own_things_are_nobody_s(read: Read) -> None:
    assert read("You should see your sister and her husband.") == []


def test_a_name_ends_with_its_sentence(read: Read) -> None:
    assert "Max. Losing" not in {
        each.name for each in read("I'm sorry about Max. Losing a pet hurts.")
    }
    assert "Dr. Lee" in {each.name for each in read("We asked Dr. Lee.")}


def test_whoever_is_spoken_to_is_not_what_is_spoken_of(read: Read) -> None:
    found = {each.name: each.aliases for each in read("I opened my own store, Tomas!")}
    assert found == {"Mira's store": (), "Tomas": ()}
