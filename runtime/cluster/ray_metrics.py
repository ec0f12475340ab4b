"""The service's metrics through Ray's own agent, where `ray.dashboard` is set.

The agent takes numbers, not expositions: every few seconds each process hands over its own, which
Ray then shows as `ray_mneme_…` beside its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from runtime.limits import RAY_METRICS_SECONDS
from runtime.settings import Settings
from runtime.telemetry import Number, Telemetry


def show_numbers(settings: Settings, telemetry: Telemetry) -> None:
    """Hand over a gateway's metrics from now on, on a thread of its own."""
    if not settings.ray.dashboard:
        return
    handed = _Handed()

    def run() -> None:
        while True:
            time.sleep(RAY_METRICS_SECONDS)
            handed.over(telemetry, of_shards=False)

    threading.Thread(target=run, name="mneme-ray-metrics", daemon=True).start()


def show(
    settings: Settings, status: Callable[[], Awaitable[dict[str, Any]]]
) -> asyncio.Task[None] | None:
    """Hand over what a shard says of itself from now on; -> the task that does, to be cancelled."""
    if not settings.ray.dashboard:
        return None
    handed, telemetry = _Handed(), Telemetry()

    async def run() -> None:
        while True:
            await asyncio.sleep(RAY_METRICS_SECONDS)
            telemetry.shards([await status()])
            handed.over(telemetry, of_shards=True)

    return asyncio.get_running_loop().create_task(run())


class _Handed:
    """The metrics of Ray that this process has made, and how far its counters have come."""

    def __init__(self) -> None:
        self._metrics: dict[str, Any] = {}
        self._counted: dict[tuple[str, tuple[str, ...]], float] = {}

    def over(self, telemetry: Telemetry, *, of_shards: bool) -> None:
        """Hand over the numbers of shards, or all others: each is known to one process."""
        for number in telemetry.numbers():
            if number.name.startswith("mneme_shard_") is of_shards:
                self._one(number)

    def _one(self, number: Number) -> None:
        from ray.util.metrics import Counter, Gauge

        metric: Any = self._metrics.get(number.name)
        if metric is None:
            kind = Counter if number.counts else Gauge
            # Ray ends the name of a counter itself.
            name = number.name.removesuffix("_total") if number.counts else number.name
            metric = self._metrics[number.name] = kind(
                name, number.meaning, tag_keys=tuple(number.labels)
            )
        tags = dict(number.labels)
        if not number.counts:
            metric.set(number.value, tags)
            return
        series = (number.name, tuple(tags.values()))
        more = number.value - self._counted.get(series, 0.0)
        if more > 0:
            metric.inc(more, tags)
            self._counted[series] = number.value
