"""Connections to addresses that were looked up and judged, whatever the name behind them says by
then: what httpcore opens the requests of outbound.py with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import httpcore

from runtime.limits import OUTBOUND_ADDRESSES_TRIED_MAX, OUTBOUND_CONNECT_SECONDS_MAX


class PinnedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the given addresses, one after the other, whatever host it is asked for."""

    def __init__(self, addresses: Iterable[str]):
        self._addresses = list(addresses)[:OUTBOUND_ADDRESSES_TRIED_MAX]
        # Its types know it without a base, as it is where anyio is not installed.
        self._network = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable | None = None,
    ) -> httpcore.AsyncNetworkStream:
        for number, address in enumerate(self._addresses, 1):
            try:
                return await self._network.connect_tcp(
                    address, port, OUTBOUND_CONNECT_SECONDS_MAX, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(self._addresses):
                    raise
        raise httpcore.ConnectError("no address")
