"""Every operation answers once with success, and what it answers is what its model documents: no
field more, none less.

A tour walks through the service as one account would. Its answers are collected by operation; an
operation that no tour visits fails, so a new one needs its stop here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

import serve_app
from runtime.api.operation import Operation
from runtime.errors import RateLimited
from tests.contract.schemas import ERROR_ENVELOPE, strict_schema
from tests.support import upstream
from tests.support.in_process import in_process
from tests.support.mailbox import mailbox
from tests.support.stripe_endpoint import stripe_endpoint
from tests.support.tour import (
    FULL,
    ID,
    IDS,
    ISO,
    STRIPE_SECRET,
    TIMES,
    Tour,
    accounts,
    answers,
    collections,
    documents,
    feedback,
    files,
    graph,
    ingestion,
    memories,
    moving,
    outcomes,
    search,
    the_end,
    usage_and_billing,
    webhooks,
)

OPERATIONS = list(serve_app.registry().operations.values())
TIMES |= {
    "first_memory_at",
    "last_memory_at",
    "last_delivery_at",
    "next_attempt_at",
    "previous_secret_expires_at",
}
TIMES |= {"issued_at", "paid_at", "period_start", "period_end", "effective_at"}
IDS |= {"webhook_id", "event_id", "delivery_id"}
IDS |= {"decision_id", "observation_id", "observation_ids", "superseded_memory_id"}


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
        mailbox() as box,
        in_process(
            tmp_path_factory.mktemp("tour"),
            webhooks__allow_private_networks=True,
            webhooks__backoff_seconds_min=0.01,
            llm__base_url=endpoint.url,
            billing__provider="stripe",
            billing__stripe_api_key="sk_test",
            billing__stripe_signing_secret=STRIPE_SECRET,
            billing__stripe_api_base=stripe.url,
            auth__verify_email=True,
            **box.settings,
        ) as service,
    ):
        whole = Tour(service, box)
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
        assert (
            answer.headers["Content-Type"].partition(";")[0]
            == operation.content_type.partition(";")[0]
        )
        if operation.content_type.startswith("text/"):
            continue
        for line in (
            answer.content.splitlines()
            if operation.content_type == "application/x-ndjson"
            else [answer.content]
        ):
            Draft202012Validator(strict_schema(operation.response)).validate(json.loads(line))
            # The ids of chats and models are those of the language model's endpoint.
            if not operation.name.startswith("chat."):
                assert_well_formed(json.loads(line))


INDEXED = [o for o in OPERATIONS if 202 in o.statuses and "searchable" in o.response.model_fields]


@pytest.mark.parametrize("operation", INDEXED, ids=lambda operation: operation.name)
def test_pending_and_ready_writes_say_where_they_are(tour: Tour, operation: Operation) -> None:
    """Rule W: searchable false goes with 202, and with 202 go Retry-After, Location, status_url and
    outbox_event_id.
    """
    for answer in tour.answers[operation.name]:
        body, pending = answer.json(), answer.status_code == 202
        if (
            not body.get("created", 1)
            or ("poll_url" in body and "searchable" not in body)
            or body.get("searchable", 1) is None
        ):
            # a batch of which every item was refused, or a look at a file, made nothing that could
            # be looked at
            continue
        assert body["searchable"] is not pending
        assert body["processing_status"] == ("processing" if pending else "completed")
        assert ("Retry-After" in answer.headers) is pending
        assert answer.headers["Location"] == body["status_url"]
        assert tour.service.request("GET", body["status_url"], who=tour.token).status_code in (
            200,
            404,
        )
        assert ID.fullmatch(body["outbox_event_id"])


def test_both_ends_of_rule_w_were_seen(tour: Tour) -> None:
    for name in (
        "memories.create",
        "memories.create_raw",
        "memories.create_batch",
        "memories.update",
    ):
        assert {answer.status_code for answer in tour.answers[name]} == set(
            tour.service.registry.operations[name].statuses
        )


def test_metrics_count_what_was_delivered(tour: Tour) -> None:
    text = tour.service.request("GET", "/metrics").text
    figures = dict(re.findall(r'^mneme_shard_(\w+)\{shard="0"\} (\S+)$', text, re.MULTILINE))
    assert float(figures["outbound_attempts"]) >= float(figures["outbound_failed"]) >= 5
    assert {
        "outbound_2xx",
        "outbound_timeout",
        "lanes_waiting",
        "lanes_oldest_age_ms",
        "jobs_waiting",
    } <= set(figures)


def test_texts_come_back_exactly_as_sent(tour: Tour) -> None:
    created = tour.answers["memories.create"][0].json()
    expected = {
        **FULL,
        "occurred_at": "2026-05-08T13:56:00.123Z",
        "expires_at": "2999-01-01T00:00:00.000Z",
        "session_id": "run-1",
    }
    assert {name: created[name] for name in expected} == expected


def test_search_answers_keep_their_promises(tour: Tour) -> None:
    for answer in (
        tour.answers["search.search"]
        + tour.answers["search.advanced"]
        + tour.answers["search.similar"]
    ):
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


# --- answers that are errors ----------------------------------------------------------------------


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
    "a number beyond all bounds": (
        400,
        ("POST", "/v1/memories", b'{"content": "x", "metadata": {"n": 1e999}}'),
        JSON,
    ),
    "half a character": (400, ("POST", "/v1/memories", b'{"content": "\\ud800"}'), JSON),
    "broken UTF-8": (400, ("POST", "/v1/memories", b'{"content": "\xff"}'), JSON),
    "too deep": (
        400,
        ("POST", "/v1/memories", b'{"metadata": ' + b"[" * 65 + b"]" * 65 + b"}"),
        JSON,
    ),
    "far too deep": (400, ("POST", "/v1/memories", b"[" * 100_000), JSON),
    "a form": (
        400,
        ("POST", "/v1/memories", b"content=x"),
        {"Content_Type": "application/x-www-form-urlencoded"},
    ),
    "no content": (422, ("POST", "/v1/memories", {}), {}),
    "a content of white space": (422, ("POST", "/v1/memories", {"content": " \n\t"}), {}),
    "a content too long": (422, ("POST", "/v1/memories", {"content": "x" * 100_001}), {}),
    "metadata too large": (
        422,
        ("POST", "/v1/memories", {"content": "x", "metadata": {"a": "x" * 16_384}}),
        {},
    ),
    "a wrong type": (422, ("POST", "/v1/memories", {"content": 7}), {}),
    "an empty id": (422, ("POST", "/v1/memories", {"content": "x", "collection_id": ""}), {}),
    "a limit out of range": (422, ("GET", "/v1/memories?limit=101"), {}),
    "a limit that is none": (422, ("GET", "/v1/memories?limit=ten"), {}),
    "a bad cursor": (400, ("GET", "/v1/memories?cursor=%00%ff"), {}),
    "a cursor in other letters": (400, ("GET", "/v1/memories?cursor=caf%C3%A9"), {}),
    "a cursor longer than any": (400, ("GET", f"/v1/memories?cursor={'A' * 1025}"), {}),
    "no confirmation": (400, ("DELETE", "/v1/memories/all"), {}),
    "an empty idempotency key": (
        400,
        ("POST", "/v1/memories", {"content": "x"}),
        {"Idempotency_Key": ""},
    ),
    "a long idempotency key": (
        400,
        ("POST", "/v1/memories", {"content": "x"}),
        {"Idempotency_Key": "k" * 256},
    ),
    "a malformed id": (404, ("GET", "/v1/memories/mem_1"), {}),
    "an id of another kind": (404, ("GET", "/v1/collections/{memory}"), {}),
    "an unknown collection": (
        404,
        ("POST", "/v1/memories", {"content": "x", "collection_id": "col_1"}),
        {},
    ),
    "a filter that is none": (
        422,
        ("POST", "/v1/search", {"query": "x", "filters": {"colour": "blue"}}),
        {},
    ),
    "a facet that is none": (
        422,
        ("POST", "/v1/search/advanced", {"query": "x", "facets": ["tags", "colour"]}),
        {},
    ),
    "a boost out of range": (
        422,
        ("POST", "/v1/search/advanced", {"query": "x", "boosts": {"importance": 99}}),
        {},
    ),
    "a range that ends before it starts": (
        422,
        (
            "POST",
            "/v1/search/advanced",
            {"query": "x", "date_range_start": "2026-01-02", "date_range_end": "2026-01-01"},
        ),
        {},
    ),
    "an operator that is none": (
        422,
        ("POST", "/v1/search", {"query": "x", "filters": {"tags": {"like": "b"}}}),
        {},
    ),
    "a filter too deep": (
        422,
        ("POST", "/v1/search", {"query": "x", "filters": {"NOT": [{"AND": [{"NOT": 1}]}]}}),
        {},
    ),
    "a version that is past": (
        412,
        ("PATCH", "/v1/memories/{memory}", {"title": "x"}),
        {"If_Match": '"9"'},
    ),
    "a text that changed": (
        409,
        (
            "POST",
            "/v1/memory-tools/replace",
            {"memory_id": "{memory}", "old_content": "a", "new_content": "b"},
        ),
        {},
    ),
    "a body too large": (413, ("POST", "/v1/memories", b" " * (10 * 1024 * 1024 + 1)), JSON),
    "an address too long": (414, ("GET", "/v1/memories?tag=" + "x" * 9_000), {}),
    "headers too large": (431, ("GET", "/v1/memories"), {"X_Much": "x" * 40_000}),
}


@pytest.fixture(scope="module")
def memory(tour: Tour) -> str:
    answer = tour.service.request(
        "POST", "/v1/memories", {"content": "To be refused around."}, who=tour.token
    )
    return answer.json()["id"]


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_has_the_one_shape(tour: Tour, memory: str, what: str) -> None:
    status, (method, path, *body), headers = REFUSALS[what]
    content = body[0] if body else None
    if isinstance(content, dict):
        content = json.loads(json.dumps(content).replace("{memory}", memory))
    answer = tour.service.request(
        method, path.replace("{memory}", memory), content, who=tour.token, **headers
    )
    assert answer.status_code == status, answer.text
    assert_error(answer, what)


UNKNOWN = {
    "/v1/knowledge-graph/query": (404, {"entity": "Nobody"}),
    "/v1/memories/merge": (404, {"keep": "mem_nowhere", "duplicates": ["mem_elsewhere"]}),
    "/v1/rl/rollback": (404, {"version": 99}),
    "/v1/account/receipts": (404, {"receipt": "of no erasure"}),
    "/v1/auth/verify-email": (403, {"token": "of nobody"}),
    "/v1/auth/password-reset/confirm": (403, {"token": "of nobody", "new_password": "x" * 10}),
}


@pytest.mark.parametrize("path", UNKNOWN)
def test_what_is_refused_for_what_a_body_names_is_documented(tour: Tour, path: str) -> None:
    status, body = UNKNOWN[path]
    answer = tour.service.request("POST", path, body, who=tour.token)
    assert answer.status_code == status, answer.text
    document = tour.service.request("GET", "/openapi.json").json()
    assert str(status) in document["paths"][path]["post"]["responses"]


def assert_error(answer: httpx.Response, what: str = "") -> None:
    """The envelope of specification part 7, with the request's own id, and nothing that was
    sent.
    """
    assert_constant_headers(answer)
    Draft202012Validator(ERROR_ENVELOPE).validate(answer.json())
    error = answer.json()["error"]
    assert error["status_code"] == answer.status_code
    assert error["request_id"] == answer.headers["X-Request-ID"]
    assert ("details" in error) == (answer.status_code == 422)
    assert ("Allow" in answer.headers) == (answer.status_code == 405)


def test_a_throttled_call_says_when_and_how_much(tour: Tour) -> None:
    tour.service.shards.fault = RateLimited(
        "The limit of 30 requests a minute is reached. Retry in 7 s.",
        limit=30,
        retry_after_seconds=7,
    )
    answer = tour.service.request("GET", "/v1/memories", who=tour.token)
    tour.service.shards.fault = None
    assert (
        answer.status_code,
        answer.headers["Retry-After"],
        answer.headers["X-RateLimit-Limit"],
    ) == (429, "7", "30")
    assert_error(answer)


def test_a_defect_tells_nothing_of_itself(tour: Tour) -> None:
    tour.service.shards.fault = ZeroDivisionError("the secret of the universe")
    answer = tour.service.request("GET", "/v1/memories", who=tour.token, X_Request_ID="ours-1")
    tour.service.shards.fault = None
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (500, "ours-1")
    assert "universe" not in answer.text
    assert_error(answer)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc-1", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)],
)
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
    """Times are ISO 8601 in UTC with milliseconds, ids have the shape of ids; whatever is called
    so, however deep.
    """
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
