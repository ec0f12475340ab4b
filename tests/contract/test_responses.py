"""Every operation answers once with success, and what it answers is what its model documents: no field more, none less.

A tour walks through the service as one account would. Its answers are collected by operation; an operation that no tour visits
fails, so a new one needs its stop here.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from jsonschema import Draft202012Validator

import serve_app
from runtime.errors import RateLimited
from runtime.operation import Operation
from runtime.placement import slot_of_email
from tests import upstream
from tests.contract.schemas import ERROR_ENVELOPE, strict_schema
from tests.in_process import PASSWORD, InProcess, in_process
from tests.stripe_endpoint import report, signature, stripe_endpoint

OPERATIONS = list(serve_app.registry().operations.values())
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ID = re.compile(r"(?:mem|col|doc|chk|job|evt|key|ses|usr|whk|dlv|sub|inv|fct|dec|obs|cor|fbk|ent|rel)_[0-9a-hjkmnp-tv-z]{32}")
TIMES = {"created_at", "updated_at", "occurred_at", "started_at", "finished_at", "expires_at", "last_used_at", "last_accessed_at", "at"}
TIMES |= {"first_memory_at", "last_memory_at", "last_delivery_at", "next_attempt_at", "previous_secret_expires_at"}
TIMES |= {"issued_at", "paid_at", "period_start", "period_end", "effective_at"}
STRIPE_SECRET = "whsec_of_a_test"
IDS = {"id", "memory_id", "memory_ids", "evidence_ids", "collection_id", "job_id", "outbox_event_id"}
IDS |= {"webhook_id", "event_id", "delivery_id"}
IDS |= {"decision_id", "observation_id", "observation_ids", "superseded_memory_id"}


class Tour:
    """Calls by the operation's name, and every answer they got."""

    def __init__(self, service: InProcess):
        self.service = service
        self.answers: dict[str, list[httpx.Response]] = defaultdict(list)
        self.token = ""

    def __call__(
        self, name: str, body: Any = None, *, who: str | None = None, query: dict[str, Any] | None = None, headers: Any = None, **path: str
    ) -> Any:
        """The decoded body of a call that must succeed."""
        operation = self.service.registry.operations[name]
        address = operation.path.format(**path) + (f"?{urlencode(query)}" if query else "")
        credential = who or (None if operation.scope == "public" else self.token)
        answer = self.service.request(operation.method, address, body, who=credential, **(headers or {}))
        assert answer.status_code in operation.statuses, f"{name}: {answer.status_code} {answer.text}"
        self.answers[name].append(answer)
        return answer.json() if answer.headers.get("Content-Type") == "application/json" else None


def accounts(call: Tour) -> None:
    account = {"email": "Ada@Example.com", "password": PASSWORD, "full_name": "Ada Lovelace"}
    call.token = call("auth.register", account)["access_token"]
    spare = call("auth.login", {"email": account["email"], "password": PASSWORD})["access_token"]
    call("auth.me")
    call("auth.logout", who=spare)
    minted = call("auth.api_keys.create", {"name": "production"})
    call("auth.api_keys.create", {"name": "short-lived", "scopes": ["read", "admin"], "expires_at": "2999-01-01T00:00:00+02:00"})
    call("auth.api_keys.list", query={"limit": 1})
    call("auth.api_keys.delete", id=minted["id"])
    operator = call.service.secrets.operator_token
    call("internal.keys.create", {"email": account["email"], "name": "operator", "scopes": ["admin"]}, who=operator)
    call("internal.repair", {"slot": slot_of_email(account["email"]), "number": 1}, who=operator)


def collections(call: Tour) -> None:
    made = call("collections.create", {"name": "travel", "description": "Trips", "metadata": {"team": "blue", "deep": {"of": [1, None]}}})
    call("collections.list", query={"name_prefix": "tra"})
    call("collections.get_default")
    call("collections.get", id=made["id"])
    call("collections.update", {"name": "journeys", "description": None}, id=made["id"])
    call("collections.delete", id=made["id"])
    call("collections.bulk_delete", {"ids": [made["id"], call("collections.get_default")["id"], "col_" + "0" * 32]})


FULL = {
    "content": "  Ada keeps the spare key under the blue flowerpot.\n",
    "importance": 0.9,
    "metadata": {"channel": "chat"},
    "title": "The key",
    "tags": ["home", "keys"],
    "source": "slack",
    "source_type": "chat",
    "source_reference": "https://example.com/1",
    "user_id": "ada",
    "agent_id": "butler",
    "run_id": "run-1",
    "app_id": "app-1",
    "speaker": "Ada",
    "occurred_at": "2026-05-08T15:56:00.1239+02:00",
    "expires_at": "2999-01-01T00:00:00Z",
}


def memories(call: Tour) -> None:
    made = call("memories.create", FULL)
    call("memories.create", {"messages": [{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "Outside."}]})
    call("memories.create", {"content": "Slow."}, headers={"Prefer": "respond-async"})
    call("memories.create", {"messages": [{"role": "user", "content": "One."}] * 3}, headers={"Prefer": "respond-async"})
    call("memories.create_raw", FULL)
    call("memories.create_raw", {"content": "Slow."}, headers={"Prefer": "respond-async"})
    items = [{"content": "Bread is baked on Mondays."}, {"content": "Nowhere.", "collection_id": "col_nonsense"}]
    call("memories.create_batch", {"memories": items, "user_id": "ada"})
    call("memories.create_batch", {"memories": items[1:]})
    pending = call("memories.create_batch", {"memories": items}, headers={"Prefer": "respond-async"})
    job = pending["status_url"].rpartition("/")[2]
    call.service.until(lambda: call("memories.jobs.get", job_id=job)["status"] == "completed")
    call("memories.jobs.list", query={"status": "completed", "limit": 1})
    call("memories.list", query={"user_id": "ada", "tier": "short_term", "limit": 1})
    call("memories.query", {"filters": {"user_id": "ada"}, "limit": 2, "offset": 1})
    call("memories.scopes", query={"kind": "user"})
    call("memories.get", id=made["id"])
    call("memories.update", {"content": "Ada keeps the key in the shed.", "title": None}, id=made["id"])
    call("memories.update", {"content": "Ada keeps the key nowhere."}, id=made["id"], headers={"Prefer": "respond-async"})
    call("memories.history", id=made["id"])
    call("memories.history", id=made["id"], query={"limit": 2})
    inserted = call("memory_tools.insert", {"content": "The tool wrote this."})
    call("memory_tools.replace", {"memory_id": inserted["id"], "old_content": "The tool wrote this.", "new_content": "And this."})
    call("memory_tools.rethink", {"memory_id": inserted["id"]})


def files(call: Tour) -> None:
    note = {"path": "/memories/people/ada.md"}
    call("memory_files.execute", {"command": "create", **note, "file_text": "Ada lives in Lisbon.\n"})
    call("memory_files.execute", {"command": "view", **note, "view_range": [1, -1]})
    call("memory_files.execute", {"command": "view", "path": "/memories"})
    call("memory_files.execute", {"command": "str_replace", **note, "old_str": "Lisbon", "new_str": "Porto"})
    added = {"command": "insert", **note, "insert_line": 1, "insert_text": "Ada likes tea."}
    call("memory_files.execute", added, headers={"Prefer": "respond-async"})
    call("memory_files.execute", {"command": "rename", "old_path": note["path"], "new_path": "/memories/ada.md"})
    call("memory_files.execute", {"command": "rename", "old_path": "/memories/ada.md", "new_path": "/memories/people/ada.md"})
    call("memory_files.execute", {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/friends"})
    call("memory_files.execute", {"command": "delete", "path": "/memories/friends"})


def search(call: Tour) -> None:
    query = {"query": "Where does Ada keep the spare key?"}
    found = call("search.search", {**query, "explain": True, "filters": {"tags": {"in": ["home"]}}})
    assert found["results"]
    for kind in ("hybrid", "vector", "bm25", "graph"):
        call("search.search", {**query, "search_type": kind, "include_low_confidence": True, "limit": 2})
    call("search.search", {**query, "view": "compact"})
    call("search.advanced", {**query, "rerank": True, "diversity": 0.5, "facets": ["tags", "collection_id", "metadata.channel"]})
    boosts = {"recency": {"half_life_days": 30, "weight": 0.2}, "tags": {"home": 0.5}, "channels": {"lexical": 2}}
    call("search.advanced", {**query, "boosts": boosts, "explain": True, "token_budget": 200, "as_of": "2999-01-01", "min_score": 0.01})
    empty = call("collections.create", {"name": "empty"})["id"]
    assert call("search.search", {**query, "collection_id": empty})["no_match"]
    call.service.embedder.down = True
    assert call("search.search", {"query": "the bread"})["degraded"]
    call.service.embedder.down = False
    call("search.similar", id=found["results"][0]["id"], query={"limit": 3, "min_score": 0})


def webhooks(call: Tour) -> None:
    """Nobody listens on the port: a delivery is refused, and then it is a dead letter."""
    nowhere = "http://127.0.0.1:1024/hook"
    made = call("webhooks.create", {"url": nowhere, "events": ["memory.created", "rl.training_failed"], "description": "a test's"})
    call("webhooks.list", query={"limit": 1})
    call("webhooks.get", id=made["id"])
    call("webhooks.rotate_secret", {"grace_seconds": 60}, id=made["id"])
    sent = call("webhooks.test", id=made["id"])
    place = {"id": made["id"], "delivery_id": sent["delivery_id"]}
    call.service.until(lambda: call("webhooks.deliveries.get", **place)["status"] == "failed")
    call("webhooks.deliveries.list", id=made["id"], query={"status": "failed"})
    call("webhooks.dead_letters.list")
    call("webhooks.deliveries.replay", **place)
    call("webhooks.dead_letters.replay", {"ids": [sent["delivery_id"], "dlv_" + "0" * 32]})
    call("webhooks.dead_letters.replay", {"since": "2026-01-01", "include_skipped": True})
    call("webhooks.update", {"url": nowhere, "events": ["memory.deleted"], "status": "disabled"}, id=made["id"])
    call("webhooks.delete", id=made["id"])


def answers(call: Tour) -> None:
    query = "Where does Ada keep the spare key?"
    call("search.reason", {"query": query, "include_steps": True})
    call("search.reason", {"query": "xylophone quasar", "search_type": "bm25"})
    call("chat.completions", {"messages": [{"role": "user", "content": query}], "user": "ada", "store_conversation": True})
    call("memories.create", {"content": "I live in Lisbon and I am planning to move to Porto.", "user_id": "ada"})
    call.service.until(lambda: call("profile.get", query={"user_id": "ada"})["static"])
    call("profile.get")
    call("profile.update", {"name": "Ada", "static": [{"key": "diet", "value": "vegan"}]}, query={"user_id": "ada"})
    call("profile.dialectic", {"user_message": "Where does she live?", "user_id": "ada"})
    call("profile.delete", query={"user_id": "ada"})


def moving(call: Tour) -> None:
    call("account.export")
    part = call("account.export_part")
    mover = {"email": "mover@example.com", "password": PASSWORD, "full_name": "Mover"}
    new_home = call("auth.register", mover)["access_token"]
    call("account.import_part", {"records": part["records"][:3]}, who=new_home)
    call("account.import", {"records": part["records"]}, who=new_home)


def outcomes(call: Tour) -> None:
    candidates = [{"action_key": "refund", "description": "Give it back", "features": {"cost": 5}}, {"action_key": "voucher"}]
    new = {"policy_key": "support", "candidates": candidates, "context": {"complaint": "late"}, "user_id": "ada", "reward_range": [0, 1]}
    made = call("learning.decide", new)
    for mode in ("explore", "recommend", "shadow"):
        call("learning.decide", {**new, "mode": mode, "baseline_action_key": "voucher"})
    unknown = {**new, "mode": "observe", "chosen_action_key": "refund", "propensity_unknown": True}
    call("learning.decide", {**unknown, "policy_key": "unknown"})
    call("learning.policies", query={"limit": 1})
    call("learning.insights", key="support")
    call("learning.evaluate", {}, key="support")
    told = call("learning.report", {"observations": [{"metric_key": "joy", "value": 0.5, "source": "survey"}]}, id=made["decision_id"])
    corrected = {"metric_key": "joy", "value": 1, "corrects": told["observation_ids"][0], "is_final": False, "confidence": 0.9}
    call("learning.report", {"observations": [corrected]}, id=made["decision_id"])
    call("learning.get", id=made["decision_id"])
    call("learning.insights", key="support", query={"context": '{"complaint": "late"}', "action_key": "refund"})
    guarded = {"target": {"action_key": "refund"}, "guardrails": [{"metric_key": "joy"}], "limit": 10}
    call("learning.evaluate", guarded, key="support")
    call("learning.evaluate", {}, key="unknown")
    call("decisions.log", {"decision_type": "refund", "description": "Refunded the parcel.", "outcome": "partial", "context": {"days": 3}})
    logged = call("decisions.log", {"decision_type": "refund", "description": "Refunded a late parcel."})
    call("decisions.get", id=logged["id"])
    call("decisions.list", query={"outcome": "partial"})
    assert call("decisions.similar", query={"query": "Refunded the parcel"})["items"]
    wrong = call("memories.create", {"content": "Parcels take two days."})
    right = {"corrected_content": "Parcels take three days.", "correction_type": "factual", "memory_id": wrong["id"], "context": "support"}
    correction = call("corrections.create", right)
    call("corrections.create", {**right, "memory_id": correction["memory_id"]}, headers={"Prefer": "respond-async"})
    call("corrections.list", query={"correction_type": "factual", "limit": 1})
    call("corrections.get", id=correction["id"])
    assert call("corrections.relevant", query={"query": "Parcels take three days", "limit": 3})["items"] is not None
    call("confidence.get", query={"query": "Refunded the parcel", "policy_key": "support", "context": "{}"})
    assert call("confidence.get", query={"query": "Parcels take three days"})["corrections"] is not None
    call("corrections.delete", id=correction["id"])


def feedback(call: Tour) -> None:
    memory = call("memories.list", query={"limit": 1})["items"][0]["id"]
    call("feedback.relevance", {"memory_id": memory, "query": "parcels", "is_relevant": True})
    call("feedback.ranking", {"memory_id": memory, "query": "parcels", "actual_rank": 3, "expected_rank": 1})
    call("feedback.missing", {"query": "parcels", "expected_content": "They are blue."})
    call("feedback.stats")
    job = call("rl.train", {"policy": "ranking"})["job_id"]
    call.service.until(lambda: call("rl.jobs.get", job_id=job)["status"] == "completed")
    call("rl.metrics")
    call("rl.rollback", {"version": 0})


def graph(call: Tour) -> None:
    call("graph.entities.create", {"name": "Ada", "type": "person", "aliases": ["Countess"], "attributes": {"a": [1]}})
    call("graph.entities.create", {"name": "ADA", "type": "person"})
    memory = call("memories.create", {"content": "Ada lives in Lisbon.", "wait_for_index": True})["id"]
    for town, fields in (("Lisbon", {"source_memory_id": memory}), ("Oslo", {}), ("Oslo", {})):
        made = call(
            "graph.relationships.create", {"source": "Ada", "type": "lives_in", "target": town, "valid_from": "2020-01-01", **fields}
        )
    call("graph.entities.list", query={"entity_type": "person", "limit": 1})
    call("graph.entities.get", entity_name="countess")
    call("graph.query", {"entity": "Ada", "depth": 3, "between": ["2019-01-01", "2021-01-01"]})
    call("graph.timeline", query={"limit": 1}, entity_name="Ada")
    assert call("graph.contradictions")["items"]
    call("graph.stats")
    call("search.graph", {"query": "Where does Ada live?"})
    call("search.graph", {"entity": "Lisbon", "depth": 1})
    call("graph.relationships.delete", {"relationship_id": made["id"]})
    call("graph.entities.delete", entity_name="Ada")


def ingestion(call: Tour) -> None:
    talk = {"messages": [{"role": "user", "name": "Zoe", "content": "I live in Lisbon and I love jazz."}], "occurred_at": "2023-03-01"}
    call("memories.process", {**talk, "dry_run": True}, headers={"Prefer": "wait=20"})
    done = call("memories.process", talk, headers={"Prefer": "wait=20"})
    assert done["result"]["memories_created"] == 2
    moved = {"content": "I moved to Oslo.", "speaker": "Zoe", "infer": True}
    assert call("memories.create", moved)["updated_count"] == 1
    assert call("memories.create", moved)["skipped_count"] == 1
    call("memories.create", {**moved, "async_dispatch": True})
    call("memories.create", {**talk, "infer": True})
    queued = call("memories.process", {"content": "I love karaoke."})
    call.service.until(lambda: call("memories.jobs.get", job_id=queued["job_id"])["status"] == "completed")
    call("memories.jobs.undo", job_id=queued["job_id"])
    call("memories.audit", query={"similarity": 0.8})
    one, other = (call("memories.create", {"content": text})["id"] for text in ("Twice.", "Twice!"))
    call("memories.merge", {"keep": one, "duplicates": [other]})
    assert call("memories.merged", id=one)["items"]
    call("memories.restore", id=other)


def documents(call: Tour) -> None:
    service = call.service

    def upload(filename: str, content: bytes) -> dict[str, Any]:
        answer = service.upload(filename, content, who=call.token, title="A note", tags="a, b", metadata='{"n": 1}')
        call.answers["documents.upload"].append(answer)
        return answer.json()["document"]

    made = upload("note.md", b"# Ferry\n\nThe ferry leaves at ten.")
    service.until(lambda: call("documents.get", id=made["id"])["status"] == "completed")
    assert upload("note.md", b"# Ferry\n\nThe ferry leaves at ten.")["id"] == made["id"]
    failed = upload("broken.json", b"{")
    service.until(lambda: call("documents.get", id=failed["id"])["status"] == "failed")
    call("documents.list", query={"status": "failed", "limit": 1})
    call("documents.chunks", id=made["id"])
    for name in ("text", "content"):
        answer = service.request("GET", f"/v1/documents/{made['id']}/{name}", who=call.token)
        call.answers[f"documents.{name}"].append(answer)
    call("documents.delete", id=failed["id"])


def the_end(call: Tour) -> None:
    page = call("memories.list")["items"]
    call("memories.delete", id=page[0]["id"])
    call("memories.bulk_delete", {"ids": [page[0]["id"], page[1]["id"], "mem_" + "0" * 32]})
    call("memories.delete_all", query={"confirm": "delete-all-memories", "user_id": "ada"})
    call("collections.delete_all", query={"confirm": "delete-all-collections"})
    call("account.receipts", query={"limit": 1})
    login = {"email": "leaver@example.com", "password": PASSWORD}
    leaver = call("auth.register", {**login, "full_name": "Leaver"})["access_token"]
    receipt = call("account.erase", who=leaver, query={"confirm": "erase-account"})["receipt"]
    call("account.erasure", {"receipt": receipt})
    call.service.until(lambda: call("account.erasure", {"receipt": receipt})["status"] == "completed")


def usage_and_billing(call: Tour) -> None:
    operator, of_ada = call.service.secrets.operator_token, {"email": "ada@example.com"}
    call("usage.get")
    for granularity in ("hour", "day", "month"):
        call("usage.history", query={"granularity": granularity, "from": "2020-01-01", "limit": 1})
    call("billing.tiers")
    call("billing.subscription")
    call("internal.billing.set_tier", {**of_ada, "tier": "free"}, who=operator)
    first = call("billing.upgrade", {"tier": "starter"})["invoice"]
    second = call("billing.upgrade", {"tier": "pro"})["invoice"]
    call("billing.downgrade", {"tier": "free"})
    call("billing.subscription")
    call("internal.billing.mark_paid", {**of_ada, "invoice": first["number"], "reference": "transfer"}, who=operator)
    call("internal.billing.credit_note", {**of_ada, "invoice": first["number"], "reason": "goodwill", "amount_cents": 1}, who=operator)
    body = report("invoice.paid", of_ada["email"], second["id"])
    call("billing.stripe_events", body, headers={"Stripe-Signature": signature(body, STRIPE_SECRET)})
    call("billing.invoices.list", query={"limit": 2})
    call("billing.invoices.get", id=first["id"])
    call("billing.invoices.page", id=first["id"])
    call("internal.billing.close", of_ada, who=operator)
    assert call("internal.usage.audit", of_ada, who=operator)["consistent"]
    assert call("internal.billing.audit", of_ada, who=operator)["consistent"]
    call("internal.accounts.list", {"slot": 0}, who=operator)
    call("internal.cluster.report", who=operator)
    call("internal.cluster.move", {"slots": [0], "shard": 0}, who=operator)
    call("internal.cluster.rebalance", {}, who=operator)
    call.service.table.change(lambda placement: placement.resized(2))
    call("internal.cluster.drain", {"shard": 1}, who=operator)
    call("internal.cluster.undrain", {"shard": 1}, who=operator)
    call("internal.billing.set_tier", {**of_ada, "tier": "enterprise", "price_cents": 100_000}, who=operator)


TOURS: tuple[Callable[[Tour], None], ...] = (
    accounts,
    collections,
    memories,
    files,
    search,
    documents,
    webhooks,
    usage_and_billing,
    answers,
    moving,
    outcomes,
    feedback,
    graph,
    ingestion,
    the_end,
)


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    with (
        stripe_endpoint() as stripe,
        upstream.upstream() as endpoint,
        in_process(
            tmp_path_factory.mktemp("tour"),
            webhooks__allow_private_networks=True,
            webhooks__backoff_seconds_min=0.01,
            llm__base_url=endpoint.url,
            billing__provider="stripe",
            billing__stripe_api_key="sk_test",
            billing__stripe_signing_secret=STRIPE_SECRET,
            billing__stripe_api_base=stripe.url,
        ) as service,
    ):
        whole = Tour(service)
        for part in TOURS:
            part(whole)
        yield whole


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_answer_is_what_its_model_documents(tour: Tour, operation: Operation) -> None:
    assert tour.answers[operation.name], "no tour visits this operation"
    for answer in tour.answers[operation.name]:
        assert_constant_headers(answer)
        if operation.response is None:
            assert (answer.status_code, answer.content) == (204, b"")
            continue
        if operation.content_type == "*/*":
            continue
        assert answer.headers["Content-Type"].partition(";")[0] == operation.content_type.partition(";")[0]
        if operation.content_type.startswith("text/"):
            continue
        for line in answer.content.splitlines() if operation.content_type == "application/x-ndjson" else [answer.content]:
            Draft202012Validator(strict_schema(operation.response)).validate(json.loads(line))
            if operation.name != "chat.completions":  # its ids are those of the language model's endpoint
                assert_well_formed(json.loads(line))


INDEXED = [o for o in OPERATIONS if 202 in o.statuses and "searchable" in o.response.model_fields]


@pytest.mark.parametrize("operation", INDEXED, ids=lambda operation: operation.name)
def test_pending_and_ready_writes_say_where_they_are(tour: Tour, operation: Operation) -> None:
    """Rule W: searchable false goes with 202, and with 202 go Retry-After, Location, status_url and outbox_event_id."""
    for answer in tour.answers[operation.name]:
        body, pending = answer.json(), answer.status_code == 202
        if not body.get("created", 1) or ("poll_url" in body and "searchable" not in body) or body.get("searchable", 1) is None:
            continue  # a batch of which every item was refused, or a look at a file, made nothing that could be looked at
        assert body["searchable"] is not pending
        assert body["processing_status"] == ("processing" if pending else "completed")
        assert ("Retry-After" in answer.headers) is pending
        assert answer.headers["Location"] == body["status_url"]
        assert tour.service.request("GET", body["status_url"], who=tour.token).status_code in (200, 404)
        assert ID.fullmatch(body["outbox_event_id"])


def test_both_ends_of_rule_w_were_seen(tour: Tour) -> None:
    for name in ("memories.create", "memories.create_raw", "memories.create_batch", "memories.update"):
        assert {answer.status_code for answer in tour.answers[name]} == set(tour.service.registry.operations[name].statuses)


def test_metrics_count_what_was_delivered(tour: Tour) -> None:
    text = tour.service.request("GET", "/metrics").text
    figures = dict(re.findall(r'^mneme_shard_(\w+)\{shard="0"\} (\S+)$', text, re.MULTILINE))
    assert float(figures["outbound_attempts"]) >= float(figures["outbound_failed"]) >= 5
    assert {"outbound_2xx", "outbound_timeout", "lanes_waiting", "lanes_oldest_age_ms", "jobs_waiting"} <= set(figures)


def test_texts_come_back_exactly_as_sent(tour: Tour) -> None:
    created = tour.answers["memories.create"][0].json()
    expected = {**FULL, "occurred_at": "2026-05-08T13:56:00.123Z", "expires_at": "2999-01-01T00:00:00.000Z", "session_id": "run-1"}
    assert {name: created[name] for name in expected} == expected


def test_search_answers_keep_their_promises(tour: Tour) -> None:
    for answer in tour.answers["search.search"] + tour.answers["search.advanced"] + tour.answers["search.similar"]:
        body = answer.json()
        hits = body["results"]
        ids, scores = [hit["id"] for hit in hits], [hit["score"] for hit in hits]
        assert body["evidence_ids"] == ids and len(set(ids)) == len(ids)
        assert scores == sorted(scores, reverse=True)
        assert [hit["rank"] for hit in hits] == list(range(1, len(hits) + 1))
        assert body["total"] >= len(hits)
        assert not body["no_match"] or (not hits and body["query_confidence"] == 0)
        assert body["degraded"] == bool(body["degraded_reasons"])
        for hit in hits:
            for mark in hit.get("highlights", ()):
                assert 0 <= mark["start"] < mark["end"] <= len(hit["content"])
    compact = json.loads(tour.answers["search.search"][5].content)["results"][0]
    assert not {"metadata", "tags", "highlights", "explanation"} & set(compact)


# --- answers that are errors ----------------------------------------------------------------------------------------

JSON = {"Content_Type": "application/json"}
REFUSALS: dict[str, tuple[int, tuple[Any, ...], dict[str, str]]] = {
    "no such path": (404, ("GET", "/v1/nothing"), {}),
    "a dot in the path": (404, ("GET", "/v1/memories/%2e%2e"), {}),
    "no such method": (405, ("PUT", "/v1/memories"), {}),
    "a method nobody knows": (405, ("BREW", "/v1/memories"), {}),
    "broken JSON": (400, ("POST", "/v1/memories", b"{"), JSON),
    "an empty body": (400, ("POST", "/v1/memories", b""), JSON),
    "a body that is no object": (400, ("POST", "/v1/memories", b'["content"]'), JSON),
    "not a number": (400, ("POST", "/v1/memories", b'{"content": "x", "importance": NaN}'), JSON),
    "a number beyond all bounds": (400, ("POST", "/v1/memories", b'{"content": "x", "metadata": {"n": 1e999}}'), JSON),
    "half a character": (400, ("POST", "/v1/memories", b'{"content": "\\ud800"}'), JSON),
    "broken UTF-8": (400, ("POST", "/v1/memories", b'{"content": "\xff"}'), JSON),
    "too deep": (400, ("POST", "/v1/memories", b'{"metadata": ' + b"[" * 65 + b"]" * 65 + b"}"), JSON),
    "far too deep": (400, ("POST", "/v1/memories", b"[" * 100_000), JSON),
    "a form": (400, ("POST", "/v1/memories", b"content=x"), {"Content_Type": "application/x-www-form-urlencoded"}),
    "no content": (422, ("POST", "/v1/memories", {}), {}),
    "a content of white space": (422, ("POST", "/v1/memories", {"content": " \n\t"}), {}),
    "a content too long": (422, ("POST", "/v1/memories", {"content": "x" * 100_001}), {}),
    "metadata too large": (422, ("POST", "/v1/memories", {"content": "x", "metadata": {"a": "x" * 16_384}}), {}),
    "a wrong type": (422, ("POST", "/v1/memories", {"content": 7}), {}),
    "an empty id": (422, ("POST", "/v1/memories", {"content": "x", "collection_id": ""}), {}),
    "a limit out of range": (422, ("GET", "/v1/memories?limit=101"), {}),
    "a limit that is none": (422, ("GET", "/v1/memories?limit=ten"), {}),
    "a bad cursor": (400, ("GET", "/v1/memories?cursor=%00%ff"), {}),
    "a cursor in other letters": (400, ("GET", "/v1/memories?cursor=caf%C3%A9"), {}),
    "no confirmation": (400, ("DELETE", "/v1/memories/all"), {}),
    "an empty idempotency key": (400, ("POST", "/v1/memories", {"content": "x"}), {"Idempotency_Key": ""}),
    "a long idempotency key": (400, ("POST", "/v1/memories", {"content": "x"}), {"Idempotency_Key": "k" * 256}),
    "a malformed id": (404, ("GET", "/v1/memories/mem_1"), {}),
    "an id of another kind": (404, ("GET", "/v1/collections/{memory}"), {}),
    "an unknown collection": (404, ("POST", "/v1/memories", {"content": "x", "collection_id": "col_1"}), {}),
    "a filter that is none": (422, ("POST", "/v1/search", {"query": "x", "filters": {"colour": "blue"}}), {}),
    "a facet that is none": (422, ("POST", "/v1/search/advanced", {"query": "x", "facets": ["tags", "colour"]}), {}),
    "a boost out of range": (422, ("POST", "/v1/search/advanced", {"query": "x", "boosts": {"importance": 99}}), {}),
    "a range that ends before it starts": (
        422,
        ("POST", "/v1/search/advanced", {"query": "x", "date_range_start": "2026-01-02", "date_range_end": "2026-01-01"}),
        {},
    ),
    "an operator that is none": (422, ("POST", "/v1/search", {"query": "x", "filters": {"tags": {"like": "b"}}}), {}),
    "a filter too deep": (422, ("POST", "/v1/search", {"query": "x", "filters": {"NOT": [{"AND": [{"NOT": 1}]}]}}), {}),
    "a version that is past": (412, ("PATCH", "/v1/memories/{memory}", {"title": "x"}), {"If_Match": '"9"'}),
    "a text that changed": (
        409,
        ("POST", "/v1/memory-tools/replace", {"memory_id": "{memory}", "old_content": "a", "new_content": "b"}),
        {},
    ),
    "a body too large": (413, ("POST", "/v1/memories", b" " * (10 * 1024 * 1024 + 1)), JSON),
    "an address too long": (414, ("GET", "/v1/memories?tag=" + "x" * 9_000), {}),
    "headers too large": (431, ("GET", "/v1/memories"), {"X_Much": "x" * 40_000}),
}


@pytest.fixture(scope="module")
def memory(tour: Tour) -> str:
    answer = tour.service.request("POST", "/v1/memories", {"content": "To be refused around."}, who=tour.token)
    return answer.json()["id"]


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_has_the_one_shape(tour: Tour, memory: str, what: str) -> None:
    status, (method, path, *body), headers = REFUSALS[what]
    content = body[0] if body else None
    if isinstance(content, dict):
        content = json.loads(json.dumps(content).replace("{memory}", memory))
    answer = tour.service.request(method, path.replace("{memory}", memory), content, who=tour.token, **headers)
    assert answer.status_code == status, answer.text
    assert_error(answer, what)


def assert_error(answer: httpx.Response, what: str = "") -> None:
    """The envelope of specification part 7, with the request's own id, and nothing that was sent."""
    assert_constant_headers(answer)
    Draft202012Validator(ERROR_ENVELOPE).validate(answer.json())
    error = answer.json()["error"]
    assert error["status_code"] == answer.status_code
    assert error["request_id"] == answer.headers["X-Request-ID"]
    assert ("details" in error) == (answer.status_code == 422)
    assert ("Allow" in answer.headers) == (answer.status_code == 405)


def test_a_throttled_call_says_when_and_how_much(tour: Tour) -> None:
    tour.service.shards.fault = RateLimited("The limit of 30 requests a minute is reached. Retry in 7 s.", limit=30, retry_after_seconds=7)
    answer = tour.service.request("GET", "/v1/memories", who=tour.token)
    tour.service.shards.fault = None
    assert (answer.status_code, answer.headers["Retry-After"], answer.headers["X-RateLimit-Limit"]) == (429, "7", "30")
    assert_error(answer)


def test_a_defect_tells_nothing_of_itself(tour: Tour) -> None:
    tour.service.shards.fault = ZeroDivisionError("the secret of the universe")
    answer = tour.service.request("GET", "/v1/memories", who=tour.token, X_Request_ID="ours-1")
    tour.service.shards.fault = None
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (500, "ours-1")
    assert "universe" not in answer.text
    assert_error(answer)


@pytest.mark.parametrize(("sent", "kept"), [("abc-1", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)])
def test_a_request_id_is_kept_when_it_is_one(tour: Tour, sent: str, kept: bool) -> None:
    answer = tour.service.request("GET", "/v1/auth/me", who=tour.token, X_Request_ID=sent)
    assert (answer.headers["X-Request-ID"] == sent) is kept


def test_a_trailing_slash_and_head_are_accepted(tour: Tour) -> None:
    with_slash = tour.service.request("GET", "/v1/memories/?limit=1", who=tour.token)
    assert with_slash.status_code == 200
    head = tour.service.request("HEAD", "/v1/memories?limit=1", who=tour.token)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == with_slash.headers["Content-Length"]
    assert_constant_headers(head)


def assert_constant_headers(answer: httpx.Response) -> None:
    """The four headers of every answer, each once."""
    for name in ("X-Request-ID", "X-Process-Time", "X-Service-Version", "X-Service-Build"):
        assert len(answer.headers.get_list(name)) == 1, name
    assert float(answer.headers["X-Process-Time"]) >= 0
    assert re.fullmatch(r"\d+\.\d+\.\d+", answer.headers["X-Service-Version"])
    assert re.fullmatch(r"[0-9a-f]{7,}|dev", answer.headers["X-Service-Build"])


def assert_well_formed(value: Any, name: str = "") -> None:
    """Times are ISO 8601 in UTC with milliseconds, ids have the shape of ids; whatever is called so, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "metadata":
                assert_well_formed(item, key)
    elif isinstance(value, list):
        for item in value:
            assert_well_formed(item, name)
    elif value is not None and name in TIMES:
        assert ISO.fullmatch(value), (name, value)
    elif value is not None and name in IDS:
        assert ID.fullmatch(value), (name, value)
