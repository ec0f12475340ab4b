"""How deliveries are made and given up: the section `webhooks` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class WebhooksSettings(Section, frozen=True):
    follows = "jobs"

    allow_private_networks: bool = Field(
        default=False,
        description=(
            "Let webhooks reach loopback and private addresses, for receivers on this machine or "
            "network."
        ),
    )
    proxy: str | None = Field(
        default=None,
        pattern=r"^https?://[A-Za-z0-9_.:\[\]-]+/?$",
        description=(
            "URL of an HTTP proxy that every delivery goes through, such as `http://egress:4750`. "
            "It looks names up, and has to refuse addresses inside; null asks receivers directly."
        ),
    )
    backoff_seconds_min: float = Field(
        default=4.0,
        gt=0,
        le=3_600,
        description=(
            "Seconds before the second attempt of a delivery; each further wait is twice as long."
        ),
    )
    timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=30,
        description="Seconds one attempt may take, looking up the name included.",
    )
    disable_after_seconds: int = Field(
        default=120 * 3600,
        ge=1,
        le=366 * 24 * 3600,
        description="Seconds of nothing but failures after which a webhook is disabled.",
    )
