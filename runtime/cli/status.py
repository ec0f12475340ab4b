"""`mneme status`: what a running service is doing, once or as a live view.

Everything comes from `/v1/health` and `/metrics`: rates and latencies by operation, shards, jobs.
A scrape reaches one gateway; of several, each one's counters are compared with its own last ones.
Once, the figures are those since the start; live, those between two looks.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from prometheus_client.parser import text_string_to_metric_families

from runtime.cli.client import Client
from runtime.cli.columns import columns

CLEAR = "\x1b[H\x1b[J"
OPERATIONS_MAX, JOBS_MAX = 15, 8
QUANTILES = (0.5, 0.95, 0.99)
Labels = frozenset[tuple[str, str]]
_OWN_PATHS = ("service.metrics", "service.health")


@dataclass(frozen=True)
class Look:
    """What `/metrics` said at a time, in seconds of the monotonic clock."""

    at: float
    wall: float
    values: Mapping[tuple[str, Labels], float]

    def of(self, name: str) -> Iterable[tuple[dict[str, str], float]]:
        return ((dict(labels), value) for (what, labels), value in self.values.items()
                if what == name)  # fmt: skip

    def by(self, name: str, label: str) -> dict[str, float]:
        """The sums of a metric by one of its labels."""
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self.of(name):
            sums[labels.get(label, "")] += value
        return dict(sums)


@dataclass
class History:
    """The last look at each gateway, and at the shards."""

    looks: dict[str, Look] = field(default_factory=dict)
    shards: Look | None = None


def looked(client: Client) -> Look:
    """What the service says of itself at this moment. Raises CallFailed."""
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(client.text("/metrics"))
        for sample in family.samples
    }
    return Look(time.monotonic(), time.time(), values)


def watch(client: Client, seconds: float, count: int | None, out: TextIO) -> None:
    """Show the service every so many seconds, `count` times or until interrupted. Raises
    CallFailed.
    """
    history, shown = History(), 0
    while count is None or shown < count:
        if shown:
            time.sleep(seconds)
        text = view(client, history)
        out.write((CLEAR if out.isatty() else "") + text + "\n")
        out.flush()
        shown += 1


def view(client: Client, history: History) -> str:
    """The lines of one look, compared with those before, which it replaces. Raises CallFailed."""
    health = client.call("GET", "/v1/health", accept=(503,))
    look = looked(client)
    gateway = next(iter(look.by("mneme_requests_in_flight", "gateway")), "")
    before, history.looks[gateway] = history.looks.get(gateway), look
    shards_before, history.shards = history.shards, look
    seconds = look.at - before.at if before else _since_start(look)
    between = "in the last" if before else "since the start,"
    open_shards = health.get("shards", {})
    under_way = sum(look.by("mneme_requests_in_flight", "gateway").values())
    lines = [
        f"mneme {health.get('version', '?')} ({health.get('build', '?')}) at {client.base_url}: "
        f"{health.get('status', 'not ready')}, {open_shards.get('open', 0)} of "
        f"{open_shards.get('total', 0)} shards open",
        f"{between} {_span(seconds)}; {under_way:.0f} requests under way",
        "",
        *_operations(before, look, seconds),
        "",
        *_shards(shards_before, look),
        *_jobs(shards_before, look),
    ]
    return "\n".join(lines)


def _since_start(look: Look) -> float:
    started = next((value for _, value in look.of("mneme_process_start_time_seconds")), look.wall)
    return max(look.wall - started, 1e-3)


def _operations(before: Look | None, look: Look, seconds: float) -> list[str]:
    """Rates and latencies by operation, the busiest first."""
    counts, failed = _by_operation(look, before)
    busiest = sorted((name for name in counts if counts[name] > 0), key=lambda name: -counts[name])
    rows: list[tuple[str, ...]] = [("OPERATION", "PER S", "P50 MS", "P95 MS", "P99 MS", "FAILED")]
    for name in busiest[:OPERATIONS_MAX]:
        cuts = _quantiles(name, before, look)
        rows.append((name, f"{counts[name] / seconds:,.1f}", *cuts, f"{failed[name]:,.0f}"))
    if len(rows) == 1:
        rows.append(("nothing was asked", "", "", "", "", ""))
    return columns(rows, right=True)


def _by_operation(look: Look, before: Look | None) -> tuple[dict[str, float], dict[str, float]]:
    counts: dict[str, float] = defaultdict(float)
    failed: dict[str, float] = defaultdict(float)
    for labels, value in look.of("mneme_requests_total"):
        key = ("mneme_requests_total", frozenset(labels.items()))
        grown = value - (before.values.get(key, 0) if before else 0)
        if labels["operation"] not in _OWN_PATHS:
            counts[labels["operation"]] += grown
            if labels["status"].startswith("5"):
                failed[labels["operation"]] += grown
    return counts, failed


def _quantiles(operation: str, before: Look | None, look: Look) -> list[str]:
    """p50, p95 and p99 of an operation, read off the buckets of its histogram, in milliseconds."""
    grown: dict[float, float] = defaultdict(float)
    for labels, value in look.of("mneme_request_seconds_bucket"):
        if labels["operation"] == operation:
            key = ("mneme_request_seconds_bucket", frozenset(labels.items()))
            grown[float(labels["le"])] += value - (before.values.get(key, 0) if before else 0)
    bounds = sorted(grown)
    total = grown[bounds[-1]] if bounds else 0
    return [_cut(bounds, grown, total * quantile) if total else "-" for quantile in QUANTILES]


def _cut(bounds: list[float], grown: Mapping[float, float], rank: float) -> str:
    """Where so many are below, taken to lie evenly between two bounds."""
    low = below = 0.0
    for bound in bounds:
        if grown[bound] >= rank:
            if bound == float("inf"):
                return f">{low * 1000:,.0f}"
            share = (rank - below) / ((grown[bound] - below) or 1)
            return f"{(low + (bound - low) * share) * 1000:,.1f}"
        low, below = bound, grown[bound]
    return "-"


_SHARD_FIGURES = (
    ("ROWS", "store_rows", "{:,.0f}"),
    ("QUEUE", "write_queue", "{:,.0f}"),
    ("JOBS", "jobs_waiting", "{:,.0f}"),
    ("SLOTS", "slots_owned", "{:,.0f}"),
)
_SHARD_RATES = (("CALLS/S", "calls_total"), ("COMMITS/S", "write_commits_total"),
                ("TEXTS/S", "embedder_texts_total"))  # fmt: skip


def _shards(before: Look | None, look: Look) -> list[str]:
    opened = look.by("mneme_shard_open", "shard")
    seconds = look.at - before.at if before else _since_start(look)
    gauges = {name: look.by(f"mneme_shard_{metric}", "shard") for name, metric, _ in _SHARD_FIGURES}
    rates = {
        name: (
            look.by(f"mneme_shard_{metric}", "shard"),
            before.by(f"mneme_shard_{metric}", "shard") if before else {},
        )
        for name, metric in _SHARD_RATES
    }
    data = look.by("mneme_shard_store_data_bytes", "shard")
    free = look.by("mneme_shard_store_disk_free_bytes", "shard")
    oldest = look.by("mneme_shard_jobs_oldest_age_ms", "shard")
    rows = [("SHARD", "STATE", *gauges, "OLDEST JOB", *rates, "DATA", "DISK FREE")]
    for shard in sorted(opened, key=lambda name: (len(name), name)):
        shown = [form.format(gauges[name].get(shard, 0)) for name, _, form in _SHARD_FIGURES]
        moving = [
            f"{max(now.get(shard, 0) - then.get(shard, 0), 0) / seconds:,.1f}"
            for now, then in rates.values()
        ]
        rows.append(
            (
                shard,
                "open" if opened[shard] else "SILENT",
                *shown,
                _span(oldest.get(shard, 0) / 1000),
                *moving,
                _size(data.get(shard, 0)),
                _size(free.get(shard, 0)),
            )
        )
    return columns(rows, right=True)


def _jobs(before: Look | None, look: Look) -> list[str]:
    """Kinds of jobs that ran, most first; those that failed at all are among them."""
    ran, failed = (
        {
            kind: value - (before.by(metric, "kind").get(kind, 0) if before else 0)
            for kind, value in look.by(metric, "kind").items()
        }
        for metric in ("mneme_shard_jobs_attempts_total", "mneme_shard_jobs_failures_total")
    )
    kinds = sorted((kind for kind in ran if ran[kind] > 0), key=lambda kind: -ran[kind])
    if not kinds:
        return []
    rows = [("JOB", "RAN", "FAILED")]
    rows += [
        (kind, f"{ran[kind]:,.0f}", f"{failed.get(kind, 0):,.0f}") for kind in kinds[:JOBS_MAX]
    ]
    return ["", *columns(rows, right=True)]


def _span(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} s"


def _size(count: Any) -> str:
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if count >= 2**power:
            return f"{count / 2**power:,.1f} {name}"
    return f"{count / 1024:,.0f} KiB"
