"""Shards that live in actors, ended in order."""

from __future__ import annotations

import logging
from typing import Any

from runtime import cluster
from runtime.limits import STOP_SECONDS_MAX
from runtime.settings import Settings

log = logging.getLogger("mneme.serving")


def stop_all(settings: Settings) -> None:
    """End every actor of the installation, first the supervisor, which would start shards again."""
    for handles in cluster.leftover_actors(settings):
        stop_shards(handles)


def stop_shards(shards: list[Any]) -> None:
    """End shards, and say so where one did not close in order."""
    if shards and not cluster.stop_shards(shards, STOP_SECONDS_MAX):
        log.error("not every shard closed in order; the next start recovers from what is on disk")
