"""Reading what another program pickled without running anything of it.

Qdrant's local mode keeps each point as a pickle. A pickle names classes and calls them, so one from
elsewhere could do anything; here every class it names becomes an inert object that keeps the state
it is given, and a name outside ALLOWED ends the reading.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

ALLOWED = ("qdrant_client.", "uuid.UUID", "numpy.", "enum.")
POINT_BYTES_MAX = 64 * 1024**2


class Inert:
    """What stands for an object of another program: its state, and nothing that acts."""

    state: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *_: Any, **__: Any) -> None:
        """Whatever it is made with is let go."""

    def __setstate__(self, state: Any) -> None:
        # Pydantic's models keep their fields one level down.
        inner = state.get("__dict__", state) if isinstance(state, dict) else {}
        self.state = inner if isinstance(inner, dict) else {}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if not f"{module}.{name}".startswith(ALLOWED):
            raise pickle.UnpicklingError(f"{module}.{name} is not read")
        return type("Inert", (Inert,), {})


def unpickled(data: bytes) -> Any:
    """What was pickled, with inert objects. Raises ValueError."""
    if len(data) > POINT_BYTES_MAX:
        raise ValueError("a point is too large")
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as broken:
        raise ValueError(f"a point cannot be read: {broken}") from broken
