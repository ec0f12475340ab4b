"""Room for bodies that are still arriving: of one gateway together, and shared among callers.

Whoever sends much and slowly fills the room, credential or none. So where it is full, the newcomer
is not refused before whoever holds the most: the address or the account (its slot stands for it)
that holds more than the newcomer's gives up its largest body, of equal ones the oldest. Where the
newcomer holds the most itself, it is refused.

A network of IPv6 addresses that one caller is given (/64) counts as one address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable

from runtime.errors import OVERLOADED_HEADER, Unavailable
from runtime.limits import BODIES_ARRIVING_BYTES_MAX
from runtime.networks import network_of


class Arrival:
    """One body that arrives. slot: of the account that sends it; None while nobody knows."""

    __slots__ = ("address", "refused", "size", "slot", "waiting")

    def __init__(self, address: str, slot: int | None):
        self.address, self.slot = network_of(address), slot
        self.size = 0
        self.refused = False
        self.waiting: asyncio.Timeout | None = None  # for its next piece

    def refuse(self) -> None:
        """Have its reader give it up."""
        self.refused = True
        if self.waiting is not None and not self.waiting.expired():
            self.waiting.reschedule(0)


class Arriving:
    """The bodies of all requests together. size: bytes of them that are held."""

    def __init__(self) -> None:
        self.size = 0
        self._arrivals: dict[Arrival, None] = {}  # the oldest first
        # What is held, and how many bodies there are, as running totals.
        self._of_address, self._of_slot, self._within = _Totals(), _Totals(), _Totals()
        self._bodies = _Totals()  # by address

    def begin(self, arrival: Arrival) -> None:
        self._arrivals[arrival] = None
        self._bodies.add(arrival.address, 1)

    def end(self, arrival: Arrival) -> None:
        """Give its room back. May be done twice."""
        if arrival in self._arrivals:
            del self._arrivals[arrival]
            self._bodies.add(arrival.address, -1)
            self._hold(arrival, -arrival.size)

    def grow(self, arrival: Arrival, count: int) -> None:
        """Count bytes that came. Raises Unavailable where the body must be given up."""
        if arrival.refused:
            raise refused()
        arrival.size += count
        self._hold(arrival, count)
        while self.size > BODIES_ARRIVING_BYTES_MAX:
            given_up = self._largest_holder_s(arrival)
            if given_up is arrival:
                raise refused()
            given_up.refuse()
            self.end(given_up)

    def make_room(self, address: str) -> bool:
        """Give up a body that waits for its next piece, of an address that has the most bodies,
        where the given one has fewer: the newest of them; -> whether there was one.
        """
        most = max(self._bodies.values(), default=0)
        if most <= self._bodies[network_of(address)] + 1:
            return False
        for arrival in reversed(self._arrivals):
            if self._bodies[arrival.address] == most and arrival.waiting is not None:
                arrival.refuse()
                self.end(arrival)
                return True
        return False

    def _hold(self, arrival: Arrival, count: int) -> None:
        """Count so many bytes more, or fewer, for whoever sends them."""
        self.size += count
        self._of_address.add(arrival.address, count)
        self._within.add((arrival.address, arrival.slot), count)
        if arrival.slot is not None:
            self._of_slot.add(arrival.slot, count)

    def _held(self, arrival: Arrival) -> tuple[int, int]:
        """What its sender holds, to compare. Behind one proxy all have one address; then the
        accounts tell them apart.
        """
        by_account = 0 if arrival.slot is None else self._of_slot[arrival.slot]
        within = self._within[arrival.address, arrival.slot]
        return max(self._of_address[arrival.address], by_account), within

    def _largest_holder_s(self, newcomer: Arrival) -> Arrival:
        """Whose body gives way to the newcomer's: the newcomer's own where nobody holds more."""
        most = max(map(self._held, self._arrivals))
        if most <= self._held(newcomer):
            return newcomer
        largest = (arrival for arrival in self._arrivals if self._held(arrival) == most)
        return max(largest, key=lambda arrival: arrival.size)


class _Totals(Counter):
    """Sums by what they are of; without those that came to nothing."""

    def add(self, key: Hashable, count: int) -> None:
        total = self[key] + count
        if total:
            self[key] = total
        else:
            self.pop(key, None)


def refused() -> Unavailable:
    return Unavailable(
        "More is being sent at once than the service can hold. Retry in a moment.",
        headers={OVERLOADED_HEADER: "1"},
    )
