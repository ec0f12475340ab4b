"""Histograms of latencies: what they say of their requests, and how long they are kept."""

from __future__ import annotations

import pytest

from runtime.api.latencies import BOUNDS_MS, LatencyRow, merged


def noted(*milliseconds: float) -> LatencyRow:
    row = LatencyRow()
    for ms in milliseconds:
        row.note(ms, 200)
    return row


@pytest.mark.parametrize(
    ("row", "quantiles"),
    [
        (LatencyRow(), [0.0, 0.0]),
        (noted(30), [35.0, 49.7]),  # one request, anywhere between 20 and 50 ms
        (noted(*[0.5] * 50, *[15] * 50), [1.0, 19.8]),
        (noted(10), [7.5, 9.95]),  # a bound belongs to the bucket below it
        (noted(40_000), [30_000.0, 30_000.0]),  # what took longer than the last bound
    ],
)
def test_quantiles_lie_inside_their_buckets(row: LatencyRow, quantiles: list[float]) -> None:
    assert row.quantiles_ms((0.5, 0.99)) == quantiles


def test_rows_add_up() -> None:
    failed = LatencyRow()
    failed.note(3, 503)
    failed.note(4, 404)
    total = merged([failed, noted(3, 100)])
    assert (total.requests, total.client_errors, total.server_errors) == (4, 1, 1)
    assert (total.total_ms, total.buckets[BOUNDS_MS.index(5)]) == (110, 3)
