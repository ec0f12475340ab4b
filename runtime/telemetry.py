"""What the service says about itself in numbers: metrics for Prometheus.

Owns the metric names. Knows nothing of operations or shards: it is handed names and numbers. What
the service says in words is runtime/log_lines.py.

    mneme_requests_total{operation,method,status,gateway}     counter; status is a class, "2xx" …
                                                              "5xx"
    mneme_request_seconds{operation,method,status,gateway}    histogram
    mneme_requests_in_flight{gateway}                         gauge
    mneme_calls_in_flight{gateway}                            gauge; calls that shards have, or that
                                                              wait in a queue for one
    mneme_body_bytes_arriving{gateway}                        gauge; bytes of bodies that are being
                                                              read
    mneme_placement_version{gateway}                          gauge; of the placement that it goes
                                                              by
    mneme_errors_total{code,gateway}                          counter; by the error's code, or its
                                                              type where it has none
    mneme_loop_stalls_total{operation,gateway}                counter; steps of requests that held
                                                              the gateway's event loop for 100 ms or
                                                              longer; a shard's own are
                                                              mneme_shard_loop_stalls_total
    mneme_upload_bytes_total{gateway}                         counter; bytes of files put into the
                                                              blob store
    mneme_shard_<name>{shard}                                 every number of the last known shard
                                                              status, nested names joined

A name of a status that ends in `_total` is a counter, any other a gauge; `<name>_by_<label>` holds
a number for each value of a label. Labels take few values: the operation's declared name, never a
path or a tenant. `gateway` keeps the series of several gateway replicas apart, since each counts
only the requests that it answered itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from runtime.loop_stalls import OTHER

LATENCY_BUCKETS_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


class Number(NamedTuple):
    """One value of a metric. counts: it only grows, as long as its process lives."""

    name: str
    meaning: str
    counts: bool
    labels: Mapping[str, str]
    value: float


class Telemetry:
    """The metrics of one gateway, in a registry of their own so that several can live in one
    process.

    gateway  a name that tells this replica from others
    """

    def __init__(self, gateway: str = "0"):
        self._registry = CollectorRegistry()
        self._gateway = gateway
        self._requests = _Requests(gateway)
        self._registry.register(self._requests)
        in_flight = Gauge(
            "mneme_requests_in_flight",
            "Requests being answered.",
            ("gateway",),
            registry=self._registry,
        )
        self._in_flight = in_flight.labels(gateway)
        calls = Gauge(
            "mneme_calls_in_flight",
            "Calls that shards have or will get.",
            ("gateway",),
            registry=self._registry,
        )
        arriving = Gauge(
            "mneme_body_bytes_arriving",
            "Bytes of bodies being read.",
            ("gateway",),
            registry=self._registry,
        )
        self._calls, self._arriving = calls.labels(gateway), arriving.labels(gateway)
        placement = Gauge(
            "mneme_placement_version",
            "Version of the placement it goes by.",
            ("gateway",),
            registry=self._registry,
        )
        self._placement = placement.labels(gateway)
        self._errors = Counter(
            "mneme_errors", "Answers that are errors.", ("code", "gateway"), registry=self._registry
        )
        self._stalls = Counter(
            "mneme_loop_stalls",
            "Steps of requests that held the event loop for long.",
            ("operation", "gateway"),
            registry=self._registry,
        )
        self._stalls.labels(OTHER, gateway)  # so that the metric is there before the first
        uploads = Counter(
            "mneme_upload_bytes",
            "Bytes of files put into the blob store.",
            ("gateway",),
            registry=self._registry,
        )
        self._uploads = uploads.labels(gateway)
        self._shards = _ShardGauges()
        self._registry.register(self._shards)
        ProcessCollector(namespace="mneme", registry=self._registry)

    def request(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._requests.count((operation, method, status // 100), seconds)

    def count_in_flight(self, count: Callable[[], int]) -> None:
        """Whom to ask how many requests are being answered, whenever somebody reads the metrics."""
        self._in_flight.set_function(count)

    def error(self, code: str) -> None:
        """Count one answer that is an error, by its code or else its type."""
        self._errors.labels(code, self._gateway).inc()

    def stall(self, operation: str, seconds: float) -> None:
        """Count one step of an operation that held the gateway's event loop."""
        self._stalls.labels(operation, self._gateway).inc()

    def uploaded(self, size: int) -> None:
        """Count the bytes of one file that was put into the blob store."""
        self._uploads.inc(size)

    def load(self, calls: int, arriving_bytes: int, placement_version: int) -> None:
        """What the gateway has under way just now, and which placement it knows."""
        self._placement.set(placement_version)
        self._calls.set(calls)
        self._arriving.set(arriving_bytes)

    def shards(self, statuses: Sequence[Mapping[str, Any]]) -> None:
        """Take the latest status of every shard: mappings with a "shard" number and any further,
        possibly nested, numbers.
        """
        self._shards.statuses = statuses

    def numbers(self) -> Iterator[Number]:
        """Each metric's present values, for whoever keeps them elsewhere; of a histogram its count
        and sum.
        """
        for family in self._registry.collect():
            for sample in family.samples:
                if sample.name.endswith(("_bucket", "_created")):
                    continue
                counts = family.type in ("counter", "histogram")
                yield Number(sample.name, family.documentation, counts, sample.labels, sample.value)

    def exposition(self) -> tuple[bytes, str]:
        """The metrics in Prometheus' text format -> (body, content type)."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


class _Requests:
    """Requests answered and how long they took, counted on one event loop and turned into metrics
    when they are read: at every request the library's own counters, which have locks, would cost as
    much as a look into a table.
    """

    def __init__(self, gateway: str):
        self._gateway = gateway
        # By (operation, method, class of the status): how many were within each bound and no lower
        # one, and those beyond the last; and the sum of their seconds.
        self._series: dict[tuple[str, str, int], tuple[list[int], list[float]]] = {}

    def count(self, series: tuple[str, str, int], seconds: float) -> None:
        found = self._series.get(series)
        if found is None:
            found = self._series[series] = ([0] * (len(LATENCY_BUCKETS_SECONDS) + 1), [0.0])
        within, sum_seconds = found
        within[bisect_left(LATENCY_BUCKETS_SECONDS, seconds)] += 1
        sum_seconds[0] += seconds

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        labels = ("operation", "method", "status", "gateway")
        requests = CounterMetricFamily("mneme_requests", "Requests answered.", labels=labels)
        latency = HistogramMetricFamily(
            "mneme_request_seconds", "Seconds from request to answer.", labels=labels
        )
        bounds = [*map(str, LATENCY_BUCKETS_SECONDS), "+Inf"]
        for (operation, method, status), (within, (seconds,)) in [*self._series.items()]:
            named = (operation, method, f"{status}xx", self._gateway)
            counts = [*accumulate(within)]
            requests.add_metric(named, counts[-1])
            latency.add_metric(named, [*zip(bounds, counts, strict=True)], seconds)
        yield requests
        yield latency


class _ShardGauges:
    """Turns the last known statuses into metrics when they are read."""

    def __init__(self) -> None:
        self.statuses: Sequence[Mapping[str, Any]] = ()

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for status in self.statuses:
            for name, label, value in _numbers(status):
                if name == "shard":
                    continue
                if name not in families:
                    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                    labels = ("shard", label[0]) if label else ("shard",)
                    families[name] = kind(
                        f"mneme_shard_{name}", f"{name} of a shard.", labels=labels
                    )
                families[name].add_metric((str(status["shard"]), *label[1:]), value)
        yield from families.values()


def _numbers(
    status: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """(name, () or (label, its value), number) of every number in a status."""
    for name, value in status.items():
        if isinstance(value, Mapping) and "_by_" in name:
            joined, _, label = f"{prefix}{name}".rpartition("_by_")
            yield from ((joined, (label, str(key)), float(number)) for key, number in value.items())
        elif isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}_")
        elif isinstance(value, (bool, int, float)):
            yield re.sub(r"\W", "_", f"{prefix}{name}"), (), float(value)
