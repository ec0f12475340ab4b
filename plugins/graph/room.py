"""What an account's entities take of the room of its tier: those that the API asked for."""

from __future__ import annotations

from plugins.graph import statistics as graph_stats
from plugins.graph.limits import ENTITIES_KEPT
from plugins.graph.rows import ENTITIES
from runtime.api.context import WriteContext
from runtime.api.tiers import check_room, records_limit


def check_entities(ctx: WriteContext) -> None:
    """Raise PermissionDenied where the tier has no room for one more that is asked for. They are
    counted only where there may be too many.
    """
    settings, tier = ctx.settings, ctx.principal.tier
    limit = records_limit(settings, tier, ENTITIES_KEPT)
    if limit is None or graph_stats.figure(ctx, "entities") < limit:
        return
    kept = graph_stats.asked_for(ctx)
    if kept is None:
        kept = sum(row.asked_for for _, row in ctx[ENTITIES].scan())
        graph_stats.asked_for_counted(ctx, kept)
    check_room(settings, tier, ENTITIES_KEPT, kept)
