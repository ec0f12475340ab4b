"""Boosts of an advanced search: what the caller wants to count for more, or for less.

Boosts change the order of what a search found, never what it finds: they are added to the scores of
the candidates, and a memory that does not stand on its own is not lifted into the answer. Weights
are in units of the score, of which a perfect match has about three; a negative weight moves down.

    recency     weight · 2^(−age / half life), by occurred_at; what lies ahead counts as now
    importance  weight · importance
    tier, tags  the weight of the memory's tier, and of each of its tags
    metadata    the weight of each condition that holds

`channels` multiply the weights of the ranking features by group. `session` and `answer` mix words
and meaning, and follow the mean of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from plugins.collections import METADATA_BYTES_MAX
from plugins.memories import MEMORY_FEATURES, MEMORY_FIELDS, Tag, metadata_value, rows_at
from plugins.search import ranking
from plugins.search.judging import Ranked
from plugins.search.limits import BOOST_WEIGHT_MAX, BOOSTS_MAX
from plugins.search.settings import ranking_profile
from runtime.api.context import ReadContext
from runtime.api.operation import Body
from runtime.timestamps import DAY_MS
from storage.indexes import Value

HALF_LIFE_DAYS_MAX = 36_525
CHANNEL_OF: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("words", "nearby", "semantic", "exact"), ("semantic",)
)
CHANNEL_OF |= dict.fromkeys(("session", "answer"), ("semantic", "lexical"))
CHANNEL_OF |= dict.fromkeys(("lexical",), ("lexical",)) | dict.fromkeys(
    ("date", "time", "dated"), ("temporal",)
)

Weight = Annotated[float, Field(strict=True, ge=-BOOST_WEIGHT_MAX, le=BOOST_WEIGHT_MAX)]
Multiplier = Annotated[float, Field(strict=True, ge=0, le=BOOST_WEIGHT_MAX)]


class RecencyBoost(Body):
    half_life_days: float = Field(
        strict=True,
        gt=0,
        le=HALF_LIFE_DAYS_MAX,
        description="Age at which half of the weight is left.",
    )
    weight: Weight = Field(description="What a memory of this moment gains.")


class MetadataBoost(Body):
    field: str = Field(
        min_length=1,
        max_length=METADATA_BYTES_MAX,
        description="Path in the metadata, keys joined by dots.",
    )
    value: str | bool | int | float | None = Field(
        default=None, description="The value it must have; of a list, one of its values."
    )
    weight: Weight = Field(description="What a memory gains that has it.")


class Channels(Body):
    """Multipliers of the ranking's weights, 1 for each that is absent."""

    semantic: Multiplier = Field(default=1.0, description="Meaning: vectors and late interaction.")
    lexical: Multiplier = Field(default=1.0, description="Words.")
    graph: Multiplier = Field(
        default=1.0,
        description="Candidates of the knowledge graph: above 0 asks for them, 0 leaves them out.",
    )
    temporal: Multiplier = Field(default=1.0, description="Times that the query names or asks for.")
    facet: Multiplier = Field(
        default=1.0,
        description="What a memory is: its speaker, its length, numbers and names in it.",
    )


class Boosts(Body):
    recency: RecencyBoost | None = Field(default=None, description="Prefer what happened lately.")
    importance: Weight | None = Field(
        default=None, description="What a memory of importance 1 gains."
    )
    tier: dict[Literal["short_term", "long_term", "archived"], Weight] = Field(
        default_factory=dict, description="Tier to weight."
    )
    tags: dict[Tag, Weight] = Field(
        default_factory=dict, max_length=BOOSTS_MAX, description="Tag to weight."
    )
    metadata: list[MetadataBoost] = Field(
        default_factory=list, max_length=BOOSTS_MAX, description="Metadata values to prefer."
    )
    channels: Channels | None = Field(default=None, description="Multipliers of the channels.")


def boosted(ctx: ReadContext, ranked: Ranked, boosts: Boosts) -> Ranked:
    """The candidates in their new order. `ranked` must hold the contributions of its features."""
    if not len(ranked.ordinals):
        return ranked
    multipliers = {
        name: _multiplier(name, boosts.channels or Channels()) for name in ranked.contributions
    }
    parts: dict[str, np.ndarray] = {
        name: multipliers[name] * values for name, values in ranked.contributions.items()
    }
    weights = {**ranking_profile(ctx.settings, ranked.profile).weights, **ranked.retrievers}
    reachable = ranking.reachable(
        {name: multipliers.get(name, 1.0) * weight for name, weight in weights.items()}
    )
    for name, most, values in _added(ctx, ranked.ordinals, boosts):
        parts[f"boost_{name}"] = values
        reachable += most
    scores = np.sum(list(parts.values()), axis=0).round(ranking.SCORE_DIGITS)
    order = np.lexsort((ranked.ordinals, scores))[::-1]
    normalized = np.clip(scores / reachable, 0, 1) if reachable > 0 else np.zeros(len(scores))
    rescored = replace(ranked, scores=scores, normalized=normalized, contributions=parts)
    return rescored.at(order).in_turn()


def _multiplier(feature: str, channels: Channels) -> float:
    return float(
        np.mean([getattr(channels, channel) for channel in CHANNEL_OF.get(feature, ("facet",))])
    )


def _added(
    ctx: ReadContext, ordinals: NDArray[np.uint32], boosts: Boosts
) -> Iterator[tuple[str, float, np.ndarray]]:
    """(boost, the most a memory can gain, what each gains)."""
    having, nothing = _having(ctx, ordinals), np.zeros(len(ordinals), np.float32)
    if boosts.recency is not None:
        ages = (
            np.maximum(ctx.now - ctx.index(MEMORY_FEATURES).field("occurred_at", ordinals), 0)
            / DAY_MS
        )
        weight = boosts.recency.weight
        yield "recency", max(weight, 0), weight * np.exp2(-ages / boosts.recency.half_life_days)
    if boosts.importance is not None:
        yield (
            "importance",
            max(boosts.importance, 0),
            boosts.importance * _importance(ctx, ordinals),
        )
    if boosts.tier:
        yield (
            "tier",
            max(0, *boosts.tier.values()),
            sum((weight * having("tier", tier) for tier, weight in boosts.tier.items()), nothing),
        )
    if boosts.tags:
        gains = sum((weight * having("tag", tag) for tag, weight in boosts.tags.items()), nothing)
        yield "tags", sum(max(weight, 0) for weight in boosts.tags.values()), gains
    if boosts.metadata:
        carried = (
            boost.weight * having("metadata", metadata_value(boost.field, boost.value))
            for boost in boosts.metadata
        )
        yield (
            "metadata",
            sum(max(boost.weight, 0) for boost in boosts.metadata),
            sum(carried, nothing),
        )


def _having(
    ctx: ReadContext, ordinals: NDArray[np.uint32]
) -> Callable[[str, Value], NDArray[np.float32]]:
    """(field, value) -> 1 for each memory that carries the value, else 0."""
    fields = ctx.index(MEMORY_FIELDS)

    def having(field: str, value: Value) -> NDArray[np.float32]:
        carriers = fields.of(field, value)
        return np.array([ordinal in carriers for ordinal in ordinals.tolist()], np.float32)

    return having


def _importance(ctx: ReadContext, ordinals: NDArray[np.uint32]) -> NDArray[np.float32]:
    rows = rows_at(ctx, ordinals.tolist())
    return np.array([row.importance for row in rows], np.float32)
