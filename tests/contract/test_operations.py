"""The declared operations against the specification: each endpoint has exactly one, and each says
all that it has to say.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

import serve_app
from runtime.api.operation import Idempotency, Kind, Operation
from runtime.http import openapi
from tests.contract.schemas import strict_schema
from tests.contract.specification import PARTS

# Specification part 4, by its headings.
ENDPOINTS = {
    "Authentication": """
        POST   /v1/auth/register
        POST   /v1/auth/api-keys
    """,
    "Memories": """
        POST   /v1/memories
        POST   /v1/memories/raw
        POST   /v1/memories/process
        GET    /v1/memories/jobs/{job_id}
        POST   /v1/memories/batch
        GET    /v1/memories
        GET    /v1/memories/{id}
        PATCH  /v1/memories/{id}
        DELETE /v1/memories/{id}
        POST   /v1/memories/bulk-delete
        DELETE /v1/memories/all
    """,
    "Search": """
        POST   /v1/search
        POST   /v1/search/advanced
        GET    /v1/search/similar/{id}
        POST   /v1/search/reason
        POST   /v1/search/graph
    """,
    "Chat": """
        POST   /v1/chat/completions
    """,
    "Profile": """
        GET    /v1/profile
        PATCH  /v1/profile
        POST   /v1/profile/dialectic
        DELETE /v1/profile
    """,
    "Collections": """
        POST   /v1/collections
        GET    /v1/collections
        GET    /v1/collections/default
        GET    /v1/collections/{id}
        PATCH  /v1/collections/{id}
        DELETE /v1/collections/{id}
        POST   /v1/collections/bulk-delete
        DELETE /v1/collections/all
    """,
    "Webhooks": """
        POST   /v1/webhooks
        GET    /v1/webhooks
        GET    /v1/webhooks/{id}
        PUT    /v1/webhooks/{id}
        DELETE /v1/webhooks/{id}
        POST   /v1/webhooks/{id}/test
    """,
    "Usage and billing": """
        GET    /v1/usage
        GET    /v1/usage/history
        GET    /v1/billing/subscription
        POST   /v1/billing/upgrade
        POST   /v1/billing/downgrade
        GET    /v1/billing/invoices
    """,
    "Privacy lifecycle": """
        DELETE /v1/account
        GET    /v1/account/receipts
        POST   /v1/account/receipts
        GET    /v1/account/export
        GET    /v1/account/export/parts
        POST   /v1/account/import
        POST   /v1/account/import/parts
    """,
    "Outcome memory and feedback": """
        POST   /v1/learning/decisions
        GET    /v1/learning/decisions/{id}
        POST   /v1/learning/decisions/{id}/outcomes
        GET    /v1/learning/policies/{key}/insights
        POST   /v1/learning/policies/{key}/evaluate
        GET    /v1/confidence
        POST   /v1/corrections
        GET    /v1/corrections/relevant
        POST   /v1/decisions
        POST   /v1/decisions/log
        GET    /v1/decisions/similar
        POST   /v1/feedback/relevance
        POST   /v1/feedback/ranking
        POST   /v1/feedback/missing
        GET    /v1/feedback/stats
    """,
    "Knowledge graph": """
        GET    /v1/knowledge-graph/entities
        GET    /v1/knowledge-graph/entities/{entity_name}
        POST   /v1/knowledge-graph/entities
        DELETE /v1/knowledge-graph/entities/{entity_name}
        POST   /v1/knowledge-graph/relationships
        DELETE /v1/knowledge-graph/relationships
        POST   /v1/knowledge-graph/query
        GET    /v1/knowledge-graph/timeline/{entity_name}
        GET    /v1/knowledge-graph/contradictions
        GET    /v1/knowledge-graph/stats
    """,
    "Documents": """
        POST   /v1/documents/upload
        GET    /v1/documents
        GET    /v1/documents/{id}
        GET    /v1/documents/{id}/chunks
        DELETE /v1/documents/{id}
    """,
}
# Specification part 8: writes whose key is bound to the record they make.
CANONICAL = """
    POST /v1/memories
    POST /v1/memories/raw
    POST /v1/memories/batch
    POST /v1/memories/process
    POST /v1/memory-tools/insert
    POST /v1/corrections
    POST /v1/learning/decisions
    POST /v1/learning/decisions/{id}/outcomes
"""
# What a request costs in credits, as its example has it; everything else costs nothing.
CREDITS = """
    POST  /v1/memories                       1
    POST  /v1/memories/raw                   1
    POST  /v1/memories/batch                 1
    POST  /v1/memories/import                1
    POST  /v1/memories/process               5
    PATCH /v1/memories/{id}                  1
    POST  /v1/memory-tools/insert            1
    POST  /v1/memory-tools/replace           1
    POST  /v1/memory-tools/rethink           1
    POST  /v1/memory-tool                    1
    POST  /v1/search                         1
    POST  /v1/search/advanced                2
    GET   /v1/search/similar/{id}            1
    POST  /v1/search/graph                   2
    POST  /v1/search/reason                  10
    POST  /v1/context                        2
    POST  /v1/chat/completions               10
    POST  /v1/profile/dialectic              10
    POST  /v1/documents/upload               5
    POST  /v1/knowledge-graph/entities       1
    POST  /v1/knowledge-graph/relationships  1
    POST  /v1/corrections                    1
    GET   /v1/corrections/relevant           1
    GET   /v1/confidence                     1
    POST  /v1/decisions                      1
    GET   /v1/decisions/similar              1
    POST  /v1/learning/decisions             1
    POST  /v1/learning/policies/{key}/evaluate  2
    POST  /v1/feedback/relevance             1
    POST  /v1/feedback/ranking               1
    POST  /v1/feedback/missing               1
    POST  /v1/rl/train                       10
"""
# Flows that answer from what is stored and change nothing of it.
READING_FLOWS = {"search.reason", "chat.completions"}
# A login that is repeated begins another session: its answer is kept for nobody.
REPEATED_ANEW = {"auth.login"}
# Who rules over an account's sessions and secrets may rule over all of it.
RULING = ("/v1/auth/password", "/v1/auth/sessions", "/v1/auth/totp")
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
RATES = {"default", "search", "batch", "media", "register", "login", "access"}

OPERATIONS = list(serve_app.registry().operations.values())
each_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: operation.name
)


def rows(table: str) -> list[tuple[str, str]]:
    return [tuple(line.split()) for line in table.strip().splitlines()]


def shape(path: str) -> str:
    """The path without the names of its parameters."""
    return re.sub(r"{\w+}", "{}", path)


def routes(operation: Operation) -> list[tuple[str, str]]:
    return [(operation.method, shape(path)) for path in (operation.path, *operation.aliases)]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document(serve_app.registry(), "1.2.3")


@pytest.mark.parametrize(
    ("method", "path"), [row for table in ENDPOINTS.values() for row in rows(table)]
)
def test_each_endpoint_of_the_specification_has_one_operation(method: str, path: str) -> None:
    found = [
        operation.name for operation in OPERATIONS if (method, shape(path)) in routes(operation)
    ]
    assert len(found) == 1, f"{method} {path}: {found}"


def test_no_two_operations_share_a_route() -> None:
    taken = [route for operation in OPERATIONS for route in routes(operation)]
    assert len(taken) == len(set(taken))


@each_operation
def test_an_operation_says_what_it_is(operation: Operation) -> None:
    assert operation.summary and not operation.summary.endswith(".")
    assert operation.scope in ("public", "read", "write", "admin")
    assert operation.rate in RATES
    assert all(200 <= status < 300 for status in operation.statuses)
    assert operation.path.startswith("/v1/")
    for path in operation.aliases:
        assert re.findall(r"{\w+}", path) == re.findall(r"{\w+}", operation.path)


def test_the_specification_asks_for_each_operation() -> None:
    assert set(PARTS) == {operation.name for operation in OPERATIONS}
    assert all(re.match(r"part \d", part) for part in PARTS.values())


@each_operation
def test_examples_are_true(operation: Operation) -> None:
    if operation.body is not None:
        assert operation.example is not None, "a body needs an example"
        file = {
            "filename": "a.txt",
            "media_type": "text/plain",
            "size_bytes": 1,
            "sha256": "",
            "blob_name": "",
            "blob_key": b"",
        }
        read = operation.body.model_validate(
            {**operation.example, **({"file": file} if operation.upload else {})}
        )
        assert set(operation.example) <= set(type(read).model_fields), (
            "the example names a field the body does not have"
        )
    if operation.response is None:
        assert operation.statuses == (204,)
        return
    assert operation.example_reply is not None, "a response needs an example"
    Draft202012Validator(strict_schema(operation.response)).validate(operation.example_reply)


@each_operation
def test_what_changes_something_can_be_repeated(operation: Operation) -> None:
    if operation.internal and operation.kind is Kind.FLOW:
        return  # an order to the supervisor: repeated, it finds nothing left to do
    if operation.name in REPEATED_ANEW:
        return
    if operation.kind is not Kind.READ and operation.method != "GET":
        assert operation.method in CHANGING
        assert operation.idempotency is not Idempotency.NONE
    if operation.method in ("PUT", "PATCH", "DELETE"):
        assert operation.kind is not Kind.READ
    if operation.method == "GET":
        streams = operation.content_type == "application/x-ndjson"
        assert (operation.kind, operation.body, operation.idempotency) == (
            Kind.FLOW if streams else Kind.READ,
            None,
            Idempotency.NONE,
        )
        assert operation.finish is None, "a GET leaves nothing behind"


def test_canonical_are_the_writes_that_make_a_record() -> None:
    installed = {
        operation.name: route for operation in OPERATIONS for route in routes(operation)[:1]
    }
    declared = {
        route
        for name, route in installed.items()
        if serve_app.registry().operations[name].idempotency is Idempotency.CANONICAL
    }
    assert declared == {(method, shape(path)) for method, path in rows(CANONICAL)} & set(
        installed.values()
    )


@each_operation
def test_an_operation_costs_what_was_agreed(operation: Operation) -> None:
    prices = {
        (method, shape(path)): int(credits)
        for method, path, credits in (line.split() for line in CREDITS.strip().splitlines())
    }
    credits = operation.credits
    if callable(credits):
        credits = credits(operation.body.model_validate(operation.example))
    assert credits == max(prices.get(route, 0) for route in routes(operation))


@each_operation
def test_scopes_follow_what_an_operation_does(operation: Operation) -> None:
    if operation.internal or operation.scope == "public":
        return
    destroys_everything = operation.method == "DELETE" and operation.path.endswith(
        ("/all", "/account")
    )
    rules_over_keys = operation.path.startswith("/v1/auth/api-keys") and operation.method != "GET"
    rules_over_money = operation.path.startswith("/v1/billing") and operation.method != "GET"
    rules_over_access = operation.path.startswith(RULING)
    if destroys_everything or rules_over_keys or rules_over_money or rules_over_access:
        assert operation.scope == "admin"
    elif operation.path.startswith("/v1/account/") and operation.name != "account.receipts":
        assert operation.scope == "admin", "the account as a whole"
    elif operation.kind is Kind.READ or operation.name in READING_FLOWS:
        assert operation.scope == "read"
    elif operation.scope_of is not None:
        assert (
            operation.scope,
            operation.scope_of(operation.body.model_validate(operation.example)),
        ) == ("read", "write")
    else:
        assert operation.scope in ("write", "admin")


@each_operation
def test_an_operation_is_described(operation: Operation, document: dict[str, Any]) -> None:
    for path in (operation.path, *operation.aliases):
        described = document["paths"].get(path, {}).get(operation.method.lower())
        assert (described is None) == operation.internal
        if described is None:
            continue
        if operation.body is not None:
            kind = "multipart/form-data" if operation.upload else "application/json"
            assert described["requestBody"]["content"][kind]["example"] == operation.example
        assert {str(status) for status in operation.statuses} <= set(described["responses"])
        content = described["responses"][str(operation.statuses[0])].get(
            "content", {"": {"example": None}}
        )
        assert next(iter(content.values()))["example"] == operation.example_reply
        assert {
            parameter["name"]
            for parameter in described["parameters"]
            if parameter.get("in") == "path"
        } == set(re.findall(r"{(\w+)}", path))
        assert {"401", "422"} & set(described["responses"]) or operation.scope == "public"


def test_the_description_is_valid(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()


def test_the_listed_jobs_are_of_the_kinds_that_the_document_names() -> None:
    named = serve_app.registry().operations["memories.jobs.get"].response.model_json_schema()
    listed = [job.name for job in serve_app.registry().jobs.values() if job.listed]
    assert sorted(listed) == sorted(named["properties"]["kind"]["enum"])
