"""How sure an answer must be: the section `answers` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class AnswersSettings(Section, frozen=True):
    follows = "memory"

    confidence_min: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="query_confidence below which an answer without a model is not given.",
    )
    second_round_below: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="query_confidence below which a question is searched a second time.",
    )
