"""What rests on a turn goes with it, however the turn goes; and what memories tell of each other
when several go at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.memories import store
from runtime.api.outbox import OUTBOX
from runtime.shard import verification
from runtime.timestamps import iso
from tests.support.in_process import in_process
from tests.support.ingestion_harness import JUNE, MARCH, IngestionHarness, kinds

SEPTEMBER = "2023-09-10T10:00:00Z"
TOLD = "I live in Lisbon and I work at Farfetch. We chose it for the schools."
NDJSON = {"Content_Type": "application/x-ndjson"}


@pytest.fixture
def ingestion(tmp_path: Path) -> Iterator[IngestionHarness]:
    harness = IngestionHarness(tmp_path)
    yield harness
    harness.harness.close()


def turn_of(ingestion: IngestionHarness) -> dict[str, Any]:
    (turn,) = (
        each for each in ingestion("memories.list")["items"] if each["source_type"] == "message"
    )
    return turn


def findings(ingestion: IngestionHarness) -> list[str]:
    """What verification has to say of the store."""
    shard, found = ingestion.harness.shard, list[str]()
    with shard.store.snapshot() as snapshot:
        for account in verification.accounts(snapshot):
            given = snapshot, shard.environment, account, ingestion.harness.now_ms
            found += map(str, verification.examine(*given))
    return found


def test_facts_of_a_turn_that_expires_go_with_it(
    ingestion: IngestionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "EXPIRY_DELAY_MS", 0)
    ingestion.hear(TOLD)
    assert len(ingestion.contents()) > 1
    harness = ingestion.harness
    harness.now_ms = int(time.time() * 1000)
    soon = {"expires_at": iso(harness.now_ms + 50)}
    ingestion("memories.update", soon, id=turn_of(ingestion)["id"])
    harness.settle()
    harness.now_ms = int(time.time() * 1000)
    assert ingestion.contents() == [] and findings(ingestion) == []


def test_a_job_quotes_no_memory_that_has_expired(ingestion: IngestionHarness) -> None:
    told = ingestion.hear("I work at Farfetch.")["job_id"]
    for each in ingestion("memories.list")["items"]:
        ingestion("memories.delete", id=each["id"])
    job = ingestion.hear("I live in Lisbon.")["job_id"]
    harness = ingestion.harness
    harness.now_ms = int(time.time() * 1000)
    for each in ingestion("memories.list")["items"]:
        soon = {"expires_at": iso(harness.now_ms + 50)}
        ingestion("memories.update", soon, id=each["id"])
    assert "Lisbon" in str(ingestion("memories.jobs.get", job_id=job))
    harness.now_ms += 50  # it is removed later
    assert "Lisbon" not in str(ingestion("memories.jobs.get", job_id=job))
    assert "Lisbon" not in str(ingestion("memories.jobs.list"))
    assert "Farfetch" not in str(ingestion("memories.jobs.get", job_id=told))


def test_a_job_quotes_no_memory_once_its_collection_is_deleted(ingestion: IngestionHarness) -> None:
    collection = ingestion("collections.create", {"name": "Homes"})["id"]
    lived = ingestion.hear("I live in Lisbon.", collection_id=collection)["job_id"]
    moved = ingestion.hear("I moved from Lisbon to Oslo.", at=JUNE, collection_id=collection)
    said = {"content": "I work in Lisbon.", "collection_id": collection}
    ingestion("memories.process", said, key="k")
    ingestion.harness.settle()
    assert "Lisbon" in str(ingestion("memories.process", said, key="k"))
    ingestion("collections.delete", id=collection)
    for job_id in (lived, moved["job_id"]):
        assert "Lisbon" not in str(ingestion("memories.jobs.get", job_id=job_id))
    assert "Lisbon" not in str(ingestion("memories.process", said, key="k"))


def test_facts_of_a_turn_that_is_deleted_by_what_it_has_go_with_it(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear(TOLD)
    ingestion("memories.update", {"tags": ["secret"]}, id=turn_of(ingestion)["id"])
    ingestion("memories.delete_matching", {"filters": {"tags": "secret"}})
    ingestion.harness.settle()
    assert ingestion.contents() == [] and findings(ingestion) == []


def test_a_turn_and_the_facts_that_rest_on_it_go_once_when_they_are_named_together(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear(TOLD)
    ids = [each["id"] for each in ingestion("memories.list")["items"]]
    harness = ingestion.harness
    harness.now_ms += 2 * 3_600_000
    since = harness.now_ms
    assert ingestion("memories.bulk_delete", {"ids": ids})["deleted"] == len(ids) > 1
    scope = harness.scope_of(ingestion.me)
    with harness.shard.store.snapshot() as snapshot:
        told = [row for _, row in snapshot.bind(OUTBOX, scope).scan() if row.at >= since]
    gone = [row.resource_id for row in told if row.kind == "memory.deleted"]
    assert sorted(gone) == sorted(ids)
    (collection,) = ingestion("collections.list")["items"]
    assert collection["memory_count"] == 0
    harness.settle()
    assert findings(ingestion) == []


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_memory_that_goes_with_what_it_superseded_does_not_bring_it_back_before(
    ingestion: IngestionHarness, newest_first: bool
) -> None:
    ingestion.hear("I live in Lisbon.")
    ingestion.hear("I moved to Oslo.", at=JUNE)
    listed = ingestion("memories.list", query={"include_superseded": True})["items"]
    ids = [each["id"] for each in listed]
    harness = ingestion.harness
    harness.now_ms += 2 * 3_600_000
    since = harness.now_ms
    ingestion("memories.bulk_delete", {"ids": ids if newest_first else ids[::-1]})
    scope = harness.scope_of(ingestion.me)
    with harness.shard.store.snapshot() as snapshot:
        told = [row.kind for _, row in snapshot.bind(OUTBOX, scope).scan() if row.at >= since]
    assert [kind for kind in told if kind.startswith("memory.")] == ["memory.deleted"] * 2
    harness.settle()
    assert findings(ingestion) == []


def test_a_turn_none_of_whose_sentences_holds_is_not_brought_back(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear("I live in Lisbon. I work at Farfetch.", at=MARCH)
    between = ingestion.hear("I moved to Oslo. I work at Google now.", at=JUNE)
    ingestion.hear("I moved to Rome. I work at Apple now.", at=SEPTEMBER)
    before = ingestion.contents()
    ingestion("memories.jobs.undo", job_id=between["job_id"])
    ingestion.harness.settle()
    assert ingestion.contents() == before
    assert findings(ingestion) == []


def read_anew(ingestion: IngestionHarness) -> None:
    """Have the jobs done that an edit asks for, and ask after them."""
    ingestion.harness.settle()
    ingestion.harness.now_ms = int(time.time() * 1000)


def test_an_edited_memory_claims_what_it_says_now(ingestion: IngestionHarness) -> None:
    (event,) = ingestion.hear("I live in Lisbon.")["events"]
    ingestion("memories.update", {"content": "I live in Porto."}, id=event["memory_id"])
    assert ingestion.targets("Ada", "lives_in") == []
    read_anew(ingestion)
    assert ingestion.targets("Ada", "lives_in") == ["Porto"]
    assert kinds(ingestion.hear("I live in Porto.")) == ["NOOP"]
    assert kinds(ingestion.hear("I live in Lisbon.", at=JUNE)) == ["UPDATE"]
    assert ingestion.contents() == ["I live in Lisbon."]
    ingestion("memories.delete", id=event["memory_id"])
    assert findings(ingestion) == []


def test_an_edited_memory_takes_the_place_of_what_it_contradicts(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear("I work at Farfetch.")
    (event,) = ingestion.hear("I love karaoke.", at=JUNE)["events"]
    ingestion("memories.update", {"content": "I work at Google now."}, id=event["memory_id"])
    read_anew(ingestion)
    assert ingestion.targets("Ada", "works_at") == ["Google"]
    assert ingestion.targets("Ada", "likes") == []
    assert ingestion.contents() == ["I work at Google now."]
    assert findings(ingestion) == []


@pytest.mark.parametrize(
    ("told", "stand"),
    [
        ("I once visited Oslo.", ["I live in Lisbon.", "I once visited Oslo."]),
        ("I moved to Oslo!", ["I moved to Oslo!"]),
        ("I moved to Bergen.", ["I moved to Bergen."]),
    ],
)
def test_what_an_edited_memory_superseded_holds_unless_it_still_says_so(
    ingestion: IngestionHarness, told: str, stand: list[str]
) -> None:
    ingestion.hear("I live in Lisbon.")
    (event,) = ingestion.hear("I moved to Oslo.", at=JUNE)["events"]
    assert ingestion.contents() == ["I moved to Oslo."]
    ingestion("memories.update", {"content": told}, id=event["memory_id"])
    read_anew(ingestion)
    assert ingestion.contents() == stand
    place = {"I moved to Oslo!": "Oslo", "I moved to Bergen.": "Bergen"}.get(told, "Lisbon")
    assert ingestion.targets("Ada", "lives_in") == [place]
    assert findings(ingestion) == []


def test_what_an_edited_memory_still_replaces_in_passing_stays_replaced(
    reading: IngestionHarness,
) -> None:
    reading.hear("My car is a Golf.")
    (event,) = reading.hear("My car is a Polo.", at=JUNE)["events"]
    assert reading.contents() == ["My car is a Polo."]
    reading("memories.update", {"content": "My car is a Polo now."}, id=event["memory_id"])
    read_anew(reading)
    assert reading.contents() == ["My car is a Polo now."]


def test_a_memory_that_is_edited_while_it_is_superseded_gives_back_what_it_replaced(
    ingestion: IngestionHarness,
) -> None:
    ingestion.hear("I live in York.")
    (bath,) = ingestion.hear("I live in Bath.", at=JUNE)["events"]
    (wells,) = ingestion.hear("I live in Wells.", at=SEPTEMBER)["events"]
    ingestion("memories.update", {"content": "I like tea."}, id=bath["memory_id"])
    read_anew(ingestion)
    ingestion("memories.delete", id=wells["memory_id"])
    assert "I live in York." in ingestion.contents()
    assert findings(ingestion) == []


@pytest.mark.parametrize("edited", [False, True])
def test_what_arrived_late_holds_once_what_is_later_says_so_no_more(
    ingestion: IngestionHarness, edited: bool
) -> None:
    (event,) = ingestion.hear("I moved to Oslo.", at=JUNE)["events"]
    ingestion.hear("I live in Lisbon.")
    assert ingestion.contents() == ["I moved to Oslo."]
    assert ingestion.targets("Ada", "lives_in", valid_at=MARCH) == ["Lisbon"]
    assert ingestion.targets("Ada", "lives_in") == ["Oslo"]
    if edited:
        ingestion("memories.update", {"content": "I like the sea."}, id=event["memory_id"])
    else:
        ingestion("memories.delete", id=event["memory_id"])
    read_anew(ingestion)
    assert ingestion.contents() == ["I like the sea."] * edited + ["I live in Lisbon."]
    assert ingestion.targets("Ada", "lives_in") == ["Lisbon"]
    assert findings(ingestion) == []


def test_an_edited_turn_claims_what_it_says_now(ingestion: IngestionHarness) -> None:
    ingestion.hear("I live in Lisbon. I work at Farfetch. We chose it for the schools.")
    told = "I live in Oslo. I work at Google. We chose it for the schools."
    ingestion("memories.update", {"content": told}, id=turn_of(ingestion)["id"])
    read_anew(ingestion)
    assert ingestion.contents() == [told]
    assert ingestion.targets("Ada", "lives_in") == ["Oslo"]
    assert ingestion.targets("Ada", "works_at") == ["Google"]
    assert findings(ingestion) == []


def test_undoing_a_job_keeps_what_was_edited_since(ingestion: IngestionHarness) -> None:
    told = "I live in Lisbon. I work at Farfetch. We chose it for the schools."
    job = ingestion.hear(told)
    turn = turn_of(ingestion)
    fact, *others = (
        each for each in ingestion("memories.list")["items"] if each["id"] != turn["id"]
    )
    assert others and fact["source_reference"] == turn["id"]
    ingestion("memories.update", {"content": "The schools are good there."}, id=fact["id"])
    undone = ingestion("memories.jobs.undo", job_id=job["job_id"])
    assert undone["kept"] == sorted([turn["id"], fact["id"]])
    assert undone["deleted"] == len(others)
    ingestion.harness.settle()
    assert ingestion.contents() == sorted([told, "The schools are good there."])
    assert findings(ingestion) == []


def test_facts_that_were_brought_from_elsewhere_rest_on_their_turns(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        ada, bob = (service.register(f"{name}@example.com") for name in ("ada", "bob"))

        def listed(who: str) -> list[dict[str, Any]]:
            return service.request("GET", "/v1/memories", who=who).json()["items"]

        said = {"messages": [{"role": "user", "name": "Ada", "content": TOLD}]}
        service.request("POST", "/v1/memories/process", said, who=ada)
        service.settle()
        exported = service.request("GET", "/v1/account/export", who=ada).content
        service.request("POST", "/v1/account/import", exported, who=bob, **NDJSON)
        service.settle()
        assert len(listed(bob)) == len(listed(ada)) > 1
        ids = {each["id"] for each in listed(bob)}
        references = {each["source_reference"] for each in listed(bob)} - {None}
        assert references and references < ids
        (turn,) = (each for each in listed(bob) if each["source_type"] == "message")
        service.request("DELETE", f"/v1/memories/{turn['id']}", who=bob)
        assert listed(bob) == []
