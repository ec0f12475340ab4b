"""Who of those that speak under a `user_id` the end user is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from plugins.memories import MEMORY_FIELDS, MemoryRow
from runtime.api.context import ReadContext

_WORD = re.compile(r"[^\W\d_]+")


def is_the_user(ctx: ReadContext, row: MemoryRow, names: Iterable[str]) -> bool:
    """Whether whoever says a memory is the end user that it belongs to, who goes by these names.

    Nameless and by one of the names they are; by a part of one ("Ada" for `ada-42`), too. Under any
    other name they are as long as nobody else speaks as a user under this user_id: clients may
    always send a name, and which of several is meant, nothing says.
    """
    if row.speaker is None or row.speaker.casefold() in {"user", *map(str.casefold, names)}:
        return True
    if row.role != "user" or row.user_id is None:
        return False
    return _is_part(row.speaker, row.user_id) or _speaks_alone(ctx, row.speaker, row.user_id)


def _is_part(speaker: str, user_id: str) -> bool:
    said, known = _words(speaker), _words(user_id)
    return bool(said and known) and (said <= known or known <= said)


def _words(name: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(name)}


def _speaks_alone(ctx: ReadContext, speaker: str, user_id: str) -> bool:
    """Whether all that users said under this user_id is said by who has this name."""
    fields = ctx.index(MEMORY_FIELDS)
    said = fields.of("user_id", user_id) & fields.of("role", "user")
    return not said - fields.of("speaker", speaker)
