"""The sections that say what each tier gives and costs, and which of it is enforced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, create_model

from runtime.limits import TIERS
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


# Of each tier: type, least value and description of what is not counted by a plugin.
CORE_TERMS: Mapping[str, tuple[Any, int, str]] = {
    "price_cents": (
        int | None,
        0,
        "Price of the tier {tier}, in cents a month; null is by agreement",
    ),
    "requests_per_minute": (int, 0, "Requests per minute of the tier {tier}; 0 is unlimited"),
    "credits": (int, -1, "Credits per month of the tier {tier}; -1 is unlimited"),
}


@dataclass(frozen=True, slots=True)
class Kept:
    """Something of which an account may keep as much as its tier has room for: records of a kind,
    or their bytes. Whoever counts it declares it, and checks before more comes in.

    name     as settings, figures and replies call it, such as `memories`: a setting
             tiers.{tier}_{name} for each tier, whose default is its room
    what     which those are, for the settings' description; `{tier}` in it is a tier's name
    room     tier -> how many; -1 is without a limit, and so is a tier that is not named
    words    what a refusal calls them; "" for their name
    way_out  what a refusal says to do
    place    where they stand among what a tier gives; of equals, the order of the plugins
    """

    name: str
    what: str
    room: Mapping[str, int]
    words: str = ""
    way_out: str = "Delete some that are not needed"
    place: int = 100


class TierTerms(Section, frozen=True):
    """What each tier gives and costs, each figure a setting: tiers.free_credits,
    tiers.pro_price_cents … The core's are in Tiers; of what plugins keep, `tiers_with` adds them.
    """

    widened = True

    def terms(self, tier: str) -> dict[str, Any]:
        """What a tier is called, costs (cents a month, None is custom) and gives (requests a
        minute, credits a month and how much of all that is kept, -1 unlimited).
        """
        own = f"{tier}_"
        found = {
            name.removeprefix(own): getattr(self, name)
            for name in type(self).model_fields
            if name.startswith(own)
        }
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

    def core(self) -> Tiers:
        """These without what plugins keep."""
        return Tiers.model_construct(**{name: getattr(self, name) for name in Tiers.model_fields})


def tiers_with(keeps: Iterable[Kept]) -> type[TierTerms]:
    """The section `tiers` with what plugins keep, for a module to derive its own from, as with
    `composed`. Of two of one name the first counts; what the core calls so stays the core's.
    """
    first: dict[str, Kept] = {}
    for kept in sorted(keeps, key=lambda kept: kept.place):
        first.setdefault(kept.name, kept)
    fields: dict[str, Any] = {}
    for tier, terms in TIERS.items():
        for term, (kind, least, text) in CORE_TERMS.items():
            described = f"{text.replace('{tier}', tier)}."
            fields[f"{tier}_{term}"] = (
                kind,
                Field(default=terms[term], ge=least, description=described),
            )
        for name, kept in first.items():
            described = f"{kept.what.replace('{tier}', tier)}; -1 is unlimited."
            room = Field(default=kept.room.get(tier, -1), ge=-1, description=described)
            fields.setdefault(f"{tier}_{name}", (int, room))
    return create_model("TiersWith", __base__=TierTerms, **fields)


class Tiers(tiers_with(()), frozen=True):
    """What the core says of each tier: its price, requests a minute and credits a month."""
