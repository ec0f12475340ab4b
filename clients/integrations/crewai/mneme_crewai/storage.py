"""MnemeStorage: records of a crew's memory as memories of the service.

    save                       memories.create_batch
    find                       search.search
    update                     memories.query, memories.update
    delete, reset              memories.delete_matching; with a metadata_filter memories.query,
                               memories.bulk_delete
    scopes, categories         memories.values
    get_record, list_records,
    count, get_scope_info      memories.query

A record is a memory whose source_type is "crewai"; its content and importance are the memory's own,
its created_at is the memory's occurred_at, and the rest is metadata.crewai:

    id          the record's own
    scope       its path; scopes: the paths above it, and its own
    importance, categories, source, private, metadata   as the record has them
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from crewai.memory.types import MemoryRecord, ScopeInfo
from crewai.memory.utils import normalize_scope_path
from mneme_client import Mneme, searchable

SOURCE_TYPE = "crewai"
AT = "metadata.crewai."
PAGE_ITEMS = 100
PAGE_VALUES = 1_000
DELETED_PER_CALL = 500
FOUND_MAX = 100
ROOT = "/"

T = TypeVar("T")
Condition = dict[str, Any]


class MnemeStorage:
    """The records of one account's crews.

    client         a connection, which stays yours to close
    collection_id  where the memories lie; the account's default collection when absent
    user_id        whose memories they are; records of other users are not seen

    A scope prefix means a path and what is below it. Raises the client's errors.
    """

    def __init__(
        self, client: Mneme, *, collection_id: str | None = None, user_id: str | None = None
    ):
        self._client = client
        self._where = {"collection_id": collection_id, "user_id": user_id}

    def save(self, records: list[MemoryRecord]) -> None:
        """Keep records; they are found as soon as this returns."""
        for part in _parts(records, PAGE_ITEMS):
            memories: list[Any] = [_fields(record) for record in part]
            stored = self._client.memories.create_batch(
                memories, wait_for_index=True, **self._where
            )
            for refused in stored["errors"]:
                raise ValueError(f"A record was refused: {refused}")

    def find(
        self,
        query: str,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        source: str | None = None,
        include_private: bool = False,
    ) -> list[tuple[MemoryRecord, float]]:
        """What answers the query, best first, with scores between 0 and 1; nothing is padded.
        Private records are seen by their own source alone, unless all are included.
        """
        text = searchable(query)
        if not text:
            return []
        wanted = _conditions(scope_prefix, categories)
        if not include_private:
            own = [] if source is None else [{f"{AT}source": {"eq": source}}]
            wanted.append({"OR": [{f"{AT}private": False}, *own]})
        found = self._client.search(
            text, filters={"AND": wanted}, limit=min(limit, FOUND_MAX), **self._where
        )
        return [(_record(hit), hit["normalized_score"]) for hit in found["results"]]

    def search(
        self, query_embedding: list[float], *args: Any, **kwargs: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Raises TypeError: the service embeds by itself, and searches for texts. See find."""
        raise TypeError("Mneme searches for texts, not for vectors: use MnemeMemory(…).recall.")

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet all conditions; -> how many."""
        wanted = _conditions(scope_prefix, categories)
        if record_ids is not None:
            wanted.append({f"{AT}id": {"in": record_ids}})
        if older_than is not None:
            wanted.append({"occurred_at": {"lt": _aware(older_than).isoformat()}})
        if not metadata_filter:
            done = self._client.memories.delete_matching({"AND": wanted}, **self._where)
            return int(done["deleted"])
        # What the service finds is at least what is meant: it compares each value of a list.
        wanted += [{f"{AT}metadata.{name}": value} for name, value in metadata_filter.items()]
        ids = [
            memory["id"]
            for memory in self._walk(wanted)
            for kept in (_record(memory).metadata,)
            if all(kept.get(name) == value for name, value in metadata_filter.items())
        ]
        return sum(
            self._client.memories.bulk_delete(part)["deleted"]
            for part in _parts(ids, DELETED_PER_CALL)
        )

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope, or all."""
        self.delete(scope_prefix)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id. Raises ValueError where there is none."""
        memory = self._memory(record.id)
        if memory is None:
            raise ValueError(f"Record not found: {record.id}")
        kept = ("content", "importance", "metadata")
        fields = {name: value for name, value in _fields(record).items() if name in kept}
        self._client.memories.update(memory["id"], wait_for_index=True, **fields)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with the id, or None."""
        memory = self._memory(record_id)
        return None if memory is None else _record(memory)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Records, the last saved first."""
        found: list[MemoryRecord] = []
        while len(found) < limit:
            page = self._page(
                _conditions(scope_prefix), min(PAGE_ITEMS, limit - len(found)), offset + len(found)
            )
            found += map(_record, page["items"])
            if offset + len(found) >= page["total_count"] or not page["items"]:
                break
        return found

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope has."""
        return int(self._page(_conditions(scope_prefix), 1, 0)["total_count"])

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """What a scope has; reads all its records."""
        records = [_record(memory) for memory in self._walk(_conditions(scope))]
        made = [record.created_at for record in records]
        return ScopeInfo(
            path=normalize_scope_path(scope),
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=min(made, default=None),
            newest_record=max(made, default=None),
            child_scopes=_children(scope, [record.scope for record in records]),
        )

    def list_scopes(self, parent: str = ROOT) -> list[str]:
        """The scopes directly below one."""
        scopes = self._values("scope", _conditions(parent))
        return _children(parent, [scope for scope, _ in scopes])

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """How many records each category of a scope has, the most frequent first."""
        return dict(self._values("categories", _conditions(scope_prefix)))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """As save."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, *args: Any, **kwargs: Any) -> list[tuple[MemoryRecord, float]]:
        """As search."""
        return self.search(*args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> int:
        """As delete."""
        return await asyncio.to_thread(self.delete, *args, **kwargs)

    def _memory(self, record_id: str) -> Mapping[str, Any] | None:
        return next(self._walk([*_conditions(None), {f"{AT}id": {"eq": record_id}}]), None)

    def _page(self, wanted: list[Condition], limit: int, offset: int) -> Any:
        return self._client.memories.query(
            filters={"AND": wanted}, limit=limit, offset=offset, **self._where
        )

    def _walk(self, wanted: list[Condition]) -> Iterator[Mapping[str, Any]]:
        offset, total = 0, 1
        while offset < total:
            page = self._page(wanted, PAGE_ITEMS, offset)
            yield from page["items"]
            offset, total = offset + PAGE_ITEMS, page["total_count"]

    def _values(self, name: str, wanted: list[Condition]) -> list[tuple[str, int]]:
        """The values of a field of records, and how many of them have each."""
        found: list[tuple[str, int]] = []
        total = 1
        while len(found) < total:
            page = self._client.memories.values(
                f"{AT}{name}",
                filters={"AND": wanted},
                limit=PAGE_VALUES,
                offset=len(found),
                **self._where,
            )
            found += [(item["value"], item["count"]) for item in page["items"]]
            total = page["total_count"] if page["items"] else 0
        return found


def _conditions(scope: str | None, categories: list[str] | None = None) -> list[Condition]:
    wanted: list[Condition] = [{"source_type": SOURCE_TYPE}]
    if scope is not None:
        wanted.append({f"{AT}scopes": {"eq": normalize_scope_path(scope)}})
    if categories:
        wanted.append({f"{AT}categories": {"in": categories}})
    return wanted


def _fields(record: MemoryRecord) -> dict[str, Any]:
    """What the memory of a record is created with."""
    scope = normalize_scope_path(record.scope)
    labels = scope.strip(ROOT).split(ROOT) if scope != ROOT else []
    above = [ROOT + ROOT.join(labels[:depth]) for depth in range(len(labels) + 1)]
    return {
        "content": record.content,
        "importance": record.importance,
        "occurred_at": _aware(record.created_at),
        "source_type": SOURCE_TYPE,
        "metadata": {
            "crewai": {
                "id": record.id,
                "scope": scope,
                "scopes": above,
                "private": record.private,
                "source": record.source,
                "importance": record.importance,
                "categories": record.categories,
                "metadata": record.metadata,
            }
        },
    }


def _record(memory: Mapping[str, Any]) -> MemoryRecord:
    kept = memory["metadata"]["crewai"]
    made = _naive(memory["occurred_at"])
    read = memory.get("last_accessed_at")
    return MemoryRecord(
        id=kept["id"],
        content=memory["content"],
        scope=kept["scope"],
        categories=kept["categories"],
        metadata=kept["metadata"],
        importance=kept["importance"],
        created_at=made,
        last_accessed=_naive(read) if read else made,
        source=kept["source"],
        private=kept["private"],
    )


def _children(scope: str, paths: Sequence[str]) -> list[str]:
    """Those of the paths, and above them, that are directly below a scope."""
    below = normalize_scope_path(scope).rstrip(ROOT) + ROOT
    inner = [path[len(below) :] for path in paths if path.startswith(below)]
    return sorted({below + path.split(ROOT)[0] for path in inner if path})


def _aware(moment: datetime) -> datetime:
    """The framework's times are UTC without saying so."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _naive(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _parts(whole: Sequence[T], size: int) -> Iterator[list[T]]:
    return (list(whole[start : start + size]) for start in range(0, len(whole), size))
