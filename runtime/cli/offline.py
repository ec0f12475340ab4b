"""What commands need that work on the files of shards, without a service."""

from __future__ import annotations

from runtime.api import jobs, outbox
from runtime.api.context import Environment
from runtime.cluster import resolve
from runtime.installation import Secrets
from runtime.settings import Settings
from runtime.shard import verification


def environment_of(settings: Settings) -> Environment:
    """What the contexts of a shard of these settings share."""
    registry = resolve("serve_app:registry")(settings)
    return Environment(
        registry,
        settings,
        Secrets.of(settings),
        registry.outbound(settings),
        emit=outbox.emit,
        enqueue=jobs.enqueue,
        mend=verification.mend,
    )
