"""Slips of the fingers in a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.text import Speller
from tests.support.search_harness import SearchHarness


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    harness.embedder.known_spellings = {
        "mushroms": ["mushrooms"],
        "Mushroms": ["mushrooms"],
        "recieps": ["recipes"],
        "boks": ["book", "books", "bosk"],
        "vegas": [],
        "Melaqnie": [],
        "asistant": [],
        "penicilin": [],
        "Jnue": [],
        "Satruday": [],
    }
    yield harness
    harness.close()


def test_a_slip_finds_the_word_that_was_meant(library: SearchHarness) -> None:
    wanted = library.add("Dried mushrooms keep for a year.")
    library.add("The soup needs more salt.")
    for kind in ("hybrid", "bm25"):
        assert library.ids("mushroms", search_type=kind)[0] == wanted
    library.find("where are the mushroms")
    assert library.embedder.texts[-1] == "where are the mushrooms"


def test_with_a_capital_it_may_be_a_name_unless_some_memory_has_what_is_meant(
    library: SearchHarness,
) -> None:
    library.add("The soup needs more salt.")
    for has_it in (False, True):
        library.find("where is Mushroms")
        meant = "mushrooms" if has_it else "Mushroms"
        assert library.embedder.texts[-1] == f"where is {meant}"
        library.add("Dried mushrooms keep for a year.")


def test_a_word_that_some_memory_has_was_meant(library: SearchHarness) -> None:
    library.add("Dried mushrooms keep for a year.")
    own = library.add("My cat is called mushroms.")
    assert library.ids("mushroms", search_type="bm25") == [own]


@pytest.mark.parametrize("word", ["40235", "r40235"])
def test_what_has_a_digit_is_no_slip(library: SearchHarness, word: str) -> None:
    library.embedder.known_spellings[word] = ["4023"]
    library.add("The meeting is in 4023.")
    library.find(f"where is {word}")
    assert library.embedder.texts[-1] == f"where is {word}"


def test_a_name_that_nobody_mentioned_is_taken_for_no_other_name(library: SearchHarness) -> None:
    town = library.add("The harbour of Brackqxwick freezes.")
    assert library.ids("brackqxwich", search_type="bm25") == [town]
    assert library.ids("Brackqxwich", search_type="bm25") == []


def test_beside_a_speakers_name_another_one_is_known_by_a_slip(library: SearchHarness) -> None:
    library.add("I am off to the lake.", speaker="Melanie")
    library.add("I was there as well.", speaker="Jonas")
    found = library.find("Did Jonas see Melaqnie?")
    assert set(found["query_entities"]) == {"Jonas", "Melanie"}


def test_of_several_spellings_the_one_that_most_memories_have_counts(
    library: SearchHarness,
) -> None:
    library.add("A bosk is a small wood.")
    most = [library.add(f"Books, shelf {number}.") for number in range(3)]
    assert set(library.ids("boks", search_type="bm25")) == set(most)


def test_a_word_that_is_known_or_has_no_known_spelling_stays(library: SearchHarness) -> None:
    library.add("We drove to Vegas with recipes.")
    assert library.find("vegan", search_type="bm25")["no_match"]
    assert library.find("recipesss", search_type="bm25")["no_match"]


def test_a_speaker_is_known_by_a_name_with_a_slip(library: SearchHarness) -> None:
    said = {who: library.add("I painted a lake.", speaker=who) for who in ("Caroline", "Melanie")}
    library.add("I am here to help.", speaker="assistant")
    for query in ("What did Melaqnie paint?", "what is Melaqnie's painting"):
        answer = library.find(query)
        assert answer["query_entities"] == ["Melanie"]
        assert answer["evidence_ids"][0] == said["Melanie"]
        assert "Mel" not in library.embedder.texts[-1]
    assert library.find("What did Melanie paint?")["query_entities"] == ["Melanie"]
    assert library.find("What did the asistant paint?")["query_entities"] == []


@pytest.mark.parametrize("slip", ["Melanei", "Melane", "Melaniee", "Melanje", "Mealnie"])
def test_a_speaker_is_known_by_any_kind_of_slip(library: SearchHarness, slip: str) -> None:
    """Letters swapped, one left out, one too many, a wrong one; whoever else has spoken."""
    library.embedder.known_spellings[slip] = []
    library.add("I painted a lake, said Melanie.", speaker="Melanie Quist")
    library.add("I painted a hill.", speaker="Marlowe Quist")
    assert library.find(f"What did {slip} paint?")["query_entities"] == ["Melanie"]


def test_a_speaker_whose_memories_are_gone_is_known_no_more(library: SearchHarness) -> None:
    gone = library.add("I painted a lake.", speaker="Melanie")
    library.add("I painted a hill.", speaker="Tobias")
    assert library.find("What did Melaqnie paint?")["query_entities"] == ["Melanie"]
    assert library("memories.delete", who=library.me, id=gone).status == 200
    assert library.find("What did Melaqnie paint?")["query_entities"] == []


def test_what_the_model_never_met_is_looked_for_among_the_memories_words(
    library: SearchHarness,
) -> None:
    wanted = library.add("Penicillin makes me ill.")
    library.add("The soup needs more salt.")
    assert library.ids("penicilin", search_type="bm25") == [wanted]
    library.find("Is penicilin bad for me?")
    assert library.embedder.texts[-1] == "Is penicillin bad for me?"


def test_a_month_with_a_slip_is_the_month(library: SearchHarness) -> None:
    told = [
        library.add("We went to the lake.", occurred_at=f"2026-{month:02}-10T12:00:00Z")
        for month in (5, 6, 7)
    ]
    asked = {"reference_date": "2026-09-01T12:00:00Z", "explain": True}
    assert library.find("When were we at the lake in Jnue?", **asked)["evidence_ids"][0] == told[1]
    assert "june" in library.embedder.texts[-1]
    library.find("Where were we on Satruday?")
    assert "saturday" in library.embedder.texts[-1]


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("recieps", "recipes"),
        ("alergic", "allergic"),
        ("Mushroms", "mushrooms"),
        ("paintt", "paint"),
        ("harbor", "harbour"),
    ],
)
def test_every_single_slip_is_undone(slip: str, meant: str) -> None:
    speller = Speller({meant, slip.lower(), "unlike", "harbourmaster"})
    assert list(speller.meant(slip)) == [meant]


def test_what_is_no_word_of_the_alphabet_has_no_spellings() -> None:
    for text in ("x9y", "房租多少", "naïve", "a" * 33, ""):
        speller = Speller({"xy", "naive", "a" * 32, "a"})
        assert speller.meant(text) == speller.undone(text) == {}


def test_every_slip_of_every_kind_at_every_place_is_undone() -> None:
    known = "planter"
    speller = Speller({known, "plant", "plain", "ranter"})
    for at in range(1, len(known)):
        for slip in (
            known[:at] + known[at + 1 :],
            known[:at] + "x" + known[at:],
            known[:at] + "x" + known[at + 1 :],
            known[:at] + known[at : at + 2][::-1] + known[at + 2 :],
        ):
            assert slip == known or known in speller.meant(slip)
        assert slip == known or known in speller.undone(slip)
    assert known in speller.meant(known + "x") and known not in speller.meant("planxxer")
    assert Speller(()).meant("planter") == {}
