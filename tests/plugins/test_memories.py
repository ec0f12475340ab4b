from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

from plugins import accounts, collections, memories, memory_tools
from plugins.memory_cues import NOTHING, NUMBER, TIME
from plugins.memory_store import (
    INDEXES,
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_CUES,
    MEMORY_EXPIRY,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MEMORY_IDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    cue_columns,
    live_bitmap,
    restore,
    speaker_mark,
    supersede,
)
from runtime import auth, limits
from runtime.errors import ApiError
from runtime.inference import Models
from runtime.operation import Body, Call, Kind, Operation, ReadContext, WriteContext
from runtime.outbox import OUTBOX
from runtime.plugin import Plugin
from runtime.settings import Settings
from runtime.timestamps import iso
from tests.plugins import CHEAP, Answer, Desk
from tests.plugins.embedding import WordEmbedder

# --- a plugin that supersedes memories, as later ones will --------------------------------------------------------------


class Replaced(Body):
    old: str
    new: str | None = None
    back: bool = False


def replaced(ctx: WriteContext, body: Replaced) -> dict[str, Any]:
    row = memories.get_row(ctx, body.old)
    return memories.memory_view(restore(ctx, row) if body.back else supersede(ctx, row, body.new, reason="newer"))


superseding = Plugin(
    name="superseding",
    requires=("memories",),
    operations=(
        Operation(
            name="superseding.mark",
            method="POST",
            path="/v1/superseding",
            kind=Kind.WRITE,
            handler=replaced,
            body=Replaced,
            response=BaseModel,
            scope="write",
            summary="",
            spec="",
        ),
    ),
)
PLUGINS = (accounts.plugin, collections.plugin, memories.plugin, memory_tools.plugin, superseding)


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def desk(tmp_path: Path, embedder: WordEmbedder) -> Iterator[Desk]:
    desk = Desk(tmp_path, PLUGINS, Models(embedder), Settings.load({**CHEAP, "write": {"ready_wait_ms": 50}}))
    yield desk
    desk.close()


@pytest.fixture
def ada(desk: Desk) -> str:
    return desk.register()


def call(desk: Desk, operation: str, body: Any, headers: dict[str, Any], **how: Any) -> Answer:
    """An operation with `prefer` or `if_match` set on its Call."""
    made = desk.form(operation, body, **how)
    assert isinstance(made, Call)
    for name, value in headers.items():
        setattr(made, name, value)
    return desk.together([made])[0]


def inside(desk: Desk, token: str) -> tuple[Any, ReadContext]:
    """(snapshot to close, context) of the token's tenant, now."""
    credential, slot = auth.read_authorization(f"Bearer {token}", desk.secrets, desk.now_ms)
    snapshot = desk.shard.store.snapshot()
    principal, scope = auth.resolve(snapshot, slot, credential, desk.now_ms, desk.secrets)
    made = Call(operation="test", slot=slot, now_ms=desk.now_ms, seed=b"", request_id="test", credential=credential)
    return snapshot, ReadContext(snapshot, scope, made, desk.shard.environment, principal)


def found(desk: Desk, token: str, word: str) -> list[int]:
    """Ordinals that the lexical index gives for a word."""
    snapshot, ctx = inside(desk, token)
    with snapshot:
        return sorted(int(ordinal) for ordinal in ctx.index(MEMORY_TEXT).search([word], 10, live_bitmap(ctx))[0])


def events(desk: Desk, token: str) -> list[str]:
    """Kinds of all events, in order."""
    snapshot, ctx = inside(desk, token)
    with snapshot:
        return [row.kind for _, row in ctx[OUTBOX].scan() if row.kind.startswith("memory.")]


def ids(desk: Desk, token: str, **query: Any) -> list[str]:
    return [item["content"] for item in desk("memories.list", who=token, query=query).body["items"]]


def checked(desk: Desk, operation: str, answer: Answer) -> Any:
    """The body, after it was held against the operation's declared response."""
    declared = desk.registry.operations[operation]
    assert answer.status in declared.statuses, answer
    parsed = declared.response.model_validate(answer.body, strict=True)
    assert parsed.model_dump(exclude_unset=True) == answer.body
    return answer.body


# --- create -----------------------------------------------------------------------------------------------------------


def test_a_memory_is_searchable_when_the_answer_is_201(desk: Desk, ada: str) -> None:
    answer = desk("memories.create", {"content": "  I moved to Lisbon. ", "user_id": "u", "metadata": {"b": 1, "a": None}}, who=ada)
    body = checked(desk, "memories.create", answer)
    assert answer.status == 201
    assert body["content"] == "  I moved to Lisbon. "
    assert body["metadata"] == {"b": 1, "a": None}
    assert (body["searchable"], body["processing_status"], body["version"]) == (True, "completed", 1)
    assert answer.headers["Location"] == body["status_url"] == f"/v1/memories/{body['id']}"
    assert body["results"] == [
        {"id": body["id"], "memory_id": body["id"], "event": "ADD", "memory": body["content"], "processing_status": "completed"}
    ]
    assert body["memory_ids"] == [body["id"]]
    assert found(desk, ada, "lisbon") == [0]
    assert desk("collections.get_default", who=ada).body["memory_count"] == 1
    read = desk("memories.get", who=ada, id=body["id"])
    assert checked(desk, "memories.get", read)["occurred_at"] == body["created_at"]
    assert read.headers["ETag"] == '"1"'


def test_every_field_comes_back(desk: Desk, ada: str) -> None:
    sent = {
        "content": "x", "importance": 1, "title": "", "tags": ["b", "a", "b"], "source": "slack", "source_type": "note",
        "source_reference": "r", "user_id": "u", "agent_id": "g", "run_id": "n", "app_id": "p", "speaker": "Ada",
        "metadata": {"deep": {"list": [1, 2.5, "é"]}},
        "occurred_at": "2020-02-29T12:00:00+02:00", "expires_at": "2999-01-01",
    }  # fmt: skip
    body = checked(desk, "memories.create_raw", desk("memories.create_raw", sent, who=ada))
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
        ({"content": "x", "metadata": {"a": "x" * limits.METADATA_BYTES_MAX}}, ("metadata",)),
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
def test_what_does_not_fit_is_refused_where_it_is(sent: dict[str, Any], loc: tuple[Any, ...]) -> None:
    with pytest.raises((ValidationError, ApiError)) as refused:
        memories.memory_creation.NewMemory.model_validate(sent)
    error = refused.value
    places = (
        [tuple(detail["loc"]) for detail in error.details] if isinstance(error, ApiError) else [found["loc"] for found in error.errors()]
    )
    assert places == [loc]


def test_content_may_be_as_long_as_the_limit_says(desk: Desk, ada: str) -> None:
    content = " " + "ab " * (limits.CONTENT_CHARS_MAX // 3) + "c" + " "
    assert desk("memories.create", {"content": content}, who=ada).body["content"] == content


def test_messages_become_memories_of_one_session(desk: Desk, ada: str) -> None:
    said = [{"role": "user", "content": "Do you like tea?", "name": "Ada"}, {"role": "assistant", "content": "I do."}]
    answer = desk("memories.create", {"messages": said, "metadata": {"m": 1}}, who=ada)
    body = checked(desk, "memories.create", answer)
    assert answer.status == 201 and body["created_count"] == 2 and "content" not in body
    first, second = (desk("memories.get", who=ada, id=memory_id).body for memory_id in body["memory_ids"])
    assert (first["speaker"], second["speaker"]) == ("Ada", "assistant")
    assert first["session_id"] == second["session_id"] is not None
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        cues = cue_columns(ctx, np.array([0, 1]))
        assert cues["previous"].tolist() == [NOTHING, 0] and cues["following"].tolist() == [1, NOTHING]
        assert cues["session"][0] == cues["session"][1] != 0
        assert cues["speaker"][0] == speaker_mark(ctx, "Ada")


def test_sessions_of_other_users_are_other_sessions(desk: Desk, ada: str) -> None:
    for user in ("u", "v", "u"):
        desk("memories.create", {"content": "x", "session_id": "1", "user_id": user}, who=ada)
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        assert cue_columns(ctx, np.arange(3))["previous"].tolist() == [NOTHING, NOTHING, 0]


def test_cues_are_read_from_the_text(desk: Desk, ada: str) -> None:
    desk("memories.create", {"content": "I bought 3 books yesterday."}, who=ada)
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        (cues,) = cue_columns(ctx, [0])
        assert cues["flags"] == NUMBER | TIME
        assert cues["content_words"] > 0 and cues["first_person"] > 0


def test_collections_must_be_the_callers(desk: Desk, ada: str) -> None:
    bob = desk.register("bob@example.com")
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    assert desk("memories.create", {"content": "x", "collection_id": mine}, who=ada).body["collection_id"] == mine
    assert desk("memories.create", {"content": "x", "collection_id": mine}, who=bob).status == 403
    assert desk("memories.create", {"content": "x", "collection_id": "nope"}, who=ada).body["code"] == "collection_not_found"


# --- write readiness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["down", "late", "unwilling"])
def test_a_write_whose_index_is_not_ready_is_202(desk: Desk, ada: str, embedder: WordEmbedder, why: str) -> None:
    embedder.down, embedder.late = why == "down", why == "late"
    prefer = {"respond-async": ""} if why == "unwilling" else {}
    answer = call(desk, "memories.create", {"content": "I moved to Lisbon."}, {"prefer": prefer}, who=ada)
    body = checked(desk, "memories.create", answer)
    assert answer.status == 202
    assert (body["searchable"], body["processing_status"]) == (False, "processing")
    assert answer.headers["Location"] == body["status_url"] == f"/v1/memories/{body['id']}"
    assert int(answer.headers["Retry-After"]) >= 1
    assert body["outbox_event_id"].startswith("evt_") and body["poll_url"] == f"/v1/memories/jobs/{body['job_id']}"
    if why != "unwilling":
        assert found(desk, ada, "lisbon") == []
        assert desk("memories.get", who=ada, id=body["id"]).body["searchable"] is False
        assert checked(desk, "memories.jobs.get", desk("memories.jobs.get", who=ada, job_id=body["job_id"]))["status"] != "completed"
    embedder.down = embedder.late = False
    desk.settle()
    assert found(desk, ada, "lisbon") == [0]
    read = desk("memories.get", who=ada, id=body["id"]).body
    assert (read["searchable"], read["processing_status"], read["version"]) == (True, "completed", 1)
    job = checked(desk, "memories.jobs.get", desk("memories.jobs.get", who=ada, job_id=body["job_id"]))
    assert (job["status"], job["result"]) == ("completed", {"indexed": 1, "skipped": 0})
    page = checked(desk, "memories.jobs.list", desk("memories.jobs.list", who=ada, query={"status": "completed"}))
    assert [item["job_id"] for item in page["items"]] == [body["job_id"]]


def test_a_memory_deleted_while_it_waits_stays_deleted(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    embedder.down = True
    made = desk("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    assert desk("memories.delete", who=ada, id=made["id"]).status == 200
    embedder.down = False
    desk.settle()
    assert desk("memories.get", who=ada, id=made["id"]).status == 404
    assert found(desk, ada, "lisbon") == []
    nothing_left(desk, ada)


def test_a_memory_rewritten_while_it_waits_is_found_by_its_new_text_only(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    embedder.down = True
    made = desk("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    assert desk("memories.update", {"content": "I moved to Porto."}, who=ada, id=made["id"]).status == 202
    assert desk("memories.update", {"importance": 0.9}, who=ada, id=made["id"]).status == 202
    embedder.down = False
    desk.settle()
    assert found(desk, ada, "lisbon") == []
    assert found(desk, ada, "porto") == [0]
    assert desk("memories.get", who=ada, id=made["id"]).body["version"] == 3


def test_waiting_memories_survive_a_restart(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    embedder.down = True
    desk("memories.create", {"content": "I moved to Lisbon."}, who=ada)
    embedder.down = False
    desk.reopen()
    desk.settle()
    assert found(desk, ada, "lisbon") == [0]


# --- idempotency ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["memories.create", "memories.create_raw", "memory_tools.insert"])
def test_a_repeated_create_is_the_same_memory(desk: Desk, ada: str, embedder: WordEmbedder, operation: str) -> None:
    embedder.down = True
    first = desk(operation, {"content": "tea"}, who=ada, key="k")
    embedder.down = False
    desk.settle()
    again = desk(operation, {"content": "tea"}, who=ada, key="k")
    assert (first.status, again.status) == (202, 201)
    assert checked(desk, operation, again)["id"] == first.body["id"]
    assert desk(operation, {"content": "coffee"}, who=ada, key="k").status == 409
    assert events(desk, ada) == ["memory.created"]
    desk("memories.delete", who=ada, id=first.body["id"])
    assert desk(operation, {"content": "tea"}, who=ada, key="k").status == 404


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("memories.create", {"messages": [{"role": "user", "content": "tea"}, {"role": "user", "content": "milk"}]}),
        ("memories.create_batch", {"memories": [{"content": "tea"}, {"content": "milk"}]}),
    ],
)
def test_a_repeated_write_of_several_is_the_same_memories(desk: Desk, ada: str, operation: str, body: Any) -> None:
    together = desk.together([desk.form(operation, body, who=ada, key="k") for _ in range(3)])
    assert {answer.status for answer in together} == {201}
    first = checked(desk, operation, together[0])
    assert all(answer.body["memory_ids"] == first["memory_ids"] for answer in together)
    assert desk("memories.list", who=ada).body["total_count"] == 2
    desk("memories.bulk_delete", {"ids": first["memory_ids"]}, who=ada)
    assert desk(operation, body, who=ada, key="k").status == 404


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_keeps_a_result_for_each_item(desk: Desk, ada: str) -> None:
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    gone = desk("collections.create", {"name": "gone"}, who=ada).body["id"]
    desk("collections.delete", who=ada, id=gone)
    batch = {
        "memories": [{"content": "one"}, {"content": "two", "collection_id": gone}, {"content": "three", "user_id": "v"}],
        "collection_id": mine,
        "user_id": "u",
    }
    answer = desk("memories.create_batch", batch, who=ada)
    body = checked(desk, "memories.create_batch", answer)
    assert answer.status == 201
    assert (body["created"], body["failed"], body["accepted"]) == (2, 1, 2)
    assert [result["status"] for result in body["results"]] == ["created", "failed", "created"]
    assert body["errors"][0]["index"] == 1 and body["errors"][0]["code"] == "collection_not_found"
    assert ids(desk, ada, collection_id=mine, user_id="u") == ["one"]
    assert ids(desk, ada, user_id="v") == ["three"]
    assert desk("collections.get", who=ada, id=mine).body["memory_count"] == 2
    assert answer.headers["Location"] == f"/v1/memories/{body['memory_ids'][0]}"


def test_a_batch_is_refused_whole_for_another_accounts_collection(desk: Desk, ada: str) -> None:
    bob = desk.register("bob@example.com")
    theirs = desk("collections.create", {"name": "theirs"}, who=bob).body["id"]
    batch = {"memories": [{"content": "one"}, {"content": "two", "collection_id": theirs}]}
    assert desk("memories.create_batch", batch, who=ada).status == 403
    assert desk("memories.create_batch", {"memories": [{"content": "x"}], "collection_id": "nope"}, who=ada).status == 404
    assert desk("memories.list", who=ada).body["total_count"] == 0


def test_a_batch_that_waits_points_at_its_job(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    embedder.down = True
    answer = desk("memories.create_batch", {"memories": [{"content": "tea"}, {"content": "milk"}]}, who=ada)
    body = checked(desk, "memories.create_batch", answer)
    assert answer.status == 202 and body["searchable"] is False
    assert answer.headers["Location"] == body["status_url"]
    job_id = body["status_url"].removeprefix("/v1/memories/jobs/")
    embedder.down = False
    desk.settle()
    assert desk("memories.jobs.get", who=ada, job_id=job_id).body["result"] == {"indexed": 2, "skipped": 0}


def test_a_batch_has_1_to_100_items() -> None:
    for count in (0, limits.BATCH_ITEMS_MAX + 1):
        with pytest.raises(ValidationError):
            memories.memory_creation.Batch.model_validate({"memories": [{"content": "x"}] * count})


# --- list -------------------------------------------------------------------------------------------------------------


def test_lists_are_newest_first_and_stable(desk: Desk, ada: str) -> None:
    desk("memories.create_batch", {"memories": [{"content": str(number)} for number in range(7)]}, who=ada)
    page = checked(desk, "memories.list", desk("memories.list", who=ada, query={"limit": 3}))
    assert ([item["content"] for item in page["items"]], page["total_count"]) == (["6", "5", "4"], 7)
    desk("memories.create", {"content": "new"}, who=ada)
    desk("memories.delete", who=ada, id=page["items"][1]["id"])
    second = desk("memories.list", who=ada, query={"limit": 3, "cursor": page["next_cursor"]}).body
    assert [item["content"] for item in second["items"]] == ["3", "2", "1"]
    last = desk("memories.list", who=ada, query={"limit": 3, "cursor": second["next_cursor"]}).body
    assert ([item["content"] for item in last["items"]], last["has_more"], last["next_cursor"]) == (["0"], False, None)
    assert desk("memories.list", who=ada, query={"tag": "x", "cursor": page["next_cursor"]}).status == 400


def test_lists_filter(desk: Desk, ada: str) -> None:
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    for name in ("user_id", "agent_id", "run_id", "app_id", "session_id"):
        desk("memories.create", {"content": name, name: "x"}, who=ada)
    desk("memories.create", {"content": "tagged", "tags": ["x"], "collection_id": mine}, who=ada)
    for name in ("user_id", "agent_id", "app_id"):
        assert ids(desk, ada, **{name: "x"}) == [name]
    assert ids(desk, ada, session_id="x") == ["session_id", "run_id"]
    assert ids(desk, ada, tag="x") == ids(desk, ada, collection_id=mine) == ["tagged"]
    assert ids(desk, ada, user_id="x", tag="x") == ids(desk, ada, tier="archived") == []
    assert len(ids(desk, ada, tier="short_term", scope="all")) == 6
    assert desk("memories.list", who=ada, query={"collection_id": "nope"}).status == 404


def test_creation_times_bound_exactly(desk: Desk, ada: str) -> None:
    at = []
    for number in range(4):
        at.append(desk("memories.create", {"content": str(number)}, who=ada).body["created_at"])
        desk.now_ms += (0, 10, 7_200_000)[number % 3]
    assert ids(desk, ada, created_after=at[0]) == ["3", "2", "1"]
    assert ids(desk, ada, created_before=at[2]) == ["1", "0"]
    assert ids(desk, ada, created_after=at[0], created_before=at[3]) == ["2", "1"]
    assert ids(desk, ada, created_after=at[3]) == ids(desk, ada, created_before=at[0]) == []
    assert ids(desk, ada, created_after=at[2], created_before=at[1]) == []


# --- change -----------------------------------------------------------------------------------------------------------


def test_a_patch_makes_a_version_and_is_found_by_its_new_text(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    made = desk("memories.create", {"content": "I moved to Lisbon.", "title": "t", "tags": ["a"], "speaker": "Ada"}, who=ada).body
    changes = {"content": "I moved to Porto.", "importance": 0.9, "title": None, "tags": ["b"], "metadata": {"x": 1}}
    answer = desk("memories.update", changes, who=ada, id=made["id"])
    body = checked(desk, "memories.update", answer)
    assert answer.status == 200 and answer.headers["ETag"] == '"2"'
    assert {name: body[name] for name in changes} == changes
    assert body["updated_at"] > body["created_at"] == made["created_at"]
    assert (found(desk, ada, "lisbon"), found(desk, ada, "porto"), found(desk, ada, "ada")) == ([], [0], [0])
    assert (ids(desk, ada, tag="a"), ids(desk, ada, tag="b")) == ([], ["I moved to Porto."])
    assert embedder.texts == ["I moved to Lisbon.", "I moved to Porto."]
    assert events(desk, ada) == ["memory.created", "memory.updated"]
    past = checked(desk, "memories.history", desk("memories.history", who=ada, id=made["id"], query={"limit": 1}))
    assert [(item["version"], item["event"], item["content"]) for item in past["items"]] == [(1, "ADD", "I moved to Lisbon.")]
    rest = desk("memories.history", who=ada, id=made["id"], query={"cursor": past["next_cursor"]}).body
    assert [(item["version"], item["event"], item["content"]) for item in rest["items"]] == [(2, "UPDATE", "I moved to Porto.")]
    assert (rest["has_more"], rest["total_count"]) == (False, 2)


def test_a_patch_that_changes_nothing_makes_no_version(desk: Desk, ada: str) -> None:
    made = desk("memories.create", {"content": "tea", "tags": ["a"]}, who=ada).body
    for nothing in ({}, {"content": "tea"}, {"title": None, "tags": ["a"]}, {"wait_for_index": True}):
        answer = desk("memories.update", nothing, who=ada, id=made["id"])
        assert (answer.status, answer.body["version"], answer.body["updated_at"]) == (200, 1, made["updated_at"])
    assert desk("memories.update", {"tags": None, "metadata": None, "expires_at": None}, who=ada, id=made["id"]).body["tags"] == []


def test_new_content_that_is_not_indexed_yet_hides_the_old(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    made = desk("memories.create", {"content": "I moved to Lisbon."}, who=ada).body
    embedder.down = True
    answer = desk("memories.update", {"content": "I moved to Porto."}, who=ada, id=made["id"])
    assert (answer.status, answer.body["searchable"], answer.headers["Location"]) == (202, False, made["status_url"])
    assert found(desk, ada, "lisbon") == found(desk, ada, "porto") == []
    embedder.down = False
    desk.settle()
    assert found(desk, ada, "porto") == [0]


@pytest.mark.parametrize(("header", "status"), [("*", 200), ('"1"', 200), ('"7", "1"', 200), ("1", 200), ('"2"', 412), ('W/"1"', 412)])
def test_if_match_guards_changes(desk: Desk, ada: str, header: str, status: int) -> None:
    made = desk("memories.create", {"content": "tea"}, who=ada).body
    assert call(desk, "memories.update", {"importance": 0.1}, {"if_match": header}, who=ada, id=made["id"]).status == status


def test_superseded_memories_leave_ordinary_reads(desk: Desk, ada: str) -> None:
    old, new = (desk("memories.create", {"content": text}, who=ada).body["id"] for text in ("I like tea", "I like coffee"))
    assert desk("superseding.mark", {"old": old, "new": new}, who=ada).body["superseded_by_id"] == new
    assert ids(desk, ada) == ["I like coffee"]
    assert ids(desk, ada, include_superseded=True) == ["I like coffee", "I like tea"]
    assert desk("memories.get", who=ada, id=old).body["conflict_status"] == "superseded"
    assert [item["event"] for item in desk("memories.history", who=ada, id=old).body["items"]] == ["ADD", "SUPERSEDE"]
    desk("superseding.mark", {"old": old, "back": True}, who=ada)
    assert ids(desk, ada) == ["I like coffee", "I like tea"]


# --- delete -----------------------------------------------------------------------------------------------------------


def nothing_left(desk: Desk, token: str) -> None:
    snapshot, ctx = inside(desk, token)
    with snapshot:
        tables = [MEMORIES, MEMORY_IDS, MEMORY_CUES.records, MEMORY_HISTORY, MEMORIES_HIDDEN, *MEMORY_FIELDS.tables, MEMORY_TEXT.postings]
        assert {table.name: ctx[table].count() for table in tables} == {table.name: 0 for table in tables}
        assert ctx.index(MEMORY_VECTORS).count("words/32") == 0


def test_a_deleted_memory_leaves_nothing(desk: Desk, ada: str) -> None:
    bob = desk.register("bob@example.com")
    made = desk("memories.create", {"content": "tea", "tags": ["a"], "session_id": "s", "expires_at": "2999-01-01"}, who=ada).body
    desk("memories.update", {"content": "coffee"}, who=ada, id=made["id"])
    assert desk("memories.delete", who=bob, id=made["id"]).status == 403
    answer = desk("memories.delete", who=ada, id=made["id"])
    assert checked(desk, "memories.delete", answer) == {"id": made["id"], "deleted": True}
    for operation in ("memories.delete", "memories.get", "memories.history"):
        assert desk(operation, who=ada, id=made["id"]).status == 404
    assert desk("memories.get", who=ada, id="mem_nonsense").status == 404
    nothing_left(desk, ada)
    assert desk("collections.get_default", who=ada).body["memory_count"] == 0
    assert events(desk, ada) == ["memory.created", "memory.updated", "memory.deleted"]


def test_bulk_delete_says_what_became_of_each(desk: Desk, ada: str) -> None:
    bob = desk.register("bob@example.com")
    theirs = desk("memories.create", {"content": "x"}, who=bob).body["id"]
    first, second = desk("memories.create_batch", {"memories": [{"content": "a"}, {"content": "b"}]}, who=ada).body["memory_ids"]
    answer = desk("memories.bulk_delete", {"ids": [first, first, "nope", theirs]}, who=ada)
    body = checked(desk, "memories.bulk_delete", answer)
    assert [result["status"] for result in body["results"]] == ["deleted", "not_found", "not_found", "forbidden"]
    assert (body["deleted"], body["not_found"]) == (1, 2)
    assert ids(desk, ada) == ["b"] and desk("memories.get", who=ada, id=second).status == 200
    assert desk("collections.get_default", who=ada).body["memory_count"] == 1


def test_deleting_all_needs_its_confirmation(desk: Desk, ada: str) -> None:
    for query in ({}, {"confirm": "yes"}):
        answer = desk("memories.delete_all", who=ada, query=query)
        assert (answer.status, answer.body["param"]) == (400, "confirm")


def test_deleting_all_is_at_once_and_swept_in_steps(desk: Desk, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugins.memory_removal.MEMORIES_SWEPT_PER_STEP", 2)
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    items = [{"content": f"tea {number}", "user_id": "uv"[number % 2]} for number in range(7)]
    made = desk("memories.create_batch", {"memories": items, "collection_id": mine}, who=ada).body["memory_ids"]
    answer = desk("memories.delete_all", who=ada, query={"confirm": "delete-all-memories", "user_id": "v"})
    assert checked(desk, "memories.delete_all", answer) == {"deleted": 3}
    assert len(ids(desk, ada)) == desk("collections.get", who=ada, id=mine).body["memory_count"] == 4
    answer = desk("memories.delete_all", who=ada, query={"confirm": "delete-all-memories"})
    assert answer.body == {"deleted": 4}
    assert ids(desk, ada) == found(desk, ada, "tea") == []
    assert {desk("memories.get", who=ada, id=memory_id).status for memory_id in made} == {404}
    desk.settle()
    nothing_left(desk, ada)
    assert events(desk, ada).count("memory.deleted") == 7
    assert desk("memories.delete_all", who=ada, query={"confirm": "delete-all-memories"}).body == {"deleted": 0}


def test_a_deleted_collection_takes_its_memories_along(desk: Desk, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugins.memory_removal.MEMORIES_SWEPT_PER_STEP", 2)
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    made = desk("memories.create_batch", {"memories": [{"content": "tea"}] * 5, "collection_id": mine}, who=ada).body["memory_ids"]
    job_id = desk("collections.delete", who=ada, id=mine).body["cleanup"]["job_id"]
    assert desk("memories.get", who=ada, id=made[0]).status == 404
    assert ids(desk, ada) == found(desk, ada, "tea") == []
    desk.settle()
    nothing_left(desk, ada)
    assert job_id.startswith("job_")


def test_an_expired_memory_is_gone_and_then_swept(desk: Desk, ada: str) -> None:
    desk("memories.create", {"content": "tea", "expires_at": iso(desk.now_ms - 1)}, who=ada)
    kept = desk("memories.create", {"content": "milk", "expires_at": iso(desk.now_ms + 3_600_000)}, who=ada).body
    soon = desk("memories.create", {"content": "tea", "expires_at": iso(desk.now_ms + 1_000)}, who=ada).body
    assert ids(desk, ada) == ["tea", "milk"]
    desk.now_ms += 1_000
    assert ids(desk, ada) == ["milk"] and found(desk, ada, "tea") == []
    assert desk("memories.get", who=ada, id=soon["id"]).status == desk("memories.delete", who=ada, id=soon["id"]).status == 404
    deadline = time.monotonic() + 10
    while desk("collections.get_default", who=ada).body["memory_count"] > 1:
        assert time.monotonic() < deadline
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        assert [row.content for _, row in ctx[MEMORIES].scan()] == ["milk"]
        assert [key[1] for key, _ in ctx[MEMORY_EXPIRY].scan()] == [1]
    assert desk("memories.update", {"expires_at": None}, who=ada, id=kept["id"]).body["expires_at"] is None
    assert events(desk, ada).count("memory.deleted") == 2


# --- privacy, tools ---------------------------------------------------------------------------------------------------


def test_every_table_is_erased_and_every_memory_exported(desk: Desk, ada: str) -> None:
    made = desk("memories.create", {"content": "tea", "expires_at": "2999-01-01"}, who=ada, key="k").body
    desk("memories.update", {"content": "milk"}, who=ada, id=made["id"])
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        ((kind, record, _),) = memories.plugin.export(ctx)
    assert (kind, record["content"], [version["content"] for version in record["history"]]) == ("memory", "milk", ["tea", "milk"])

    def work(transaction: Any) -> dict[str, int]:
        return memories.plugin.erase(WriteContext(transaction, ctx.scope, ctx.call, ctx.environment, ctx.principal))

    counts = desk.shard.store.write(work).result
    assert counts["memories"] == counts["memory_text"] == counts["memory_vectors"] == 1
    nothing_left(desk, ada)
    assert set(counts) == {table.name for table in (*memories.plugin.tables, *MEMORY_FIELDS.tables)} | {index.name for index in INDEXES[1:]}


def test_replace_puts_a_new_text_in_the_place_of_the_known_one(desk: Desk, ada: str) -> None:
    mine = desk("collections.create", {"name": "mine"}, who=ada).body["id"]
    made = checked(desk, "memory_tools.insert", desk("memory_tools.insert", {"content": "tea"}, who=ada))
    change = {"memory_id": made["id"], "old_content": "tea", "new_content": "coffee"}
    body = checked(desk, "memory_tools.replace", desk("memory_tools.replace", change, who=ada))
    assert (body["content"], body["version"]) == ("coffee", 2)
    assert found(desk, ada, "coffe") == [0] and found(desk, ada, "tea") == []
    assert desk("memory_tools.replace", change, who=ada).status == 409
    assert desk("memory_tools.replace", {**change, "collection_id": mine}, who=ada).status == 404


def test_rethink_indexes_afresh_without_a_new_version(desk: Desk, ada: str, embedder: WordEmbedder) -> None:
    made = desk("memory_tools.insert", {"content": "tea"}, who=ada).body
    embedder.space = "words again/32"
    body = checked(desk, "memory_tools.rethink", desk("memory_tools.rethink", {"memory_id": made["id"]}, who=ada))
    assert (body["version"], body["searchable"]) == (1, True)
    snapshot, ctx = inside(desk, ada)
    with snapshot:
        assert isinstance(ctx.index(MEMORY_VECTORS).get("words again/32", 0), np.ndarray)
        assert ctx.index(MEMORY_VECTORS).count("words/32") == 0
    embedder.down = True
    assert desk("memory_tools.rethink", {"memory_id": made["id"]}, who=ada).status == 202
    assert found(desk, ada, "tea") == []
