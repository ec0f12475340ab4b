"""Whether the compatible endpoints answer: the section `dropin` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class Mem0Settings(Section, frozen=True):
    follows = "jobs"

    enabled: bool = Field(
        default=False,
        description=(
            "Answer clients of the mem0 API, which send `Authorization: Token`, in their own "
            "shapes."
        ),
    )
