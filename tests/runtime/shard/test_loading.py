"""What a read looks at before its slow work: on the event loop of an account that is in memory and
small, else on a thread, while others are answered.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.api.operation import Body, Read
from runtime.api.plugin import Plugin
from runtime.limits import LOADED_AT_ONCE_BYTES_MAX
from storage.indexes import ColumnIndex
from tests.support.worlds import shard_harness

WAIT_SECONDS_MAX = 20
NUMBERS = ColumnIndex("numbers", np.dtype([("number", "<u8")]), bytes(8))
# Of which a page is more than is looked at on the event loop.
WIDE_BYTES = LOADED_AT_ONCE_BYTES_MAX // 256
WIDE = ColumnIndex(
    "wide", np.dtype([("number", "<u8"), ("rest", f"V{WIDE_BYTES}")]), bytes(WIDE_BYTES + 8)
)


class Nothing(Body):
    pass


class Witness:
    """A plugin with a read whose `load` waits, where it is on a thread, until another was
    answered.
    """

    def __init__(self, index: ColumnIndex) -> None:
        self._index = index
        self.loaded_on: list[threading.Thread] = []
        self.may_go_on = threading.Event()
        self.plugin = Plugin(
            name="numbers",
            indexes=(NUMBERS, WIDE),
            operations=(
                Read(
                    "numbers.first", "POST", "/first", self._first, "", None, body=Nothing,
                    load=self._load, prepare=self._prepare,
                ),
                Read("numbers.light", "GET", "/light", self._release, "", None),
            ),
        )  # fmt: skip

    def _load(self, ctx: Any, body: Nothing) -> int:
        self.loaded_on.append(threading.current_thread())
        if self.loaded_on[-1] is not threading.main_thread():
            assert self.may_go_on.wait(WAIT_SECONDS_MAX), "nobody was answered meanwhile"
        return int(ctx.index(self._index).field("number", np.array([0]))[0])

    async def _prepare(self, call: Any, loaded: int, models: Any) -> int:
        return loaded

    def _first(self, ctx: Any, body: Nothing) -> dict:
        return {"number": ctx.prepared}

    def _release(self, ctx: Any, body: None) -> dict:
        self.may_go_on.set()
        return {}


@pytest.mark.parametrize("index", [NUMBERS, WIDE])
def test_others_are_answered_while_an_account_is_loaded(tmp_path: Path, index: ColumnIndex) -> None:
    """And while one is looked at that has much in memory."""
    witness = Witness(index)
    with shard_harness(tmp_path, witness.plugin) as harness:
        ada, eve = harness.register(), harness.register("eve@example.com", "Eve")
        for is_in_memory in (False, True):
            witness.may_go_on.clear()
            answers = harness.together(
                [
                    harness.form("numbers.first", {}, who=ada),
                    harness.form("numbers.light", who=eve),
                ]
            )
            assert [answer.body for answer in answers] == [{"number": 0}, {}]
            at_once = is_in_memory and index is NUMBERS
            assert (witness.loaded_on.pop() is threading.main_thread()) == at_once
