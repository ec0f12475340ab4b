"""Advanced search through a real shard: boosts, facets, date ranges, diversity, and a reranker on a
port of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from plugins.search import advanced
from plugins.search.advanced import AdvancedBody
from plugins.search.judging import Ranked
from plugins.search.limits import FACET_VALUES_MAX, FACETS_MAX, RERANKED_RESULTS_MAX
from runtime.errors import ValidationFailed
from runtime.timestamps import iso
from tests.support.receivers import receiver
from tests.support.rerankers import judge
from tests.support.search_harness import AdvancedSearchHarness

DAY_MS = 86_400_000


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[AdvancedSearchHarness]:
    harness = AdvancedSearchHarness(tmp_path)
    yield harness
    harness.close()


def test_without_anything_to_add_it_is_the_search_itself(archive: AdvancedSearchHarness) -> None:
    for i in range(12):
        archive.add(
            f"The note {i} about the harbour" + " and more" * i,
            session_id="s",
            speaker=("Ann", "Bob")[i % 2],
        )
    for asked in (
        {"limit": 5, "offset": 3},
        {"explain": True},
        {"view": "compact"},
        {"search_type": "bm25"},
        {"fast": True},
    ):
        plain, advanced = (
            archive.find("Ann's harbour note", **asked),
            archive.ask("Ann's harbour note", **asked),
        )
        assert advanced.pop("facets") == {}
        assert {**advanced, "processing_time_ms": 0} == {**plain, "processing_time_ms": 0}


def test_the_ranked_in_another_order_keep_all_that_is_known_of_them() -> None:
    one = np.arange(3, dtype=np.float32)
    ranked = Ranked(
        one.astype(np.uint32),
        one,
        one,
        {"words": one},
        one > 0,
        one,
        conflict=-0.5,
        profile="ranking",
        unread=True,
    )
    found = ranked.at(np.array([2, 0]))
    for values in (found.ordinals, found.scores, found.normalized, found.rarities):
        assert values.tolist() == [2, 0]
    assert found.contributions["words"].tolist() == [2, 0]
    assert found.is_relevant.tolist() == [True, False]
    assert (found.conflict, found.profile, found.unread) == (-0.5, "ranking", True)


def test_with_boosts_it_abstains_as_a_plain_one_does(archive: AdvancedSearchHarness) -> None:
    archive.embedder.reads_all = False
    for i in range(6):
        archive.add(f"I paint the harbour in oil, number {i}.", speaker="Ann")
    archive.add("Hello there, how are you all?", speaker="Bob")
    archive.add("房租每月三千二百元。")
    sure, unsure = "房租多少？", "房租多少？护照放在什么地方？眼科复查几号？"
    answers = []
    for question in (sure, unsure, "What does Bob paint, the harbour in oil?"):
        plain = archive.find(question)
        boosted = archive.ask(question, boosts={"importance": 1.0}, diversity=0.2)
        for told in ("query_confidence", "abstain_recommended", "abstain_reason", "grounding"):
            assert boosted[told] == plain[told]
        answers.append((plain["query_confidence"] > 0.5, plain["abstain_reason"]))
    assert answers[:2] == [(True, None), (False, None)]
    assert answers[2][1] == "subject_conflict"


def test_it_costs_two_credits() -> None:
    assert [operation.credits for operation in advanced.OPERATIONS] == [2]


# --- boosts ---------------------------------------------------------------------------------------


def test_each_boost_lifts_what_it_names_and_a_negative_one_sinks_it(
    archive: AdvancedSearchHarness,
) -> None:
    now = archive.now_ms
    plain = archive.add("note", occurred_at=iso(now - 900 * DAY_MS), importance=0.1)
    fields = {
        "recent": {"occurred_at": iso(now)},
        "important": {"importance": 1.0, "occurred_at": iso(now - 900 * DAY_MS)},
        "tagged": {"tags": ["x", "y"], "occurred_at": iso(now - 900 * DAY_MS), "importance": 0.1},
        "described": {
            "metadata": {"a": {"b": [1, "z"]}},
            "occurred_at": iso(now - 900 * DAY_MS),
            "importance": 0.1,
        },
    }
    ids = {name: archive.add("note", **given) for name, given in fields.items()}
    boosts = {
        "recent": {"recency": {"half_life_days": 30, "weight": 1}},
        "important": {"importance": 1},
        "tagged": {"tags": {"y": 1, "unknown": 5}},
        "described": {
            "metadata": [
                {"field": "a.b", "value": "z", "weight": 1},
                {"field": "a.b", "value": 1.0, "weight": 0.5},
            ]
        },
    }
    assert len(archive.order(limit=10)) == 5
    for name, boost in boosts.items():
        found = archive.order(boosts=boost)
        assert found[0] == ids[name] and plain in found, name
    assert archive.order(boosts={"tags": {"x": -1}})[-1] == ids["tagged"]
    assert (
        archive.order(boosts={"metadata": [{"field": "nothing", "weight": 1}]}) == archive.order()
    )
    assert archive.order(boosts={"tier": {"short_term": 2}}) == archive.order()


def test_recency_halves_with_each_half_life_and_the_future_counts_as_now(
    archive: AdvancedSearchHarness,
) -> None:
    archive.now_ms += 1_000
    ages = {0: None, 10: None, 20: None, -400: None}
    for age in ages:
        ages[age] = archive.add("note", occurred_at=iso(archive.now_ms - age * DAY_MS))
    found = archive.ask(boosts={"recency": {"half_life_days": 10, "weight": 0.8}}, explain=True)
    gains = {hit["id"]: hit["explanation"]["boost_recency"] for hit in found["results"]}
    for age, gain in ((0, 0.8), (10, 0.4), (20, 0.2), (-400, 0.8)):
        assert gains[ages[age]] == pytest.approx(gain, abs=1e-4), age


def test_explanations_with_boosts_add_up(archive: AdvancedSearchHarness) -> None:
    for i in range(6):
        archive.add(
            f"note {i} of the harbour",
            tags=["even"] if i % 2 == 0 else [],
            importance=i / 5,
            session_id="s",
        )
    boosts = {
        "importance": 0.5,
        "tags": {"even": 0.3},
        "tier": {"short_term": 0.1},
        "channels": {"lexical": 2, "semantic": 0.5, "facet": 0},
    }
    for asked in ({}, {"diversity": 0.6}):
        for hit in archive.ask("harbour note", boosts=boosts, explain=True, **asked)["results"]:
            assert sum(hit["explanation"].values()) == pytest.approx(hit["score"], abs=1e-4)
            assert hit["explanation"]["length"] == 0


def test_channels_weigh_groups_of_features(archive: AdvancedSearchHarness) -> None:
    worded = archive.add("harbour")
    related = archive.add("harbour " + " ".join(f"filler{i}" for i in range(40)))
    lexical = archive.ask(
        "harbour", boosts={"channels": {"semantic": 0, "facet": 0, "temporal": 0}}, explain=True
    )
    assert lexical["evidence_ids"] == [worded, related]
    assert all(
        value == 0
        for hit in lexical["results"]
        for name, value in hit["explanation"].items()
        if name in ("words", "semantic", "exact")
    )
    silent = archive.ask(
        "harbour",
        boosts={
            "channels": dict.fromkeys(("semantic", "lexical", "graph", "temporal", "facet"), 0)
        },
    )
    assert (
        [hit["score"] for hit in silent["results"]]
        == [0, 0]
        == [hit["normalized_score"] for hit in silent["results"]]
    )


def test_a_boost_makes_nothing_stand_and_no_answer_surer(tmp_path: Path) -> None:
    archive = AdvancedSearchHarness(tmp_path, search={"cosine_min": 0.99, "clear_words_min": 0.99})
    archive.add("The soup needs more salt.", tags=["x"], importance=1)
    assert archive.ask("qwxyzzy flurbl", boosts={"importance": 10, "tags": {"x": 10}})["no_match"]
    sure = archive.ask("soup salt")["query_confidence"]
    assert archive.ask("soup salt", boosts={"importance": 10})["query_confidence"] == sure
    archive.close()


# --- narrowing and counting -----------------------------------------------------------------------


def test_a_date_range_holds_both_its_ends(archive: AdvancedSearchHarness) -> None:
    days = {
        day: archive.add("note", occurred_at=f"2024-05-{day:02}T12:00:00Z") for day in (1, 2, 3)
    }
    noon = "2024-05-02T12:00:00Z"
    for asked, expected in (
        ({"date_range_start": noon}, {2, 3}),
        ({"date_range_end": noon}, {1, 2}),
        ({"date_range_start": noon, "date_range_end": noon}, {2}),
        ({"date_range_start": "2024-05-02T12:00:00.001Z"}, {3}),
        ({"date_range_end": "2024-05-02T11:59:59.999Z"}, {1}),
        ({"date_range_start": "2024-06-01"}, set()),
    ):
        found = archive.ask(**asked)
        assert set(found["evidence_ids"]) == {days[day] for day in expected} and found[
            "total"
        ] == len(expected), asked
    assert archive.order(date_range_start=noon, filters={"occurred_at": {"lt": "2024-05-03"}}) == [
        days[2]
    ]


def test_facets_count_all_results_and_nothing_else(archive: AdvancedSearchHarness) -> None:
    other = archive("collections.create", {"name": "other"}, who=archive.me).body["id"]
    for i in range(30):
        archive.add(
            f"note {i}",
            tags=["every", f"third{i % 3}"],
            user_id=f"user{i % 2}",
            title="Ä" * 150 if i == 0 else None,
            metadata={
                "n": i % 2,
                "b": i % 2 == 0,
                "f": 0.5,
                "t": ["x", "y"],
                "none": None,
                "in": {"deep": i},
            },
            **({"collection_id": other} if i < 5 else {}),
        )
    archive.add("something else entirely", tags=["every", "hidden"])
    default = archive("collections.get_default", who=archive.me).body["id"]
    names = ["tags", "user_id", "collection_id", "tier", "title", "conflict_status", "speaker"]
    names += [f"metadata.{path}" for path in ("n", "b", "f", "t", "none", "in", "in.deep")]
    found = archive.ask("note", limit=3, search_type="bm25", facets=names)
    facets = {
        name: {entry["value"]: entry["count"] for entry in entries}
        for name, entries in found["facets"].items()
    }
    assert found["total"] == 30 and list(facets) == names
    assert facets["tags"] == {"every": 30, "third0": 10, "third1": 10, "third2": 10}
    assert found["facets"]["tags"][0] == {"value": "every", "count": 30}
    assert facets["user_id"] == {"user0": 15, "user1": 15}
    assert facets["collection_id"] == {default: 25, other: 5}
    assert (
        facets["tier"] == {"short_term": 30}
        and facets["conflict_status"] == {"none": 30}
        and facets["speaker"] == {}
    )
    (title,) = facets["title"]
    assert set(title) == {"Ä"} and facets["title"][title] == 1
    assert (
        facets["metadata.n"] == {0: 15, 1: 15}
        and facets["metadata.f"] == {0.5: 30}
        and facets["metadata.t"] == {"x": 30, "y": 30}
    )
    assert [entry["value"] for entry in found["facets"]["metadata.b"]] == [False, True] and facets[
        "metadata.none"
    ] == {None: 30}
    assert facets["metadata.in"] == {} and len(facets["metadata.in.deep"]) == 30
    narrowed = archive.ask(
        "note", search_type="bm25", facets=["tags"], filters={"metadata.n": 1}, threshold=0.0
    )
    assert (
        {entry["value"]: entry["count"] for entry in narrowed["facets"]["tags"]}["every"]
        == narrowed["total"]
        == 15
    )
    assert archive.ask("qwxyzzy", search_type="bm25", facets=["tags"])["facets"] == {"tags": []}


def test_a_facet_gives_its_most_frequent_values_only(archive: AdvancedSearchHarness) -> None:
    archive.add("note", metadata={"many": list(range(200))})
    archive.add("note", metadata={"many": [150]})
    entries = archive.ask(facets=["metadata.many"])["facets"]["metadata.many"]
    assert len(entries) == FACET_VALUES_MAX and entries[0] == {"value": 150, "count": 2}


@pytest.mark.parametrize(
    ("fields", "loc"),
    [
        ({"facets": ["tags", "colour"]}, ("facets", 1)),
        ({"facets": ["content"]}, ("facets", 0)),
        ({"facets": ["created_at"]}, ("facets", 0)),
        ({"facets": ["metadata."]}, ("facets", 0)),
        ({"facets": ["tags"] * (FACETS_MAX + 1)}, ("facets",)),
        (
            {"boosts": {"recency": {"half_life_days": 0, "weight": 1}}},
            ("boosts", "recency", "half_life_days"),
        ),
        ({"boosts": {"recency": {"half_life_days": 1}}}, ("boosts", "recency", "weight")),
        ({"boosts": {"importance": 11}}, ("boosts", "importance")),
        ({"boosts": {"tier": {"huge": 1}}}, ("boosts", "tier", "huge", "[key]")),
        ({"boosts": {"tags": {"x": "much"}}}, ("boosts", "tags", "x")),
        (
            {"boosts": {"metadata": [{"field": "", "weight": 1}]}},
            ("boosts", "metadata", 0, "field"),
        ),
        ({"boosts": {"channels": {"lexical": -1}}}, ("boosts", "channels", "lexical")),
        ({"diversity": 1.5}, ("diversity",)),
        ({"rerank": "yes"}, ("rerank",)),
        ({"date_range_start": "soon"}, ("date_range_start",)),
        ({"token_budget": 0}, ("token_budget",)),
        ({"min_score": 2}, ("min_score",)),
    ],
)
def test_a_misuse_is_refused_at_its_place(fields: dict[str, Any], loc: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        AdvancedBody.model_validate({"query": "x", **fields})
    assert refused.value.errors()[0]["loc"] == loc


def test_a_date_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValidationFailed) as refused:
        AdvancedBody.model_validate(
            {"query": "x", "date_range_start": "2024-05-02", "date_range_end": "2024-05-01"}
        )
    assert refused.value.details[0]["loc"] == ["body", "date_range_end"]


# --- diversity ------------------------------------------------------------------------------------


def test_diversity_puts_repetitions_last_and_finds_the_same(archive: AdvancedSearchHarness) -> None:
    repeated = [archive.add("harbour crane red") for _ in range(4)]
    different = archive.add("harbour whale song concert midnight blue lantern")
    plain = archive.order("harbour crane red", relevance="all")
    assert plain[-1] == different and plain[0] in repeated
    diverse = archive.ask("harbour crane red", diversity=0.7)
    assert diverse["evidence_ids"][0] == plain[0] and diverse["evidence_ids"][1] == different
    assert set(diverse["evidence_ids"]) == set(plain) and diverse["total"] == 5
    assert archive.order("harbour crane red", diversity=0.0, relevance="all") == plain
    assert archive.order("harbour crane red", diversity=0.7, limit=1, offset=1) == [different]
    assert archive.order("harbour crane red", diversity=0.7, search_type="bm25")[1] == different


def test_diversity_keeps_to_the_threshold(archive: AdvancedSearchHarness) -> None:
    for i in range(8):
        archive.add("harbour " + f"crane{i % 2} " * (i + 1))
    scores = [hit["normalized_score"] for hit in archive.ask("harbour crane1")["results"]]
    least = scores[3]
    found = archive.ask("harbour crane1", diversity=1.0, threshold=least)
    assert found["total"] == sum(score >= least for score in scores)
    assert all(hit["normalized_score"] >= least for hit in found["results"])


# --- reranking ------------------------------------------------------------------------------------


def test_a_reranker_orders_the_results(tmp_path: Path) -> None:
    with judge("rose") as there:
        archive = AdvancedSearchHarness(tmp_path, there)
        few, none, many = (
            archive.add(f"garden {words}") for words in ("rose", "of weeds", "rose rose rose")
        )
        found = archive.ask("garden", rerank=True, explain=True, facets=["tier"])
        assert (
            found["evidence_ids"] == [many, few, none]
            and found["reranker_applied"]
            and not found["degraded"]
        )
        assert [hit["rank"] for hit in found["results"]] == [1, 2, 3] and found["facets"][
            "tier"
        ] == [{"value": "short_term", "count": 3}]
        for hit in found["results"]:
            assert sum(hit["explanation"].values()) == pytest.approx(hit["score"], abs=1e-4)
        assert there.asked[0]["query"] == "garden" and set(there.asked[0]["documents"]) == {
            "garden rose",
            "garden of weeds",
            "garden rose rose rose",
        }
        assert archive.order("garden", rerank=True, offset=1, limit=1) == [few]
        assert archive.ask("garden", rerank=True, token_budget=3)["evidence_ids"] == [few]
        asked = len(there.asked)
        assert (
            not archive.ask("garden")["reranker_applied"]
            and archive.ask("zzzz", rerank=True, search_type="bm25")["no_match"]
        )
        assert len(there.asked) == asked
        archive.close()


def test_a_reranker_and_diversity_work_together(tmp_path: Path) -> None:
    with judge("rose") as there:
        archive = AdvancedSearchHarness(tmp_path, there)
        same = [archive.add("garden rose rose") for _ in range(3)]
        other = archive.add("garden with a pond and a rose by the gate")
        assert archive.order("garden", rerank=True)[:3] == [
            memory for memory in archive.order("garden", rerank=True) if memory in same
        ]
        found = archive.ask("garden", rerank=True, diversity=0.8, explain=True)
        assert found["evidence_ids"][1] == other and found["reranker_applied"]
        for hit in found["results"]:
            assert sum(hit["explanation"].values()) == pytest.approx(hit["score"], abs=1e-4)
        archive.close()


def test_only_the_first_results_are_reranked(tmp_path: Path) -> None:
    with judge("rose") as there:
        archive = AdvancedSearchHarness(tmp_path, there, search={"candidates": 200})
        items = [
            {"content": f"garden number {i}" + " rose" * (i % 7)}
            for i in range(RERANKED_RESULTS_MAX)
        ]
        for batch in (items, items[:40]):
            assert (
                archive("memories.create_batch", {"memories": batch}, who=archive.me).status == 201
            )
        pages = [
            archive.ask("garden", rerank=True, limit=70, offset=offset, search_type="bm25")
            for offset in (0, 70)
        ]
        assert [len(asked["documents"]) for asked in there.asked] == [RERANKED_RESULTS_MAX] * 2
        hits = [hit for page in pages for hit in page["results"]]
        assert len({hit["id"] for hit in hits}) == 140 == pages[0]["total"]
        assert [hit["rank"] for hit in hits] == list(range(1, 141))
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        archive.close()


@pytest.mark.parametrize("trouble", ["fails", "nonsense", "absent"])
def test_without_a_reranker_the_ranking_stays_and_says_so(tmp_path: Path, trouble: str) -> None:
    with judge(
        "rose",
        *([500] * 9 if trouble == "fails" else []),
        body=b"{}" if trouble == "nonsense" else None,
    ) as there:
        archive = AdvancedSearchHarness(tmp_path, None if trouble == "absent" else there)
        for words in ("rose", "of weeds", "rose rose rose"):
            archive.add(f"garden {words}")
        found = archive.ask("garden", rerank=True)
        assert found["evidence_ids"] == archive.order("garden") and not found["reranker_applied"]
        reason = "reranker_not_configured" if trouble == "absent" else "reranker_unavailable"
        assert found["degraded"] and found["degraded_reasons"] == [reason]
        archive.close()


def test_the_event_tells_the_order_that_was_answered(tmp_path: Path) -> None:
    quickly = {"allow_private_networks": True, "backoff_seconds_min": 0.01}
    with judge("rose") as there, receiver() as ingestion:
        archive = AdvancedSearchHarness(tmp_path, there, webhooks=quickly)
        made = archive(
            "webhooks.create",
            {"url": ingestion.url, "events": ["search.completed"]},
            who=archive.me,
        )
        assert made.status == 201
        for words in ("of weeds", "rose", "rose rose"):
            archive.add(f"garden {words}")
        answers = [archive.ask("garden", rerank=True), archive.ask("garden")]
        archive.run(archive.shard.drain())
        archive.reopen()
        archive.settle()
        told = [json.loads(received.body)["data"]["top_ids"] for received in ingestion.received]
        assert sorted(told) == sorted(answer["evidence_ids"] for answer in answers)
        archive.close()
