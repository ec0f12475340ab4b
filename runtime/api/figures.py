"""What a tenant keeps, in figures: each plugin counts what is its own, and who shows the figures
adds them up, without knowing whose they are.

A name is that of something for which tiers have room (`Kept`), where it is counted by one, and
`bytes` what several plugins add to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from runtime.api.context import ReadContext

ROWS_MEASURED_MAX = 10_000


def figures(ctx: ReadContext) -> Counter[str]:
    """The sum of all that the plugins' `figures` say of this tenant, by name; 0 for other names."""
    found: Counter[str] = Counter()
    for of_a_plugin in ctx.registry.figures:
        found.update(of_a_plugin(ctx))
    return found


def estimated_bytes(sizes_of: Callable[[int], Sequence[int]], count: int) -> int:
    """The sum of `count` sizes; `sizes_of` gives at most so many of them as are measured."""
    sizes = sizes_of(ROWS_MEASURED_MAX)
    return sum(sizes) if len(sizes) < ROWS_MEASURED_MAX else round(sum(sizes) / len(sizes) * count)
