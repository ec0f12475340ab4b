"""What verification finds and mends: each derived thing is damaged in a lived-in store, found, and
made again.

A damage is a write straight into the tables, as a defect would do it. After the repair the store
agrees with itself again, and says what it said before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pyroaring import BitMap

import serve_app
from plugins.accounts.api_keys import API_KEY_IDS, API_KEYS
from plugins.billing.ledger import INVOICE_IDS, INVOICE_STATES, InvoiceState
from plugins.collections.store import COLLECTION_COUNTS, COLLECTION_INDEX, CountsRow
from plugins.memories import MEMORY_FIELDS, MEMORY_TEXT, MEMORY_VECTORS, MEMORY_WORDS
from plugins.memories.room import Measured, put_measured
from plugins.memories.rows import (
    MEMORIES,
    MEMORY_ALARM,
    MEMORY_EXPIRY,
    MEMORY_FEATURES,
    MEMORY_HISTORY,
    MEMORY_IDS,
    PROCESSING,
    VersionRow,
)
from plugins.profile.store import DIALOGUE_SOURCES, PROFILE_SOURCES
from plugins.webhooks.store import DELIVERY_FIELDS, DELIVERY_IDS, SUBSCRIPTIONS, WEBHOOK_IDS
from runtime.api import jobs, metering, tenants
from runtime.api.checks import Account, Finding
from runtime.api.context import COUNTERS, WriteContext
from runtime.api.operation import Call
from runtime.api.slot_context import OperatorWriteContext
from runtime.inference import Models
from runtime.shard import verification
from runtime.shard.idempotency import IDEMPOTENCY_EXPIRY
from storage.store import Table
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness

Damage = Callable[[WriteContext], Any]


class VerificationHarness:
    """A shard harness whose account has used everything, and ways to hurt and heal its store."""

    def __init__(self, directory: Path):
        self.harness = ShardHarness(directory, serve_app.PLUGINS, Models(WordEmbedder()))
        self.me = self.harness.register()
        self.scope = self.harness.scope_of(self.me)
        ask = self.harness
        collection = ask("collections.create", {"name": "work"}, who=self.me, key="c").body["id"]
        said = [
            {"role": "user", "content": f"the {word} is in the harbour"}
            for word in ("violin", "lantern", "orchard")
        ]
        ask(
            "memories.create",
            {"messages": said, "session_id": "s", "expires_at": "2999-01-01"},
            who=self.me,
            key="k",
        )
        kept = ask(
            "memories.create",
            {"content": "copper meadow", "collection_id": collection, "tags": ["a"]},
            who=self.me,
        ).body["id"]
        ask("memories.update", {"content": "copper meadow, rewritten"}, who=self.me, id=kept)
        ask("auth.api_keys.create", {"name": "k"}, who=self.me)
        for session in (None, "s"):  # each becomes a turn and the facts that rest on it
            turn = {"role": "user", "content": "I live in Lisbon. My sister Ilse works at Siemens."}
            ask(
                "memories.process",
                {"messages": [turn], "session_id": session, "user_id": session},
                who=self.me,
            )
        self.settle()

    def settle(self) -> None:
        """Let every job that is due run; the one that watches for the year 2999 waits on."""
        self.harness.settle()

    @property
    def account(self) -> Account:
        return Account(self.scope.slot, self.scope.tenant)

    def in_transaction(self, work: Damage) -> Any:
        def run(transaction: Any) -> Any:
            principal, scope = tenants.tenant(transaction, self.scope.slot, self.scope.tenant)
            call = Call("test", self.scope.slot, self.harness.now_ms, os.urandom(32), "test")
            return work(
                OperatorWriteContext(
                    transaction, scope, call, self.harness.shard.environment, principal
                )
            )

        committed = self.harness.shard.store.write(run)
        self.harness.shard.parts.writer.feed(committed)
        return committed.result

    def findings(self) -> list[Finding]:
        with self.harness.shard.store.snapshot() as snapshot:
            accounts = verification.accounts(snapshot)
            assert accounts
            environment = self.harness.shard.environment
            return [
                found
                for each in accounts
                for found in verification.examine(snapshot, environment, each, self.harness.now_ms)
            ]

    def mend(self) -> tuple[int, list[Finding]]:
        """Both halves of the account, as the command does it."""
        whole = [
            self.in_transaction(lambda ctx, each=each: ctx.mend(each.number))
            for each in (self.account, Account(self.scope.slot, 0))
        ]
        self.harness.reopen()
        self.settle()
        return sum(repaired for repaired, _ in whole), [
            finding for _, left in whole for finding in left
        ]

    def seen(self) -> list[Any]:
        """What a user sees of it, but for what looking counts."""
        counted = dict.fromkeys(("access_count", "last_accessed_at"))
        memories = [
            memory | counted for memory in self.harness("memories.list", who=self.me).body["items"]
        ]
        found = [
            self.harness("search.search", {"query": word}, who=self.me).body["evidence_ids"]
            for word in ("violin", "copper", "rewritten")
        ]
        collections = self.harness("collections.list", who=self.me).body["items"]
        keys = self.harness("auth.api_keys.list", who=self.me).body["items"]
        return [memories, found, collections, keys]


@pytest.fixture
def ward(tmp_path: Path, without_delay: None) -> Iterator[VerificationHarness]:
    ward = VerificationHarness(tmp_path)
    yield ward
    ward.harness.close()


def first_row(ctx: WriteContext) -> Any:
    return ctx[MEMORIES].first()[1]


def swap_vector(ctx: WriteContext) -> None:
    row = first_row(ctx)
    width = len(ctx.index(MEMORY_VECTORS).get(row.space, row.ordinal))
    ctx.index(MEMORY_VECTORS).put(row.space, row.ordinal, np.full(width, 3.0, np.float32))


def wait_for_nobody(ctx: WriteContext) -> None:
    row = first_row(ctx)
    ctx.index(MEMORY_TEXT).remove(row.ordinal)
    ctx.index(MEMORY_VECTORS).delete(row.space, row.ordinal)
    ctx.index(MEMORY_FIELDS).add(row.ordinal, "pending", 1)
    ctx[MEMORIES].put((row.ordinal,), msgspec.structs.replace(row, status=PROCESSING, space=""))


def forget_expiry_job(ctx: WriteContext) -> None:
    for (ordinal,), row in list(ctx[jobs.JOBS].scan()):
        if row.name == "memories.expire":
            jobs.forget(ctx, ordinal, row)


def put_first(ctx: WriteContext, table: Table, **changes: Any) -> None:
    key, row = ctx[table].first()
    ctx[table].put(key, msgspec.structs.replace(row, **changes))


DAMAGES: dict[str, tuple[str, Damage]] = {
    "an id leads nowhere": (
        "memory_ids",
        lambda ctx: ctx[MEMORY_IDS].put(("mem_nobody",), bytes(4)),
    ),
    "an id is gone": ("memory_ids", lambda ctx: ctx[MEMORY_IDS].delete(first_row(ctx).id)),
    "an id leads to another": (
        "memory_ids",
        lambda ctx: ctx[MEMORY_IDS].put((first_row(ctx).id,), bytes([0, 0, 0, 3])),
    ),
    "a bitmap lacks an ordinal": (
        "memory_fields",
        lambda ctx: ctx.index(MEMORY_FIELDS).remove(0, "live", 1),
    ),
    "a bitmap has one too many": (
        "memory_fields",
        lambda ctx: ctx.index(MEMORY_FIELDS).add(70_000, "tag", "a"),
    ),
    "a value nobody carries": (
        "memory_fields",
        lambda ctx: ctx.index(MEMORY_FIELDS).add(1, "user_id", "x" * 255),
    ),
    "postings are gone": ("memory_text", lambda ctx: ctx.index(MEMORY_TEXT).remove(0)),
    "postings of another text": (
        "memory_text",
        lambda ctx: ctx.index(MEMORY_TEXT).add(0, ["harbour", "violin"]),
    ),
    "postings of nothing": (
        "memory_text",
        lambda ctx: ctx.index(MEMORY_TEXT).add(900, ["harbour"]),
    ),
    "a vector is gone": (
        "memory_vectors",
        lambda ctx: ctx.index(MEMORY_VECTORS).delete(first_row(ctx).space, 0),
    ),
    "a vector of the wrong length": ("memory_vectors", swap_vector),
    "a vector of nothing": (
        "memory_vectors",
        lambda ctx: ctx.index(MEMORY_VECTORS).put(
            first_row(ctx).space, 900, ctx.index(MEMORY_VECTORS).get(first_row(ctx).space, 0)
        ),
    ),
    "features are gone": ("memory_cues", lambda ctx: ctx.index(MEMORY_FEATURES).delete(1)),
    "features of another memory": (
        "memory_cues",
        lambda ctx: ctx.index(MEMORY_FEATURES).put(0, ctx.index(MEMORY_FEATURES).get(2)),
    ),
    "features of nothing": (
        "memory_cues",
        lambda ctx: ctx.index(MEMORY_FEATURES).put(900, ctx.index(MEMORY_FEATURES).get(2)),
    ),
    "an expiry is gone": ("memory_expiry", lambda ctx: ctx[MEMORY_EXPIRY].delete_prefix()),
    "an expiry of nothing": ("memory_expiry", lambda ctx: ctx[MEMORY_EXPIRY].put((5, 900), b"")),
    "the bytes of texts are miscounted": (
        "memory_bytes",
        lambda ctx: put_measured(ctx, Measured(7)),
    ),
    "nobody measures": ("memory_bytes", lambda ctx: put_measured(ctx, Measured(0, 0, 2))),
    "the alarm is gone": ("memory_alarm", lambda ctx: ctx[MEMORY_ALARM].delete()),
    "nobody watches the alarm": ("memory_alarm", forget_expiry_job),
    "history of nothing": (
        "memory_history",
        lambda ctx: ctx[MEMORY_HISTORY].put(("mem_x", 1), VersionRow("ADD", "x", 0.5, {}, 1, "")),
    ),
    "a collection miscounts": (
        "collection_counts",
        lambda ctx: ctx[COLLECTION_COUNTS].put((0,), CountsRow(memories=77)),
    ),
    "a memory waits for a job that is not there": ("memories", wait_for_nobody),
    "a counter fell back": ("counters", lambda ctx: ctx[COUNTERS].put(("memories",), bytes(8))),
    "a name is not indexed": (
        "collection_index",
        lambda ctx: ctx.index(COLLECTION_INDEX).remove(1, "name", "work"),
    ),
    "a key does not open": (
        "credentials",
        lambda ctx: ctx[tenants.CREDENTIALS].delete(ctx[API_KEYS].first()[1].digest),
    ),
    "an unlisted key opens": (
        "credentials",
        lambda ctx: ctx[tenants.CREDENTIALS].put(
            (b"d" * 32,), tenants.CredentialRow("key", 1, ("read",))
        ),
    ),
    "a key's id is gone": ("api_key_ids", lambda ctx: ctx[API_KEY_IDS].delete_prefix()),
    "usage of nothing": (
        "key_usage",
        lambda ctx: ctx[tenants.KEY_USAGE].put(("key_x",), tenants.KeyUsageRow()),
    ),
    "an address leads nowhere": (
        "emails",
        lambda ctx: ctx[tenants.EMAILS].put((b"d" * 32,), tenants.TenantNumber(9)),
    ),
    "the address is gone": ("emails", lambda ctx: ctx[tenants.EMAILS].delete_prefix()),
    "a job's id is gone": ("job_ids", lambda ctx: ctx[jobs.JOB_IDS].delete_prefix()),
    "a job's status is not indexed": (
        "job_fields",
        lambda ctx: ctx.index(jobs.JOB_FIELDS).add(0, "status", "failed"),
    ),
    "a job is never due": ("jobs_due", lambda ctx: ctx[jobs.JOBS_DUE].delete_prefix()),
    "nothing is due": (
        "jobs_due",
        lambda ctx: ctx[jobs.JOBS_DUE].put((1, ctx.scope.tenant, "job_x"), b""),
    ),
    "a record never expires": (
        "idempotency_expiry",
        lambda ctx: ctx[IDEMPOTENCY_EXPIRY].delete_prefix(),
    ),
    "a webhook's id leads nowhere": (
        "webhook_ids",
        lambda ctx: ctx[WEBHOOK_IDS].put(("whk_x",), bytes(4)),
    ),
    "a subscription of nothing": (
        "webhook_subscriptions",
        lambda ctx: ctx[SUBSCRIPTIONS].put(("memory.created", 7), b""),
    ),
    "a delivery's id leads nowhere": (
        "delivery_ids",
        lambda ctx: ctx[DELIVERY_IDS].put(("dlv_x",), bytes(4)),
    ),
    "a status of no delivery": (
        "delivery_fields",
        lambda ctx: ctx.index(DELIVERY_FIELDS).add(5, "status", "pending"),
    ),
    "a document's id leads nowhere": (
        "invoice_ids",
        lambda ctx: ctx[INVOICE_IDS].put(("inv_x",), bytes(4)),
    ),
    "evidence for nothing": (
        "profile_sources",
        lambda ctx: ctx[PROFILE_SOURCES].put(("mem_x", b"u" * 16, "city", b"v" * 16), b""),
    ),
    "a turn that rests on nothing": (
        "dialogue_sources",
        lambda ctx: ctx[DIALOGUE_SOURCES].put(("mem_x", b"u" * 16, b"s" * 16), b""),
    ),
    "words of nothing": (
        "memory_words",
        lambda ctx: ctx.index(MEMORY_WORDS).put(
            first_row(ctx).space, 900, np.ones((2, 64), np.int8)
        ),
    ),
    "a beginning of a name is not indexed": (
        "collection_index",
        lambda ctx: ctx.index(COLLECTION_INDEX).assign(
            "name", ctx.index(COLLECTION_INDEX).places("name", "work")[2], BitMap()
        ),
    ),
    "an expiry of no record": (
        "idempotency_expiry",
        lambda ctx: ctx[IDEMPOTENCY_EXPIRY].put((5, b"d" * 16), b""),
    ),
}


def test_a_store_that_was_lived_in_agrees_with_itself(ward: VerificationHarness) -> None:
    assert ward.findings() == []
    assert ward.mend() == (0, [])


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_and_mended(ward: VerificationHarness, name: str) -> None:
    table, damage = DAMAGES[name]
    before = ward.seen()
    ward.in_transaction(damage)
    found = ward.findings()
    assert table in {finding.table for finding in found}, found
    assert all(
        "copper" not in finding.what and "violin" not in finding.what for finding in found
    ), "a finding shows nobody's content"
    repaired, left = ward.mend()
    assert repaired >= 1 and left == []
    assert ward.findings() == []
    assert ward.seen() == before


BEYOND_REPAIR: dict[str, tuple[str, Damage]] = {
    "credits went missing": (
        "usage_periods",
        lambda ctx: put_first(ctx, metering.USAGE_PERIODS, credits=10**6),
    ),
    "a state of no document": (
        "invoice_states",
        lambda ctx: ctx[INVOICE_STATES].put((9,), InvoiceState("open")),
    ),
    "a row is no row": ("memories", lambda ctx: ctx[MEMORIES].put_raw((0,), b"\xc1")),
    "a version is gone": ("memory_history", lambda ctx: ctx[MEMORY_HISTORY].delete_prefix()),
    "a memory is in no collection": (
        "memories",
        lambda ctx: ctx[MEMORIES].put(
            (0,), msgspec.structs.replace(first_row(ctx), collection_id="col_nowhere")
        ),
    ),
}


@pytest.mark.parametrize("name", BEYOND_REPAIR)
def test_what_derives_from_nothing_is_told_and_left(ward: VerificationHarness, name: str) -> None:
    table, damage = BEYOND_REPAIR[name]
    ward.in_transaction(damage)
    assert any(finding.table == table and finding.repair is None for finding in ward.findings())
    assert any(finding.table == table for finding in ward.mend()[1])


def test_an_address_that_two_accounts_have_stays_whose_it_was(ward: VerificationHarness) -> None:
    def addresses(ctx: OperatorWriteContext) -> dict[bytes, int]:
        return {digest: row.number for (digest,), row in ctx[tenants.EMAILS].scan()}

    before = ward.in_transaction(addresses)
    ward.in_transaction(
        lambda ctx: ctx[tenants.TENANTS].put(
            (ctx.scope.tenant + 7,), ctx[tenants.TENANTS].row(ctx.scope.tenant)
        )
    )
    (found,) = [each for each in ward.findings() if "have one address" in each.what]
    assert (found.table, found.repair) == ("emails", None)
    ward.in_transaction(lambda ctx: ctx.mend(0))
    assert ward.in_transaction(addresses) == before


def test_rows_of_no_account_are_told(ward: VerificationHarness) -> None:
    ward.in_transaction(lambda ctx: ctx[tenants.TENANTS].delete(ctx.scope.tenant))
    assert any("is no account" in finding.what for finding in ward.findings())


def test_the_rest_of_an_account_that_is_being_erased_is_somebodys(
    ward: VerificationHarness,
) -> None:
    """From the tombstone on, until the job has swept the last row and shredded the key, nothing is
    wrong.
    """
    writer = ward.harness.shard.parts.writer
    steps = iter(range(10**6))

    def look() -> None:
        next(steps)
        assert ward.findings() == []

    submit = writer.submit

    async def looking(work: Any, label: str, *others: Any, **named: Any) -> Any:
        if label.startswith(("begin ", "run ")):  # the two writes of a job
            look()
        return await submit(work, label, *others, **named)

    writer.submit = looking
    ward.harness("account.erase", who=ward.me, query={"confirm": "erase-account"})
    ward.settle()
    with ward.harness.shard.store.snapshot() as snapshot:
        assert Account(ward.scope.slot, ward.scope.tenant) not in verification.accounts(snapshot)
    assert next(steps) > 4


def test_the_plugins_that_others_build_on_declare_their_checks() -> None:
    declaring = {plugin.name for plugin in serve_app.PLUGINS if plugin.checks}
    assert {
        "accounts",
        "collections",
        "memories",
        "usage",
        "billing",
        "webhooks",
        "profile",
    } <= declaring
