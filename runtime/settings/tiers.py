"""The sections that say what each tier gives and costs, and which of it is enforced."""

from __future__ import annotations

from typing import Any

from pydantic import Field, create_model

from runtime.limits import RECORDS, TIERS
from runtime.settings.section import Section


class Limits(Section, frozen=True):
    requests_per_minute: int | None = Field(
        default=None,
        ge=0,
        description="Replaces the tier's requests per minute; 0 lifts the limit.",
    )
    credits_per_month: int | None = Field(
        default=None, ge=0, description="Replaces the tier's credits per month; 0 lifts the limit."
    )
    features: bool = Field(
        default=True,
        description=(
            "Keep features to the tiers that have them; false opens all of them to every tier."
        ),
    )
    endpoint_caps: bool = Field(
        default=True, description="Apply the per-endpoint caps as well as the tier's rate."
    )
    search_per_minute: int = Field(
        default=30, ge=1, description="Endpoint cap of searches, per minute."
    )
    media_per_minute: int = Field(
        default=20,
        ge=1,
        description="Endpoint cap of media uploads, per minute.",
    )
    batch_per_minute: int = Field(
        default=30,
        ge=1,
        description="Endpoint cap of batch operations, per minute.",
    )


class _TierTerms(Section, frozen=True):
    def terms(self, tier: str) -> dict[str, Any]:
        """What a tier is called, costs (cents a month, None is custom) and gives (requests a
        minute, credits a month, bytes of stored files and how many records of each kind, -1
        unlimited).
        """
        terms = ("price_cents", "requests_per_minute", "credits", "file_bytes", *RECORDS)
        found = {term: getattr(self, f"{tier}_{term}") for term in terms}
        price = found["price_cents"]
        dollars = (
            ""
            if price is None
            else f"${price // 100}"
            if price % 100 == 0
            else f"${price / 100:.2f}"
        )
        text = "custom" if price is None else f"{dollars} / month" if price else dollars
        return {"name": tier, "display_name": TIERS[tier]["display_name"], "price": text, **found}


def _tier_settings() -> dict[str, Any]:
    described = {
        "price_cents": (
            int | None,
            0,
            "Price of the tier {name}, in cents a month; null is by agreement.",
        ),
        "requests_per_minute": (int, 0, "Requests per minute of the tier {name}; 0 is unlimited."),
        "credits": (int, -1, "Credits per month of the tier {name}; -1 is unlimited."),
        "file_bytes": (
            int,
            -1,
            "Bytes that the files of an account of the tier {name}, and the texts read out of "
            "them, may have; -1 is unlimited.",
        ),
    }
    for kind, what in RECORDS.items():
        text = f"{what} that an account of the tier {{name}} may keep; -1 is unlimited."
        described[kind] = (int, -1, text)
    return {
        f"{name}_{term}": (
            kind,
            Field(default=tier[term], ge=least, description=text.format(name=name)),
        )
        for name, tier in TIERS.items()
        for term, (kind, least, text) in described.items()
    }


# The table of tiers, each figure a setting: tiers.free_credits,
# tiers.pro_price_cents …
class Tiers(create_model("TierTerms", __base__=_TierTerms, **_tier_settings()), frozen=True):
    pass
