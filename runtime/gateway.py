"""The wire: one ASGI application made from the Registry, and the only place that knows HTTP.

Every request passes the same stations, and whichever refuses it gives the answer:

    request id → sizes → route → HTTPS → Authorization → key, query, body → shard (or flow) → bytes

The gateway reads a credential but does not judge it: what it finds wrong with a request of a known credential travels to the
shard as `Call.rejected`, so that a revoked key is told 401 and a throttled one 429 before anybody learns how to mend a body.
Public requests have nobody to ask and are answered at once. A write goes on when its client has gone.

A flow runs here, around its steps in the shard (flow.py); it stops when its client leaves.

Replies come encoded and pass through untouched; a streamed body goes out chunk by chunk. Every answer, errors and unknown paths
included, carries X-Request-ID, X-Process-Time, X-Service-Version and X-Service-Build (specification part 4); errors become the
envelope of part 7 here and nowhere else. Raw ASGI, since this path is walked by every request: no framework stands between the
server and the shard.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import ipaddress
import json
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

import orjson
from pydantic import Field

from runtime import auth, openapi, validation
from runtime.errors import (
    ApiError,
    BadRequest,
    Conflict,
    FeatureNotAvailable,
    HeadersTooLarge,
    InternalError,
    PayloadTooLarge,
    RateLimited,
    UriTooLong,
)
from runtime.flow import Flow
from runtime.limits import BODY_BYTES_MAX, BODY_READ_SECONDS_MAX, HEADER_BYTES_MAX, HEALTH_SECONDS_MAX, REQUEST_ID_CHARS_MAX, URL_BYTES_MAX
from runtime.operation import Call, Credential, Kind, Operation, Reply, Signed, View
from runtime.plugin import Registry
from runtime.routes import Routes
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.telemetry import REQUEST_ID, Telemetry

if TYPE_CHECKING:
    from runtime.inference import Models

log = logging.getLogger("mneme.gateway")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = dict[bytes, bytes]
T = TypeVar("T")

_VISIBLE = re.compile(rb"[!-~]{1,%d}" % REQUEST_ID_CHARS_MAX)
# A second one of these would let two readers of a request disagree about what it says.
_SINGLE = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"if-match")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_HEADER_SAFE = "".join(map(chr, range(32, 127)))
_UNMATCHED = "unmatched"
_ENTROPY_BYTES = 16 + 32  # one request to the system for a request id and a call's seed
_CLIENT_CHARS_MAX = 64
_CLIENT_LEFT_STATUS = 499  # never sent: how metrics count a client that left before its body was whole
_DOCS_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Shards(Protocol):
    """Where calls go: the shards of this process or of a cluster. Statuses have at least "shard" (number) and "open"."""

    async def execute(self, call: Call) -> Reply: ...

    async def status(self) -> list[dict[str, Any]]: ...


class ShardCount(View):
    open: int = Field(description="Shards that answer.")
    total: int = Field(description="Shards this installation has.")


class Health(View):
    status: str = Field(description="`ok`, `degraded` (was ready, a shard is missing now) or `starting`.")
    version: str
    build: str
    shards: ShardCount
    checks: dict[str, str] = Field(description="Name of a check -> `ok`, or what is wrong.")


class _ClientLeft(Exception):
    """The client closed the connection before its body was whole; there is nobody to answer."""


def build_asgi(
    registry: Registry, settings: Settings, shards: Shards, secrets: Secrets, telemetry: Telemetry, *, models: Models | None = None
) -> Application:
    """The service as an ASGI application.

    models  what flows reason with; None where no operation needs one
    """
    return Gateway(registry, settings, shards, secrets, telemetry, models)


class _Route:
    """An operation with what is needed to read its requests, prepared once."""

    __slots__ = ("body", "changes", "operation", "public", "query", "tenantless")

    def __init__(self, operation: Operation):
        self.operation = operation
        self.public = operation.scope == "public" and not operation.internal
        self.tenantless = self.public or operation.internal
        self.changes = operation.method in ("POST", "PUT", "PATCH", "DELETE")
        self.query = validation.QueryReader(operation) if operation.query is not None else None
        self.body = validation.BodyReader(operation) if operation.body is not None else None


class Gateway:
    """See the module docstring; instances are ASGI applications."""

    def __init__(
        self, registry: Registry, settings: Settings, shards: Shards, secrets: Secrets, telemetry: Telemetry, models: Models | None
    ):
        self.version, self.build = service_version(), service_build()
        self._registry, self._shards, self._secrets, self._telemetry, self._models = registry, shards, secrets, telemetry, models
        self._require_https = settings.http.require_https
        self._offset = settings.clock.offset_seconds
        networks = tuple(ipaddress.ip_network(text, strict=False) for text in settings.http.trusted_proxies)
        self._trusts = lru_cache(maxsize=1024)(lambda address: _is_within(address, networks)) if networks else None
        self._was_ready = False
        self._described: tuple[bytes, bytes] | None = None
        self._unfinished: set[asyncio.Future[Any]] = set()
        self._own = self._own_operations()
        routes = [_Route(operation) for operation in (*registry.operations.values(), *self._own)]
        self._routes = Routes((r.operation.method, path, r) for r in routes for path in (r.operation.path, *r.operation.aliases))
        self._constant_headers = (
            (b"x-service-version", self.version.encode()),
            (b"x-service-build", self.build.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _other_protocol(scope, receive, send)
            return
        started = time.perf_counter()
        pairs = scope["headers"]
        headers = dict(pairs)
        entropy = os.urandom(_ENTROPY_BYTES)
        request_id = _request_id(headers, entropy[:16])
        REQUEST_ID.set(request_id)
        method, name = scope["method"], _UNMATCHED
        with self._telemetry.in_flight():
            try:
                _check_sizes(scope, pairs)
                if b"host" not in headers and scope.get("http_version") == "1.1":
                    raise BadRequest("HTTP/1.1 requires the Host header.", param="Host")
                route, path = self._routes.find(method, scope.get("raw_path") or quote(scope["path"]).encode())
                name = route.operation.name
                if len(headers) != len(pairs):
                    _check_repeated(pairs, headers)
                now_ms = int((time.time() + self._offset) * 1000)
                call = Call(name, 0, now_ms, entropy[16:], request_id, path=path)
                reply = await self._answer(call, route, scope, headers, receive)
            except ApiError as error:
                reply = Reply(error=error)
            except _ClientLeft:
                reply = None
            except Exception:
                log.exception("%s failed, request %s", name, request_id)
                reply = Reply(error=InternalError("Something failed on our side. The request id finds the cause in the log."))
            if reply is not None and hasattr(reply.body, "__aiter__"):
                status = await self._deliver_stream(send, receive, reply, request_id, started)
            else:
                status = _CLIENT_LEFT_STATUS if reply is None else await self._deliver(send, reply, method, request_id, started)
        self._telemetry.request(name, method if method in _METHODS else "other", status, time.perf_counter() - started)

    # --- the request --------------------------------------------------------------------------------------------------

    async def _answer(self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive) -> Reply:
        """Fill in the call and have it done. Raises ApiError for what can be refused right here."""
        operation = route.operation
        call.client = self._client(operation, scope, headers)
        if not route.public:
            call.credential, call.slot = self._credential(operation, headers, call.now_ms)
        try:
            await self._read(call, route, scope, headers, receive)
        except ApiError as error:
            if route.tenantless:
                raise
            call.rejected = error
            return await self._shards.execute(call)
        if route.tenantless and operation.slot_of is not None:
            call.slot = operation.slot_of(call.body)
        if operation.kind is Kind.FLOW and not route.public:
            flow = Flow(call, operation, self._registry, self._shards, self._models)
            return await _unless_left(flow.run(), receive)
        if operation.kind is Kind.FLOW:
            result = await operation.handler(call, self._shards, self._models)
            return (result if isinstance(result, Reply) else Reply(operation.statuses[0], result)).encoded()
        if operation.kind is Kind.READ:
            return await self._shards.execute(call)
        return await self._to_the_end(self._shards.execute(call))

    def _client(self, operation: Operation, scope: Scope, headers: Headers) -> str:
        """The caller's address. What proxies forward counts only when they are trusted. Raises BadRequest where HTTPS is missing."""
        client = peer = scope["client"][0] if scope.get("client") else ""
        secure = scope["scheme"] == "https"
        if self._trusts is not None and self._trusts(peer):
            protocol = headers.get(b"x-forwarded-proto")
            if protocol is not None:
                secure = protocol.rpartition(b",")[2].strip().lower() == b"https"
            # Each proxy appends the address it saw: the last one that is none of ours is the caller.
            for address in reversed(headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
                client = address.strip()[:_CLIENT_CHARS_MAX] or client
                if not self._trusts(client):
                    break
        if self._require_https and not secure and not (operation.name == "service.health" and _is_loopback(peer)):
            raise BadRequest("This service answers over HTTPS only.")
        return client

    def _credential(self, operation: Operation, headers: Headers, now_ms: int) -> tuple[Credential, int]:
        header = headers.get(b"authorization")
        credential, slot = auth.read_authorization(None if header is None else header.decode("latin-1"), self._secrets, now_ms)
        if operation.internal:
            auth.authorise_operator(credential)
        return credential, slot

    async def _read(self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive) -> None:
        """Fill in what the request says. Raises ApiError, the first thing found wrong."""
        if route.changes:
            key = headers.get(b"idempotency-key")
            if key is not None and route.operation.signed_by is None:
                call.idempotency_key = validation.idempotency_key(key)
            match = headers.get(b"if-match")
            if match is not None:
                call.if_match = match.decode("latin-1")
        prefer = headers.get(b"prefer")
        if prefer is not None:
            call.prefer = validation.preferences(prefer)
        if route.query is not None:
            call.query = route.query.read(scope["query_string"])
        if route.operation.signed_by is not None:
            signature = headers.get(route.operation.signed_by.lower().encode(), b"").decode("latin-1")
            call.body = Signed(await _body(headers, receive), signature)
        elif route.body is not None:
            call.body = route.body.read(headers.get(b"content-type"), await _body(headers, receive))
        if call.idempotency_key is None and route.changes:
            call.idempotency_key = getattr(call.body, "idempotency_key", None)  # the header wins over the body's own
        if call.idempotency_key is not None:
            call.fingerprint = validation.fingerprint(self._secrets.pepper, route.operation, call.path, call.query, call.body)

    async def _to_the_end(self, work: Awaitable[T]) -> T:
        """Await work that must not stop halfway when the server cancels this request because its client has gone."""
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)

    # --- the answer ---------------------------------------------------------------------------------------------------

    async def _deliver(self, send: Send, reply: Reply, method: str, request_id: str, started: float) -> int:
        """Send the reply; -> its status."""
        if reply.error is None:
            status, body, further, content_type = reply.status, reply.body, reply.headers, reply.content_type
        else:
            status, body, further = _error_answer(reply.error, request_id)
            content_type = "application/json"
        headers = self._headers(request_id, started)
        if status != 204:
            headers += ((b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body or b"")))
        for name, value in further.items():
            headers.append((name.lower().encode(), _header_value(value)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" or body is None else body})
        return status

    async def _deliver_stream(self, send: Send, receive: Receive, reply: Reply, request_id: str, started: float) -> int:
        """Send the head, then each chunk as it comes; -> the status. Whatever happens, the body is closed."""
        headers = [
            *self._headers(request_id, started),
            (b"content-type", reply.content_type.encode()),
            *((name.lower().encode(), _header_value(value)) for name, value in reply.headers.items()),
        ]

        async def pump() -> None:
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            async for chunk in reply.body:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        try:
            await _unless_left(pump(), receive)
            return reply.status
        except _ClientLeft:
            return _CLIENT_LEFT_STATUS
        finally:
            await self._to_the_end(reply.body.aclose())

    def _headers(self, request_id: str, started: float) -> list[tuple[bytes, bytes]]:
        seconds = time.perf_counter() - started
        return [*self._constant_headers, (b"x-request-id", request_id.encode()), (b"x-process-time", b"%.6f" % seconds)]

    # --- the gateway's own operations ---------------------------------------------------------------------------------

    def _own_operations(self) -> tuple[Operation, ...]:
        def own(name: str, path: str, handler: Callable[..., Awaitable[Reply]], summary: str, spec: str, **further: Any) -> Operation:
            fields: dict[str, Any] = {"response": None, "scope": "public", **further}
            return Operation(f"service.{name}", "GET", path, Kind.FLOW, handler, summary, spec, **fields)

        health = "Answers 503 until every shard is open."
        return (
            own(
                "health",
                "/v1/health",
                self._health,
                "Is the service ready?",
                "part 1",
                response=Health,
                statuses=(200, 503),
                description=health,
            ),
            own("metrics", "/metrics", self._metrics, "Metrics in Prometheus' text format", "part 1"),
            own("openapi", "/openapi.json", self._document, "This description", "part 9"),
            own("docs", "/docs", self._docs, "The description, for people", "part 9"),
        )

    async def _health(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        statuses = await self._statuses()
        opened, total = sum(bool(status["open"]) for status in statuses), len(statuses)
        ready = 0 < total == opened
        self._was_ready = self._was_ready or ready
        state = "ok" if ready else "degraded" if self._was_ready else "starting"
        checks = {"shards": "ok" if ready else f"{opened} of {total} are open"}
        health = Health(status=state, version=self.version, build=self.build, shards=ShardCount(open=opened, total=total), checks=checks)
        return Reply(200 if ready else 503, health, {} if ready else {"Retry-After": "1"})

    async def _metrics(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        self._telemetry.shards(await self._statuses())
        body, content_type = self._telemetry.exposition()
        return Reply(200, body, content_type=content_type)

    async def _document(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        document, _ = await self._description()
        return Reply(200, document)

    async def _docs(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        _, page = await self._description()
        return Reply(200, page, {"Content-Security-Policy": _DOCS_POLICY}, "text/html; charset=utf-8")

    async def _description(self) -> tuple[bytes, bytes]:
        """The OpenAPI document and its page, made at the first request and off the event loop: it takes a while and not everybody asks."""
        if self._described is None:
            document = await asyncio.to_thread(openapi.document, self._registry, self.version, self._own)
            self._described = orjson.dumps(document), openapi.page(document).encode()
        return self._described

    async def _statuses(self) -> list[dict[str, Any]]:
        """What the shards say of themselves; nothing when they cannot be asked in time."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS_MAX):
                return await self._shards.status()
        except (TimeoutError, ApiError) as silent:
            log.warning("the shards gave no status: %r", silent)
            return []


# --- identity ---------------------------------------------------------------------------------------------------------


def service_version() -> str:
    """The semantic version of the installed package."""
    return importlib.metadata.version("mneme")


def service_build() -> str:
    """The short commit hash of this checkout or of the installed package's origin; "dev" where neither is known."""
    commit = _commit_of_checkout(Path(__file__).resolve().parent.parent / ".git") or _commit_of_package()
    return commit[:7] if commit else "dev"


def _commit_of_checkout(git: Path) -> str | None:
    try:
        head = (git / "HEAD").read_text().strip()
        reference = head.removeprefix("ref: ")
        if reference == head:
            return head
        if (git / reference).exists():
            return (git / reference).read_text().strip()
        packed = (line.split() for line in (git / "packed-refs").read_text().splitlines())
        return next((words[0] for words in packed if words[1:] == [reference]), None)
    except OSError:
        return None


def _commit_of_package() -> str | None:
    origin = importlib.metadata.distribution("mneme").read_text("direct_url.json")
    return json.loads(origin).get("vcs_info", {}).get("commit_id") if origin else None


# --- reading ----------------------------------------------------------------------------------------------------------


def _request_id(headers: Headers, random: bytes) -> str:
    """The client's own when it is 1 to 128 visible ASCII characters, else a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _VISIBLE.fullmatch(given):
        return given.decode("ascii")
    return "req_" + random.hex()


def _check_sizes(scope: Scope, pairs: list[tuple[bytes, bytes]]) -> None:
    if len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > URL_BYTES_MAX:
        raise UriTooLong(f"The address is longer than {URL_BYTES_MAX} bytes.")
    if sum(map(len, chain.from_iterable(pairs))) > HEADER_BYTES_MAX:
        raise HeadersTooLarge(f"The headers are larger than {HEADER_BYTES_MAX} bytes.")


def _check_repeated(pairs: list[tuple[bytes, bytes]], headers: Headers) -> None:
    """Refuse headers that may be there only once, and join those that are lists."""
    names = [name for name, _ in pairs]
    for name in _SINGLE:
        if names.count(name) > 1:
            raise BadRequest("This header may be sent only once.", param=name.decode())
    for name in (b"prefer", b"x-forwarded-for", b"x-forwarded-proto"):
        if names.count(name) > 1:
            headers[name] = b",".join(value for other, value in pairs if other == name)


async def _body(headers: Headers, receive: Receive) -> bytes:
    """The whole body, refused as soon as it is known to be too large. Raises BadRequest, PayloadTooLarge, _ClientLeft."""
    if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
        raise BadRequest("The only Transfer-Encoding understood is chunked.", param="Transfer-Encoding")
    announced = headers.get(b"content-length")
    if announced is not None and (not announced.isdigit() or len(announced) > 18):
        raise BadRequest("The Content-Length is not a number.", param="Content-Length")
    if announced is not None and int(announced) > BODY_BYTES_MAX:
        raise _too_large()
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_READ_SECONDS_MAX):
            more = True
            while more and size <= BODY_BYTES_MAX:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _ClientLeft
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                more = message.get("more_body", False)
    except TimeoutError:
        raise BadRequest(f"The body did not arrive within {BODY_READ_SECONDS_MAX} seconds.") from None
    if size > BODY_BYTES_MAX:
        raise _too_large()
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _unless_left(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """The result of the work, which is cancelled when the client leaves. Raises _ClientLeft then. The body must have been read."""
    running, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        raise _ClientLeft
    finally:
        for task in (running, leaving):
            task.cancel()
        await asyncio.wait((running, leaving))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {BODY_BYTES_MAX} bytes.")


async def _other_protocol(scope: Scope, receive: Receive, send: Send) -> None:
    """Lifespan: nothing to start or stop here. WebSocket: refused."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


# --- errors and addresses ---------------------------------------------------------------------------------------------


def answer_unread(error: ApiError) -> bytes:
    """The whole HTTP/1.1 answer to what never became a request, with the headers that every answer carries."""
    request_id = _request_id({}, os.urandom(16))
    status, body, headers = _error_answer(error, request_id)
    headers |= {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Request-ID": request_id,
        "X-Process-Time": "0.000000",
        "X-Service-Version": service_version(),
        "X-Service-Build": service_build(),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n".encode() + body


def _error_answer(error: ApiError, request_id: str) -> tuple[int, bytes, dict[str, str]]:
    """An error -> (status, body, headers), in the envelope of specification part 7."""
    headers = dict(error.headers)
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    elif isinstance(error, Conflict):
        headers["X-Should-Retry"] = "false"
    if isinstance(error, FeatureNotAvailable):
        return error.status, orjson.dumps(error.body), headers
    envelope: dict[str, Any] = {} if error.code is None else {"code": error.code}
    envelope |= {"message": error.message, "type": error.type, "param": error.param, "status_code": error.status, "request_id": request_id}
    if isinstance(error, RateLimited):
        envelope["status"] = error.status
    if error.details is not None:
        envelope["details"] = error.details
    return error.status, orjson.dumps({"error": envelope}), headers


def _header_value(text: str) -> bytes:
    """Visible ASCII as it is; anything else, line breaks above all, percent-encoded."""
    return (text if text.isascii() and text.isprintable() else quote(text, safe=_HEADER_SAFE)).encode()


def _is_within(address: str, networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)


def _is_loopback(address: str) -> bool:
    return _is_within(address, (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")))
