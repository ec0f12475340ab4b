"""A memory that was changed often moves with all its versions: exported here, imported there, in
records none of which is too large.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.accounts import limits as account_limits
from plugins.memories import exporting, restoring
from plugins.memories.limits import IMPORT_VERSIONS_MAX
from tests.support.in_process import InProcess

TEXTS = [f"Draft {number} of the letter." for number in range(12)]


@pytest.fixture(scope="module")
def me(here: InProcess) -> str:
    """An account with a memory of many versions, between two of one."""
    token = here.register("ada@example.com")
    for content in ("before", TEXTS[0], "after"):
        here.request("POST", "/v1/memories", {"content": content}, who=token)
    _, letter, _ = here.request("GET", "/v1/memories", who=token).json()["items"]
    for text in TEXTS[1:]:
        answer = here.request("PATCH", f"/v1/memories/{letter['id']}", {"content": text}, who=token)
        assert answer.status_code in (200, 202), answer.text
    here.settle()
    return token


def small(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(exporting, name, value)


def exported(service: InProcess, who: str) -> list[dict[str, Any]]:
    """What is exported of memories, in parts of two records."""
    records, cursor = [], ""
    while cursor is not None:
        part = service.request("GET", f"/v1/account/export/parts?cursor={cursor}", who=who).json()
        records += part["records"]
        cursor = part["next_cursor"]
    return [line for line in records if line["kind"].startswith("memory")]


def history(service: InProcess, who: str) -> list[tuple[int, str, str]]:
    """(version, content, when) of the memory that was changed often."""
    items = service.request("GET", "/v1/memories", who=who).json()["items"]
    (letter,) = (each["id"] for each in items if each["content"] == TEXTS[-1])
    told = service.request("GET", f"/v1/memories/{letter}/history", who=who).json()["items"]
    return [(each["version"], each["content"], each["at"]) for each in told]


@pytest.mark.parametrize(
    "limit", [{"EXPORT_VERSIONS_MAX": 4}, {"EXPORT_VERSIONS_BYTES_MAX": 90}, {}]
)
def test_a_memory_moves_with_all_its_versions(
    here: InProcess,
    there: InProcess,
    me: str,
    monkeypatch: pytest.MonkeyPatch,
    limit: dict[str, int],
) -> None:
    small(monkeypatch, **limit)
    monkeypatch.setattr(account_limits, "EXPORT_RECORDS_PER_PART", 2)
    records = exported(here, me)
    told = [len(line["record"]["history"]) for line in records]
    assert sum(told) == len(TEXTS) + 2
    assert (max(told) < len(TEXTS)) == bool(limit) == (len(records) > 3)
    mine = there.register(f"ada-{len(records)}@elsewhere.example")
    body = b"".join(json.dumps(line).encode() + b"\n" for line in records)
    how = {"who": mine, "Content_Type": "application/x-ndjson"}
    brought = there.request("POST", "/v1/account/import", body, **how).json()
    assert brought["created"] == {
        "memory": 3,
        **({"memory_versions": len(records) - 3} if limit else {}),
    }
    assert history(there, mine) == history(here, me)
    again = there.request("POST", "/v1/account/import", body, **how).json()
    assert set(again["created"].values()) == {0}
    there.settle()
    assert [line["kind"] for line in exported(there, mine)] == [line["kind"] for line in records]


def test_no_record_of_an_export_has_more_versions_than_an_import_takes() -> None:
    assert exporting.EXPORT_VERSIONS_MAX <= IMPORT_VERSIONS_MAX == restoring.IMPORT_VERSIONS_MAX
