"""Who may do what, tried on every route through the real gateway: the answer is the same for each,
without exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import serve_app
from runtime.api.operation import Operation
from tests.support.in_process import PASSWORD, InProcess, in_process

# What answers without a credential. Anything else is a decision to be made here, by a person.
PUBLIC = {
    "auth.register",
    "auth.login",
    "auth.invitation.request",
    "auth.password_reset.confirm",
    "auth.password_reset.request",
    "auth.verification.request",
    "auth.verify_email",
    "account.erasure",
    "billing.tiers",
    "billing.stripe_events",
}
PUBLIC_PAGES = ("/v1/health", "/metrics", "/openapi.json", "/docs")

OPERATIONS = list(serve_app.registry().operations.values())
CLOSED = [operation for operation in OPERATIONS if operation.name not in PUBLIC]
ROUTES = [
    (operation, path) for operation in CLOSED for path in (operation.path, *operation.aliases)
]
each_route = pytest.mark.parametrize(
    ("operation", "path"), ROUTES, ids=[f"{operation.method} {path}" for operation, path in ROUTES]
)
OF_TENANTS = [(operation, path) for operation, path in ROUTES if not operation.internal]
each_tenant_route = pytest.mark.parametrize(
    ("operation", "path"),
    OF_TENANTS,
    ids=[f"{operation.method} {path}" for operation, path in OF_TENANTS],
)


@dataclass
class AuthorisationHarness:
    """Two accounts, and keys of the first one by their scope. `stranger` owns what `foreign` names,
    by prefix of the id.
    """

    service: InProcess
    token: str
    keys: dict[str, str]
    stranger: str
    foreign: dict[str, str]

    def try_out(
        self, operation: Operation, path: str, who: str | None, **headers: str
    ) -> httpx.Response:
        """The request of the operation's own example."""
        filled = re.sub(r"{\w+}", "mem_" + "0" * 32, path)
        return self.service.request(operation.method, filled, operation.example, who=who, **headers)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorisationHarness]:
    with in_process(
        tmp_path_factory.mktemp("stage"), webhooks__allow_private_networks=True
    ) as service:
        token, stranger = service.register("ada@example.com"), service.register("eve@example.com")
        memory = service.request(
            "POST",
            "/v1/memories",
            {"content": "Eve's secret.", "wait_for_index": True},
            who=stranger,
        ).json()
        collection = service.request(
            "POST", "/v1/collections", {"name": "Eve's"}, who=stranger
        ).json()
        doomed = service.request(
            "POST", "/v1/collections", {"name": "Eve's, deleted"}, who=stranger
        ).json()
        job = service.request("DELETE", f"/v1/collections/{doomed['id']}", who=stranger).json()[
            "cleanup"
        ]["job_id"]
        log = {"decision_type": "secret", "description": "Eve's decision."}
        decision = service.request("POST", "/v1/decisions", log, who=stranger).json()
        right = {
            "corrected_content": "Eve's truth.",
            "correction_type": "factual",
            "collection_id": collection["id"],
        }
        correction = service.request("POST", "/v1/corrections", right, who=stranger).json()
        document = service.upload("eve.json", b"{", who=stranger).json()["document"]
        target = {"url": "http://127.0.0.1:1024/hook", "events": ["collection.updated"]}
        webhook = service.request("POST", "/v1/webhooks", target, who=stranger).json()["id"]
        sent = service.request("POST", f"/v1/webhooks/{webhook}/test", who=stranger).json()
        operator = service.secrets.operator_token
        service.request(
            "POST",
            "/v1/internal/billing/set-tier",
            {"email": "eve@example.com", "tier": "free"},
            who=operator,
        )
        invoice = service.request(
            "POST", "/v1/billing/upgrade", {"tier": "pro"}, who=stranger
        ).json()["invoice"]
        service.request(
            "POST",
            "/v1/internal/billing/set-tier",
            {"email": "eve@example.com", "tier": "enterprise"},
            who=operator,
        )
        foreign = {
            "mem": memory["id"],
            "col": collection["id"],
            "key": service.mint(stranger, "read")["id"],
            "ses": service.request("GET", "/v1/auth/sessions", who=stranger).json()["items"][0][
                "id"
            ],
            "job": job,
            "whk": webhook,
            "dlv": sent["delivery_id"],
            "inv": invoice["id"],
            "dec": decision["id"],
            "cor": correction["id"],
            "doc": document["id"],
        }
        foreign["ent"] = service.request(
            "POST", "/v1/knowledge-graph/entities", {"name": "Eve's"}, who=stranger
        ).json()["id"]
        keys = {scope: service.mint(token, scope)["key"] for scope in ("read", "write", "admin")}
        yield AuthorisationHarness(service, token, keys, stranger, foreign)


def assert_refused(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"] == code
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


# --- nobody ---------------------------------------------------------------------------------------


def test_public_is_what_was_decided_to_be() -> None:
    assert {operation.name for operation in OPERATIONS if operation.scope == "public"} == PUBLIC


@pytest.mark.parametrize("path", PUBLIC_PAGES)
def test_pages_about_the_service_need_no_credential(stage: AuthorisationHarness, path: str) -> None:
    assert stage.service.request("GET", path).status_code == 200


@each_route
def test_nobody_gets_in(stage: AuthorisationHarness, operation: Operation, path: str) -> None:
    assert_refused(stage.try_out(operation, path, None), 401, "missing_api_key")


GARBAGE = {
    "a word": "Bearer secret",
    "a key that was never minted": "Bearer mem_sk_" + "0" * 64,
    "a key too short": "Bearer mem_sk_" + "0" * 63,
    "an unsigned token": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c3JfMSJ9.",
    "another scheme": "Basic YWRhOnBhc3N3b3Jk",
    "letters beyond ASCII": "Bearer m\u00e9m",
}


@each_route
def test_garbage_opens_nothing(
    stage: AuthorisationHarness, operation: Operation, path: str
) -> None:
    for garbage in GARBAGE.values():
        assert_refused(
            stage.try_out(operation, path, None, Authorization=garbage.encode("latin-1")),
            401,
            "invalid_api_key",
        )


@pytest.mark.parametrize("position", [10, 40, 70])
def test_a_key_with_one_digit_changed_is_no_key(stage: AuthorisationHarness, position: int) -> None:
    key = stage.keys["admin"]
    forged = key[:position] + ("0" if key[position] != "0" else "1") + key[position + 1 :]
    assert_refused(stage.service.request("GET", "/v1/memories", who=forged), 401, "invalid_api_key")


def test_the_alias_of_the_scheme_works(stage: AuthorisationHarness) -> None:
    for scheme in ("Bearer", "bearer", "Token"):
        assert (
            stage.service.request(
                "GET", "/v1/auth/me", Authorization=f"{scheme} {stage.keys['read']}"
            ).status_code
            == 200
        )


# --- scopes ---------------------------------------------------------------------------------------


@each_tenant_route
def test_a_scope_opens_what_it_covers(
    stage: AuthorisationHarness, operation: Operation, path: str
) -> None:
    covering = ("read", "write", "admin")
    needed = (
        operation.scope_of(operation.body.model_validate(operation.example))
        if operation.scope_of
        else operation.scope
    )
    for scope in covering[: covering.index(needed)]:
        assert_refused(stage.try_out(operation, path, stage.keys[scope]), 403, "permission_denied")
    if operation.scope == "admin" or operation.name == "auth.logout":
        return  # what would happen to a covering key is tried in test_responses.py
    for scope in covering[covering.index(needed) :]:
        answer = stage.try_out(operation, path, stage.keys[scope])
        assert answer.status_code not in (401, 500), answer.text
        assert answer.status_code != 403 or "lacks the scope" not in answer.text


@each_tenant_route
def test_authorisation_comes_before_validation(
    stage: AuthorisationHarness, operation: Operation, path: str
) -> None:
    """A caller without the right learns nothing of what a right request would look like."""
    if operation.body is None or operation.scope == "read":
        return
    answer = stage.service.request(
        operation.method, re.sub(r"{\w+}", "x", path), b"{not json", who=stage.keys["read"]
    )
    assert_refused(answer, 403, "permission_denied")


def test_the_operator_is_no_tenant_and_a_tenant_no_operator(stage: AuthorisationHarness) -> None:
    operator = stage.service.secrets.operator_token
    for operation in CLOSED:
        path = re.sub(r"{\w+}", "x", operation.path)
        who = stage.keys["admin"] if operation.internal else operator
        assert_refused(
            stage.service.request(operation.method, path, operation.example, who=who),
            403,
            "permission_denied",
        )


# --- what belongs to others -----------------------------------------------------------------------

PREFIX_OF_PATH = {
    "memories": "mem",
    "collections": "col",
    "api-keys": "key",
    "sessions": "ses",
    "jobs": "job",
    "memory-jobs": "job",
    "similar": "mem",
}
PREFIX_OF_PATH |= {"webhooks": "whk", "deliveries": "dlv"}
PREFIX_OF_PATH |= {"invoices": "inv"}
PREFIX_OF_PATH |= {"decisions": "dec", "corrections": "cor"}
PREFIX_OF_PATH |= {"entities": "ent", "timeline": "ent"}
PREFIX_OF_PATH |= {"documents": "doc"}
NAMED = (
    "/v1/learning/policies/{key}",
)  # a name of the caller's own choice, which every account may have


def with_ids(path: str, foreign: dict[str, str]) -> str:
    """The path with a foreign id of the right kind for each parameter."""
    return re.sub(
        r"([\w-]+)/{\w+}", lambda found: f"{found[1]}/{foreign[PREFIX_OF_PATH[found[1]]]}", path
    )


@pytest.mark.parametrize(
    ("operation", "path"),
    [pair for pair in OF_TENANTS if "{" in pair[1] and not pair[1].startswith(NAMED)],
    ids=lambda value: value if isinstance(value, str) else value.method,
)
def test_a_foreign_id_in_the_path_is_forbidden(
    stage: AuthorisationHarness, operation: Operation, path: str
) -> None:
    answer = stage.service.request(
        operation.method, with_ids(path, stage.foreign), operation.example, who=stage.token
    )
    assert_refused(answer, 403, "permission_denied")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/memories", {"content": "x", "collection_id": "{col}"}),
        ("POST", "/v1/memories/raw", {"content": "x", "collection_id": "{col}"}),
        ("POST", "/v1/memories/batch", {"memories": [{"content": "x"}], "collection_id": "{col}"}),
        (
            "POST",
            "/v1/memories/batch",
            {"memories": [{"content": "x"}, {"content": "y", "collection_id": "{col}"}]},
        ),
        ("POST", "/v1/memory-tools/insert", {"content": "x", "collection_id": "{col}"}),
        (
            "POST",
            "/v1/memory-tools/replace",
            {"memory_id": "{mem}", "old_content": "Eve's secret.", "new_content": "y"},
        ),
        ("POST", "/v1/memory-tools/rethink", {"memory_id": "{mem}"}),
        (
            "POST",
            "/v1/memory-tool",
            {"command": "view", "path": "/memories", "collection_id": "{col}"},
        ),
        (
            "POST",
            "/v1/memory-tool",
            {
                "command": "create",
                "path": "/memories/a",
                "file_text": "x",
                "collection_id": "{col}",
            },
        ),
        ("POST", "/v1/memories/process", {"content": "x", "collection_id": "{col}"}),
        ("POST", "/v1/memories", {"content": "x", "collection_id": "{col}", "infer": True}),
        ("POST", "/v1/memories/merge", {"keep": "{mem}", "duplicates": ["{mem}"]}),
        ("POST", "/v1/knowledge-graph/entities", {"name": "x", "collection_id": "{col}"}),
        (
            "POST",
            "/v1/knowledge-graph/relationships",
            {"source": "{ent}", "target": "x", "type": "knows"},
        ),
        (
            "POST",
            "/v1/knowledge-graph/relationships",
            {"source": "x", "target": "y", "type": "knows", "source_memory_id": "{mem}"},
        ),
        ("POST", "/v1/knowledge-graph/entities/x/merge", {"into": "{ent}"}),
        ("POST", "/v1/knowledge-graph/query", {"entity": "{ent}"}),
        ("GET", "/v1/knowledge-graph/entities?collection_id={col}", None),
        ("GET", "/v1/knowledge-graph/contradictions?memory_id={mem}", None),
        ("POST", "/v1/search/graph", {"entity": "{ent}"}),
        ("GET", "/v1/memories/audit?collection_id={col}", None),
        ("GET", "/v1/memories?collection_id={col}", None),
        ("POST", "/v1/memories/query", {"filters": {"collection_id": "{col}"}}),
        ("POST", "/v1/memories/values", {"field": "user_id", "collection_id": "{col}"}),
        ("POST", "/v1/memories/delete-matching", {"filters": {"collection_id": "{col}"}}),
        ("POST", "/v1/search", {"query": "secret", "collection_id": "{col}"}),
        (
            "POST",
            "/v1/search/advanced",
            {"query": "secret", "filters": {"NOT": {"collection_id": "{col}"}}},
        ),
        (
            "POST",
            "/v1/search",
            {
                "query": "secret",
                "filters": {"OR": [{"collection_id": "{col}"}, {"speaker": "Eve"}]},
            },
        ),
        ("POST", "/v1/search/reason", {"query": "secret", "collection_id": "{col}"}),
        ("POST", "/v1/context", {"query": "secret", "collection_id": "{col}"}),
        ("DELETE", "/v1/memories/all?confirm=delete-all-memories&collection_id={col}", None),
        ("GET", "/v1/webhooks/dead-letters?webhook_id={whk}", None),
        (
            "POST",
            "/v1/learning/decisions",
            {"policy_key": "p", "candidates": [{"action_key": "a"}], "collection_id": "{col}"},
        ),
        (
            "POST",
            "/v1/learning/decisions",
            {"policy_key": "p", "candidates": [{"action_key": "a", "memory_ids": ["{mem}"]}]},
        ),
        (
            "POST",
            "/v1/corrections",
            {"corrected_content": "x", "correction_type": "factual", "memory_id": "{mem}"},
        ),
        (
            "POST",
            "/v1/corrections",
            {"corrected_content": "x", "correction_type": "factual", "collection_id": "{col}"},
        ),
        ("GET", "/v1/corrections?collection_id={col}", None),
        ("GET", "/v1/corrections/relevant?query=x&collection_id={col}", None),
        (
            "POST",
            "/v1/decisions",
            {"decision_type": "x", "description": "y", "collection_id": "{col}"},
        ),
        ("GET", "/v1/decisions/similar?query=x&collection_id={col}", None),
        (
            "POST",
            "/v1/feedback/relevance",
            {"memory_id": "{mem}", "query": "x", "is_relevant": True},
        ),
        (
            "POST",
            "/v1/feedback/ranking",
            {"memory_id": "{mem}", "query": "x", "actual_rank": 1, "expected_rank": 2},
        ),
    ],
)
def test_a_foreign_id_in_the_request_is_forbidden(
    stage: AuthorisationHarness, method: str, path: str, body: Any
) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(item) for name, item in value.items()}
        if isinstance(value, list):
            return [filled(item) for item in value]
        return value.format(**stage.foreign) if isinstance(value, str) else value

    assert_refused(
        stage.service.request(method, filled(path), filled(body), who=stage.token),
        403,
        "permission_denied",
    )


@pytest.mark.parametrize(
    ("path", "prefix"),
    [("/v1/memories/bulk-delete", "mem"), ("/v1/collections/bulk-delete", "col")],
)
def test_a_foreign_id_in_a_list_is_forbidden_by_itself(
    stage: AuthorisationHarness, path: str, prefix: str
) -> None:
    answer = stage.service.request("POST", path, {"ids": [stage.foreign[prefix]]}, who=stage.token)
    assert answer.json() == {
        "deleted": 0,
        "not_found": 0,
        "results": [{"id": stage.foreign[prefix], "status": "forbidden"}],
    }


def test_no_probe_did_any_harm(stage: AuthorisationHarness) -> None:
    """After all of the above, what the stranger owns is as it was."""
    memories = stage.service.request("GET", "/v1/memories", who=stage.stranger).json()
    assert [memory["content"] for memory in memories["items"]] == ["Eve's truth.", "Eve's secret."]
    assert (
        stage.service.request(
            "GET", f"/v1/collections/{stage.foreign['col']}", who=stage.stranger
        ).json()["name"]
        == "Eve's"
    )
    assert (
        stage.service.request(
            "POST", "/v1/search", {"query": "Eve's secret"}, who=stage.token
        ).json()["results"]
        == []
    )
    assert (
        stage.service.request(
            "POST",
            "/v1/search",
            {"query": "Eve's secret", "relevance": "all"},
            who=stage.stranger,
        ).json()["total"]
        == 2
    )


# --- the end of a credential ----------------------------------------------------------------------


def test_a_deleted_key_is_refused_from_the_next_request_on(stage: AuthorisationHarness) -> None:
    minted = stage.service.mint(stage.token, "admin")
    assert stage.service.request("GET", "/v1/auth/me", who=minted["key"]).status_code == 200
    assert (
        stage.service.request(
            "DELETE", f"/v1/auth/api-keys/{minted['id']}", who=stage.token
        ).status_code
        == 204
    )
    for operation, path in OF_TENANTS:
        assert_refused(stage.try_out(operation, path, minted["key"]), 401, "invalid_api_key")


def test_a_key_that_deletes_itself_is_gone_too(stage: AuthorisationHarness) -> None:
    minted = stage.service.mint(stage.token, "admin")
    assert (
        stage.service.request(
            "DELETE", f"/v1/auth/api-keys/{minted['id']}", who=minted["key"]
        ).status_code
        == 204
    )
    assert_refused(
        stage.service.request("DELETE", f"/v1/auth/api-keys/{minted['id']}", who=minted["key"]),
        401,
        "invalid_api_key",
    )


def test_a_logged_out_token_is_refused_and_others_are_not(stage: AuthorisationHarness) -> None:
    login = {"email": "ada@example.com", "password": PASSWORD}
    token = stage.service.request("POST", "/v1/auth/login", login).json()["access_token"]
    assert stage.service.request("POST", "/v1/auth/logout", who=token).status_code == 204
    for operation, path in OF_TENANTS:
        assert_refused(stage.try_out(operation, path, token), 401, "invalid_api_key")
    assert stage.service.request("GET", "/v1/auth/me", who=stage.token).status_code == 200


def test_a_replay_needs_a_live_credential(stage: AuthorisationHarness) -> None:
    minted = stage.service.mint(stage.token, "write")
    written = {"content": "Kept under a key."}
    first = stage.service.request(
        "POST",
        "/v1/memories",
        written,
        who=minted["key"],
        Idempotency_Key="replayed-by-the-revoked",
    )
    assert first.status_code == 201
    assert (
        stage.service.request(
            "DELETE", f"/v1/auth/api-keys/{minted['id']}", who=stage.token
        ).status_code
        == 204
    )
    again = stage.service.request(
        "POST",
        "/v1/memories",
        written,
        who=minted["key"],
        Idempotency_Key="replayed-by-the-revoked",
    )
    assert_refused(again, 401, "invalid_api_key")
    read_only = stage.service.request(
        "POST",
        "/v1/memories",
        written,
        who=stage.keys["read"],
        Idempotency_Key="replayed-by-the-revoked",
    )
    assert_refused(read_only, 403, "permission_denied")
