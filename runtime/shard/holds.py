"""The idempotency keys that calls hold in a shard's memory while they run.

A write holds its key until it is answered. A flow holds its own from its beginning to its end,
which are two calls, as long as its gateway says every FLOW_KEPT_SECONDS that it is under way: one
that is gone says nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from runtime.limits import FLOW_KEPT_SECONDS
from runtime.shard import idempotency

Held = tuple[int, int, bytes]


@dataclass(slots=True)
class _Hold:
    owner: bytes
    until: float


class Holds:
    """Keys that are held. Times are monotonic seconds; a flow is named by its call's seed."""

    def __init__(self) -> None:
        self._running: dict[Held, bytes] = {}  # held -> fingerprint
        self._flows: dict[Held, _Hold] = {}

    def take(self, held: Held, fingerprint: bytes, owner: bytes | None) -> bytes | None:
        """Hold a key, for a flow where there is an owner; -> the flow that held it, whose gateway
        is gone. Raises Conflict while somebody else holds it.
        """
        hold, gone = self._flows.get(held), None
        if hold is not None and hold.until <= time.monotonic():
            gone = hold.owner
            self.give_back(gone)
        running = self._running.get(held)
        if running is not None:
            raise (
                idempotency.still_running()
                if running == fingerprint
                else idempotency.different_request()
            )
        self._running[held] = fingerprint
        if owner is not None:
            self._flows[held] = _Hold(owner, time.monotonic() + FLOW_KEPT_SECONDS)
        return gone

    def keep(self, owner: bytes) -> None:
        """Hold the keys of a flow on: its gateway says that it is under way."""
        for hold in self._flows.values():
            if hold.owner == owner:
                hold.until = time.monotonic() + FLOW_KEPT_SECONDS

    def release(self, held: Held) -> None:
        """Let others have the key."""
        self._running.pop(held, None)
        self._flows.pop(held, None)

    def may_end(self, held: Held, owner: bytes) -> bool:
        """Whether nobody took the key over from this flow."""
        hold = self._flows.get(held)
        return hold is None or hold.owner == owner

    def give_back(self, owner: bytes) -> None:
        """Release the keys of a flow."""
        for held in [held for held, hold in self._flows.items() if hold.owner == owner]:
            self.release(held)
