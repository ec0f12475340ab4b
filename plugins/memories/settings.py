"""How long a write waits to be searchable: the section `write` of the settings.

Whatever is embedded as it is stored goes by it, in other plugins too.
"""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class WriteSettings(Section, frozen=True):
    follows = "reranker"

    ready_wait_ms: int = Field(
        default=1_500,
        ge=0,
        le=30_000,
        description="Milliseconds a write waits to be searchable before it answers 202.",
    )
    wait_for_index_seconds_max: int = Field(
        default=30, ge=1, le=120, description="Seconds a write with wait_for_index may wait."
    )
