"""What users write lies nowhere on the disk as they wrote it, and after an erasure there is no key
left that opens it.

Every text of every request body of every operation carries a word of its own. All files under the
data directory, whatever page of them, are then searched for these words: while the account lives,
after it was erased, and in what was logged meanwhile. A field that no step plants fails, so a new
plugin needs its step here, or a reason in NO_CONTENT.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap

import serve_app
from plugins.memories import MEMORY_VECTORS
from storage.store import KEYS_FILE, Scope
from tests.support import upstream
from tests.support.in_process import InProcess, in_process
from tests.support.mailbox import Mailbox, mailbox

OPERATIONS = serve_app.registry().operations
# Texts of requests that are no content: they name something of ours, or choose among words of ours.
NO_CONTENT = {
    "id", "ids", "collection_id", "memory_id", "scopes", "expires_at", "occurred_at",
    "reference_date", "as_of", "tier", "search_type", "view", "receipt", "role", "source_type",
    "invoice", "since", "until", "timezone", "language", "date_range_start", "date_range_end",
    "between", "known_at", "valid_at", "timestamp", "recorded_at", "valid_from", "valid_to",
    "source_memory_id", "relationship_id", "keep", "duplicates", "corrects", "memory_ids",
    "policy_key", "invitation", "token", "code",
}  # fmt: skip
FREE_OBJECTS = (
    "metadata", "filters", "record", "chat.completions: messages", "context", "features",
    "attributes", "behavior_probabilities", "metric_weights", "memories.import: memories",
)  # fmt: skip
# The items of a batch are creates, which are planted by themselves; what stands under a name of a
# free object has no declared place.
SAME_MODEL = ("memories.create_batch: memories.messages", "search.advanced: boosts.metadata.")
OF_NO_ACCOUNT = ("internal.cluster.",)  # they name nodes and shards
MARK = "Canary"
AS_LETTERS = str.maketrans("0123456789", "abcdefghij")


def text_fields(schema: dict[str, Any], root: dict[str, Any], path: str = "") -> Iterator[str]:
    """Dotted paths of every place in a body where a caller may write a text: "messages.content",
    "metadata".
    """
    schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for option in schema.get("anyOf", ()):
        yield from text_fields(option, root, path)
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        yield path
    if schema.get("type") == "array":
        yield from text_fields(schema.get("items", {}), root, path)
    if schema.get("type") == "object" and not schema.get("properties"):
        yield path
    for name, field in schema.get("properties", {}).items():
        if name not in NO_CONTENT:
            yield from text_fields(field, root, f"{path}.{name}".lstrip("."))


def wanted() -> set[str]:
    """Every (operation: field) that must carry a canary."""
    found: set[str] = set()
    for operation in OPERATIONS.values():
        if operation.body is not None:
            schema = operation.body.model_json_schema()
            found |= {f"{operation.name}: {path}" for path in text_fields(schema, schema)}
    return found


class CanaryHarness:
    """Plants words that occur nowhere else, and remembers where."""

    def __init__(self, service: InProcess, box: Mailbox):
        self.service, self.box = service, box
        self.planted: dict[str, str] = {}  # word -> "operation: field" where it was first used
        self.places: set[str] = set()  # every "operation: field" that carried a word
        self.token = ""

    def word(self, place: str, *, letters: bool = False) -> str:
        word = f"{MARK}{len(self.planted):04d}x"
        word = word.lower().translate(AS_LETTERS) if letters else word
        self.planted[word] = place
        return word

    def __call__(self, name: str, body: Any, *, who: str | None = None, **path: str) -> Any:
        """The decoded answer to a call; "*" in the body's texts becomes a word of this place, "~"
        one of small letters, and the key is one as well."""
        operation = OPERATIONS[name]
        filled = self._filled(body, name, "")
        credential = who or (None if operation.scope == "public" else self.token)
        headers = (
            {"Idempotency_Key": self.word(f"{name}: Idempotency-Key")}
            if operation.method != "GET"
            else {}
        )
        answer = self.service.request(
            operation.method, operation.path.format(**path), filled, who=credential, **headers
        )
        assert answer.status_code in operation.statuses, (
            f"{name}: {answer.status_code} {answer.text}"
        )
        is_json = answer.headers.get("Content-Type") == "application/json"
        return answer.json() if is_json else None

    def upload(self, filename: str, content: str, **fields: str) -> dict[str, Any]:
        """The document of an upload, once it was read; "*" stands for a word here too, and the
        file's name is part of the file.
        """
        name = "documents.upload"
        filename, content = (self._filled(text, name, "file") for text in (filename, content))
        sent = {field: self._filled(text, name, field) for field, text in fields.items()}
        return self.service.processed(filename, content.encode(), who=self.token, **sent)

    def _filled(self, value: Any, name: str, path: str) -> Any:
        if isinstance(value, str):
            filled = re.sub(r"\*", lambda _: self.word(f"{name}: {path}"), value)
            filled = re.sub(r"~", lambda _: self.word(f"{name}: {path}", letters=True), filled)
            if MARK.lower() in filled.lower():
                self.places.add(f"{name}: {path}")
            return filled
        if isinstance(value, list):
            return [self._filled(item, name, path) for item in value]
        if isinstance(value, dict):
            free = f"{name}: {path}".endswith(FREE_OBJECTS)  # below it nothing has a declared name
            return {
                self._filled(key, name, path): self._filled(
                    item, name, path if free else f"{path}.{key}".lstrip(".")
                )
                for key, item in value.items()
            }
        return value


MEMORY = {
    "content": "The * sings in the morning.", "metadata": {"*": {"deep": ["*", "*"]}}, "title": "*",
    "tags": ["*", "*"], "source": "*", "source_reference": "*", "user_id": "*", "agent_id": "*",
    "run_id": "*", "app_id": "*", "session_id": "*", "speaker": "*",
}  # fmt: skip
TIMES = dict.fromkeys(("created_at", "updated_at", "occurred_at", "at"), "2020-01-01T00:00:00.000Z")
VERSION = {
    "version": 1,
    "event": "ADD",
    "content": "*",
    "importance": 0.5,
    "metadata": {"*": "*"},
    "actor": "*",
    "reason": "*",
    **TIMES,
}
EXPORTED = [
    {
        "kind": "collection",
        "record": {
            "id": "col_" + "0" * 32,
            "name": "*",
            "description": "*",
            "metadata": {"*": "*"},
            **TIMES,
        },
    },
    {
        "kind": "memory",
        "record": {
            **MEMORY,
            "id": "mem_" + "0" * 32,
            "collection_id": "col_" + "0" * 32,
            "version": 2,
            "history": [VERSION],
            **TIMES,
        },
    },
]
GROUP = {name: "*" for name in ("user_id", "agent_id", "run_id", "app_id")}


def live(plant: CanaryHarness) -> None:
    """Everything an account can write."""
    live_with_memories(plant)
    live_with_a_model(plant)
    live_with_webhooks(plant)
    live_with_bills(plant)
    live_and_learn(plant)
    live_in_a_graph(plant)
    doomed = plant("memories.create", MEMORY)["id"]
    plant("memories.delete", None, id=doomed)


def live_with_memories(plant: CanaryHarness) -> None:
    person = {"email": "*@example.com", "password": "*-and-long-enough", "full_name": "*"}
    plant.token = plant("auth.register", person)["access_token"]
    address = next(
        word for word, place in plant.planted.items() if place == "auth.register: email"
    ).lower()
    secret = next(
        word for word, place in plant.planted.items() if place == "auth.register: password"
    )
    plant(
        "auth.login", {"email": f"{address}@example.com", "password": f"{secret}-and-long-enough"}
    )
    lost = f"{address}@example.com"
    plant("auth.password_reset.request", {"email": lost})
    plant.places.add("auth.password_reset.request: email")  # planted when it was registered
    plant("auth.verification.request", {"email": lost})
    plant.places.add("auth.verification.request: email")
    plant.service.until(lambda: plant.box.tickets(lost))
    set_anew = {"token": plant.box.tickets(lost)[0], "new_password": "*-and-long-enough"}
    plant("auth.password_reset.confirm", set_anew)
    place = "auth.password_reset.confirm: new_password"
    secret = next(word for word, where in plant.planted.items() if where == place)
    renewed = {"email": lost, "password": f"{secret}-and-long-enough"}
    plant.token = plant("auth.login", renewed)["access_token"]
    passwords = {"current_password": f"{secret}-and-long-enough", "new_password": "*-and-longer"}
    plant("auth.password", passwords)
    plant.places.add("auth.password: current_password")  # planted when it was new
    plant("auth.api_keys.create", {"name": "*"})
    operator = plant.service.secrets.operator_token
    plant("internal.keys.create", {"email": f"{address}@example.com", "name": "*"}, who=operator)
    guest = {"email": "*@example.com"}
    plant("auth.invitation.request", guest)
    invited = plant("internal.invitations.create", guest, who=operator)
    claim = {"invitation": invited["invitation"], "email": invited["email"]}
    plant("internal.invitations.claim", claim, who=operator)
    account = {"email": f"{address}@example.com"}  # planted when it was registered
    job = plant("internal.re_embed", account, who=operator)
    plant("internal.re_embed", {**account, "job_id": job["job_id"]}, who=operator)
    plant.places |= {"internal.re_embed: email", "internal.re_embed: job_id"}
    plant("internal.totp.clear", account, who=operator)
    plant.places.add("internal.totp.clear: email")
    plant.places.add("internal.invitations.claim: email")  # planted when it was invited
    collection = plant(
        "collections.create", {"name": "*", "description": "*", "metadata": {"*": "*"}}
    )["id"]
    plant(
        "collections.update",
        {"name": "*", "description": "*", "metadata": {"*": "*"}},
        id=collection,
    )
    dropped = plant("collections.create", {"name": "*"})["id"]
    first = plant("memories.create", MEMORY)["id"]
    plant(
        "memories.create",
        {"messages": [{"role": "user", "name": "*", "content": "* and *"}], "session_id": "*"},
    )
    plant("memories.create_raw", {**MEMORY, "collection_id": dropped})
    plant(
        "memories.create_batch", {"memories": [MEMORY, {"content": "*", "messages": None}], **GROUP}
    )
    plant("memories.import", {"memories": [MEMORY]})
    plant(
        "memories.update",
        {"content": "A new * sings.", "title": "*", "tags": ["*"], "metadata": {"*": "*"}},
        id=first,
    )
    inserted = plant("memory_tools.insert", MEMORY)
    plant(
        "memory_tools.replace",
        {
            "memory_id": inserted["id"],
            "old_content": inserted["content"],
            "new_content": "The * sings no more.",
        },
    )
    plant("memory_tools.rethink", {"memory_id": inserted["id"]})
    live_with_files(plant)
    plant.service.embedder.down = True  # its index job stays in the queue, with its payload
    plant("memories.create", {"content": "Not indexed: *"})
    plant.service.embedder.down = False
    plant(
        "search.search",
        {
            "query": "Where does the * sing?",
            **GROUP,
            "session_id": "*",
            "filters": {"tags": {"in": ["*"]}},
        },
    )
    plant("memories.query", {**GROUP, "session_id": "*", "filters": {"user_id": "*"}})
    where = {**GROUP, "session_id": "*"}
    plant("memories.values", {**where, "field": "metadata.*", "filters": {"tags": ["*"]}})
    plant("memories.delete_matching", {**where, "filters": {"tags": "*"}})
    boosts = {"tags": {"*": 1}, "metadata": [{"field": "*", "value": "*", "weight": 1}]}
    asked = {
        "query": "Where does the * sing?",
        **GROUP,
        "session_id": "*",
        "facets": ["metadata.*"],
        "boosts": boosts,
    }
    plant("search.advanced", {**asked, "filters": {"tags": {"in": ["*"]}}})
    brought = {"records": [{"kind": "*", "record": {"*": "*"}}, *EXPORTED]}
    plant("account.import", brought)
    plant("account.import_part", {**brought, "signature": "*"})
    documents(plant, dropped)
    plant("collections.delete", None, id=dropped)


def live_with_files(plant: CanaryHarness) -> None:
    """Files of an agent: viewed, changed and moved; one stays, in a directory of its own."""

    def file(command: str, **given: Any) -> str:
        return plant(
            "memory_files.execute",
            {"command": command, "user_id": user, "agent_id": agent, **given},
        )["path"]

    user, agent = (plant.word(f"memory_files.execute: {name}") for name in ("user_id", "agent_id"))
    plant.places |= {f"memory_files.execute: {name}" for name in ("user_id", "agent_id")}
    path = file("create", path="/memories/*/*.md", file_text="The * sings.")
    file("view", path=path.rpartition("/")[0])
    text = plant.word("memory_files.execute: text")
    file("insert", path=path, insert_line=1, insert_text=f"The {text} and the * sing.")
    file("str_replace", path=path, old_str=text, new_str="*")
    file("rename", old_path=path, new_path="/memories/*/*.md")
    file("delete", path=file("create", path="/memories/gone/*.md", file_text="The * flew away."))


def live_with_a_model(plant: CanaryHarness) -> None:
    """Answers, chat and profiles; among the facts that are derived is one whose very key is a word
    of the user's.
    """
    plant("memories.create", {"content": "My favorite ~ is *. My sister is *. I live in *."})
    plant(
        "profile.update",
        {"name": "*", "bio": "*", "timezone": "UTC", "static": [{"key": "~", "value": "*"}]},
    )
    plant(
        "search.reason",
        {
            "query": "Where does the * sing?",
            **GROUP,
            "session_id": "*",
            "filters": {"tags": {"in": ["*"]}},
        },
    )
    plant(
        "search.context",
        {
            "query": "Where does the * sing?",
            **GROUP,
            "session_id": "*",
            "filters": {"tags": {"in": ["*"]}},
        },
    )
    plant("profile.dialectic", {"user_message": "What about *?", "session_id": "*", "user_id": "*"})
    chat = {
        "model": "*",
        "messages": [{"role": "user", "content": "I like *.", "name": "*"}],
        "user": "*",
        "session_id": "*",
    }
    plant("chat.completions", chat | {"store_conversation": True})

    def derived() -> bool:
        profile = plant.service.request("GET", "/v1/profile", who=plant.token).json()
        return any(
            fact["key"].startswith("favorite.") for fact in profile["static"] + profile["dynamic"]
        )

    plant.service.until(derived)


def live_with_webhooks(plant: CanaryHarness) -> None:
    """Nobody listens, so that deliveries stay on the disk with what they tell of."""
    told = {
        "url": "http://127.0.0.1:1024/*",
        "events": ["memory.created", "memory.deleted", "search.completed"],
        "description": "*",
    }
    webhook = plant("webhooks.create", told | {"signing_secret": "* of a test"})["id"]
    plant("webhooks.update", told, id=webhook)
    plant("webhooks.rotate_secret", {"signing_secret": "another * of a test"}, id=webhook)
    plant("memories.create", MEMORY)
    plant("search.search", {"query": "Where does the * sing?"})
    plant("webhooks.dead_letters.replay", {"since": "2020-01-01T00:00:00Z"})

    def tried() -> bool:
        path = f"/v1/webhooks/{webhook}/deliveries"
        return any(
            item["attempt_count"]
            for item in plant.service.request("GET", path, who=plant.token).json()["items"]
        )

    plant.service.until(tried)


def live_with_bills(plant: CanaryHarness) -> None:
    address = next(
        word for word, place in plant.planted.items() if place == "auth.register: email"
    ).lower()
    account, operator = {"email": f"{address}@example.com"}, plant.service.secrets.operator_token
    plant("internal.billing.set_tier", {**account, "tier": "starter"}, who=operator)
    bill = {**account, "invoice": plant("billing.upgrade", {"tier": "scale"})["invoice"]["number"]}
    plant("internal.billing.mark_paid", {**bill, "reference": "*"}, who=operator)
    plant("internal.billing.credit_note", {**bill, "reason": "*"}, who=operator)
    plant("internal.billing.close", account, who=operator)
    for audit in ("internal.billing.audit", "internal.usage.audit"):
        plant(audit, account, who=operator)


def live_and_learn(plant: CanaryHarness) -> None:
    """Decisions, outcomes, corrections, feedback, and a training."""
    one, other, metric = (
        plant.word(f"learning.decide: {field}") for field in ("action", "action", "metric")
    )
    policy = "returns"
    candidates = [
        {"action_key": key, "description": "*", "features": {"*": "*"}} for key in (one, other)
    ]
    asked = {
        "policy_key": policy,
        "candidates": candidates,
        "context": {"*": "*"},
        "user_id": "*",
        "metric_weights": {metric: 1.0},
    }
    made = plant("learning.decide", {**asked, "baseline_action_key": one, "idempotency_key": "*"})
    seen = {
        "mode": "observe",
        "chosen_action_key": one,
        "behavior_probabilities": {one: 0.5, other: 0.5},
        "action_probability": 0.5,
    }
    plant("learning.decide", {**asked, **seen})
    observed = {"metric_key": metric, "value": 0.5, "source": "*", "idempotency_key": "*"}
    plant(
        "learning.report",
        {"observations": [observed], "idempotency_key": "*"},
        id=made["decision_id"],
    )
    guarded = {
        "target": {"action_key": other},
        "baseline": {"action_key": one},
        "guardrails": [{"metric_key": metric}],
        "user_id": "*",
    }
    plant("learning.evaluate", guarded, key=policy)
    plant("learning.evaluate", {"baseline": one}, key=policy)
    plant(
        "decisions.log",
        {"decision_type": "*", "description": "Gave the * back.", "context": {"*": "*"}},
    )
    wrong = plant("memories.create", {"content": "The * sleeps at noon."})["id"]
    right = {
        "corrected_content": "The * sleeps at night.",
        "original_content": "*",
        "context": "*",
        "metadata": {"*": "*"},
    }
    plant(
        "corrections.create",
        {
            **right,
            "correction_type": "factual",
            "memory_id": wrong,
            "user_id": "*",
            "agent_id": "*",
        },
    )
    plant(
        "feedback.relevance",
        {"memory_id": wrong, "query": "Does the * sleep?", "is_relevant": True},
    )
    plant(
        "feedback.ranking",
        {"memory_id": wrong, "query": "Does the * sleep?", "actual_rank": 2, "expected_rank": 1},
    )
    plant(
        "feedback.missing",
        {"query": "Does the * sleep?", "expected_content": "The * never sleeps."},
    )


def live_in_a_graph(plant: CanaryHarness) -> None:
    """Entities and relationships, told and read out of what is said."""
    name, kind, target = (plant.word(f"graph: {field}") for field in ("name", "type", "target"))
    plant(
        "graph.entities.create",
        {"name": name, "type": kind, "aliases": ["*"], "attributes": {"*": "*"}},
    )
    claim = {
        "source": name,
        "type": plant.word("graph: relation"),
        "target": target,
        "attributes": {"*": "*"},
    }
    plant("graph.relationships.create", claim)
    double = plant("graph.entities.create", {"name": "*"})["id"]
    plant("graph.entities.merge", {"into": name}, entity_name=double)
    plant("graph.query", {"entity": name, "relation_type": claim["type"], "target": target})
    within = {**GROUP, "session_id": "*", "filters": {"tags": "*"}}
    plant("search.graph", {"query": f"Where is {name}?", **within})
    plant("search.graph", {"entity": name})
    said = [{"role": "user", "name": "*", "content": "I live in * and I love *."}]
    told = {"metadata": {"*": "*"}, "instructions": "*", "session_id": "*", **GROUP}
    for body in ({"messages": said, **told}, {"content": "I moved to *.", **told}):
        job = plant("memories.process", body)["job_id"]
        finished = f"/v1/memories/jobs/{job}"
        plant.service.until(
            lambda path=finished: (
                plant.service.request("GET", path, who=plant.token).json()["status"] == "completed"
            )
        )
    one, other = (
        plant("memories.create", {"content": text})["id"]
        for text in (f"{name} twice.", f"{name} twice!")
    )
    plant("memories.merge", {"keep": one, "duplicates": [other]})


def documents(plant: CanaryHarness, dropped: str) -> None:
    """One of each end: kept, failed, deleted, dropped with its collection."""
    fields = {"title": "*", "tags": "*, *", "metadata": '{"*": ["*"]}'}
    assert (
        plant.upload("*.md", "# About the *\n\nThe * sings in the evening.", **fields)["status"]
        == "completed"
    )
    assert plant.upload("*.json", '{"*": ', **fields)["status"] == "failed"
    plant("documents.delete", None, id=plant.upload("*.txt", "A * that flew away.", **fields)["id"])
    plant.upload("*.csv", "*,*\n1,2\n", collection_id=dropped, **fields)


@pytest.fixture(scope="module")
def logged() -> Iterator[list[str]]:
    """Everything any logger says, down to debugging."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(self.format(record))

    ear, root = Ear(logging.DEBUG), logging.getLogger()
    level = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    yield said
    root.removeHandler(ear)
    root.setLevel(level)


@pytest.fixture(scope="module")
def aviary(tmp_path_factory: pytest.TempPathFactory, logged: list[str]) -> Iterator[CanaryHarness]:
    directory = tmp_path_factory.mktemp("aviary") / "store"
    with (
        upstream.upstream() as endpoint,
        mailbox() as box,
        in_process(
            directory,
            **box.settings,
            llm__base_url=endpoint.url,
            chat__models_allowed=["*"],
            webhooks__allow_private_networks=True,
        ) as service,
    ):
        plant = CanaryHarness(service, box)
        live(plant)
        yield plant


def found_in(directory: Path, words: Any) -> set[str]:
    """Those of the words that lie in any file under the directory, in any letter case, as UTF-8 or
    UTF-16.
    """
    everything = b"\0\0".join(
        path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    ).lower()
    return {
        word
        for word in words
        if word.lower().encode() in everything or word.lower().encode("utf-16-le") in everything
    }


def test_every_text_of_every_body_carries_a_canary(aviary: CanaryHarness) -> None:
    missing = sorted(
        place
        for place in wanted() - aviary.places
        if not place.startswith(SAME_MODEL + OF_NO_ACCOUNT)
    )
    assert not missing, "\n".join(missing)


def test_nothing_lies_open_while_the_account_lives(aviary: CanaryHarness) -> None:
    assert len(aviary.planted) > 120
    store = aviary.service.shard.store
    assert found_in(store.directory, ["mneme01"]), "the search finds what is there"
    with store.snapshot() as snapshot:
        assert len(list(snapshot.scopes())) >= 2
    open_words = found_in(store.directory, aviary.planted)
    assert not open_words, {aviary.planted[word] for word in open_words}
    # A compacted copy holds the live pages alone, so nothing hides in what LMDB would reuse.
    store.backup(store.directory.parent / "copy")
    assert not found_in(store.directory.parent / "copy", aviary.planted)


def test_nothing_was_logged(aviary: CanaryHarness, logged: list[str]) -> None:
    text = "\n".join(logged).lower()
    assert logged and not {place for word, place in aviary.planted.items() if word.lower() in text}


def test_after_an_erasure_nothing_is_left_to_open(aviary: CanaryHarness) -> None:
    service, store = aviary.service, aviary.service.shard.store
    account = service.request("GET", "/v1/memories", who=aviary.token).json()
    assert account["total_count"] >= 6
    with store.snapshot() as snapshot:
        scope = next(scope for scope in snapshot.scopes() if scope.tenant)
        assert [other for other in snapshot.scopes() if other.tenant] == [scope]
        vectors = snapshot.bind(MEMORY_VECTORS.vectors, scope)
        raw = [row[8:] for _, row in vectors.scan()]
    ring = store.directory / KEYS_FILE
    wrapped = re.search(
        rb"K" + re.escape(scope.prefix) + rb"\0(.{40})", ring.read_bytes(), re.DOTALL
    )[1]
    wrapping = hmac.digest(service.secrets.service, b"data-key:" + scope.prefix, "sha256")
    data_key = aes_key_unwrap(wrapping, wrapped)
    answer = service.request("DELETE", "/v1/account?confirm=erase-account", who=aviary.token)
    receipt = {"receipt": answer.json()["receipt"]}
    service.until(
        lambda: (
            service.request("POST", "/v1/account/receipts", receipt).json()["status"] == "completed"
        )
    )

    files = b"".join(path.read_bytes() for path in store.directory.rglob("*") if path.is_file())
    assert wrapped not in files and data_key not in files
    assert not found_in(store.directory, aviary.planted)
    assert not [path for path in (store.directory / "blobs").rglob("*") if path.is_file()]
    with store.snapshot() as snapshot:
        assert [other for other in snapshot.scopes() if other.tenant] == []
    # Vectors were sealed too, so no freed page has one.
    assert raw and not [
        vector for vector in raw if np.frombuffer(vector, "<f4").any() and vector in files
    ]
    assert scope == Scope(scope.slot, scope.tenant)
