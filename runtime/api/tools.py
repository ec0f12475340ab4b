"""Tool: what a plugin lets agents do, as data: an operation with a name for agents and a choice
of its fields.

A tool adds nothing to its operation. Whoever speaks a protocol for agents takes the tools of all
plugins from the Registry, cuts their schemas from the operations' models and turns calls into
requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    operation    name of the operation it calls
    fields       which fields of the operation's body or query it takes
    required     those that it needs beside the ones its operation needs
    id_argument  what it calls the id in the operation's path
    given        fields it sets unless the agent does
    headers      headers it sends along
    destructive  whether it may overwrite or remove what was there
    repeatable   whether doing it again changes nothing more
    place        where it stands in the list that agents see; of equals, the order of the plugins
    """

    name: str
    operation: str
    description: str
    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    id_argument: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    destructive: bool = False
    repeatable: bool = False
    place: int = 100
