"""Traces: who is under whom, from a client's traceparent to the commit and the job, as a collector
gets them; and what is never in one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from runtime import tracing
from runtime.errors import NotFound
from runtime.tracing.spans import Parent, Span, record_with
from tests.support.collector import Collected, Collector
from tests.support.served import Served

CLIENT_SPAN = "00f067aa0ba902b7"
WORD = "quixotic"  # in texts and queries, and never in a span


class Recorded:
    """A recorder that keeps what ended; `takes`: whether it records traces of nobody else."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.takes = True

    def samples(self, name: str, trace_id: int, parent: Parent | None) -> bool:
        return self.takes if parent is None else parent.is_sampled

    def record(self, span: Span) -> None:
        self.spans.append(span)

    def close(self) -> None:
        pass


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    recorder = Recorded()
    before = record_with(recorder)
    yield recorder
    record_with(before)


def headers(traceparent: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"traceparent", traceparent.encode())]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("sent", "is_continued"),
    [
        (f"00-{TRACE}-{CLIENT_SPAN}-01", True),
        (f"cc-{TRACE}-{CLIENT_SPAN}-01-what-a-later-version-adds", True),
        (f"00-{TRACE}-{CLIENT_SPAN}-01-more", False),
        (f"ff-{TRACE}-{CLIENT_SPAN}-01", False),
        (f"00-{'0' * 32}-{CLIENT_SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{CLIENT_SPAN}-01", False),
        ("é", False),
        ("", False),
    ],
)
def test_a_trace_goes_on_where_the_header_is_one(
    recorded: Recorded, sent: str, is_continued: bool
) -> None:
    with tracing.request(headers(sent)):
        carried = tracing.carried()
    (span,) = recorded.spans
    assert (span.parent is not None) is is_continued
    assert (f"{span.trace_id:032x}" == TRACE) is is_continued
    assert carried == f"00-{span.trace_id:032x}-{span.span_id:016x}-01"


def test_what_is_open_is_what_parts_are_under(recorded: Recorded) -> None:
    with tracing.part("commit", "of nobody"):
        assert tracing.carried() == ""
    with tracing.request([]), tracing.part("shard", "a", shard=3):
        with tracing.apart(), tracing.part("commit", "usage"):
            pass
        with tracing.part("commit", "a"):
            pass
    commit, shard, request = recorded.spans
    assert (commit.parent, shard.parent, request.parent) == (shard, request, None)
    assert shard.attributes == {"shard": 3}


def test_a_trace_that_is_not_recorded_is_carried_on_as_such(recorded: Recorded) -> None:
    recorded.takes = False
    with tracing.request([]), tracing.part("queue", "read"):
        carried = tracing.carried()
    assert carried.endswith("-00")
    with tracing.resumed(carried, "shard", "a"), tracing.part("commit", "a"):
        pass
    assert recorded.spans == []


def test_of_an_error_only_its_type_is_told(recorded: Recorded) -> None:
    for error in (NotFound(WORD), ValueError(WORD)):
        with pytest.raises(type(error)), tracing.request([]), tracing.part("commit", "a"):
            raise error
    told = [(span.error, span.has_failed) for span in recorded.spans if span.parent is not None]
    assert told == [("NotFound", False), ("ValueError", True)]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, None),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, None),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "'zipkin', and traces are sent by otlp alone."),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "'grpc', and traces are sent as http/protobuf alone.",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    why = tracing.refusal()
    assert why is None if said is None else why is not None and why.endswith(said)


# --- as a collector gets them ---------------------------------------------------------------------


class Asking:
    """Requests of a client that records its own traces."""

    def __init__(self, service: Served):
        self._service, self._token = service, service.register()

    def __call__(self, path: str, body: dict[str, Any], status: int) -> str:
        """Have it answered with this status; -> its trace."""
        trace = secrets.token_hex(16)
        answer = self._service.http.post(
            path,
            json=body,
            headers={
                "Authorization": f"Bearer {self._token}",
                "traceparent": f"00-{trace}-{CLIENT_SPAN}-01",
                "tracestate": f"mine={WORD}",
                "User-Agent": WORD,
            },
        )
        assert answer.status_code == status, answer.text
        return trace


def above(spans: list[Collected], name: str) -> list[str]:
    """The names from a span up to the request, which is under the client's span."""
    by_id = {span.id: span for span in spans}
    (span,) = [span for span in spans if span.name == name]
    names = [span.name]
    while span.parent in by_id:
        span = by_id[span.parent]
        names.append(span.name)
    assert span.parent == CLIENT_SPAN
    return names


def check_traces(service: Served, traces: Collector, way: dict[str, list[str]]) -> None:
    """A write with its job, a search and a refusal; way: what is between a shard's span and the
    request's, by the operation.
    """
    asking = Asking(service)
    create, search = "memories.create", "search.search"
    written = asking("/v1/memories", {"content": f"Ada has a {WORD} plan for Berlin."}, 201)
    to_shard = [f"shard {create}", *way[create], create]
    run = ["commit run graph.read", "job graph.read", *to_shard]
    spans = traces.trace(written, f"commit {create}", *run)
    assert above(spans, f"commit {create}") == [f"commit {create}", *to_shard]
    assert above(spans, "commit run graph.read") == run

    searched = asking("/v1/search", {"query": f"Which {WORD} plan has Ada?"}, 200)
    to_shard = [f"shard {search}", *way[search], search]
    spans = traces.trace(searched, f"read {search}", "model embedder", *to_shard)
    assert above(spans, f"read {search}") == [f"read {search}", *to_shard]
    assert above(spans, "model embedder") == ["model embedder", *to_shard]

    refused = asking("/v1/memories", {"content": WORD, "importance": WORD}, 422)
    (span,) = [span for span in traces.trace(refused, create) if span.name == create]
    assert span.attributes["http.response.status_code"] == 422 and not span.has_failed
    assert not any(WORD.encode() in body for body in traces.bodies)


def test_one_trace_leads_to_the_commit_the_models_and_the_job(
    shared_service: Served, traces: Collector
) -> None:
    check_traces(shared_service, traces, {"memories.create": [], "search.search": []})


@pytest.mark.ray
def test_one_trace_leads_through_the_processes_on_ray(
    service_on_ray: Served, traces: Collector
) -> None:
    way = {"memories.create": ["queue slow_write"], "search.search": ["queue slow_read"]}
    check_traces(service_on_ray, traces, way)
    trace = Asking(service_on_ray)("/v1/search", {"query": "Who sails?"}, 200)
    names = ("search.search", "queue slow_read", "shard search.search", "model embedder")
    by_name = {span.name: span.process for span in traces.trace(trace, *names)}
    assert by_name["search.search"] == by_name["queue slow_read"] == "gateway-0"
    assert by_name["shard search.search"] == by_name["model embedder"] == "shard-0"
