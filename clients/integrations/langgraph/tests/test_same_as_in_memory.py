"""What the framework's documentation says of a store, as cases that its own store in memory and
Mneme's pass alike.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.base import InvalidNamespaceError as Invalid

ADA = ("users", "ada")


def keys(found: list[SearchItem]) -> set[str]:
    return {item.key for item in found}


# --- items ----------------------------------------------------------------------------------------


def test_what_was_put_comes_back_as_it_was(store: BaseStore) -> None:
    value = {
        "text": "Ada eats no nuts. 🥜",
        "count": 3,
        "ratio": 1.5,
        "flag": True,
        "nothing": None,
        "": "empty name",
        "a.b": {"deep": [1, [2, {"x": "y"}], []], "none": {}},
    }
    store.put(ADA, "food", value)
    item = store.get(ADA, "food")
    assert type(item) is Item
    assert (item.value, item.key, item.namespace) == (value, "food", ADA)
    assert list(item.value) == list(value)
    assert item.created_at.tzinfo and item.updated_at >= item.created_at
    assert abs(datetime.now(UTC) - item.created_at) < timedelta(minutes=5)


def test_what_was_never_put_is_none(store: BaseStore) -> None:
    assert store.get(ADA, "food") is None
    store.put(ADA, "food", {"text": "no nuts"})
    assert store.get(("users",), "food") is None and store.get((*ADA, "x"), "food") is None
    assert store.get(ADA, "Food") is None


def test_a_second_put_replaces_the_value_as_a_whole(store: BaseStore) -> None:
    store.put(ADA, "food", {"text": "no nuts", "since": 2020})
    before = store.get(ADA, "food")
    store.put(ADA, "food", {"text": "no fish"})
    after = store.get(ADA, "food")
    assert after.value == {"text": "no fish"}
    assert after.updated_at > before.updated_at
    assert len(store.search(ADA)) == 1


def test_a_key_is_unique_in_its_namespace_alone(store: BaseStore) -> None:
    store.put(ADA, "1", {"n": 1})
    store.put(("users", "ben"), "1", {"n": 2})
    store.put(("users",), "1", {"n": 3})
    assert [store.get(at, "1").value["n"] for at in (ADA, ("users", "ben"), ("users",))] == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize("key", ["a b", "a/b", "a.b", '"', "ключ", "*", "k" * 300])
def test_any_text_is_a_key(store: BaseStore, key: str) -> None:
    store.put(ADA, key, {"n": 1})
    assert store.get(ADA, key).key == key
    store.delete(ADA, key)
    assert store.get(ADA, key) is None


def test_a_key_becomes_a_text(store: BaseStore) -> None:
    store.put(ADA, 7, {"n": 1})  # type: ignore[arg-type]
    assert store.get(ADA, "7").value == {"n": 1}


def test_what_is_deleted_is_gone_and_may_come_again(store: BaseStore) -> None:
    store.put(ADA, "food", {"n": 1})
    store.delete(ADA, "food")
    assert store.get(ADA, "food") is None and store.search(ADA) == []
    store.delete(ADA, "food")
    store.put(ADA, "food", {"n": 2})
    assert store.get(ADA, "food").value == {"n": 2}


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", ""), (7,), ("a", None), ("a\0b",)])
def test_labels_are_texts_without_periods(store: BaseStore, namespace: Any) -> None:
    for call in (
        lambda: store.put(namespace, "k", {"n": 1}),
        lambda: store.get(namespace, "k"),
        lambda: store.delete(namespace, "k"),
        lambda: store.search(namespace),
        lambda: store.list_namespaces(prefix=namespace),
        lambda: store.list_namespaces(suffix=namespace),
    ):
        with pytest.raises(Invalid):
            call()


@pytest.mark.parametrize("namespace", [(), ("langgraph",), ("langgraph", "x")])
def test_an_item_needs_a_namespace_other_than_the_frameworks(
    store: BaseStore, namespace: tuple[str, ...]
) -> None:
    with pytest.raises(Invalid):
        store.put(namespace, "k", {"n": 1})


@pytest.mark.parametrize("label", ["a b", "a/b", "ключ", '"', "user:1", "a*", "*"])
def test_any_other_text_is_a_label(store: BaseStore, label: str) -> None:
    store.put(("another", "x"), "other", {"n": 2})
    store.put((label, "x"), "k", {"n": 1})
    assert store.get((label, "x"), "k").namespace == (label, "x")
    assert keys(store.search((label,))) == {"k"}
    assert (label, "x") in store.list_namespaces(prefix=(label,))


# --- searching without a query --------------------------------------------------------------------


def docs(store: BaseStore) -> None:
    for key, value in {
        "a": {"type": "report", "score": 1, "tags": ["x", "y"], "meta": {"lang": "en", "v": 1}},
        "b": {"type": "report", "score": 4.99, "tags": ["x"], "meta": {"lang": "de"}},
        "c": {"type": "memo", "score": 5, "tags": [], "final": True, "meta": {}},
        "d": {"type": "memo", "score": -7.5, "final": False, "a.b": "dots", "none": None},
    }.items():
        store.put(("docs",), key, value)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"type": "report"}, "ab"),
        ({"type": {"$eq": "report"}}, "ab"),
        ({"type": {"$ne": "report"}}, "cd"),
        ({"score": 5}, "c"),
        ({"score": 1.0}, "a"),
        ({"score": {"$gt": 4.99}}, "c"),
        ({"score": {"$gte": 4.99}}, "bc"),
        ({"score": {"$lt": 1}}, "d"),
        ({"score": {"$lte": 1}}, "ad"),
        ({"score": {"$gt": 0, "$lt": 5}}, "ab"),
        ({"score": {"$gte": 1.0}, "type": "report"}, "ab"),
        ({"score": {"$gte": 3.0}, "type": "report"}, "b"),
        ({"final": True}, "c"),
        ({"final": False}, "d"),
        ({"tags": ["x", "y"]}, "a"),
        ({"tags": ["y", "x"]}, ""),
        ({"tags": ["x"]}, "b"),
        ({"meta": {"lang": "en"}}, "a"),
        ({"meta": {"lang": {"$ne": "en"}}}, "bc"),
        ({"meta": {"v": {"$eq": 1}}}, "a"),
        ({"a.b": "dots"}, "d"),
        ({"none": None, "type": "memo"}, "cd"),
        ({"type": "*"}, ""),
        ({"absent": "x"}, ""),
        ({}, "abcd"),
    ],
)
def test_filters_compare_what_the_values_hold(
    store: BaseStore, filter: dict[str, Any], expected: str
) -> None:
    docs(store)
    assert keys(store.search(("docs",), filter=filter)) == set(expected)


def test_a_filter_that_does_not_exist_is_an_error(store: BaseStore) -> None:
    docs(store)
    with pytest.raises(ValueError, match=r"\$regex"):
        store.search(("docs",), filter={"type": {"$regex": "r.*"}})


def test_a_search_sees_the_namespaces_below(store: BaseStore) -> None:
    for namespace in (("docs",), ("docs", "a"), ("docs", "a", "b"), ("docsx",), ("x", "docs")):
        store.put(namespace, "-".join(namespace), {"n": 1})
    assert keys(store.search(("docs",))) == {"docs", "docs-a", "docs-a-b"}
    assert keys(store.search(("docs", "a"))) == {"docs-a", "docs-a-b"}
    assert len(store.search(())) == 5
    assert store.search(("doc",)) == []


def test_limit_and_offset_page_through_all_of_it(store: BaseStore) -> None:
    for number in range(23):
        store.put(("docs",), str(number), {"n": number, "even": number % 2 == 0})
    assert len(store.search(("docs",))) == 10
    pages = [keys(store.search(("docs",), limit=9, offset=at)) for at in (0, 9, 18)]
    assert [len(page) for page in pages] == [9, 9, 5]
    assert set().union(*pages) == {str(number) for number in range(23)}
    assert store.search(("docs",), limit=9, offset=23) == []
    even = [store.search(("docs",), filter={"even": True}, limit=5, offset=at) for at in (0, 5, 10)]
    assert [len(page) for page in even] == [5, 5, 2] and store.search(("docs",), limit=0) == []


def test_found_items_are_whole_and_without_a_score(store: BaseStore) -> None:
    store.put(ADA, "food", {"text": "no nuts"})
    (found,), item = store.search(("users",)), store.get(ADA, "food")
    assert type(found) is SearchItem and found.score is None
    assert (found.namespace, found.key, found.value) == (ADA, "food", {"text": "no nuts"})
    assert (found.created_at, found.updated_at) == (item.created_at, item.updated_at)


# --- searching with a query -----------------------------------------------------------------------


def pets(store: BaseStore) -> None:
    store.put(("pets",), "cat", {"text": "The cat sleeps on the sofa", "kind": "cat"})
    store.put(("pets",), "dog", {"text": "The dog guards the garden gate", "kind": "dog"})
    store.put(("pets", "old"), "fish", {"text": "The goldfish swims in a bowl", "kind": "fish"})


def test_a_query_ranks_by_what_is_said(store: BaseStore) -> None:
    pets(store)
    found = store.search(("pets",), query="where does the dog guard the garden gate")
    assert found[0].key == "dog" and keys(found) == {"cat", "dog", "fish"}
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True) and scores[0] > 0
    (first,) = store.search(("pets",), query="a bowl with a goldfish", limit=1)
    assert (first.key, first.namespace) == ("fish", ("pets", "old"))


def test_an_empty_query_ranks_nothing_and_a_long_one_does(store: BaseStore) -> None:
    pets(store)
    assert keys(store.search(("pets",), query="")) == keys(store.search(("pets",)))
    assert keys(store.search(("pets",), query=" \n")) == keys(store.search(("pets",)))
    found = store.search(("pets",), query="where does the dog guard the garden gate " * 300)
    assert found[0].key == "dog"


def test_a_query_keeps_to_its_namespace_and_filter(store: BaseStore) -> None:
    pets(store)
    asked = "the dog guards the garden gate"
    assert keys(store.search(("pets", "old"), query=asked)) == {"fish"}
    assert keys(store.search(("pets",), query=asked, filter={"kind": "cat"})) == {"cat"}
    assert keys(store.search(("pets",), query=asked, filter={"kind": {"$ne": "dog"}})) == {
        "cat",
        "fish",
    }


def test_a_query_pages_in_the_order_of_its_ranking(store: BaseStore) -> None:
    pets(store)
    asked = "the dog guards the garden gate"
    whole = [item.key for item in store.search(("pets",), query=asked)]
    paged = [store.search(("pets",), query=asked, limit=1, offset=at) for at in range(3)]
    assert [page[0].key for page in paged] == whole


def test_what_is_not_indexed_is_read_but_not_ranked(store: BaseStore) -> None:
    pets(store)
    said = {"text": "The dog guards the garden gate"}
    store.put(("pets",), "secret", said, index=False)
    assert store.get(("pets",), "secret").value == said
    assert "secret" in keys(store.search(("pets",)))
    found = store.search(("pets",), query="the dog guards the garden gate")
    assert found[0].key == "dog"
    assert [item.score for item in found if item.key == "secret"] == [None]


def test_the_named_fields_are_what_a_query_goes_by(store: BaseStore) -> None:
    def put(key: str, index: list[str]) -> None:
        value = {
            "memory": "likes the violin",
            "context": [{"content": "rainy tuesday"}, {"content": "paris museum"}],
            "authors": [{"name": "hannah"}, {"name": "zoe"}],
        }
        store.put(("notes",), key, value, index=index)

    put("memory", ["memory"])
    put("context", ["context[*].content"])
    put("first", ["authors[0].name"])
    put("last", ["authors[-1].name"])
    for asked, expected in {
        "likes the violin": "memory",
        "paris museum": "context",
        "rainy tuesday": "context",
        "hannah": "first",
        "zoe": "last",
    }.items():
        assert store.search(("notes",), query=asked, limit=1)[0].key == expected


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("meta.title", "harbour at dawn"),
        ("meta.tags[*]", "watercolour"),
        ("sections[*].paragraphs[*].text", "the third paragraph of the second section"),
        ("revisions[-1].changes", "renamed the chapters"),
        ("revisions[0].changes", "first draft"),
    ],
)
def test_a_path_reaches_what_lies_deeper(store: BaseStore, path: str, asked: str) -> None:
    value = {
        "meta": {"title": "harbour at dawn", "tags": ["oil", "watercolour"]},
        "sections": [
            {"paragraphs": [{"text": "an opening"}]},
            {"paragraphs": [{"text": "x"}, {"text": "the third paragraph of the second section"}]},
        ],
        "revisions": [{"changes": "first draft"}, {"changes": "renamed the chapters"}],
    }
    store.put(("notes",), "by path", value, index=[path])
    store.put(("notes",), "other", value, index=["absent"])
    (found,) = store.search(("notes",), query=asked, limit=1)
    assert found.key == "by path" and found.score is not None


def test_each_element_of_a_list_finds_the_item(store: BaseStore) -> None:
    said = [
        "Ada eats no nuts", "The train to Porto leaves at noon", "Jonas teaches the cello",
        "The key is under the flowerpot", "The roof was mended in April",
        "Mei works at Initech", "The dog is afraid of thunder", "Rent is due on Fridays",
    ]  # fmt: skip
    store.put(
        ("notes",), "all", {"said": [{"text": text} for text in said]}, index=["said[*].text"]
    )
    for number in range(3):
        store.put(("notes",), f"other {number}", {"text": f"Shop opening hours, list {number}"})
    for text in said:
        assert store.search(("notes",), query=text, limit=1)[0].key == "all", text


def test_fields_that_an_item_lacks_are_passed_over(store: BaseStore) -> None:
    store.put(("notes",), "k", {"text": "likes the violin"}, index=["absent", "text", "no.such[*]"])
    (found,) = store.search(("notes",), query="likes the violin")
    assert found.key == "k" and found.score is not None


def test_an_item_without_its_fields_is_stored_all_the_same(store: BaseStore) -> None:
    store.put(("notes",), "k", {"text": "violin"}, index=["absent.field"])
    assert store.get(("notes",), "k").value == {"text": "violin"}
    (found,) = store.search(("notes",), query="violin")
    assert found.score is None


def test_a_changed_value_is_what_is_found(store: BaseStore) -> None:
    pets(store)
    store.put(("pets",), "cat", {"text": "Seven parrots talk all night"})
    found = store.search(("pets",), query="parrots that talk at night", limit=1)
    assert found[0].value == {"text": "Seven parrots talk all night"}


# --- namespaces -----------------------------------------------------------------------------------

TREE = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("users", "ada", "v1"),
    ("users", "ben", "v1"),
    ("users", "ben", "v2"),
]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, TREE),
        (
            {"prefix": ("a", "b"), "max_depth": 3},
            [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")],
        ),
        ({"max_depth": 1}, [("a",), ("users",)]),
        ({"suffix": ("v1",)}, [("users", "ada", "v1"), ("users", "ben", "v1")]),
        ({"prefix": ("users", "*", "v1")}, [("users", "ada", "v1"), ("users", "ben", "v1")]),
        ({"suffix": ("b", "*")}, [("a", "b", "c"), ("a", "b", "f")]),
        ({"prefix": ("users", "*")}, TREE[5:]),
        ({"prefix": ("a", "b", "c", "*")}, []),
        ({"prefix": ("a", "*", "f"), "suffix": ("c", "f")}, [("a", "c", "f")]),
        ({"suffix": ("*", "v1"), "max_depth": 1}, [("users",)]),
        ({"prefix": ("users",), "suffix": ("v2",)}, [("users", "ben", "v2")]),
        ({"prefix": ("a", "b", "c", "x")}, []),
        ({"prefix": ("b",)}, []),
        ({"limit": 3}, TREE[:3]),
        ({"limit": 3, "offset": 6}, TREE[6:]),
        ({"prefix": ("a",), "max_depth": 2, "limit": 1, "offset": 1}, [("a", "c")]),
    ],
)
def test_namespaces_are_listed_in_order(
    store: BaseStore, asked: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    store.batch([PutOp(namespace, "k", {"of": list(namespace)}) for namespace in reversed(TREE)])
    assert store.list_namespaces(**asked) == expected


def test_a_hundred_namespaces_are_listed_unless_asked_for_more(store: BaseStore) -> None:
    names = [("many", f"{number:03}") for number in range(120)]
    store.batch([PutOp(namespace, "k", {"of": list(namespace)}) for namespace in names])
    assert store.list_namespaces() == names[:100]
    assert store.list_namespaces(offset=100) == names[100:]
    assert store.list_namespaces(limit=1_000) == names


def test_an_operation_may_have_any_conditions(store: BaseStore) -> None:
    store.batch([PutOp(namespace, "k", {"of": list(namespace)}) for namespace in TREE])
    users = MatchCondition("prefix", ("users",))
    listed = store.batch(
        [
            ListNamespacesOp(),
            ListNamespacesOp((users,)),
            ListNamespacesOp((users, MatchCondition("suffix", ("v1",)))),
            ListNamespacesOp((users, MatchCondition("prefix", ("*", "ben")))),
            ListNamespacesOp((users,), max_depth=2, limit=1, offset=1),
        ]
    )
    assert listed == [
        TREE,
        TREE[5:],
        [("users", "ada", "v1"), ("users", "ben", "v1")],
        [("users", "ben", "v1"), ("users", "ben", "v2")],
        [("users", "ben")],
    ]


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_answers_each_operation_in_its_place(store: BaseStore) -> None:
    store.put(ADA, "food", {"text": "no nuts"})
    put, got, found, listed, absent = store.batch(
        [
            PutOp(("users", "ben"), "food", {"text": "anything"}),
            GetOp(ADA, "food"),
            SearchOp(("users", "ada")),
            ListNamespacesOp((MatchCondition("prefix", ("users", "a*")),)),
            GetOp(ADA, "drink"),
        ]
    )
    assert put is None and absent is None and listed == []
    assert got.value == {"text": "no nuts"} and keys(found) == {"food"}
    assert store.get(("users", "ben"), "food").value == {"text": "anything"}


def test_reads_of_a_batch_see_what_was_there_before_it(store: BaseStore) -> None:
    store.put(ADA, "food", {"n": 1})
    _, got, _ = store.batch(
        [PutOp(ADA, "food", {"n": 2}), GetOp(ADA, "food"), PutOp(ADA, "x", None)]
    )
    assert got.value == {"n": 1} and store.get(ADA, "food").value == {"n": 2}


def test_the_last_write_of_a_batch_counts(store: BaseStore) -> None:
    store.batch([PutOp(ADA, "a", {"n": 1}), PutOp(ADA, "a", {"n": 2}), PutOp(ADA, "b", {"n": 3})])
    store.batch([PutOp(ADA, "b", {"n": 4}), PutOp(ADA, "b", None)])
    assert store.get(ADA, "a").value == {"n": 2} and store.get(ADA, "b") is None
    assert len(store.search(ADA)) == 1


def test_a_batch_may_be_large_and_may_be_empty(store: BaseStore) -> None:
    assert store.batch([]) == []
    store.batch(PutOp(("many",), str(number), {"n": number}) for number in range(150))
    got = store.batch(GetOp(("many",), str(number)) for number in range(150))
    assert [item.value["n"] for item in got] == list(range(150))
    assert len(store.search(("many",), limit=500)) == 150
    store.batch(PutOp(("many",), str(number), None) for number in range(150))
    assert store.search(("many",)) == []


# --- async ----------------------------------------------------------------------------------------


def test_the_async_methods_do_the_same(store: BaseStore) -> None:
    async def story() -> None:
        await store.aput(ADA, "food", {"text": "Ada eats no nuts"})
        await asyncio.gather(*(store.aput(ADA, f"n{n}", {"n": n}) for n in range(5)))
        assert (await store.aget(ADA, "food")).value == {"text": "Ada eats no nuts"}
        assert (await store.asearch(ADA, query="nuts", limit=1))[0].key == "food"
        assert keys(await store.asearch(ADA, filter={"n": 3})) == {"n3"}
        assert await store.alist_namespaces(prefix=("users",)) == [ADA]
        (item, missing) = await store.abatch([GetOp(ADA, "n1"), GetOp(ADA, "n9")])
        assert item.value == {"n": 1} and missing is None
        pages = [await store.asearch(ADA, limit=4, offset=at) for at in (0, 4)]
        assert [len(page) for page in pages] == [4, 2]
        assert keys(await store.asearch(ADA, filter={"n": {"$eq": 1}})) == {"n1"}
        await store.aput(ADA, "secret", {"text": "eats no nuts"}, index=False)
        await store.aput(ADA, "named", {"a": "violin", "b": "cello"}, index=["b"])
        unranked = await store.asearch(ADA, query="nuts")
        assert [item.score for item in unranked if item.key == "secret"] == [None]
        assert (await store.asearch(ADA, query="cello", limit=1))[0].key == "named"
        asked = {"suffix": ("ada",), "max_depth": 1, "limit": 5, "offset": 0}
        assert await store.alist_namespaces(**asked) == [("users",)]
        await store.adelete(ADA, "food")
        assert await store.aget(ADA, "food") is None
        for refused in (
            store.aput(("a.b",), "k", {}),
            store.aput((), "k", {}),
            store.aput(("langgraph",), "k", {}),
            store.aget(("",), "k"),
            store.adelete((7,), "k"),  # type: ignore[arg-type]
            store.asearch(("a.b",)),
            store.alist_namespaces(prefix=("a.b",)),
            store.alist_namespaces(suffix=("",)),
        ):
            with pytest.raises(Invalid):
                await refused

    asyncio.run(story())
    asyncio.run(store.aput(ADA, "again", {"n": 1}))  # in another loop
    assert store.get(ADA, "again").value == {"n": 1}
