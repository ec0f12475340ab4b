"""How an import takes in what an export holds: Origin and Restore, which a plugin declares by the
kinds of its records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from runtime.api.context import WriteContext


@dataclass(frozen=True, slots=True)
class Origin:
    """Where imported records come from.

    renamed  what an id of the export is called in the importing account
    is_own   whether this installation has made the export, and nobody changed it since. Of any
             other nobody knows whether what it says of times, versions and actors is so
    """

    renamed: Callable[[str], str]
    is_own: bool


@dataclass(frozen=True, slots=True)
class Restore:
    """How an import takes in one kind of exported record.

    model     what a record must be; fields it does not have are ignored
    function  (ctx: WriteContext, records, origin: Origin) -> how many were new
    takes     (ctx, record) -> whether it is taken in, and not counted as skipped; else all are
    """

    model: type[BaseModel]
    function: Callable[[WriteContext, list[Any], Origin], int]
    takes: Callable[[WriteContext, Any], bool] | None = None
