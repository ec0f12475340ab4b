"""A collector of traces on a port of its own: OTLP over HTTP, as protobuf, decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_SECONDS_MAX = 60


@dataclass(frozen=True)
class Collected:
    """A span as it came. process: which of the service's processes sent it."""

    trace: str
    id: str
    parent: str
    name: str
    process: str
    has_failed: bool
    attributes: dict[str, Any] = field(hash=False)


class Collector:
    """What came: spans, and the bodies that they came in."""

    def __init__(self, url: str):
        self.url = url
        self.bodies: list[bytes] = []
        self._spans: list[Collected] = []
        self._came = threading.Condition()

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a service that records here what its clients ask it to."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_TRACES_SAMPLER": "parentbased_always_off",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        spans = [
            Collected(
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.name,
                _attributes(sent.resource.attributes)["service.instance.id"],
                span.status.code == span.status.STATUS_CODE_ERROR,
                _attributes(span.attributes),
            )
            for sent in request.resource_spans
            for scope in sent.scope_spans
            for span in scope.spans
        ]
        with self._came:
            self.bodies.append(body)
            self._spans += spans
            self._came.notify_all()

    def trace(self, trace: str, *names: str) -> list[Collected]:
        """The spans of a trace, once those of these names have come."""

        def found() -> list[Collected]:
            return [span for span in self._spans if span.trace == trace]

        with self._came:
            whole = self._came.wait_for(
                lambda: {*names} <= {span.name for span in found()}, WAIT_SECONDS_MAX
            )
            assert whole, sorted(span.name for span in found())
            return found()


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            running.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Collector(f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
