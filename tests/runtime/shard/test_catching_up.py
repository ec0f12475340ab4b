"""What plugins owe accounts begins once for each account, when its shard is opened."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import CatchUp, Plugin
from runtime.shard import catching_up
from runtime.shard.turns import Account
from storage.store import Table
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import shard_harness

WAIT_SECONDS_MAX = 20
PAID: Table[bytes] = Table("paid", key=(), row=bytes, doc="an account that is owed nothing")
LAST: Table[bytes] = Table("last", key=(), row=bytes, doc="an account that is owed nothing else")


class Debts:
    """A plugin that owes each account until that is paid; it notes whom it was asked about and what
    it began.
    """

    def __init__(self, name: str, table: Table[bytes], *, is_its_own: bool = True) -> None:
        self._table = table
        self.asked: list[Account] = []
        self.begun: list[Account] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.plugin = Plugin(
            name,
            tables=(table,) if is_its_own else (),
            catch_up=CatchUp(self._is_due, self._begin),
        )

    def _is_due(self, ctx: ReadContext) -> bool:
        self.asked.append((ctx.scope.slot, ctx.scope.tenant))
        assert self.may_go_on.wait(WAIT_SECONDS_MAX)
        return ctx[self._table].get() is None

    def _begin(self, ctx: WriteContext) -> None:
        self.begun.append((ctx.scope.slot, ctx.scope.tenant))
        ctx[self._table].put((), b"")


def accounts(harness: ShardHarness, count: int) -> dict[Account, str]:
    """The access tokens of so many new accounts."""
    tokens = [harness.register(f"ada{number}@example.com") for number in range(count)]
    scopes = [harness.scope_of(token) for token in tokens]
    return {(at.slot, at.tenant): token for at, token in zip(scopes, tokens, strict=True)}


def test_every_account_is_looked_at_and_the_slots_themselves_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps of fewer accounts than there are."""
    monkeypatch.setattr(catching_up, "ACCOUNTS_LOOKED_AT_PER_STEP", 2)
    debts = Debts("debts", PAID)
    with shard_harness(tmp_path, debts.plugin) as harness:
        mine = sorted(accounts(harness, 5))
        harness.reopen()
        harness.until(lambda: len(debts.begun) >= len(mine))
        assert sorted(debts.begun) == mine
        assert set(debts.asked) == set(mine)
        debts.asked.clear()
        harness.reopen()
        harness.until(lambda: len(debts.asked) >= len(mine))
        assert (sorted(debts.asked), sorted(debts.begun)) == (mine, mine)


def test_what_was_due_and_is_no_more_when_its_turn_comes_does_not_begin(tmp_path: Path) -> None:
    """The first of two pays what both found to be due."""
    first, second = Debts("debts", PAID), Debts("same_debts", PAID, is_its_own=False)
    last = Debts("other_debts", LAST)
    with shard_harness(tmp_path, first.plugin, second.plugin, last.plugin) as harness:
        mine = list(accounts(harness, 1))
        harness.reopen()
        harness.until(lambda: last.begun)
        assert (first.asked + second.asked, first.begun + second.begun) == (mine * 4, mine)


def test_an_account_that_is_erased_before_its_turn_keeps_no_other_from_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "ACCOUNTS_LOOKED_AT_PER_STEP", 1)
    debts = Debts("debts", PAID)
    with shard_harness(tmp_path, debts.plugin) as harness:
        mine = accounts(harness, 4)
        debts.may_go_on.clear()
        harness.reopen()
        harness.until(lambda: debts.asked)
        left = dict(mine)
        erased = next(account for account in mine if account != debts.asked[0])
        confirmed = {"confirm": "erase-account"}
        answer = harness("account.erase", who=left.pop(erased), query=confirmed)
        assert answer.status == 200, answer
        debts.may_go_on.set()
        harness.until(lambda: len(debts.begun) == len(left))
        assert sorted(debts.begun) == sorted(left)
