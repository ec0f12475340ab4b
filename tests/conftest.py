"""What all tests share: the option that rewrites transcripts, and one service on Ray for the whole session."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.served import Served, served


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-transcripts", action="store_true", help="write the answers in tests/transcripts anew")


def pytest_configure() -> None:
    # What runs in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def service_on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a Ray cluster of its own, started when the first test asks for it."""
    with served(tmp_path_factory.mktemp("on-ray") / "data", "ray", write__ready_wait_ms=30_000) as service:
        yield service
