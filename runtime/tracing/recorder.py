"""Sends ended spans to a collector, by OpenTelemetry's SDK: which traces are recorded, how long
spans gather, where they go and with which credential, its standard variables say.

The SDK's own spans are not used, since one of them costs three times as much as ours, in the path
of every read; what it sends cannot be told from its own.
"""

from __future__ import annotations

import threading

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from runtime.limits import TRACES_SENT_SECONDS_MAX
from runtime.release import service_version
from runtime.tracing.spans import Parent, Span

_KINDS = {
    "server": SpanKind.SERVER,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}
_FINE, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)
_SAMPLED, _UNSAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)
_UNNAMED = "unknown_service"  # the SDK's name for a service without one, or the beginning of it


class OtlpRecorder:
    """process: a name that tells this process from the service's others, such as `shard-0`."""

    def __init__(self, process: str):
        resource = Resource.create(
            {"service.instance.id": process, "service.version": service_version()}
        )
        if str(resource.attributes[SERVICE_NAME]).startswith(_UNNAMED):
            resource = resource.merge(Resource({SERVICE_NAME: "mneme"}))
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._resource, self._sampler = resource, provider.sampler
        self._scope = InstrumentationScope("mneme", service_version())
        self._sender = BatchSpanProcessor(OTLPSpanExporter())

    def samples(self, name: str, trace_id: int, parent: Parent | None) -> bool:
        context = None
        if parent is not None:
            context = set_span_in_context(NonRecordingSpan(_context_of(parent)))
        judged = self._sampler.should_sample(context, trace_id, name)
        return judged.decision is Decision.RECORD_AND_SAMPLE

    def record(self, span: Span) -> None:
        attributes = {**span.attributes, "error.type": span.error} if span.error else None
        self._sender.on_end(
            ReadableSpan(
                name=span.name,
                context=_context_of(span),
                parent=None if span.parent is None else _context_of(span.parent),
                resource=self._resource,
                attributes=attributes or span.attributes,
                kind=_KINDS[span.kind],
                instrumentation_scope=self._scope,
                status=_FAILED if span.has_failed else _FINE,
                start_time=span.began,
                end_time=span.ended,
            )
        )

    def close(self) -> None:
        # A collector that does not answer would hold up the end of the service.
        sending = threading.Thread(target=self._sender.shutdown, daemon=True)
        sending.start()
        sending.join(TRACES_SENT_SECONDS_MAX)


def _context_of(span: Span | Parent) -> SpanContext:
    return SpanContext(
        span.trace_id,
        span.span_id,
        span.is_remote,
        _SAMPLED if span.is_sampled else _UNSAMPLED,
    )
