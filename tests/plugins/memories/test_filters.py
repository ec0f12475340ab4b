"""The filter language through real searches: what each condition selects, and what is refused
where.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.memories import MEMORY_FIELDS, limits
from plugins.memories.fields import number_text
from runtime.timestamps import iso
from tests.support.search_harness import SearchHarness

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
Names = set[str]


class FilterHarness(SearchHarness):
    """A library that knows its memories by names of the test's own. Every memory holds the word
    "note".
    """

    def __init__(self, directory: Path):
        super().__init__(directory)
        self.known: dict[str, str] = {}

    def put(self, name: str, content: str = "note", **fields: Any) -> None:
        self.known[self.add(content, **fields)] = name

    def pick(self, filters: Any, **fields: Any) -> Names:
        found = self.find("note", filters=filters, limit=100, search_type="bm25", **fields)
        assert found["total"] == len(found["results"])
        return {self.known[memory_id] for memory_id in found["evidence_ids"]}

    def refused(self, filters: Any) -> dict[str, Any]:
        answer = self("search.search", {"query": "note", "filters": filters}, who=self.me)
        assert answer.status == 422, (filters, answer)
        return answer.body["details"][0]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilterHarness]:
    """Memories that no test changes."""
    harness = FilterHarness(tmp_path_factory.mktemp("shelf"))
    harness.put(
        "a",
        user_id="ann",
        agent_id="g1",
        run_id="r1",
        app_id="p1",
        session_id="s1",
        speaker="Ann",
        tags=["red"],
        title="Alpha",
    )
    harness.put(
        "b",
        user_id="bob",
        tags=["red", "blue"],
        source="slack",
        source_type="chat",
        source_reference="https://x.example/1",
    )
    harness.put(
        "c",
        "note of the Great Wall",
        importance=0.9,
        title="Ünder the bridge",
        source="mail",
        metadata={"size": 3, "city": "Łódź"},
    )
    harness.put(
        "d",
        importance=0.1,
        metadata={
            "size": 3.0,
            "city": "Zürich",
            "open": True,
            "who": {"name": "Ada", "age": 36},
            "list": [1, "x", None],
        },
    )
    harness.put(
        "e",
        metadata={
            "size": -2.5,
            "city": "ab",
            "open": False,
            "gone": None,
            "big": 2**53 + 1,
            "list": ["y", {"deep": "z"}],
        },
    )
    harness.put(
        "f", metadata={"size": 10**18 + 1, "city": "", "big": 2**53, "empty": {}, "none": []}
    )
    yield harness
    harness.close()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "abcdef"),
        ({"user_id": "ann"}, "a"),
        ({"agent_id": "g1"}, "a"),
        ({"run_id": "r1"}, "a"),
        ({"app_id": "p1"}, "a"),
        ({"session_id": "s1"}, "a"),
        ({"session_id": {"exists": True}}, "a"),  # without a session of its own, the run's
        ({"speaker": "Ann"}, "a"),
        ({"speaker": "ann"}, ""),
        ({"speaker": None}, "bcdef"),
        ({"speaker": "*"}, "a"),
        ({"speaker": ["*", "nobody"]}, "a"),
        ({"speaker": {"eq": "*"}}, ""),
        ({"speaker": {"ne": "*"}}, "abcdef"),
        ({"user_id": ["ann", "bob", "nobody"]}, "ab"),
        ({"user_id": {"in": []}}, ""),
        ({"user_id": {"nin": []}}, "abcdef"),
        ({"user_id": {"in": ["ann", None]}}, "acdef"),
        ({"user_id": {"ne": "ann"}}, "bcdef"),
        ({"user_id": {"nin": ["ann", "bob"]}}, "cdef"),
        ({"user_id": {"exists": False}}, "cdef"),
        ({"user_id": {}}, "abcdef"),
        ({"tier": "short_term"}, "abcdef"),
        ({"tier": {"ne": "short_term"}}, ""),
        ({"kind": "note"}, "acdef"),
        ({"kind": "episodic"}, "b"),
        ({"kind": {"in": ["episodic", "semantic"]}}, "b"),
        ({"kind": {"ne": "note"}}, "b"),
        ({"kind": "semantic"}, ""),
        ({"kind": "nothing"}, ""),
        ({"kind": {"exists": True}}, "abcdef"),
        ({"conflict_status": "none"}, "abcdef"),
        ({"conflict_status": "superseded"}, ""),
        ({"source_type": "chat"}, "b"),
        ({"source_type": "text"}, "acdef"),
        ({"tags": "red"}, "ab"),
        ({"tags": {"contains": "blue"}}, "b"),
        ({"tags": ["blue", "green"]}, "b"),
        ({"tags": None}, "cdef"),
        ({"tags": "*"}, "ab"),
        ({"tags": {"contains": "*"}}, ""),
        ({"source": "slack"}, "b"),
        ({"source": {"gt": "mail"}}, "b"),
        ({"source": {"gte": "mail"}}, "bc"),
        ({"source": {"lt": "slack"}}, "c"),
        ({"source_reference": {"contains": "x.example"}}, "b"),
        ({"title": {"contains": "der the"}}, "c"),
        ({"title": {"contains": "alpha"}}, ""),
        ({"title": {"icontains": "ALPHA"}}, "a"),
        ({"title": {"icontains": "üNDER"}}, "c"),
        ({"title": {"gt": "Alpha", "lte": "Ünder the bridge"}}, "c"),
        ({"importance": 0.9}, "c"),
        ({"importance": {"gt": 0.5}}, "c"),
        ({"importance": {"gte": 0.5}}, "abcef"),
        ({"importance": {"lt": 0.5}}, "d"),
        ({"importance": {"in": [0.1, 0.9]}}, "cd"),
        ({"content": {"contains": "Great W"}}, "c"),
        ({"content": {"contains": "great w"}}, ""),
        ({"content": {"icontains": "great w"}}, "c"),
        ({"AND": []}, "abcdef"),
        ({"OR": []}, ""),
        ({"NOT": []}, "abcdef"),
        ({"NOT": {}}, ""),
        ({"NOT": {"tags": "red"}}, "cdef"),
        ({"NOT": [{"tags": "blue"}, {"importance": 0.9}]}, "adef"),
        ({"AND": [{"tags": "red"}, {"OR": [{"user_id": "ann"}, {"user_id": "cid"}]}]}, "a"),
        ({"AND": [{"content": {"contains": "Wall"}}, {"importance": {"gt": 0.5}}]}, "c"),
        ({"tags": "red", "NOT": {"user_id": "ann"}}, "b"),
        # metadata
        ({"metadata.size": 3}, "cd"),
        ({"metadata.size": 3.0}, "cd"),
        ({"metadata.size": "3"}, ""),
        ({"metadata.size": {"gt": 3}}, "f"),
        ({"metadata.size": {"gte": 3}}, "cdf"),
        ({"metadata.size": {"lt": 3}}, "e"),
        ({"metadata.size": {"gt": -3, "lt": -2}}, "e"),
        ({"metadata.size": 10**18 + 1}, "f"),
        ({"metadata.size": 10**18}, ""),
        ({"metadata.big": 2**53 + 1}, "e"),
        ({"metadata.big": 2**53}, "f"),
        ({"metadata.big": {"gt": 2**53}}, "e"),
        ({"metadata.big": {"gt": "a"}}, ""),
        ({"metadata.city": "Łódź"}, "c"),
        ({"metadata.city": {"contains": "ód"}}, "c"),
        ({"metadata.city": {"gt": "ab"}}, "c"),
        ({"metadata.city": {"gte": "ab"}}, "ce"),
        ({"metadata.city": {"lt": "b"}}, "def"),
        ({"metadata.city": ""}, "f"),
        ({"metadata.city": "*"}, "cdef"),
        ({"metadata.city": {"in": ["*", "Łódź"]}}, "c"),
        ({"metadata.city": {"icontains": "ZÜR"}}, "d"),
        ({"metadata.open": True}, "d"),
        ({"metadata.open": False}, "e"),
        ({"metadata.open": 1}, ""),
        ({"metadata.who.name": "Ada"}, "d"),
        ({"metadata.who.age": {"gt": 35, "lt": 37}}, "d"),
        ({"metadata.who": {"exists": True}}, "d"),
        ({"metadata.who": "Ada"}, ""),
        ({"metadata.list": "x"}, "d"),
        ({"metadata.list": {"contains": 1}}, "d"),
        ({"metadata.list": {"in": ["x", "y"]}}, "de"),
        ({"metadata.list.deep": "z"}, "e"),
        ({"metadata.gone": None}, "abcdef"),
        ({"metadata.gone": {"exists": True}}, "e"),
        ({"metadata.size": None}, "ab"),
        ({"metadata.size": {"ne": 3}}, "abef"),
        ({"metadata.empty": {"exists": True}}, ""),
        ({"metadata.none": "*"}, ""),
        ({"metadata.nothing": {"nin": ["x"]}}, "abcdef"),
    ],
)
def test_a_condition_selects_what_it_says(
    shelf: FilterHarness, filters: dict[str, Any], expected: str
) -> None:
    assert shelf.pick(filters) == set(expected)


def test_an_accent_is_the_same_in_one_code_point_and_in_two(tmp_path: Path) -> None:
    library = FilterHarness(tmp_path)
    library.put("one", "note of a r\u00e9sum\u00e9", speaker="Zo\u00eb")
    library.put("two", "note of a re\u0301sume\u0301", speaker="Zoe\u0308")
    library.put("other", speaker="Zoe")
    for name in ("Zo\u00eb", "Zoe\u0308"):
        assert library.pick({"speaker": name}) == {"one", "two"}
        assert library.pick({"speaker": {"nin": [name]}}) == {"other"}
    for word in ("R\u00c9SUM\u00c9", "RE\u0301SUME\u0301"):
        assert library.pick({"content": {"icontains": word}}) == {"one", "two"}
    library.close()


@pytest.mark.parametrize(
    ("filters", "loc", "kind"),
    [
        ({"colour": "red"}, ["colour"], "unknown_field"),
        ({"metadata": {"eq": "x"}}, ["metadata"], "unknown_field"),
        ({"metadata.": 1}, ["metadata."], "unknown_field"),
        ({"metadata.<path>": {"like": 1}}, ["metadata.<path>"], "unknown_field"),
        ({"user_id": {"like": "x"}}, ["user_id", "like"], "unknown_operator"),
        ({"user_id": {"gt": "x"}}, ["user_id", "gt"], "unknown_operator"),
        ({"importance": {"exists": True}}, ["importance", "exists"], "unknown_operator"),
        ({"importance": {"contains": 1}}, ["importance", "contains"], "unknown_operator"),
        ({"importance": "high"}, ["importance"], "float_type"),
        ({"importance": True}, ["importance"], "float_type"),
        ({"importance": None}, ["importance"], "float_type"),
        ({"importance": {"in": [0.1, "x"]}}, ["importance", "in", 1], "float_type"),
        ({"content": "x"}, ["content"], "unknown_operator"),
        ({"content": {"contains": 5}}, ["content", "contains"], "string_type"),
        ({"created_at": {"gt": "yesterday"}}, ["created_at", "gt"], "datetime_parsing"),
        ({"created_at": {"gt": 5}}, ["created_at", "gt"], "string_type"),
        ({"created_at": {"in": ["2026-01-01"]}}, ["created_at", "in"], "unknown_operator"),
        ({"user_id": {"in": "ann"}}, ["user_id", "in"], "list_type"),
        ({"user_id": {"exists": "yes"}}, ["user_id", "exists"], "bool_type"),
        ({"user_id": 5}, ["user_id"], "string_type"),
        ({"tags": {"contains": 5}}, ["tags", "contains"], "string_type"),
        ({"title": {"gt": 5}}, ["title", "gt"], "string_type"),
        ({"metadata.size": {"gt": True}}, ["metadata.size", "gt"], "float_type"),
        ({"metadata.size": {"gt": None}}, ["metadata.size", "gt"], "float_type"),
        ({"metadata.size": {"eq": {"x": 1}}}, ["metadata.size", "eq"], "value_error"),
        ({"metadata.size": {"in": [[1]]}}, ["metadata.size", "in", 0], "value_error"),
        ({"metadata.size": 10**400}, ["metadata.size"], "value_error"),
        ({"metadata.size": {"gt": 10**400}}, ["metadata.size", "gt"], "float_type"),
        ({"importance": 10**400}, ["importance"], "float_type"),
        ({"AND": {"user_id": "x"}}, ["AND"], "list_type"),
        ({"OR": [{"user_id": "x"}, 5]}, ["OR", 1], "dict_type"),
        ({"NOT": "x"}, ["NOT"], "dict_type"),
        ({"NOT": [{"AND": [{"NOT": 1}]}]}, ["NOT", 0, "AND", 0, "NOT"], "dict_type"),
        ({"OR": [{"user_id": {"eq": 5}}]}, ["OR", 0, "user_id", "eq"], "string_type"),
    ],
)
def test_a_misuse_is_refused_at_its_place(
    shelf: FilterHarness, filters: dict[str, Any], loc: list[Any], kind: str
) -> None:
    finding = shelf.refused(filters)
    assert (finding["loc"], finding["type"]) == (["body", "filters", *loc], kind)


def test_a_long_unknown_name_comes_back_cut(shelf: FilterHarness) -> None:
    finding = shelf.refused({"x" * 5_000: 1})
    assert finding["loc"][-1] == "x" * 64


def test_a_filter_is_bounded(shelf: FilterHarness) -> None:
    many = [{"user_id": "ann"}] * limits.FILTER_NODES_MAX
    assert shelf.refused({"AND": many})["type"] == "too_long"
    assert shelf.pick({"AND": many[2:]}) == {"a"}
    values = [f"nobody {i}" for i in range(limits.FILTER_VALUES_MAX)]
    assert shelf.pick({"user_id": [*values[1:], "ann"]}) == {"a"}
    assert shelf.refused({"OR": [{"user_id": values}, {"run_id": ["r1"]}]})["loc"] == [
        "body",
        "filters",
        "OR",
        1,
        "run_id",
    ]


def test_a_filter_by_collection_checks_whose_it_is(shelf: FilterHarness) -> None:
    default = shelf("collections.get_default", who=shelf.me).body["id"]
    assert shelf.pick({"collection_id": default}) == set("abcdef")
    assert shelf.pick({"collection_id": {"ne": default}}) == set()
    stranger = shelf.register("eve@example.com", "Eve")
    foreign = shelf("collections.create", {"name": "hers"}, who=stranger).body["id"]
    for filters, status in (
        ({"collection_id": foreign}, 403),
        ({"collection_id": {"nin": ["col_nope"]}}, 404),
    ):
        assert (
            shelf("search.search", {"query": "note", "filters": filters}, who=shelf.me).status
            == status
        )


# --- times ----------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[FilterHarness]:
    harness = FilterHarness(tmp_path)
    yield harness
    harness.close()


def test_times_hold_to_the_millisecond_at_the_edges_of_days_and_hours(fresh: FilterHarness) -> None:
    midnight = 20_000 * DAY_MS
    for name, ms in (
        ("before", midnight - 1),
        ("at", midnight),
        ("after", midnight + 1),
        ("next", midnight + DAY_MS),
        ("old", -5),
    ):
        fresh.put(name, occurred_at=iso(ms))
    told = {
        "gt": "after next",
        "gte": "at after next",
        "lt": "before old",
        "lte": "before at old",
        "eq": "at",
    }
    for operator, names in told.items():
        assert fresh.pick({"occurred_at": {operator: iso(midnight)}}) == set(names.split()), (
            operator
        )
    assert fresh.pick({"occurred_at": iso(midnight)}) == {"at"}
    assert fresh.pick({"occurred_at": {"gt": iso(midnight - 1), "lt": iso(midnight + 1)}}) == {"at"}
    assert fresh.pick({"occurred_at": {"gt": iso(midnight), "lt": iso(midnight)}}) == set()
    assert fresh.pick(
        {"occurred_at": {"gte": "2024-10-04T02:00:00.001+02:00", "lt": "2024-10-05"}}
    ) == {"after"}
    assert fresh.pick({"occurred_at": {"lt": "1970-01-01"}}) == {"old"}
    assert fresh.pick({"occurred_at": {"exists": False}}) == set()


def test_created_updated_and_expiry_are_told_apart(fresh: FilterHarness) -> None:
    fresh.now_ms -= fresh.now_ms % HOUR_MS + 3 * HOUR_MS  # on the hour
    fresh.put("first")
    first = fresh.now_ms
    fresh.now_ms += HOUR_MS - 2
    fresh.put("second", expires_at="2999-01-01")
    second = fresh.now_ms
    assert second == first + HOUR_MS - 1
    fresh.put("third", expires_at=iso(second + 10 * DAY_MS))
    memory = next(id for id, name in fresh.known.items() if name == "first")
    assert fresh("memories.update", {"importance": 0.7}, who=fresh.me, id=memory).status == 200
    updated = fresh.now_ms
    assert fresh.pick({"created_at": {"lte": iso(first)}}) == {"first"}
    assert fresh.pick({"created_at": {"gt": iso(first), "lte": iso(second)}}) == {"second"}
    assert fresh.pick({"created_at": {"gte": iso(second)}}) == {"second", "third"}
    assert fresh.pick({"updated_at": {"gte": iso(updated)}}) == {"first"}
    assert fresh.pick({"updated_at": iso(updated)}) == {"first"}
    assert fresh.pick({"updated_at": {"lt": iso(updated)}}) == {"second", "third"}
    assert fresh.pick({"updated_at": {"lte": iso(second)}}) == {"second"}
    assert fresh.pick({"expires_at": None}) == {"first"}
    assert fresh.pick({"expires_at": {"exists": True}}) == {"second", "third"}
    assert fresh.pick({"expires_at": {"gt": iso(second + 10 * DAY_MS)}}) == {"second"}
    assert fresh.pick({"expires_at": {"lte": iso(second + 10 * DAY_MS)}}) == {"third"}
    assert fresh.pick({"expires_at": iso(second + 10 * DAY_MS)}) == {"third"}


# --- changes --------------------------------------------------------------------------------------


def test_a_patch_moves_a_memory_between_values_and_a_deletion_takes_it_out(
    fresh: FilterHarness,
) -> None:
    fresh.put(
        "one",
        metadata={"state": "open", "nested": {"n": 1}},
        tags=["x"],
        title="Before",
        importance=0.2,
    )
    fresh.put("two", metadata={"state": "open"})
    memory = next(iter(fresh.known))
    changes = {"metadata": {"state": "closed"}, "tags": ["y"], "title": None, "importance": 0.8}
    assert fresh("memories.update", changes, who=fresh.me, id=memory).status == 200
    for filters, names in (
        ({"metadata.state": "open"}, {"two"}),
        ({"metadata.state": "closed"}, {"one"}),
        ({"metadata.nested.n": "*"}, set()),
        ({"tags": "x"}, set()),
        ({"tags": "y"}, {"one"}),
        ({"title": "*"}, set()),
        ({"importance": {"gt": 0.5}}, {"two"} ^ {"one", "two"}),
        ({"importance": 0.2}, set()),
    ):
        assert fresh.pick(filters) == names, filters
    fresh.reopen()
    assert fresh.pick({"metadata.state": "closed"}) == {"one"}
    assert fresh("memories.delete", who=fresh.me, id=memory).status == 200
    assert fresh.pick({"metadata.state": "closed"}) == fresh.pick({"tags": "y"}) == set()
    assert fresh.pick({"NOT": {"metadata.state": "nothing"}}) == {"two"}


def test_no_value_is_left_behind_when_all_is_deleted(fresh: FilterHarness) -> None:
    long = {"k" * 300: "v" * 300, "deep": {"k" * 300: ["v" * 300, 1e308, -1e-308, 2**63]}}
    fresh.put("one", "note " + "x " * 2_000, metadata=long, title="t" * 255, source="s" * 2_048)
    fresh("memories.delete", who=fresh.me, id=next(iter(fresh.known)))
    with fresh.shard.store.snapshot() as snapshot:
        assert list(snapshot.bind(MEMORY_FIELDS.tables[0], fresh.scope_of(fresh.me)).scan()) == []


# --- values of unusual size -----------------------------------------------------------------------


def test_long_texts_are_found_by_any_part_and_long_paths_by_their_whole(
    fresh: FilterHarness,
) -> None:
    long = "a" * 400 + " middle " + "z" * 400
    path, other = "k" * 300, "k" * 300 + "x"
    fresh.put(
        "long",
        metadata={"text": long, path: 1, "list": ["short", long]},
        title="t" * 200 + " rudder",
        source="s" * 1_000 + "end",
    )
    fresh.put("other", metadata={"text": "a" * 400, other: 1}, title="t" * 200 + " keel")
    for filters, names in (
        ({"metadata.text": long}, {"long"}),
        ({"metadata.text": {"contains": " middle z"}}, {"long"}),
        ({"metadata.text": {"icontains": "MIDDLE"}}, {"long"}),
        ({"metadata.text": {"contains": "aaa"}}, {"long", "other"}),
        ({"metadata.list": {"contains": "middle"}}, {"long"}),
        ({"metadata.text": {"gt": "a"}}, {"long", "other"}),
        ({"metadata.text": {"lt": "a"}}, set()),
        ({f"metadata.{path}": 1}, {"long"}),
        ({f"metadata.{other}": {"gt": 0}}, {"other"}),
        ({f"metadata.{path}": {"exists": True}}, {"long"}),
        ({"title": {"contains": "rudder"}}, {"long"}),
        ({"title": {"icontains": "KEEL"}}, {"other"}),
        ({"source": {"contains": "send"}}, {"long"}),
        ({"source": "s" * 1_000 + "end"}, {"long"}),
    ):
        assert fresh.pick(filters) == names, filters


@pytest.mark.parametrize(
    "metadata",
    [
        {"": 1, "a": {"": {"": "x"}}},
        {"a\x00b": 1, "a b": 2, "\x7f": "\x00"},
        {"🙂": "🙂" * 100, "…": "…" * 300, "‮": "‮"},
        {"a.b": 1, "a": {"b": 2}},
        {
            "max": 2**64 - 1,
            "min": -(2**63),
            "tiny": 5e-324,
            "huge": 1.7976931348623157e308,
            "zero": -0.0,
        },
        {"wide": list(range(2_000))},
        {"deep": [[[[[[[[[[{"x": [[[1]]]}]]]]]]]]]]},
    ],
)
def test_unusual_metadata_is_stored_exactly_and_stops_no_write(
    fresh: FilterHarness, metadata: dict[str, Any]
) -> None:
    memory = fresh.add("note", metadata=metadata)
    shown = fresh("memories.get", who=fresh.me, id=memory).body["metadata"]
    assert shown == metadata and list(shown) == list(metadata)
    fresh.reopen()
    assert fresh("memories.get", who=fresh.me, id=memory).body["metadata"] == metadata
    assert fresh("memories.update", {"metadata": {"left": 1}}, who=fresh.me, id=memory).body[
        "metadata"
    ] == {"left": 1}
    assert fresh("memories.delete", who=fresh.me, id=memory).status == 200


def test_paths_that_read_alike_are_one_path(fresh: FilterHarness) -> None:
    fresh.put("dotted", metadata={"a.b": 1})
    fresh.put("nested", metadata={"a": {"b": 1}})
    assert fresh.pick({"metadata.a.b": 1}) == {"dotted", "nested"}


def test_texts_of_numbers_sort_as_the_numbers() -> None:
    numbers = [
        -sys.float_info.max,
        -(2**64) - 2**12,
        -(2**63) - 1,
        -(2**63),
        -(2**53) - 1,
        -(2**53),
        -1.5,
        -1,
        -5e-324,
        0,
        5e-324,
        0.1,
        1,
        1.5,
    ]
    numbers += [
        2**53,
        2**53 + 1,
        2**53 + 2,
        10**18,
        10**18 + 1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        sys.float_info.max,
    ]
    texts = [number_text(number) for number in numbers]
    assert texts == sorted(texts) and len(set(texts)) == len(texts)
    assert number_text(1) == number_text(1.0) and number_text(-0.0) == number_text(0)
