"""A gateway over operations that do next to nothing, and shards that note each call."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from pydantic import Field

from plugins.collections import CollectionNotFound
from runtime import errors, ids
from runtime.api.operation import (
    BEGUN,
    Body,
    Call,
    Flow,
    Idempotency,
    Operation,
    Query,
    Read,
    Reply,
    View,
    Write,
)
from runtime.api.plugin import Plugin, Registry
from runtime.http import build_asgi
from runtime.installation import Secrets
from runtime.settings import Settings
from runtime.telemetry import Telemetry

SECRETS = Secrets(b"s" * 32, b"p" * 32, "mem_op_" + "0" * 64)
SLOT = 77
KEY = ids.make_api_key(SECRETS.service, SLOT, bytes(26))
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
JSON = {**AUTHORIZED, "Content-Type": "application/json"}
OPERATOR = {"Authorization": f"Bearer {SECRETS.operator_token}"}
CANARY = "zebra-in-the-attic"
FLAT = {
    "error": "feature_not_available",
    "feature": "graph_write",
    "message": "Not on your tier.",
    "current_tier": {"name": "free"},
}


class Note(Body):
    content: str = Field(min_length=1)
    size: int = Field(1, ge=1, le=9)
    metadata: dict[str, Any] = Field(default_factory=dict)


class Pages(Query):
    limit: int = Field(50, ge=1, le=100)
    cursor: str | None = None
    tag: list[str] = Field(default_factory=list)


class NoteView(View):
    content: str


class Sign(Body):
    email: str


async def tiers(call: Call, shards: Any, models: Any) -> Reply:
    return Reply(200, b'{"tiers":[]}')


async def think(call: Call, shards: Any, models: Any) -> dict[str, str]:
    return {"thought": call.body.content}


FAILURES = {
    "missing": errors.NotFound("It is gone."),
    "collection": CollectionNotFound(),
    "denied": errors.PermissionDenied("Not yours."),
    "feature": errors.FeatureNotAvailable(FLAT),
    "busy": errors.Conflict("The first is running.", retry_after_seconds=1),
    "different": errors.Conflict("Another request."),
    "stale": errors.PreconditionFailed("Changed meanwhile."),
    "rate": errors.RateLimited("Slow down.", limit=60, retry_after_seconds=9),
    "quota": errors.RateLimited(
        "Used up.", limit=1000, retry_after_seconds=99, code="quota_exceeded"
    ),
    "down": errors.Unavailable("Soon again."),
    "upstream": errors.UpstreamTimeout("The model was late."),
    "crash": RuntimeError(CANARY),
}


def fail(call: Call) -> Reply:
    error = FAILURES[call.path["kind"]]
    if isinstance(error, errors.ApiError) and call.path["kind"] != "down":
        return Reply(error=error)
    raise error


def said(status: int = 200, **headers: str) -> Any:
    return lambda call: Reply(
        status, orjson.dumps({"operation": call.operation, "path": call.path}), dict(headers)
    )


def operation(
    name: str, method: str, path: str, kind: type[Operation], handler: Any, **fields: Any
) -> Operation:
    return kind(
        name,
        method,
        path,
        handler,
        name,
        fields.pop("response", NoteView),
        **fields,
    )


OPERATIONS = (
    operation(
        "notes.create",
        "POST",
        "/v1/notes",
        Write,
        said(201, Location="/v1/notes/é\r\nx"),
        body=Note,
        idempotency=Idempotency.CACHED,
    ),
    operation(
        "notes.list", "GET", "/v1/notes", Read, said(), query=Pages, aliases=("/v1/all-notes",)
    ),
    operation("notes.clear", "DELETE", "/v1/notes/all", Write, said(), scope="admin"),
    operation("notes.read", "GET", "/v1/notes/{id}", Read, said(ETag='"1"')),
    operation(
        "notes.remove",
        "DELETE",
        "/v1/notes/{id}",
        Write,
        lambda call: Reply(204),
        response=None,
        statuses=(204,),
    ),
    operation("notes.fail", "GET", "/v1/failures/{kind}", Read, fail),
    operation("notes.think", "POST", "/v1/think", Flow, think, body=Note),
    operation(
        "accounts.register",
        "POST",
        "/v1/auth/register",
        Write,
        said(201),
        body=Sign,
        scope="public",
        slot_of=lambda body: len(body.email),
    ),
    operation("billing.tiers", "GET", "/v1/billing/tiers", Flow, tiers, scope="public"),
    operation(
        "admin.close",
        "POST",
        "/v1/internal/close",
        Write,
        said(),
        body=Sign,
        internal=True,
        slot_of=lambda body: 5,
    ),
)
REGISTRY = Registry.build([Plugin("notes", operations=OPERATIONS)])


class NotingShards:
    """Runs handlers right here, answers a rejected call with its error, as a shard does, and notes
    every call.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.statuses: list[dict[str, Any]] = [{"shard": 0, "open": True, "sequence": 41}]
        self.placement_version = 17

    async def execute(self, call: Call) -> Reply:
        self.calls.append(call)
        if call.rejected is not None:
            return Reply(error=call.rejected)
        if call.stage:
            return Reply(BEGUN, b"null")
        return REGISTRY.operations[call.operation].handler(call)

    async def status(self) -> list[dict[str, Any]]:
        return self.statuses


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Service:
    port: int
    shards: NotingShards

    def __call__(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: Any = None,
        **options: Any,
    ) -> Answer:
        """One request through a plain client that sends the path as it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, headers or {}, **options)
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()

    def raw(self, text: bytes) -> bytes:
        """Bytes sent as they are -> everything that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def post(self, body: bytes, **headers: str) -> Answer:
        return self("POST", "/v1/notes", {**JSON, **headers}, body)

    @property
    def last(self) -> Call:
        return self.shards.calls[-1]


def assert_common(answer: Answer) -> None:
    assert re.fullmatch(r"\d+\.\d+", answer.headers["x-process-time"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", answer.headers["x-service-version"])
    assert re.fullmatch(r"[0-9a-f]{7}|dev", answer.headers["x-service-build"])
    assert re.fullmatch(r"[!-~]{1,128}", answer.headers["x-request-id"])
    assert answer.headers["x-content-type-options"] == "nosniff"


def assert_error(answer: Answer, status: int, kind: str, code: str | None) -> dict[str, Any]:
    assert_common(answer)
    error = answer.json["error"]
    assert (answer.status, error["status_code"], error["type"], error.get("code")) == (
        status,
        status,
        kind,
        code,
    )
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["message"] and "param" in error
    return error


# --- settings and moments that a plain client cannot make -----------------------------------------


def through(
    app: Any,
    method: str,
    path: str,
    *,
    peer: str = "127.0.0.1",
    base: str = "http://service",
    **options: Any,
) -> httpx.Response:
    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, **options)

    return asyncio.run(request())


def build(**http: Any) -> tuple[Any, NotingShards]:
    shards = NotingShards()
    return build_asgi(REGISTRY, Settings.load({"http": http}), shards, SECRETS, Telemetry()), shards
