"""Exports that go on where they stopped: what a plugin's `export` walks, one section after another,
each in the order of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runtime.api.context import ReadContext
from storage.store import Key, decode_key, encode_key

Section = Callable[[ReadContext, Key | None], Iterable[tuple[str, dict[str, Any], Key]]]
Exported = tuple[str, dict[str, Any], list[Any]]


def sections(ctx: ReadContext, *walks: Section) -> Iterator[Exported]:
    """(kind, record, place) of all sections, from behind `ctx.after` on.

    walks  of each section: (ctx, the key to begin behind, or None) -> (kind, record, key), in the
           order of the keys
    """
    number, told = ctx.after or (0, None)
    after = None if told is None else decode_key(bytes.fromhex(told))
    for place, walk in enumerate(walks[number:], number):
        for kind, record, key in walk(ctx, after):
            yield kind, record, [place, encode_key(key).hex()]
        after = None
