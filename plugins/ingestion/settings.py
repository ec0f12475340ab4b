"""What smart ingestion keeps: the section `ingestion` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class IngestionSettings(Section, frozen=True):
    follows = "write"

    salience_min: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="Salience, 0 to 1, from which smart ingestion keeps a turn of a conversation; "
        "at 0 it keeps every one.",
    )
