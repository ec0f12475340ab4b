"""The bookmarks, over HTTP in a service of the test's own."""

from __future__ import annotations

from pathlib import Path

from mneme.testing import Harness, check_plugin
from mneme_plugin_bookmarks import plugin


def test_the_contract() -> None:
    assert check_plugin(plugin) == []


def test_what_is_saved_is_listed_checked_and_deleted(tmp_path: Path) -> None:
    with Harness(tmp_path, plugin) as service:
        me = service.register()
        given = {"url": "https://example.org", "label": "reading"}
        key = {"Idempotency_Key": "one"}
        saved = service.request("POST", "/v1/bookmarks", given, who=me, **key).json()
        assert saved["id"].startswith("bmk_") and saved["checked"] is False
        service.settle()
        page = service.request("GET", "/v1/bookmarks?label=reading", who=me).json()
        assert page["items"] == [{**saved, "checked": True}]
        path = f"/v1/bookmarks/{saved['id']}"
        assert service.request("DELETE", path, who=me).status_code == 204
        assert service.request("DELETE", path, who=me).status_code == 404
        assert service.request("GET", "/v1/bookmarks", who=me).json()["total_count"] == 0
        again = service.request("POST", "/v1/bookmarks", given, who=me, **key)
        assert again.status_code == 404, "what was deleted is not told again"


def test_an_account_has_so_many_and_no_more(tmp_path: Path) -> None:
    with Harness(tmp_path, plugin, settings={"bookmarks.per_account_max": 1}) as service:
        me = service.register()
        body = {"url": "https://example.org"}
        answers = [service.request("POST", "/v1/bookmarks", body, who=me) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 409]


def test_a_memory_is_found_by_the_label_of_its_bookmark(tmp_path: Path) -> None:
    with Harness(tmp_path, plugin) as service:
        me = service.register()
        made = [
            service.request("POST", "/v1/memories", {"content": text}, who=me).json()["id"]
            for text in ("Ada keeps bees.", "The garden is in Porto.")
        ]
        service.settle()
        body = {"url": "https://example.org", "label": "holiday", "memory_id": made[1]}
        service.request("POST", "/v1/bookmarks", body, who=me)
        asked = {"query": "holiday", "explain": True}
        (hit,) = service.request("POST", "/v1/search", asked, who=me).json()["results"]
        assert hit["id"] == made[1]
        assert hit["explanation"]["bookmarks.labels"] == 0.4
        alone = {"query": "holiday", "search_type": "bookmarks.labels"}
        found = service.request("POST", "/v1/search", alone, who=me).json()
        assert [hit["id"] for hit in found["results"]] == [made[1]] and not found["degraded"]
