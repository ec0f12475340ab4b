"""The wire: one ASGI application made from the Registry, and the only place that knows HTTP.

Every request passes the same stations, and whichever refuses it gives the answer:

    request id → sizes → route → HTTPS → Authorization → key, query, body → shard (or flow) → bytes

The gateway reads a credential but does not judge it: what it finds wrong with a request of a known credential travels to the
shard as `Call.rejected`, so that a revoked key is told 401 and a throttled one 429 before anybody learns how to mend a body.
Public requests have nobody to ask and are answered at once. A write goes on when its client has gone.

A flow runs here, around its steps in the shard (flow.py); it stops when its client leaves. What a plugin's mount claims is the
mount's to answer, after sizes and HTTPS (mount.py).

Replies come encoded and pass through untouched; a streamed body goes out chunk by chunk. Every answer, errors and unknown paths
included, carries X-Request-ID, X-Process-Time, X-Service-Version and X-Service-Build (specification part 4); errors become the
envelope of part 7 here and nowhere else. Raw ASGI, since this path is walked by every request: no framework stands between the
server and the shard.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import orjson
from pydantic import Field

from runtime import auth, bodies, openapi, validation
from runtime.blobs import blob_store
from runtime.bodies import Arriving, ClientLeft, Headers, Receive, T, unless_left
from runtime.callers import Callers
from runtime.errors import (
    ApiError,
    BadRequest,
    Conflict,
    FeatureNotAvailable,
    HeadersTooLarge,
    InternalError,
    NotFound,
    RateLimited,
    Unavailable,
    UriTooLong,
)
from runtime.flow import Flow
from runtime.front_proxy import OVERLOADED_HEADER
from runtime.limits import (
    GATEWAY_CALLS_MAX,
    GATEWAY_REQUESTS_MAX,
    HEADER_BYTES_MAX,
    HEALTH_SECONDS_MAX,
    REQUEST_ID_CHARS_MAX,
    UPLOAD_SECONDS_MAX,
    URL_BYTES_MAX,
)
from runtime.mount import INSIDE, REQUEST, Application, Door, Scope, Send
from runtime.operation import Call, Credential, Kind, Operation, Reply, Signed, View
from runtime.plugin import Registry
from runtime.release import service_build, service_version
from runtime.routes import Routes
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.telemetry import REQUEST_ID, Telemetry
from runtime.uploads import UploadReader
from storage.blob_store import BlobMissing, BlobStore

if TYPE_CHECKING:
    from runtime.inference import Models

log = logging.getLogger("mneme.gateway")

_VISIBLE = re.compile(rb"[!-~]{1,%d}" % REQUEST_ID_CHARS_MAX)
# A second one of these would let two readers of a request disagree about what it says.
_SINGLE = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"if-match")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_HEADER_SAFE = "".join(map(chr, range(32, 127)))
_UNMATCHED = "unmatched"
_ENTROPY_BYTES = 16 + 32  # one request to the system for a request id and a call's seed
_CLIENT_LEFT_STATUS = 499  # never sent: how metrics count a client that left before its body was whole
_DOCS_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Shards(Protocol):
    """Where calls go: the shards of this process or of a cluster. Statuses have at least "shard" (number) and "open"."""

    @property
    def placement_version(self) -> int: ...

    async def execute(self, call: Call) -> Reply: ...

    async def status(self) -> list[dict[str, Any]]: ...

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]: ...


class ShardCount(View):
    open: int = Field(description="Shards that answer.")
    total: int = Field(description="Shards this installation has.")


class Health(View):
    status: str = Field(description="`ok`, `degraded` (was ready, a shard is missing now) or `starting`.")
    version: str
    build: str
    shards: ShardCount
    checks: dict[str, str] = Field(description="Name of a check -> `ok`, or what is wrong.")


def build_asgi(
    registry: Registry, settings: Settings, shards: Shards, secrets: Secrets, telemetry: Telemetry, *, models: Models | None = None
) -> Application:
    """The service as an ASGI application.

    models  what flows reason with; None where no operation needs one
    """
    return Gateway(registry, settings, shards, secrets, telemetry, models)


class _Route:
    """An operation with what is needed to read its requests, prepared once."""

    __slots__ = ("body", "changes", "is_own", "operation", "public", "query", "tenantless", "upload")

    def __init__(self, operation: Operation, settings: Settings, blobs: BlobStore, *, is_own: bool = False):
        self.operation = operation
        self.is_own = is_own  # the gateway answers it itself
        self.public = operation.scope == "public" and not operation.internal
        self.tenantless = self.public or operation.internal
        self.changes = operation.method in ("POST", "PUT", "PATCH", "DELETE")
        self.query = validation.QueryReader(operation) if operation.query is not None else None
        self.upload = UploadReader(operation, settings, blobs) if operation.upload is not None else None
        self.body = validation.BodyReader(operation) if operation.body is not None and self.upload is None else None


class Gateway:
    """See the module docstring; instances are ASGI applications."""

    def __init__(
        self, registry: Registry, settings: Settings, shards: Shards, secrets: Secrets, telemetry: Telemetry, models: Models | None
    ):
        self.version, self.build = service_version(), service_build()
        self._registry, self._shards, self._secrets, self._telemetry, self._models = registry, shards, secrets, telemetry, models
        self._callers = Callers(settings)
        self._offset = settings.clock.offset_seconds
        self._was_ready = False
        self._described: tuple[bytes, bytes] | None = None
        self._under_way = self._calls = 0  # requests whose answer is being made, and of them calls that a shard has
        self._in_flight = 0  # requests whose answer is not all sent
        telemetry.count_in_flight(lambda: self._in_flight)
        self._arriving = Arriving()
        self._unfinished: set[asyncio.Future[Any]] = set()
        self._own = self._own_operations()
        self._blobs = blob_store(settings)
        routes = [_Route(operation, settings, self._blobs) for operation in registry.operations.values()]
        routes += [_Route(operation, settings, self._blobs, is_own=True) for operation in self._own]
        built = ((mount, mount.build(Door(self, self._arriving), settings)) for plugin in registry.plugins for mount in plugin.mounts)
        self._mounts = [(mount, application) for mount, application in built if application is not None]
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
        self._in_flight += 1
        try:
            await self._serve(scope, receive, send)
        finally:
            self._in_flight -= 1

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        pairs = scope["headers"]
        headers = dict(pairs)
        entropy = os.urandom(_ENTROPY_BYTES)
        request_id = _request_id(headers, entropy[:16])
        REQUEST_ID.set(request_id)
        method, name = scope["method"], _UNMATCHED
        reply: Reply | None = None
        status: int | None = None  # once something has been sent
        self._under_way += 1
        try:
            _check_sizes(scope, pairs)
            if b"host" not in headers and scope.get("http_version") == "1.1":
                raise BadRequest("HTTP/1.1 requires the Host header.", param="Host")
            mounted = self._mounted(scope, headers)
            if mounted is not None:
                name, application = mounted
                status = await self._through(application, scope, headers, receive, send, request_id, started)
            else:
                route, path = self._routes.find(method, scope.get("raw_path") or quote(scope["path"]).encode())
                name = route.operation.name
                if not route.is_own and (self._under_way > GATEWAY_REQUESTS_MAX or self._calls >= GATEWAY_CALLS_MAX):
                    raise _too_many()
                if len(headers) != len(pairs):
                    _check_repeated(pairs, headers)
                now_ms = int((time.time() + self._offset) * 1000)
                call = Call(name, 0, now_ms, entropy[16:], request_id, path=path)
                reply = await self._answer(call, route, scope, headers, receive)
        except ApiError as error:
            reply = Reply(error=error)
        except ClientLeft:
            status = _CLIENT_LEFT_STATUS
        except Exception:
            log.exception("%s failed, request %s", name, request_id)
            reply = Reply(error=InternalError("Something failed on our side. The request id finds the cause in the log."))
        finally:
            self._under_way -= 1
        if status is None and hasattr(reply.body, "__aiter__"):
            status = await self._deliver_stream(send, receive, reply, request_id, started)
        elif status is None:
            status = await self._deliver(send, reply, method, request_id, started)
        if reply is not None and reply.error is not None:
            self._telemetry.error(reply.error.code or reply.error.type)
        self._telemetry.request(name, method if method in _METHODS else "other", status, time.perf_counter() - started)

    # --- the request --------------------------------------------------------------------------------------------------

    def _mounted(self, scope: Scope, headers: Headers) -> tuple[str, Application] | None:
        """(name for the metrics, application) of the mount that claims a request."""
        if not self._mounts or INSIDE in scope:
            return None
        path = scope["path"]
        return next((("mount." + mount.name, application) for mount, application in self._mounts if mount.claims(path, headers)), None)

    async def _through(
        self, application: Application, scope: Scope, headers: Headers, receive: Receive, send: Send, request_id: str, started: float
    ) -> int:
        """Have a mount answer; -> the status. Raises ApiError as long as nothing was sent."""
        if self._under_way > GATEWAY_REQUESTS_MAX:
            raise _too_many()
        if len(headers) != len(scope["headers"]):
            _check_repeated(scope["headers"], headers)
        client, secure = self._callers.of(scope, headers)
        sent = 0

        async def complete(message: MutableMapping[str, Any]) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                sent = message["status"]
                own = {name for name, _ in message["headers"]}
                ours = [(name, value) for name, value in self._headers(request_id, started) if name not in own]
                message = {**message, "headers": [*message["headers"], *ours]}
            await send(message)

        within = {**scope, "client": (client, 0), "scheme": "https" if secure else "http", REQUEST: request_id}
        try:
            await application(within, receive, complete)
        except Exception as error:
            if not sent:
                raise
            if not isinstance(error, ClientLeft):
                log.exception("a mounted application failed in the middle of its answer, request %s", request_id)
        return sent

    async def _answer(self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive) -> Reply:
        """Fill in the call and have it done. Raises ApiError for what can be refused right here."""
        operation = route.operation
        call.client, _ = self._callers.of(scope, headers, loopback_may_be_plain=operation.name == "service.health")
        if not route.public:
            call.credential, call.slot = self._credential(operation, headers, call.now_ms)
        if route.upload is not None:
            return await self._take_in(call, route, scope, headers, receive)
        try:
            await self._read(call, route, scope, headers, receive)
        except ApiError as error:
            if route.tenantless:
                raise
            call.rejected = error
            return await self._execute(call)
        if route.tenantless and operation.slot_of is not None:
            call.slot = operation.slot_of(call.body)
        if operation.kind is Kind.FLOW and not route.tenantless:
            flow = Flow(call, operation, self._registry, self._shards, self._models)
            return await unless_left(flow.run(), receive)
        if operation.kind is Kind.FLOW:
            result = await operation.handler(call, self._shards, self._models)
            return (result if isinstance(result, Reply) else Reply(operation.statuses[0], result)).encoded()
        if operation.kind is Kind.READ:
            return await self._execute(call)
        return await self._to_the_end(self._execute(call))

    async def _execute(self, call: Call) -> Reply:
        """The shard's reply. More calls than can be answered soon are refused at once, before they queue up. Raises Unavailable."""
        if self._calls >= GATEWAY_CALLS_MAX:
            raise _too_many()
        self._calls += 1
        try:
            return await self._shards.execute(call)
        finally:
            self._calls -= 1

    async def _take_in(self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive) -> Reply:
        """An upload: ask whether it may come in, store the file, then have the call done. Raises ApiError.

        A file that the shard has certainly not taken over is removed at once. Where that cannot be known it stays, for the sweep.
        """
        call.knocks = True
        welcome = await self._execute(call)
        if welcome.error is not None:
            return welcome
        call.knocks, call.admitted = False, True
        owner = orjson.loads(welcome.body)["tenant_id"]
        bytes_max = route.upload.body_bytes_max
        chunks = bodies.pieces(headers, receive, bytes_max, UPLOAD_SECONDS_MAX, route.upload.too_large)
        call.body = await route.upload.read(headers.get(b"content-type"), chunks, owner)
        self._telemetry.uploaded(call.body.file.size_bytes)
        try:
            await self._read(call, route, scope, headers, receive)
            reply = await self._to_the_end(self._execute(call))
        except Unavailable:
            raise
        except ApiError:
            await asyncio.to_thread(self._blobs.remove, owner, call.body.file.blob_name)
            raise
        refused = reply.error is not None and not isinstance(reply.error, Unavailable | InternalError)
        if refused or "X-Idempotent-Replay" in reply.headers:
            await asyncio.to_thread(self._blobs.remove, owner, call.body.file.blob_name)
        return reply

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
            call.body = Signed(await bodies.whole(headers, receive, self._arriving), signature)
        elif route.body is not None:
            call.body = route.body.read(headers.get(b"content-type"), await bodies.whole(headers, receive, self._arriving))
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
        stored = reply.file if reply.error is None else None
        if status != 204:
            size = len(body or b"") if stored is None else stored.blob.size
            headers += ((b"content-type", content_type.encode()), (b"content-length", b"%d" % size))
        for name, value in further.items():
            headers.append((name.lower().encode(), _header_value(value)))
        if stored is None or method == "HEAD":
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b"" if method == "HEAD" or body is None else body})
            return status
        try:
            pieces = self._blobs.read(stored.owner, stored.blob)
        except BlobMissing:
            return await self._deliver(send, Reply(error=_gone()), method, request_id, started)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await _send_pieces(send, pieces)
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
            await unless_left(pump(), receive)
            return reply.status
        except ClientLeft:
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

        health = "Answers 503 until every shard is open. A shard that another process took over is named as fenced."
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
        fenced = [str(status["shard"]) for status in statuses if status.get("log", {}).get("fenced")]
        checks = {"shards": "ok" if ready else f"{opened} of {total} are open" + (f"; fenced: {', '.join(fenced)}" if fenced else "")}
        health = Health(status=state, version=self.version, build=self.build, shards=ShardCount(open=opened, total=total), checks=checks)
        return Reply(200 if ready else 503, health, {} if ready else {"Retry-After": "1"})

    async def _metrics(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        self._telemetry.shards(await self._statuses())
        self._telemetry.load(self._calls, self._arriving.size, self._shards.placement_version)
        body, content_type = self._telemetry.exposition()
        return Reply(200, body, content_type=content_type)

    async def _document(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        document, _ = await self.description()
        return Reply(200, document)

    async def _docs(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        _, page = await self.description()
        return Reply(200, page, {"Content-Security-Policy": _DOCS_POLICY}, "text/html; charset=utf-8")

    async def description(self) -> tuple[bytes, bytes]:
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


async def _send_pieces(send: Send, pieces: Iterator[bytes]) -> None:
    """A file as the rest of an answer, as fast as the client takes it."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _gone() -> NotFound:
    return NotFound("This file is gone.")


def _too_many() -> Unavailable:
    told = "More requests are under way than the service can answer soon. Retry in a moment."
    return Unavailable(told, headers={OVERLOADED_HEADER: "1"})


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


# --- errors ----------------------------------------------------------------------------------------------------------


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
