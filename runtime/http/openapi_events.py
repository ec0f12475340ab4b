"""The events of a service in its OpenAPI 3.1 description: its `webhooks`, one entry for each kind
that a plugin declares.

What a receiver is sent is described like what the service is sent: headers, envelope, the fields of
`data`, and what to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from runtime.api.operation import Event
from runtime.limits import WEBHOOK_SIGNATURE_AGE_SECONDS_MAX
from runtime.signatures import PREVIOUS_SIGNATURE, SIGNATURE, TIMESTAMP

Json = dict[str, Any]

_HEADERS = {
    TIMESTAMP: (
        True,
        "Seconds since 1970 at which it was signed; refuse what is more than "
        f"{WEBHOOK_SIGNATURE_AGE_SECONDS_MAX} s off.",
    ),
    SIGNATURE: (
        True,
        "`sha256=` and the hex HMAC-SHA256 of `<timestamp>.<body>` under the signing secret.",
    ),
    PREVIOUS_SIGNATURE: (False, "The same under the secret before, for a while after a rotation."),
    "webhook-id": (True, "The event's id, for receivers that follow Standard Webhooks."),
    "webhook-timestamp": (True, "The time of signing once more."),
    "webhook-signature": (True, "Signatures after Standard Webhooks, parted by spaces."),
}
_ANSWERS = {
    "2XX": "Taken.",
    "410": "Gone: the webhook is disabled.",
    "default": "Anything else, or nothing within 30 seconds, is tried again: five times in all.",
}


def public(events: Iterable[Event]) -> list[Event]:
    """Those that leave the service."""
    return [event for event in events if not event.kind.startswith("internal.")]


def described(
    events: Iterable[Event], reference: Callable[[type[BaseModel]], Json]
) -> dict[str, Json]:
    """Event kind -> path item. reference: model of `data` -> its schema's $ref."""
    return {
        event.kind: {"post": _described(event, reference(event.model))} for event in public(events)
    }


def _described(event: Event, data: Json) -> Json:
    fields = {
        "id": {"type": "string", "description": "The event's id."},
        "event_type": {"const": event.kind},
        "timestamp": {
            "type": "integer",
            "description": "When it happened, seconds since 1970; the same in every attempt.",
        },
        "data": data,
        "idempotency_key": {
            "type": "string",
            "description": "The same in every attempt and replay; deduplicate by it.",
        },
    }
    envelope = {"type": "object", "required": list(fields), "properties": fields}
    return {
        "operationId": f"event.{event.kind}",
        "summary": event.kind,
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": required,
                "description": text,
                "schema": {"type": "string"},
            }
            for name, (required, text) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": envelope}}},
        "responses": {status: {"description": text} for status, text in _ANSWERS.items()},
    }
