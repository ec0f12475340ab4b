"""Feedback-trained ranking: a tenant's feedback becomes adjustments of its ranking weights (beta).

A training is a job. It searches again for each query that has feedback, takes every result's
features from the search's own explanation, fits adjustments on half of the queries and judges them
on the other half (plugins/feedback/pairwise.py). They are promoted only when the paired lower bound
of the NDCG@10 gain is above 0; else the training is `completed` with `promoted: false` and the
reason. Searches rank by what is promoted. Any promoted version, or 0 for the defaults, can be
rolled back to.

Nothing outlives the feedback it was learned from: when feedback goes with its memory, all versions
are withdrawn by a new training, which promotes afresh or leaves the defaults. A training under way
at that moment begins again.

    ranking_versions   (version,)  -> VersionRow
    training_state     ()          -> StateRow

Choices: fewer than QUERIES_MIN queries with usable feedback, or
JUDGES_MIN held-out ones with a good result, are too little; a training of too little makes no
version; rolling back to a version that was never promoted, or was withdrawn, is 404.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
from pydantic import Field

from plugins.feedback.limits import (
    RANKING_VERSIONS_SHOWN_MAX,
    TRAINING_QUERIES_MAX,
    TRAINING_ROWS_MAX,
)
from plugins.feedback.operations import FEEDBACK, RANKING, RELEVANCE, FeedbackRow
from plugins.feedback.pairwise import Judged, fitted, gains_of, halves, lower_bound, ndcg, pairs_of
from plugins.memories import JobView, find_row
from plugins.search import (
    IMPORTANCE,
    RECENCY,
    SEARCH_ITEMS_MAX,
    RankingSettings,
    ranking_profile,
    recency,
    use_defaults,
    use_weights,
    version_in_use,
    weights_of,
)
from runtime.api import jobs
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.operation import Body, Event, Idempotency, Read, Reply, View, Write
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.errors import NotFound
from runtime.extras import Extra
from runtime.inference import Models
from runtime.limits import RETRY_AFTER_SECONDS
from runtime.timestamps import iso, parse
from storage.store import Key, Table

LEARNING = Extra("learning", ("scipy",), "learning from feedback")
JOB = "rl.train"
POLICY = "ranking"
LEARNED = "feedback"  # the channel of an explanation that holds what was learned before
QUERIES_MIN = 20
JUDGES_MIN = 8  # held-out queries with a result that is worth something
WITHDRAWN = "Withdrawn: feedback it was learned from has been erased."

# --- requests and responses -----------------------------------------------------------------------


class Train(Body):
    policy: Literal["ranking"] = Field(
        default=POLICY, description="What to train: the ranking of searches."
    )


class Accepted(View):
    job_id: str = Field(description="The job that trains.")
    status_url: str = Field(description="Where it reports.")


class Rollback(Body):
    version: int = Field(
        strict=True,
        ge=0,
        le=2**53,
        description="A promoted version, or 0 for the defaults.",
    )


class TrainedVersion(View):
    version: int
    trained_at: str
    ndcg_before: float = Field(
        description="Mean NDCG@10 on the held-out queries, with the ranking in use."
    )
    ndcg_after: float = Field(description="The same with what was learned.")
    promoted: bool
    reason: str


class Metrics(View):
    active_version: int = Field(description="The version in use; 0 is the defaults.")
    versions: list[TrainedVersion] = Field(description="Newest first.")


class TrainingEvent(View):
    id: str = Field(description="The job's id.")
    job_id: str = Field(description="The same id.")
    policy: str
    metrics: dict[str, float] | None = None
    promoted: bool | None = None
    error: str | None = None


STARTED = Event("rl.training_started", TrainingEvent)
COMPLETED = Event("rl.training_completed", TrainingEvent)
FAILED = Event("rl.training_failed", TrainingEvent)
EVENTS = (STARTED, COMPLETED, FAILED)

# --- tables ---------------------------------------------------------------------------------------


class VersionRow(msgspec.Struct, frozen=True):
    version: int
    trained_at: int
    ndcg_before: float
    ndcg_after: float
    promoted: bool
    reason: str
    adjustments: dict[str, float]


class StateRow(msgspec.Struct, frozen=True):
    """erasures: how often feedback was erased; retraining: a training that withdraws the versions
    before it is on its way.
    """

    erasures: int = 0
    retraining: bool = False


RANKING_VERSIONS: Table[VersionRow] = Table(
    "ranking_versions", key=("version",), row=VersionRow, doc="what trainings of the ranking led to"
)
TRAINING_STATE: Table[StateRow] = Table(
    "training_state", key=(), row=StateRow, doc="what trainings must take into account"
)
TABLES: tuple[Table, ...] = (RANKING_VERSIONS, TRAINING_STATE)

# --- operations' handlers -------------------------------------------------------------------------


def train(ctx: WriteContext, body: Train) -> Reply:
    job_id = ctx.enqueue(JOB, {"policy": body.policy})
    ctx.emit(STARTED, {"id": job_id, "job_id": job_id, "policy": body.policy}, job_id)
    status_url = f"/v1/rl/jobs/{job_id}"
    headers = {"Location": status_url, "Retry-After": str(RETRY_AFTER_SECONDS)}
    return Reply(202, {"job_id": job_id, "status_url": status_url}, headers, resource_id=job_id)


def get_job(ctx: ReadContext, body: None) -> dict[str, Any]:
    return jobs.view(jobs.get(ctx, ctx.path["job_id"], (JOB,)))


def metrics(ctx: ReadContext, body: None) -> dict[str, Any]:
    rows = [
        row for _, row in ctx[RANKING_VERSIONS].scan(reverse=True, limit=RANKING_VERSIONS_SHOWN_MAX)
    ]
    return {
        "active_version": version_in_use(ctx),
        "versions": [version_view(row) for row in rows],
    }


def version_view(row: VersionRow) -> dict[str, Any]:
    """Make the view of a version of the weights."""
    return {
        "version": row.version,
        "trained_at": iso(row.trained_at),
        "ndcg_before": row.ndcg_before,
        "ndcg_after": row.ndcg_after,
        "promoted": row.promoted,
        "reason": row.reason,
    }


def rollback(ctx: WriteContext, body: Rollback) -> dict[str, Any]:
    if body.version == 0:
        use_defaults(ctx)
        return metrics(ctx, None)
    row = ctx[RANKING_VERSIONS].get(body.version)
    if row is None or not row.promoted:
        raise NotFound("There is no promoted version with this number.")
    use_weights(ctx, row.version, row.adjustments)
    return metrics(ctx, None)


# --- the job: gathering ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Material:
    """What a training starts from. features: the names of what is weighed."""

    features: list[str]
    by_query: dict[str, list[FeedbackRow]]
    in_use: dict[str, float]
    erasures: int


@dataclass(frozen=True, slots=True)
class Trained:
    """adjustments is None when there was too little to learn from."""

    erasures: int
    queries: int
    adjustments: dict[str, float] | None = None
    before: float = 0.0
    after: float = 0.0
    bound: float = 0.0


def load(ctx: ReadContext, payload: Mapping[str, Any]) -> Material:
    """The newest feedback, by query."""
    by_query: dict[str, list[FeedbackRow]] = defaultdict(list)
    newest = ctx[FEEDBACK].scan(reverse=True, limit=TRAINING_ROWS_MAX)
    for row in sorted(
        (row for _, row in newest if row.kind in (RELEVANCE, RANKING)), key=lambda row: row.at
    ):
        by_query[row.query].append(row)
    chosen = dict(list(by_query.items())[-TRAINING_QUERIES_MAX:])
    state = ctx[TRAINING_STATE].get() or StateRow()
    return Material(feature_names(ctx), chosen, dict(weights_of(ctx) or {}), state.erasures)


async def prepare(
    steps: JobSteps, material: Material, payload: Mapping[str, Any], models: Models
) -> Trained:
    """Search again for each query, each on a snapshot of its own; then fit and judge, on a
    thread.
    """
    if len(material.by_query) < QUERIES_MIN:
        return Trained(material.erasures, len(material.by_query))
    found = []
    for query, rows in material.by_query.items():
        reply = await _search_again(steps, query)
        found.append(await steps.look(partial(_judged, query=query, rows=rows, reply=reply)))
    usable = [judged for judged in found if judged is not None]
    if len(usable) < QUERIES_MIN:
        return Trained(material.erasures, len(usable))
    LEARNING.require()
    return await asyncio.to_thread(_learn, material, usable)


async def _search_again(steps: JobSteps, query: str) -> dict[str, Any]:
    """What a search finds now, explained."""
    return await steps.run(
        "search.search",
        {
            "query": query,
            "limit": SEARCH_ITEMS_MAX,
            "explain": True,
            "include_low_confidence": True,
        },
    )


def _judged(
    ctx: ReadContext, query: str, rows: Sequence[FeedbackRow], reply: dict[str, Any]
) -> Judged | None:
    """The results with what feedback says of them; None when it speaks of none of them."""
    results = reply["results"]
    places = {hit["id"]: place for place, hit in enumerate(results)}
    relevant: dict[int, bool] = {}
    expected: dict[int, int] = {}
    for row in rows:
        place = places.get(row.memory_id)
        if place is not None and row.kind == RELEVANCE:
            relevant[place] = bool(row.is_relevant)
        elif place is not None and row.expected_rank is not None:
            expected[place] = row.expected_rank
    if not relevant and not expected:
        return None
    n = len(results)
    weights = ranking_profile(ctx.settings, reply["ranking_profile"]).weights
    features = np.array([features_of(ctx, hit, weights) for hit in results])
    base = np.array([hit["score"] - hit["explanation"].get(LEARNED, 0.0) for hit in results])
    return Judged(
        query, features, base, gains_of(n, relevant, expected), pairs_of(n, relevant, expected)
    )


def feature_names(ctx: ReadContext) -> list[str]:
    """Features that ranking weighs, in a fixed order, and the priors."""
    return [
        *(name for name, weight in RankingSettings.of(ctx.settings).weights.items() if weight),
        RECENCY,
        IMPORTANCE,
    ]


def features_of(
    ctx: ReadContext, hit: Mapping[str, Any], weights: Mapping[str, float]
) -> list[float]:
    """A result's unweighted features: contributions divided by the weights they were made with, and
    the priors.

    What the profile gives no weight contributes nothing, so it cannot be told and counts as 0.
    """
    row = find_row(ctx, hit["id"])
    priors = [
        float(recency(ctx.now, np.array(parse(hit["occurred_at"])))),
        0.0 if row is None else row.importance,
    ]
    explanation = hit["explanation"]
    return [
        explanation.get(name, 0.0) / weights[name] if weights.get(name) else 0.0
        for name in feature_names(ctx)[:-2]
    ] + priors


def _learn(material: Material, queries: list[Judged]) -> Trained:
    names = material.features
    learning, held_out = halves(queries, material.erasures)
    judging = [
        query for query in held_out if query.gains.any()
    ]  # a query with nothing worth finding cannot tell rankings apart
    if len(judging) < JUDGES_MIN:
        return Trained(material.erasures, len(queries))
    adjustments = fitted(learning, len(names))
    in_use = np.array([material.in_use.get(name, 0.0) for name in names])
    before, after = ([ndcg(query, vector) for query in judging] for vector in (in_use, adjustments))
    gained = [late - early for early, late in zip(before, after, strict=True)]
    learned = {name: round(float(value), 6) for name, value in zip(names, adjustments, strict=True)}
    return Trained(
        material.erasures,
        len(queries),
        learned,
        float(np.mean(before)),
        float(np.mean(after)),
        lower_bound(gained),
    )


# --- the job: its end -----------------------------------------------------------------------------


def finish(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """Write the version down, use it if it is better, withdraw what must go; begin again when
    feedback was erased meanwhile.
    """
    trained: Trained = ctx.prepared
    state = ctx[TRAINING_STATE].get() or StateRow()
    if trained.erasures != state.erasures:
        return Again(payload)
    if payload.get("because") == "erased":
        _withdraw(ctx)
        ctx[TRAINING_STATE].put((), StateRow(state.erasures, retraining=False))
    job_id = ctx.call.request_id
    if trained.adjustments is None:
        reason = (
            f"Too little feedback: {trained.queries} queries have some that speaks of a result. "
            f"{QUERIES_MIN} are needed, "
            f"{2 * JUDGES_MIN} of them with a result that is worth something."
        )
        ctx.emit(
            COMPLETED,
            {"id": job_id, "job_id": job_id, "policy": POLICY, "metrics": None, "promoted": False},
            job_id,
        )
        return {
            "policy": POLICY,
            "promoted": False,
            "reason": reason,
            "version": None,
            "metrics": None,
        }
    promoted = trained.bound > 0
    version = ctx.next_ordinal("ranking_versions") + 1
    reason = f"The gain in NDCG@10 on held-out queries is at least {trained.bound:.4f}: " + (
        "promoted." if promoted else "not above 0."
    )
    row = VersionRow(
        version,
        ctx.now,
        trained.before,
        trained.after,
        promoted,
        reason,
        trained.adjustments if promoted else {},
    )
    ctx[RANKING_VERSIONS].put((version,), row)
    if promoted:
        use_weights(ctx, version, trained.adjustments)
    found = {
        "ndcg_before": trained.before,
        "ndcg_after": trained.after,
        "lower_bound": trained.bound,
        "queries": float(trained.queries),
    }
    ctx.emit(
        COMPLETED,
        {"id": job_id, "job_id": job_id, "policy": POLICY, "metrics": found, "promoted": promoted},
        job_id,
    )
    return {
        "policy": POLICY,
        "promoted": promoted,
        "reason": reason,
        "version": version,
        "metrics": found,
    }


def give_up(ctx: WriteContext, payload: Mapping[str, Any], reason: str) -> None:
    """The last attempt failed. What was learned from erased feedback goes in any case."""
    if payload.get("because") == "erased":
        state = ctx[TRAINING_STATE].get() or StateRow()
        _withdraw(ctx)
        ctx[TRAINING_STATE].put((), StateRow(state.erasures, retraining=False))
    job_id = ctx.call.request_id
    ctx.emit(FAILED, {"id": job_id, "job_id": job_id, "policy": POLICY, "error": reason}, job_id)


def _withdraw(ctx: WriteContext) -> None:
    use_defaults(ctx)
    for (version,), row in ctx[RANKING_VERSIONS].scan():
        if row.promoted:
            ctx[RANKING_VERSIONS].put(
                (version,),
                msgspec.structs.replace(row, promoted=False, reason=WITHDRAWN, adjustments={}),
            )


def retrain(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: feedback was erased. What was learned from it is withdrawn by a new training; one
    serves many erasures.
    """
    state = ctx[TRAINING_STATE].get() or StateRow()
    learned = any(row.promoted for _, row in ctx[RANKING_VERSIONS].scan())
    if learned and not state.retraining:
        ctx.enqueue(JOB, {"policy": POLICY, "because": "erased"})
    ctx[TRAINING_STATE].put((), StateRow(state.erasures + 1, state.retraining or learned))


# --- privacy --------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove everything that was learned. Counts of rows by table."""
    return {table.name: ctx[table].delete_prefix() for table in TABLES}


def export(ctx: ReadContext, after: Key | None) -> Iterator[tuple[str, dict[str, Any], Key]]:
    """("ranking_version", record with its adjustments, key) for each behind a key, oldest
    first.
    """
    for key, row in ctx[RANKING_VERSIONS].scan(after=after):
        yield "ranking_version", {**version_view(row), "adjustments": row.adjustments}, key


# --- operations -----------------------------------------------------------------------------------

_JOB = "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j"
_METRICS = {
    "active_version": 1,
    "versions": [
        {
            "version": 1,
            "trained_at": "2026-05-08T13:56:00.000Z",
            "ndcg_before": 0.61,
            "ndcg_after": 0.78,
            "promoted": True,
            "reason": "The gain in NDCG@10 on held-out queries is at least 0.1100: promoted.",
        }
    ],
}
_RESULT = {
    "policy": "ranking", "promoted": True, "reason": _METRICS["versions"][0]["reason"],
    "version": 1,
    "metrics": {"ndcg_before": 0.61, "ndcg_after": 0.78, "lower_bound": 0.11, "queries": 80.0},
}  # fmt: skip

OPERATIONS = (
    Write(
        name="rl.train",
        method="POST",
        path="/v1/rl/train",
        handler=train,
        body=Train,
        response=Accepted,
        statuses=(202,),
        scope="write",
        idempotency=Idempotency.CACHED,
        credits=10,
        feature="training",
        extra=LEARNING,
        stability="beta",
        summary="Learn ranking weights from feedback",
        description="A job. What it learns is used only when it ranks held-out queries better "
        "beyond "
        "doubt.",
        example={"policy": "ranking"},
        example_reply={"job_id": _JOB, "status_url": f"/v1/rl/jobs/{_JOB}"},
    ),
    Read(
        name="rl.jobs.get",
        method="GET",
        path="/v1/rl/jobs/{job_id}",
        handler=get_job,
        response=JobView,
        stability="beta",
        summary="Poll a training",
        example_reply={
            "job_id": _JOB,
            "status": "completed",
            "progress": 1.0,
            "created_at": "2026-05-08T13:56:00.000Z",
            "started_at": "2026-05-08T13:56:00.100Z",
            "finished_at": "2026-05-08T13:56:02.000Z",
            "attempts": 1,
            "result": _RESULT,
            "error": None,
        },
    ),
    Read(
        name="rl.metrics",
        method="GET",
        path="/v1/rl/metrics",
        handler=metrics,
        response=Metrics,
        stability="beta",
        summary="What trainings led to",
        example_reply=_METRICS,
    ),
    Write(
        name="rl.rollback",
        method="POST",
        path="/v1/rl/rollback",
        handler=rollback,
        body=Rollback,
        response=Metrics,
        errors=(404,),
        scope="write",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Use an earlier version, or the defaults",
        example={"version": 0},
        example_reply={**_METRICS, "active_version": 0},
    ),
)

JOBS = (
    Job(JOB, finish, load=load, prepare=prepare, failed=give_up, retry=RetryStrategy(attempts=3)),
)
