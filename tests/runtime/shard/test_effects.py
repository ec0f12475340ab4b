"""What leaves the service leaves after the write that caused it is as durable as was promised: a
node that is cut off from the object store, receivers that hear, and what is there after a
take-over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.replication import shipper
from tests.support.cut_off import WAIT_SECONDS, Link, node, shipping, taken_over
from tests.support.in_process import InProcess
from tests.support.receivers import Receiver, receiver

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper, "BACKOFF_SECONDS_MAX", 0.1)
    monkeypatch.setattr(Link, "is_cut", False)


def listening(service: InProcess, there: Receiver) -> tuple[str, str]:
    """(credential, path of a webhook's deliveries) of an account that hears of new memories."""
    who = acknowledged(service, "POST", "/v1/auth/register", {
        "email": "ada@example.org", "password": "correct horse battery staple", "full_name": "Ada",
    })["access_token"]  # fmt: skip
    body = {"url": there.url, "events": ["memory.created"]}
    webhook = acknowledged(service, "POST", "/v1/webhooks", body, who=who)
    return who, f"/v1/webhooks/{webhook['id']}/deliveries"


def acknowledged(
    service: InProcess, method: str, path: str, body: Any, who: str | None = None
) -> dict[str, Any]:
    """The answer of a write, asked for again under one key where the machine is slow."""
    for _ in range(20):
        answer = service.request(method, path, body, who=who, Idempotency_Key=path)
        if answer.status_code != 503:
            break
    assert answer.status_code in (200, 201, 202), answer.text
    return answer.json()


def cut_off_and_asked(service: InProcess, who: str) -> None:
    """A write that is on the node's disk and nowhere else, and time for it to have consequences."""
    begun = service.status()["jobs"]["attempts_total_by_kind"]["webhooks.deliver"]
    with Link.silent():
        answer = service.request("POST", "/v1/memories/raw", {"content": "Tea is ready."}, who=who)
        assert answer.status_code == 503 and "on disk" in answer.json()["error"]["message"]
        Link.is_cut = True
    service.until(
        lambda: (
            service.status()["jobs"]["attempts_total_by_kind"]["webhooks.deliver"] > begun
            and service.log()["failing_seconds"] > WAIT_SECONDS
        )
    )


def memories(service: InProcess, who: str) -> list[str]:
    return [item["id"] for item in service.request("GET", "/v1/memories", who=who).json()["items"]]


def test_nobody_is_told_of_what_a_take_over_does_not_find(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    with receiver() as there, node(tmp_path / "first", objects) as first:
        who, _ = listening(first, there)
        cut_off_and_asked(first, who)
        assert memories(first, who) and there.received == []
        with taken_over(first, objects, tmp_path / "second") as second:
            assert memories(second, who) == []
            # The former owner can reach the object store again, and learns that it is none.
            Link.is_cut = False
            first.until(lambda: first.shard.parts.durability.fenced)
            first.until(lambda: first.status()["jobs_waiting"] == 0)
            assert there.received == []
            made = acknowledged(second, "POST", "/v1/memories/raw", {"content": "Milk."}, who=who)
            second.until(lambda: bool(there.received))
            assert [told.event["data"]["id"] for told in there.received] == [made["id"]]


def test_an_event_is_delivered_once_the_object_store_is_back(tmp_path: Path) -> None:
    with receiver() as there, node(tmp_path / "first", tmp_path / "objects") as first:
        who, deliveries = listening(first, there)
        cut_off_and_asked(first, who)
        assert there.received == []
        Link.is_cut = False
        first.until(lambda: bool(there.received))
        first.until(lambda: first.status()["jobs_waiting"] == 0)
        (told,) = there.received
        assert [told.event["data"]["id"]] == memories(first, who)
        (item,) = first.request("GET", deliveries, who=who).json()["items"]
        assert (item["status"], item["event_id"]) == ("delivered", told.event["id"])
        attempts = first.request("GET", f"{deliveries}/{item['id']}", who=who).json()["attempts"]
        assert [attempt["status_code"] for attempt in attempts] == [200], "waiting is no attempt"


def test_who_asks_again_and_again_leaves_nothing_behind(tmp_path: Path) -> None:
    with receiver() as there, node(tmp_path / "first", tmp_path / "objects") as first:
        who, _ = listening(first, there)
        cut_off_and_asked(first, who)
        first.until(lambda: first.log()["failing_seconds"] > 8 * WAIT_SECONDS)
        assert len(first.shard.parts.durability.waiting) <= 2, "one job waits, perhaps one more"


def test_a_node_that_stops_while_it_is_cut_off_delivers_after_its_next_start(
    tmp_path: Path,
) -> None:
    objects = tmp_path / "objects"
    with receiver() as there:
        with node(tmp_path / "first", objects) as first:
            who, _ = listening(first, there)
            cut_off_and_asked(first, who)
        assert there.received == []
        Link.is_cut = False
        again = InProcess(
            tmp_path / "first", secrets=first.secrets, **shipping(objects, "replicated")
        )
        again.until(lambda: bool(there.received))
        assert [told.event["data"]["id"] for told in there.received] == memories(again, who)
        again.close()


def test_in_local_mode_an_event_waits_for_nobody(tmp_path: Path) -> None:
    with receiver() as there, node(tmp_path / "first", tmp_path / "objects", "local") as first:
        who, _ = listening(first, there)
        Link.is_cut = True
        made = acknowledged(first, "POST", "/v1/memories/raw", {"content": "Tea."}, who=who)
        first.until(lambda: bool(there.received))
        assert there.received[0].event["data"]["id"] == made["id"]
