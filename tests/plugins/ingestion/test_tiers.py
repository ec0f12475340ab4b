"""Tiers: what moves a memory up and down, that borders do not flicker, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from plugins.ingestion import tiers as memory_tiers
from plugins.ingestion.tiers import ARCHIVED, LONG, SHORT, next_tier
from plugins.memories import MemoryRow
from plugins.memories.rows import MEMORIES
from runtime.api.context import WriteContext
from runtime.api.outbox import OUTBOX
from runtime.shard import usage_buffer
from tests.support.ingestion_harness import IngestionHarness

DAY = 86_400_000
NOW = 1_000 * DAY


def aged(days: float, **fields: object) -> MemoryRow:
    at = int(NOW - days * DAY)
    return MemoryRow(
        "mem_1", 0, "x", "col_1", 0, created_at=at, updated_at=at, occurred_at=at, **fields
    )


@pytest.mark.parametrize(
    ("row", "tier"),
    [
        (aged(0), SHORT),
        (aged(10), SHORT),
        (aged(400), ARCHIVED),
        (aged(30, access_count=20, last_accessed_at=NOW - DAY), LONG),
        (aged(0.1, access_count=50, last_accessed_at=NOW), SHORT),
        (aged(200, importance=1.0), SHORT),
        (aged(30, tier=LONG), SHORT),
        (aged(5, tier=LONG), LONG),
        (aged(30, tier=ARCHIVED), ARCHIVED),
        (aged(30, tier=ARCHIVED, access_count=1, last_accessed_at=NOW - DAY), SHORT),
    ],
)
def test_use_and_age_decide(row: MemoryRow, tier: str) -> None:
    assert next_tier(row, NOW) == tier


@pytest.mark.parametrize("tier", [SHORT, LONG, ARCHIVED])
def test_a_memory_that_moved_stays(tier: str) -> None:
    for days in range(2, 500, 3):
        for count in (0, 1, 5, 25):
            row = aged(
                days, tier=tier, access_count=count, last_accessed_at=NOW - DAY if count else None
            )
            moved = msgspec.structs.replace(row, tier=next_tier(row, NOW))
            assert next_tier(moved, NOW) in (
                moved.tier,
                SHORT if moved.tier == tier else moved.tier,
            )
            assert next_tier(moved, NOW + 1) == next_tier(moved, NOW)


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    listening = IngestionHarness(tmp_path)
    yield listening
    listening.harness.close()


def test_the_job_moves_what_belongs_elsewhere_and_says_so(
    ingestion: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_tiers, "TIER_MEMORIES_PER_STEP", 2)
    old = [ingestion("memories.create", {"content": f"Number {n}"})["id"] for n in range(5)]
    scope = ingestion.harness.scope_of(ingestion.me)

    def age(transaction) -> None:
        rows = transaction.bind(MEMORIES, scope)
        for (ordinal,), row in list(rows.scan()):
            if ordinal != 3:
                rows.put(
                    (ordinal,), msgspec.structs.replace(row, created_at=row.created_at - 400 * DAY)
                )
        transaction.bind(memory_tiers.ALARM, scope).put((), (0).to_bytes(8, "big"))

    ingestion.harness.shard.store.write(age)
    ingestion("memories.create", {"content": "The one that starts it."})
    ingestion.harness.settle()
    tiers = {item["id"]: item["tier"] for item in ingestion("memories.list")["items"]}
    assert [tiers[memory_id] for memory_id in old] == [
        ARCHIVED,
        ARCHIVED,
        ARCHIVED,
        SHORT,
        ARCHIVED,
    ]
    assert ingestion("memories.list", query={"tier": ARCHIVED})["total_count"] == 4
    assert ingestion("memories.get", id=old[0])["version"] == 1
    with ingestion.harness.shard.store.snapshot() as snapshot:
        events = [
            row
            for _, row in snapshot.bind(OUTBOX, scope).scan()
            if row.kind == "memory.tier_changed"
        ]
    assert {event.resource_id for event in events} == {
        memory_id for number, memory_id in enumerate(old) if number != 3
    }


def test_duplicates_are_reported_merged_and_brought_back(ingestion: IngestionHarness) -> None:
    first, second = (
        ingestion("memories.create", {"content": text})["id"]
        for text in ("The key is in the shed.", "the key is in the SHED")
    )
    ingestion("memories.create", {"content": "Bread is baked on Mondays."})
    report = ingestion("memories.audit")
    assert (report["examined"], report["never_used"]) == (3, 3)
    assert [(group["keep"], group["duplicates"]) for group in report["duplicates"]] == [
        (first, [second])
    ]
    assert ingestion("memories.merge", {"keep": first, "duplicates": [second]})["superseded"] == [
        second
    ]
    assert ingestion("memories.audit")["duplicates"] == [] and len(ingestion.contents()) == 2
    assert ingestion("memories.restore", id=second)["conflict_status"] == "none"
    assert len(ingestion.contents()) == 3
    assert ingestion.harness("memories.restore", who=ingestion.me, id=second).status == 409


def test_searches_count_what_they_return_in_a_write_for_all(
    ingestion: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_buffer, "USAGE_WRITTEN_AFTER_SECONDS", 60)
    shed = ingestion("memories.create", {"content": "The key is in the shed."})["id"]
    oven = ingestion("memories.create", {"content": "Bread is baked on Mondays."})["id"]
    ingestion.harness.settle()
    ingestion("usage.get")
    before = ingestion.harness.shard.store.sequence
    for _ in range(3):
        assert ingestion("search.search", {"query": "key shed"})["evidence_ids"] == [shed]
    assert ingestion.harness.shard.store.sequence == before, "a search writes nothing"
    ingestion("usage.get")  # it sees all usage, so that is written first
    assert ingestion.harness.shard.store.sequence == before + 1
    found, other = ingestion("memories.get", id=shed), ingestion("memories.get", id=oven)
    assert (
        found["access_count"],
        found["version"],
        other["access_count"],
        other["last_accessed_at"],
    ) == (3, 1, 0, None)
    assert found["last_accessed_at"] > found["created_at"]
    assert ingestion("memories.audit")["never_used"] == 1
    ingestion("search.search", {"query": "bread"})
    ingestion("memories.delete", id=oven)
    ingestion("usage.get")
    assert ingestion.harness("memories.get", who=ingestion.me, id=oven).status == 404


def test_archived_memories_are_found_below_others_and_come_back_with_use(
    ingestion: IngestionHarness,
) -> None:
    plain, archived = (
        ingestion("memories.create", {"content": "The key is in the shed."})["id"] for _ in range(2)
    )
    ingestion("memories.create", {"content": "The key is a plain one."})
    scope = ingestion.harness.scope_of(ingestion.me)

    def archive(transaction) -> None:
        call = ingestion.harness.form("memories.list", who=ingestion.me)
        ctx = WriteContext(transaction, scope, call, ingestion.harness.shard.environment, None)
        row = next(row for _, row in ctx[MEMORIES].scan() if row.id == archived)
        ago = row.created_at - 30 * DAY
        memory_tiers.set_tier(ctx, msgspec.structs.replace(row, created_at=ago), ARCHIVED)
        ctx[memory_tiers.ALARM].put((), (0).to_bytes(8, "big"))

    asked = {"query": "Is the key in the shed?", "explain": True}
    assert ingestion("search.search", asked)["evidence_ids"][:2] == [archived, plain], (
        "of equal ones the newer is first"
    )
    ingestion("usage.get")
    ingestion.harness.settle()
    ingestion.harness.shard.store.write(archive)
    found = ingestion("search.search", asked)["results"]
    assert [hit["id"] for hit in found[:2]] == [plain, archived], (
        "a worse match that is at hand stays below"
    )
    assert [hit["explanation"]["archived"] < 0 for hit in found[:2]] == [False, True]
    ingestion("usage.get")
    ingestion.harness.settle()
    ingestion.harness.now_ms += 60_000
    assert ingestion("memories.get", id=archived)["tier"] != ARCHIVED
