"""Harnesses with webhooks, and what tests ask of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import Field

from plugins import accounts, collections, memories, search, webhooks
from plugins.webhooks.store import EVENT_KINDS
from runtime.api.operation import Body, Event, Idempotency, View, Write
from runtime.api.plugin import Plugin
from runtime.inference import Models
from serve_app import Settings
from storage.store import Table
from tests.support.embedding import WordEmbedder
from tests.support.receivers import Receiver
from tests.support.shard_harness import CHEAP, JOBS_SECONDS_MAX, ShardHarness

PLUGINS = (accounts.plugin, collections.plugin, memories.plugin, search.plugin, webhooks.plugin)
QUICK = {"allow_private_networks": True, "backoff_seconds_min": 0.01}


class Feedback(View):
    id: str = Field(description="The feedback's id.")


FEEDBACK = Event("user.feedback_received", Feedback)
# Any plugin's event is delivered, whichever plugins there are.
ELSEWHERE = Plugin(
    name="elsewhere",
    events=(FEEDBACK,),
    operations=(
        Write(
            name="elsewhere.emit", method="POST", path="/v1/elsewhere", body=Body,
            response=None, summary="", scope="write", idempotency=Idempotency.CACHED,
            handler=lambda ctx, body: {"event_id": ctx.emit(FEEDBACK, {"id": "fbk_1"}, "fbk_1")},
        ),
    ),
)  # fmt: skip


@contextmanager
def harness(directory: Path, *plugins: Plugin, **told: Any) -> Iterator[ShardHarness]:
    settings = Settings.load({**CHEAP, "webhooks": {**QUICK, **told}})
    made = ShardHarness(directory, (*PLUGINS, *plugins), Models(WordEmbedder()), settings)
    try:
        yield made
    finally:
        made.close()


def until(at: ShardHarness, holds: Callable[[], Any]) -> None:
    """Let the shard run until the condition holds."""
    deadline = time.monotonic() + JOBS_SECONDS_MAX
    while not holds():
        at.run(asyncio.sleep(0.002))
        assert time.monotonic() < deadline


def hook(
    at: ShardHarness, who: str, to: Receiver | str, *events: str, **fields: Any
) -> dict[str, Any]:
    """A new webhook, with its signing secret."""
    url = to if isinstance(to, str) else to.url
    answer = at(
        "webhooks.create", {"url": url, "events": list(events or EVENT_KINDS), **fields}, who=who
    )
    assert answer.status == 201, answer
    return answer.body


def deliveries(
    at: ShardHarness, who: str, webhook: dict[str, Any], **query: Any
) -> list[dict[str, Any]]:
    return at("webhooks.deliveries.list", who=who, id=webhook["id"], query=query).body["items"]


def detail(
    at: ShardHarness, who: str, webhook: dict[str, Any], delivery: dict[str, Any]
) -> dict[str, Any]:
    return at("webhooks.deliveries.get", who=who, id=webhook["id"], delivery_id=delivery["id"]).body


def count(at: ShardHarness, who: str, table: Table) -> int:
    with at.shard.store.snapshot() as snapshot:
        return snapshot.bind(table, at.scope_of(who)).count()
