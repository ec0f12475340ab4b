"""Ports that are opened a while after they were chosen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runtime.serve import StartError, free_port, listening

GIVEN_BY_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_port_for_later_is_none_that_the_system_gives_away() -> None:
    """Else a client, or another process that asks for any port, may have it by then."""
    first, last = map(int, GIVEN_BY_THE_SYSTEM.read_text().split())
    chosen = {free_port("127.0.0.1") for _ in range(50)}
    assert len(chosen) > 1 and not any(first <= port <= last for port in chosen)


def test_a_port_that_somebody_has_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port("127.0.0.1")
    monkeypatch.setattr(listening, "FREE_PORTS", range(port, port + 1))
    with socket.create_server(("127.0.0.1", port)), pytest.raises(StartError, match=f"{port}"):
        free_port("127.0.0.1")
