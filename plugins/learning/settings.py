"""What decisions explore and what errors cost: the section `learning` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class LearningSettings(Section, frozen=True):
    follows = "memory"

    exploration_rate: float = Field(
        default=0.1,
        ge=0,
        le=0.2,
        description="Share of decisions drawn evenly, where the request names none.",
    )
    cost_ask: float = Field(default=1.0, gt=0, description="Cost of asking a person, in any unit.")
    cost_wrong: float = Field(
        default=5.0,
        gt=0,
        description=(
            "Cost of acting wrongly, in the same unit; advice is to act above 1 - ask / wrong."
        ),
    )
