"""Traces: where the time of a request went, from its client's `traceparent` through gateway,
batching queue, shard, models and commit to the jobs that it leads to.

    request   the span of a request, in the gateway; `answered` names it
    resumed   a span under one of another process
    job       the span of an attempt of a job, under whatever queued it
    part      a span under the one that is open here; where none is, nothing
    apart     for what serves many requests at once: it is part of none of them
    carried   the open span as a `traceparent`, for whoever resumes it

The spans are OpenTelemetry's, and recorder.py has them sent to the collector that the standard
variables name (OTEL_EXPORTER_OTLP_ENDPOINT and its neighbours). Where they name none, nothing is
recorded and nothing of OpenTelemetry is imported: the API's own spans that do nothing cost
more than a read may.

Invariant: no text of a user gets into a span. Names and attributes are names that the code
declares, numbers, and ids; of an error only its type is told; and of a client's headers
only `traceparent` is read, since `tracestate` may hold anything.
"""

from __future__ import annotations

import logging

from runtime.extras import Extra
from runtime.tracing.spans import (
    answered,
    apart,
    carried,
    job,
    part,
    record_with,
    request,
    resumed,
)
from runtime.tracing.variables import variable

__all__ = [
    "EXTRA",
    "answered",
    "apart",
    "carried",
    "is_asked_for",
    "job",
    "part",
    "refusal",
    "request",
    "resumed",
    "start",
    "stop",
]

log = logging.getLogger("mneme.tracing")

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"


def start(process: str) -> None:
    """Record the traces of this process, if the environment asks for it. What it asks for and
    cannot be done is logged. process: a name that tells it from the service's others.
    """
    if not is_asked_for():
        return
    if (why := refusal()) is not None:
        log.error("no traces are recorded: %s", why)
        return
    from runtime.tracing.recorder import OtlpRecorder  # a second of imports

    record_with(OtlpRecorder(process))


def stop() -> None:
    """Record no further span, and send those that wait, within TRACES_SENT_SECONDS_MAX."""
    recorder = record_with(None)
    if recorder is not None:
        recorder.close()


def is_asked_for() -> bool:
    """Whether the environment names a collector, or `otlp` and leaves it where it is by default."""
    if variable("OTEL_SDK_DISABLED").lower() == "true":
        return False
    exporter = variable("OTEL_TRACES_EXPORTER")
    return exporter not in ("", "none") or (
        exporter == "" and any(variable(name) for name in _ENDPOINTS)
    )


def refusal() -> str | None:
    """Why traces that are asked for cannot be recorded, in one sentence."""
    if not is_asked_for():
        return None
    exporter = variable("OTEL_TRACES_EXPORTER") or "otlp"
    if exporter != "otlp":
        return f"OTEL_TRACES_EXPORTER is {exporter!r}, and traces are sent by otlp alone."
    for name in _PROTOCOLS:
        if variable(name) not in ("", _PROTOCOL):
            return f"{name} is {variable(name)!r}, and traces are sent as {_PROTOCOL} alone."
    if EXTRA.is_missing:
        return (
            "OTEL_EXPORTER_OTLP_ENDPOINT or a variable beside it asks for traces, and what sends "
            f"them is not installed. Run {EXTRA.command}, or set OTEL_SDK_DISABLED=true."
        )
    from runtime.tracing.collector import CannotSend, Collector  # a second of imports

    try:
        Collector()
    except CannotSend as why:
        return str(why)
    return None


EXTRA = Extra(
    "tracing",
    ("opentelemetry.sdk",),
    "sending traces",
    needed=lambda _: is_asked_for(),
)
