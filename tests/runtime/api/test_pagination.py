"""Pages: stable under writes, and cursors that open one list only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shard_harness import ShardHarness
from tests.support.worlds import example_plugin, shard_harness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    with shard_harness(tmp_path, example_plugin()) as harness:
        yield harness


def test_an_item_present_throughout_is_returned_exactly_once(harness: ShardHarness) -> None:
    me = harness.register()
    before = [harness("bookmarks.create", {"url": f"u{i}"}, who=me).body["id"] for i in range(7)]
    seen, cursor = [], None
    while True:
        page = harness("bookmarks.list", who=me, query={"limit": 3, "cursor": cursor}).body
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        assert page["has_more"] == (cursor is not None)
        harness("bookmarks.create", {"url": "meanwhile"}, who=me)
        if cursor is None:
            break
    assert seen == before[::-1]


def test_the_last_full_page_has_no_more(harness: ShardHarness) -> None:
    me = harness.register()
    for i in range(4):
        harness("bookmarks.create", {"url": f"u{i}"}, who=me)
    first = harness("bookmarks.list", who=me, query={"limit": 2}).body
    second = harness(
        "bookmarks.list", who=me, query={"limit": 2, "cursor": first["next_cursor"]}
    ).body
    assert first["has_more"] and not second["has_more"] and second["next_cursor"] is None
    assert first["total_count"] == second["total_count"] == 4


def test_a_cursor_opens_only_its_own_list(harness: ShardHarness) -> None:
    me, eve = harness.register(), harness.register("eve@example.com", "Eve")
    for i in range(3):
        harness("bookmarks.create", {"url": f"u{i}", "label": "a"}, who=me)
    cursor = harness("bookmarks.list", who=me, query={"limit": 1, "label": "a"}).body["next_cursor"]
    assert harness("bookmarks.list", who=me, query={"label": "a", "cursor": cursor}).status == 200
    assert harness("bookmarks.list", who=me, query={"cursor": cursor}).status == 400, (
        "other filters"
    )
    assert (
        harness("bookmarks.list", who=eve, query={"label": "a", "cursor": cursor}).status == 400
    ), "another account"
    for bad in ("x", "é", cursor[:-2], "A" * len(cursor), cursor + "AAAA", "A" * 5_000):
        refused = harness("bookmarks.list", who=me, query={"label": "a", "cursor": bad})
        assert refused.status == 400 and refused.body["param"] == "cursor", bad
