"""What a collector gets: the messages, held against those of OpenTelemetry's own classes, and how
the standard variables have them sent.
"""

from __future__ import annotations

import gzip
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from runtime import tracing
from runtime.tracing import recorder as recording
from runtime.tracing.collector import Collector
from runtime.tracing.otlp import message
from runtime.tracing.recorder import OtlpRecorder
from runtime.tracing.spans import Parent, Span
from tests.support.certificates import certificate

WAIT_SECONDS_MAX = 60
LONG = "ü" * 200
KINDS = {
    "server": SpanKind.SERVER,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}


def ended(span: Span, error: str = "", has_failed: bool = False) -> Span:
    span.began, span.ended = 1_700_000_000_000_000_001, 1_700_000_000_123_456_789
    span.error, span.has_failed = error, has_failed
    return span


def spans() -> list[Span]:
    """One of each kind: without a parent, under one of this process, and under another's."""
    root = Span("a", "server", None, 2**127 + 5, True, {"http.request.method": "GET", "n": 2**40})
    here = Span("commit a", "internal", root, root.trace_id, True, {"shard": 0, "texts": 300})
    remote = Span(f"job {LONG}", "consumer", Parent(7, 9, True), 7, True, {"job_id": LONG, "at": 1})
    return [ended(root, "500", True), ended(here, "NotFound"), ended(remote)]


def theirs(span: Span) -> ReadableSpan:
    def context(of: Span | Parent) -> SpanContext:
        return SpanContext(of.trace_id, of.span_id, of.is_remote, TraceFlags(TraceFlags.SAMPLED))

    told = {key if "." in key else f"mneme.{key}": value for key, value in span.attributes.items()}
    return ReadableSpan(
        name=span.name,
        context=context(span),
        parent=None if span.parent is None else context(span.parent),
        resource=RESOURCE,
        attributes={**told, "error.type": span.error} if span.error else told,
        kind=KINDS[span.kind],
        instrumentation_scope=InstrumentationScope("mneme", "1.2.3"),
        status=Status(StatusCode.ERROR if span.has_failed else StatusCode.UNSET),
        start_time=span.began,
        end_time=span.ended,
    )


RESOURCE = Resource(
    {"service.name": "mneme", "n": -1, "share": 0.5, "is": True, "args": ("a", "b"), "long": LONG}
)


def test_messages_are_those_of_opentelemetry_itself() -> None:
    ours = spans()
    said = message(RESOURCE.attributes, ("mneme", "1.2.3"), ours)
    wanted = encode_spans([theirs(span) for span in ours])
    assert ExportTraceServiceRequest.FromString(said) == wanted


class Asked:
    """A collector that answers in turn as it is told to, and 200 from then on."""

    def __init__(self, url: str, answers: list[tuple[int, str]]):
        self.url, self.answers = url, answers
        self.came: list[tuple[str, dict[str, str], bytes]] = []
        self.heard = threading.Condition()

    def names(self) -> list[str]:
        read = [
            ExportTraceServiceRequest.FromString(
                gzip.decompress(body) if sent.get("content-encoding") == "gzip" else body
            )
            for _, sent, body in self.came
        ]
        return [
            span.name
            for each in read
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def until(self, requests: int) -> None:
        with self.heard:
            assert self.heard.wait_for(lambda: len(self.came) >= requests, WAIT_SECONDS_MAX)


@contextmanager
def asked(
    *answers: tuple[int, str],
    tls: ssl.SSLContext | None = None,
    tunnelled: ssl.SSLContext | None = None,
) -> Iterator[Asked]:
    """By HTTPS with `tls`. It is a proxy, too, which takes every host for itself; tunnelled: what
    it shows through a tunnel.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            assert tunnelled is not None
            collector.came.append((self.path, {}, b""))
            self.send_response(200)
            self.end_headers()
            self.request = tunnelled.wrap_socket(self.connection, server_side=True)
            self.setup()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with collector.heard:  # before whoever sent it may go on
                collector.came.append((self.path, headers, body))
                collector.heard.notify_all()
            status, retry_after = collector.answers.pop(0) if collector.answers else (200, "")
            self.send_response(status)
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Who does not like the certificate, or has none to show, goes."""

    server = Server(("localhost", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    collector = Asked(f"{scheme}://localhost:{server.server_port}", list(answers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def test_variables_say_where_spans_go_and_how(monkeypatch: pytest.MonkeyPatch) -> None:
    with asked() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.url}/base/")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x,other=of-all")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        Collector().take(message({}, ("mneme", "1"), spans()))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/whole")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none")
        Collector().take(message({}, ("mneme", "1"), spans()))
        (first, sent, _), (second, other, _) = collector.came
        assert (first, second) == ("/base/v1/traces", "/whole")
        assert (sent["authorization"], sent["other"]) == ("Bearer x", "of-all")
        assert (other["x-key"], other.get("authorization")) == ("1", None)
        assert (sent["content-encoding"], other.get("content-encoding")) == ("gzip", None)
        assert sent["content-type"] == "application/x-protobuf"
        assert collector.names() == [span.name for span in spans()] * 2


def test_a_busy_collector_is_asked_again_and_a_refusal_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mneme.tracing")
    with asked((503, "0"), (429, "0"), (400, ""), (400, "")) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        sending = Collector()
        sending.take(b"")  # 503, 429, and then 400, which is no use to try again
        sending.take(b"")
        assert len(collector.came) == 4
        sending.take(b"")
        assert len(collector.came) == 5
    (line,) = caplog.messages
    assert line.endswith("answers 400")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    Collector().take(b"")
    (_, line) = caplog.messages
    assert line.endswith("does not answer ([Errno 111] Connection refused)")


def test_a_collector_that_names_no_time_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with asked((503, "Thu, 01 Jan 99999999999 00:00:00 GMT")) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        Collector().take(b"")
        assert len(collector.came) == 2


def shown(directory: Path, name: str) -> tuple[ssl.SSLContext, Path, Path]:
    """What a server of this name shows: a self-signed certificate; its file, and its key's."""
    directory.mkdir()
    made, key = certificate(directory, name)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made, key)
    return server, made, key


def test_a_collector_of_https_is_known_by_its_certificate_and_shown_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mneme.tracing")
    server, authority, _ = shown(tmp_path / "collector", "localhost")
    _, own, key = shown(tmp_path / "service", "mneme")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    with asked(tls=server) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        Collector().take(b"signed by nobody that is known")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(authority))
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.replace("localhost", "127.0.0.1")
        )
        Collector().take(b"of another name")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        Collector().take(b"known")
        server.load_verify_locations(own)
        server.verify_mode = ssl.CERT_REQUIRED
        Collector().take(b"without a certificate to show")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", str(own))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", str(key))
        Collector().take(b"shown")
    assert [body for _, _, body in collector.came] == [b"known", b"shown"]
    unknown, misnamed, _ = caplog.messages
    assert "self-signed certificate" in unknown and "127.0.0.1" in misnamed


def test_a_proxy_is_gone_through_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server, authority, _ = shown(tmp_path / "collector", "collector.example")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(authority))
    with asked(tunnelled=server) as proxy, asked() as near:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "localhost")
        for endpoint in ("http://collector.example:4318", "https://collector.example", near.url):
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            Collector().take(endpoint.encode())
        assert [(path, body) for path, _, body in proxy.came] == [
            ("http://collector.example:4318/v1/traces", b"http://collector.example:4318"),
            ("collector.example:443", b""),
            ("/v1/traces", b"https://collector.example"),
        ]
        assert [body for _, _, body in near.came] == [near.url.encode()]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"),
        ({"TRACES_ENDPOINT": "https:///v1"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no URL"),
        ({"ENDPOINT": "http://a:port"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no URL"),
        (
            {"ENDPOINT": "https://a", "CERTIFICATE": "/nowhere.pem"},
            "OTEL_EXPORTER_OTLP_CERTIFICATE ('/nowhere.pem') is no file of certificates: No such",
        ),
        (
            {"ENDPOINT": "https://a", "CLIENT_CERTIFICATE": __file__},
            f"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE ('{__file__}') and …_KEY ('') are no pair: ",
        ),
    ],
)
def test_what_spans_cannot_be_sent_by_is_named_before_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    why = tracing.refusal()
    assert why is not None and why.startswith(said)


@pytest.mark.parametrize(
    ("sampler", "argument", "taken"),
    [
        ("", "", [True, True, False]),
        ("always_off", "", [False, False, False]),
        ("always_on", "", [True, True, True]),
        ("parentbased_always_off", "", [False, True, False]),
        ("parentbased_traceidratio", "0.5", [True, True, False]),
        ("traceidratio", "0", [False, False, False]),
    ],
)
def test_the_sampler_that_is_named_decides(
    monkeypatch: pytest.MonkeyPatch, sampler: str, argument: str, taken: list[bool]
) -> None:
    """Of a trace of one's own, of one that its client records, and of one that it does not."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    if sampler:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    recorder = OtlpRecorder("test")
    trace = 5  # of the lower half, which a ratio of a half takes
    parents = (None, Parent(trace, 9, True), Parent(trace, 9, False))
    assert [recorder.samples("a", trace, parent) for parent in parents] == taken
    recorder.close()


def test_spans_gather_go_in_batches_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mneme.tracing")
    with asked() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
        monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
        monkeypatch.setattr(recording, "TRACES_SENT_SECONDS_MAX", WAIT_SECONDS_MAX)
        recorder = OtlpRecorder("test")
        first, second, third = spans()
        recorder.record(first)
        assert collector.came == []
        recorder.record(second)
        collector.until(1)
        recorder.record(third)
        recorder.close()
        assert collector.names() == [first.name, second.name, third.name]
        assert len(collector.came) == 2 and caplog.messages == []
        for _ in range(7):  # nobody sends them any more
            recorder.record(first)
        assert caplog.messages == ["spans are lost: 5 wait for their collector"]
