"""What all tests share: options, which tests run and on which worker, fixed or random examples, and
one service on Ray a session.
"""

from __future__ import annotations

import gc
import random
import signal
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from plugins.collections import limits
from plugins.graph import unread
from plugins.profile import store
from runtime.serve import free_port
from storage.indexes import byte_products
from tests.support.collector import Collector, collector
from tests.support.first_answers import FirstAnswers, first_answers
from tests.support.served import Served, served

YOUNG_OBJECTS_MAX = 10_000  # before the garbage collector looks at them

# The same examples in every run; with --long others in each, which the report of a failure tells
# how to repeat.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("random", deadline=None, database=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write the answers in tests/transcripts anew",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="only tests marked long, and those with random examples or a seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What runs in the background ignores Ctrl-C, and so would every process that a test starts and
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("random" if config.getoption("--long") else "fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays, so nobody looks for garbage in it: else a fifth of the time that it
    takes, and a twentieth of the tests' own, went into that.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    # What is compiled for some instructions can be tested only where the processor has them.
    return (collection_path.name == "test_kernels.py" and byte_products() is None) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is long, or what is not; and hand tests out in groups, of which each runs on
    one worker.

    A module is a group, so that its fixtures are made once, and all tests on Ray are one, since a
    cluster has a machine to itself: the one that many share starts when the others are over, since
    every Ray of a machine wants the same port for its dashboard's agent. The groups that take
    longest are begun first: no worker is left alone with one of them at the end.
    """
    asked = [
        item
        for item in items
        if (_gains_from_chance(item) if config.getoption("--long") else not _is_long(item))
    ]
    chosen = set(asked)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    slow = {item.path for item in asked if item.get_closest_marker("slow")}
    for item in asked:
        module = item.nodeid.partition(".py::")[0].removeprefix("tests/")
        group = "ray" if item.get_closest_marker("ray") else module
        item.add_marker(pytest.mark.xdist_group(group))
    items[:] = sorted(
        asked,
        key=lambda item: (
            item.get_closest_marker("ray") is None,
            "service_on_ray" in item.fixturenames,
            item.path not in slow,
        ),
    )


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def _gains_from_chance(item: pytest.Item) -> bool:
    """It is long, or does something else each time where it may."""
    return (
        _is_long(item)
        or "seed" in item.fixturenames
        or getattr(item.obj, "is_hypothesis_test", False)
    )


@pytest.fixture
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put off so that it happens once for many changes happens soon: for tests that wait
    until all jobs are done.
    """
    monkeypatch.setattr(limits, "MEMBERSHIP_EVENTS_INTERVAL_MS", 20)
    monkeypatch.setattr(unread, "READING_DELAY_MS", 5)
    monkeypatch.setattr(store, "PROFILE_REFRESH_DELAY_MS", 5)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What a test draws its random numbers from: the same in every run, with --long another one in
    each.
    """
    seed = (
        random.getrandbits(32)
        if request.config.getoption("--long")
        else zlib.crc32(request.node.name.encode())
    )
    print(f"seed {seed}")
    return seed


@pytest.fixture(scope="session")
def traces() -> Iterator[Collector]:
    """Where the session's services send the traces that a request asks them to record."""
    with collector() as running:
        yield running


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory: pytest.TempPathFactory, traces: Collector) -> Iterator[Served]:
    """A service in a process of its own, with the usual settings, for all tests of this worker that
    leave it running.

    Each takes an account of its own, since accounts are apart: `register()`.
    """
    data_dir = tmp_path_factory.mktemp("shared") / "data"
    with served(data_dir, variables=traces.variables) as service:
        yield service
        assert "Traceback" not in service.errors, service.errors


@pytest.fixture(scope="session")
def service(shared_service: Served) -> Served:
    """In modules that have no `service` of their own."""
    return shared_service


@pytest.fixture(scope="session")
def first_answers_on_ray() -> FirstAnswers:
    """What clients of service_on_ray were told while it started."""
    return FirstAnswers()


@pytest.fixture(scope="session")
def service_on_ray(
    tmp_path_factory: pytest.TempPathFactory, traces: Collector, first_answers_on_ray: FirstAnswers
) -> Iterator[Served]:
    """A service on a Ray cluster of its own, started when the first test asks for it."""
    data_dir = tmp_path_factory.mktemp("on-ray") / "data"
    port = free_port("127.0.0.1")
    settings = {
        "write__ready_wait_ms": 30_000,
        "log__level": "info",
        "http__cors_origins": "https://app.example",
    }
    asking = first_answers(port, first_answers_on_ray)
    with asking, served(data_dir, "ray", traces.variables, port, **settings) as service:
        first_answers_on_ray.wait()  # before a test kills a part of it
        yield service
