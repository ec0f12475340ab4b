"""Pages: stable under writes, and cursors that open one list only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins import Desk
from tests.worlds import desk_of, example_plugin


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_of(tmp_path, example_plugin()) as desk:
        yield desk


def test_an_item_present_throughout_is_returned_exactly_once(desk: Desk) -> None:
    me = desk.register()
    before = [desk("bookmarks.create", {"url": f"u{i}"}, who=me).body["id"] for i in range(7)]
    seen, cursor = [], None
    while True:
        page = desk("bookmarks.list", who=me, query={"limit": 3, "cursor": cursor}).body
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        assert page["has_more"] == (cursor is not None)
        desk("bookmarks.create", {"url": "meanwhile"}, who=me)
        if cursor is None:
            break
    assert seen == before[::-1]


def test_the_last_full_page_has_no_more(desk: Desk) -> None:
    me = desk.register()
    for i in range(4):
        desk("bookmarks.create", {"url": f"u{i}"}, who=me)
    first = desk("bookmarks.list", who=me, query={"limit": 2}).body
    second = desk("bookmarks.list", who=me, query={"limit": 2, "cursor": first["next_cursor"]}).body
    assert first["has_more"] and not second["has_more"] and second["next_cursor"] is None
    assert first["total_count"] == second["total_count"] == 4


def test_a_cursor_opens_only_its_own_list(desk: Desk) -> None:
    me, eve = desk.register(), desk.register("eve@example.com", "Eve")
    for i in range(3):
        desk("bookmarks.create", {"url": f"u{i}", "label": "a"}, who=me)
    cursor = desk("bookmarks.list", who=me, query={"limit": 1, "label": "a"}).body["next_cursor"]
    assert desk("bookmarks.list", who=me, query={"label": "a", "cursor": cursor}).status == 200
    assert desk("bookmarks.list", who=me, query={"cursor": cursor}).status == 400, "other filters"
    assert desk("bookmarks.list", who=eve, query={"label": "a", "cursor": cursor}).status == 400, "another account"
    for bad in ("x", "é", cursor[:-2], "A" * len(cursor), cursor + "AAAA"):
        refused = desk("bookmarks.list", who=me, query={"label": "a", "cursor": bad})
        assert refused.status == 400 and refused.body["param"] == "cursor", bad
