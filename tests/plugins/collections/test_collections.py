from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from plugins import accounts, collections
from plugins.collections import Sweep, adjust_count, limits, require_collection
from plugins.collections import operations as collections_operations
from plugins.collections import store as collections_store
from plugins.collections.models import BulkDelete, CollectionPatch, NewCollection
from plugins.collections.store import (
    COLLECTION_COUNTS,
    COLLECTION_INDEX,
    COLLECTIONS,
    DROPPED_COLLECTIONS,
)
from runtime.api import jobs, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Write
from runtime.api.plugin import Plugin
from runtime.errors import ApiError
from runtime.timestamps import iso
from storage.store import Table
from tests.support.in_process import in_process
from tests.support.shard_harness import Answer, ShardHarness

# --- a plugin with members, and one that writes down events ---------------------------------------

MEMBERS: Table[bytes] = Table("members", key=("collection", "member"), row=bytes)
SEEN: Table[bytes] = Table(
    "seen", key=("ordinal", "kind", "collection_id", "change", "version"), row=bytes
)
HIDDEN: Table[bytes] = Table("hidden", key=("number",), row=bytes)


class Join(Body):
    collection_id: str | None = None
    members: int = 1


class Joined(BaseModel):
    collection_id: str
    number: int


def join(ctx: WriteContext, body: Join) -> dict[str, Any]:
    row = require_collection(ctx, body.collection_id)
    for _ in range(body.members):
        ctx[MEMBERS].put((row.number, ctx.next_ordinal("members")), b"")
    adjust_count(ctx, row.id, memories=body.members)
    return {"collection_id": row.id, "number": row.number}


def hide(
    ctx: WriteContext, event_id: str, kind: str, data: dict[str, Any], resource_id: str
) -> None:
    for number in data["numbers"]:
        ctx[HIDDEN].put((number,), b"")


def sweep(ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str) -> None:
    doomed = (
        list(ctx[MEMBERS].keys(data.number, limit=data.rows_left)) if data.rows_left > 0 else []
    )
    for key in doomed:
        ctx[MEMBERS].delete(*key)
    data.erased("members", len(doomed))


def note(
    ctx: WriteContext, event_id: str, kind: str, data: dict[str, Any], resource_id: str
) -> None:
    ctx[SEEN].put(
        (ctx.next_ordinal("seen"), kind, resource_id, data["change"], data["version"]), b""
    )


members = Plugin(
    name="members",
    requires=("collections",),
    tables=(MEMBERS, HIDDEN, SEEN),
    operations=(
        Write(
            "members.join",
            "POST",
            "/v1/members",
            join,
            summary="",
            response=Joined,
            body=Join,
            scope="write",
        ),
    ),
    subscribe={
        "internal.collections_dropped": hide,
        "internal.collection_cleanup": sweep,
        "collection.created": note,
        "collection.updated": note,
    },
)


class CollectionHarness:
    """A shard harness with one account; calls are made with its access token."""

    def __init__(self, harness: ShardHarness):
        self.harness = harness
        self.token = harness.register()
        self.scope = harness.scope_of(self.token)

    def __call__(self, operation: str, body: Any = None, **fields: Any) -> Answer:
        return self.harness(
            f"collections.{operation}" if "." not in operation else operation,
            body,
            who=self.token,
            **fields,
        )

    def made(self, name: str, **fields: Any) -> str:
        return self("create", {"name": name, **fields}).body["id"]

    def names(self, **query: Any) -> list[str]:
        return [item["name"] for item in self("list", query=query).body["items"]]

    def join(self, collection_id: str | None = None, members: int = 1) -> Answer:
        return self("members.join", {"collection_id": collection_id, "members": members})

    def keys(self, table: Table) -> list[tuple]:
        with self.harness.shard.store.snapshot() as snapshot:
            return list(snapshot.bind(table, self.scope).keys())

    def seen(self) -> list[tuple]:
        return [key[1:] for key in self.keys(SEEN)]

    def within(self, work: Any) -> Any:
        """Run work(ctx) on a snapshot, as this account."""
        with self.harness.shard.store.snapshot() as snapshot:
            principal, scope = tenants.tenant(snapshot, self.scope.slot, self.scope.tenant)
            form = self.harness.form("collections.get_default", who=self.token)
            return work(
                ReadContext(snapshot, scope, form, self.harness.shard.environment, principal)
            )


@pytest.fixture
def club(tmp_path: Path) -> Iterator[CollectionHarness]:
    harness = ShardHarness(tmp_path / "shard", [accounts.plugin, members, collections.plugin])
    yield CollectionHarness(harness)
    harness.close()


# --- one collection -------------------------------------------------------------------------------


def test_if_match_guards_changes_and_deletions(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        ada = service.register("ada@example.com")

        def asked(method: str, path: str, match: str | None = None, body: Any = None) -> Any:
            headers = {} if match is None else {"If_Match": match}
            return service.request(method, f"/v1/collections{path}", body, who=ada, **headers)

        made = asked("POST", "", body={"name": "first"})
        path = f"/{made.json()['id']}"
        assert made.headers["ETag"] == asked("GET", path).headers["ETag"] == '"1"'
        assert asked("GET", "/default").headers["ETag"] == '"1"'
        changed = asked("PATCH", path, '"1"', {"name": "Bob's"})
        assert (changed.status_code, changed.headers["ETag"]) == (200, '"2"')
        stale = asked("PATCH", path, '"1"', {"name": "Ada's"})
        assert (stale.status_code, stale.json()["error"]["param"]) == (412, "If-Match")
        assert "The collection is at version 2." in stale.json()["error"]["message"]
        assert asked("GET", path).json()["name"] == "Bob's"
        assert asked("DELETE", path, '"1"').status_code == 412
        assert asked("PATCH", path, "*", {"name": "Bob's"}).headers["ETag"] == '"2"'
        assert asked("DELETE", path, '"2"').status_code == 200


def test_a_collection_is_created_and_read_back_exactly_as_sent(club: CollectionHarness) -> None:
    sent = {
        "name": "  Réisen ✈ ",
        "description": "",
        "metadata": {"b": [1, None, {"x": 1.5}], "a": True},
    }
    created = club("create", sent)
    assert created.status == 201
    now = iso(club.harness.now_ms)
    assert created.body == {
        **sent, "id": created.body["id"], "is_default": False, "is_active": True, "memory_count": 0,
        "document_count": 0, "version": 1, "created_at": now, "updated_at": now,
    }  # fmt: skip
    assert club("get", id=created.body["id"]).body == created.body
    assert club.seen() == [("collection.created", created.body["id"], "created", 1)]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "x" * 256}, {"name": 5}, {"name": "n", "metadata": []},
        {"name": "n", "metadata": {"k": "x" * 16_384}},
        {"name": "n", "metadata": {"k": 2**64}}, {"name": "n", "description": "x" * 2_001},
    ],
)  # fmt: skip
def test_a_new_collection_is_validated(body: dict) -> None:
    with pytest.raises(ValidationError):
        NewCollection.model_validate(body)


def test_a_patch_changes_what_it_names(club: CollectionHarness) -> None:
    collection_id = club.made("old", description="d", metadata={"k": 1})
    before = club("get", id=collection_id).body
    patched = club("update", {"name": "new", "description": None}, id=collection_id)
    assert patched.status == 200
    assert patched.body == {
        **before,
        "name": "new",
        "description": None,
        "version": 2,
        "updated_at": iso(club.harness.now_ms),
    }
    assert club("update", {"metadata": None}, id=collection_id).body["metadata"] == {}
    for metadata in ({"z": 1}, {"z": True}, {"z": 1.0}):
        assert repr(
            club("update", {"metadata": metadata}, id=collection_id).body["metadata"]
        ) == repr(metadata)
    assert (club.names(name="old"), club.names(name="new")) == ([], ["new"])
    assert [entry[2:] for entry in club.seen()] == [
        ("created", 1),
        *(("metadata", version) for version in range(2, 7)),
    ]


@pytest.mark.parametrize("body", [{}, {"name": "same"}, {"unknown": 1}])
def test_a_patch_that_changes_nothing_changes_nothing(club: CollectionHarness, body: dict) -> None:
    collection_id = club.made("same")
    before = club("get", id=collection_id).body
    assert club("update", body, id=collection_id).body == before
    assert len(club.seen()) == 1


@pytest.mark.parametrize(
    "body", [{"name": None}, {"name": ""}, {"description": 5}, {"metadata": "text"}]
)
def test_a_patch_is_validated(body: dict) -> None:
    with pytest.raises(ValidationError):
        CollectionPatch.model_validate(body)


def test_what_does_not_exist_is_404_and_what_is_another_s_is_403(club: CollectionHarness) -> None:
    collection_id = club.made("mine")
    other = club.harness.register("bob@example.com")
    for operation, body in (("get", None), ("update", {"name": "theirs"}), ("delete", None)):
        answer = club.harness(f"collections.{operation}", body, who=other, id=collection_id)
        assert (answer.status, answer.body["code"]) == (403, "permission_denied")
        for unknown in (
            "nonsense",
            "mem" + collection_id[3:],
            collection_id[:-1] + ("0" if collection_id[-1] != "0" else "1"),
        ):
            answer = club(operation, body, id=unknown)
            assert (answer.status, answer.body["code"]) == (404, "collection_not_found")
    assert club("get", id=collection_id).body["name"] == "mine"
    assert club.harness("collections.list", who=other).body["total_count"] == 1


# --- the default collection -----------------------------------------------------------------------


def test_the_default_collection_exists_before_anything_is_written(club: CollectionHarness) -> None:
    default = club("get_default").body
    created_at = club("auth.me").body["created_at"]
    assert default == {
        "id": default["id"], "name": "default", "description": None, "metadata": {},
        "is_default": True, "is_active": True, "memory_count": 0, "document_count": 0, "version": 1,
        "created_at": created_at, "updated_at": created_at,
    }  # fmt: skip
    assert club("get", id=default["id"]).body == default
    assert club("list").body["items"] == [default]
    assert club.keys(COLLECTIONS) == []


def test_reads_and_writes_agree_on_the_default_collection(club: CollectionHarness) -> None:
    default = club("get_default").body
    assert club.join().body == {"collection_id": default["id"], "number": 0}
    assert club.join(default["id"]).body == {"collection_id": default["id"], "number": 0}
    patched = club("update", {"name": "inbox"}, id=default["id"]).body
    assert patched == {
        **default,
        "name": "inbox",
        "version": 2,
        "memory_count": 2,
        "updated_at": iso(club.harness.now_ms),
    }
    assert club("get_default").body == patched
    assert club.join().body["collection_id"] == default["id"]
    assert (club.names(), club.names(name="default"), club.names(name="inbox")) == (
        ["inbox"],
        [],
        ["inbox"],
    )


def test_two_accounts_have_default_collections_of_their_own(club: CollectionHarness) -> None:
    other = club.harness.register("bob@example.com")
    assert (
        club.harness("collections.get_default", who=other).body["id"]
        != club("get_default").body["id"]
    )


def test_the_default_collection_cannot_be_deleted(club: CollectionHarness) -> None:
    default = club("get_default").body["id"]
    for _ in range(2):
        assert club("delete", id=default).status == 400
        club("update", {"name": "stored now"}, id=default)
    assert club("bulk_delete", {"ids": [default]}).body["results"] == [
        {"id": default, "status": "forbidden"}
    ]
    assert club("get_default").status == 200


# --- lists ----------------------------------------------------------------------------------------


def test_collections_are_listed_newest_first_page_by_page_while_they_change(
    club: CollectionHarness,
) -> None:
    made = {name: club.made(name) for name in "abcdef"}
    first = club("list", query={"limit": 3}).body
    assert [item["name"] for item in first["items"]] == ["f", "e", "d"]
    assert (first["has_more"], first["total_count"]) == (True, 7)
    club("delete", id=made["d"])
    club.made("g")
    club("update", {"metadata": {"moved": False}}, id=made["b"])
    second = club("list", query={"limit": 4, "cursor": first["next_cursor"]}).body
    assert [item["name"] for item in second["items"]] == ["c", "b", "a", "default"]
    assert (second["has_more"], second["next_cursor"], second["total_count"]) == (False, None, 7)


def test_lists_filter_by_name_and_prefix(club: CollectionHarness) -> None:
    long = "λ" * 250
    for name in ("alpha", "alphabet", "beta", "alpha", "Alpha", long, long + "tail"):
        club.made(name)
    assert club.names(name="alpha") == ["alpha", "alpha"]
    assert club.names(name_prefix="alpha") == ["alpha", "alphabet", "alpha"]
    assert club.names(name_prefix="alpha", name="alphabet") == ["alphabet"]
    assert club.names(name_prefix="λλ") == [long + "tail", long]
    assert club.names(name_prefix=long + "t") == [long + "tail"]
    assert club.names(name=long) == [long]
    assert club.names(name_prefix="de") == club.names(name="default") == ["default"]
    assert club.names(name_prefix="x") == club.names(name="") == []
    page = club("list", query={"name_prefix": "alpha", "limit": 1}).body
    assert page["total_count"] == 3
    assert club.names(name_prefix="alpha", limit=5, cursor=page["next_cursor"]) == [
        "alphabet",
        "alpha",
    ]
    assert club("list", query={"name_prefix": "beta", "cursor": page["next_cursor"]}).status == 400


# --- members --------------------------------------------------------------------------------------


def test_counts_follow_the_members_and_changes_are_announced_once_a_second(
    club: CollectionHarness,
) -> None:
    collection_id = club.made("c")
    club.harness.now_ms = int(time.time() * 1000)
    for _ in range(5):
        club.join(collection_id, members=2)
    assert club("get", id=collection_id).body["memory_count"] == 10
    assert club.seen()[1:] == [("collection.updated", collection_id, "membership", 1)]
    club.harness.settle()
    assert club.seen()[1:] == [("collection.updated", collection_id, "membership", 1)] * 2
    assert club.keys(COLLECTION_COUNTS) == [(1,)]


def test_a_change_after_a_quiet_second_is_announced_at_once(club: CollectionHarness) -> None:
    collection_id = club.made("c")
    club.join(collection_id)
    club.harness.now_ms += limits.MEMBERSHIP_EVENTS_INTERVAL_MS
    club.join(collection_id)
    assert len(club.seen()) == 3


def test_a_write_or_filter_names_its_collection(club: CollectionHarness) -> None:
    collection_id = club.made("c")
    foreign = club.harness(
        "collections.create", {"name": "x"}, who=club.harness.register("bob@example.com")
    ).body["id"]
    assert club.within(lambda ctx: require_collection(ctx, collection_id)).number == 1
    assert club.within(lambda ctx: require_collection(ctx, None)).is_default
    for named, status, code in (
        ("zzz", 404, "collection_not_found"),
        (foreign, 403, "permission_denied"),
    ):
        with pytest.raises(ApiError) as refused:
            club.within(lambda ctx, named=named: require_collection(ctx, named))
        assert (refused.value.status, refused.value.code) == (status, code)


# --- deletion -------------------------------------------------------------------------------------


def test_deletion_hides_at_once_and_sweeps_in_the_background(
    club: CollectionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLEANUP_ROWS_PER_STEP", 4)
    doomed, kept = club.made("doomed"), club.made("kept")
    club.join(doomed, members=10)
    club.join(kept, members=2)
    answer = club("delete", id=doomed)
    job_id = answer.body["cleanup"]["job_id"]
    assert (answer.status, answer.body) == (
        200,
        {"id": doomed, "deleted": True, "cleanup": {"status": "queued", "job_id": job_id}},
    )
    assert club.keys(HIDDEN) == [(1,)]
    for operation in ("get", "delete"):
        assert (club(operation, id=doomed).status, club(operation, id=doomed).body["code"]) == (
            404,
            "collection_not_found",
        )
    assert club.join(doomed).status == 404
    club.harness.settle()
    assert [key[0] for key in club.keys(MEMBERS)] == [2, 2]
    assert club.keys(DROPPED_COLLECTIONS) == []
    _, job = club.within(lambda ctx: jobs.find(ctx, job_id))
    assert (job.status, job.result) == ("completed", {"erased": {"members": 10}})
    assert club.names() == ["kept", "default"]


def test_a_deletion_under_way_survives_a_restart(club: CollectionHarness) -> None:
    doomed = club.made("doomed")
    club.join(doomed, members=3)
    assert club("delete", id=doomed).status == 200
    club.harness.reopen()
    club.harness.settle()
    assert club.keys(MEMBERS) == []


def test_a_bulk_delete_answers_for_each_id(club: CollectionHarness) -> None:
    one, two = club.made("one"), club.made("two")
    default = club("get_default").body["id"]
    foreign = club.harness(
        "collections.create", {"name": "x"}, who=club.harness.register("bob@example.com")
    ).body["id"]
    sent = [two, "nonsense", foreign, default, one, one]
    answer = club("bulk_delete", {"ids": sent}).body
    assert [(result["id"], result["status"]) for result in answer["results"]] == list(
        zip(
            sent,
            ["deleted", "not_found", "forbidden", "forbidden", "deleted", "not_found"],
            strict=True,
        )
    )
    assert (answer["deleted"], answer["not_found"]) == (2, 2)
    assert club.names() == ["default"]
    for ids in ([], ["x"] * 101, [""]):
        with pytest.raises(ValidationError):
            BulkDelete.model_validate({"ids": ids})


def test_deleting_all_needs_its_confirmation(club: CollectionHarness) -> None:
    club.made("c")
    for query in ({}, {"confirm": "yes"}):
        answer = club("delete_all", query=query)
        assert (answer.status, answer.body["param"]) == (400, "confirm")
    assert club.names() == ["c", "default"]


def test_deleting_all_empties_the_default_collection_under_a_new_number(
    club: CollectionHarness,
) -> None:
    default = club("get_default").body["id"]
    club.join(members=3)
    club.join(club.made("c"), members=2)
    answer = club("delete_all", query={"confirm": "delete-all-collections"})
    assert (answer.status, answer.body) == (200, {"deleted": 1})
    emptied = club("get_default").body
    assert (emptied["id"], emptied["memory_count"], club.names()) == (default, 0, ["default"])
    assert club.keys(HIDDEN) == [(0,), (1,)]
    joined = club.join().body
    assert (joined["collection_id"], joined["number"] > 1) == (default, True)
    club.harness.settle()
    assert [key[0] for key in club.keys(MEMBERS)] == [joined["number"]]
    assert club("get_default").body["memory_count"] == 1
    assert club("delete_all", query={"confirm": "delete-all-collections"}).body == {"deleted": 0}


def test_deleting_all_needs_admin(club: CollectionHarness) -> None:
    key = club("auth.api_keys.create", {"name": "writer"}).body["key"]
    assert (
        club.harness(
            "collections.delete_all", who=key, query={"confirm": "delete-all-collections"}
        ).status
        == 403
    )


# --- privacy and declarations ---------------------------------------------------------------------


def test_erasing_leaves_no_row_and_the_export_holds_all(club: CollectionHarness) -> None:
    club.made("a")
    club("delete", id=club.made("b"))
    club.join()
    exported = club.within(lambda ctx: list(collections_operations.export(ctx)))
    assert [(kind, record["name"]) for kind, record, _ in exported] == [
        ("collection", "default"),
        ("collection", "a"),
    ]

    def work(transaction: Any) -> dict[str, int]:
        principal, scope = tenants.tenant(transaction, club.scope.slot, club.scope.tenant)
        form = club.harness.form("collections.get_default", who=club.token)
        return collections_store.erase(
            WriteContext(transaction, scope, form, club.harness.shard.environment, principal)
        )

    counts = club.harness.shard.store.write(work).result
    tables = (*collections.plugin.tables, *COLLECTION_INDEX.tables)
    assert set(counts) == {table.name for table in tables}
    assert not any(club.keys(table) for table in tables)
