"""Search through a real shard: what is found, what is not, and what the answer says of itself."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.memories import MEMORY_WORDS
from plugins.search.names import NAME_COMMON_MIN
from runtime.inference import InferenceUnavailable, Models
from runtime.timestamps import iso
from storage.indexes import word_vectors
from tests.support.embedding import WordEmbedder
from tests.support.search_harness import SearchHarness, check
from tests.support.superseding import superseding

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    yield harness
    harness.close()


def test_a_memory_is_found_by_its_words_and_by_inflected_forms(library: SearchHarness) -> None:
    wanted = library.add("My bicycle was stolen in Utrecht.")
    library.add("The soup needs more salt.")
    assert library.ids("who stole bicycles in Utrecht")[0] == wanted


def test_an_acknowledged_write_is_in_the_next_search_and_a_deleted_one_is_not(
    library: SearchHarness,
) -> None:
    for i in range(20):
        memory = library.add(f"The code word number {i} is zebra{i}.")
        assert library.ids(f"zebra{i}") == [memory]
        assert library("memories.delete", who=library.me, id=memory).status == 200
        assert library.find(f"zebra{i}", search_type="bm25")["no_match"]


def test_a_changed_memory_is_found_by_its_new_words_only(library: SearchHarness) -> None:
    memory = library.add("We meet at the lighthouse.")
    library("memories.update", {"content": "We meet at the windmill."}, who=library.me, id=memory)
    assert library.ids("windmill") == [memory]
    assert library.find("lighthouse", search_type="bm25")["no_match"]
    library.reopen()
    assert library.ids("windmill") == [memory]
    assert library.find("lighthouse", search_type="bm25")["no_match"]


def test_an_account_of_many_memories_is_ranked_the_same_without_their_words_resident(
    library: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 30):
        library.add(f"On day {day} the {'red' if day % 3 else 'green'} kite flew over the harbour.")
    asked = ["the green kite over the harbour", "what flew on day 17"]
    store = library.shard.store

    def answers() -> list[list[tuple[str, float]]]:
        replies = [library.find(each)["results"] for each in asked]
        return [[(one["id"], one["score"]) for one in results] for results in replies]

    def resident() -> int:
        with store.snapshot() as snapshot:
            keys = [(MEMORY_WORDS.name, scope) for scope in snapshot.scopes()]
        held = [store.residents.peek(key) for key in keys]
        return sum(each.nbytes for each in held if each is not None)

    found = answers()
    assert resident()
    monkeypatch.setattr(word_vectors, "RESIDENT_DOCUMENTS_MAX", 20)
    assert answers() == found and not resident()


def test_nothing_is_padded_unless_asked_for_and_then_it_is_flagged(tmp_path: Path) -> None:
    library = SearchHarness(tmp_path, search={"cosine_min": 0.99, "clear_words_min": 0.99})
    library.add("The soup needs more salt.")
    answer = library.find("qwxyzzy flurbl")
    assert answer["no_match"] and answer["total"] == 0
    weak = library.find("qwxyzzy flurbl", include_low_confidence=True)
    assert [hit["low_confidence"] for hit in weak["results"]] == [True]
    assert weak["abstain_recommended"] and weak["grounding"]["status"] == "weak"
    library.close()


def test_another_account_finds_nothing_of_mine(library: SearchHarness) -> None:
    library.add("The treasure is buried under the old oak.")
    stranger = library.register("eve@example.com", "Eve")
    for kind in ("hybrid", "vector", "bm25"):
        assert library.find(
            "The treasure is buried under the old oak.", who=stranger, search_type=kind
        )["no_match"]


def test_an_empty_account_has_no_match(library: SearchHarness) -> None:
    for kind in ("hybrid", "vector", "bm25"):
        assert library.find("anything at all", search_type=kind)["no_match"]


def test_scopes_and_collections_are_walls(library: SearchHarness) -> None:
    other = library("collections.create", {"name": "work"}, who=library.me).body["id"]
    ours = library.add("The budget is ten thousand.", user_id="ann")
    theirs = library.add(
        "The budget is ten thousand.",
        user_id="bob",
        collection_id=other,
        session_id="s1",
        agent_id="a",
        run_id="r",
        app_id="p",
    )
    assert set(library.ids("budget")) == {ours, theirs}
    assert library.ids("budget", user_id="ann") == [ours]
    for field, value in (
        ("user_id", "bob"),
        ("collection_id", other),
        ("session_id", "s1"),
        ("agent_id", "a"),
        ("run_id", "r"),
        ("app_id", "p"),
    ):
        assert library.ids("budget", **{field: value}) == [theirs]
    assert library.find("budget", user_id="nobody")["no_match"]


def test_an_unknown_collection_is_404_and_a_foreign_one_403(library: SearchHarness) -> None:
    stranger = library.register("eve@example.com", "Eve")
    foreign = library("collections.create", {"name": "hers"}, who=stranger).body["id"]
    assert (
        library("search.search", {"query": "x", "collection_id": foreign}, who=library.me).status
        == 403
    )
    assert (
        library("search.search", {"query": "x", "collection_id": "col_nope"}, who=library.me).body[
            "code"
        ]
        == "collection_not_found"
    )


def test_a_query_of_words_that_nobody_knows_has_to_come_nearer(library: SearchHarness) -> None:
    """The test's embedder knows no word with "qx" in it; words that fall on one place of its
    vectors mean the same to it.
    """
    library.add("alpha beta gamma delta epsilon zeta")

    def meaning_alpha(prefix: str) -> str:
        place = zlib.crc32(b"alpha") % library.embedder.width
        return next(
            word
            for n in itertools.count()
            if zlib.crc32((word := f"{prefix}{n}").encode()) % library.embedder.width == place
        )

    for search_type in ("hybrid", "vector"):
        assert library.find(meaning_alpha("known"), search_type=search_type)["results"]
        assert library.find(meaning_alpha("qx"), search_type=search_type)["no_match"]


def test_neighbours_in_a_session_carry_evidence(library: SearchHarness) -> None:
    library.add("What did you buy at the flea market?", session_id="s", speaker="Ann")
    answer = library.add("Just this tiny brass telescope.", session_id="s", speaker="Bob")
    elsewhere = library.add(
        "Just this tiny brass telescope.", session_id="elsewhere", speaker="Bob"
    )
    for fast in (False, True):
        found = library.ids(
            "what was bought at the flea market", include_low_confidence=True, fast=fast
        )
        assert found.index(answer) < 2 and found.index(elsewhere) == 2


def test_the_named_speaker_goes_first(library: SearchHarness) -> None:
    anns = library.add("I adopted a dog.", speaker="Ann Lee")
    bobs = library.add("I adopted a dog.", speaker="Bob")
    assert library.ids("Did Bob adopt a dog?")[0] == bobs
    answer = library.find("Did Ann Lee adopt a dog?")
    assert answer["evidence_ids"][0] == anns
    assert answer["query_entities"] == ["Ann", "Lee"]


def test_a_question_put_to_the_wrong_person_is_told(library: SearchHarness) -> None:
    library.add("I painted a sunrise over the lake.", speaker="Ann")
    library.add("Paint dries slowly.", speaker="Bob")
    wrong = library.find("What sunrise did Bob paint over the lake?")
    assert (
        wrong["abstain_recommended"]
        and wrong["abstain_reason"] == "subject_conflict"
        and not wrong["no_match"]
    )
    right = library.find("What sunrise did Ann paint over the lake?")
    assert not right["abstain_recommended"] and right["abstain_reason"] is None
    assert right["query_confidence"] > wrong["query_confidence"]


def test_a_named_time_lifts_what_happened_then(library: SearchHarness) -> None:
    may = library.add("We went sailing.", occurred_at="2023-05-14")
    june = library.add("We went sailing.", occurred_at="2023-06-14")
    for query, first in (
        ("sailing in May 2023", may),
        ("sailing in June", june),
        ("sailing on 13 June 2023", june),
    ):
        assert library.ids(query)[0] == first
    assert library.ids("sailing last month", reference_date="2023-06-30")[0] == may
    assert library.ids("sailing last month", reference_date="2023-07-02T08:00:00+02:00")[0] == june


def test_a_neighbour_is_found_without_words_of_its_own_unless_a_filter_excludes_it(
    tmp_path: Path,
) -> None:
    library = SearchHarness(tmp_path, search={"candidates": 10})
    asked = library.add(
        "What is in the harbour, the harbour, the harbour?", session_id="s", tags=["t"]
    )
    answer = library.add("Nine sunken masts.", session_id="s")
    for i in range(30):
        library.add(f"Filler {i} of the harbour.")
    assert answer in library.ids("harbour", limit=100)
    assert library.ids("harbour", filters={"tags": "t"}) == [asked]
    library.close()


def test_how_rare_a_word_is_depends_on_where_one_searches(library: SearchHarness) -> None:
    other = library("collections.create", {"name": "boats"}, who=library.me).body["id"]
    for i in range(8):
        library.add(f"boat number {i}", collection_id=other)
        library.add(f"harbour number {i}")
    boat = library.add("the boat is red", collection_id=other)
    harbour = library.add("the harbour is red", collection_id=other)
    scores = {
        hit["id"]: hit["score"]
        for hit in library.find("boat harbour", collection_id=other, search_type="bm25")["results"]
    }
    assert scores[harbour] > scores[boat]


def test_names_of_speakers_or_in_many_memories_are_not_embedded(library: SearchHarness) -> None:
    def embedded(query: str) -> str:
        library.find(query)
        return library.embedder.texts[-1]

    for i in range(NAME_COMMON_MIN):
        library.add(f"Mara and the Tisch came to see house {i}.")
    library.add("Nadia came too.")
    assert embedded("What did Mara's sister and Nadia see?") == "What did sister and Nadia see?"
    assert embedded("Wo steht mein Tisch?") == "Wo steht mein Tisch?"
    assert embedded("What Mara Tisch") == "What Mara Tisch"
    library.add("Hello.", speaker="Nadia")
    assert embedded("What did Mara's sister and Nadia see?") == "What did Mara's sister and see?"


def test_pages_join_without_gap_or_overlap(library: SearchHarness) -> None:
    made = {library.add(f"Meeting note {i} about the harbour.") for i in range(25)}
    pages = [library.find("harbour", limit=10, offset=offset) for offset in (0, 10, 20)]
    ids = [hit["id"] for page in pages for hit in page["results"]]
    assert set(ids) == made and len(ids) == 25
    assert [hit["rank"] for hit in pages[2]["results"]] == [21, 22, 23, 24, 25]
    assert {page["total"] for page in pages} == {25}


def test_threshold_cuts_on_the_normalized_score(library: SearchHarness) -> None:
    library.add("harbour")
    library.add(
        "The harbour is one of many places that this rather long note speaks about at some length "
        "today."
    )
    scores = [hit["normalized_score"] for hit in library.find("harbour")["results"]]
    between = sum(scores) / 2
    kept = library.find("harbour", threshold=between)
    assert kept["total"] == 1 and kept["results"][0]["normalized_score"] >= between


def test_no_threshold_is_too_small_to_count(library: SearchHarness) -> None:
    """Scores are numbers of 32 bits, in which the smallest thresholds would be zero."""
    library.add("harbour")
    asked: dict[str, Any] = {"query": "mountain", "include_low_confidence": True}
    weak = library.find(**asked)["results"]
    assert [hit["normalized_score"] for hit in weak] == [0.0]
    assert library.find(**asked, threshold=1e-276)["total"] == 0
    assert library.find(**asked, threshold=0.0)["total"] == 1


def test_explanations_add_up_to_the_score(library: SearchHarness) -> None:
    library.add("The harbour opens at six.", session_id="s", speaker="Ann")
    for flag in ("explain", "debug"):
        hit = library.find("When does the harbour open, Ann?", **{flag: True})["results"][0]
        assert sum(hit["explanation"].values()) == pytest.approx(hit["score"], abs=1e-4)
    assert "explanation" not in library.find("harbour")["results"][0]


def test_a_compact_view_leaves_the_rest_out(library: SearchHarness) -> None:
    library.add("The harbour opens at six.", tags=["sea"], metadata={"a": 1})
    hit = library.find("harbour", view="compact", explain=True)["results"][0]
    assert not {"metadata", "tags", "highlights", "explanation"} & set(hit)


def test_highlights_are_code_point_ranges_of_matching_words(library: SearchHarness) -> None:
    library.add("🙂 Zwei Häfen, one harbour and more harbours.")
    hit = library.find("harbour")["results"][0]
    assert [hit["content"][mark["start"] : mark["end"]] for mark in hit["highlights"]] == [
        "harbour",
        "harbours",
    ]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Я купил велосипед в Москве", "велосипеды"),
        ("昨日は図書館で日本語を勉強しました", "図書館"),
        ("اشتريت كتابا جديدا من المكتبة", "كتاب"),
        ("मैंने बाज़ार से एक किताब खरीदी", "किताब"),
        ("Книги лежали на столах в библиотеке", "книга на столе"),
        ("我在北京买了一辆自行车", "自行车"),
        ("我在北京买了一辆自行车", "车"),
        ("나는 서울에서 자전거를 샀다", "자전거"),
        ("ฉันซื้อจักรยานที่กรุงเทพ", "จักรยาน"),
        ("वह किताबें पढ़ती है और स्कूल जाती है", "किताब"),
        ("المعلمون في المدرسة", "معلم"),
        ("Les enfants mangeaient des pommes dans le jardin avec leurs amis", "qui mange la pomme"),
        ("Los niños compraron manzanas rojas en las calles de la ciudad", "niño calle"),
        ("Ich habe gestern zwei Häuser besichtigt und war begeistert", "haus häuser"),
        ("The build failed in get_user_name with ERR-4042", "ERR-4042"),
    ],
)
def test_words_of_many_languages_are_found(
    library: SearchHarness, content: str, query: str
) -> None:
    wanted = library.add(content)
    library.add("Nothing of the kind.")
    assert library.ids(query, search_type="bm25") == [wanted]


def test_a_search_goes_on_by_words_when_the_embedder_is_down_or_late(tmp_path: Path) -> None:
    library = SearchHarness(tmp_path, search={"embedding_wait_ms": 20})
    wanted = library.add("The harbour opens at six.")
    for trouble in ("down", "late"):
        setattr(library.embedder, trouble, True)
        answer = library.find("harbour")
        setattr(library.embedder, trouble, False)
        assert answer["evidence_ids"] == [wanted]
        assert answer["degraded"] and answer["degraded_reasons"] == ["embedding_unavailable"]
    assert not library.find("harbour")["degraded"]
    library.close()


def test_the_total_of_similar_memories_is_counted_before_the_limit(
    library: SearchHarness,
) -> None:
    one = library.add("The garden has roses.")
    for number in range(5):
        library.add(f"The garden has roses {number}.")
    for limit in (2, 5):
        answer = library("search.similar", who=library.me, id=one, query={"limit": limit}).body
        assert (len(answer["results"]), answer["total"]) == (limit, 5)


def test_similar_memories_are_near_and_never_the_memory_itself(library: SearchHarness) -> None:
    one = library.add("red green blue")
    near = library.add("red green yellow")
    library.add("completely different words here")
    answer = library("search.similar", who=library.me, id=one)
    check(answer.body)
    assert answer.body["evidence_ids"][0] == near and one not in answer.body["evidence_ids"]
    assert library("search.similar", who=library.me, id=one, query={"min_score": 0.99}).body[
        "no_match"
    ]
    stranger = library.register("eve@example.com", "Eve")
    assert library("search.similar", who=stranger, id=one).status == 403
    assert library("search.similar", who=library.me, id="mem_nope").status == 404


def test_filters_compile_to_what_they_say(library: SearchHarness) -> None:
    red = library.add("a note", tags=["red"], user_id="ann")
    both = library.add("a note", tags=["red", "blue"], user_id="bob")
    blue = library.add("a note", tags=["blue"], user_id="cid")
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {red, both, blue}),
        ({"tags": "red"}, {red, both}),
        ({"tags": {"contains": "blue"}, "user_id": "bob"}, {both}),
        ({"AND": [{"tags": "red"}, {"tags": "blue"}]}, {both}),
        ({"OR": [{"user_id": "ann"}, {"user_id": "cid"}]}, {red, blue}),
        ({"NOT": {"tags": "red"}}, {blue}),
        ({"NOT": [{"user_id": "ann"}, {"user_id": "bob"}]}, {blue}),
        ({"user_id": {"in": ["ann", "bob"]}}, {red, both}),
        ({"user_id": {"nin": ["ann", "bob"]}}, {blue}),
        ({"user_id": {"ne": "ann"}}, {both, blue}),
        ({"user_id": "nobody"}, set()),
    ]
    for filters, expected in cases:
        assert set(library.ids("note", filters=filters)) == expected, filters


@pytest.mark.parametrize(
    ("filters", "loc"),
    [
        ({"colour": "red"}, ["body", "filters", "colour"]),
        ({"user_id": {"like": "x"}}, ["body", "filters", "user_id", "like"]),
        ({"user_id": {"in": "ann"}}, ["body", "filters", "user_id", "in"]),
        ({"AND": {"user_id": "x"}}, ["body", "filters", "AND"]),
        ({"OR": [{"user_id": 5}]}, ["body", "filters", "OR", 0, "user_id"]),
    ],
)
def test_a_filter_that_does_not_exist_is_refused_where_it_stands(
    library: SearchHarness, filters: dict, loc: list
) -> None:
    refused = library("search.search", {"query": "x", "filters": filters}, who=library.me)
    assert refused.status == 422
    assert refused.body["details"][0]["loc"] == loc


def test_what_is_not_indexed_yet_is_found_by_nothing_not_even_beside_a_match(
    library: SearchHarness,
) -> None:
    found = library.add("copper violin", session_id="s")
    library.embedder.down = True
    pending = library(
        "memories.create_raw", {"content": "purple elephant", "session_id": "s"}, who=library.me
    )
    assert pending.status == 202
    assert library.ids("copper") == [found]  # while it is down, or it might be indexed by now


# --- as of an instant, budgets --------------------------------------------------------------------


def test_a_search_as_of_an_instant_knows_what_was_known_then(tmp_path: Path) -> None:
    library = SearchHarness(tmp_path, superseding)

    def mark(old: str, new: str | None, back: bool = False) -> int:
        assert (
            library(
                "superseding.mark", {"old": old, "new": new, "back": back}, who=library.me
            ).status
            == 200
        )
        return library.now_ms

    before = library.now_ms
    coffee = library.add("I like coffee in the morning.")
    stored = library.now_ms
    library.now_ms += 2 * HOUR_MS
    tea = library.add("I like tea in the morning.")
    between = library.now_ms
    superseded = mark(coffee, tea)
    gone = library.add("The morning bus leaves at seven.")
    invalidated = mark(gone, None)
    library(
        "memories.update", {"importance": 0.9}, who=library.me, id=coffee
    )  # a later change is none of that
    twice = library.add("The morning paper comes late.")
    mark(twice, tea)
    restored = mark(twice, None, back=True)
    again = mark(twice, tea)

    def known(at: int | None, **fields: Any) -> set[str]:
        return set(library.ids("morning", as_of=None if at is None else iso(at), **fields))

    assert known(None) == {tea}
    assert known(before) == set()
    assert known(stored - 1) == set() and known(stored) == {coffee}
    assert known(between) == {coffee, tea} == known(superseded - 1)
    assert known(superseded) == {tea}
    assert known(invalidated - 1) == {tea, gone} and known(invalidated) == {tea}
    assert known(again - 1) == {tea, twice} == known(restored) and known(again) == {tea} == known(
        again + DAY_MS
    )
    assert known(between, include_superseded=True) == {coffee, tea}
    assert known(again, include_superseded=True) == {coffee, tea, gone, twice}
    assert known(between, filters={"conflict_status": "superseded"}) == {coffee}
    library.close()


def test_relative_times_count_from_the_instant_searched_as_of(library: SearchHarness) -> None:
    then, day = library.now_ms + 100, 20 * DAY_MS
    early = library.add("We went sailing.", occurred_at=iso(then - DAY_MS))
    late = library.add("We went sailing.", occurred_at=iso(then - DAY_MS + day))
    library.now_ms = then + day
    assert library.ids("sailing yesterday") == [late, early]
    assert library.ids("sailing yesterday", as_of=iso(then)) == [early, late]
    assert library.ids("sailing yesterday", as_of=iso(then), reference_date=iso(then + day)) == [
        late,
        early,
    ]


def test_min_score_is_threshold_by_another_name(library: SearchHarness) -> None:
    library.add("harbour")
    library.add(
        "The harbour is one of many places that this rather long note speaks about at some length "
        "today."
    )
    high, low = (hit["normalized_score"] for hit in library.find("harbour")["results"])
    for asked in (
        {"min_score": high},
        {"min_score": high, "threshold": low},
        {"min_score": low, "threshold": high},
    ):
        assert library.find("harbour", **asked)["total"] == 1
    assert library.find("harbour", min_score=low)["total"] == 2


def test_a_token_budget_keeps_what_fits_in_the_order_of_rank(library: SearchHarness) -> None:
    first = library.add("harbour harbour")  # 15 characters, 4 tokens
    long = library.add("harbour " + "and much more " * 20)
    short = library.add("a harbour at sea")  # 16 characters, 4 tokens
    plain = library.ids("harbour")
    assert set(plain) == {first, long, short}
    packed = library.find("harbour", token_budget=8)
    assert packed["evidence_ids"] == [memory for memory in plain if memory != long]
    assert [hit["rank"] for hit in packed["results"]] == [1, 2] and packed["total"] == 3
    assert library.ids("harbour", token_budget=7) == [
        next(memory for memory in plain if memory != long)
    ]
    nothing = library.find("harbour", token_budget=1)
    assert nothing["results"] == [] and nothing["total"] == 3 and not nothing["no_match"]
    assert library.ids("harbour", token_budget=10_000) == plain


def test_a_search_by_words_needs_nothing_of_the_embedder(library: SearchHarness) -> None:
    """A remote embedder does not even know its space before its first answer."""

    class Silent(WordEmbedder):
        @property
        def space(self) -> str:  # type: ignore[override]
            raise InferenceUnavailable("not known yet")

    wanted = library.add("The harbour opens at six.")
    library.ask(Models(Silent()))
    assert library.ids("harbour", search_type="bm25") == [wanted]
    assert library.find("harbour")["degraded_reasons"] == ["embedding_unavailable"]
