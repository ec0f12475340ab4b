"""What pages of other origins may read: those of `http.cors_origins`, each named exactly.

A browser lets a page read an answer only where the answer names the page's origin, and asks
beforehand, with OPTIONS, whether it may send anything beyond a form. Both are answered for the
origins of the setting; any other page learns nothing, and its OPTIONS is a method like any other.
Credentials that the browser would add by itself, such as cookies, never count: a page has a
credential of its own, and sends it in Authorization.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from runtime.api.mount import Scope, Send
from runtime.api.operation import Reply
from runtime.http.bodies import Headers
from runtime.http.client_address import Callers
from runtime.limits import PREFLIGHT_KEPT_SECONDS

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_ASKED_METHOD = b"access-control-request-method"
_ASKED_HEADERS = b"access-control-request-headers"
# An answer differs by origin, which caches have to know also where it names none.
_VARIES = (b"vary", b"origin")


class CrossOrigin:
    """One installation's rule. origins: as browsers write them, such as https://app.example."""

    def __init__(self, origins: tuple[str, ...], callers: Callers):
        self._origins = frozenset(origin.encode() for origin in origins)
        self._callers = callers

    def preflight(self, scope: Scope, headers: Headers) -> Reply | None:
        """The answer to a browser that asks on behalf of a page which may; None for whatever else
        comes. Raises BadRequest where HTTPS is required and missing.
        """
        if (
            scope["method"] != "OPTIONS"
            or _ASKED_METHOD not in headers
            or headers.get(b"origin") not in self._origins
        ):
            return None
        self._callers.of(scope, headers)
        allowed = {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Max-Age": str(PREFLIGHT_KEPT_SECONDS),
        }
        if asked := headers.get(_ASKED_HEADERS):
            allowed["Access-Control-Allow-Headers"] = asked.decode("latin-1")
        return Reply(204, None, allowed)

    def shared(self, headers: Headers, send: Send) -> Send:
        """`send`, for an answer that the page which asked may read, if it is one that may."""
        if not self._origins:
            return send
        origin = headers.get(b"origin")
        added = [_VARIES]
        if origin in self._origins:
            # Every header of an answer, Retry-After and X-Request-ID among them.
            added += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"*"),
            ]

        async def share(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        return share
