"""The variables of OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import Iterable


def variable(name: str) -> str:
    """What it says, "" where it is not there."""
    return os.environ.get(name, "").strip()


def number(names: Iterable[str], default: float) -> float:
    """What the first one says that is there; `default` where none is, or it says no number."""
    said = next(filter(None, map(variable, names)), "")
    try:
        return float(said) if said else default
    except ValueError:
        return default
