"""Whom a query is about: names as people type them, and the user and the assistant of a chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.search.limits import WORDS_LOOKED_AT_MAX
from plugins.search.names import NAME_COMMON_MIN, role_asked
from storage.text import read_query
from tests.support.search_harness import SearchHarness

REPLY = "Soup is a fine idea. Here are allergies and soup ideas for you to think about. " * 8


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    yield harness
    harness.close()


def chat(library: SearchHarness, **names: str) -> dict[str, str]:
    """A question of the user and a long reply that has all of its words; -> id by role."""
    said = {"user": "I have allergies, can you suggest a soup?", "assistant": REPLY}
    messages = [
        {"role": role, "content": text} | ({"name": names[role]} if role in names else {})
        for role, text in said.items()
    ]
    answer = library("memories.create", {"messages": messages}, who=library.me)
    return dict(zip(said, answer.body["memory_ids"], strict=True))


@pytest.mark.parametrize("names", [{}, {"user": "Ada", "assistant": "Helper"}])
def test_my_things_are_what_the_user_said_and_yours_what_the_assistant_did(
    library: SearchHarness, names: dict[str, str]
) -> None:
    ids = chat(library, **names)
    assert library.ids("Which allergies do I have, and which soup?")[0] == ids["user"]
    assert library.ids("Which soup ideas did you have for allergies?")[0] == ids["assistant"]
    assert library.ids("which soup for my allergies")[0] == ids["user"]


def test_a_role_is_kept_shown_and_filtered_by(library: SearchHarness) -> None:
    ids = chat(library, user="Ada", assistant="Helper")
    noted = library.add("A note about soup.")
    shown = {
        memory["id"]: (memory["role"], memory["speaker"])
        for memory in library("memories.list", {}, who=library.me).body["items"]
    }
    assert shown == {
        ids["user"]: ("user", "Ada"),
        ids["assistant"]: ("assistant", "Helper"),
        noted: (None, None),
    }
    for role, found in ids.items():
        assert library.ids("soup", filters={"role": {"eq": role}}) == [found]
    told = library.add("Told about soup.", role="tool")
    assert library.ids("soup", filters={"role": {"eq": "tool"}}) == [told]


def test_a_role_that_is_told_counts_for_more_than_a_speaker_called_by_another(
    library: SearchHarness,
) -> None:
    told = library.add("A soup of leeks.", role="assistant", speaker="user")
    mine = library.add("A soup of beans.", speaker="user")
    assert library.ids("Which soup did I have?") == [mine, told]
    assert library.ids("Which soup did you suggest?") == [told, mine]


def test_a_name_or_a_slip_far_down_a_long_query_is_not_looked_for(library: SearchHarness) -> None:
    library.add("I painted the fence.", speaker="Melanie")
    words = [f"fence{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(WORDS_LOOKED_AT_MAX)]
    assert library.find(" ".join([*words[1:], "melanie"]))["query_entities"] == ["melanie"]
    assert library.find(" ".join([*words, "melanie"]))["query_entities"] == []


def test_nobody_is_told_to_have_asked_the_wrong_role(library: SearchHarness) -> None:
    chat(library)
    answer = library.find("Which soup ideas do I have?")
    assert answer["query_entities"] == [] and answer["abstain_reason"] != "subject_conflict"


@pytest.mark.parametrize(
    ("query", "role"),
    [
        ("What is my dentist called?", "user"),
        ("where did we go on holiday", "user"),
        ("How long have I been vegetarian?", "user"),
        ("What did you recommend for the garden?", "assistant"),
        ("You told me about a museum, which one?", "assistant"),
        ("Which of the books you suggested is the shortest?", "assistant"),
        ("Remind me of the third exercise in the list", "assistant"),
        ("Remind me where I parked", "user"),
        ("In our last conversation, which recipe was it?", "assistant"),
        ("Who designed the lighthouse?", None),
        ("Can you find the lighthouse?", None),
        ("Index of the mines", None),
        ("Dove sono i libri che ho comprato?", None),
        ("¿Qué me dijo la doctora de la rodilla?", None),
        ("Que me reste-t-il à payer pour la voiture ?", None),
    ],
)
def test_pronouns_tell_who_said_it(query: str, role: str | None) -> None:
    assert role_asked(read_query(query)) == role


def test_a_speaker_is_known_in_small_letters_unless_the_name_is_a_word(
    library: SearchHarness,
) -> None:
    painted = library.add("I painted the fence.", speaker="Melanie Grant")
    library.add("I painted the fence too.", speaker="Will")
    library.add("The forecast says rain on Sunday.", speaker="Rose")
    answer = library.find("what did melanie paint")
    assert answer["query_entities"] == ["melanie"] and answer["evidence_ids"][0] == painted
    assert library.find("what will melanie paint")["query_entities"] == ["melanie"]
    assert library.find("Will it rain on Sunday?")["query_entities"] == []
    assert library.find("will it rain")["query_entities"] == []
    assert library.find("a rose of any kind")["query_entities"] == []
    assert library.find("What did Will paint?")["query_entities"] == ["Will"]


def test_names_of_others_are_no_matter_of_this_search(library: SearchHarness) -> None:
    """A capitalised word is left out of what is embedded for what the search itself holds: not for
    another user's memories, and not where it is known who speaks.
    """
    library.add("We use Redis for queues.", user_id="ann")
    question = "What are we using Redis for?"

    def embedded(**scope: str) -> str:
        library.find(question, **scope)
        return library.embedder.texts[-1]

    assert "Redis" in embedded(user_id="ann")
    for number in range(NAME_COMMON_MIN):
        library.add(f"Redis, number {number}", user_id="bob")
        library.add(f"Redis, note {number}", user_id="cyd", speaker="Cyd")
    library.embedder.texts.clear()
    assert "Redis" not in embedded(user_id="bob")
    assert "Redis" in embedded(user_id="cyd")
    library.find("What are we using Redis for, then?", user_id="ann")
    assert "Redis" in library.embedder.texts[-1]
