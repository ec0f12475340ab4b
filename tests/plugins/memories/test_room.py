"""The room that a tier has for what memories say, and once said: counted in the transaction that
changes it, over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from plugins.memories.limits import BATCH_ITEMS_MAX, MEMORIES_MEASURED_PER_STEP
from plugins.memories.room import Measured, measured, true_bytes
from plugins.memories.rows import MEMORY_BYTES
from tests.support.memory_harness import inside
from tests.support.over_http import OverHttp, over_http
from tests.support.shard_harness import ShardHarness

ROOM = 21_000
LONG = "a lantern " * 400


@pytest.fixture
def service(tmp_path: Path) -> Iterator[OverHttp]:
    with over_http(tmp_path, tiers__enterprise_text_bytes=ROOM) as service:
        yield service


def stored(service: OverHttp, who: str) -> int:
    shown = service.get("/v1/usage", who).json()["storage"]
    assert shown["limits"]["text_bytes"] == service.settings.tiers.enterprise_text_bytes
    return shown["text_bytes"]


def refused(answer: httpx.Response) -> None:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "quota_exceeded"), answer.text
    assert "Delete memories" in error["message"] and "upgrade" in error["message"]


def raw(service: OverHttp, content: str, who: str, **fields: Any) -> httpx.Response:
    return service.post("/v1/memories/raw", {"content": content, **fields}, who)


def test_texts_and_their_earlier_versions_have_the_room_of_the_tier(service: OverHttp) -> None:
    ada, bob = service.register("ada@example.com"), service.register("bob@example.com")
    assert stored(service, ada) == 0
    memory = raw(service, LONG, ada).json()["id"]
    assert len(LONG) < stored(service, ada) < len(LONG) + 200
    path, headers = f"/v1/memories/{memory}", {"Authorization": f"Bearer {ada}"}
    changes = 0
    while (
        answer := service.http.patch(path, json={"content": f"{LONG}{changes}"}, headers=headers)
    ).status_code == 200:
        changes += 1
        assert stored(service, ada) > (changes + 1) * len(LONG)
    refused(answer)
    assert changes == ROOM // len(LONG) - 1
    before = stored(service, ada)
    assert before <= ROOM
    batch = {"memories": [{"content": "Short."}, {"content": LONG}]}
    refused(service.post("/v1/memories/batch", batch, ada))
    refused(raw(service, "Short.", ada, metadata={"a": "x" * len(LONG)}))
    assert stored(service, ada) == before, "all of a batch or nothing"
    assert raw(service, "Short.", ada).status_code == 201
    assert raw(service, LONG, bob).status_code == 201
    assert service.get(path, ada).json()["content"] == f"{LONG}{changes - 1}"
    assert service.http.delete(path, headers=headers).status_code in (200, 204)
    assert stored(service, ada) < 200
    assert raw(service, LONG, ada).status_code == 201


def test_merging_and_restoring_over_and_over_ends_with_the_room(service: OverHttp) -> None:
    """Neither costs a credit, and each keeps a version."""
    ada = service.register("ada@example.com")
    kept, other = (raw(service, f"{LONG}{n}", ada).json()["id"] for n in range(2))
    pair = {"keep": kept, "duplicates": [other]}
    for _ in range(ROOM // len(LONG)):
        answer = service.post("/v1/memories/merge", pair, ada)
        if answer.status_code == 200:
            answer = service.post(f"/v1/memories/{other}/restore", None, ada)
        if answer.status_code != 200:
            break
    refused(answer)
    assert stored(service, ada) <= ROOM


def test_an_import_has_the_room_of_the_tier_for_every_version(tmp_path: Path) -> None:
    with over_http(tmp_path, tiers__enterprise_text_bytes=5 * len(LONG) // 2) as service:
        ada, bob = service.register("ada@example.com"), service.register("bob@example.com")
        memory = raw(service, LONG, ada).json()["id"]
        service.http.patch(
            f"/v1/memories/{memory}",
            json={"content": f"{LONG}2"},
            headers={"Authorization": f"Bearer {ada}"},
        ).raise_for_status()
        assert raw(service, LONG, bob).status_code == 201
        export = service.get("/v1/account/export", ada)
        answer = service.http.post(
            "/v1/account/import",
            content=export.content,
            headers={"Authorization": f"Bearer {bob}", "Content-Type": "application/x-ndjson"},
        )
        refused(answer)
        assert stored(service, bob) < len(LONG) + 200


# --- accounts of before ---------------------------------------------------------------------------


def test_texts_that_are_older_than_the_sum_are_added_to_it(harness: ShardHarness, ada: str) -> None:
    """Some at a time, while what is there changes."""
    ids = []
    for _ in range(MEMORIES_MEASURED_PER_STEP // BATCH_ITEMS_MAX + 1):
        batch = [{"content": f"note {n}"} for n in range(BATCH_ITEMS_MAX)]
        made = harness("memories.create_batch", {"memories": batch}, who=ada).body
        ids += [each["memory_id"] for each in made["results"]]
    harness("memories.update", {"content": LONG}, who=ada, id=ids[3])
    harness.settle()
    scope = harness.scope_of(ada)
    harness.shard.store.write(lambda inner: inner.bind(MEMORY_BYTES, scope).delete())
    assert of_account(harness, ada)[0] is None

    harness("memories.delete", who=ada, id=ids[0])
    harness("memories.update", {"content": "a note"}, who=ada, id=ids[3])
    harness("memories.create_raw", {"content": "new"}, who=ada)
    harness.settle()
    known, true = of_account(harness, ada)
    assert known is not None and known.start == known.end == len(ids)
    assert known.total == true > len(LONG) + 4 * len(ids)


def of_account(harness: ShardHarness, token: str) -> tuple[Measured | None, int]:
    """(the sum as it is kept, as all rows give it)."""
    snapshot, ctx = inside(harness, token)
    with snapshot:
        known = measured(ctx)
        return known, true_bytes(ctx, Measured(0))
