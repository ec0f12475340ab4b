"""Short texts beside memories that are found by meaning: embedded within the time a write may take,
or else by a job.

`embedded` gives a vector or None, so that a write never fails because the embedder is late;
`indexing_job` does the same work later for rows that were stored without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plugins.learning.limits import EMBED_ATTEMPTS_MAX
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import InferenceUnavailable, Models
from storage.indexes import VectorIndex

Embedded = tuple[str, np.ndarray]  # space, unit vector


async def embedded(text: str, seconds: float, models: Models) -> Embedded | None:
    """The text's vector, or None when there is no text, or the embedder is down or late."""
    if not text.strip() or seconds <= 0:
        return None
    try:
        async with asyncio.timeout(seconds):
            return models.embedder.space, (await models.embedder.embed([text]))[0]
    except (TimeoutError, InferenceUnavailable):
        return None


def indexing_job(
    name: str, index: VectorIndex, text_of: Callable[[ReadContext, int], str | None]
) -> Job:
    """A job {"ordinal": …} that embeds a stored text. text_of: its present text, None when the row
    is gone.
    """

    def load(ctx: ReadContext, payload: Mapping[str, Any]) -> str | None:
        return text_of(ctx, payload["ordinal"])

    async def prepare(
        steps: JobSteps, text: str | None, payload: Mapping[str, Any], models: Models
    ) -> Embedded | None:
        return (
            None if not text else (models.embedder.space, (await models.embedder.embed([text]))[0])
        )

    def finish(ctx: WriteContext, payload: Mapping[str, Any]) -> dict[str, int]:
        if ctx.prepared is None or not text_of(ctx, payload["ordinal"]):
            return {"indexed": 0}
        space, vector = ctx.prepared
        ctx.index(index).put(space, payload["ordinal"], vector)
        return {"indexed": 1}

    return Job(
        name, finish, load=load, prepare=prepare, retry=RetryStrategy(attempts=EMBED_ATTEMPTS_MAX)
    )
