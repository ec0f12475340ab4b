"""An in-process client of the gateway: how a mount reaches the public API without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import orjson

from runtime.api.mount import (
    INSIDE,
    REQUEST,
    Answer,
    Application,
    Message,
    Pairs,
    Receive,
    Scope,
    Send,
)
from runtime.api.operation import Operation
from runtime.api.tools import Tool
from runtime.http import bodies
from runtime.http.arriving import Arrival, Arriving
from runtime.http.validation import check_values
from runtime.limits import BODY_BYTES_MAX, PUBLIC_BODY_BYTES_MAX

_HOP = (b"x-forwarded-for", b"x-forwarded-proto", b"connection", b"transfer-encoding")


class GatewayClient:
    """Calls this process's gateway; an InProcessClient.

    slot_of  headers -> the slot of whoever shows a credential that may be genuine, else None
    """

    def __init__(
        self,
        gateway: Application,
        arriving: Arriving,
        tools: tuple[tuple[Tool, Operation], ...],
        slot_of: Callable[[bodies.Headers], int | None],
    ):
        self._gateway, self._arriving, self.tools = gateway, arriving, tools
        self._slot_of = slot_of

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        headers = dict(scope["headers"])
        slot = self._slot_of(headers)
        arrival = Arrival(scope["client"][0], slot)
        bytes_max = PUBLIC_BODY_BYTES_MAX if slot is None else BODY_BYTES_MAX
        body = await bodies.whole(headers, receive, self._arriving, arrival, bytes_max)
        check_values(body)
        return body

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
        """Ask the gateway, as InProcessClient says."""
        body = b"" if json is None else orjson.dumps(json)
        sent = [*headers, (b"host", b"inside"), (b"content-length", b"%d" % len(body))]
        if json is not None:
            sent.append((b"content-type", b"application/json"))
        if authorization:
            sent.append((b"authorization", authorization.encode("latin-1", "replace")))
        sent.append((b"x-request-id", within[REQUEST].encode()))
        given, answer = [{"type": "http.request", "body": body}], Answer()

        async def receive() -> Message:
            return (
                given.pop() if given else await asyncio.Future()
            )  # a caller inside never leaves: it is cancelled

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {
                    name.decode("latin-1"): value.decode("latin-1")
                    for name, value in message["headers"]
                }
            else:
                answer.body += message.get("body", b"")

        await self._gateway(_inner(within, method, path, query.encode(), sent), receive, send)
        return answer

    async def forward(
        self, scope: Scope, receive: Receive, send: Send, *, path: str, headers: Pairs
    ) -> None:
        kept = [(name, value) for name, value in headers if name != b"x-request-id"] + [
            (b"x-request-id", scope[REQUEST].encode())
        ]
        await self._gateway(
            _inner(scope, scope["method"], path, scope["query_string"], kept), receive, send
        )


def _inner(
    within: Scope, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]]
) -> Scope:
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
