"""A walk through every operation on one service, which keeps what each answered."""

from __future__ import annotations

import base64
import re
import time
from collections import defaultdict
from typing import Any
from urllib.parse import urlencode

import httpx
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from runtime.tenancy import slot_of_email
from tests.support.in_process import PASSWORD, InProcess
from tests.support.mailbox import Mailbox
from tests.support.stripe_endpoint import report, signature

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ID = re.compile(
    r"(?:mem|col|doc|chk|job|evt|key|ses|usr|whk|dlv|sub|inv|fct|dec|obs|cor|fbk|ent|"
    r"rel)_[0-9a-hjkmnp-tv-z]{32}"
)
TIMES = {
    "created_at",
    "updated_at",
    "occurred_at",
    "started_at",
    "finished_at",
    "expires_at",
    "last_used_at",
    "last_seen_at",
    "last_accessed_at",
    "at",
}
STRIPE_SECRET = "whsec_of_a_test"
IDS = {
    "id",
    "memory_id",
    "memory_ids",
    "evidence_ids",
    "collection_id",
    "job_id",
    "outbox_event_id",
}


class Tour:
    """Calls by the operation's name, and every answer they got."""

    def __init__(self, service: InProcess, box: Mailbox):
        self.service, self.box = service, box
        self.answers: dict[str, list[httpx.Response]] = defaultdict(list)
        self.token = ""

    def __call__(
        self,
        name: str,
        body: Any = None,
        *,
        who: str | None = None,
        query: dict[str, Any] | None = None,
        headers: Any = None,
        **path: str,
    ) -> Any:
        """The decoded body of a call that must succeed."""
        operation = self.service.registry.operations[name]
        address = operation.path.format(**path) + (f"?{urlencode(query)}" if query else "")
        credential = who or (None if operation.scope == "public" else self.token)
        answer = self.service.request(
            operation.method, address, body, who=credential, **(headers or {})
        )
        assert answer.status_code in operation.statuses, (
            f"{name}: {answer.status_code} {answer.text}"
        )
        self.answers[name].append(answer)
        return answer.json() if answer.headers.get("Content-Type") == "application/json" else None


def accounts(call: Tour) -> None:
    account = {"email": "Ada@Example.com", "password": PASSWORD, "full_name": "Ada Lovelace"}
    call("auth.invitation.request", {"email": "grace@example.com"})
    call.token = call("auth.register", account)["access_token"]
    address = "ada@example.com"
    call.service.until(lambda: call.box.tickets(address, "verify-email"))
    call("auth.verification.request", {"email": address})
    call("auth.verify_email", {"token": call.box.tickets(address, "verify-email")[0]})
    call("auth.password_reset.request", {"email": address})
    call.service.until(lambda: call.box.tickets(address))
    renewed = {"token": call.box.tickets(address)[0], "new_password": PASSWORD}
    call("auth.password_reset.confirm", renewed)
    again = {"email": address, "password": PASSWORD}
    call.token = call("auth.login", again)["access_token"]
    spare = call("auth.login", {"email": account["email"], "password": PASSWORD})["access_token"]
    call("auth.me")
    call("auth.logout", who=spare)
    login = {"email": account["email"], "password": PASSWORD}
    call("auth.login", login)
    listed = call("auth.sessions.list", query={"limit": 1})
    call("auth.sessions.delete", id=listed["items"][0]["id"])
    call("auth.login", login)
    call("auth.sessions.delete_others")
    call("auth.password", {"current_password": PASSWORD, "new_password": PASSWORD + ", renewed"})
    changed = {"current_password": PASSWORD + ", renewed", "new_password": PASSWORD}
    call("auth.password", changed)
    secret = base64.b32decode(call("auth.totp.create")["secret"])
    code = TOTP(secret, 6, SHA1(), 30).generate(int(time.time())).decode()
    recovery = call("auth.totp.confirm", {"code": code})["recovery_codes"]
    call("auth.totp.delete", {"code": recovery[0]})
    minted = call("auth.api_keys.create", {"name": "production"})
    call(
        "auth.api_keys.create",
        {
            "name": "short-lived",
            "scopes": ["read", "admin"],
            "expires_at": "2999-01-01T00:00:00+02:00",
        },
    )
    call("auth.api_keys.list", query={"limit": 1})
    call("auth.api_keys.delete", id=minted["id"])
    operator = call.service.secrets.operator_token
    call(
        "internal.keys.create",
        {"email": account["email"], "name": "operator", "scopes": ["admin"]},
        who=operator,
    )
    guest = {"email": "guest@example.com"}
    invited = call("internal.invitations.create", guest, who=operator)["invitation"]
    call("internal.invitations.claim", {**guest, "invitation": invited}, who=operator)
    call("internal.re_embed", {"email": account["email"]}, who=operator)
    call("internal.totp.clear", {"email": account["email"]}, who=operator)
    call("internal.repair", {"slot": slot_of_email(account["email"]), "number": 1}, who=operator)


def collections(call: Tour) -> None:
    made = call(
        "collections.create",
        {
            "name": "travel",
            "description": "Trips",
            "metadata": {"team": "blue", "deep": {"of": [1, None]}},
        },
    )
    call("collections.list", query={"name_prefix": "tra"})
    call("collections.get_default")
    call("collections.get", id=made["id"])
    call("collections.update", {"name": "journeys", "description": None}, id=made["id"])
    call("collections.delete", id=made["id"])
    call(
        "collections.bulk_delete",
        {"ids": [made["id"], call("collections.get_default")["id"], "col_" + "0" * 32]},
    )


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
    call(
        "memories.create",
        {
            "messages": [
                {"role": "user", "content": "Where is the key?"},
                {"role": "assistant", "content": "Outside."},
            ]
        },
    )
    call("memories.create", {"content": "Slow."}, headers={"Prefer": "respond-async"})
    call(
        "memories.create",
        {"messages": [{"role": "user", "content": "One."}] * 3},
        headers={"Prefer": "respond-async"},
    )
    call("memories.create_raw", FULL)
    call("memories.create_raw", {"content": "Slow."}, headers={"Prefer": "respond-async"})
    items = [
        {"content": "Bread is baked on Mondays."},
        {"content": "Nowhere.", "collection_id": "col_nonsense"},
    ]
    call("memories.create_batch", {"memories": items, "user_id": "ada"})
    call("memories.create_batch", {"memories": items[1:]})
    call("memories.import", {"memories": items})
    pending = call(
        "memories.create_batch", {"memories": items}, headers={"Prefer": "respond-async"}
    )
    job = pending["status_url"].rpartition("/")[2]
    call.service.until(lambda: call("memories.jobs.get", job_id=job)["status"] == "completed")
    call("memories.jobs.list", query={"status": "completed", "limit": 1})
    call("memories.list", query={"user_id": "ada", "tier": "short_term", "limit": 1})
    call("memories.query", {"filters": {"user_id": "ada"}, "limit": 2, "offset": 1})
    call("memories.values", {"field": "metadata.room", "filters": {"user_id": "ada"}})
    call("memories.scopes", query={"kind": "user"})
    call("memories.get", id=made["id"])
    call(
        "memories.update",
        {"content": "Ada keeps the key in the shed.", "title": None},
        id=made["id"],
    )
    call(
        "memories.update",
        {"content": "Ada keeps the key nowhere."},
        id=made["id"],
        headers={"Prefer": "respond-async"},
    )
    call("memories.history", id=made["id"])
    call("memories.history", id=made["id"], query={"limit": 2})
    inserted = call("memory_tools.insert", {"content": "The tool wrote this."})
    call(
        "memory_tools.replace",
        {
            "memory_id": inserted["id"],
            "old_content": "The tool wrote this.",
            "new_content": "And this.",
        },
    )
    call("memory_tools.rethink", {"memory_id": inserted["id"]})


def files(call: Tour) -> None:
    note = {"path": "/memories/people/ada.md"}
    call(
        "memory_files.execute", {"command": "create", **note, "file_text": "Ada lives in Lisbon.\n"}
    )
    call("memory_files.execute", {"command": "view", **note, "view_range": [1, -1]})
    call("memory_files.execute", {"command": "view", "path": "/memories"})
    call(
        "memory_files.execute",
        {"command": "str_replace", **note, "old_str": "Lisbon", "new_str": "Porto"},
    )
    added = {"command": "insert", **note, "insert_line": 1, "insert_text": "Ada likes tea."}
    call("memory_files.execute", added, headers={"Prefer": "respond-async"})
    call(
        "memory_files.execute",
        {"command": "rename", "old_path": note["path"], "new_path": "/memories/ada.md"},
    )
    call(
        "memory_files.execute",
        {
            "command": "rename",
            "old_path": "/memories/ada.md",
            "new_path": "/memories/people/ada.md",
        },
    )
    call(
        "memory_files.execute",
        {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/friends"},
    )
    call("memory_files.execute", {"command": "delete", "path": "/memories/friends"})


def search(call: Tour) -> None:
    query = {"query": "Where does Ada keep the spare key?"}
    found = call("search.search", {**query, "explain": True, "filters": {"tags": {"in": ["home"]}}})
    assert found["results"]
    for kind in ("hybrid", "vector", "bm25", "graph"):
        call(
            "search.search",
            {**query, "search_type": kind, "include_low_confidence": True, "limit": 2},
        )
    call("search.search", {**query, "view": "compact"})
    call(
        "search.advanced",
        {
            **query,
            "rerank": True,
            "diversity": 0.5,
            "facets": ["tags", "collection_id", "metadata.channel"],
        },
    )
    boosts = {
        "recency": {"half_life_days": 30, "weight": 0.2},
        "tags": {"home": 0.5},
        "channels": {"lexical": 2},
    }
    call(
        "search.advanced",
        {
            **query,
            "boosts": boosts,
            "explain": True,
            "token_budget": 200,
            "as_of": "2999-01-01",
            "min_score": 0.01,
        },
    )
    empty = call("collections.create", {"name": "empty"})["id"]
    assert call("search.search", {**query, "collection_id": empty})["no_match"]
    call.service.embedder.down = True
    assert call("search.search", {"query": "the bread"})["degraded"]
    call.service.embedder.down = False
    call("search.similar", id=found["results"][0]["id"], query={"limit": 3, "min_score": 0})


def webhooks(call: Tour) -> None:
    """Nobody listens on the port: a delivery is refused, and then it is a dead letter."""
    nowhere = "http://127.0.0.1:1024/hook"
    made = call(
        "webhooks.create",
        {
            "url": nowhere,
            "events": ["memory.created", "rl.training_failed"],
            "description": "a test's",
        },
    )
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
    call(
        "webhooks.update",
        {"url": nowhere, "events": ["memory.deleted"], "status": "disabled"},
        id=made["id"],
    )
    call("webhooks.delete", id=made["id"])


def answers(call: Tour) -> None:
    query = "Where does Ada keep the spare key?"
    call("search.reason", {"query": query, "include_steps": True})
    for style in ("markdown", "xml", "json"):
        call("search.context", {"query": query, "style": style})
    call("search.context", {"query": "xylophone quasar"})
    call("search.reason", {"query": "xylophone quasar", "search_type": "bm25"})
    call("chat.models")
    call(
        "chat.completions",
        {
            "messages": [{"role": "user", "content": query}],
            "user": "ada",
            "store_conversation": True,
        },
    )
    call(
        "memories.create",
        {"content": "I live in Lisbon and I am planning to move to Porto.", "user_id": "ada"},
    )
    call.service.until(lambda: call("profile.get", query={"user_id": "ada"})["static"])
    call("profile.get")
    call(
        "profile.update",
        {"name": "Ada", "static": [{"key": "diet", "value": "vegan"}]},
        query={"user_id": "ada"},
    )
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
    candidates = [
        {"action_key": "refund", "description": "Give it back", "features": {"cost": 5}},
        {"action_key": "voucher"},
    ]
    new = {
        "policy_key": "support",
        "candidates": candidates,
        "context": {"complaint": "late"},
        "user_id": "ada",
        "reward_range": [0, 1],
    }
    made = call("learning.decide", new)
    for mode in ("explore", "recommend", "shadow"):
        call("learning.decide", {**new, "mode": mode, "baseline_action_key": "voucher"})
    unknown = {**new, "mode": "observe", "chosen_action_key": "refund", "propensity_unknown": True}
    call("learning.decide", {**unknown, "policy_key": "unknown"})
    call("learning.policies", query={"limit": 1})
    call("learning.insights", key="support")
    call("learning.evaluate", {}, key="support")
    told = call(
        "learning.report",
        {"observations": [{"metric_key": "joy", "value": 0.5, "source": "survey"}]},
        id=made["decision_id"],
    )
    corrected = {
        "metric_key": "joy",
        "value": 1,
        "corrects": told["observation_ids"][0],
        "is_final": False,
        "confidence": 0.9,
    }
    call("learning.report", {"observations": [corrected]}, id=made["decision_id"])
    call("learning.get", id=made["decision_id"])
    call(
        "learning.insights",
        key="support",
        query={"context": '{"complaint": "late"}', "action_key": "refund"},
    )
    guarded = {
        "target": {"action_key": "refund"},
        "guardrails": [{"metric_key": "joy"}],
        "limit": 10,
    }
    call("learning.evaluate", guarded, key="support")
    call("learning.evaluate", {}, key="unknown")
    call(
        "decisions.log",
        {
            "decision_type": "refund",
            "description": "Refunded the parcel.",
            "outcome": "partial",
            "context": {"days": 3},
        },
    )
    logged = call(
        "decisions.log", {"decision_type": "refund", "description": "Refunded a late parcel."}
    )
    call("decisions.get", id=logged["id"])
    call("decisions.list", query={"outcome": "partial"})
    assert call("decisions.similar", query={"query": "Refunded the parcel"})["items"]
    wrong = call("memories.create", {"content": "Parcels take two days."})
    right = {
        "corrected_content": "Parcels take three days.",
        "correction_type": "factual",
        "memory_id": wrong["id"],
        "context": "support",
    }
    correction = call("corrections.create", right)
    call(
        "corrections.create",
        {**right, "memory_id": correction["memory_id"]},
        headers={"Prefer": "respond-async"},
    )
    call("corrections.list", query={"correction_type": "factual", "limit": 1})
    call("corrections.get", id=correction["id"])
    assert (
        call("corrections.relevant", query={"query": "Parcels take three days", "limit": 3})[
            "items"
        ]
        is not None
    )
    call(
        "confidence.get",
        query={"query": "Refunded the parcel", "policy_key": "support", "context": "{}"},
    )
    assert (
        call("confidence.get", query={"query": "Parcels take three days"})["corrections"]
        is not None
    )
    call("corrections.delete", id=correction["id"])


def feedback(call: Tour) -> None:
    memory = call("memories.list", query={"limit": 1})["items"][0]["id"]
    call("feedback.relevance", {"memory_id": memory, "query": "parcels", "is_relevant": True})
    call(
        "feedback.ranking",
        {"memory_id": memory, "query": "parcels", "actual_rank": 3, "expected_rank": 1},
    )
    call("feedback.missing", {"query": "parcels", "expected_content": "They are blue."})
    call("feedback.stats")
    job = call("rl.train", {"policy": "ranking"})["job_id"]
    call.service.until(lambda: call("rl.jobs.get", job_id=job)["status"] == "completed")
    call("rl.metrics")
    call("rl.rollback", {"version": 0})


def graph(call: Tour) -> None:
    call(
        "graph.entities.create",
        {"name": "Ada", "type": "person", "aliases": ["Countess"], "attributes": {"a": [1]}},
    )
    call("graph.entities.create", {"name": "ADA", "type": "person"})
    memory = call("memories.create", {"content": "Ada lives in Lisbon.", "wait_for_index": True})[
        "id"
    ]
    for town, fields in (("Lisbon", {"source_memory_id": memory}), ("Oslo", {}), ("Oslo", {})):
        made = call(
            "graph.relationships.create",
            {
                "source": "Ada",
                "type": "lives_in",
                "target": town,
                "valid_from": "2020-01-01",
                **fields,
            },
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
    call("graph.entities.merge", {"into": "Ada"}, entity_name="Oslo")
    call("graph.entities.delete", entity_name="Ada")


def ingestion(call: Tour) -> None:
    talk = {
        "messages": [{"role": "user", "name": "Zoe", "content": "I live in Lisbon. I love jazz."}],
        "occurred_at": "2023-03-01",
    }
    call("memories.process", {**talk, "dry_run": True}, headers={"Prefer": "wait=30"})
    done = call("memories.process", talk, headers={"Prefer": "wait=30"})
    assert done["result"]["memories_created"] == 3
    moved = {"content": "I moved to Oslo.", "speaker": "Zoe", "infer": True}
    assert call("memories.create", moved)["updated_count"] == 1
    assert call("memories.create", moved)["skipped_count"] == 1
    call("memories.create", {**moved, "async_dispatch": True})
    call("memories.create", {**talk, "infer": True})
    queued = call("memories.process", {"content": "I love karaoke."})
    call.service.until(
        lambda: call("memories.jobs.get", job_id=queued["job_id"])["status"] == "completed"
    )
    call("memories.jobs.undo", job_id=queued["job_id"])
    call("memories.audit", query={"similarity": 0.8})
    one, other = (call("memories.create", {"content": text})["id"] for text in ("Twice.", "Twice!"))
    call("memories.merge", {"keep": one, "duplicates": [other]})
    assert call("memories.merged", id=one)["items"]
    call("memories.restore", id=other)


def documents(call: Tour) -> None:
    service = call.service

    def upload(filename: str, content: bytes) -> dict[str, Any]:
        answer = service.upload(
            filename, content, who=call.token, title="A note", tags="a, b", metadata='{"n": 1}'
        )
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
    call("memories.delete_matching", {"filters": {"tags": "never used"}})
    call("memories.delete_all", query={"confirm": "delete-all-memories", "user_id": "ada"})
    call("collections.delete_all", query={"confirm": "delete-all-collections"})
    call("account.receipts", query={"limit": 1})
    login = {"email": "leaver@example.com", "password": PASSWORD}
    leaver = call("auth.register", {**login, "full_name": "Leaver"})["access_token"]
    receipt = call("account.erase", who=leaver, query={"confirm": "erase-account"})["receipt"]
    call("account.erasure", {"receipt": receipt})
    call.service.until(
        lambda: call("account.erasure", {"receipt": receipt})["status"] == "completed"
    )


def usage_and_billing(call: Tour) -> None:
    operator, of_ada = call.service.secrets.operator_token, {"email": "ada@example.com"}
    call("usage.get")
    call("usage.load")
    for granularity in ("hour", "day", "month"):
        call("usage.history", query={"granularity": granularity, "from": "2020-01-01", "limit": 1})
    call("usage.latency", query={"hours": 2})
    call("billing.tiers")
    call("billing.subscription")
    call("internal.billing.set_tier", {**of_ada, "tier": "free"}, who=operator)
    first = call("billing.upgrade", {"tier": "starter"})["invoice"]
    call("billing.subscription")
    call(
        "internal.billing.mark_paid",
        {**of_ada, "invoice": first["number"], "reference": "transfer"},
        who=operator,
    )
    second = call("billing.upgrade", {"tier": "pro"})["invoice"]
    call(
        "internal.billing.credit_note",
        {**of_ada, "invoice": first["number"], "reason": "goodwill", "amount_cents": 1},
        who=operator,
    )
    body = report("invoice.paid", of_ada["email"], second["id"])
    call(
        "billing.stripe_events", body, headers={"Stripe-Signature": signature(body, STRIPE_SECRET)}
    )
    call("billing.downgrade", {"tier": "free"})
    call("billing.subscription")
    call("billing.invoices.list", query={"limit": 2})
    call("billing.invoices.get", id=first["id"])
    call("billing.invoices.page", id=first["id"])
    call("internal.billing.close", of_ada, who=operator)
    assert call("internal.usage.audit", of_ada, who=operator)["consistent"]
    assert call("internal.billing.audit", of_ada, who=operator)["consistent"]
    call("internal.accounts.list", {"slot": 0}, who=operator)
    call("internal.accounts.busiest", {"slot": 0}, who=operator)
    call("internal.billing.retained", {"slot": 0}, who=operator)
    call("internal.cluster.report", who=operator)
    call("internal.cluster.move", {"slots": [0], "shard": 0}, who=operator)
    call("internal.cluster.rebalance", {}, who=operator)
    call.service.table.change(lambda placement: placement.resized(2))
    call("internal.cluster.drain", {"shard": 1}, who=operator)
    call("internal.cluster.undrain", {"shard": 1}, who=operator)
    call(
        "internal.billing.set_tier",
        {**of_ada, "tier": "enterprise", "price_cents": 100_000},
        who=operator,
    )
