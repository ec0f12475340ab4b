"""Tiers: what moves a memory up and down, that borders do not flicker, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from plugins import memory_tiers
from plugins.memory_store import MEMORIES, MemoryRow
from plugins.memory_tiers import ARCHIVED, LONG, SHORT, next_tier
from runtime.operation import WriteContext
from runtime.outbox import OUTBOX
from tests.plugins.test_ingestion import Ears

DAY = 86_400_000
NOW = 1_000 * DAY


def aged(days: float, **fields: object) -> MemoryRow:
    at = int(NOW - days * DAY)
    return MemoryRow("mem_1", 0, "x", "col_1", 0, created_at=at, updated_at=at, occurred_at=at, **fields)


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
            row = aged(days, tier=tier, access_count=count, last_accessed_at=NOW - DAY if count else None)
            moved = msgspec.structs.replace(row, tier=next_tier(row, NOW))
            assert next_tier(moved, NOW) in (moved.tier, SHORT if moved.tier == tier else moved.tier)
            assert next_tier(moved, NOW + 1) == next_tier(moved, NOW)


@pytest.fixture
def ears(tmp_path: Path) -> Iterator[Ears]:
    listening = Ears(tmp_path)
    yield listening
    listening.desk.close()


def test_the_job_moves_what_belongs_elsewhere_and_says_so(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_tiers, "TIER_MEMORIES_PER_STEP", 2)
    old = [ears("memories.create", {"content": f"Number {n}"})["id"] for n in range(5)]
    scope = ears.desk.scope_of(ears.me)

    def age(transaction) -> None:
        rows = transaction.bind(MEMORIES, scope)
        for (ordinal,), row in list(rows.scan()):
            if ordinal != 3:
                rows.put((ordinal,), msgspec.structs.replace(row, created_at=row.created_at - 400 * DAY))
        transaction.bind(memory_tiers.ALARM, scope).put((), (0).to_bytes(8, "big"))

    ears.desk.shard.store.write(age)
    ears("memories.create", {"content": "The one that starts it."})
    ears.desk.settle()
    tiers = {item["id"]: item["tier"] for item in ears("memories.list")["items"]}
    assert [tiers[memory_id] for memory_id in old] == [ARCHIVED, ARCHIVED, ARCHIVED, SHORT, ARCHIVED]
    assert ears("memories.list", query={"tier": ARCHIVED})["total_count"] == 4
    assert ears("memories.get", id=old[0])["version"] == 1
    with ears.desk.shard.store.snapshot() as snapshot:
        events = [row for _, row in snapshot.bind(OUTBOX, scope).scan() if row.kind == "memory.tier_changed"]
    assert {event.resource_id for event in events} == {memory_id for number, memory_id in enumerate(old) if number != 3}


def test_duplicates_are_reported_merged_and_brought_back(ears: Ears) -> None:
    first, second = (ears("memories.create", {"content": text})["id"] for text in ("The key is in the shed.", "the key is in the SHED"))
    ears("memories.create", {"content": "Bread is baked on Mondays."})
    report = ears("memories.audit")
    assert (report["examined"], report["never_used"]) == (3, 3)
    assert [(group["keep"], group["duplicates"]) for group in report["duplicates"]] == [(first, [second])]
    assert ears("memories.merge", {"keep": first, "duplicates": [second]})["superseded"] == [second]
    assert ears("memories.audit")["duplicates"] == [] and len(ears.contents()) == 2
    assert ears("memories.restore", id=second)["conflict_status"] == "none"
    assert len(ears.contents()) == 3
    assert ears.desk("memories.restore", who=ears.me, id=second).status == 409


def test_searches_count_what_they_return_in_a_write_for_all(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.usage_buffer.USAGE_WRITTEN_AFTER_SECONDS", 60)
    shed = ears("memories.create", {"content": "The key is in the shed."})["id"]
    oven = ears("memories.create", {"content": "Bread is baked on Mondays."})["id"]
    ears.desk.settle()
    ears("usage.get")
    before = ears.desk.shard.store.sequence
    for _ in range(3):
        assert ears("search.search", {"query": "key shed"})["evidence_ids"] == [shed]
    assert ears.desk.shard.store.sequence == before, "a search writes nothing"
    ears("usage.get")  # it sees all usage, so that is written first
    assert ears.desk.shard.store.sequence == before + 1
    found, other = ears("memories.get", id=shed), ears("memories.get", id=oven)
    assert (found["access_count"], found["version"], other["access_count"], other["last_accessed_at"]) == (3, 1, 0, None)
    assert found["last_accessed_at"] > found["created_at"]
    assert ears("memories.audit")["never_used"] == 1
    ears("search.search", {"query": "bread"})
    ears("memories.delete", id=oven)
    ears("usage.get")
    assert ears.desk("memories.get", who=ears.me, id=oven).status == 404


def test_archived_memories_are_found_below_others_and_come_back_with_use(ears: Ears) -> None:
    plain, archived = (ears("memories.create", {"content": "The key is in the shed."})["id"] for _ in range(2))
    ears("memories.create", {"content": "The key is a plain one."})
    scope = ears.desk.scope_of(ears.me)

    def archive(transaction) -> None:
        call = ears.desk.form("memories.list", who=ears.me)
        ctx = WriteContext(transaction, scope, call, ears.desk.shard.environment, None)
        row = next(row for _, row in ctx[MEMORIES].scan() if row.id == archived)
        ago = row.created_at - 30 * DAY
        memory_tiers.set_tier(ctx, msgspec.structs.replace(row, created_at=ago), ARCHIVED)
        ctx[memory_tiers.ALARM].put((), (0).to_bytes(8, "big"))

    asked = {"query": "Is the key in the shed?", "explain": True}
    assert ears("search.search", asked)["evidence_ids"][:2] == [archived, plain], "of equal ones the newer is first"
    ears("usage.get")
    ears.desk.settle()
    ears.desk.shard.store.write(archive)
    found = ears("search.search", asked)["results"]
    assert [hit["id"] for hit in found[:2]] == [plain, archived], "a worse match that is at hand stays below"
    assert [hit["explanation"]["archived"] < 0 for hit in found[:2]] == [False, True]
    ears("usage.get")
    ears.desk.settle()
    ears.desk.now_ms += 60_000
    assert ears("memories.get", id=archived)["tier"] != ARCHIVED
