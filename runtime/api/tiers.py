"""What an account's tier gives it: credits a month, room for records, and features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.errors import FeatureNotAvailable, PermissionDenied
from runtime.limits import TIERS
from runtime.settings import Kept, Settings


@dataclass(frozen=True, slots=True)
class Feature:
    """What only some tiers may use: what to call it, and the lowest tier that has it."""

    name: str
    tier: str


@dataclass(frozen=True, slots=True)
class Offer:
    """The tier of a new account, and where customers find the other tiers: None for the pages of
    this service.
    """

    default_tier: str = "free"
    upgrade_url: str | None = None
    pricing_url: str | None = None


NO_OFFER = Offer()
_RANK = {name: rank for rank, name in enumerate(TIERS)}


def credits_limit(settings: Settings, tier: str) -> int | None:
    """Credits a month that a tier has here, None for unlimited."""
    override = settings.limits.credits_per_month
    if override is not None:
        return override or None
    credits = getattr(settings.tiers, f"{tier}_credits")
    return None if credits < 0 else credits


def records_limit(settings: Settings, tier: str, kind: Kept) -> int | None:
    """How many of a kind of records, or of their bytes, an account of a tier may keep here, None
    for unlimited.
    """
    limit = getattr(settings.tiers, f"{tier}_{kind.name}")
    return None if limit < 0 else limit


def check_room(settings: Settings, tier: str, kind: Kept, there: int, more: int = 1) -> None:
    """Check, in the transaction that brings them, that the account's tier has room for `more`
    records beside those that are there. Raises PermissionDenied.
    """
    limit = records_limit(settings, tier, kind)
    if limit is not None and there + more > limit:
        name = settings.tiers.terms(tier)["display_name"]
        raise PermissionDenied(
            f"The tier {name} keeps {limit:,} {kind.words or kind.name}; {there:,} are there, and "
            f"this would add {more:,}. {kind.way_out}, or upgrade.",
            code="quota_exceeded",
        )


def has_feature(settings: Settings, tier: str, feature: Feature) -> bool:
    """Whether the tier has the feature, or features are not asked for here."""
    return not settings.limits.features or _RANK[tier] >= _RANK[feature.tier]


def require_feature(
    settings: Settings, tier: str, key: str, feature: Feature, offer: Offer = NO_OFFER
) -> None:
    """Check that the tier has the feature, which operations name by this key. Raises
    FeatureNotAvailable, whose body is flat.
    """
    if has_feature(settings, tier, feature):
        return
    current, required = settings.tiers.terms(tier), settings.tiers.terms(feature.tier)
    raise FeatureNotAvailable(
        {
            "error": "feature_not_available",
            "feature": key,
            "feature_name": feature.name,
            "message": (
                f"{feature.name}: this takes the tier {required['display_name']}, and the "
                f"account has {current['display_name']}."
            ),
            "current_tier": {"name": tier, "display_name": current["display_name"]},
            "required_tier": {name: required[name] for name in ("name", "display_name", "price")}
            | {"credits": _credits_text(required)},
            "upgrade_url": offer.upgrade_url or f"{settings.http.base_url}/dashboard/billing",
            "pricing_url": offer.pricing_url or f"{settings.http.base_url}/v1/billing/tiers",
        }
    )


def _credits_text(terms: dict[str, Any]) -> str:
    return "unlimited" if terms["credits"] < 0 else f"{terms['credits']:,} / month"
