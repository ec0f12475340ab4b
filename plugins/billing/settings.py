"""What a new account gets, who collects, and where customers read of prices: the section `billing`
of the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, SecretStr, model_validator

from runtime.api.tiers import Offer
from runtime.settings import Section, Settings

RETAINED = (
    "Numbers, amounts, dates and the payment provider's ids of invoices and of the ledger stay, "
    "for accounting; no name, no address and no text."
)


class BillingSettings(Section, frozen=True):
    follows = "tiers"

    default_tier: Literal["free", "starter", "pro", "scale", "enterprise"] = Field(
        default="free", description="Tier of a new account."
    )
    currency: str = Field(
        default="usd",
        pattern="^[a-z]{3}$",
        description="ISO 4217 code of the currency of all prices.",
    )
    issuer: str = Field(
        default="Mneme",
        max_length=255,
        description="Who issues the invoices: a name, and an address if you like.",
    )
    metered_millicents: int = Field(
        default=0,
        ge=0,
        description="Thousandths of a cent that a credit costs on a tier with unlimited credits.",
    )
    provider: Literal["manual", "stripe"] = Field(
        default="manual", description="Who collects invoices: the operator, or Stripe."
    )
    stripe_api_key: SecretStr | None = Field(
        default=None, description="Secret key of the Stripe account."
    )
    stripe_signing_secret: SecretStr | None = Field(
        default=None,
        description="Secret that signs what Stripe sends to /v1/billing/stripe/events.",
    )
    stripe_api_base: str = Field(
        default="https://api.stripe.com", description="Where Stripe's API is."
    )
    grace_days: int | None = Field(
        default=30,
        ge=0,
        description=(
            "Days for which an invoice may be open; then the account writes nothing that costs "
            "credits until it is paid. null: for ever."
        ),
    )
    upgrade_url: str | None = Field(
        default=None, description="Where customers upgrade; null is the dashboard of this service."
    )
    pricing_url: str | None = Field(
        default=None,
        description="Where the tiers are described; null is /v1/billing/tiers of this service.",
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> BillingSettings:
        if self.provider == "stripe" and self.stripe_api_key is None:
            raise ValueError("billing.stripe_api_key is missing: billing.provider stripe needs it")
        return self


def offer(settings: Settings) -> Offer:
    """What new accounts get, and where customers find other tiers."""
    billing = BillingSettings.of(settings)
    return Offer(billing.default_tier, billing.upgrade_url, billing.pricing_url)


def kept_elsewhere(settings: Settings, erased: Mapping[str, int]) -> dict[str, str]:
    """Where bills of an erased account may still be known, and what is kept of them here."""
    found = {}
    if erased.get("invoices"):
        found["financial records"] = RETAINED
    if BillingSettings.of(settings).provider == "stripe":
        found["payment provider"] = (
            "Stripe keeps the customer and the invoices that were handed to it; whoever runs this "
            "service can have the customer deleted there."
        )
    return found
