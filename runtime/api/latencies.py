"""How long an account's requests took in its shard, and how they ended: by hour and operation.

A histogram of a few buckets for each hour and operation that was asked for, written along with what
was used (runtime/shard/usage_buffer.py) and kept for eight days. Nobody is charged by it, so what a
killed process had not written is just missing.

    usage_latencies  (hour, operation)  -> LatencyRow   for eight days
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from runtime.api.context import ReadContext, WriteContext
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, USAGE_LATENCIES_KEPT_SECONDS
from storage.store import Table

# Upper bounds of all buckets but the last, which has what took longer.
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)


class LatencyRow(msgspec.Struct, array_like=True):
    """buckets: requests by how long they took, beside BOUNDS_MS; total_ms: of all of them."""

    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    total_ms: float = 0.0
    client_errors: int = 0
    server_errors: int = 0

    @property
    def requests(self) -> int:
        return sum(self.buckets)

    def note(self, ms: float, status: int) -> None:
        """Count one request with the status of its answer."""
        self.buckets[bisect_left(BOUNDS_MS, ms)] += 1
        self.total_ms += ms
        self.server_errors += status >= 500
        self.client_errors += 400 <= status < 500

    def add(self, other: LatencyRow) -> None:
        """Count those of another row in."""
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]
        self.total_ms += other.total_ms
        self.client_errors += other.client_errors
        self.server_errors += other.server_errors

    def quantiles_ms(self, shares: Sequence[float]) -> list[float]:
        """Milliseconds within which these shares of the requests were answered: evenly spread
        inside each bucket, and the last bound for what took longer. 0 without requests.
        """
        return [self._quantile_ms(share) for share in shares]

    def _quantile_ms(self, share: float) -> float:
        left, low = share * self.requests, 0.0
        for count, high in zip(self.buckets, BOUNDS_MS, strict=False):
            if count and left <= count:
                return round(low + (high - low) * left / count, 2)
            left, low = left - count, float(high)
        return low if self.requests else 0.0


LATENCIES: Table[LatencyRow] = Table(
    "usage_latencies",
    key=("hour", "operation"),
    row=LatencyRow,
    doc="how long requests took, and how they ended, for eight days",
)
TABLES: tuple[Table, ...] = (LATENCIES,)


def merged(rows: Iterable[LatencyRow]) -> LatencyRow:
    """All rows as one."""
    total = LatencyRow()
    for row in rows:
        total.add(row)
    return total


def count(ctx: WriteContext, operation: str, hour: int, noted: LatencyRow) -> None:
    """Add what was noted of one operation in one hour, which begins at `hour` (Unix
    milliseconds); a new row takes a few old ones out of the way.
    """
    table = ctx[LATENCIES]
    row = table.get(hour, operation)
    if row is None:
        row = LatencyRow()
        oldest = hour - USAGE_LATENCIES_KEPT_SECONDS * 1000
        for key in list(table.keys(before=(oldest,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE)):
            table.delete(*key)
    row.add(noted)
    table.put((hour, operation), row)


def since(ctx: ReadContext, first_hour: int) -> list[tuple[int, str, LatencyRow]]:
    """(hour, operation, row) of all hours from this one on, oldest first."""
    found = ctx[LATENCIES].scan(after=(first_hour - 1,))
    return [(hour, operation, row) for (hour, operation), row in found]
