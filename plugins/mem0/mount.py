"""The paths of mem0's clients, and the application that answers them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import orjson

from plugins.mem0.operations import (
    add,
    add_later,
    delete,
    delete_entity,
    delete_many,
    delete_named,
    entities,
    event,
    get,
    history,
    listed,
    ping,
    search,
    update,
    update_many,
)
from plugins.mem0.request import PASSED_ON, CallRefused, Handler, Mem0Request
from plugins.mem0.settings import Mem0Settings
from runtime.api.mount import REQUEST, Application, InProcessClient, Receive, Scope, Send
from runtime.errors import ApiError, BadRequest
from runtime.settings import Settings

# Words of letters are our own paths: /v1/memories/jobs is none of theirs.
_ID = r"(?P<id>(?=[^/]*[\d_])[^/]+)"


ROUTES: tuple[tuple[str, re.Pattern[str], Handler], ...] = tuple(
    (method, re.compile(pattern + "/?"), handler)
    for method, pattern, handler in (
        ("GET", "/v1/ping", ping),
        ("POST", "/v1/memories", add),
        ("POST", "/v3/memories/add", add_later),
        ("GET", "/v1/event/(?P<id>[^/]+)", event),
        ("POST", "/v[123]/memories/search", search),
        ("GET", "/v1/memories", listed),
        ("POST", "/v[23]/memories", listed),
        ("DELETE", "/v1/memories", delete_named),
        ("GET", f"/v1/memories/{_ID}", get),
        ("PUT", f"/v1/memories/{_ID}", update),
        ("DELETE", f"/v1/memories/{_ID}", delete),
        ("GET", f"/v1/memories/{_ID}/history", history),
        ("GET", "/v1/entities", entities),
        ("DELETE", "/v[12]/entities/(?P<kind>[^/]+)/(?P<name>.+?)", delete_entity),
        ("PUT", "/v1/batch", update_many),
        ("DELETE", "/v1/batch", delete_many),
    )
)
_CLAIMED = re.compile(
    "|".join({re.sub(r"\(\?P<\w+>", "(?:", route.pattern) for _, route, _ in ROUTES})
)


def claims(path: str, headers: Mapping[bytes, bytes]) -> bool:
    return (
        headers.get(b"authorization", b"")[:6].lower() == b"token "
        and _CLAIMED.fullmatch(path) is not None
    )


def build(client: InProcessClient, settings: Settings) -> Application | None:
    return Compatibility(client) if Mem0Settings.of(settings).enabled else None


class Compatibility:
    """The ASGI application: a request of mem0's client becomes calls of our operations."""

    def __init__(self, client: InProcessClient):
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
        found = next(
            (
                (m, handler)
                for method, route, handler in ROUTES
                if method == scope["method"] and (m := route.fullmatch(raw))
            ),
            None,
        )
        if found is None:
            await self._client.forward(scope, receive, send, path=raw, headers=scope["headers"])
            return
        match, handler = found
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        parts = {name: unquote(part) for name, part in match.groupdict().items()}
        try:
            request = Mem0Request(self._client, scope, raw.rstrip("/"), parts, query)
            try:
                if scope["method"] in ("POST", "PUT") or handler is delete_many:
                    request.body = _object(await self._client.body(scope, receive))
                body = await handler(request)
            except ApiError:
                await request.ask(
                    "GET", "/v1/auth/me"
                )  # a stranger is told so before anybody learns how to mend a request
                raise
            await _send(send, request.status, body, {})
        except CallRefused as refused:
            await _send(send, refused.status, _with_detail(refused.body), refused.headers)
        except ApiError as error:
            fields = {
                "code": error.code,
                "message": error.message,
                "type": error.type,
                "param": error.param,
                "details": error.details,
            }
            fields |= {"status_code": error.status, "request_id": scope[REQUEST]}
            later = (
                {}
                if error.retry_after_seconds is None
                else {"retry-after": str(error.retry_after_seconds)}
            )
            await _send(send, error.status, _with_detail({"error": fields}), later)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise BadRequest("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    return body


def _with_detail(body: Any) -> dict[str, Any]:
    error = body["error"] if isinstance(body.get("error"), dict) else body
    return {"detail": error["message"], **body}


async def _send(send: Send, status: int, body: Any, headers: Mapping[str, str]) -> None:
    content = orjson.dumps(body)
    passed = [
        (name.encode(), headers[name].encode("latin-1")) for name in PASSED_ON if name in headers
    ]
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(content)),
        *passed,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content})
