"""The wire: one ASGI application made from the Registry, and the only place that knows HTTP.

Every request passes the same stations, and whichever refuses it gives the answer:

    request id → sizes → route → HTTPS → Authorization → key, query, body → shard (or flow) → bytes

The gateway reads a credential but does not judge it: what it finds wrong with a request of a known
credential travels to the shard as `Call.rejected`, so that a revoked key is told 401 and a
throttled one 429 before anybody learns how to mend a body. Public requests have nobody to ask and
are answered at once. A write goes on when its client has gone.

A flow runs here, around its steps in the shard (flow.py); it stops when its client leaves. What a
plugin's mount claims is the mount's to answer, after sizes and HTTPS (mount.py).

Replies come encoded and pass through untouched; a streamed body goes out chunk by chunk. Every
answer, errors and unknown paths included, carries X-Request-ID, X-Process-Time, X-Service-Version
and X-Service-Build; errors become the envelope here and nowhere
else. Raw ASGI, since this path is walked by every request: no framework stands between the server
and the shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.api.mount import Application
from runtime.api.plugin import Registry
from runtime.http.credentials import read_authorization
from runtime.http.gateway import Gateway
from runtime.http.request_log import RequestLog
from runtime.http.responses import answer_unread
from runtime.http.shards import Shards
from runtime.installation import Secrets
from runtime.settings import Settings
from runtime.telemetry import Telemetry

if TYPE_CHECKING:
    from runtime.inference import Models

__all__ = ["Gateway", "Shards", "answer_unread", "build_asgi", "read_authorization"]


def build_asgi(
    registry: Registry,
    settings: Settings,
    shards: Shards,
    secrets: Secrets,
    telemetry: Telemetry,
    *,
    models: Models | None = None,
    gateway: str | None = None,
) -> Application:
    """The service as an ASGI application.

    models   what flows reason with; None where no operation needs one
    gateway  a name that no other gateway on these data has, for the log of requests; None: it
             keeps none
    """
    requests = None if gateway is None else RequestLog.of(settings, gateway)
    return Gateway(registry, settings, shards, secrets, telemetry, models, requests)
