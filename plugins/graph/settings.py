"""How much of the machine reading takes: the section `graph` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class GraphSettings(Section, frozen=True):
    follows = "search"

    reading_share: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="How much of a core new memories are read with for whom they mention, while "
        "nothing else is to be done; 1 reads them at once, whatever that holds up.",
    )
