"""A fact and the turn that it was read in are one result: the turn, with where in it the fact
stands.

A fact is a memory that rests on another one (`MemoryRow.rests_on`): in its session it follows its
turn, and nothing follows it. Where both are candidates, the turn is shown, as well ranked as the
better of them. A fact whose turn may not be shown, because a filter leaves it out, is a result of
its own, and so is one whose text was edited: it follows its turn no longer, which says something
else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugins.memories import (
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MemoryRow,
    find_row,
    find_rows_at,
    rows_at,
    unreadable,
)
from plugins.search.limits import FOLLOWED_MEMORIES_MAX
from plugins.search.neighbours import turns_of_facts
from runtime.api.context import ReadContext
from runtime.timestamps import iso


@dataclass(frozen=True, slots=True)
class Folded:
    """n candidates, of which some are shown as others.

    shown  places of those that are results of their own, ascending
    best   (n,) the place of the best of what is shown as each one
    facts  ordinal of a turn -> those of the facts that are shown as it, best first
    """

    shown: np.ndarray
    best: np.ndarray
    facts: Mapping[int, Sequence[int]]


def folded(
    ctx: ReadContext, candidates: np.ndarray, previous: np.ndarray, scores: np.ndarray
) -> Folded:
    """Fold facts into their turns.

    candidates, previous  (n,) ordinals, ascending, and those of what each follows in its session
    """
    places = np.arange(len(candidates))
    following = ctx.index(MEMORY_FEATURES).field("following", previous)
    turns = turns_of_facts(candidates, previous, following)
    if turns is None:
        return Folded(places, places, {})
    facts: dict[int, list[int]] = {}
    best = places.copy()
    resting = np.flatnonzero(turns >= 0)
    for fact in resting[np.argsort(-scores[resting], kind="stable")].tolist():
        turn = int(turns[fact])
        if scores[fact] > scores[best[turn]]:
            best[turn] = fact
        facts.setdefault(int(candidates[turn]), []).append(int(candidates[fact]))
    return Folded(places[turns < 0], best, facts)


def evidence(
    ctx: ReadContext, row: MemoryRow, facts: Mapping[int, Sequence[int]]
) -> list[dict[str, int | str]] | None:
    """Where the facts that are shown as this memory stand in it, by code points: all of it where
    one is told in other words. None where no fact is.
    """
    ordinals = facts.get(row.ordinal)
    if not ordinals:
        return None
    found = []
    for fact in rows_at(ctx, ordinals):
        start = row.content.find(fact.content)
        end = len(row.content) if start < 0 else start + len(fact.content)
        found.append({"memory_id": row.id, "start": max(start, 0), "end": end, "fact_id": fact.id})
    return found


def outdated(ctx: ReadContext, rows: Sequence[MemoryRow]) -> dict[int, list[dict[str, Any]]]:
    """Ordinal of a memory -> where it says what has been superseded since while the rest of it
    stands, by code points, and what was said since: what a fact that rested on it was read in.
    Without those that have no such place.
    """
    turns = [row for row in rows if row.is_turn]
    if not turns:
        return {}
    fields = ctx.index(MEMORY_FIELDS)
    superseded, gone = fields.of("superseded", 1), unreadable(ctx)
    found: dict[int, list[dict[str, Any]]] = {}
    for row, resting in zip(
        turns, fields.of_each("source_reference", [row.id for row in turns]), strict=True
    ):
        over = resting & superseded
        if not over:
            continue
        standing = find_rows_at(ctx, resting - over - gone)
        for fact in find_rows_at(ctx, over - gone):
            start = row.content.find(fact.content)
            if start >= 0 and not any(other.content in fact.content for other in standing):
                place = {"start": start, "end": start + len(fact.content), "fact_id": fact.id}
                place["superseded_by"] = _standing_now(ctx, fact)
                found.setdefault(row.ordinal, []).append(place)
    return found


def _standing_now(ctx: ReadContext, row: MemoryRow) -> dict[str, Any] | None:
    """What has been said last in the place of a memory, who said it and when; None where that
    cannot be read now.
    """
    for _ in range(FOLLOWED_MEMORIES_MAX):
        if not row.superseded:
            break
        newer = None if row.superseded_by_id is None else find_row(ctx, row.superseded_by_id)
        if newer is None:
            return None
        row = newer
    if row.superseded or row.ordinal in unreadable(ctx):
        return None
    return {
        "id": row.id,
        "content": row.content,
        "speaker": row.speaker,
        "occurred_at": iso(row.occurred_at),
    }
