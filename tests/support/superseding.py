"""A plugin that supersedes memories and sets them back, as ingestion and corrections do."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from plugins import memories
from plugins.memories import restore, supersede
from runtime.api.context import WriteContext
from runtime.api.operation import Body, Write
from runtime.api.plugin import Plugin


class Replaced(Body):
    old: str
    new: str | None = None
    back: bool = False


def replaced(ctx: WriteContext, body: Replaced) -> dict[str, Any]:
    row = memories.get_row(ctx, body.old)
    return memories.memory_view(
        restore(ctx, row, reason="restored")
        if body.back
        else supersede(ctx, row, body.new, reason="newer")
    )


superseding = Plugin(
    name="superseding",
    requires=("memories",),
    operations=(
        Write(
            name="superseding.mark",
            method="POST",
            path="/v1/superseding",
            handler=replaced,
            body=Replaced,
            response=BaseModel,
            scope="write",
            summary="",
        ),
    ),
)
