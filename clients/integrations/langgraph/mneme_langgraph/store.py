"""MnemeStore: each operation of a store as operations of the service.

    get               memories.query by the item's place; memories.update where a TTL is refreshed
    put               the same query, then memories.update, or memories.create_batch for new items
    delete            the same query, then memories.bulk_delete
    search            memories.query, or search.search with a query
    list_namespaces   memories.values: every namespace is an app_id

In a batch all reads come first, then the writes; of several writes to one item the last counts.
Two processes that put the same new item at once may both create it; whoever looks last removes the
older one, so that one is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from mneme_client import Mneme, errors, searchable

from . import conditions, items
from .items import Memory, Place

PAGE_ITEMS = 100
VALUES_PER_PAGE = 1_000
PLACES_PER_QUERY = 50
RANKED_ITEMS_MAX = 10_000  # as far as a search of the service goes
DELETED_PER_CALL = 500
WHOLE_ITEM: IndexConfig = {"fields": [items.WHOLE]}

T = TypeVar("T")


class MnemeStore(BaseStore):
    """Long-term memory of a graph, kept by the service.

    client         a connection of yours, which stays yours to close; otherwise base_url and
                   api_key open one, by default $MNEME_BASE_URL and $MNEME_API_KEY
    collection_id  where its memories lie; the account's default collection when absent
    index          {"fields": [...]}: the paths whose texts searches with a query go by, all by
                   default. None turns ranking off: a query is then ignored. The service embeds by
                   itself, so that `embed` and `dims` raise ValueError
    ttl            default_ttl in minutes, and refresh_on_read. What has expired is never read, and
                   the service removes it: omit_expired and sweep_interval_minutes change nothing
    weak_results   whether a search with a query ranks everything, as other stores do; without them
                   it returns what stands on its own, perhaps nothing

    Its `a…` methods run the same calls in a thread. Safe to share between threads and event loops.
    Raises the client's errors; a value is a JSON object of 16 KiB at most.
    """

    supports_ttl = True

    def __init__(
        self,
        client: Mneme | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        collection_id: str | None = None,
        index: IndexConfig | None = WHOLE_ITEM,
        ttl: TTLConfig | None = None,
        weak_results: bool = True,
    ):
        if index is not None and (refused := {"embed", "dims"} & set(index)):
            raise ValueError(f"The service embeds by itself; leave out {', '.join(refused)}.")
        self._client = client or Mneme(base_url=base_url, api_key=api_key)
        self._owns_client = client is None
        self._collection_id = collection_id
        self._paths = () if index is None else tuple(index.get("fields") or (items.WHOLE,))
        self._weak_results = weak_results
        self.ttl_config = ttl

    def __enter__(self) -> MnemeStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections that the store opened."""
        if self._owns_client:
            self._client.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The result of each operation, in their order. Raises InvalidNamespaceError, ValueError
        for a filter that does not exist, and the client's errors.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        gets = [op for op in asked if isinstance(op, GetOp)]
        held = self._held((op.namespace, op.key) for op in gets)
        results: list[Result] = []
        read: list[Memory] = []  # whose TTL begins anew
        for op in asked:
            if isinstance(op, GetOp):
                found = held.get((op.namespace, op.key), [])[:1]
                read += found if op.refresh_ttl else []
                results.append(items.item(found[0]) if found else None)
            elif isinstance(op, SearchOp):
                hits = self._search(op)
                read += [memory for memory, _ in hits] if op.refresh_ttl else []
                results.append([items.search_item(*hit) for hit in hits])
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list_namespaces(op))
            elif isinstance(op, PutOp):
                results.append(None)
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
        self._refresh(read)
        self._write({(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)})
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As batch."""
        return await asyncio.to_thread(self.batch, list(ops))

    # --- reading ----------------------------------------------------------------------------------

    def _collection(self) -> str:
        if self._collection_id is None:
            self._collection_id = self._client.collections.get_default()["id"]
        return self._collection_id

    def _listed(self, wanted: Sequence[dict[str, Any]]) -> Iterator[Memory]:
        """The items that meet all conditions, newest first."""
        filters = {"AND": [{"source_type": items.SOURCE_TYPE}, *wanted]}
        offset, total = 0, 1
        while offset < total:
            page = self._client.memories.query(
                collection_id=self._collection(), filters=filters, limit=PAGE_ITEMS, offset=offset
            )
            yield from page["items"]
            offset, total = offset + PAGE_ITEMS, page["total_count"]

    def _held(self, places: Iterable[Place]) -> dict[Place, list[Memory]]:
        """The memories at each place that has any, newest first; more than one only while processes
        put a new item at once.
        """
        found: dict[Place, list[Memory]] = {}
        references = list(dict.fromkeys(map(items.reference, places)))
        for part in _parts(references, PLACES_PER_QUERY):
            for memory in self._listed([{"source_reference": part}]):
                found.setdefault(items.place_of(memory), []).append(memory)
        return found

    def _search(self, op: SearchOp) -> list[tuple[Memory, float | None]]:
        """Memories with their scores, best first; without a query newest first, and no scores."""
        wanted = op.filter or {}
        conditions.check(wanted)
        narrowed: list[dict[str, Any]] = []
        if op.namespace_prefix:
            narrowed.append({items.NAMESPACES: items.path(op.namespace_prefix)})
        if narrowing := conditions.narrowing(wanted, items.VALUE):
            narrowed.append({"OR": [{items.WIDE: True}, {"AND": narrowing}]})
        matching = (
            hit
            for hit in self._candidates(op.query, narrowed)
            if conditions.matches(hit[0]["metadata"]["value"], wanted)
        )
        return list(islice(_once(matching), op.offset, op.offset + op.limit))

    def _candidates(
        self, query: str | None, wanted: list[dict[str, Any]]
    ) -> Iterator[tuple[Memory, float | None]]:
        text = searchable(query or "")
        if not text or not self._paths:
            yield from ((memory, None) for memory in self._listed(wanted))
            return
        unindexed = {"tags": items.UNINDEXED}
        filters = {"AND": [{"source_type": items.SOURCE_TYPE}, {"NOT": unindexed}, *wanted]}
        offset, full = 0, True
        while full and offset < RANKED_ITEMS_MAX:
            page = self._client.search(
                text,
                collection_id=self._collection(),
                filters=filters,
                limit=PAGE_ITEMS,
                offset=offset,
                include_low_confidence=self._weak_results,
            )["results"]
            yield from ((memory, memory["normalized_score"]) for memory in page)
            offset, full = offset + PAGE_ITEMS, len(page) == PAGE_ITEMS
        if self._weak_results:
            yield from ((memory, None) for memory in self._listed([unindexed, *wanted]))

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        prefix = self._namespace_prefix()
        found: set[tuple[str, ...]] = set()
        offset, total = 0, 1
        while offset < total:
            page = self._client.memories.values(
                "app_id",
                collection_id=self._collection(),
                filters={"source_type": items.SOURCE_TYPE},
                limit=VALUES_PER_PAGE,
                offset=offset,
            )
            names = [item["value"].removeprefix(prefix) for item in page["items"]]
            found |= {tuple(name.split(".")) for name in names}
            offset, total = offset + VALUES_PER_PAGE, page["total_count"]
        matching = {
            namespace[: op.max_depth]
            for namespace in found
            if all(_is_at(namespace, place) for place in op.match_conditions or ())
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _namespace_prefix(self) -> str:
        return f"{items.SOURCE_TYPE}:{self._collection()}:"

    # --- writing ----------------------------------------------------------------------------------

    def _refresh(self, read: Sequence[Memory]) -> None:
        """Begin the TTL of items anew. One that is put or deleted meanwhile has another already."""
        limited = [memory for memory in read if "ttl" in memory["metadata"]["item"]]
        for memories in self._held(map(items.place_of, limited)).values():
            memory = memories[0]
            item = {"written_at": memory["updated_at"], **memory["metadata"]["item"]}
            try:
                self._client.memories.update(
                    memory["id"],
                    metadata={**memory["metadata"], "item": item},
                    expires_at=items.expiry(item["ttl"]),
                    if_match=memory["version"],
                )
            except (errors.PreconditionFailed, errors.NotFound):
                continue

    def _write(self, puts: dict[Place, PutOp]) -> None:
        prefix = self._namespace_prefix() if puts else ""
        made = {
            place: items.fields(op, prefix, self._paths)
            for place, op in puts.items()
            if op.value is not None
        }
        held = self._held(puts)
        self._delete([row for place in held if place not in made for row in held[place]])
        new = []
        for place, fields in made.items():
            newest, *older = held.get(place) or [None]
            if newest is None or not self._update(newest["id"], fields):
                new.append(place)
            self._delete(older)
        for places in _parts(new, PAGE_ITEMS):
            created = self._client.memories.create_batch(
                [made[place] for place in places],
                collection_id=self._collection(),
                wait_for_index=True,
            )
            for failed in created["errors"]:
                raise ValueError(f"An item was refused: {failed}")
        self._delete([row for rows in self._held(new).values() for row in rows[1:]])

    def _update(self, memory_id: str, fields: dict[str, Any]) -> bool:
        """Whether the memory still was there to be changed."""
        kept = ("content", "metadata", "tags", "expires_at")
        try:
            self._client.memories.update(
                memory_id, **{name: fields[name] for name in kept}, wait_for_index=True
            )
        except errors.NotFound:
            return False
        return True

    def _delete(self, memories: Sequence[Memory]) -> None:
        for part in _parts([memory["id"] for memory in memories], DELETED_PER_CALL):
            self._client.memories.bulk_delete(part)


def _parts(whole: Sequence[T], size: int) -> Iterator[list[T]]:
    return (list(whole[start : start + size]) for start in range(0, len(whole), size))


def _once(
    hits: Iterable[tuple[Memory, float | None]],
) -> Iterator[tuple[Memory, float | None]]:
    """Each item once, however often it came: pages may shift while others write."""
    seen: set[Place] = set()
    for memory, score in hits:
        place = items.place_of(memory)
        if place not in seen:
            seen.add(place)
            yield memory, score


def _is_at(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as the condition says; `*` stands for any label."""
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    length = len(condition.path)
    part = namespace[:length] if condition.match_type == "prefix" else namespace[-length:]
    return len(part) == length and all(
        wanted in ("*", label) for wanted, label in zip(condition.path, part, strict=True)
    )
