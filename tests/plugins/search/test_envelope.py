"""What every search answer promises, under requests that nobody would think of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.search.advanced import AdvancedReply
from plugins.search.models import SearchReply
from runtime.api.plugin import Plugin, Retriever
from runtime.timestamps import iso
from storage.text import estimated_tokens
from tests.support.rerankers import judge
from tests.support.search_harness import AdvancedSearchHarness

WORDS = [
    "harbour",
    "crane",
    "rose",
    "Ann",
    "Bob",
    "soup",
    "salt",
    "key",
    "yesterday",
    "2024",
    "港",
    "дом",
]
DAY_MS = 86_400_000
HALVES = Plugin(
    "halves",
    retrievers=(
        Retriever("halves.even", lambda ctx, query: range(0, 41, 2), in_hybrid=True),
        Retriever(
            "halves.odd",
            lambda ctx, query: {n: n / 41 for n in range(1, 41, 2)},
            weight=lambda _: 1,
        ),
    ),
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdvancedSearchHarness]:
    with judge("rose") as there:
        harness = AdvancedSearchHarness(tmp_path_factory.mktemp("envelope"), there, (HALVES,))
        for i in range(40):
            harness.add(
                " ".join(WORDS[(i * step) % len(WORDS)] for step in range(1, 3 + i % 9)),
                user_id=f"user{i % 3}",
                session_id=f"session{i % 4}" if i % 5 else None,
                speaker=("Ann", "Bob", None)[i % 3],
                tags=["even"] if i % 2 == 0 else [],
                importance=(i % 11) / 10,
                metadata={"n": i % 4, "t": WORDS[i % 5]},
                occurred_at=iso(harness.now_ms - i * 10 * DAY_MS),
            )
        harness.add("the end of the harbour " * 120)
        yield harness
        harness.close()


weights = st.floats(-10, 10)
conditions = st.recursive(
    st.sampled_from(
        [
            {},
            {"user_id": "user1"},
            {"tags": "even"},
            {"importance": {"gte": 0.5}},
            {"metadata.n": {"in": [1, 2]}},
            {"content": {"contains": "a"}},
        ]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"AND": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"OR": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"NOT": inner}),
    ),
    max_leaves=4,
)
boosts = st.fixed_dictionaries(
    {},
    optional={
        "recency": st.fixed_dictionaries(
            {"half_life_days": st.floats(0.001, 36_500), "weight": weights}
        ),
        "importance": weights,
        "tier": st.dictionaries(st.sampled_from(["short_term", "archived"]), weights),
        "tags": st.dictionaries(st.sampled_from(["even", "odd"]), weights),
        "metadata": st.lists(
            st.fixed_dictionaries(
                {"field": st.just("n"), "value": st.sampled_from([1, "1", True]), "weight": weights}
            ),
            max_size=2,
        ),
        "channels": st.dictionaries(
            st.sampled_from(["semantic", "lexical", "graph", "temporal", "facet"]), st.floats(0, 10)
        ),
    },
)
plain = {
    "search_type": st.sampled_from(["hybrid", "vector", "bm25", "halves.even", "halves.odd"]),
    "limit": st.integers(1, 100),
    "offset": st.integers(0, 50),
    "threshold": st.floats(0, 1),
    "min_score": st.floats(0, 1),
    "fast": st.booleans(),
    "include_low_confidence": st.booleans(),
    "include_superseded": st.booleans(),
    "explain": st.booleans(),
    "view": st.sampled_from(["compact", "full"]),
    "token_budget": st.integers(1, 300),
    "user_id": st.sampled_from(["user1", "nobody"]),
    "filters": conditions,
    "as_of": st.sampled_from(["1999-01-01", "2999-01-01"]),
    "reference_date": st.just("2024-06-01"),
}
further = {
    "boosts": boosts,
    "facets": st.lists(
        st.sampled_from(["tags", "user_id", "metadata.n", "metadata.t", "conflict_status"]),
        max_size=3,
    ),
    "diversity": st.floats(0, 1),
    "rerank": st.booleans(),
    "date_range_start": st.just("2020-01-01"),
}
queries = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
    st.text(min_size=1, max_size=40).filter(str.strip),
)


def assert_promises(asked: dict[str, Any], body: dict[str, Any]) -> None:
    hits = body["results"]
    ids = [hit["id"] for hit in hits]
    assert body["query"] == asked["query"]
    assert (
        body["evidence_ids"] == ids
        and len(set(ids)) == len(ids)
        and [hit["memory_id"] for hit in hits] == ids
    )
    for name in ("score", "normalized_score"):
        values = [hit[name] for hit in hits]
        assert values == sorted(values, reverse=True)
    least = max(asked.get("threshold", 0), asked.get("min_score", 0))
    assert all(least <= hit["normalized_score"] <= 1 for hit in hits)
    assert [hit["rank"] for hit in hits] == list(
        range(asked.get("offset", 0) + 1, asked.get("offset", 0) + 1 + len(hits))
    )
    assert len(hits) <= asked.get("limit", 10) and asked.get("offset", 0) + len(hits) <= max(
        body["total"], asked.get("offset", 0)
    )
    assert body["no_match"] == (body["total"] == 0) and 0 <= body["query_confidence"] <= 1
    assert body["abstain_recommended"] == (body["abstain_reason"] is not None)
    assert (
        body["grounding"]["status"] == "no_grounded_match"
        if body["no_match"]
        else body["grounding"]["status"] in ("grounded", "weak")
    )
    if body["no_match"]:
        assert (hits, body["query_confidence"], body["abstain_reason"]) == ([], 0, "no_match")
    if not asked.get("include_low_confidence"):
        assert not any(hit["low_confidence"] for hit in hits)
    assert body["degraded"] == bool(body["degraded_reasons"]) and body["scores_calibrated"] is False
    assert sum(estimated_tokens(hit["content"]) for hit in hits) <= asked.get("token_budget", 10**9)
    for hit in hits:
        assert ("explanation" in hit) == (
            asked.get("explain", False) and asked.get("view") != "compact"
        )
        assert ({"metadata", "tags", "highlights"} <= set(hit)) == (asked.get("view") != "compact")
        assert all(
            0 <= mark["start"] < mark["end"] <= len(hit["content"])
            for mark in hit.get("highlights", ())
        )
        if "explanation" in hit:
            assert sum(hit["explanation"].values()) == pytest.approx(hit["score"], abs=1e-3)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(asked=st.fixed_dictionaries({"query": queries}, optional=plain))
def test_a_search_keeps_its_promises(archive: AdvancedSearchHarness, asked: dict[str, Any]) -> None:
    body = archive("search.search", asked, who=archive.me).body
    SearchReply.model_validate(body)
    assert_promises(asked, body)
    assert not body["reranker_applied"]


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(asked=st.fixed_dictionaries({"query": queries}, optional=plain | further))
def test_an_advanced_search_keeps_its_promises(
    archive: AdvancedSearchHarness, asked: dict[str, Any]
) -> None:
    body = archive("search.advanced", asked, who=archive.me).body
    AdvancedReply.model_validate(body)
    assert_promises(asked, body)
    assert body["reranker_applied"] == (asked.get("rerank", False) and body["total"] > 0)
    assert set(body["facets"]) == set(asked.get("facets", ()))
    for name, entries in body["facets"].items():
        counts = [entry["count"] for entry in entries]
        assert counts == sorted(counts, reverse=True) and all(
            0 < count <= body["total"] for count in counts
        ), name
    if "user_id" in asked.get("facets", ()):
        assert sum(entry["count"] for entry in body["facets"]["user_id"]) in (
            body["total"],
            body["total"] - 1,
        )
