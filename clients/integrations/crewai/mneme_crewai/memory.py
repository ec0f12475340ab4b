"""MnemeMemory: a crew's memory whose saving and finding is the service's.

The framework's own memory asks a language model where to put what it is told, and embeds it; this
one keeps it where it is told to, and the service finds it. Its events are the framework's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import (
    MemoryQueryCompletedEvent,
    MemoryQueryFailedEvent,
    MemoryQueryStartedEvent,
    MemorySaveCompletedEvent,
    MemorySaveFailedEvent,
    MemorySaveStartedEvent,
)
from crewai.memory.types import MemoryConfig, MemoryMatch, MemoryRecord, compute_composite_score
from crewai.memory.unified_memory import Memory
from crewai.memory.utils import join_scope_paths
from mneme_client import Mneme

from .storage import MnemeStorage

EVENT_SOURCE = "mneme"


class MnemeMemory(Memory):
    """The memory of a crew or an agent.

    client         a connection of yours, which stays yours to close; otherwise base_url and api_key
                   open one, by default $MNEME_BASE_URL and $MNEME_API_KEY
    user_id        whose memories they are; memories of other users are not seen
    collection_id  where they lie; the account's default collection when absent

    The other fields are those of the framework's Memory: root_scope, read_only, the weights of
    recency, importance and meaning. `llm` is asked only to take memories out of a task's result;
    without one the result is kept as it is. `embedder` is never used. Raises the client's errors.
    """

    def __init__(
        self,
        client: Mneme | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        user_id: str | None = None,
        collection_id: str | None = None,
        **fields: Any,
    ):
        client = client or Mneme(base_url=base_url, api_key=api_key)
        storage = MnemeStorage(client, collection_id=collection_id, user_id=user_id)
        super().__init__(storage=storage, **fields)

    def remember(
        self,
        content: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> MemoryRecord | None:
        """Keep a text; -> its record, or None where this memory is read-only."""
        kept = self.remember_many(
            [content],
            scope,
            categories,
            metadata,
            importance,
            source,
            private,
            agent_role,
            root_scope,
        )
        return kept[0] if kept else None

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Keep texts; -> their records, which are found from now on."""
        if not contents or self.read_only:
            return []
        root = self.root_scope if root_scope is None else root_scope
        records = [
            MemoryRecord(
                content=content,
                scope=join_scope_paths(root, scope),
                categories=categories or [],
                metadata=metadata or {},
                importance=self.default_importance if importance is None else importance,
                source=source,
                private=private,
            )
            for content in contents
        ]
        told = {"value": "\n".join(contents), "metadata": metadata or {}, "agent_role": agent_role}
        with self._saving(told):
            self.storage.save(records)
        return records

    def extract_memories(self, content: str) -> list[str]:
        """The memories in a task's result, by the language model; all of it as one without a
        model.
        """
        if "llm" in self.model_fields_set:
            return super().extract_memories(content)
        return [content] if content.strip() else []

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """What answers the query, best first by meaning, recency and importance. The service has
        one depth.
        """
        if not query.strip():
            return []
        inside = scope if self.root_scope is None else join_scope_paths(self.root_scope, scope)
        with self._asking(query, limit) as answer:
            found = self.storage.find(query, inside, categories, limit, source, include_private)
            matches = [self._match(record, score) for record, score in found]
            matches.sort(key=lambda match: match.score, reverse=True)
            answer(matches)
        return matches

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        """Change what is given of a record; -> the record. Raises ValueError where there is
        none.
        """
        held = self.storage.get_record(record_id)
        if held is None:
            raise ValueError(f"Record not found: {record_id}")
        if self.read_only:
            return held
        given = {
            "content": content,
            "scope": scope,
            "categories": categories,
            "metadata": metadata,
            "importance": importance,
        }
        changed = held.model_copy(
            update={name: value for name, value in given.items() if value is not None}
        )
        self.storage.update(changed)
        return changed

    def _match(self, record: MemoryRecord, score: float) -> MemoryMatch:
        names = ("recency_weight", "semantic_weight", "importance_weight", "recency_half_life_days")
        weights = MemoryConfig(**{name: getattr(self, name) for name in names})
        total, reasons = compute_composite_score(record, score, weights)
        return MemoryMatch(record=record, score=total, match_reasons=reasons)

    @contextmanager
    def _saving(self, told: dict[str, Any]) -> Iterator[None]:
        """The framework's events around a save."""
        told = {**told, "source_type": EVENT_SOURCE}
        crewai_event_bus.emit(self, MemorySaveStartedEvent(**told))
        started = time.perf_counter()
        try:
            yield
        except Exception as error:
            crewai_event_bus.emit(self, MemorySaveFailedEvent(error=str(error), **told))
            raise
        spent_ms = (time.perf_counter() - started) * 1000
        crewai_event_bus.emit(self, MemorySaveCompletedEvent(save_time_ms=spent_ms, **told))

    @contextmanager
    def _asking(self, query: str, limit: int) -> Iterator[Callable[[list[MemoryMatch]], None]]:
        """The framework's events around a search, whose matches are given to what it yields."""
        asked: dict[str, Any] = {
            "query": query,
            "limit": limit,
            "score_threshold": None,
            "source_type": EVENT_SOURCE,
        }
        crewai_event_bus.emit(self, MemoryQueryStartedEvent(**asked))
        started, found = time.perf_counter(), list[MemoryMatch]()
        try:
            yield found.extend
        except Exception as error:
            crewai_event_bus.emit(self, MemoryQueryFailedEvent(error=str(error), **asked))
            raise
        spent_ms = (time.perf_counter() - started) * 1000
        crewai_event_bus.emit(
            self, MemoryQueryCompletedEvent(results=found, query_time_ms=spent_ms, **asked)
        )
