"""Records ended spans: gathers them, and has them sent to a collector by a thread. Which traces are
recorded and what the process is called, OpenTelemetry's SDK reads from its standard variables; how
long spans gather, and how many, is read here.

The SDK's own spans, queue and messages are not used, since together they cost five times as much,
in the path of every read. A collector cannot tell them from these.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from runtime.limits import (
    TRACES_BATCH_SPANS,
    TRACES_GATHERED_MS,
    TRACES_SENT_SECONDS_MAX,
    TRACES_WAITING_SPANS_MAX,
)
from runtime.release import service_version
from runtime.tracing.collector import Collector
from runtime.tracing.otlp import message
from runtime.tracing.spans import Parent, Span
from runtime.tracing.variables import number

log = logging.getLogger("mneme.tracing")

_SAMPLED, _UNSAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)
_UNNAMED = "unknown_service"  # the SDK's name for a service without one, or the beginning of it


class OtlpRecorder:
    """Gathers the spans of a process and sends them to the collector.

    process: a name that tells this process from the service's others, such as `shard-0`.
    """

    def __init__(self, process: str):
        resource = Resource.create(
            {"service.instance.id": process, "service.version": service_version()}
        )
        if str(resource.attributes[SERVICE_NAME]).startswith(_UNNAMED):
            resource = resource.merge(Resource({SERVICE_NAME: "mneme"}))
        self._resource = resource.attributes
        sampler = TracerProvider(resource=resource, shutdown_on_exit=False).sampler
        self._sampler = None if sampler is DEFAULT_ON else sampler
        self._scope = ("mneme", service_version())
        self._collector = Collector()
        self._seconds = number(["OTEL_BSP_SCHEDULE_DELAY"], TRACES_GATHERED_MS) / 1000
        self._most = int(number(["OTEL_BSP_MAX_QUEUE_SIZE"], TRACES_WAITING_SPANS_MAX))
        self._batch = int(number(["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], TRACES_BATCH_SPANS))
        self._waiting: deque[Span] = deque()
        self._is_full, self._is_closed = threading.Event(), False
        self._has_lost = False
        self._thread = threading.Thread(target=self._send_all, name="traces", daemon=True)
        self._thread.start()

    def samples(self, name: str, trace_id: int, parent: Parent | None) -> bool:
        if self._sampler is None:  # all are, and those that clients ask for
            return parent is None or parent.is_sampled
        context = None
        if parent is not None:
            flags = _SAMPLED if parent.is_sampled else _UNSAMPLED
            above = SpanContext(trace_id, parent.span_id, parent.is_remote, flags)
            context = set_span_in_context(NonRecordingSpan(above))
        judged = self._sampler.should_sample(context, trace_id, name)
        return judged.decision is Decision.RECORD_AND_SAMPLE

    def record(self, span: Span) -> None:
        waiting = len(self._waiting)
        if waiting >= self._most:
            if not self._has_lost:
                self._has_lost = True
                log.warning("spans are lost: %d wait for their collector", waiting)
            return
        self._waiting.append(span)
        if waiting + 1 >= self._batch and not self._is_full.is_set():
            self._is_full.set()

    def close(self) -> None:
        # A collector that does not answer would hold up the end of the service.
        self._is_closed = True
        self._is_full.set()
        self._thread.join(TRACES_SENT_SECONDS_MAX)
        self._collector.close()

    def _send_all(self) -> None:
        is_last = False
        while not is_last:
            self._is_full.wait(self._seconds)
            self._is_full.clear()
            is_last = self._is_closed
            while self._waiting:
                count = min(self._batch, len(self._waiting))
                spans = [self._waiting.popleft() for _ in range(count)]
                self._collector.take(message(self._resource, self._scope, spans))
                if len(self._waiting) < self._batch and not is_last:
                    break
            self._has_lost = False
