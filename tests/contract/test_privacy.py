"""What a plugin stores it can also erase and hand out: every table and index, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest

import serve_app
from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call
from runtime.api.plugin import Plugin
from runtime.inference import Models
from storage.blobs import BlobStore
from storage.store import Scope, Transaction
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

STORING = [plugin for plugin in serve_app.PLUGINS if plugin.tables or plugin.indexes]


@pytest.mark.parametrize("plugin", STORING, ids=lambda plugin: plugin.name)
def test_a_plugin_that_stores_declares_both_hooks(plugin: Plugin) -> None:
    assert plugin.erase is not None and plugin.export is not None


# Rows that lie open, and why they may. A row with anything a user wrote belongs into a sealed
# table; anything else is named here.
OPEN_ROWS = {
    "counters": "numbers given out",
    "revoked_tokens": "nothing but their keys: times and random token ids",
    "idempotency_expiry": "nothing but their keys: times and keyed digests",
    "job_ids": "ordinals by id",
    "api_key_ids": "ordinals by id",
    "collection_ids": "ordinals by id",
    "memory_ids": "ordinals by id",
    "dropped_collections": "nothing but their keys: numbers",
    "document_ids": "ordinals by id",
    "document_digests": "ordinals by keyed digests",
    "document_sweep": "a time",
    "document_bytes": "a number",
    "document_text_bytes": "numbers by ordinals",
    "document_files_gone": "times by ordinals",
    "document_charsets": "names of encodings by ordinals",
    "document_fields.bitmaps": "ordinals",
    "webhook_ids": "ordinals by id",
    "webhook_subscriptions": "nothing but their keys: kinds of events and ordinals",
    "delivery_ids": "ordinals by id",
    "delivery_resources": "nothing but their keys: ids and ordinals",
    "delivery_fields.bitmaps": "ordinals",
    "invoice_ids": "ordinals by id",
    "retained_documents": "numbers, amounts and times of bills, without a person",
    "retained_postings": "numbers, amounts and times of bills, without a person",
    "profile_pending": "nothing but their keys: ids",
    "profile_alarm": "nothing",
    "profile_sources": "nothing but their keys: ids, kinds of facts and keyed digests",
    "dialogue_sources": "nothing but their keys: ids and keyed digests",
    "memory_expiry": "nothing but their keys: times and ordinals",
    "memory_alarm": "a time",
    "memory_bytes": "numbers",
    "job_fields.bitmaps": "ordinals",
    "collection_index.bitmaps": "ordinals",
    "memory_fields.bitmaps": "ordinals",
    "memory_text.postings": "ordinals and counts, by keyed digests of terms",
    "memory_text.forward": "keyed digests of terms, and counts",
    "memory_text.lengths": "numbers",
    "receipt_ids": "ordinals by id",
    "receipt_fields.bitmaps": "ordinals",
    "correction_ids": "ordinals by id",
    "correction_memories": "ordinals by id",
    "correction_fields.bitmaps": "ordinals",
    "logged_ids": "ordinals by id",
    "logged_fields.bitmaps": "ordinals",
    "feedback_memories": "nothing but their keys: ids and ordinals",
    "graph_names": "nothing but their keys: keyed digests and ordinals",
    "graph_ids": "ordinals by id",
    "graph_claims": "ordinals by ordinals, keyed digests and times",
    "graph_sources": "nothing but their keys: ids, our own words for kinds, ordinals",
    "graph_mentions": "our own words for kinds, by ordinals",
    "graph_unread": "nothing but their keys: ordinals",
    "graph_conflicts": "nothing but their keys: ordinals",
    "graph_links": "counts by ordinals",
    "graph_components": "nothing but their keys: ordinals",
    "graph_entity_fields.bitmaps": "ordinals",
    "graph_claim_fields.bitmaps": "ordinals",
    "ingested_texts": "ids by keyed digests",
    "ingested_successors": "nothing but their keys: ordinals",
    "ingested_telling": "nothing but their keys: ids",
    "tiers_alarm": "a time",
    "memory_chunk_runs.records": "ordinals and counts",
    "memory_chunk_owners.records": "ordinals",
    "memory_cues.records": "numbers, times and keyed digests",
    **dict.fromkeys(
        (
            "memory_ordinals.changes",
            "memory_chunks.changes",
            "memory_chunk_runs.changes",
            "memory_chunk_owners.changes",
            "logged_vectors.changes",
            "receipt_vectors.changes",
        ),
        "random bytes, by parts of the ordinals",
    ),
    "emails": "of the slot: an account's number, by a keyed digest",
    "credentials": "of the slot: key ids, account numbers and scopes, by keyed digests",
    "invitations": "of the slot: keyed digests",
    "mail_counts": "of the slot: counts by hours and keyed digests",
    "jobs_due": "of the slot: nothing but their keys, times, numbers and ids",
    "erasures": "of the slot: counts and times, by keyed digests",
    "spent_credits": "of the slot: counts, by months and keyed digests",
    "erased_accounts": "of the slot: times and keyed digests, by numbers of accounts that are gone",
}


def test_every_row_that_lies_open_has_a_reason() -> None:
    tables = serve_app.registry().tables.values()
    assert {table.name for table in tables if not table.sealed} == set(OPEN_ROWS)


@pytest.fixture
def lived_in(tmp_path: Path) -> Iterator[tuple[ShardHarness, str]]:
    """A shard harness whose account has used everything there is, and its token."""
    harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(WordEmbedder()))
    me = harness.register()
    harness.shard.environment.outbound.allow_private_networks = True
    hooked = {
        "url": "http://127.0.0.1:1024/hook",
        "events": ["memory.created", "memory.updated"],
        "description": "told of it all",
    }
    harness("webhooks.create", hooked, who=me)
    collection = harness("collections.create", {"name": "work"}, who=me).body["id"]
    kept = harness(
        "memories.create",
        {"content": "kept", "session_id": "s", "tags": ["a"], "expires_at": "2999-01-01"},
        who=me,
        key="k",
    ).body["id"]
    harness(
        "memories.create",
        {"content": "also kept", "session_id": "s", "collection_id": collection},
        who=me,
    )
    harness("memories.create_batch", {"memories": [{"content": "one of a batch"}]}, who=me, key="b")
    harness("memories.update", {"content": "kept, and changed"}, who=me, id=kept)
    gone = harness("memories.create", {"content": "not kept"}, who=me).body["id"]
    harness("memories.delete", who=me, id=gone)
    harness("auth.api_keys.create", {"name": "k"}, who=me)
    body = {
        "policy_key": "p",
        "candidates": [{"action_key": "a"}],
        "context": {"why": "because"},
        "user_id": "u",
    }
    decision = harness("learning.decide", body, who=me).body["decision_id"]
    harness("learning.report", {"success": True}, who=me, id=decision)
    harness("decisions.log", {"decision_type": "t", "description": "d"}, who=me)
    harness(
        "corrections.create", {"corrected_content": "right", "correction_type": "factual"}, who=me
    )
    harness("feedback.relevance", {"memory_id": kept, "query": "q", "is_relevant": True}, who=me)
    for place in ("Lisbon", "Oslo"):
        harness(
            "graph.relationships.create",
            {"source": "Ada", "type": "lives_in", "target": place},
            who=me,
        )
    for said in ("I live in Rome.", "I moved to Bergen."):
        job = harness("memories.process", {"content": said}, who=me).body["job_id"]
        while harness("memories.jobs.get", who=me, job_id=job).body["status"] != "completed":
            harness.breathe()
    url = upload(harness, me, b"Kept in a file.")
    harness.until(
        lambda: (
            harness("documents.get", who=me, id=url.rpartition("/")[2]).body["status"]
            == "completed"
        )
    )
    upload(harness, me, b"Not read yet.")
    yield harness, me
    harness.close()


def upload(harness: ShardHarness, me: str, content: bytes) -> str:
    """What the gateway makes of an upload; -> the document's path."""
    owner = harness("auth.me", who=me).body["user_id"]
    writer = BlobStore(harness.settings.data_dir / "blobs").writer(owner)
    writer.write(content)
    blob = writer.finish()
    file = {
        "filename": "a.txt",
        "media_type": "text/plain",
        "size_bytes": blob.size,
        "sha256": blob.sha256,
    }
    answer = harness(
        "documents.upload", {"file": {**file, "blob_name": blob.name, "blob_key": blob.key}}, who=me
    )
    assert answer.status == 202
    return answer.body["status_url"]


def files(harness: ShardHarness) -> list[Path]:
    return [path for path in (harness.settings.data_dir / "blobs").rglob("*") if path.is_file()]


def rows(reader: Transaction, plugin: Plugin, scope: Scope) -> dict[str, int]:
    tables = [*plugin.tables, *(table for index in plugin.indexes for table in index.tables)]
    return {
        table.name: reader.bind(table, scope).count() for table in tables if table.level == "tenant"
    }


def test_a_text_in_a_key_is_a_digest_of_its_tenant(lived_in: tuple[ShardHarness, str]) -> None:
    harness, me = lived_in
    other = harness.register("bob@example.com")

    def digest(who: str, label: str, text: str) -> bytes:
        with harness.shard.store.snapshot() as snapshot:
            scope = harness.scope_of(who)
            principal, _ = tenants.tenant(snapshot, scope.slot, scope.tenant)
            ctx = ReadContext(
                snapshot,
                scope,
                Call("read", scope.slot, harness.now_ms, b"", "r"),
                harness.shard.environment,
                principal,
            )
            return ctx.digest(label, text)

    first = digest(me, "name", "Lisbon")
    assert (
        len(first) == 16
        and len(
            {
                first,
                digest(me, "name", "Porto"),
                digest(me, "alias", "Lisbon"),
                digest(other, "name", "Lisbon"),
            }
        )
        == 4
    )
    harness.reopen()
    assert digest(me, "name", "Lisbon") == first


def test_erasing_leaves_no_row_of_any_plugin(lived_in: tuple[ShardHarness, str]) -> None:
    harness, me = lived_in
    scope = harness.scope_of(me)

    def erase(transaction: Transaction) -> dict[str, int]:
        principal, _ = tenants.tenant(transaction, scope.slot, scope.tenant)
        call = Call("erase", scope.slot, harness.now_ms, b"s" * 32, "r")
        before = {
            name: count
            for plugin in STORING
            for name, count in rows(transaction, plugin, scope).items()
        }
        ctx = WriteContext(transaction, scope, call, harness.shard.environment, principal)
        for plugin in reversed(STORING):
            assert all(count >= 0 for count in plugin.erase(ctx).values())
        after = {
            name: count
            for plugin in STORING
            for name, count in rows(transaction, plugin, scope).items()
        }
        assert sum(count > 0 for count in before.values()) >= 15, "the account was not lived in"
        return {name: count for name, count in after.items() if count}

    assert len(files(harness)) == 2
    assert harness.shard.store.write(erase).result == {}
    assert files(harness) == []


# Those of which an account has few: they are walked from the start each time.
WALKED_AGAIN = {"accounts", "usage", "search"}


class Rows:
    """Counts what a snapshot reads."""

    count = 0

    def spend(self, rows: int, size: int) -> None:
        self.count += rows


@pytest.mark.parametrize("plugin", STORING, ids=lambda plugin: plugin.name)
def test_an_export_goes_on_behind_each_of_its_records(
    lived_in: tuple[ShardHarness, str], plugin: Plugin
) -> None:
    harness, me = lived_in
    if plugin.name in WALKED_AGAIN:
        return
    # Their places: what a record says may change meanwhile, as a delivery does that is tried again.
    whole = [(kind, place) for kind, _, place in _exported(harness, me, plugin, None)]
    for number, (_, place) in enumerate(whole, 1):
        after = orjson.loads(orjson.dumps(place))
        behind = _exported(harness, me, plugin, after)
        assert [(kind, place) for kind, _, place in behind] == whole[number:]


def test_a_part_of_an_export_reads_what_is_in_it(lived_in: tuple[ShardHarness, str]) -> None:
    """Of 300 pieces of feedback, the last ten cost what the first ten do."""
    harness, _ = lived_in
    me = harness.register("many@example.com", "Many")
    body = {"content": "judged"}
    memory = harness("memories.create", body, who=me).body["id"]
    judged = {"query": "what", "memory_id": memory, "is_relevant": True}
    harness.together([harness.form("feedback.relevance", judged, who=me) for _ in range(300)])
    (feedback,) = (plugin for plugin in STORING if plugin.name == "feedback")
    places = [place for _, _, place in _exported(harness, me, feedback, None)]
    assert len(places) == 300
    costs = []
    for after in (None, places[289]):
        rows = Rows()
        assert len(_exported(harness, me, feedback, after, rows, most=10)) == 10
        costs.append(rows.count)
    assert costs[1] <= costs[0] + 3 < 20


def _exported(
    harness: ShardHarness,
    who: str,
    plugin: Plugin,
    after: Any,
    rows: Rows | None = None,
    most: int | None = None,
) -> list[Any]:
    """What the plugin exports behind a place."""
    assert plugin.export is not None
    scope = harness.scope_of(who)
    with harness.shard.store.snapshot(rows or Rows()) as snapshot:
        principal, _ = tenants.tenant(snapshot, scope.slot, scope.tenant)
        call = Call("export", scope.slot, harness.now_ms, b"", "r")
        ctx = ReadContext(snapshot, scope, call, harness.shard.environment, principal)
        ctx.after = after
        return list(islice(plugin.export(ctx), most))


def test_an_export_holds_what_can_be_read(lived_in: tuple[ShardHarness, str]) -> None:
    harness, me = lived_in
    scope = harness.scope_of(me)
    with harness.shard.store.snapshot() as snapshot:
        principal, _ = tenants.tenant(snapshot, scope.slot, scope.tenant)
        ctx = ReadContext(
            snapshot,
            scope,
            Call("export", scope.slot, harness.now_ms, b"", "r"),
            harness.shard.environment,
            principal,
        )
        records = [record[:2] for plugin in STORING for record in plugin.export(ctx)]
    contents = {record["content"] for kind, record in records if kind == "memory"}
    assert contents == {
        "kept, and changed",
        "also kept",
        "one of a batch",
        "right",
        "I live in Rome.",
        "I moved to Bergen.",
        "Kept in a file.",
    }
    assert {kind for kind, _ in records} >= {
        "decision",
        "logged_decision",
        "correction",
        "feedback",
    }
    assert {record["object"] for kind, record in records if kind == "fact"} == {"Rome", "Bergen"}
    assert {record["name"] for kind, record in records if kind == "entity"} == {
        "Ada",
        "user",
        "Lisbon",
        "Oslo",
        "Rome",
        "Bergen",
    }
    assert [record["text"] for kind, record in records if kind == "document"] == [
        "Kept in a file.",
        "",
    ]
    assert {record["name"] for kind, record in records if kind == "collection"} >= {"work"}
    assert [record["description"] for kind, record in records if kind == "webhook"] == [
        "told of it all"
    ]
    told = [record["payload"] for kind, record in records if kind == "webhook_delivery"]
    assert {payload["event_type"] for payload in told if payload is not None} == {
        "memory.created",
        "memory.updated",
    }
    assert None in told, "a memory that was deleted is told of no more"
    assert "whsec_" not in repr(records)
    assert "argon2" not in repr(records), "a password hash is nobody's to take along"
