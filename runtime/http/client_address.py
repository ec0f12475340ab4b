"""Where a request comes from: the caller's address, and whether it came over HTTPS.

Behind a proxy both are in X-Forwarded-* headers, which anybody can write: they count only when a
trusted proxy sent them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from runtime.errors import BadRequest
from runtime.settings import Settings

_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_CLIENT_CHARS_MAX = 64
_ADDRESSES_REMEMBERED = 1024


class Callers:
    """One installation's rules: `http.trusted_proxies` and `http.require_https`."""

    def __init__(self, settings: Settings):
        self._require_https = settings.http.require_https
        networks = tuple(
            ipaddress.ip_network(text, strict=False) for text in settings.http.trusted_proxies
        )
        self._trusts = (
            lru_cache(_ADDRESSES_REMEMBERED)(lambda address: _is_within(address, networks))
            if networks
            else None
        )

    def of(
        self,
        scope: MutableMapping[str, Any],
        headers: Mapping[bytes, bytes],
        *,
        loopback_may_be_plain: bool = False,
    ) -> tuple[str, bool]:
        """(the caller's address, whether it came over HTTPS). Raises BadRequest where HTTPS is
        required and missing.
        """
        client = peer = _peer(scope)
        secure = self.came_securely(scope, headers)
        if self._trusts is not None and self._trusts(peer):
            # Each proxy appends the address it saw: the last one that is none of ours is the
            # caller.
            for address in reversed(
                headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
            ):
                client = address.strip()[:_CLIENT_CHARS_MAX] or client
                if not self._trusts(client):
                    break
        if (
            self._require_https
            and not secure
            and not (loopback_may_be_plain and _is_within(peer, _LOOPBACK))
        ):
            raise BadRequest("This service answers over HTTPS only." + _exposed(headers))
        return client, secure

    def came_securely(
        self, scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]
    ) -> bool:
        """Whether a request came over HTTPS, to here or to a proxy that is trusted."""
        if self._trusts is not None and self._trusts(_peer(scope)):
            protocol = headers.get(b"x-forwarded-proto")
            if protocol is not None:
                return protocol.rpartition(b",")[2].strip().lower() == b"https"
        return scope["scheme"] == "https"


def _peer(scope: MutableMapping[str, Any]) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _exposed(headers: Mapping[bytes, bytes]) -> str:
    """What to do about a secret that has already crossed the network for everybody to read."""
    if b"authorization" not in headers:
        return ""
    return " The credential that came along could be read on its way: revoke it and make another."


def _is_within(
    address: str, networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)
