"""How many memories an account has, and about how much they take."""

from __future__ import annotations

from plugins.collections import member_totals
from plugins.memories.room import text_bytes
from plugins.memories.rows import MEMORIES
from runtime.api.context import ReadContext
from runtime.api.figures import estimated_bytes


def figures(ctx: ReadContext) -> dict[str, int]:
    """Memories, the bytes of their texts as the tier has room for them, and their bytes without
    indexes; estimated where there are very many.
    """
    memories, _ = member_totals(ctx)
    size = estimated_bytes(lambda limit: ctx[MEMORIES].sizes(limit=limit), memories)
    return {"memories": memories, "text_bytes": text_bytes(ctx), "bytes": size}
