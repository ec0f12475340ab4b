"""The data directory as a start needs it: its layout and its secrets, made where this is the first
one.
"""

from __future__ import annotations

from runtime.installation import Layout, Secrets
from runtime.placement import PlacementTable
from runtime.settings import Settings


def prepared(settings: Settings) -> Layout:
    """The data directory with its layout and its secrets, made where this is the first start."""
    layout = Layout.load_or_create(settings.data_dir, settings.shards.resolved)
    if settings.shards.count:
        PlacementTable(settings.data_dir).resize(settings.shards.count)
    Secrets.of(settings, create=not layout.complete).mark_pepper(settings.data_dir)
    (settings.data_dir / "logs").mkdir(exist_ok=True)
    return layout


def shard_count(settings: Settings) -> int:
    """How many shards the placement has."""
    return len(PlacementTable(settings.data_dir).load().shards)


def has_moves(settings: Settings) -> bool:
    """Whether slots were on their way when the service ended."""
    return bool(PlacementTable(settings.data_dir).load().moves)
