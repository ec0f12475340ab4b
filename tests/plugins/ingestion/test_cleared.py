"""All memories of somebody are deleted while what they said waits to be processed, or is read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.ingestion import job
from plugins.ingestion.job import INPUTS
from plugins.memories import DELETE_ALL_CONFIRMATION
from storage.store.bound_table import BoundTable
from tests.support.ingestion_harness import IngestionHarness
from tests.support.webhook_harness import count

DELETE_ALL_COLLECTIONS = "delete-all-collections"
SAID = {"content": "I live in Lisbon.", "session_id": "s-1"}


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path)
    yield listening
    listening.harness.close()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Jobs have read their input and go no further until this is set."""
    go_on, extract = asyncio.Event(), job.extract

    async def later(*given: Any) -> job.Prepared:
        await go_on.wait()
        return await extract(*given)

    monkeypatch.setattr(job, "extract", later)
    return go_on


def started(ingestion: IngestionHarness, **scopes: str) -> list[str]:
    """Two jobs of these scopes: an extraction, and a create that infers."""
    told = {**SAID, **scopes}
    create = {**told, "infer": True, "async_dispatch": True}
    return [
        ingestion("memories.process", told)["job_id"],
        ingestion("memories.create", create)["job_id"],
    ]


def clear(ingestion: IngestionHarness, **query: str) -> int:
    query = {"confirm": DELETE_ALL_CONFIRMATION, **query}
    return ingestion("memories.delete_all", query=query)["deleted"]


def ends(ingestion: IngestionHarness, ids: list[str]) -> list[tuple[str, Any]]:
    jobs = [ingestion("memories.jobs.get", job_id=each) for each in ids]
    return [(ended["status"], ended["error"]) for ended in jobs]


@pytest.mark.parametrize("by", ["user_id", "session_id", "collection_id", None])
def test_nothing_comes_back_after_all_was_deleted(
    ingestion: IngestionHarness, held: asyncio.Event, by: str | None
) -> None:
    default = ingestion("collections.get_default")["id"]
    doomed = started(ingestion, user_id="ada")
    named = {"user_id": "ada", "session_id": "s-1", "collection_id": default}
    assert clear(ingestion, **({} if by is None else {by: named[by]})) == 0
    held.set()
    ingestion.harness.settle()
    reason = "What it was to store was deleted before it was stored."
    assert ends(ingestion, doomed) == [("failed", reason)] * 2
    assert ingestion.contents() == []


def test_nothing_comes_back_into_a_default_collection_that_was_emptied(
    ingestion: IngestionHarness, held: asyncio.Event
) -> None:
    for _ in range(2):
        doomed = started(ingestion, user_id="ada")
        ingestion("collections.delete_all", query={"confirm": DELETE_ALL_COLLECTIONS})
        held.set()
        ingestion.harness.settle()
        assert {status for status, _ in ends(ingestion, doomed)} == {"failed"}
        held.clear()
    kept = started(ingestion, user_id="ada")
    elsewhere = ingestion("collections.create", {"name": "elsewhere"})["id"]
    ingestion("collections.delete", id=elsewhere)
    held.set()
    ingestion.harness.settle()
    assert {status for status, _ in ends(ingestion, kept)} == {"completed"}


def test_deleting_by_nothing_but_scopes_is_deleting_all(
    ingestion: IngestionHarness, held: asyncio.Event
) -> None:
    kept, doomed = started(ingestion, user_id="ben"), started(ingestion, user_id="ada")
    by_user = {"filters": {"user_id": "ada"}, "session_id": "s-1"}
    assert ingestion("memories.delete_matching", by_user) == {"deleted": 0}
    of_nobody = {"filters": {"user_id": "ben"}, "user_id": "eve"}
    assert ingestion("memories.delete_matching", of_nobody) == {"deleted": 0}
    by_more = {"filters": {"user_id": "ben", "tags": "cancelled"}}
    assert ingestion("memories.delete_matching", by_more) == {"deleted": 0}
    held.set()
    ingestion.harness.settle()
    assert {status for status, _ in ends(ingestion, doomed)} == {"failed"}
    assert {status for status, _ in ends(ingestion, kept)} == {"completed"}


@pytest.mark.parametrize(
    ("filters", "goes"),
    [
        ({"user_id": {"eq": "ada"}}, True),
        ({"AND": [{"user_id": "ada"}, {"session_id": "s-1"}]}, True),
        ({"OR": [{"user_id": "ada"}, {"tags": "cancelled"}]}, True),
        ({"user_id": ["eve", "ada"]}, True),
        ({"user_id": {"in": ["eve", "ada"]}, "agent_id": {"ne": "a-1"}}, True),
        ({"NOT": [{"user_id": "eve"}, {"agent_id": {"nin": [None, "a-1"]}}]}, True),
        ({"collection_id": "default"}, True),
        ({"AND": [{"user_id": "ada"}, {"tags": "cancelled"}]}, False),
        ({"AND": [{"user_id": "ada"}, {"user_id": "eve"}]}, False),
        ({"NOT": {"tags": "cancelled"}}, False),
        ({"NOT": {"user_id": "ada"}}, False),
        ({"created_at": {"lt": "9999-12-31"}}, False),
    ],
)
def test_whichever_way_the_scopes_are_said(
    ingestion: IngestionHarness, held: asyncio.Event, filters: dict[str, Any], goes: bool
) -> None:
    started(ingestion, user_id="ada")
    if filters.keys() == {"collection_id"}:
        filters = {"collection_id": ingestion("collections.get_default")["id"]}
    assert ingestion("memories.delete_matching", {"filters": filters}) == {"deleted": 0}
    assert count(ingestion.harness, ingestion.me, INPUTS) == (0 if goes else 2)


def test_long_texts_that_wait_are_not_read_to_find_whose_they_are(
    ingestion: IngestionHarness, held: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(ingestion, user_id="ada")

    def read(table: Any, *prefix: Any, **bounds: Any) -> Iterator[Any]:
        assert table.table is not INPUTS
        return scan(table, *prefix, **bounds)

    scan = BoundTable.scan
    monkeypatch.setattr(BoundTable, "scan", read)
    clear(ingestion, user_id="ada")
    assert count(ingestion.harness, ingestion.me, INPUTS) == 0


def test_what_others_said_is_still_processed(
    ingestion: IngestionHarness, held: asyncio.Event
) -> None:
    elsewhere = ingestion("collections.create", {"name": "elsewhere"})["id"]
    kept = started(ingestion, user_id="ben") + started(ingestion, user_id="ada", agent_id="a-2")
    apart = started(ingestion, user_id="ada", collection_id=elsewhere)
    default = ingestion("collections.get_default")["id"]
    assert clear(ingestion, user_id="ada", agent_id="a-1") == 0
    assert clear(ingestion, user_id="ada", collection_id=default, agent_id="a-2") == 0
    held.set()
    ingestion.harness.settle()
    assert [status for status, _ in ends(ingestion, kept)] == ["completed"] * 2 + ["failed"] * 2
    assert [status for status, _ in ends(ingestion, apart)] == ["completed"] * 2


def test_the_text_itself_is_gone_at_once(ingestion: IngestionHarness, held: asyncio.Event) -> None:
    started(ingestion, user_id="ada")
    assert count(ingestion.harness, ingestion.me, INPUTS) == 2
    clear(ingestion, user_id="ada")
    assert count(ingestion.harness, ingestion.me, INPUTS) == 0
    held.set()
    ingestion.harness.settle()
