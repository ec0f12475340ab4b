"""Memories that one account creates at the same time are stored together: what is stored and
answered is what one after the other stores and answers.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from runtime.api.operation import Call, Reply
from runtime.inference import Models
from runtime.installation import Secrets
from runtime.limits import CALLS_TOGETHER_MAX
from runtime.shard import writer
from runtime.shard.writer import WriteOutcome
from serve_app import Settings
from storage.store import Transaction
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, Answer, ShardHarness, answer_of

TIER = {"tiers": {"enterprise_memories": 12}}
BODIES: list[dict[str, Any]] = [
    {"content": "The ferry to Porto leaves at nine.", "tags": ["ferry", "porto"]},
    {"content": "The ferry is late.", "session_id": "s", "speaker": "Ana", "user_id": "u"},
    {"content": "It came in the end.", "session_id": "s", "speaker": "Bo", "user_id": "u"},
    {"messages": [{"role": "user", "content": "Who won?"}, {"role": "user", "content": "Porto."}]},
    {"content": "Nothing else happened.", "session_id": "s", "metadata": {"n": 3, "of": "log"}},
    {"content": "My sister Ana lives in Porto.", "user_id": "u", "importance": 0.9},
    {"content": "The same once more.", "expires_at": "2031-01-01T00:00:00Z", "title": "again"},
]
# What is drawn by chance; what background work makes, by the real clock; and how often it was told
# that a collection has other members, which is once a second.
BY_CHANCE = (".changes", "memory_text.stats")
OF_JOBS = ("job", "profile", "graph", "counters", "collection_counts")
TOLD = b"collection.updated"


def opened(directory: Path, secrets: Secrets) -> ShardHarness:
    given = Settings.load({**CHEAP, **TIER, "write": {"ready_wait_ms": 5_000}})
    return ShardHarness(directory, serve_app.PLUGINS, Models(WordEmbedder()), given, secrets)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    harness = opened(tmp_path / "shard", Secrets.generate())
    yield harness
    harness.close()


def forms(harness: ShardHarness, who: str, bodies: list[Any], *keys: str | None) -> list[Call]:
    made = [
        harness.form("memories.create", body, who=who, key=key)
        for body, key in itertools.zip_longest(bodies, keys)
    ]
    return [call for call in made if isinstance(call, Call)]


def at_once(harness: ShardHarness, calls: list[Call]) -> list[Answer]:
    """Their answers, when all wait for the writer before the first has its turn."""
    queue, may_go = harness.shard.parts.writer, threading.Event()

    def hold(transaction: Transaction) -> WriteOutcome:
        may_go.wait()
        return WriteOutcome(Reply())

    async def go() -> list[Answer]:
        held = asyncio.create_task(queue.submit(hold, "hold"))
        asked = [asyncio.create_task(harness.shard.execute(call)) for call in calls]
        while queue.depth <= len(calls):
            await asyncio.sleep(0.001)
        may_go.set()
        await held
        return [answer_of(await each) for each in asked]

    return harness.run(go())


def together(harness: ShardHarness) -> float:
    return harness.shard.parts.writer.stats()["calls_together_total"]


def rows(harness: ShardHarness, who: str) -> dict[str, dict[Any, Any]]:
    """All rows of an account, by table."""
    scope = harness.scope_of(who)
    with harness.shard.store.snapshot() as snapshot:
        return {
            table.name: {
                key: row for key, row in snapshot.bind(table, scope).items() if TOLD not in row
            }
            for table in harness.registry.tables.values()
            if table.level == "tenant"
            and not table.name.endswith(BY_CHANCE)
            and not table.name.startswith(OF_JOBS)
        }


def test_what_is_stored_and_answered_is_that_of_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = opened(tmp_path / "before", Secrets.generate())
    who = before.register()
    before.close()
    answers, stored = [], []
    for count_max, count in ((1, 0), (CALLS_TOGETHER_MAX, len(BODIES))):
        monkeypatch.setattr(writer, "CALLS_TOGETHER_MAX", count_max)
        shutil.copytree(tmp_path / "before", tmp_path / f"{count}")
        harness = opened(tmp_path / f"{count}", before.secrets)
        harness.now_ms = before.now_ms
        answers.append(at_once(harness, forms(harness, who, BODIES, "a", None, "b")))
        assert together(harness) == count
        harness.settle()
        stored.append(rows(harness, who))
        harness.close()
    assert [each.status for each in answers[0]] == [201] * len(BODIES)
    assert answers[0] == answers[1]
    assert stored[0].keys() == stored[1].keys() and stored[0]["memories"]
    for name, found in stored[0].items():
        assert found == stored[1][name], name


def test_where_one_is_refused_each_is_handled_by_itself(harness: ShardHarness) -> None:
    """The tier has room for some of them."""
    who = harness.register()
    bodies = [{"content": f"note {number}"} for number in range(10)]
    assert [each.status for each in at_once(harness, forms(harness, who, bodies))] == [201] * 10
    before = together(harness)
    answers = at_once(harness, forms(harness, who, bodies[:4]))
    assert [each.status for each in answers] == [201, 201, 403, 403]
    assert together(harness) == before
    assert harness("memories.list", who=who).body["total_count"] == 12
    assert harness("usage.get", who=who).body["credits"]["used"] == 12


def test_keys_that_repeat_store_once(harness: ShardHarness) -> None:
    who = harness.register()
    body = {"content": "The harbour froze."}
    answers = at_once(harness, forms(harness, who, [body] * 4, "k", "k", "other", "k"))
    assert [each.status for each in answers] == [201] * 4
    ids = [each.body["id"] for each in answers]
    assert ids[0] == ids[1] == ids[3] != ids[2]
    (again,) = at_once(harness, forms(harness, who, [body], "k"))
    assert again.body["id"] == ids[0]
    before = together(harness)
    mixed = at_once(harness, forms(harness, who, [body, body], "k", "new"))
    assert [each.status for each in mixed] == [201, 201] and mixed[0].body["id"] == ids[0]
    assert together(harness) == before
    assert harness("memories.list", who=who).body["total_count"] == 3


def test_accounts_and_what_is_not_indexed_yet_stay_apart(harness: ShardHarness) -> None:
    ada, bob = harness.register(), harness.register("bob@example.com")
    calls = [
        call
        for number in range(3)
        for who in (ada, bob)
        for call in forms(harness, who, [{"content": f"note {number}"}])
    ]
    answers = at_once(harness, calls)
    assert [each.status for each in answers] == [201] * 6
    for who in (ada, bob):
        listed = harness("memories.list", who=who).body
        assert sorted(each["content"] for each in listed["items"]) == ["note 0", "note 1", "note 2"]
    before = together(harness)
    later = forms(harness, ada, [{"content": "a"}, {"content": "b"}])
    for call in later:
        call.prefer = ("respond-async",)
    assert [each.status for each in at_once(harness, later)] == [202, 202]
    assert together(harness) == before
    harness.settle()  # the jobs that index these two would wait for the writer among what follows
    raw = [harness.form("memories.create_raw", {"content": "x"}, who=ada) for _ in range(3)]
    assert [each.status for each in at_once(harness, raw)] == [201] * 3  # type: ignore
    assert together(harness) == before + 3
