"""What Mneme's store does beyond the framework's own store in memory: TTLs, configuration, bounds,
several processes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from mneme_client import Mneme, errors
from mneme_langgraph import MnemeStore

ADA = ("users", "ada")
SOON_MINUTES = 1 / 60
DAY_MINUTES = 24 * 60
SECONDS_MAX = 60

Expiry = Callable[[str], str | None]


def gone(store: MnemeStore, key: str) -> bool:
    """Whether the item goes, looked at without refreshing it."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        if store.get(ADA, key, refresh_ttl=False) is None:
            return True
    return False


@pytest.fixture
def expiry(client: Mneme, collection_id: str) -> Callable[[str], str | None]:
    """When the memory of the item with this key expires."""

    def of(key: str) -> str | None:
        filters = {"metadata.item.key": key}
        found = client.memories.query(collection_id=collection_id, filters=filters)
        (memory,) = found["items"]
        return memory["expires_at"]

    return of


# --- TTL ------------------------------------------------------------------------------------------


def test_an_item_goes_when_its_ttl_is_over(mneme: MnemeStore) -> None:
    mneme.put(ADA, "code", {"text": "The code is 4711"}, ttl=SOON_MINUTES)
    mneme.put(ADA, "name", {"text": "Ada"}, ttl=DAY_MINUTES)
    mneme.put(("short",), "k", {"n": 1}, ttl=SOON_MINUTES)
    assert mneme.get(ADA, "code", refresh_ttl=False).value == {"text": "The code is 4711"}
    assert gone(mneme, "code")
    assert [item.key for item in mneme.search(ADA)] == ["name"]
    assert [item.key for item in mneme.search(ADA, query="What is the code?")] == ["name"]
    until = time.monotonic() + SECONDS_MAX
    while mneme.list_namespaces() != [ADA]:
        assert time.monotonic() < until
    mneme.put(ADA, "code", {"text": "The code is 0815"})
    assert mneme.get(ADA, "code").value == {"text": "The code is 0815"}


@pytest.mark.parametrize("read", ["get", "search", "query", "put"])
def test_reading_and_writing_begin_the_ttl_anew(
    mneme: MnemeStore, expiry: Expiry, read: str
) -> None:
    mneme.put(ADA, "k", {"text": "violin"}, ttl=DAY_MINUTES)
    before, item = expiry("k"), mneme.get(ADA, "k", refresh_ttl=False)
    assert expiry("k") == before
    found: Any = None
    if read == "get":
        found = mneme.get(ADA, "k")
    elif read == "search":
        (found,) = mneme.search(ADA)
    elif read == "query":
        (found,) = mneme.search(ADA, query="violin")
    else:
        mneme.put(ADA, "k", {"text": "violin"}, ttl=DAY_MINUTES)
    assert expiry("k") > before
    if found is not None:  # a read changes nothing else
        again = mneme.get(ADA, "k", refresh_ttl=False)
        assert (again.updated_at, again.value) == (item.updated_at, item.value)
        assert found.updated_at == item.updated_at


@pytest.mark.parametrize("read", ["get", "search"])
def test_a_read_may_leave_the_ttl_as_it_is(mneme: MnemeStore, expiry: Expiry, read: str) -> None:
    mneme.put(ADA, "k", {"n": 1}, ttl=DAY_MINUTES)
    before = expiry("k")
    mneme.get(ADA, "k", refresh_ttl=False) if read == "get" else mneme.search(
        ADA, refresh_ttl=False
    )
    assert expiry("k") == before


def test_only_items_that_a_search_returns_live_longer(mneme: MnemeStore, expiry: Expiry) -> None:
    for key in ("a", "b"):
        mneme.put(ADA, key, {"name": key}, ttl=DAY_MINUTES)
    before = expiry("a"), expiry("b")
    mneme.search(ADA, filter={"name": "a"})
    assert expiry("a") > before[0] and expiry("b") == before[1]


def test_no_ttl_is_no_expiry_and_takes_one_away(mneme: MnemeStore, expiry: Expiry) -> None:
    mneme.put(ADA, "k", {"n": 1}, ttl=DAY_MINUTES)
    mneme.put(ADA, "k", {"n": 2})
    assert expiry("k") is None
    mneme.get(ADA, "k")
    assert expiry("k") is None


def test_the_configuration_has_defaults_for_ttls(
    client: Mneme, collection_id: str, expiry: Expiry
) -> None:
    store = MnemeStore(
        client,
        collection_id=collection_id,
        ttl={"default_ttl": DAY_MINUTES, "refresh_on_read": False},
    )
    store.put(ADA, "k", {"n": 1})
    before = expiry("k")
    assert before is not None
    store.get(ADA, "k")
    store.search(ADA)
    assert expiry("k") == before
    store.get(ADA, "k", refresh_ttl=True)
    after = expiry("k")
    assert after > before
    store.search(ADA, refresh_ttl=True)
    assert expiry("k") > after
    store.put(ADA, "forever", {"n": 1}, ttl=None)
    assert expiry("forever") is None
    assert store.supports_ttl


def test_ttls_are_the_same_awaited(mneme: MnemeStore, expiry: Expiry) -> None:
    async def story() -> None:
        await mneme.aput(ADA, "k", {"text": "violin"}, ttl=DAY_MINUTES)
        at = [expiry("k")]
        await mneme.aget(ADA, "k", refresh_ttl=False)
        await mneme.asearch(ADA, refresh_ttl=False)
        assert expiry("k") == at[0]
        await mneme.aget(ADA, "k")
        at.append(expiry("k"))
        await mneme.asearch(ADA, query="violin")
        at.append(expiry("k"))
        await mneme.abatch([GetOp(ADA, "k", refresh_ttl=False), SearchOp(ADA)])
        at.append(expiry("k"))
        assert None not in at and at == sorted(set(at), key=str)
        await mneme.aput(ADA, "k", {"text": "violin"})
        assert expiry("k") is None

    asyncio.run(story())


@pytest.mark.parametrize(
    "op",
    [
        GetOp(("a.b",), "k"),
        PutOp(("a.b",), "k", {"n": 1}),
        SearchOp(("a.b",)),
        ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
    ],
    ids=lambda op: type(op).__name__,
)
def test_a_batch_with_a_label_that_is_none_does_nothing(mneme: MnemeStore, op: Op) -> None:
    with pytest.raises(InvalidNamespaceError):
        mneme.batch([PutOp(ADA, "k", {"n": 1}), op])
    with pytest.raises(InvalidNamespaceError):
        asyncio.run(mneme.abatch([PutOp(ADA, "k", {"n": 1}), op]))
    assert mneme.list_namespaces() == []


def test_a_refresh_never_undoes_a_put(mneme: MnemeStore) -> None:
    mneme.put(ADA, "k", {"n": 0}, ttl=DAY_MINUTES)

    def read(_: int) -> Item | None:
        return mneme.get(ADA, "k")

    with ThreadPoolExecutor(4) as threads:
        reads = [threads.submit(read, number) for number in range(24)]
        for number in range(1, 9):
            mneme.put(ADA, "k", {"n": number}, ttl=DAY_MINUTES)
            assert mneme.get(ADA, "k", refresh_ttl=False).value == {"n": number}
        assert all(read.result() is not None for read in reads)
    assert mneme.get(ADA, "k").value == {"n": 8}


# --- configuration --------------------------------------------------------------------------------


def test_the_index_says_which_fields_are_searched(client: Mneme, collection_id: str) -> None:
    store = MnemeStore(client, collection_id=collection_id, index={"fields": ["text", "notes[*]"]})
    store.put(ADA, "a", {"text": "likes the violin", "private": "owes a fortune"})
    store.put(ADA, "b", {"notes": ["owes a fortune"]})
    store.put(ADA, "c", {"other": "owes a fortune"})
    found = store.search(ADA, query="owes a fortune")
    assert found[0].key == "b"
    assert [item.key for item in found if item.score is None] == ["c"]
    store.put(ADA, "c", {"other": "owes a fortune to the bank"}, index=["other"])
    assert store.search(ADA, query="fortune to the bank", limit=1)[0].key == "c"


def test_without_an_index_a_query_ranks_nothing(client: Mneme, collection_id: str) -> None:
    store = MnemeStore(client, collection_id=collection_id, index=None)
    store.put(ADA, "a", {"text": "violin"}, index=["text"])
    store.put(ADA, "b", {"text": "cello"})
    found = store.search(ADA, query="violin")
    assert {item.key for item in found} == {"a", "b"}
    assert {item.score for item in found} == {None}


def test_embeddings_of_ones_own_are_refused() -> None:
    with pytest.raises(ValueError, match="embed"):
        MnemeStore(index={"embed": lambda texts: [[0.0] for _ in texts], "dims": 1})


def test_without_weak_results_nothing_is_padded(client: Mneme, collection_id: str) -> None:
    store = MnemeStore(client, collection_id=collection_id, weak_results=False)
    store.put(ADA, "flight", {"text": "Ada flies to Lisbon on 12 June"})
    store.put(ADA, "cat", {"text": "The cat is named Minka"})
    (found,) = store.search(ADA, query="When does Ada fly to Lisbon?")
    assert found.key == "flight"


def test_a_store_opens_and_closes_connections_of_its_own(collection_id: str) -> None:
    with MnemeStore(collection_id=collection_id) as store:
        store.put(ADA, "k", {"n": 1})
    with MnemeStore(collection_id=collection_id) as another:
        assert another.get(ADA, "k").value == {"n": 1}


def test_the_default_collection_is_the_default(client: Mneme) -> None:
    store = MnemeStore(client)
    namespace = ("langgraph tests", "default")
    store.put(namespace, "k", {"n": 1})
    assert namespace in store.list_namespaces()
    other = MnemeStore(client, collection_id=client.collections.get_default()["id"])
    assert other.get(namespace, "k").value == {"n": 1}
    other.delete(namespace, "k")
    assert store.get(namespace, "k") is None and namespace not in store.list_namespaces()


def test_stores_of_two_collections_are_strangers(mneme: MnemeStore, client: Mneme) -> None:
    made = client.collections.create(name="langgraph, another")
    other = MnemeStore(client, collection_id=made["id"])
    mneme.put(ADA, "k", {"n": 1})
    assert other.get(ADA, "k") is None and other.search(()) == [] and other.list_namespaces() == []
    client.collections.delete(made["id"])


def test_other_memories_of_the_collection_are_no_items(
    mneme: MnemeStore, client: Mneme, collection_id: str
) -> None:
    client.memories.create(
        content="Ada plays the violin.", collection_id=collection_id, wait_for_index=True
    )
    mneme.put(ADA, "k", {"text": "cello"})
    assert [item.key for item in mneme.search((), query="violin")] == ["k"]
    assert [item.key for item in mneme.search(())] == ["k"]


def test_an_item_may_cease_to_be_indexed(mneme: MnemeStore) -> None:
    mneme.put(ADA, "k", {"text": "Seven parrots talk all night"})
    mneme.put(ADA, "k", {"text": "Seven parrots talk all night"}, index=False)
    (found,) = mneme.search(ADA, query="parrots that talk at night")
    assert found.score is None
    mneme.put(ADA, "k", {"text": "Seven parrots talk all night"})
    (found,) = mneme.search(ADA, query="parrots that talk at night")
    assert found.score is not None


# --- bounds and several writers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"n": math.nan}, ValueError),
        ({"s": {1, 2}}, TypeError),
        ({"text": "x" * 17_000}, ValueError),
    ],
)
def test_what_is_no_json_or_too_large_is_refused_before_anything_is_written(
    mneme: MnemeStore, value: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        mneme.batch([PutOp(ADA, "good", {"n": 1}), PutOp(ADA, "bad", value)])
    assert mneme.search(()) == []


def test_a_namespace_that_is_too_long_is_refused(mneme: MnemeStore) -> None:
    with pytest.raises((ValueError, errors.ValidationFailed)):
        mneme.put(("x" * 300,), "k", {"n": 1})
    with pytest.raises(ValueError, match="labels"):
        mneme.put(("x",) * 65, "k", {"n": 1})


def test_a_namespace_that_has_no_room_is_refused_in_words(mneme: MnemeStore) -> None:
    with pytest.raises(ValueError, match=r"A namespace has at most \d+ characters"):
        mneme.put(("x" * 250,), "k", {"n": 1})


def test_a_ttl_beyond_all_calendars_is_none(mneme: MnemeStore, expiry: Expiry) -> None:
    mneme.put(ADA, "k", {"n": 1}, ttl=1e12)
    assert mneme.get(ADA, "k").value == {"n": 1} and expiry("k") is None


def test_filters_see_all_of_a_value_with_many_fields(mneme: MnemeStore) -> None:
    mneme.put(ADA, "wide", {**{f"f{n}": n for n in range(400)}, "last": "here"})
    mneme.put(ADA, "other", {"last": "there"})
    assert [item.key for item in mneme.search(ADA, filter={"last": "here"})] == ["wide"]
    assert [item.key for item in mneme.search(ADA, filter={"f399": {"$gt": 398}})] == ["wide"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": 1}, {"one"}),  # in JSON true is no number
        ({"n": True}, {"yes"}),
        ({"n": {"$gt": 0}}, {"one"}),
        ({"n": {"$gt": "a"}}, {"text"}),  # texts compare with texts
        ({"n": {"$lte": "b"}}, {"text"}),
    ],
)
def test_comparisons_keep_to_their_kind(
    mneme: MnemeStore, filter: dict[str, Any], expected: set[str]
) -> None:
    for key, value in {"one": 1, "yes": True, "text": "b", "none": None}.items():
        mneme.put(ADA, key, {"n": value})
    assert {item.key for item in mneme.search(ADA, filter=filter)} == expected


def test_many_writers_of_a_new_item_leave_one(
    mneme: MnemeStore, client: Mneme, collection_id: str
) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: mneme.put(ADA, "k", {"n": n}), range(8)))
    found = client.memories.query(collection_id=collection_id)
    assert found["total_count"] == 1
    item = mneme.get(ADA, "k")
    assert item is not None and item.value["n"] in range(8)


def test_when_an_item_was_made_stays_as_it_was(mneme: MnemeStore) -> None:
    mneme.put(ADA, "k", {"n": 1})
    before = mneme.get(ADA, "k")
    mneme.put(ADA, "k", {"n": 2})
    after = mneme.get(ADA, "k")
    assert after.created_at == before.created_at == before.updated_at < after.updated_at


def test_several_searches_of_a_batch_are_answered_each(mneme: MnemeStore) -> None:
    async def story() -> None:
        await mneme.aput(ADA, "a", {"text": "violin"})
        await mneme.aput(("other",), "b", {"text": "cello"})
        first, second = await mneme.abatch([SearchOp(ADA), SearchOp(("other",), query="cello")])
        assert [item.key for item in first] == ["a"] and [item.key for item in second] == ["b"]

    asyncio.run(story())
