"""The application at /mcp: who is let in, before any of the protocol is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import orjson

from runtime.api.mount import Answer, Application, InProcessClient, Message, Receive, Scope, Send
from runtime.errors import MethodNotAllowed, PermissionDenied
from runtime.extras import MCP
from runtime.settings import Settings

PATHS = ("/mcp", "/mcp/")
ASKING = (
    "tools/call",
    "resources/list",
    "resources/read",
)  # messages whose answer comes from the API, which then judges the credential
# in a request's scope: what the API answered, which has judged the credential then
ANSWERED = "mneme.mcp.answered"
_PASSED_ON = ("content-type", "www-authenticate", "retry-after", "x-ratelimit-limit")


class Endpoint:
    """The ASGI application behind /mcp."""

    def __init__(self, client: InProcessClient, origins: frozenset[str]):
        self._client, self._origins = client, origins
        self._server: Application | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        _check_origin(headers, self._origins)
        body = await self._client.body(scope, receive)
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        if scope["method"] != "POST" or _method(body) not in ASKING or MCP.is_missing:
            answer = await self._whoami(scope, authorization)
            if answer.status >= 400:
                return await _pass_on(answer, send)
            scope[ANSWERED] = answer
        if scope["method"] != "POST":
            raise MethodNotAllowed(["POST"])
        MCP.require()
        if self._server is None:
            self._server = await asyncio.to_thread(_load, self._client)
        said: list[Message] = []

        async def keep(message: Message) -> None:
            said.append(message)

        await self._server(scope, _read_again(body), keep)
        answer = scope.get(ANSWERED) or await self._whoami(scope, authorization)
        if answer.status == 401 or (ANSWERED not in scope and answer.status >= 400):
            return await _pass_on(answer, send)
        for message in said:
            await send(message)

    async def _whoami(self, scope: Scope, authorization: str) -> Answer:
        return await self._client.call(
            "GET", "/v1/auth/me", within=scope, authorization=authorization
        )


def _load(client: InProcessClient) -> Application:
    """The protocol; importing it takes the better part of a second."""
    from plugins.mcp import server as mcp_server

    return mcp_server.application(client, ANSWERED)


def _check_origin(headers: Mapping[bytes, bytes], origins: frozenset[str]) -> None:
    """Refuse strange origins. origins: that may besides the service's own."""
    origin = headers.get(b"origin", b"").decode("latin-1")
    if (
        origin
        and origin not in origins
        and urlsplit(origin).netloc.lower() != headers.get(b"host", b"").decode("latin-1").lower()
    ):
        raise PermissionDenied("Pages of another origin may not use this address.", param="Origin")


def _method(body: bytes) -> str:
    """The method a message names; "" for what is no message, which the protocol then refuses."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    return str(message.get("method")) if isinstance(message, dict) else ""


def _read_again(body: bytes) -> Receive:
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return given.pop() if given else await asyncio.Future()

    return receive


async def _pass_on(answer: Answer, send: Send) -> None:
    headers = [
        (name.encode(), value.encode("latin-1"))
        for name, value in answer.headers.items()
        if name in _PASSED_ON
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def claims(path: str, headers: Mapping[bytes, bytes]) -> bool:
    return path in PATHS


def build(client: InProcessClient, settings: Settings) -> Application:
    return Endpoint(client, frozenset(settings.http.cors_origins))
