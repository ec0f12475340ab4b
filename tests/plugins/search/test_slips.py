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
        "recieps": ["recipes"],
        "boks": ["book", "books", "bosk"],
        "vegas": [],
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
    library.find("where is Mushroms")  # may be a name
    assert library.embedder.texts[-1] == "where is Mushroms"


def test_a_word_that_some_memory_has_was_meant(library: SearchHarness) -> None:
    library.add("Dried mushrooms keep for a year.")
    own = library.add("My cat is called mushroms.")
    assert library.ids("mushroms", search_type="bm25") == [own]


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
        assert Speller({"xy", "naive", "a" * 32, "a"}).meant(text) == {}


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
    assert known in speller.meant(known + "x") and known not in speller.meant("planxxer")
    assert Speller(()).meant("planter") == {}
