"""Mounts over the real gateway and shard: what they see, what they may do, and what the gateway
does around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import serve_app
from runtime.api.mount import InProcessClient, Mount, Receive, Scope, Send
from runtime.api.plugin import Plugin
from runtime.errors import NotFound
from tests.support.in_process import InProcess


def echo(client: InProcessClient, settings: object) -> object:
    """Answers about the caller at /side/whoami, passes /side/api/... on, and fails in two ways."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        headers, path = dict(scope["headers"]), scope["path"]
        token = headers.get(b"x-side-token", b"").decode()
        if path == "/side/whoami":
            answer = await client.call(
                "GET", "/v1/auth/me", within=scope, authorization=f"Bearer {token}"
            )
            start = {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(b"cache-control", b"max-age=1")],
            }
            await send(start)
            await send({"type": "http.response.body", "body": answer.body})
        elif path.startswith("/side/api/"):
            kept = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
            await client.forward(
                scope,
                receive,
                send,
                path=path[9:],
                headers=[*kept, (b"authorization", b"Bearer " + token.encode())],
            )
        elif path == "/side/size":
            size = len(await client.body(scope, receive))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"%d" % size})
        elif path == "/side/lost":
            raise NotFound("There is nothing here.")
        else:
            raise RuntimeError("secret of the house")

    return application


SIDE = Plugin(
    "side", mounts=(Mount("side", lambda path, headers: path.startswith("/side/"), echo),)
)
OFF = Plugin(
    "off",
    mounts=(
        Mount("off", lambda path, headers: path.startswith("/v1/"), lambda client, settings: None),
    ),
)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    monkeypatch.setattr(serve_app, "PLUGINS", (*serve_app.PLUGINS, SIDE, OFF))
    serve_app.registry.cache_clear()
    service = InProcess(tmp_path)
    serve_app.registry.cache_clear()
    yield service
    service.close()


def test_a_mount_acts_as_its_caller_and_as_nobody_else(service: InProcess) -> None:
    key = service.register("ada@example.com")
    nobody = service.request("GET", "/side/whoami")
    assert nobody.status_code == 401
    known = service.request("GET", "/side/whoami", X_Side_Token=key)
    assert known.json()["email"] == "ada@example.com"
    assert (
        service.request("GET", "/side/whoami", who=key).status_code == 401
    )  # the mount passes on what it chooses to


def test_the_gateway_completes_what_a_mount_says(service: InProcess) -> None:
    reply = service.request(
        "GET",
        "/side/whoami",
        X_Request_ID="mine-1",
        X_Side_Token=service.register("ada@example.com"),
    )
    assert reply.headers["X-Request-ID"] == "mine-1" and reply.headers["X-Service-Version"]
    assert reply.headers.get_list("Cache-Control") == ["max-age=1"]
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_requests_pass_on_with_body_query_and_answer(service: InProcess) -> None:
    key = service.register("ada@example.com")
    stored = service.request(
        "POST", "/side/api/v1/memories", {"content": "Ada plays chess."}, X_Side_Token=key
    )
    assert stored.status_code == 201
    listed = service.request("GET", "/side/api/v1/memories?limit=1", X_Side_Token=key).json()
    assert [item["content"] for item in listed["items"]] == ["Ada plays chess."]
    assert service.request("GET", "/side/api/v1/memories", who=key).status_code == 401


def test_errors_of_a_mount_are_the_services(service: InProcess) -> None:
    lost = service.request("GET", "/side/lost")
    assert lost.status_code == 404 and lost.json()["error"]["message"] == "There is nothing here."
    failed = service.request("GET", "/side/fails")
    assert failed.status_code == 500 and "secret" not in failed.text


def test_bodies_are_bounded(service: InProcess) -> None:
    assert service.request("POST", "/side/size", b"x" * 1000).text == "1000"
    assert (
        service.request("POST", "/side/size", b"x", Content_Length="999999999").status_code == 413
    )


def test_a_mount_behind_the_door_is_not_asked_again(service: InProcess) -> None:
    key = service.register("ada@example.com")
    assert service.request("GET", "/side/api/side/whoami", X_Side_Token=key).status_code == 404


def test_what_is_switched_off_claims_nothing(service: InProcess) -> None:
    assert service.request("GET", "/v1/health").status_code == 200
