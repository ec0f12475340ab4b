"""Memories that exist: changed, deleted, erased, exported."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from plugins import memories
from plugins.memories import MEMORY_FIELDS, MEMORY_VECTORS, removal
from plugins.memories.rows import (
    INDEXES,
    MEMORIES,
    MEMORY_EXPIRY,
)
from runtime.api.context import WriteContext
from runtime.timestamps import iso
from tests.support.embedding import WordEmbedder
from tests.support.memory_harness import call, checked, events, found, ids, inside, nothing_left
from tests.support.served import Served
from tests.support.shard_harness import ShardHarness

# --- change ---------------------------------------------------------------------------------------


def test_a_patch_makes_a_version_and_is_found_by_its_new_text(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    made = harness(
        "memories.create",
        {"content": "I moved to Lisbon.", "title": "t", "tags": ["a"], "speaker": "Ada"},
        who=ada,
    ).body
    changes = {
        "content": "I moved to Porto.",
        "importance": 0.9,
        "title": None,
        "tags": ["b"],
        "metadata": {"x": 1},
    }
    answer = harness("memories.update", changes, who=ada, id=made["id"])
    body = checked(harness, "memories.update", answer)
    assert answer.status == 200 and answer.headers["ETag"] == '"2"'
    assert {name: body[name] for name in changes} == changes
    assert body["updated_at"] > body["created_at"] == made["created_at"]
    assert (
        found(harness, ada, "lisbon"),
        found(harness, ada, "porto"),
        found(harness, ada, "ada"),
    ) == (
        [],
        [0],
        [0],
    )
    assert (ids(harness, ada, tag="a"), ids(harness, ada, tag="b")) == ([], ["I moved to Porto."])
    assert embedder.texts == ["I moved to Lisbon.", "I moved to Porto."]
    assert events(harness, ada) == ["memory.created", "memory.updated"]
    past = checked(
        harness,
        "memories.history",
        harness("memories.history", who=ada, id=made["id"], query={"limit": 1}),
    )
    assert [(item["version"], item["event"], item["content"]) for item in past["items"]] == [
        (1, "ADD", "I moved to Lisbon.")
    ]
    rest = harness(
        "memories.history", who=ada, id=made["id"], query={"cursor": past["next_cursor"]}
    ).body
    assert [(item["version"], item["event"], item["content"]) for item in rest["items"]] == [
        (2, "UPDATE", "I moved to Porto.")
    ]
    assert (rest["has_more"], rest["total_count"]) == (False, 2)


def test_a_patch_that_changes_nothing_makes_no_version(harness: ShardHarness, ada: str) -> None:
    made = harness("memories.create", {"content": "tea", "tags": ["a"]}, who=ada).body
    for nothing in (
        {},
        {"content": "tea"},
        {"title": None, "tags": ["a"]},
        {"wait_for_index": True},
    ):
        answer = harness("memories.update", nothing, who=ada, id=made["id"])
        assert (answer.status, answer.body["version"], answer.body["updated_at"]) == (
            200,
            1,
            made["updated_at"],
        )
    assert (
        harness(
            "memories.update",
            {"tags": None, "metadata": None, "expires_at": None},
            who=ada,
            id=made["id"],
        ).body["tags"]
        == []
    )


def test_null_makes_importance_what_it_is_of_a_new_memory(harness: ShardHarness, ada: str) -> None:
    made = harness("memories.create", {"content": "Tea.", "importance": 0.9}, who=ada).body
    again = {"importance": None, "wait_for_index": None}
    for version in (2, 2):
        answer = harness("memories.update", again, who=ada, id=made["id"])
        assert (answer.status, answer.body["importance"]) == (200, 0.5)
        assert answer.body["version"] == version
    kept = harness("memories.update", {"title": "Tea"}, who=ada, id=made["id"]).body
    assert (kept["importance"], kept["version"]) == (0.5, 3)


@pytest.mark.parametrize(("before", "after"), [(1, True), (False, 0), (1, 1.0), ([0], [False])])
def test_a_patch_tells_numbers_from_booleans(
    harness: ShardHarness, ada: str, before: Any, after: Any
) -> None:
    fields = {"content": "The light is on.", "metadata": {"on": before, "of": 2}}
    made = harness("memories.create", fields, who=ada).body
    sent = {"metadata": {"of": 2, "on": after}}
    changed = harness("memories.update", sent, who=ada, id=made["id"]).body
    assert repr(changed["metadata"]["on"]) == repr(after) and changed["version"] == 2
    again = {"metadata": {"on": after, "of": 2}}
    assert harness("memories.update", again, who=ada, id=made["id"]).body["version"] == 2


def test_new_content_that_is_not_indexed_yet_hides_the_old(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    made = harness("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    embedder.down = True
    answer = harness("memories.update", {"content": "I moved to Porto."}, who=ada, id=made["id"])
    assert (answer.status, answer.body["searchable"], answer.headers["Location"]) == (
        202,
        False,
        made["status_url"],
    )
    assert found(harness, ada, "lisbon") == found(harness, ada, "porto") == []
    embedder.down = False
    harness.settle()
    assert found(harness, ada, "porto") == [0]


@pytest.mark.parametrize(
    ("header", "status"),
    [("*", 200), ('"1"', 200), ('"7", "1"', 200), ("1", 200), ('"2"', 412), ('W/"1"', 412)],
)
def test_if_match_guards_changes(harness: ShardHarness, ada: str, header: str, status: int) -> None:
    made = harness("memories.create", {"content": "tea"}, who=ada).body
    assert (
        call(
            harness,
            "memories.update",
            {"importance": 0.1},
            {"if_match": header},
            who=ada,
            id=made["id"],
        ).status
        == status
    )


def test_superseded_memories_leave_ordinary_reads(harness: ShardHarness, ada: str) -> None:
    old, new = (
        harness("memories.create", {"content": text}, who=ada).body["id"]
        for text in ("I like tea", "I like coffee")
    )
    assert (
        harness("superseding.mark", {"old": old, "new": new}, who=ada).body["superseded_by_id"]
        == new
    )
    assert ids(harness, ada) == ["I like coffee"]
    assert ids(harness, ada, include_superseded=True) == ["I like coffee", "I like tea"]
    assert harness("memories.get", who=ada, id=old).body["conflict_status"] == "superseded"
    assert [
        item["event"] for item in harness("memories.history", who=ada, id=old).body["items"]
    ] == [
        "ADD",
        "SUPERSEDE",
    ]
    harness("superseding.mark", {"old": old, "back": True}, who=ada)
    assert ids(harness, ada) == ["I like coffee", "I like tea"]


# --- delete ---------------------------------------------------------------------------------------


def test_a_deleted_memory_leaves_nothing(harness: ShardHarness, ada: str) -> None:
    bob = harness.register("bob@example.com")
    made = harness(
        "memories.create",
        {"content": "tea", "tags": ["a"], "session_id": "s", "expires_at": "2999-01-01"},
        who=ada,
    ).body
    harness("memories.update", {"content": "coffee"}, who=ada, id=made["id"])
    assert harness("memories.delete", who=bob, id=made["id"]).status == 403
    answer = harness("memories.delete", who=ada, id=made["id"])
    assert checked(harness, "memories.delete", answer) == {"id": made["id"], "deleted": True}
    for operation in ("memories.delete", "memories.get", "memories.history"):
        assert harness(operation, who=ada, id=made["id"]).status == 404
    assert harness("memories.get", who=ada, id="mem_nonsense").status == 404
    nothing_left(harness, ada)
    assert harness("collections.get_default", who=ada).body["memory_count"] == 0
    assert events(harness, ada) == ["memory.created", "memory.updated", "memory.deleted"]


def test_bulk_delete_says_what_became_of_each(harness: ShardHarness, ada: str) -> None:
    bob = harness.register("bob@example.com")
    theirs = harness("memories.create", {"content": "x"}, who=bob).body["id"]
    first, second = harness(
        "memories.create_batch", {"memories": [{"content": "a"}, {"content": "b"}]}, who=ada
    ).body["memory_ids"]
    answer = harness("memories.bulk_delete", {"ids": [first, first, "nope", theirs]}, who=ada)
    body = checked(harness, "memories.bulk_delete", answer)
    assert [result["status"] for result in body["results"]] == [
        "deleted",
        "not_found",
        "not_found",
        "forbidden",
    ]
    assert (body["deleted"], body["not_found"]) == (1, 2)
    assert ids(harness, ada) == ["b"] and harness("memories.get", who=ada, id=second).status == 200
    assert harness("collections.get_default", who=ada).body["memory_count"] == 1


def test_deleting_all_needs_its_confirmation(harness: ShardHarness, ada: str) -> None:
    for query in ({}, {"confirm": "yes"}):
        answer = harness("memories.delete_all", who=ada, query=query)
        assert (answer.status, answer.body["param"]) == (400, "confirm")


def test_deleting_all_is_at_once_and_swept_in_steps(
    harness: ShardHarness, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MEMORIES_SWEPT_PER_STEP", 2)
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    items = [{"content": f"tea {number}", "user_id": "uv"[number % 2]} for number in range(7)]
    made = harness(
        "memories.create_batch", {"memories": items, "collection_id": mine}, who=ada
    ).body["memory_ids"]
    answer = harness(
        "memories.delete_all", who=ada, query={"confirm": "delete-all-memories", "user_id": "v"}
    )
    assert checked(harness, "memories.delete_all", answer) == {"deleted": 3}
    assert (
        len(ids(harness, ada))
        == harness("collections.get", who=ada, id=mine).body["memory_count"]
        == 4
    )
    answer = harness("memories.delete_all", who=ada, query={"confirm": "delete-all-memories"})
    assert answer.body == {"deleted": 4}
    assert ids(harness, ada) == found(harness, ada, "tea") == []
    assert {harness("memories.get", who=ada, id=memory_id).status for memory_id in made} == {404}
    harness.settle()
    nothing_left(harness, ada)
    assert events(harness, ada).count("memory.deleted") == 7
    assert harness(
        "memories.delete_all", who=ada, query={"confirm": "delete-all-memories"}
    ).body == {"deleted": 0}


def test_what_deleting_all_cannot_be_narrowed_by_deletes_nothing(service: Served) -> None:
    token = service.register()
    ask = partial(service.http.request, headers={"Authorization": f"Bearer {token}"})
    assert ask("POST", "/v1/memories", json={"content": "Tea.", "tags": ["a"]}).status_code == 201
    assert ask("POST", "/v1/collections", json={"name": "mine"}).status_code == 201
    for kind, narrowed in (
        ("memories", "tag=drafts"),
        ("memories", "created_before=2020-01-01"),
        ("memories", "userid=ada"),
        ("collections", "name_prefix=tmp-"),
    ):
        refused = ask("DELETE", f"/v1/{kind}/all?confirm=delete-all-{kind}&{narrowed}")
        assert refused.status_code == 422, refused.text
        assert "confirm" in refused.json()["error"]["message"]
    for kind, left in (("memories", 1), ("collections", 2)):
        assert ask("GET", f"/v1/{kind}").json()["total_count"] == left


def test_a_deleted_collection_takes_its_memories_along(
    harness: ShardHarness, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MEMORIES_SWEPT_PER_STEP", 2)
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    made = harness(
        "memories.create_batch",
        {"memories": [{"content": "tea"}] * 5, "collection_id": mine},
        who=ada,
    ).body["memory_ids"]
    job_id = harness("collections.delete", who=ada, id=mine).body["cleanup"]["job_id"]
    assert harness("memories.get", who=ada, id=made[0]).status == 404
    assert ids(harness, ada) == found(harness, ada, "tea") == []
    harness.settle()
    nothing_left(harness, ada)
    assert job_id.startswith("job_")


def test_an_expired_memory_is_gone_and_then_swept(harness: ShardHarness, ada: str) -> None:
    harness("memories.create", {"content": "tea", "expires_at": iso(harness.now_ms - 1)}, who=ada)
    kept = harness(
        "memories.create",
        {"content": "milk", "expires_at": iso(harness.now_ms + 3_600_000)},
        who=ada,
    ).body
    soon = harness(
        "memories.create", {"content": "tea", "expires_at": iso(harness.now_ms + 1_000)}, who=ada
    ).body
    assert ids(harness, ada) == ["tea", "milk"]
    harness.now_ms += 1_000
    assert ids(harness, ada) == ["milk"] and found(harness, ada, "tea") == []
    assert (
        harness("memories.get", who=ada, id=soon["id"]).status
        == harness("memories.delete", who=ada, id=soon["id"]).status
        == 404
    )
    deadline = time.monotonic() + 10
    while harness("collections.get_default", who=ada).body["memory_count"] > 1:
        assert time.monotonic() < deadline
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        assert [row.content for _, row in ctx[MEMORIES].scan()] == ["milk"]
        assert [key[1] for key, _ in ctx[MEMORY_EXPIRY].scan()] == [1]
    assert (
        harness("memories.update", {"expires_at": None}, who=ada, id=kept["id"]).body["expires_at"]
        is None
    )
    assert events(harness, ada).count("memory.deleted") == 2


# --- privacy, tools -------------------------------------------------------------------------------


def test_every_table_is_erased_and_every_memory_exported(harness: ShardHarness, ada: str) -> None:
    made = harness(
        "memories.create", {"content": "tea", "expires_at": "2999-01-01"}, who=ada, key="k"
    ).body
    harness("memories.update", {"content": "milk"}, who=ada, id=made["id"])
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        ((kind, record, _),) = memories.plugin.export(ctx)
    assert (kind, record["content"], [version["content"] for version in record["history"]]) == (
        "memory",
        "milk",
        ["tea", "milk"],
    )

    def work(transaction: Any) -> dict[str, int]:
        return memories.plugin.erase(
            WriteContext(transaction, ctx.scope, ctx.call, harness.shard.environment, ctx.principal)
        )

    counts = harness.shard.store.write(work).result
    assert counts["memories"] == counts["memory_text"] == counts["memory_vectors"] == 1
    nothing_left(harness, ada)
    assert set(counts) == {
        table.name for table in (*memories.plugin.tables, *MEMORY_FIELDS.tables)
    } | {index.name for index in INDEXES[1:]}


def test_replace_puts_a_new_text_in_the_place_of_the_known_one(
    harness: ShardHarness, ada: str
) -> None:
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    made = checked(
        harness, "memory_tools.insert", harness("memory_tools.insert", {"content": "tea"}, who=ada)
    )
    change = {"memory_id": made["id"], "old_content": "tea", "new_content": "coffee"}
    body = checked(
        harness, "memory_tools.replace", harness("memory_tools.replace", change, who=ada)
    )
    assert (body["content"], body["version"]) == ("coffee", 2)
    assert found(harness, ada, "coffe") == [0] and found(harness, ada, "tea") == []
    assert harness("memory_tools.replace", change, who=ada).status == 409
    assert harness("memory_tools.replace", {**change, "collection_id": mine}, who=ada).status == 404


def test_rethink_indexes_afresh_without_a_new_version(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    made = harness("memory_tools.insert", {"content": "tea"}, who=ada).body
    embedder.space = "words again/32"
    body = checked(
        harness,
        "memory_tools.rethink",
        harness("memory_tools.rethink", {"memory_id": made["id"]}, who=ada),
    )
    assert (body["version"], body["searchable"]) == (1, True)
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        assert isinstance(ctx.index(MEMORY_VECTORS).get("words again/32", 0), np.ndarray)
        assert ctx.index(MEMORY_VECTORS).count("words/32") == 0
    embedder.down = True
    assert harness("memory_tools.rethink", {"memory_id": made["id"]}, who=ada).status == 202
    assert found(harness, ada, "tea") == []
