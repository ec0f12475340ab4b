"""An owner answers while it can know that it is one, in both modes: cut off from the object store,
stopped, overtaken, woken; and a taker waits for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.replication import shipper
from storage.replication.lease import CLOCK_RATES
from tests.support.cut_off import LEASE_SECONDS, Link, node, taken_over
from tests.support.in_process import InProcess
from tests.support.leases import LeaseTime, leaping

BOTH = pytest.mark.parametrize("mode", ["local", "replicated"])
PATIENT = {"durability__wait_seconds_max": 60}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr(Link, "is_cut", False)


@pytest.fixture
def clock() -> Iterator[LeaseTime]:
    with leaping() as found:
        yield found


def write(service: InProcess, who: str, text: str = "Tea is ready.") -> int:
    return service.request("POST", "/v1/memories/raw", {"content": text}, who=who).status_code


def read(service: InProcess, who: str, path: str = "/v1/memories") -> int:
    return service.request("GET", path, who=who).status_code


def search(service: InProcess, who: str) -> int:
    return service.request("POST", "/v1/search", {"query": "tea"}, who=who).status_code


def log_in(service: InProcess) -> int:
    body = {"email": "ada@example.org", "password": "a wrong horse battery staple"}
    return service.request("POST", "/v1/auth/login", body).status_code


def answers(service: InProcess, who: str) -> set[int]:
    """What a write, a repeat, reads of what is there and of what is not, and a refusal get."""
    return {
        write(service, who),
        read(service, who),
        read(service, who, "/v1/memories/mem_0000000000000000000000"),
        search(service, who),
        log_in(service),
    }


@BOTH
def test_an_owner_that_is_stopped_and_woken_after_a_take_over_answers_nothing(
    tmp_path: Path, clock: LeaseTime, mode: str
) -> None:
    objects = tmp_path / "objects"
    with node(tmp_path / "first", objects, mode) as first:
        who = first.register("ada@example.org")
        assert write(first, who) in (201, 202)
        first.until(lambda: first.log()["unshipped_records"] == 0)
        Link.is_cut = True  # nothing of it runs, so nothing of it is heard
        with taken_over(first, objects, tmp_path / "second", waits=True, **PATIENT) as second:
            (rested,) = clock.rested
            assert LEASE_SECONDS < rested <= LEASE_SECONDS * (1 + CLOCK_RATES)
            assert write(second, who, "Milk comes first.") in (201, 202)
            # It is cut off still, so nobody has told it.
            assert not first.shard.parts.durability.fenced
            assert answers(first, who) == {503}
            Link.is_cut = False
            first.until(lambda: first.shard.parts.durability.fenced)
            assert answers(first, who) == {503}
            assert answers(second, who) <= {200, 201, 202, 401, 404}


@BOTH
def test_an_owner_that_is_cut_off_answers_for_as_long_as_its_lease_and_again_when_it_is_back(
    tmp_path: Path, clock: LeaseTime, mode: str
) -> None:
    with node(tmp_path / "first", tmp_path / "objects", mode) as first:
        who = first.register("ada@example.org")
        Link.is_cut = True
        assert read(first, who) == 200
        assert write(first, who) in ((201, 202) if mode == "local" else (503,))
        clock.leap(LEASE_SECONDS)
        assert answers(first, who) == {503}
        health = first.request("GET", "/v1/health")
        assert health.status_code == 503
        assert health.json()["checks"] == {"shards": "0 of 1 are open; without a lease: 0"}
        assert first.log()["leased"] is False
        assert first.log()["unconfirmed_seconds"] >= LEASE_SECONDS
        Link.is_cut = False
        first.until(lambda: first.log()["leased"])
        first.until(lambda: first.log()["failing_seconds"] == 0)
        assert read(first, who) == 200 and first.log()["unconfirmed_seconds"] < LEASE_SECONDS
        assert first.request("GET", "/v1/health").json()["checks"] == {"shards": "ok"}


@pytest.mark.parametrize("is_left", ["nothing", "an empty directory"])
@BOTH
def test_an_object_store_that_went_away_confirms_no_lease_and_keeps_no_write(
    tmp_path: Path, clock: LeaseTime, mode: str, is_left: str
) -> None:
    """Its disk is not mounted any more; the place where it was may be there."""
    objects, away = tmp_path / "objects", tmp_path / "away"
    with node(tmp_path / "first", objects, mode) as first:
        who = first.register("ada@example.org")
        assert write(first, who) in (201, 202)
        first.until(lambda: first.log()["unshipped_records"] == 0)
        objects.rename(away)
        if is_left != "nothing":
            objects.mkdir()
        assert write(first, who) in ((201, 202) if mode == "local" else (503,))
        clock.leap(LEASE_SECONDS)
        assert answers(first, who) == {503}
        assert first.log()["unconfirmed_seconds"] >= LEASE_SECONDS
        assert not list(tmp_path.glob("objects/*/shards/*/segments"))
        if is_left != "nothing":
            shutil.rmtree(objects)
        away.rename(objects)
        first.until(lambda: first.log()["leased"] and first.log()["failing_seconds"] == 0)
        first.until(lambda: first.log()["unshipped_records"] == 0)
        assert read(first, who) == 200 and write(first, who) in (201, 202)


def test_a_reply_that_was_ready_before_the_lease_ended_is_not_given_after(
    tmp_path: Path, clock: LeaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node(tmp_path / "first", tmp_path / "objects", "local") as first:
        who = first.register("ada@example.org")
        at_once = first.shard.reads.at_once

        def late(*given: Any) -> Any:
            """The machine is stopped when the reply is ready."""
            reply = at_once(*given)
            Link.is_cut = True
            clock.leap(LEASE_SECONDS)
            return reply

        monkeypatch.setattr(first.shard.reads, "at_once", late)
        assert read(first, who) == 503
        Link.is_cut = False


def test_a_write_waits_for_a_lease_that_ended_under_it(
    tmp_path: Path, clock: LeaseTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node(tmp_path / "first", tmp_path / "objects", "local", **PATIENT) as first:
        who = first.register("ada@example.org")
        feed = first.shard.parts.writer.feed

        def late(committed: Any) -> None:
            feed(committed)
            clock.leap(LEASE_SECONDS)

        monkeypatch.setattr(first.shard.parts.writer, "feed", late)
        assert write(first, who) in (201, 202)


def test_what_may_be_lost_in_an_outage_is_acknowledged_where_that_is_the_setting(
    tmp_path: Path, clock: LeaseTime
) -> None:
    objects = tmp_path / "objects"
    options = {"durability__outage_writes_may_be_lost": True}
    with node(tmp_path / "first", objects, "local", **options) as first:
        who = first.register("ada@example.org")
        first.until(lambda: first.log()["unshipped_records"] == 0)
        Link.is_cut = True
        clock.leap(LEASE_SECONDS)
        first.until(lambda: first.log()["leased"])
        assert write(first, who) in (201, 202) and read(first, who) == 200
        status = first.log()
        assert status["unconfirmed_seconds"] >= LEASE_SECONDS and status["unshipped_records"] > 0
        with taken_over(first, objects, tmp_path / "second", waits=True, **PATIENT) as second:
            # This is what the setting says: both answer, and what the first one says is lost.
            first.until(lambda: first.log()["leased"])
            assert write(first, who) in (201, 202)
            kept = second.request("GET", "/v1/memories", who=who).json()["items"]
            assert kept == []
            Link.is_cut = False


def test_nobody_waits_for_an_owner_that_ended_in_order(tmp_path: Path, clock: LeaseTime) -> None:
    objects = tmp_path / "objects"
    with node(tmp_path / "first", objects, **PATIENT) as first:
        who = first.register("ada@example.org")
    with taken_over(first, objects, tmp_path / "second", waits=True, **PATIENT) as second:
        assert clock.rested == [] and read(second, who) == 200
