"""Memories made and listed, and when they are searchable; one create is one memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from plugins.collections import METADATA_BYTES_MAX
from plugins.memories import MEMORY_FEATURES, NewMemory, TextFeatures, limits
from plugins.memories.features import NOTHING
from plugins.memories.models import Batch
from plugins.memories.neighbours import speaker_hash
from runtime.errors import ApiError, ValidationFailed
from tests.support.embedding import WordEmbedder
from tests.support.memory_harness import call, checked, events, found, ids, inside, nothing_left
from tests.support.shard_harness import ShardHarness

# --- create ---------------------------------------------------------------------------------------


def test_a_memory_is_searchable_when_the_answer_is_201(harness: ShardHarness, ada: str) -> None:
    answer = harness(
        "memories.create",
        {"content": "  I moved to Lisbon. ", "user_id": "u", "metadata": {"b": 1, "a": None}},
        who=ada,
    )
    body = checked(harness, "memories.create", answer)
    assert answer.status == 201
    assert body["content"] == "  I moved to Lisbon. "
    assert body["metadata"] == {"b": 1, "a": None}
    assert (body["searchable"], body["processing_status"], body["version"]) == (
        True,
        "completed",
        1,
    )
    assert answer.headers["Location"] == body["status_url"] == f"/v1/memories/{body['id']}"
    assert body["results"] == [
        {
            "id": body["id"],
            "memory_id": body["id"],
            "event": "ADD",
            "memory": body["content"],
            "processing_status": "completed",
        }
    ]
    assert body["memory_ids"] == [body["id"]]
    assert found(harness, ada, "lisbon") == [0]
    assert harness("collections.get_default", who=ada).body["memory_count"] == 1
    read = harness("memories.get", who=ada, id=body["id"])
    assert checked(harness, "memories.get", read)["occurred_at"] == body["created_at"]
    assert read.headers["ETag"] == '"1"'


def test_every_field_comes_back(harness: ShardHarness, ada: str) -> None:
    sent = {
        "content": "x", "importance": 1, "title": "", "tags": ["b", "a", "b"], "source": "slack",
        "source_type": "note", "source_reference": "r", "user_id": "u", "agent_id": "g",
        "run_id": "n", "app_id": "p", "speaker": "Ada",
        "metadata": {"deep": {"list": [1, 2.5, "é"]}}, "occurred_at": "2020-02-29T12:00:00+02:00",
        "expires_at": "2999-01-01",
    }  # fmt: skip
    body = checked(harness, "memories.create_raw", harness("memories.create_raw", sent, who=ada))
    assert {name: body[name] for name in sent} == {
        **sent,
        "occurred_at": "2020-02-29T10:00:00.000Z",
        "expires_at": "2999-01-01T00:00:00.000Z",
    }
    assert body["session_id"] == "n"


@pytest.mark.parametrize(
    ("sent", "loc"),
    [
        ({}, ("body", "content")),
        ({"content": " \n "}, ("content",)),
        ({"content": "x" * (limits.CONTENT_CHARS_MAX + 1)}, ("content",)),
        ({"content": 5}, ("content",)),
        ({"content": "x", "importance": 1.01}, ("importance",)),
        ({"content": "x", "importance": "0.5"}, ("importance",)),
        ({"content": "x", "importance": True}, ("importance",)),
        ({"content": "x", "metadata": {"a": "x" * METADATA_BYTES_MAX}}, ("metadata",)),
        ({"content": "x", "metadata": []}, ("metadata",)),
        ({"content": "x", "tags": ["x" * 65]}, ("tags", 0)),
        ({"content": "x", "tags": ["x"] * 33}, ("tags",)),
        ({"content": "x", "title": "x" * 256}, ("title",)),
        ({"content": "x", "user_id": ""}, ("user_id",)),
        ({"content": "x", "collection_id": ""}, ("collection_id",)),
        ({"content": "x", "occurred_at": 1}, ("occurred_at",)),
        ({"content": "x", "wait_for_index": "yes"}, ("wait_for_index",)),
        ({"content": "x", "messages": [{"role": "user", "content": "y"}]}, ("body", "messages")),
        ({"messages": []}, ("messages",)),
        ({"messages": [{"role": "user", "content": " "}]}, ("messages", 0, "content")),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is(
    sent: dict[str, Any], loc: tuple[Any, ...]
) -> None:
    with pytest.raises((ValidationError, ApiError)) as refused:
        NewMemory.model_validate(sent)
    error = refused.value
    places = (
        [tuple(detail["loc"]) for detail in error.details]
        if isinstance(error, ApiError)
        else [found["loc"] for found in error.errors()]
    )
    assert places == [loc]


def test_content_may_be_as_long_as_the_limit_says(harness: ShardHarness, ada: str) -> None:
    content = " " + "ab " * (limits.CONTENT_CHARS_MAX // 3) + "c" + " "
    assert harness("memories.create", {"content": content}, who=ada).body["content"] == content


def test_messages_become_memories_of_one_session(harness: ShardHarness, ada: str) -> None:
    said = [
        {"role": "user", "content": "Do you like tea?", "name": "Ada"},
        {"role": "assistant", "content": "I do."},
    ]
    answer = harness("memories.create", {"messages": said, "metadata": {"m": 1}}, who=ada)
    body = checked(harness, "memories.create", answer)
    assert answer.status == 201 and body["created_count"] == 2 and "content" not in body
    first, second = (
        harness("memories.get", who=ada, id=memory_id).body for memory_id in body["memory_ids"]
    )
    assert (first["speaker"], second["speaker"]) == ("Ada", "assistant")
    assert first["session_id"] == second["session_id"] is not None
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        features = ctx.index(MEMORY_FEATURES).take(np.array([0, 1]))
        assert features["previous"].tolist() == [NOTHING, 0] and features["following"].tolist() == [
            1,
            NOTHING,
        ]
        assert features["session"][0] == features["session"][1] != 0
        assert features["speaker"][0] == speaker_hash(ctx, "Ada")


def test_sessions_of_other_users_are_other_sessions(harness: ShardHarness, ada: str) -> None:
    for user in ("u", "v", "u"):
        harness("memories.create", {"content": "x", "session_id": "1", "user_id": user}, who=ada)
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        assert ctx.index(MEMORY_FEATURES).take(np.arange(3))["previous"].tolist() == [
            NOTHING,
            NOTHING,
            0,
        ]


def test_features_are_read_from_the_text(harness: ShardHarness, ada: str) -> None:
    harness("memories.create", {"content": "I bought 3 books yesterday."}, who=ada)
    snapshot, ctx = inside(harness, ada)
    with snapshot:
        (features,) = ctx.index(MEMORY_FEATURES).take([0])
        assert features["flags"] == TextFeatures.NUMBER | TextFeatures.TIME
        assert features["content_words"] > 0 and features["first_person"] > 0


def test_collections_must_be_the_callers(harness: ShardHarness, ada: str) -> None:
    bob = harness.register("bob@example.com")
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    assert (
        harness("memories.create", {"content": "x", "collection_id": mine}, who=ada).body[
            "collection_id"
        ]
        == mine
    )
    assert (
        harness("memories.create", {"content": "x", "collection_id": mine}, who=bob).status == 403
    )
    assert (
        harness("memories.create", {"content": "x", "collection_id": "nope"}, who=ada).body["code"]
        == "collection_not_found"
    )


# --- write readiness ------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["down", "late", "unwilling"])
def test_a_write_whose_index_is_not_ready_is_202(
    harness: ShardHarness, ada: str, embedder: WordEmbedder, why: str
) -> None:
    embedder.down, embedder.late = why == "down", why == "late"
    prefer = {"respond-async": ""} if why == "unwilling" else {}
    answer = call(
        harness, "memories.create", {"content": "I moved to Lisbon."}, {"prefer": prefer}, who=ada
    )
    body = checked(harness, "memories.create", answer)
    assert answer.status == 202
    assert (body["searchable"], body["processing_status"]) == (False, "processing")
    assert answer.headers["Location"] == body["status_url"] == f"/v1/memories/{body['id']}"
    assert int(answer.headers["Retry-After"]) >= 1
    assert (
        body["outbox_event_id"].startswith("evt_")
        and body["poll_url"] == f"/v1/memories/jobs/{body['job_id']}"
    )
    if why != "unwilling":
        assert found(harness, ada, "lisbon") == []
        assert harness("memories.get", who=ada, id=body["id"]).body["searchable"] is False
        assert (
            checked(
                harness,
                "memories.jobs.get",
                harness("memories.jobs.get", who=ada, job_id=body["job_id"]),
            )["status"]
            != "completed"
        )
    embedder.down = embedder.late = False
    harness.settle()
    assert found(harness, ada, "lisbon") == [0]
    read = harness("memories.get", who=ada, id=body["id"]).body
    assert (read["searchable"], read["processing_status"], read["version"]) == (
        True,
        "completed",
        1,
    )
    job = checked(
        harness, "memories.jobs.get", harness("memories.jobs.get", who=ada, job_id=body["job_id"])
    )
    assert (job["status"], job["result"]) == ("completed", {"indexed": 1, "skipped": 0})
    page = checked(
        harness,
        "memories.jobs.list",
        harness("memories.jobs.list", who=ada, query={"status": "completed"}),
    )
    assert [item["job_id"] for item in page["items"]] == [body["job_id"]]


def test_a_memory_deleted_while_it_waits_stays_deleted(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    embedder.down = True
    made = harness("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    assert harness("memories.delete", who=ada, id=made["id"]).status == 200
    embedder.down = False
    harness.settle()
    assert harness("memories.get", who=ada, id=made["id"]).status == 404
    assert found(harness, ada, "lisbon") == []
    nothing_left(harness, ada)


def test_a_memory_rewritten_while_it_waits_is_found_by_its_new_text_only(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    embedder.down = True
    made = harness("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    assert (
        harness("memories.update", {"content": "I moved to Porto."}, who=ada, id=made["id"]).status
        == 202
    )
    assert harness("memories.update", {"importance": 0.9}, who=ada, id=made["id"]).status == 202
    embedder.down = False
    harness.settle()
    assert found(harness, ada, "lisbon") == []
    assert found(harness, ada, "porto") == [0]
    assert harness("memories.get", who=ada, id=made["id"]).body["version"] == 3


def test_waiting_memories_survive_a_restart(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    embedder.down = True
    harness("memories.create", {"content": "I moved to Lisbon."}, who=ada)
    embedder.down = False
    harness.reopen()
    harness.settle()
    assert found(harness, ada, "lisbon") == [0]


# --- idempotency ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", ["memories.create", "memories.create_raw", "memory_tools.insert"]
)
def test_a_repeated_create_is_the_same_memory(
    harness: ShardHarness, ada: str, embedder: WordEmbedder, operation: str
) -> None:
    embedder.down = True
    first = harness(operation, {"content": "tea"}, who=ada, key="k")
    embedder.down = False
    harness.settle()
    again = harness(operation, {"content": "tea"}, who=ada, key="k")
    assert (first.status, again.status) == (202, 201)
    assert checked(harness, operation, again)["id"] == first.body["id"]
    assert harness(operation, {"content": "coffee"}, who=ada, key="k").status == 409
    assert events(harness, ada) == ["memory.created"]
    harness("memories.delete", who=ada, id=first.body["id"])
    assert harness(operation, {"content": "tea"}, who=ada, key="k").status == 404


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (
            "memories.create",
            {"messages": [{"role": "user", "content": "tea"}, {"role": "user", "content": "milk"}]},
        ),
        ("memories.create_batch", {"memories": [{"content": "tea"}, {"content": "milk"}]}),
    ],
)
def test_a_repeated_write_of_several_is_the_same_memories(
    harness: ShardHarness, ada: str, operation: str, body: Any
) -> None:
    together = harness.together([harness.form(operation, body, who=ada, key="k") for _ in range(3)])
    assert {answer.status for answer in together} == {201}
    first = checked(harness, operation, together[0])
    assert all(answer.body["memory_ids"] == first["memory_ids"] for answer in together)
    assert harness("memories.list", who=ada).body["total_count"] == 2
    harness("memories.bulk_delete", {"ids": first["memory_ids"]}, who=ada)
    assert harness(operation, body, who=ada, key="k").status == 404


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_keeps_a_result_for_each_item(harness: ShardHarness, ada: str) -> None:
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    gone = harness("collections.create", {"name": "gone"}, who=ada).body["id"]
    harness("collections.delete", who=ada, id=gone)
    batch = {
        "memories": [
            {"content": "one"},
            {"content": "two", "collection_id": gone},
            {"content": "three", "user_id": "v"},
        ],
        "collection_id": mine,
        "user_id": "u",
    }
    answer = harness("memories.create_batch", batch, who=ada)
    body = checked(harness, "memories.create_batch", answer)
    assert answer.status == 201
    assert (body["created"], body["failed"], body["accepted"]) == (2, 1, 2)
    assert [result["status"] for result in body["results"]] == ["created", "failed", "created"]
    assert body["errors"][0]["index"] == 1 and body["errors"][0]["code"] == "collection_not_found"
    assert ids(harness, ada, collection_id=mine, user_id="u") == ["one"]
    assert ids(harness, ada, user_id="v") == ["three"]
    assert harness("collections.get", who=ada, id=mine).body["memory_count"] == 2


def test_a_batch_says_that_it_infers_nothing(harness: ShardHarness, ada: str) -> None:
    batch = {"memories": [{"content": "one", "infer": False}, {"content": "two", "infer": True}]}
    with pytest.raises(ValidationFailed) as refused:
        Batch.model_validate(batch)
    assert refused.value.details[0]["loc"] == ["body", "memories", 1, "infer"]
    assert "/v1/memories/process" in refused.value.message


def test_what_stores_several_memories_points_at_its_job_when_all_are_ready(
    harness: ShardHarness, ada: str
) -> None:
    for name, asked, count in (
        ("memories.create_batch", {"memories": [{"content": "tea"}, {"content": "milk"}]}, 2),
        ("memories.create_batch", {"memories": [{"content": "one alone"}]}, 1),
        (
            "memories.create",
            {"messages": [{"role": "user", "content": said} for said in ("Tea?", "Milk.")]},
            2,
        ),
    ):
        answer = harness(name, asked, who=ada, key=f"{name} {count}")
        body = checked(harness, name, answer)
        assert answer.status == 201 and body["searchable"] is True
        assert answer.headers["Location"] == body["status_url"]
        assert body["status_url"].startswith("/v1/memories/jobs/job_")
        job = harness(
            "memories.jobs.get", who=ada, job_id=body["status_url"].rpartition("/")[2]
        ).body
        assert (job["status"], job["progress"]) == ("completed", 1.0)
        assert job["result"] == {"indexed": count, "skipped": 0}
        # A memory of it that goes does not make the rest one memory.
        harness("memories.delete", who=ada, id=body["memory_ids"][0])
        if count > 1:
            again = harness(name, asked, who=ada, key=f"{name} {count}")
            assert again.headers["Location"] == answer.headers["Location"]
    nothing = {"memories": [{"content": "nowhere", "collection_id": "col_nonsense"}]}
    answer = harness("memories.create_batch", nothing, who=ada)
    assert answer.body["status_url"] is None and "Location" not in answer.headers


def test_a_batch_is_refused_whole_for_another_accounts_collection(
    harness: ShardHarness, ada: str
) -> None:
    bob = harness.register("bob@example.com")
    theirs = harness("collections.create", {"name": "theirs"}, who=bob).body["id"]
    batch = {"memories": [{"content": "one"}, {"content": "two", "collection_id": theirs}]}
    assert harness("memories.create_batch", batch, who=ada).status == 403
    assert (
        harness(
            "memories.create_batch",
            {"memories": [{"content": "x"}], "collection_id": "nope"},
            who=ada,
        ).status
        == 404
    )
    assert harness("memories.list", who=ada).body["total_count"] == 0


def test_a_batch_that_waits_points_at_its_job(
    harness: ShardHarness, ada: str, embedder: WordEmbedder
) -> None:
    embedder.down = True
    answer = harness(
        "memories.create_batch", {"memories": [{"content": "tea"}, {"content": "milk"}]}, who=ada
    )
    body = checked(harness, "memories.create_batch", answer)
    assert answer.status == 202 and body["searchable"] is False
    assert answer.headers["Location"] == body["status_url"]
    job_id = body["status_url"].removeprefix("/v1/memories/jobs/")
    embedder.down = False
    harness.settle()
    assert harness("memories.jobs.get", who=ada, job_id=job_id).body["result"] == {
        "indexed": 2,
        "skipped": 0,
    }


def test_a_batch_has_1_to_100_items() -> None:
    for count in (0, limits.BATCH_ITEMS_MAX + 1):
        with pytest.raises(ValidationError):
            Batch.model_validate({"memories": [{"content": "x"}] * count})


# --- list -----------------------------------------------------------------------------------------


def test_lists_are_newest_first_and_stable(harness: ShardHarness, ada: str) -> None:
    harness(
        "memories.create_batch",
        {"memories": [{"content": str(number)} for number in range(7)]},
        who=ada,
    )
    page = checked(harness, "memories.list", harness("memories.list", who=ada, query={"limit": 3}))
    assert ([item["content"] for item in page["items"]], page["total_count"]) == (
        ["6", "5", "4"],
        7,
    )
    harness("memories.create", {"content": "new"}, who=ada)
    harness("memories.delete", who=ada, id=page["items"][1]["id"])
    second = harness(
        "memories.list", who=ada, query={"limit": 3, "cursor": page["next_cursor"]}
    ).body
    assert [item["content"] for item in second["items"]] == ["3", "2", "1"]
    last = harness(
        "memories.list", who=ada, query={"limit": 3, "cursor": second["next_cursor"]}
    ).body
    assert ([item["content"] for item in last["items"]], last["has_more"], last["next_cursor"]) == (
        ["0"],
        False,
        None,
    )
    assert (
        harness("memories.list", who=ada, query={"tag": "x", "cursor": page["next_cursor"]}).status
        == 400
    )


def test_lists_filter(harness: ShardHarness, ada: str) -> None:
    mine = harness("collections.create", {"name": "mine"}, who=ada).body["id"]
    for name in ("user_id", "agent_id", "run_id", "app_id", "session_id"):
        harness("memories.create", {"content": name, name: "x"}, who=ada)
    harness("memories.create", {"content": "tagged", "tags": ["x"], "collection_id": mine}, who=ada)
    for name in ("user_id", "agent_id", "app_id"):
        assert ids(harness, ada, **{name: "x"}) == [name]
    assert ids(harness, ada, session_id="x") == ["session_id", "run_id"]
    assert ids(harness, ada, tag="x") == ids(harness, ada, collection_id=mine) == ["tagged"]
    assert ids(harness, ada, user_id="x", tag="x") == ids(harness, ada, tier="archived") == []
    assert len(ids(harness, ada, tier="short_term", scope="all")) == 6
    assert harness("memories.list", who=ada, query={"collection_id": "nope"}).status == 404


def test_creation_times_bound_exactly(harness: ShardHarness, ada: str) -> None:
    at = []
    for number in range(4):
        at.append(harness("memories.create", {"content": str(number)}, who=ada).body["created_at"])
        harness.now_ms += (0, 10, 7_200_000)[number % 3]
    assert ids(harness, ada, created_after=at[0]) == ["3", "2", "1"]
    assert ids(harness, ada, created_before=at[2]) == ["1", "0"]
    assert ids(harness, ada, created_after=at[0], created_before=at[3]) == ["2", "1"]
    assert ids(harness, ada, created_after=at[3]) == ids(harness, ada, created_before=at[0]) == []
