"""What every section of the settings is: frozen, closed, and silent about the values it refuses."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict


class Section(BaseModel, frozen=True):
    """A group of settings that concern one thing. A plugin declares a section under the name that
    users write, and reads it by its type: `SearchSettings.of(ctx.settings).candidates`.

    follows  the core's section behind which a plugin's is listed; None for the end of the list
    widened  whether plugins add settings of theirs to it
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    follows: ClassVar[str | None] = None
    widened: ClassVar[bool] = False

    @classmethod
    def of(cls, settings: Section) -> Self:
        """This section of the settings. LookupError when they were composed without it."""
        return getattr(settings, _name_in(type(settings), cls))


@cache
def _name_in(settings: type[Section], section: type[Section]) -> str:
    for name, field in settings.model_fields.items():
        if field.annotation is section:
            return name
    raise LookupError(f"{settings.__module__}.Settings has no section {section.__name__}")
