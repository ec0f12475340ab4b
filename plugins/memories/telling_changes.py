"""What a large account is owed that an earlier release has filled: a token, without which no file
of what is resident of it can be written (storage/indexes/change_tokens.py). A write of the account
would draw one as well.
"""

from __future__ import annotations

from plugins.memories.rows import MEMORY_FEATURES, MEMORY_TEXT
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import CatchUp


def _is_owed(ctx: ReadContext) -> bool:
    return (
        ctx.index(MEMORY_TEXT).stats().documents >= MEMORY_FEATURES.kept_min
        and not ctx.index(MEMORY_FEATURES).changes.has_begun()
    )


def _begin(ctx: WriteContext) -> None:
    ctx.index(MEMORY_FEATURES).changes.begin()


CATCH_UP = CatchUp(_is_owed, _begin)
