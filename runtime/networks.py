"""Which addresses are one caller, wherever something is counted by address."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from runtime.limits import KEYS_READ_MAX

_IPV6_PREFIX = 64  # what one subscriber is given


@lru_cache(KEYS_READ_MAX)
def network_of(address: str) -> str:
    """The address itself, or the /64 of an IPv6 one. What is no address stays as it is."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
    return address
