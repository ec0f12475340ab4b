"""An account outside the model, which asks for every operation there is, with the body of its own
example.

Nobody foretells its answers; none may be a fault, and whatever it has set going must survive every
crash with all checks kept. So each plugin takes part in the simulation from the day it is enabled,
and gets a model of its own where more can be said.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from runtime.api.operation import Kind, Operation
from runtime.api.plugin import Registry
from tests.support.shard_harness import Answer

EMAIL = "guest@example.com"
_ID = re.compile(r"([a-z]{3})_[0-9a-hjkmnp-tv-z]{32}")
_PARAMETER = re.compile(r"{(\w+)}")
IDS_KEPT = 12
# It would end the client's own session, or leave it without an account.
LEFT_OUT = ("auth.logout",)


class ExampleClient:
    """Draws the requests of a client that knows only the examples, and remembers the ids in
    answers.
    """

    def __init__(self, chance: random.Random, registry: Registry):
        self._chance = chance
        self.operations = [
            operation for operation in registry.operations.values() if self._is_asked(operation)
        ]
        self._ids: dict[str, list[str]] = defaultdict(list)

    @staticmethod
    def _is_asked(operation: Operation) -> bool:
        outside = operation.scope == "public" or operation.internal or operation.kind is Kind.FLOW
        # What needs a file, a query or a name of the caller's choice has no example that would do.
        asks = operation.query is not None and any(
            field.is_required() for field in operation.query.model_fields.values()
        )
        return not (
            outside
            or asks
            or operation.upload
            or "{key}" in operation.path
            or operation.name in LEFT_OUT
        )

    def draw(self) -> tuple[Operation, Any, dict[str, str]]:
        """(operation, body, path parameters) of the next request; changes are asked for more often
        than looks.
        """
        weights = [4 if operation.kind is Kind.WRITE else 1 for operation in self.operations]
        (operation,) = self._chance.choices(self.operations, weights)
        path = {name: self._some_id(operation) for name in _PARAMETER.findall(operation.path)}
        return operation, self._filled(operation.example), path

    def remember(self, answer: Answer) -> None:
        """Keep the ids of a success for later requests."""
        if answer.status < 300:
            for found in _ID.finditer(repr(answer.body)):
                known = self._ids[found[1]]
                if found[0] not in known:
                    known.append(found[0])
                    del known[:-IDS_KEPT]

    def _some_id(self, operation: Operation) -> str:
        """Mostly of what the operation is about, as its example shows, sometimes of anything."""
        shown = _ID.search(repr(operation.example_reply))
        known = self._ids.get(shown[1] if shown and self._chance.random() < 0.9 else "mem") or [
            "mem_nowhere"
        ]
        return self._chance.choice(known)

    def _filled(self, example: Any) -> Any:
        """The example, with ids of the client's own where it has some of that kind."""
        if isinstance(example, Mapping):
            return {name: self._filled(value) for name, value in example.items()}
        if isinstance(example, list):
            return [self._filled(value) for value in example]
        if isinstance(example, str) and (found := _ID.fullmatch(example)):
            return self._chance.choice(self._ids.get(found[1]) or [example])
        return example


def is_sound(answer: Answer) -> bool:
    """Any answer but a fault; 503 says that a model this simulation does not have is missing."""
    return answer.status < 500 or answer.status == 503
