"""Mounts: subtrees of the address space that speak in a manner of their own, such as pages or
another protocol.

A mount is an ASGI application that a plugin declares. It sees requests, never shards, tables or
secrets: what it does for a caller it does through an `InProcessClient` of the public API, with the
credential that the caller brought. So whatever a mount offers is authorised, limited,
metered and logged exactly as if the caller had asked for it directly.

The gateway applies its rules on sizes, Host and HTTPS before a mount is asked, and adds the headers
of every answer to what it says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from runtime.api.operation import Operation
from runtime.api.tools import Tool
from runtime.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Pairs = Iterable[tuple[bytes, bytes]]

INSIDE = "mneme.inside"  # in the scope of a request of an InProcessClient; no mount claims it
REQUEST = "mneme.request_id"  # in the scope that a mount is given


@dataclass(frozen=True, slots=True)
class Mount:
    """What a plugin declares.

    name    in metrics and logs
    claims  (path, headers by lower-case name) -> whether a request is its own; asked for every
            request, so it must be quick
    build   -> an application for "http" scopes, made once per gateway; nothing unless the plugin is
            switched off: it then returns None
    """

    name: str
    claims: Callable[[str, Mapping[bytes, bytes]], bool]
    build: Callable[[InProcessClient, Settings], Application | None]


@dataclass(slots=True)
class Answer:
    """What the API said. headers: by lower-case name."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        return orjson.loads(self.body)


class InProcessClient(Protocol):
    """Calls the public API without a connection: all that a mount may do."""

    @property
    def tools(self) -> tuple[tuple[Tool, Operation], ...]:
        """What the plugins let agents do."""
        ...

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body of a request, within the bounds of every body, or those of a public
        operation where it shows no credential. Raises BadRequest, PayloadTooLarge, Unavailable,
        ClientLeft.
        """
        ...

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
        within         scope of the request that is being answered: its client and request id go
                       along
        authorization  value of that header, such as "Bearer ..."; empty for public operations
        json           body; None for none
        headers        further ones, lower-case names
        """
        ...

    async def forward(
        self, scope: Scope, receive: Receive, send: Send, *, path: str, headers: Pairs
    ) -> None:
        """Pass a request on, its body and its answer streaming, with another path (percent-encoded)
        and other headers.
        """
        ...
