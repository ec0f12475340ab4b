"""Exporting memories: each with its newest versions, and those before them in records of their own,
so that no record is larger than an import takes, however often a memory was changed.

A record holds at most EXPORT_VERSIONS_MAX versions, and none further once they say as much as
EXPORT_VERSIONS_BYTES_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plugins.memories.limits import EXPORT_VERSIONS_BYTES_MAX, EXPORT_VERSIONS_MAX
from plugins.memories.room import version_bytes
from plugins.memories.rows import MEMORY_HISTORY, MemoryRow, VersionRow
from plugins.memories.store import memory_view, readable, rows_at, version_of
from runtime.api.context import ReadContext
from runtime.timestamps import iso

Numbered = tuple[int, VersionRow]


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """("memory", record with its newest versions, place) for every memory that can be read, oldest
    first; behind it ("memory_versions", {memory_id, history}, place) for the versions before those,
    oldest first. place: the ordinal, and behind which version to go on where there are more.
    """
    live = readable(ctx, include_superseded=True)
    begun, told = None, 0
    if isinstance(ctx.after, int):
        live.remove_range(0, ctx.after + 1)
    elif ctx.after is not None:
        begun, told = ctx.after
        live.remove_range(0, begun)
    for ordinal in live:
        row = rows_at(ctx, [ordinal])[0]
        newest = [(row.version, version_of(row))]
        newest += _some(_before(ctx, row, row.version), version_bytes(newest[0][1]))
        newest.reverse()
        first = newest[0][0]
        if ordinal != begun:
            told = 0
            place = ordinal if first == 1 else [ordinal, told]
            yield "memory", {**memory_view(row), "history": _views(newest)}, place
        while earlier := _some(_between(ctx, row, told, first)):
            told = earlier[-1][0]
            record = {"memory_id": row.id, "history": _views(earlier)}
            yield "memory_versions", record, [ordinal, told]


def version_view(number: int, version: VersionRow) -> dict[str, Any]:
    """The wire form of a version."""
    return {
        "version": number,
        "event": version.change,
        "content": version.content,
        "importance": version.importance,
        "metadata": version.metadata,
        "at": iso(version.at),
        "actor": version.actor,
        "reason": version.reason,
    }


def _views(versions: Iterable[Numbered]) -> list[dict[str, Any]]:
    return [version_view(number, version) for number, version in versions]


def _before(ctx: ReadContext, row: MemoryRow, number: int) -> Iterator[Numbered]:
    """The versions before this one, newest first."""
    found = ctx[MEMORY_HISTORY].scan(row.id, before=(row.id, number), reverse=True)
    return ((key[1], version) for key, version in found)


def _between(ctx: ReadContext, row: MemoryRow, after: int, before: int) -> Iterator[Numbered]:
    """The versions between these two, oldest first."""
    found = ctx[MEMORY_HISTORY].scan(row.id, after=(row.id, after), before=(row.id, before))
    return ((key[1], version) for key, version in found)


def _some(versions: Iterable[Numbered], size: int = 0) -> list[Numbered]:
    """As many of them as a record holds that has versions of this size already."""
    some: list[Numbered] = []
    for number, version in versions:
        size += version_bytes(version)
        if some and size > EXPORT_VERSIONS_BYTES_MAX:
            break
        some.append((number, version))
        if len(some) == EXPORT_VERSIONS_MAX:
            break
    return some
