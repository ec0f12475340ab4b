"""What is sent and shown of a webhook."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from plugins.webhooks import limits
from plugins.webhooks.store import (
    ACTIVE,
    EventKind,
)
from runtime.api.operation import Body, View
from runtime.limits import DESCRIPTION_CHARS_MAX

Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.WEBHOOK_URL_CHARS_MAX,
        description="Where to deliver to: a public http or https address.",
    ),
]
Events = Annotated[
    list[EventKind],
    Field(min_length=1, max_length=100, description="The kinds of events to deliver."),
    AfterValidator(lambda kinds: list(dict.fromkeys(kinds))),
]
Description = Annotated[
    str, Field(max_length=DESCRIPTION_CHARS_MAX, description="What the webhook is for.")
]
SigningSecret = Annotated[
    str,
    Field(
        min_length=limits.WEBHOOK_SECRET_CHARS_MIN,
        max_length=limits.WEBHOOK_SECRET_CHARS_MAX,
        description="A signing secret of your own; one is made when it is absent.",
    ),
]


class NewWebhook(Body):
    url: Url
    events: Events
    description: Description | None = None
    signing_secret: SigningSecret | None = Field(default=None, repr=False)


class WebhookReplacement(Body):
    url: Url
    events: Events
    description: Description | None = None
    status: Literal["active", "disabled"] = Field(
        default=ACTIVE, description="active forgets earlier failures."
    )


class Rotation(Body):
    grace_seconds: int = Field(
        default=limits.WEBHOOK_GRACE_SECONDS_DEFAULT,
        ge=0,
        le=limits.WEBHOOK_GRACE_SECONDS_MAX,
        description="How long requests are signed with the secret before as well.",
    )
    signing_secret: SigningSecret | None = Field(default=None, repr=False)


class Webhook(View):
    id: str = Field(description="The webhook's id.")
    url: str = Field(description="Where it delivers to.")
    events: list[EventKind] = Field(description="The kinds of events it takes.")
    description: str | None = Field(description="What it is for.")
    status: Literal["active", "disabled"] = Field(
        description="A disabled webhook delivers nothing; its events are kept as skipped."
    )
    disabled_reason: str | None = Field(description="Why it is disabled.")
    created_at: str = Field(description="When it was created (ISO 8601).")
    updated_at: str = Field(description="When it was last changed (ISO 8601).")
    last_delivery_at: str | None = Field(description="When it last took an event with a 2xx.")
    failure_count: int = Field(description="Failed attempts since then.")


class WebhookWithSecret(Webhook):
    signing_secret: str = Field(description="Verifies deliveries. It is shown this once.")


class RotatedWebhook(WebhookWithSecret):
    previous_secret_expires_at: str = Field(
        description="Until when the secret before signs as well (ISO 8601)."
    )


class DeletedWebhook(View):
    id: str = Field(description="The webhook's id.")
    deleted: Literal[True] = Field(
        description="It delivers nothing any more, and its deliveries are being removed."
    )


class TestEvent(View):
    event_id: str = Field(description="The test event's id.")
    delivery_id: str = Field(
        description="Its delivery; look at it under /v1/webhooks/{id}/deliveries/{delivery_id}."
    )
