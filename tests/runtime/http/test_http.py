"""The gateway over real HTTP: a uvicorn server, a handful of operations, and shards that note what
reaches them.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from typing import Any

import pytest
import uvicorn

from runtime.api.operation import (
    Call,
    Reply,
)
from runtime.http import bodies, build_asgi
from runtime.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, URL_BYTES_MAX
from runtime.settings import Settings
from runtime.telemetry import Telemetry
from tests.support.note_service import (
    AUTHORIZED,
    CANARY,
    FLAT,
    JSON,
    KEY,
    OPERATOR,
    REGISTRY,
    SECRETS,
    SLOT,
    Note,
    NotingShards,
    Pages,
    Service,
    assert_common,
    assert_error,
    build,
    through,
)


@pytest.fixture(scope="module")
def service():
    shards = NotingShards()
    app = build_asgi(REGISTRY, Settings(), shards, SECRETS, Telemetry())
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, proxy_headers=False, http="httptools")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield Service(listening.getsockname()[1], shards)
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(autouse=True)
def _fresh(request):
    if "service" in request.fixturenames:
        shards = request.getfixturevalue("service").shards
        shards.calls.clear()
        shards.statuses = [{"shard": 0, "open": True, "sequence": 41}]


# --- the ordinary path ----------------------------------------------------------------------------


def test_a_write_arrives_as_a_call(service):
    body = b'{"content": "hello", "unknown": 1, "metadata": {"a": [1, null, "\\u00e9"]}}'
    answer = service.post(
        body,
        **{
            "Idempotency-Key": "key-1",
            "Prefer": "respond-async, wait=3",
            "If-Match": '"2"',
            "X-Request-ID": "mine",
        },
    )
    assert answer.status == 201
    assert answer.json == {"operation": "notes.create", "path": {}}
    assert answer.headers["x-request-id"] == "mine"
    assert answer.headers["location"] == "/v1/notes/%C3%A9%0D%0Ax"
    assert answer.headers["cache-control"] == "no-store"
    assert_common(answer)
    call = service.last
    assert (call.operation, call.slot, call.credential.kind, call.request_id) == (
        "notes.create",
        SLOT,
        "key",
        "mine",
    )
    assert call.body == Note(content="hello", metadata={"a": [1, None, "é"]})
    assert (call.idempotency_key, call.prefer, call.if_match) == (
        "key-1",
        {"respond-async": "", "wait": "3"},
        '"2"',
    )
    assert (len(call.fingerprint), len(call.seed), call.client, call.rejected) == (
        32,
        32,
        "127.0.0.1",
        None,
    )
    assert abs(call.now_ms - time.time() * 1000) < 10_000


def test_only_a_key_costs_a_fingerprint(service):
    service.post(b'{"content": "hello"}')
    assert (service.last.idempotency_key, service.last.fingerprint) == (None, b"")
    service.post(b'{"content":"hello","size":1}', **{"Idempotency-Key": "k"})
    first = service.last.fingerprint
    service.post(b' {"size": 1, "content": "hello"}', **{"Idempotency-Key": "k"})
    assert service.last.fingerprint == first


def test_reads_take_query_and_path(service):
    assert service("GET", "/v1/notes/?limit=7&tag=a&tag=b&cursor=&x=1", AUTHORIZED).status == 200
    assert service.last.query == Pages(limit=7, tag=["a", "b"])
    assert service("GET", "/v1/all-notes", AUTHORIZED).json["operation"] == "notes.list"
    assert service.last.query == Pages()
    answer = service(
        "GET", "/v1/notes/a%2Fb%20c/", {**AUTHORIZED, "Idempotency-Key": "ignored on GET"}
    )
    assert answer.json["path"] == {"id": "a/b c"}
    assert answer.headers["etag"] == '"1"'
    assert service.last.idempotency_key is None


def test_head_is_get_without_a_body(service):
    got, head = (
        service("GET", "/v1/notes/1", AUTHORIZED),
        service("HEAD", "/v1/notes/1", AUTHORIZED),
    )
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))


def test_204_has_no_body(service):
    answer = service("DELETE", "/v1/notes/1", AUTHORIZED)
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers and "content-length" not in answer.headers
    assert_common(answer)


def test_a_flow_runs_in_the_gateway(service):
    assert service("POST", "/v1/think", JSON, b'{"content": "x"}').json == {"thought": "x"}
    assert service("GET", "/v1/billing/tiers").json == {"tiers": []}
    assert [call.stage for call in service.shards.calls] == ["begin", "end"], (
        "its shard is asked before and told after"
    )


def test_public_operations_find_their_slot_in_the_body(service):
    assert (
        service(
            "POST", "/v1/auth/register", {"Content-Type": "application/json"}, b'{"email": "a@b.c"}'
        ).status
        == 201
    )
    assert (service.last.slot, service.last.credential) == (5, None)
    assert_error(
        service("POST", "/v1/auth/register", {"Content-Type": "application/json"}, b"{}"),
        422,
        "validation_error",
        "validation_error",
    )
    assert len(service.shards.calls) == 1


def test_internal_operations_take_the_operator_alone(service):
    body = b'{"email": "a@b.c"}'
    headers = {"Content-Type": "application/json"}
    assert_error(
        service("POST", "/v1/internal/close", headers, body), 401, "auth_error", "missing_api_key"
    )
    assert_error(
        service("POST", "/v1/internal/close", JSON, body),
        403,
        "permission_error",
        "permission_denied",
    )
    assert service.shards.calls == []
    assert service("POST", "/v1/internal/close", {**headers, **OPERATOR}, body).status == 200
    assert (service.last.slot, service.last.credential.kind) == (5, "operator")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a", True),
        ("x" * 128, True),
        ("!~-{}", True),
        ("x" * 129, False),
        ("x" * 200, False),
        ("a b", False),
        ("é", False),
    ],
)
def test_request_ids(service, given, kept):
    for path in ("/v1/health", "/nowhere"):
        returned = service("GET", path, {"X-Request-ID": given.encode("latin-1")}).headers[
            "x-request-id"
        ]
        assert (returned == given) is kept
        assert re.fullmatch(r"[!-~]{1,128}", returned)
    assert (
        service("GET", "/v1/health").headers["x-request-id"]
        != service("GET", "/v1/health").headers["x-request-id"]
    )


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "missing_api_key"),
        ("", "missing_api_key"),
        ("Bearer", "missing_api_key"),
        ("Basic dXNlcjpwYXNz", "invalid_api_key"),
        ("Bearer garbage", "invalid_api_key"),
        ("Bearer " + KEY[:-1] + ("0" if KEY[-1] != "0" else "1"), "invalid_api_key"),
        ("Bearer " + KEY + "00", "invalid_api_key"),
        ("Bearer mem_sk_" + "0" * 64, "invalid_api_key"),
        ("Bearer eyJhbGciOiJub25lIn0.e30.", "invalid_api_key"),
        ("Bearer \xe9", "invalid_api_key"),
    ],
)
def test_no_usable_credential_is_401_before_the_body_is_looked_at(service, header, code):
    headers = {"Content-Type": "text/plain"} | (
        {} if header is None else {"Authorization": header.encode("latin-1")}
    )
    answer = service("POST", "/v1/notes", headers, b"nonsense")
    assert_error(answer, 401, "auth_error", code)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert service.shards.calls == []


def test_token_is_an_alias_of_bearer(service):
    assert service("GET", "/v1/notes", {"Authorization": f"Token {KEY}"}).status == 200
    assert service("GET", "/v1/notes", {"authorization": f"bearer {KEY}"}).status == 200


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"{", {}),
        (b'{"content": NaN}', {}),
        (b'{"metadata": {"a": Infinity}, "content": "x"}', {}),
        (b'{"content": "\\ud800"}', {}),
        (b'{"content": "\xff"}', {}),
        (b"[]", {}),
        (b"null", {}),
        (b'"zebra-in-the-attic"', {}),
        (b'{"content": "x", "metadata": {"a": ' + b"[" * 63 + b"]" * 63 + b"}}", {}),
        (b'{"a":' * 200_000, {}),
        (b'{"content": "x"}', {"Content-Type": "text/plain"}),
        (b'{"content": "x"}', {"Content-Type": "application/json; charset=utf-16"}),
        (b'{"content": "x"}', {"Idempotency-Key": ""}),
        (b'{"content": "x"}', {"Idempotency-Key": "k" * 256}),
    ],
)
def test_what_cannot_be_read_is_400_and_counted_by_the_shard(service, body, headers):
    answer = service.post(body, **headers)
    assert_error(answer, 400, "invalid_request_error", "invalid_request")
    assert CANARY.encode() not in answer.body
    assert service.last.rejected.status == 400
    assert service.last.body is None


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        (b"{}", ["body", "content"]),
        (b'{"content": null}', ["body", "content"]),
        (b'{"content": 12}', ["body", "content"]),
        (b'{"content": ""}', ["body", "content"]),
        (b'{"content": "x", "size": "zebra-in-the-attic"}', ["body", "size"]),
        (b'{"content": "x", "size": 99999}', ["body", "size"]),
        (b'{"content": "x", "metadata": "zebra-in-the-attic"}', ["body", "metadata"]),
        (b'{"content": ["zebra-in-the-attic"]}', ["body", "content"]),
    ],
)
def test_what_does_not_fit_is_422_and_echoes_nothing(service, body, loc):
    answer = service.post(body, **{"Idempotency-Key": "k"})
    error = assert_error(answer, 422, "validation_error", "validation_error")
    (finding,) = error["details"]
    assert set(finding) == {"loc", "msg", "type"}
    assert finding["loc"] == loc
    assert (
        CANARY.encode() not in answer.body
        and b"99999" not in answer.body
        and b"pydantic" not in answer.body
    )
    assert (service.last.rejected.status, service.last.fingerprint) == (422, b"")


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=0", 422), ("limit=101", 422), ("limit=zebra-in-the-attic", 422), ("cursor=%ff", 400)],
)
def test_queries_are_checked_as_bodies_are(service, query, status):
    answer = service("GET", f"/v1/notes?{query}", AUTHORIZED)
    assert answer.status == status
    assert CANARY.encode() not in answer.body
    assert service.last.rejected.status == status
    if status == 422:
        assert answer.json["error"]["details"][0]["loc"] == ["query", "limit"]


def test_a_rejected_flow_goes_to_the_shard_too(service):
    assert service("POST", "/v1/think", JSON, b"{}").status == 422
    assert service.last.operation == "notes.think"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/nowhere",
        "//v1/notes",
        "/v1//notes",
        "/v1/../v1/notes",
        "/v1/notes/%00",
        "/v1/notes/..",
        "/v1/notes/%ff",
        "/v1/notes/1/2",
    ],
)
def test_unknown_and_ambiguous_paths_are_404(service, path):
    assert_error(service("GET", path, AUTHORIZED), 404, "not_found_error", "resource_not_found")
    assert service.shards.calls == []


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("OPTIONS", "/v1/notes", "GET, HEAD, POST"),
        ("PUT", "/v1/notes", "GET, HEAD, POST"),
        ("GET", "/v1/notes/all", "DELETE"),
        ("POST", "/v1/health", "GET, HEAD"),
        ("TRACE", "/v1/notes/1", "DELETE, GET, HEAD"),
    ],
)
def test_a_method_the_path_lacks_is_405(service, method, path, allow):
    answer = service(method, path)
    assert_error(answer, 405, "http_exception", None)
    assert answer.headers["allow"] == allow


def test_sizes(service):
    assert_error(
        service("GET", "/v1/notes?cursor=" + "x" * URL_BYTES_MAX), 414, "http_exception", None
    )
    assert_error(service("GET", "/v1/notes/" + "x" * URL_BYTES_MAX), 414, "http_exception", None)
    big = {f"X-Big-{i}": "x" * 8000 for i in range(HEADER_BYTES_MAX // 8000 + 1)}
    assert_error(service("GET", "/v1/notes", {**AUTHORIZED, **big}), 431, "http_exception", None)


def test_a_body_over_the_limit_is_refused_from_its_length_and_while_it_streams(service):
    answer = service.raw(
        b"POST /v1/notes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
        b"application/json\r\nAuthorization: Bearer "
        + KEY.encode()
        + b"\r\nContent-Length: 99999999999\r\n\r\n"
    )
    assert answer.split()[1] == b"413"
    streamed = service(
        "POST",
        "/v1/notes",
        JSON,
        (b" " * 65536 for _ in range(BODY_BYTES_MAX // 65536 + 1)),
        encode_chunked=True,
    )
    assert_error(streamed, 413, "http_exception", "invalid_request")
    assert service.last.rejected.status == 413
    exact = b'{"content": "' + b"x" * (BODY_BYTES_MAX - 15) + b'"}'
    assert len(exact) == BODY_BYTES_MAX
    assert service.post(exact).status == 201
    assert service.post(exact + b" ").status == 413


def test_headers_that_may_be_there_once(service):
    head = (
        f"GET /v1/notes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\n"
    )
    for lines in (
        "Authorization: Bearer other",
        "Idempotency-Key: k\r\nIdempotency-Key: l",
        'If-Match: "1"\r\nIf-Match: "2"',
    ):
        assert service.raw(f"{head}{lines}\r\n\r\n".encode()).split()[1] == b"400"
    assert (
        service.raw(
            f"{head}X-Any: 1\r\nX-Any: 2\r\n".encode()
            + b"Prefer: respond-async\r\nPrefer: wait=2\r\n\r\n"
        ).split()[1]
        == b"200"
    )
    assert service.last.prefer == {"respond-async": "", "wait": "2"}


# --- errors on the wire ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "category", "code", "headers"),
    [
        ("missing", 404, "not_found_error", "resource_not_found", {}),
        ("collection", 404, "not_found_error", "collection_not_found", {}),
        ("denied", 403, "permission_error", "permission_denied", {}),
        ("busy", 409, "conflict_error", None, {"retry-after": "1"}),
        ("different", 409, "conflict_error", None, {"x-should-retry": "false"}),
        ("stale", 412, "conflict_error", None, {}),
        (
            "rate",
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            {"retry-after": "9", "x-ratelimit-limit": "60"},
        ),
        (
            "quota",
            429,
            "rate_limit_error",
            "quota_exceeded",
            {"retry-after": "99", "x-ratelimit-limit": "1000"},
        ),
        ("down", 503, "server_error", None, {"retry-after": "1"}),
        ("upstream", 504, "server_error", None, {}),
        ("crash", 500, "server_error", "internal_error", {}),
    ],
)
def test_errors(service, kind, status, category, code, headers):
    answer = service("GET", f"/v1/failures/{kind}", AUTHORIZED)
    error = assert_error(answer, status, category, code)
    assert {
        name: answer.headers.get(name)
        for name in ("retry-after", "x-ratelimit-limit", "x-should-retry")
    } == {
        "retry-after": None,
        "x-ratelimit-limit": None,
        "x-should-retry": None,
        **headers,
    }
    assert error.get("status") == (429 if status == 429 else None)
    assert CANARY.encode() not in answer.body


def test_a_feature_the_tier_lacks_has_its_own_flat_body(service):
    answer = service("GET", "/v1/failures/feature", AUTHORIZED)
    assert (answer.status, answer.json) == (403, FLAT)
    assert_common(answer)


# --- the gateway's own operations -----------------------------------------------------------------


def test_health_follows_the_shards(service):
    answer = service("GET", "/v1/health")
    assert (answer.status, answer.json["status"], answer.json["shards"]) == (
        200,
        "ok",
        {"open": 1, "total": 1},
    )
    assert (answer.json["version"], answer.json["build"]) == (
        answer.headers["x-service-version"],
        answer.headers["x-service-build"],
    )
    service.shards.statuses = [
        {"shard": 0, "open": True},
        {"shard": 1, "open": False, "error": "lost"},
    ]
    answer = service("GET", "/v1/health")
    assert (answer.status, answer.json["status"], answer.json["shards"]) == (
        503,
        "degraded",
        {"open": 1, "total": 2},
    )
    assert answer.headers["retry-after"] == "1"


def test_health_before_the_first_shard_is_open():
    shards = NotingShards()
    shards.statuses = []
    app = build_asgi(REGISTRY, Settings(), shards, SECRETS, Telemetry())
    answer = through(app, "GET", "/v1/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "starting")


def test_metrics_count_by_operation_and_show_the_shards(service):
    service("GET", "/v1/notes/1", AUTHORIZED)
    service("GET", "/somewhere/else")
    answer = service("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert b'operation="notes.read"' in answer.body and b'operation="unmatched"' in answer.body
    assert b"somewhere" not in answer.body
    assert b'mneme_shard_sequence{shard="0"} 41.0' in answer.body
    assert b'mneme_placement_version{gateway="0"} 17.0' in answer.body


def test_description_and_page(service):
    document = service("GET", "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert {"/v1/notes", "/v1/all-notes", "/v1/health", "/metrics", "/docs"} <= set(
        document["paths"]
    )
    page = service("GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert b"/v1/failures/{kind}" in page.body
    assert (
        b"<script" not in page.body and b"http://" not in page.body and b"https://" not in page.body
    )


# --- disconnects: moments a plain client cannot make ----------------------------------------------


def asgi_scope(path: str, body_length: int) -> dict[str, Any]:
    headers = [(name.lower().encode(), value.encode()) for name, value in JSON.items()] + [
        (b"content-length", b"%d" % body_length)
    ]
    return {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }


def test_a_write_goes_on_when_its_client_has_gone():
    class SlowShards(NotingShards):
        async def execute(self, call: Call) -> Reply:
            reached.set()
            await release.wait()
            done.set()
            return Reply(201, b"{}")

    async def scenario() -> None:
        app = build_asgi(REGISTRY, Settings(), SlowShards(), SECRETS, Telemetry())
        message = {"type": "http.request", "body": b'{"content": "x"}', "more_body": False}
        request = asyncio.create_task(
            app(asgi_scope("/v1/notes", 16), lambda: _soon(message), lambda message: _soon(None))
        )
        await reached.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        release.set()
        async with asyncio.timeout(5):
            await done.wait()

    reached, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    asyncio.run(scenario())


async def _soon(value: Any) -> Any:
    return value


def exchange(app: Any, receive: Any) -> list[dict[str, Any]]:
    """One POST whose body comes from `receive` -> the messages sent back."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(asgi_scope("/v1/notes", 100), receive, send))
    return sent


def test_a_client_that_leaves_inside_its_body_gets_no_answer():
    app, shards = build()
    parts = [
        {"type": "http.request", "body": b'{"con', "more_body": True},
        {"type": "http.disconnect"},
    ]
    assert exchange(app, lambda: _soon(parts.pop(0))) == []
    assert shards.calls == []


def test_a_body_that_does_not_arrive_is_400(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_READ_SECONDS_MAX", 0.02)
    app, shards = build()
    sent = exchange(app, lambda: asyncio.Event().wait())
    assert sent[0]["status"] == 400
    assert shards.calls[-1].rejected.status == 400


def test_the_clock_offset_reaches_the_call():
    shards = NotingShards()
    app = build_asgi(
        REGISTRY,
        Settings.load({"clock": {"offset_seconds": 1_000_000}}),
        shards,
        SECRETS,
        Telemetry(),
    )
    through(app, "GET", "/v1/notes", headers=AUTHORIZED)
    assert shards.calls[-1].now_ms / 1000 - time.time() > 999_000


def test_websockets_are_refused():
    app, _ = build()
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app({"type": "websocket"}, lambda: _soon({"type": "websocket.connect"}), send))
    assert sent == [{"type": "websocket.close", "code": 1000}]
