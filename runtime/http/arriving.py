"""Room for bodies that are still arriving: of one gateway together, and shared among callers.

Whoever sends much and slowly fills the room, credential or none. So where it is full, the newcomer
is not refused before whoever holds the most: the address or the account (its slot stands for it)
that holds more than the newcomer's gives up its largest body, of equal ones the oldest. Where the
newcomer holds the most itself, it is refused.

A network of IPv6 addresses that one caller is given (/64) counts as one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from functools import lru_cache

from runtime.errors import OVERLOADED_HEADER, Unavailable
from runtime.limits import BODIES_ARRIVING_BYTES_MAX, KEYS_READ_MAX

_IPV6_PREFIX = 64


class Arrival:
    """One body that arrives. slot: of the account that sends it; None while nobody knows."""

    __slots__ = ("address", "refused", "size", "slot", "waiting")

    def __init__(self, address: str, slot: int | None):
        self.address, self.slot = _network(address), slot
        self.size = 0
        self.refused = False
        self.waiting: asyncio.Timeout | None = None  # for its next piece

    def refuse(self) -> None:
        """Have its reader give it up."""
        self.refused = True
        if self.waiting is not None:
            self.waiting.reschedule(0)


class Arriving:
    """The bodies of all requests together. size: bytes of them that are held."""

    def __init__(self) -> None:
        self.size = 0
        self._arrivals: dict[Arrival, None] = {}  # the oldest first

    def begin(self, arrival: Arrival) -> None:
        self._arrivals[arrival] = None

    def end(self, arrival: Arrival) -> None:
        """Give its room back. May be done twice."""
        if arrival in self._arrivals:
            del self._arrivals[arrival]
            self.size -= arrival.size

    def grow(self, arrival: Arrival, count: int) -> None:
        """Count bytes that came. Raises Unavailable where the body must be given up."""
        if arrival.refused:
            raise refused()
        arrival.size += count
        self.size += count
        while self.size > BODIES_ARRIVING_BYTES_MAX:
            given_up = self._largest_holder_s(arrival)
            if given_up is arrival:
                raise refused()
            given_up.refuse()
            self.end(given_up)

    def make_room(self, address: str) -> bool:
        """Give up a body that waits for its next piece, of the address that has the most of them,
        where the given one has fewer; -> whether there was one.
        """
        waiting = [arrival for arrival in self._arrivals if arrival.waiting is not None]
        counts = Counter(arrival.address for arrival in waiting)
        most = max(counts, key=counts.__getitem__, default="")
        if counts[most] <= counts[_network(address)] + 1:
            return False
        given_up = next(arrival for arrival in waiting if arrival.address == most)
        given_up.refuse()
        self.end(given_up)
        return True

    def _largest_holder_s(self, newcomer: Arrival) -> Arrival:
        """Whose body gives way to the newcomer's: the newcomer's own where nobody holds more."""
        addresses, slots, within = Counter[str](), Counter[int](), Counter[tuple]()
        for arrival in self._arrivals:
            addresses[arrival.address] += arrival.size
            within[arrival.address, arrival.slot] += arrival.size
            if arrival.slot is not None:
                slots[arrival.slot] += arrival.size

        def held(arrival: Arrival) -> tuple[int, int]:
            by_address = addresses[arrival.address]
            by_account = 0 if arrival.slot is None else slots[arrival.slot]
            # Behind one proxy all have one address; then the accounts tell them apart.
            return max(by_address, by_account), within[arrival.address, arrival.slot]

        most = max(map(held, self._arrivals))
        if most <= held(newcomer):
            return newcomer
        largest = (arrival for arrival in self._arrivals if held(arrival) == most)
        return max(largest, key=lambda arrival: arrival.size)


def refused() -> Unavailable:
    return Unavailable(
        "More is being sent at once than the service can hold. Retry in a moment.",
        headers={OVERLOADED_HEADER: "1"},
    )


@lru_cache(KEYS_READ_MAX)
def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return address
