"""The receivers of a simulation: they write down what reaches them, fail now and then, and may see
the sender die.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from runtime.outbound import Outbound, OutboundAnswer
from runtime.signatures import verify

if TYPE_CHECKING:
    from tests.simulation.world import World

FAILURES_MAX = 3  # of one delivery: fewer than its attempts, so that every one arrives in the end


class RecordingReceivers(Outbound):
    """heard: URL -> bodies by idempotency_key. A key that comes with another body is a mistake,
    unless it has less of a text that was deleted since, and so is a false signature.

    willing  they fail no more
    """

    def __init__(self, world: World, chance: random.Random):
        super().__init__()
        self._world, self._chance = world, chance
        self._failures: Counter[str] = Counter()
        self.willing = False
        self.secrets: dict[str, str] = {}
        self.heard: dict[str, dict[str, bytes]] = defaultdict(dict)

    async def check(self, url: str, seconds: float, account: Hashable = None) -> None:
        """Whatever it is, it may be asked."""

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float,
        account: Hashable = None,
    ) -> OutboundAnswer:
        if self._world.armed == "embedding":
            self._world.die()
        verify(body, headers, self.secrets[url], self._world.now_ms / 1000)
        event = json.loads(body)
        key = event["idempotency_key"]
        first = self.heard[url].setdefault(key, body)
        if body != first:
            earlier = json.loads(first)
            assert earlier | {"data": earlier["data"] | {"content": ""}} == event, (
                f"another body under {key}"
            )
        if not self.willing and self._failures[key] < FAILURES_MAX and self._chance.random() < 0.3:
            self._failures[key] += 1
            return OutboundAnswer("5xx", 1, 500)
        return OutboundAnswer("2xx", 1, 200)

    def events(self, url: str) -> list[dict[str, Any]]:
        """What has been heard, each delivery once."""
        return [json.loads(body) for body in self.heard[url].values()]
