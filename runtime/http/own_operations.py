"""What the gateway answers itself: whether the service is ready, its metrics, its description.

These operations are declared like any other and pass the same stations; only their work is done
here, since no shard could do it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import Field

from runtime.api.operation import Call, Flow, Operation, Reply, View
from runtime.api.plugin import Registry
from runtime.errors import ApiError
from runtime.http import openapi, openapi_page
from runtime.http.shards import Shards
from runtime.limits import HEALTH_SECONDS_MAX, METRICS_KEPT_SECONDS
from runtime.release import service_build, service_version
from runtime.telemetry import Telemetry

if TYPE_CHECKING:
    from runtime.inference import Models

log = logging.getLogger("mneme.gateway")

_DOCS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class ShardCount(View):
    open: int = Field(description="Shards that answer.")
    total: int = Field(description="Shards this installation has.")


class Health(View):
    status: str = Field(
        description="`ok`, `degraded` (was ready, a shard is missing now; with 200: the object "
        "store takes nothing, or a disk has no room) or `starting`."
    )
    version: str
    build: str
    shards: ShardCount
    checks: dict[str, str] = Field(description="Name of a check -> `ok`, or what is wrong.")


class OwnOperations:
    """The operations of one gateway, and their handlers.

    load  -> (calls that shards have, bytes of bodies that are arriving), for the metrics
    """

    def __init__(
        self,
        registry: Registry,
        shards: Shards,
        telemetry: Telemetry,
        load: Callable[[], tuple[int, int]],
    ):
        self._registry, self._shards, self._telemetry, self._load = (
            registry,
            shards,
            telemetry,
            load,
        )
        self._version, self._build = service_version(), service_build()
        self._was_ready = False
        self._figures: tuple[bytes, str] | None = None
        self._figures_until = 0.0
        self._gathering: asyncio.Future[tuple[bytes, str]] | None = None
        self._document_and_page: tuple[bytes, bytes] | None = None
        self.operations = self._declared()

    def _declared(self) -> tuple[Operation, ...]:
        def own(
            name: str,
            path: str,
            handler: Callable[..., Awaitable[Reply]],
            summary: str,
            **further: Any,
        ) -> Operation:
            fields: dict[str, Any] = {"response": None, "scope": "public", **further}
            return Flow(f"service.{name}", "GET", path, handler, summary, **fields)

        health = (
            "Answers 503 until every shard is open. A shard that another process took over is "
            "named as fenced, one that cannot find out whether that happened as without a lease. "
            "An object store that takes nothing is a check of its own, and 200: reads are answered."
        )
        return (
            own(
                "health",
                "/v1/health",
                self._health,
                "Is the service ready?",
                response=Health,
                statuses=(200, 503),
                description=health,
            ),
            own("metrics", "/metrics", self._metrics, "Metrics in Prometheus' text format"),
            own("openapi", "/openapi.json", self._document, "This description"),
            own("docs", "/docs", self._docs, "The description, for people"),
        )

    async def _health(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        statuses = await self._statuses()
        opened, total = sum(bool(status["open"]) for status in statuses), len(statuses)
        ready = 0 < total == opened
        self._was_ready = self._was_ready or ready
        fenced = [
            str(status["shard"]) for status in statuses if status.get("log", {}).get("fenced")
        ]
        lapsed = [
            str(status["shard"])
            for status in statuses
            if not (log := status.get("log", {})).get("leased", True) and not log["fenced"]
        ]
        checks = {
            "shards": "ok"
            if ready
            else f"{opened} of {total} are open"
            + (f"; fenced: {', '.join(fenced)}" if fenced else "")
            + (f"; without a lease: {', '.join(lapsed)}" if lapsed else "")
        }
        if failing := _without_object_store(statuses):
            checks["object_store"] = failing
        if full := _without_room(statuses):
            checks["disk"] = full
        if ready:
            state = "degraded" if failing or full else "ok"
        else:
            state = "degraded" if self._was_ready else "starting"
        health = Health(
            status=state,
            version=self._version,
            build=self._build,
            shards=ShardCount(open=opened, total=total),
            checks=checks,
        )
        return Reply(200 if ready else 503, health, {} if ready else {"Retry-After": "1"})

    async def _metrics(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        """The figures of the last second: each request would ask every shard."""
        figures = self._figures
        if figures is None or time.monotonic() >= self._figures_until:
            if self._gathering is None:
                self._gathering = asyncio.ensure_future(self._gather())
            figures = await asyncio.shield(self._gathering)
        body, content_type = figures
        return Reply(200, body, content_type=content_type)

    async def _gather(self) -> tuple[bytes, str]:
        try:
            self._telemetry.shards(await self._statuses())
            self._telemetry.load(*self._load(), self._shards.placement_version)
            self._figures_until = time.monotonic() + METRICS_KEPT_SECONDS
            self._figures = self._telemetry.exposition()
            return self._figures
        finally:
            self._gathering = None

    async def _document(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        document, _ = await self.description()
        return Reply(200, document)

    async def _docs(self, call: Call, shards: Shards, models: Models | None) -> Reply:
        _, page = await self.description()
        return Reply(
            200, page, {"Content-Security-Policy": _DOCS_POLICY}, "text/html; charset=utf-8"
        )

    async def description(self) -> tuple[bytes, bytes]:
        """The OpenAPI document and its page, made at the first request and off the event loop: it
        takes a while and not everybody asks.
        """
        if self._document_and_page is None:
            document = await asyncio.to_thread(
                openapi.document, self._registry, self._version, self.operations
            )
            self._document_and_page = orjson.dumps(document), openapi_page.page(document).encode()
        return self._document_and_page

    async def _statuses(self) -> list[dict[str, Any]]:
        """What the shards say of themselves; nothing when they cannot be asked in time."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS_MAX):
                return await self._shards.status()
        except (TimeoutError, ApiError) as silent:
            log.warning("the shards gave no status: %r", silent)
            return []


def _without_object_store(statuses: list[dict[str, Any]]) -> str:
    """Of which open shards the object store takes no log, and for how long; "" where it takes all.
    With `replicated` they refuse writes.
    """
    failing, seconds = _failing(statuses, "log", "failing_seconds")
    return failing and f"has taken nothing of shard {failing} for {seconds:.0f} seconds"


def _without_room(statuses: list[dict[str, Any]]) -> str:
    """Which open shards' disk refuses writes, and since when; "" where it has room."""
    full, seconds = _failing(statuses, "write", "disk_full_seconds")
    return full and f"has had no room for writes of shard {full} for {seconds:.0f} seconds"


def _failing(statuses: list[dict[str, Any]], part: str, figure: str) -> tuple[str, float]:
    """-> which open shards say that for longer than no time, and the longest of them."""
    failing = {
        str(status["shard"]): seconds
        for status in statuses
        if status["open"] and (seconds := status.get(part, {}).get(figure, 0.0)) > 0
    }
    return ", ".join(failing), max(failing.values(), default=0.0)
