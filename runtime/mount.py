"""Mounts: subtrees of the address space that speak in a manner of their own, such as pages or another protocol.

A mount is an ASGI application that a plugin declares. It sees requests, never shards, tables or secrets: what it does for a caller
it does through the Door, which is the public API from inside, with the credential that the caller brought. So whatever a mount
offers is authorised, limited, metered and logged exactly as if the caller had asked for it directly.

The gateway applies its rules on sizes, Host and HTTPS before a mount is asked, and adds the headers of every answer to what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson

from runtime import bodies

if TYPE_CHECKING:
    from runtime.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Pairs = Iterable[tuple[bytes, bytes]]

INSIDE = "mneme.inside"  # in the scope of a request that came through the Door; no mount claims it
REQUEST = "mneme.request_id"  # in the scope that a mount is given
_HOP = (b"x-forwarded-for", b"x-forwarded-proto", b"connection", b"transfer-encoding")


@dataclass(frozen=True, slots=True)
class Mount:
    """What a plugin declares.

    name    in metrics and logs
    claims  (path, headers by lower-case name) -> whether a request is its own; asked for every request, so it must be quick
    build   -> an application for "http" scopes, made once per gateway; nothing unless the plugin is switched off: it then returns None
    """

    name: str
    claims: Callable[[str, Mapping[bytes, bytes]], bool]
    build: Callable[[Door, Settings], Application | None]


@dataclass(slots=True)
class Answer:
    """What the API said. headers: by lower-case name."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        return orjson.loads(self.body)


class Door:
    """The public API, from inside."""

    def __init__(self, gateway: Application, arriving: bodies.Arriving):
        self._gateway, self._arriving = gateway, arriving

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body of a request, within the bounds of every body. Raises BadRequest, PayloadTooLarge, Unavailable, ClientLeft."""
        return await bodies.whole(dict(scope["headers"]), receive, self._arriving)

    async def call(
        self,
        method: str,
        path: str,
        *,
        within: Scope,
        authorization: str = "",
        query: str = "",
        json: Any = None,
        headers: Pairs = (),
    ) -> Answer:
        """One request of the caller behind `within`, whole; -> the whole answer, errors included.

        path           percent-encoded
        within         scope of the request that is being answered: its client and request id go along
        authorization  value of that header, such as "Bearer ..."; empty for public operations
        json           body; None for none
        headers        further ones, lower-case names
        """
        body = b"" if json is None else orjson.dumps(json)
        sent = [*headers, (b"host", b"inside"), (b"content-length", b"%d" % len(body))]
        if json is not None:
            sent.append((b"content-type", b"application/json"))
        if authorization:
            sent.append((b"authorization", authorization.encode("latin-1", "replace")))
        sent.append((b"x-request-id", within[REQUEST].encode()))
        given, answer = [{"type": "http.request", "body": body}], Answer()

        async def receive() -> Message:
            return given.pop() if given else await asyncio.Future()  # a caller inside never leaves: it is cancelled

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            else:
                answer.body += message.get("body", b"")

        await self._gateway(_inner(within, method, path, query.encode(), sent), receive, send)
        return answer

    async def forward(self, scope: Scope, receive: Receive, send: Send, *, path: str, headers: Pairs) -> None:
        """Pass a request on, its body and its answer streaming, with another path (percent-encoded) and other headers."""
        kept = [(name, value) for name, value in headers if name != b"x-request-id"] + [(b"x-request-id", scope[REQUEST].encode())]
        await self._gateway(_inner(scope, scope["method"], path, scope["query_string"], kept), receive, send)


def _inner(within: Scope, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]]) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": within["scheme"],
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [(name, value) for name, value in headers if name not in _HOP],
        "client": within.get("client"),
        "server": within.get("server"),
        INSIDE: True,
    }
