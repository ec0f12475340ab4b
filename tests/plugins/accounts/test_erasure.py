"""Erasing an account: who gets in, what is left, what comes back, what the receipts say, and what a
crash in the middle does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from plugins.accounts import erasure as account_erasure
from plugins.accounts import limits
from plugins.memories import removal
from runtime.api import erasures, jobs, tenants
from runtime.api.operation import Call
from runtime.api.plugin import Plugin
from runtime.inference import Models
from runtime.limits import SLOTS
from storage.indexes.vectors import space as vectors_space
from storage.store import Scope
from tests.support.embedding import WordEmbedder
from tests.support.metered import EMAIL, metered
from tests.support.shard_harness import ShardHarness

CONFIRM = {"confirm": "erase-account"}


class ErasureHarness(ShardHarness):
    """A shard harness with everything installed and two accounts."""

    def __init__(self, directory: Path):
        self.embedder = WordEmbedder()
        super().__init__(directory, serve_app.PLUGINS, Models(self.embedder))
        self.me, self.other = self.register(), self.register("bob@example.com", "Bob")
        for who in (self.me, self.other):
            for number in range(3):
                self(
                    "memories.create",
                    {"content": f"note {number} of {who[-4:]}", "tags": ["t"], "session_id": "s"},
                    who=who,
                    key=f"k{number}",
                )
            self("collections.create", {"name": "work"}, who=who, key="c")

    def erase(self, who: str) -> str:
        answer = self("account.erase", who=who, query=CONFIRM)
        assert answer.status == 200, answer
        return answer.body["receipt"]

    def rows_of(self, scope: Scope) -> dict[str, int]:
        """Rows by table, of every table of a tenant."""
        with self.shard.store.snapshot() as snapshot:
            tables = [table for table in self.registry.tables.values() if table.level == "tenant"]
            return {
                table.name: count
                for table in tables
                if (count := snapshot.bind(table, scope).count())
            }


@pytest.fixture
def house(tmp_path: Path) -> Iterator[ErasureHarness]:
    house = ErasureHarness(tmp_path)
    yield house
    house.close()


def test_it_wants_to_be_confirmed(house: ErasureHarness) -> None:
    for query in ({}, {"confirm": "yes"}):
        refused = house("account.erase", who=house.me, query=query)
        assert (refused.status, refused.body["param"]) == (400, "confirm")
    key = house("auth.api_keys.create", {"name": "k", "scopes": ["write"]}, who=house.me).body[
        "key"
    ]
    assert house("account.erase", who=key, query=CONFIRM).status == 403
    assert house("auth.me", who=house.me).status == 200


def test_nobody_gets_in_from_the_same_transaction_on(house: ErasureHarness) -> None:
    keys = [
        house("auth.api_keys.create", {"name": "k", "scopes": [scope]}, who=house.me).body["key"]
        for scope in ("read", "admin")
    ]
    house.erase(house.me)
    for who in (house.me, *keys):
        for operation, body in (
            ("auth.me", None),
            ("memories.list", None),
            ("search.search", {"query": "note"}),
            ("memories.create", {"content": "x"}),
        ):
            assert house(operation, body, who=who).status == 401
    assert (
        house("auth.login", {"email": "ada@example.com", "password": "correct horse"}).status == 401
    )
    assert (
        house(
            "internal.keys.create",
            {"email": "ada@example.com", "name": "k"},
            who=house.secrets.operator_token,
        ).status
        == 404
    )


def test_nothing_is_left_and_the_neighbour_loses_nothing(house: ErasureHarness) -> None:
    mine, theirs = house.scope_of(house.me), house.scope_of(house.other)
    # what is still to be read or written down of the neighbour would come in between
    house.settle()
    house.run(house.shard.parts.usage.flush())
    before = house.rows_of(theirs)
    assert len(house.rows_of(mine)) >= 15
    receipt = house.erase(house.me)
    house.settle()
    assert house.rows_of(mine) == {}
    assert house.rows_of(theirs) == before
    with house.shard.store.snapshot() as snapshot:
        assert tenants.closed_tenant(snapshot, mine.slot, mine.tenant) is None
        assert not [
            key
            for key, _ in snapshot.bind(jobs.JOBS_DUE, Scope.of_slot(mine.slot)).scan()
            if key[1] == mine.tenant
        ]
        assert snapshot.bind(tenants.CREDENTIALS, Scope.of_slot(mine.slot)).count() == 0
    assert house.shard.store.keys.is_shredded(
        mine.prefix
    ) and not house.shard.store.keys.is_shredded(theirs.prefix)
    assert house("search.search", {"query": "note"}, who=house.other).body["total"] == 3
    told = house("account.erasure", {"receipt": receipt}).body
    assert told["status"] == "completed" and told["finished_at"] >= told["requested_at"]
    erased = {
        entry["store"]: entry["count"] for entry in told["receipts"] if entry["outcome"] == "erased"
    }
    expected = {"memories": 3, "memory_ids": 3, "collections": 1, "tenants": 1, "data key": 1}
    assert {name: erased[name] for name in expected} == expected
    assert set(erased) >= {
        table.name for table in house.registry.tables.values() if table.level == "tenant"
    }
    retained = {
        entry["store"]: entry["reason"]
        for entry in told["receipts"]
        if entry["outcome"] == "retained"
    }
    assert retained == account_erasure.RETAINED


def test_whoever_builds_on_others_is_asked_to_erase_before_they_are(tmp_path: Path) -> None:
    """Its hook may read what they hold, such as the names of what it put elsewhere."""
    beside = Plugin(
        "beside",
        requires=("accounts",),
        erase=lambda ctx: {"mailboxes": len({tenants.own_account(ctx).email})},
    )
    house = ShardHarness(tmp_path, (*serve_app.PLUGINS, beside), Models(WordEmbedder()))
    try:
        receipt = house("account.erase", who=house.register(), query=CONFIRM).body["receipt"]
        house.settle()
        told = house("account.erasure", {"receipt": receipt}).body
        counts = {entry["store"]: entry["count"] for entry in told["receipts"]}
        assert (told["status"], counts.get("mailboxes")) == ("completed", 1)
    finally:
        house.close()


def test_files_of_its_vectors_go_too(
    house: ErasureHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_space, "KEPT_MIN", 1)
    indexes = house.shard.store.directory / "indexes"
    for who in (house.me, house.other):
        house("search.search", {"query": "note"}, who=who)
    house.run(house.shard.checkpoint())
    assert len(list(indexes.glob("memory_vectors*.rows"))) == 2
    house.erase(house.me)
    house.settle()
    assert len(list(indexes.glob("memory_vectors*.rows"))) == len(list(indexes.glob("*.head"))) == 1


def test_nothing_of_it_stays_in_memory(house: ErasureHarness) -> None:
    residents, mine, theirs = (
        house.shard.store.residents,
        house.scope_of(house.me),
        house.scope_of(house.other),
    )
    for who in (house.me, house.other):
        house("search.search", {"query": "note"}, who=who)
    assert {mine, theirs} <= set(residents.scopes())
    house.erase(house.me)
    house.settle()
    assert set(residents.scopes()) & {mine, theirs} == {theirs}


def test_keys_that_were_minted_leave_no_digest(house: ErasureHarness) -> None:
    slot = house.scope_of(house.me).slot
    house("auth.api_keys.create", {"name": "k"}, who=house.me)
    house.erase(house.me)
    house.settle()
    with house.shard.store.snapshot() as snapshot:
        assert snapshot.bind(tenants.CREDENTIALS, Scope.of_slot(slot)).count() == 0
        assert snapshot.bind(tenants.EMAILS, Scope.of_slot(slot)).count() == 0


def test_the_address_is_free_at_once_and_the_new_account_survives_the_sweep(
    house: ErasureHarness,
) -> None:
    body = {"email": "ada@example.com", "password": "correct horse", "full_name": "Ada"}
    house.erase(house.me)
    again = house("auth.register", body)
    assert again.status == 201
    mine = again.body["access_token"]
    house("memories.create", {"content": "a new life"}, who=mine)
    house.settle()
    assert house("auth.login", body).status == 200
    assert [item["content"] for item in house("memories.list", who=mine).body["items"]] == [
        "a new life"
    ]


def test_an_address_gets_the_credits_of_a_month_once(tmp_path: Path) -> None:
    with metered(tmp_path, billing__default_tier="free") as ada:
        ada.work(credits=700)
        assert ada("account.erase", query=CONFIRM).status == 200
        ada.token = ada.harness.register(EMAIL)
        assert ada.used() == 700
        assert (ada.work(credits=301).status, ada.work(credits=300).status) == (429, 200)
        ada.audited()
        assert ada("account.erase", query=CONFIRM).status == 200
        ada.move_to("2026-06-01T00:00:00Z")
        ada.token = ada.harness.register(EMAIL)
        assert ada.used() == 0


def test_a_repeated_registration_key_does_not_bring_the_account_back(house: ErasureHarness) -> None:
    body = {"email": "eve@example.com", "password": "correct horse", "full_name": "Eve"}
    first = house("auth.register", body, key="once")
    assert house("auth.register", body, key="once").body == first.body
    house.erase(first.body["access_token"])
    again = house("auth.register", body, key="once")
    assert again.status == 201 and again.body["user_id"] != first.body["user_id"]
    assert "X-Idempotent-Replay" not in again.headers


@pytest.mark.parametrize("rows_max", [1, 7])
def test_a_large_account_goes_in_steps(
    house: ErasureHarness, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(limits, "ERASED_ROWS_PER_STEP", rows_max)
    mine = house.scope_of(house.me)
    house.settle()  # a job that ends takes rows of its own along
    rows = sum(house.rows_of(mine).values())
    receipt = house.erase(house.me)
    house.settle()
    told = house("account.erasure", {"receipt": receipt}).body
    assert house.rows_of(mine) == {} and told["status"] == "completed"
    assert sum(entry["count"] or 0 for entry in told["receipts"]) >= rows


@pytest.mark.parametrize("steps", range(4))
def test_an_erasure_goes_on_after_a_restart(house: ErasureHarness, steps: int) -> None:
    """The job is stopped after some of its steps and the store opened again, as after a crash."""
    mine = house.scope_of(house.me)
    handler = house.registry.jobs["account.erase"].handler
    done = [0]

    def stop_after(ctx: Any, payload: Any) -> Any:
        if done[0] >= steps:
            raise RuntimeError("the lights went out")
        done[0] += 1
        return handler(ctx, payload)

    object.__setattr__(house.registry.jobs["account.erase"], "handler", stop_after)
    try:
        receipt = house.erase(house.me)
        house.run(_until(lambda: done[0] == steps))
        house.reopen()
    finally:
        object.__setattr__(house.registry.jobs["account.erase"], "handler", handler)
    assert house("account.erasure", {"receipt": receipt}).body["status"] == "processing"
    assert house("auth.me", who=house.me).status == 401
    house.settle()
    assert house.rows_of(mine) == {} and house.shard.store.keys.is_shredded(mine.prefix)
    assert house("account.erasure", {"receipt": receipt}).body["status"] == "completed"


async def _until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


def test_a_job_under_way_writes_nothing_afterwards(house: ErasureHarness) -> None:
    """An index job has its vectors ready when the account is erased: its commit finds the
    tombstone.
    """
    mine = house.scope_of(house.me)
    house.embedder.late = True
    house("memories.create", {"content": "never indexed"}, who=house.me, query=None)
    house("memories.create_raw", {"content": "nor this"}, who=house.me)
    receipt = house.erase(house.me)
    house.embedder.late = False
    house.settle()
    assert house.rows_of(mine) == {}
    assert house("account.erasure", {"receipt": receipt}).body["status"] == "completed"


def test_a_write_and_a_search_under_way_are_thrown_away(house: ErasureHarness) -> None:
    """Both were admitted before the erasure committed, and wait for the embedder while it does."""
    house.embedder.late = True
    calls = [
        house.form(
            "memories.create", {"content": "too late", "wait_for_index": True}, who=house.me
        ),
        house.form("search.search", {"query": "note"}, who=house.me),
    ]
    erase = house.form("account.erase", who=house.me, query=CONFIRM)

    async def race() -> list[Any]:
        waiting = [asyncio.ensure_future(house.shard.execute(call)) for call in calls]
        await asyncio.sleep(0)
        erased = await house.shard.execute(erase)
        house.embedder.late = False
        return [erased, *await asyncio.gather(*waiting)]

    erased, written, found = house.run(race())
    assert (erased.status, written.error.status, found.error.status) == (200, 401, 401)


def test_a_receipt_opens_itself_and_nothing_else(house: ErasureHarness) -> None:
    receipt = house.erase(house.me)
    for text in (
        receipt[:-1] + "g",
        receipt[:-2] + "zz",
        receipt.removeprefix("mem_rc_"),
        "mem_rc_",
        "x",
        "mem_rc_ffff" + receipt[11:],
    ):
        assert house("account.erasure", {"receipt": text}).status == 404
    assert erasures.slot_of("mem_rc_ffff") == 0 < SLOTS
    house.settle()
    told = house("account.erasure", {"receipt": receipt}).body
    assert "ada" not in repr(told).lower()


def test_cleanups_of_a_living_account_have_receipts(house: ErasureHarness) -> None:
    collection = house("collections.create", {"name": "doomed"}, who=house.me).body["id"]
    for number in range(4):
        house(
            "memories.create",
            {"content": f"in it {number}", "collection_id": collection},
            who=house.me,
        )
    job = house("collections.delete", who=house.me, id=collection).body["cleanup"]["job_id"]
    house.settle()
    listed = house("account.receipts", who=house.me).body
    assert [(item["job_id"], item["cause"], item["status"]) for item in listed["items"]] == [
        (job, "collections.cleanup", "completed")
    ]
    erased = {
        entry["store"]: entry["count"]
        for entry in listed["items"][0]["receipts"]
        if entry["outcome"] == "erased"
    }
    assert erased.pop("memories") == 4 and set(erased.values()) == {0}
    assert house("account.receipts", who=house.other).body["total_count"] == 0


def test_a_cleanup_under_way_tells_what_went_so_far(
    house: ErasureHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "MEMORIES_SWEPT_PER_STEP", 1)
    house("memories.delete_all", who=house.me, query={"confirm": "delete-all-memories"})
    (told,) = house("account.receipts", who=house.me).body["items"]
    assert told["status"] in ("queued", "processing") and told["finished_at"] is None
    assert [(each["store"], each["count"]) for each in told["receipts"]] == [("memories", 1)]
    house.settle()
    (told,) = house("account.receipts", who=house.me).body["items"]
    assert told["status"] == "completed" and told["finished_at"] is not None
    assert [(each["store"], each["count"]) for each in told["receipts"]] == [("memories", 3)]


def test_erasing_twice_at_once_is_one_erasure(house: ErasureHarness) -> None:
    calls: list[Call] = [house.form("account.erase", who=house.me, query=CONFIRM) for _ in range(2)]
    assert sorted(answer.status for answer in house.together(calls)) == [200, 401]
