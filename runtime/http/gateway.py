"""One gateway: each request from its first byte to its answer, past the stations that the package
lists.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, MutableMapping
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from runtime import tracing
from runtime.api.mount import INSIDE, REQUEST, Application, Scope, Send
from runtime.api.operation import Before, Call, Credential, Kind, Operation, Reply, Signed
from runtime.api.operation import Flow as FlowOperation
from runtime.api.plugin import Registry
from runtime.errors import (
    OVERLOADED_HEADER,
    PLUGIN_RAISES,
    ApiError,
    BadRequest,
    HeadersTooLarge,
    InternalError,
    Unauthenticated,
    Unavailable,
    UriTooLong,
)
from runtime.http import bodies, validation
from runtime.http.arriving import Arrival, Arriving
from runtime.http.bodies import ClientLeft, Headers, Receive, T, unless_left
from runtime.http.client_address import Callers
from runtime.http.credentials import check_watcher, read_authorization
from runtime.http.cross_origin import CrossOrigin
from runtime.http.flow import Flow
from runtime.http.in_process_client import GatewayClient
from runtime.http.loop_turns import LoopTurns, RequestLabel
from runtime.http.other_protocols import live, refuse_websocket
from runtime.http.own_operations import OwnOperations
from runtime.http.request_log import RequestLog
from runtime.http.responses import CLIENT_LEFT_STATUS, Responses, request_id_of
from runtime.http.routes import Routes
from runtime.http.shards import Shards
from runtime.http.uploads import UploadReader
from runtime.installation import Secrets, blob_store
from runtime.limits import (
    AGENT_CHARS_MAX,
    BODY_BYTES_MAX,
    GATEWAY_CALLS_MAX,
    GATEWAY_REQUESTS_MAX,
    HEADER_BYTES_MAX,
    PUBLIC_BODY_BYTES_MAX,
    SIGNED_BODY_BYTES_MAX,
    UPLOAD_SECONDS_MAX,
    URL_BYTES_MAX,
)
from runtime.log_lines import REQUEST_ID
from runtime.loop_stalls import Label, LoopStalls
from runtime.processor_turns import come_soon
from runtime.settings import Settings
from runtime.shard import authorise_operator
from runtime.telemetry import Telemetry
from runtime.turns import work_for
from storage.blobs import BlobStore

if TYPE_CHECKING:
    from runtime.inference import Models

log = logging.getLogger("mneme.gateway")

# A second one of these would let two readers of a request disagree about what it says.
_SINGLE = (
    b"authorization",
    b"content-length",
    b"content-type",
    b"host",
    b"idempotency-key",
    b"if-match",
)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_UNMATCHED, _PREFLIGHT = "unmatched", "preflight"
_ENTROPY_BYTES = 16 + 32  # one request to the system for a request id and a call's seed


class _Route:
    """An operation with what is needed to read its requests, prepared once."""

    __slots__ = (
        "body",
        "body_bytes_max",
        "changes",
        "is_own",
        "is_probed",
        "is_watched",
        "operation",
        "public",
        "query",
        "tenantless",
        "upload",
    )

    def __init__(
        self, operation: Operation, settings: Settings, blobs: BlobStore, *, is_own: bool = False
    ):
        self.operation = operation
        self.is_own = is_own  # the gateway answers it itself
        self.is_probed = operation.name == "service.health"  # over plain HTTP, from this machine
        self.is_watched = operation.name == "service.metrics"  # with a token of its own
        self.public = operation.scope == "public" and not operation.internal
        self.tenantless = self.public or operation.internal
        self.body_bytes_max = (
            BODY_BYTES_MAX
            if not self.public
            else PUBLIC_BODY_BYTES_MAX
            if operation.signed_by is None
            else SIGNED_BODY_BYTES_MAX
        )
        self.changes = operation.method in ("POST", "PUT", "PATCH", "DELETE")
        self.query = validation.QueryParser(operation) if operation.query is not None else None
        self.upload = (
            UploadReader(operation, settings, blobs) if operation.upload is not None else None
        )
        self.body = (
            validation.BodyParser(operation)
            if operation.body is not None and self.upload is None
            else None
        )


class Gateway:
    """The service on one process: instances are ASGI applications."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        shards: Shards,
        secrets: Secrets,
        telemetry: Telemetry,
        models: Models | None,
        requests: RequestLog | None = None,
    ):
        self._requests = requests
        self._registry, self._shards, self._secrets, self._telemetry, self._models = (
            registry,
            shards,
            secrets,
            telemetry,
            models,
        )
        self._settings, self._callers = settings, Callers(settings)
        self._cross_origin = CrossOrigin(settings.http.cors_origins, self._callers)
        self._stalls = LoopStalls(telemetry.stall)
        self._offset = settings.clock.offset_seconds
        self._under_way = self._calls = (
            0  # requests whose answer is being made, and of them calls that a shard has
        )
        self._in_flight = 0  # requests whose answer is not all sent
        telemetry.count_in_flight(lambda: self._in_flight)
        self._arriving = Arriving()
        in_process = settings.engine == "local"  # where a call that goes on is with a thread
        self._turns = LoopTurns(lambda: in_process and self._calls > 0)
        self._unfinished: set[asyncio.Future[Any]] = set()
        self.own = OwnOperations(
            registry, shards, telemetry, lambda: (self._calls, self._arriving.size)
        )
        self._blobs = blob_store(settings)
        self._responses = Responses(self._blobs, settings.http.hsts_seconds)
        routes = [
            _Route(operation, settings, self._blobs) for operation in registry.operations.values()
        ]
        routes += [
            _Route(operation, settings, self._blobs, is_own=True)
            for operation in self.own.operations
        ]
        client = GatewayClient(self, self._arriving, registry.tools, self._slot_shown)
        built = (
            (mount, mount.build(client, settings))
            for plugin in registry.plugins
            for mount in plugin.mounts
        )
        self._mounts = [
            (mount, application) for mount, application in built if application is not None
        ]
        self._routes = Routes(
            (r.operation.method, path, r)
            for r in routes
            for path in (r.operation.path, *r.operation.aliases)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await refuse_websocket(self._responses, scope, send)
            return
        if scope["type"] != "http":
            come_soon()  # on the thread of the event loop, which may not be that of __init__
            await live(receive, send)
            if self._requests is not None:
                self._requests.close()
            return
        self._in_flight += 1
        label = RequestLabel(_UNMATCHED)
        try:
            span = (
                tracing.part("request", "inside")
                if INSIDE in scope
                else tracing.request(scope["headers"])
            )
            with span:
                await self._stalls.watch(self._serve(scope, receive, send, label), label)
        finally:
            self._in_flight -= 1
            if label.account is not None:
                self._turns.ended(label.account, label.seconds)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, label: RequestLabel) -> None:
        """Answer one request; label: named after its operation once that is known."""
        started = time.perf_counter()
        pairs = scope["headers"]
        headers = dict(pairs)
        entropy = os.urandom(_ENTROPY_BYTES)
        request_id = request_id_of(headers, entropy[:16])
        REQUEST_ID.set(request_id)
        method = scope["method"]
        reply: Reply | None = None
        status = 0  # that has been sent
        secure = self._callers.came_securely(scope, headers)
        send = self._cross_origin.shared(headers, send)
        self._under_way += 1
        try:
            _check_sizes(scope, pairs)
            if b"host" not in headers and scope.get("http_version") == "1.1":
                raise BadRequest("HTTP/1.1 requires the Host header.", param="Host")
            reply = self._cross_origin.preflight(scope, headers)
            mounted = None if reply is not None else self._mounted(scope, headers)
            if reply is not None:
                label.operation = _PREFLIGHT
            elif mounted is not None:
                label.operation, application = mounted
                status = await self._through(
                    application, scope, headers, receive, send, request_id, started
                )
            else:
                route, path = self._routes.find(
                    method, scope.get("raw_path") or quote(scope["path"]).encode()
                )
                name = label.operation = route.operation.name
                # Nobody is made to give way for a request that is refused all the same.
                if not route.is_own and (
                    self._calls >= GATEWAY_CALLS_MAX or self._is_full(scope, headers)
                ):
                    raise _too_many()
                if len(headers) != len(pairs):
                    _check_repeated(pairs, headers)
                now_ms = int((time.time() + self._offset) * 1000)
                call = Call(name, 0, now_ms, entropy[16:], request_id, path=path)
                reply = await self._answer(call, route, scope, headers, receive, label)
        except ApiError as error:
            reply = Reply(error=error.without_stack())
        except ClientLeft:
            status = CLIENT_LEFT_STATUS
        except PLUGIN_RAISES:
            log.exception("%s failed, request %s", label.operation, request_id)
            reply = Reply(
                error=InternalError(
                    "Something failed on our side. The request id finds the cause in the log."
                )
            )
        finally:
            self._under_way -= 1
        if not status and reply is not None and hasattr(reply.body, "__aiter__"):
            status = await self._stream(send, receive, reply, request_id, started, secure)
        elif not status and reply is not None:
            status = await self._responses.send(send, reply, method, request_id, started, secure)
        if reply is not None and reply.error is not None:
            self._telemetry.error(reply.error.code or reply.error.type)
        known = method if method in _METHODS else "other"
        seconds = time.perf_counter() - started
        self._telemetry.request(label.operation, known, status, seconds)
        if self._requests is not None:
            self._requests.note(request_id, label.operation, known, status, seconds)
        tracing.answered(label.operation, known, status, request_id)

    # --- the request ------------------------------------------------------------------------------

    def _is_full(self, scope: Scope, headers: Headers) -> bool:
        """Whether as many requests are under way as may be, and none gives way: one whose body is
        waited for does, of an address that has more of them than the caller.
        """
        if self._under_way <= GATEWAY_REQUESTS_MAX:
            return False
        return not self._arriving.make_room(self._callers.of(scope, headers)[0])

    def _mounted(self, scope: Scope, headers: Headers) -> tuple[str, Application] | None:
        """(name for the metrics, application) of the mount that claims a request."""
        if not self._mounts or INSIDE in scope:
            return None
        path = scope["path"]
        return next(
            (
                ("mount." + mount.name, application)
                for mount, application in self._mounts
                if mount.claims(path, headers)
            ),
            None,
        )

    async def _through(
        self,
        application: Application,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        send: Send,
        request_id: str,
        started: float,
    ) -> int:
        """Have a mount answer; -> the status. Raises ApiError as long as nothing was sent."""
        if self._is_full(scope, headers):
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
                ours = [
                    (name, value)
                    for name, value in self._responses.headers(request_id, started, secure)
                    if name not in own
                ]
                message = {**message, "headers": [*message["headers"], *ours]}
            await send(message)

        within = {
            **scope,
            "client": (client, 0),
            "scheme": "https" if secure else "http",
            REQUEST: request_id,
        }
        try:
            await application(within, receive, complete)
        except Exception as error:
            if not sent:
                raise
            if not isinstance(error, ClientLeft):
                log.exception(
                    "a mounted application failed in the middle of its answer, request %s",
                    request_id,
                )
        return sent

    async def _answer(
        self,
        call: Call,
        route: _Route,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        label: RequestLabel,
    ) -> Reply:
        """Fill in the call and have it done, in its account's turn. Raises ApiError for what can be
        refused right here.
        """
        operation = route.operation
        call.client, _ = self._callers.of(scope, headers, loopback_may_be_plain=route.is_probed)
        if route.public:
            call.agent = headers.get(b"user-agent", b"").decode("latin-1")[:AGENT_CHARS_MAX]
        else:
            call.credential, call.slot = self._credential(operation, headers, call.now_ms)
        if route.is_watched:
            check_watcher(_authorization(headers), self._settings, self._secrets)
        if not route.is_own:  # whoever watches the service is no crowd
            label.account = call.client if route.tenantless else call.slot
            work_for(label.account)
            turn = self._turns.turn(label.account)
            if turn is not None:
                await turn
        if route.upload is not None:
            return await self._take_in(call, route, scope, headers, receive)
        try:
            await self._read(call, route, scope, headers, receive)
        except ApiError as error:
            if route.tenantless:
                raise
            call.rejected = error.without_stack()
            return await self._execute(call)
        if route.tenantless and operation.slot_of is not None:
            call.slot = operation.slot_of(call.body)
        if operation.before is not None:
            refused = await self._do_before(call, operation.before)
            if refused is not None:
                return refused
        if isinstance(operation, FlowOperation) and not route.tenantless:
            flow = Flow(call, operation, self._registry, self._shards, self._models)
            running = self._stalls.watch(flow.run(), Label(operation.name))
            return await unless_left(running, receive)
        if isinstance(operation, FlowOperation):
            result = await operation.handler(call, self._shards, self._models)
            return (
                result if isinstance(result, Reply) else Reply(operation.statuses[0], result)
            ).encoded()
        if operation.kind is Kind.READ:
            return await self._execute(call)
        return await self._to_the_end(self._execute(call))

    async def _do_before(self, call: Call, before: Before) -> Reply | None:
        """Have done what a public write needs in another slot; -> what refuses it, if it does."""
        body = before.body_of(call.body, self._settings)
        if body is None:
            return None
        needed = self._registry.operations[before.operation]
        assert needed.slot_of is not None  # internal operations say it
        first = Call(
            needed.name, needed.slot_of(body), call.now_ms, call.seed, call.request_id, body=body
        )
        first.credential, first.client = Credential("operator"), call.client
        reply = await self._to_the_end(self._execute(first))
        if reply.error is not None:
            return reply
        call.loaded = orjson.loads(reply.body)
        return None

    async def _execute(self, call: Call) -> Reply:
        """The shard's reply. More calls than can be answered soon are refused at once, before they
        queue up. Raises Unavailable.
        """
        if self._calls >= GATEWAY_CALLS_MAX:
            raise _too_many()
        self._calls += 1
        try:
            return await self._shards.execute(call)
        finally:
            self._calls -= 1

    async def _take_in(
        self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive
    ) -> Reply:
        """Take an upload: ask in a preflight whether it may come in, store the file, then have the
        call done. Raises ApiError.

        A file that the shard has certainly not taken over is removed at once. Where that cannot be
        known it stays, for the sweep.
        """
        call.preflight = True
        welcome = await self._execute(call)
        if welcome.error is not None:
            return welcome
        call.preflight, call.admitted = False, True
        owner = orjson.loads(welcome.body)["tenant_id"]
        assert route.upload is not None
        bytes_max = route.upload.body_bytes_max
        chunks = bodies.pieces(
            headers,
            receive,
            bytes_max,
            UPLOAD_SECONDS_MAX,
            route.upload.too_large,
            Arrival(call.client, call.slot),
        )
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
        refused = reply.error is not None and not isinstance(
            reply.error, Unavailable | InternalError
        )
        if refused or "X-Idempotent-Replay" in reply.headers:
            await asyncio.to_thread(self._blobs.remove, owner, call.body.file.blob_name)
        return reply

    def _credential(
        self, operation: Operation, headers: Headers, now_ms: int
    ) -> tuple[Credential, int]:
        credential, slot = read_authorization(_authorization(headers), self._secrets, now_ms)
        if operation.internal:
            authorise_operator(credential)
        return credential, slot

    async def _read(
        self, call: Call, route: _Route, scope: Scope, headers: Headers, receive: Receive
    ) -> None:
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
            call.query = route.query.parse(scope["query_string"])
        if route.operation.signed_by is not None:
            signature = headers.get(route.operation.signed_by.lower().encode(), b"").decode(
                "latin-1"
            )
            call.body = Signed(await self._whole(call, route, headers, receive), signature)
        elif route.body is not None:
            call.body = await route.body.parse_in_steps(
                headers.get(b"content-type"), await self._whole(call, route, headers, receive)
            )
        if call.idempotency_key is None and route.changes:
            call.idempotency_key = getattr(
                call.body, "idempotency_key", None
            )  # the header wins over the body's own
        if call.idempotency_key is not None:
            meant = call.body if route.body is None else await route.body.meaning(call.body)
            call.fingerprint, *before = (
                validation.fingerprint(pepper, route.operation, call.path, call.query, meant)
                for pepper in self._secrets.peppers
            )
            call.fingerprint_before = before[0] if before else b""

    async def _whole(self, call: Call, route: _Route, headers: Headers, receive: Receive) -> bytes:
        """The body, whose bytes are counted for the caller's address and account."""
        arrival = Arrival(call.client, None if route.tenantless else call.slot)
        return await bodies.whole(headers, receive, self._arriving, arrival, route.body_bytes_max)

    def _slot_shown(self, headers: Headers) -> int | None:
        """The slot of whoever shows a credential that may be genuine."""
        try:
            now_ms = int((time.time() + self._offset) * 1000)
            return read_authorization(_authorization(headers), self._secrets, now_ms)[1]
        except Unauthenticated:
            return None

    async def _to_the_end(self, work: Awaitable[T]) -> T:
        """Await work that must not stop halfway when the server cancels this request because its
        client has gone.
        """
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)

    async def _stream(
        self,
        send: Send,
        receive: Receive,
        reply: Reply,
        request_id: str,
        started: float,
        secure: bool,
    ) -> int:
        """Send a streamed reply; -> the status. Whatever happens, its body is closed."""
        try:
            return await self._responses.stream(send, receive, reply, request_id, started, secure)
        finally:
            await self._to_the_end(reply.body.aclose())


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


def _authorization(headers: Headers) -> str | None:
    header = headers.get(b"authorization")
    return None if header is None else header.decode("latin-1")


def _too_many() -> Unavailable:
    message = "More requests are under way than the service can answer soon. Retry in a moment."
    return Unavailable(message, headers={OVERLOADED_HEADER: "1"})
