"""Act, ask or review: advice from how similar decisions went and from what people have corrected
(beta).

What is similar to the query and has an outcome counts as much as it is similar:

    logged decisions   cosine with the description; success 1, partial ½, failure 0
    records           the share of the asked context's items they have, or the cosine with their
                       context's words; with `policy_key` also those that can be compared in neither
                       way, at half weight. Their reward counts as a share of its range
    corrections        a failure, as far as the query is near to what was corrected

The confidence is the mean of the posterior over a uniform prior, its lower bound the 5 % quantile.
The advice is to act only where the lower bound reaches 1 − cost of asking / cost of being wrong
(settings `learning.cost_ask`, `learning.cost_wrong`). With fewer than DECISIONS_MIN similar
decisions nothing is known (`basis: prior`) and the advice is to ask. A correction very near to the
query contradicts the evidence until as many decisions like it have gone well since; then the advice
is to review.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from pydantic import AfterValidator, Field, model_validator

from plugins.learning import limits
from plugins.learning.corrections import (
    CORRECTIONS,
    RelevantCorrection,
    correction_view,
    corrections_in_force,
    relevant_corrections,
)
from plugins.learning.decision_log import LOGGED, WORTH, matching, nearest
from plugins.learning.decision_store import DECISION_DETAILS, DECISION_VECTORS, newest, records_of
from plugins.learning.embedding import Embedded, embedded
from plugins.learning.models import ActionKey, PolicyKey, ScopeName, parsed_context
from plugins.learning.settings import LearningSettings
from plugins.learning.statistics import LEARNING, similarity_weighted
from plugins.memories import rows_at
from plugins.search import SearchSettings
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Query, Read, View, not_blank
from runtime.errors import ValidationFailed
from runtime.inference import Models

DECISIONS_MIN = 3
SIMILAR_MIN = 0.3
UNCOMPARED = 0.5
CONTRADICTION_MIN = 0.5
CORRECTIONS_SHOWN_MAX = 5


class ConfidenceQuery(Query):
    query: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1,
        max_length=limits.QUERY_STRING_CHARS_MAX,
        description="What is to be done, in plain words.",
    )
    policy_key: PolicyKey | None = Field(
        default=None, description="Only decisions under this policy."
    )
    action_key: ActionKey | None = Field(
        default=None, description="Only decisions that took this action."
    )
    context: str | None = Field(
        default=None,
        max_length=limits.QUERY_STRING_CHARS_MAX,
        description="JSON: what the decision depends on.",
    )
    user_id: ScopeName | None = Field(
        default=None, description="Only this end user's decisions and corrections."
    )
    end_user_id: ScopeName | None = Field(default=None, description="Another name for user_id.")

    @model_validator(mode="after")
    def _one_name_for_the_user(self) -> ConfidenceQuery:
        if self.user_id and self.end_user_id and self.user_id != self.end_user_id:
            raise ValidationFailed.at(
                ("query", "end_user_id"), "is another name for user_id, and names another one"
            )
        self.user_id = self.user_id or self.end_user_id
        return self


class Confidence(View):
    confidence: float = Field(description="Mean of the posterior, 0 to 1.")
    recommended_action: Literal["act", "ask", "review"] = Field(
        description="Advice; it authorises nothing."
    )
    basis: Literal["evidence", "prior"]
    decision_count: int = Field(description="Similar decisions with an outcome.")
    lower_bound: float = Field(description="5 % quantile of the posterior.")
    threshold: float = Field(description="What the lower bound must reach for `act`.")
    reasoning: str
    corrections: list[RelevantCorrection] = Field(
        description="What people have put right about this."
    )


class ResolvedDecision(msgspec.Struct):
    """One resolved decision: how similar, how it went (0 to 1), and when."""

    similarity: float
    outcome: float
    at: int


def load(ctx: ReadContext, body: None) -> tuple[dict[str, Any] | None, float]:
    """The context, and how many seconds the query's embedding may take."""
    return parsed_context(ctx.query.context), SearchSettings.of(ctx.settings).embedding_wait_seconds


async def prepare(
    call: Call, loaded: tuple[dict[str, Any] | None, float], models: Models
) -> tuple[dict[str, Any] | None, Embedded | None]:
    context, seconds = loaded
    return context, await embedded(call.query.query, seconds, models)


def confidence(ctx: ReadContext, body: None) -> dict[str, Any]:
    asked: ConfidenceQuery = ctx.query
    context, vector = ctx.prepared
    evidence = [*_records(ctx, asked, context, vector)]
    if (
        asked.policy_key is None and asked.action_key is None and asked.user_id is None
    ):  # the log knows none of them
        evidence += _logged(ctx, vector)
    allowed = corrections_in_force(ctx, asked, None, include_superseded=False)
    found, _ = relevant_corrections(ctx, asked.query, vector, allowed, CORRECTIONS_SHOWN_MAX)
    corrections = [
        (score, ctx[CORRECTIONS].row(ordinal), rows_at(ctx, [ordinal])[0])
        for score, ordinal in found
    ]
    wrong = [score * row.confidence for score, row, _ in corrections if score >= SIMILAR_MIN]
    belief = similarity_weighted(
        [*(each.outcome for each in evidence), *(0.0 for _ in wrong)],
        [*(each.similarity for each in evidence), *wrong],
    )
    contradicting = [
        row
        for score, row, _ in corrections
        if score >= CONTRADICTION_MIN and not _outlived(evidence, row.created_at)
    ]
    settings = LearningSettings.of(ctx.settings)
    threshold = max(0.0, 1 - settings.cost_ask / settings.cost_wrong)
    lower = belief.interval()[0]
    enough = len(evidence) >= DECISIONS_MIN
    advice, reasoning = _advice(len(evidence), len(contradicting), lower, threshold)
    return {
        "confidence": belief.mean,
        "recommended_action": advice,
        "basis": "evidence" if enough else "prior",
        "decision_count": len(evidence),
        "lower_bound": lower,
        "threshold": threshold,
        "reasoning": reasoning,
        "corrections": [
            {**correction_view(ctx, row, memory), "score": score}
            for score, row, memory in corrections
        ],
    }


def _advice(count: int, contradicting: int, lower: float, threshold: float) -> tuple[str, str]:
    if contradicting:
        return (
            "review",
            "People have corrected this, and nothing like it has gone well often enough since.",
        )
    if count < DECISIONS_MIN:
        return (
            "ask",
            f"Similar decisions with an outcome: {count}. Fewer than {DECISIONS_MIN} say nothing.",
        )
    if lower >= threshold:
        return (
            "act",
            f"{count} similar decisions: the lower bound {lower:.2f} reaches the threshold "
            f"{threshold:.2f}.",
        )
    return (
        "ask",
        f"{count} similar decisions: the lower bound {lower:.2f} stays below the threshold "
        f"{threshold:.2f}.",
    )


def _outlived(evidence: list[ResolvedDecision], since: int) -> bool:
    return sum(each.outcome > 0.5 for each in evidence if each.at > since) >= DECISIONS_MIN


def _logged(ctx: ReadContext, vector: Embedded | None) -> Iterator[ResolvedDecision]:
    for ordinal, cosine in nearest(ctx, vector, matching(ctx, None, None), SIMILAR_MIN)[
        : limits.DECISIONS_COMPARED_MAX
    ]:
        row = ctx[LOGGED].row(ordinal)
        if row.outcome is not None:
            yield ResolvedDecision(cosine, WORTH[row.outcome], row.created_at)


def _records(
    ctx: ReadContext,
    asked: ConfidenceQuery,
    context: dict[str, Any] | None,
    vector: Embedded | None,
) -> Iterator[ResolvedDecision]:
    """The newest records with an outcome, as far as they are similar."""
    found = records_of(ctx, asked.policy_key, number=None, user_id=asked.user_id, resolved=True)
    rows = newest(ctx, found, limits.DECISIONS_COMPARED_MAX)
    cosines, known = np.zeros(len(rows)), np.zeros(len(rows), bool)
    if vector is not None and rows:
        ordinals = np.array([ordinal for ordinal, _ in rows])
        vectors, known = ctx.index(DECISION_VECTORS).get_many(vector[0], ordinals)
        if known.any():
            cosines = vectors @ vector[1]
    for (ordinal, row), cosine, comparable in zip(rows, cosines, known, strict=True):
        if asked.action_key is not None and row.actions[row.chosen] != asked.action_key:
            continue
        if context:
            own = ctx[DECISION_DETAILS].row(ordinal).context
            similarity = sum(
                name in own and own[name] == value for name, value in context.items()
            ) / len(context)
        elif comparable:
            similarity = float(min(cosine, 1.0))
        else:
            similarity = UNCOMPARED if asked.policy_key is not None else 0.0
        if similarity >= SIMILAR_MIN:
            low, high = row.bounds
            yield ResolvedDecision(similarity, (row.outcome - low) / (high - low), row.created_at)


OPERATIONS = (
    Read(
        name="confidence.get",
        method="GET",
        path="/v1/confidence",
        load=load,
        prepare=prepare,
        handler=confidence,
        query=ConfidenceQuery,
        response=Confidence,
        credits=1,
        extra=LEARNING,
        stability="beta",
        summary="Whether to act or to ask",
        description="From how similar decisions went and what people have corrected. Advice only.",
        example_reply={
            "confidence": 0.93,
            "recommended_action": "act",
            "basis": "evidence",
            "decision_count": 24,
            "lower_bound": 0.83,
            "threshold": 0.8,
            "reasoning": "24 similar decisions: the lower bound 0.83 reaches the threshold 0.80.",
            "corrections": [],
        },
    ),
)
