"""An account that an earlier release has filled tells of its changes once its shard was opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.memories.rows import MEMORY_CHANGES, MEMORY_FEATURES
from storage.store import Scope
from tests.support.search_harness import SearchHarness


def test_a_large_account_of_an_earlier_release_tells_of_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MEMORY_FEATURES, "kept_min", 3)
    house = SearchHarness(tmp_path)
    try:
        eve = house.register("eve@example.com", "Eve")
        for who, count in ((eve, 2), (house.me, 3)):
            for number in range(count):
                written = house("memories.create", {"content": f"note {number}"}, who=who)
                assert written.status == 201
        house.settle()
        small, large = house.scope_of(eve), house.scope_of(house.me)

        def has_begun(scope: Scope) -> bool:
            with house.shard.store.snapshot() as snapshot:
                return MEMORY_CHANGES.bind(snapshot, scope).has_begun()

        for scope in (small, large):
            assert has_begun(scope)
            house.shard.store.write(lambda t, scope=scope: MEMORY_CHANGES.bind(t, scope).clear())
        house.reopen()
        house.until(lambda: has_begun(large))
        assert not has_begun(small), "its rows are read as soon as a file"
    finally:
        house.close()
