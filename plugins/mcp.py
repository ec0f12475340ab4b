"""MCP: memory for agent hosts, at /mcp (streamable HTTP), with the same credential as everything else.

Owns who is let in there. What there is to do is in plugins/mcp_tools.py, how it is said in plugins/mcp_server.py, which is imported
when the first agent connects: a gateway that serves none does not pay for the protocol. Desktop hosts reach the same address through
`mneme mcp` (runtime/mcp_relay.py).

Choices:
- There are no sessions and no streams, so that any gateway answers any request: a GET, which would open a stream, is 405.
- A credential that the service does not know is 401 whatever is asked, so that hosts notice at once. Messages that ask nothing of the
  API are let in by asking it who is calling; the others find out by themselves.
- Nothing is granted for where a request comes from, so any Host will do. An Origin header must name that same host: a page of another
  site has no business here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import orjson

from runtime.errors import MethodNotAllowed, PermissionDenied
from runtime.mount import Answer, Application, Door, Message, Mount, Receive, Scope, Send
from runtime.plugin import Plugin
from runtime.settings import Settings

PATHS = ("/mcp", "/mcp/")
ASKING = ("tools/call", "resources/list", "resources/read")  # messages whose answer comes from the API, which then judges the credential
REFUSED = "mneme.mcp.refused"  # in a request's scope: the API's answer to a credential that it does not know
_PASSED_ON = ("content-type", "www-authenticate", "retry-after", "x-ratelimit-limit")


class Endpoint:
    """The ASGI application behind /mcp."""

    def __init__(self, door: Door):
        self._door = door
        self._server: Application | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        _check_origin(headers)
        body = await self._door.body(scope, receive)
        if scope["method"] != "POST" or _method(body) not in ASKING:
            authorization = headers.get(b"authorization", b"").decode("latin-1")
            answer = await self._door.call("GET", "/v1/auth/me", within=scope, authorization=authorization)
            if answer.status >= 400:
                return await _pass_on(answer, send)
        if scope["method"] != "POST":
            raise MethodNotAllowed(["POST"])
        if self._server is None:
            self._server = await asyncio.to_thread(_load, self._door)
        said: list[Message] = []

        async def keep(message: Message) -> None:
            said.append(message)

        await self._server(scope, _read_again(body), keep)
        if REFUSED in scope:
            return await _pass_on(scope[REFUSED], send)
        for message in said:
            await send(message)


def _load(door: Door) -> Application:
    """The protocol; importing it takes the better part of a second."""
    from plugins import mcp_server

    return mcp_server.application(door, REFUSED)


def _check_origin(headers: Mapping[bytes, bytes]) -> None:
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin and urlsplit(origin).netloc.lower() != headers.get(b"host", b"").decode("latin-1").lower():
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
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items() if name in _PASSED_ON]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _claims(path: str, headers: Mapping[bytes, bytes]) -> bool:
    return path in PATHS


def _build(door: Door, settings: Settings) -> Application:
    return Endpoint(door)


plugin = Plugin(
    name="mcp",
    requires=("memories", "ingestion", "search", "answers", "graph", "corrections", "learning"),
    mounts=(Mount("mcp", _claims, _build),),
)
