"""Memories by the thousand: lines in and an outcome for each out, over HTTP and through kills."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from plugins.memories.limits import BATCH_ITEMS_MAX
from tests.support.over_http import over_http
from tests.support.served import Served, served

PATH = "/v1/memories/import"
NDJSON = {"Content-Type": "application/x-ndjson"}
SUMMARY_OF_NOTHING_WRONG = {"failed": 0, "error": None}


def lines_of(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"content": f"Lamp {number} of the pier is lit.", "user_id": "keeper"}
        for number in range(first, first + count)
    ]


def body_of(lines: list[Any]) -> bytes:
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


class Importer:
    """An account of a service."""

    def __init__(self, service: Served):
        self.service = service
        self.headers = {"Authorization": f"Bearer {service.register()}"}

    def send(self, lines: list[Any], key: str | None = None) -> httpx.Response:
        return self.service.http.post(PATH, content=body_of(lines), headers=self._headers(key))

    def outcomes(self, lines: list[Any], key: str | None = None) -> list[dict[str, Any]]:
        answer = self.send(lines, key)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in answer.text.splitlines()]

    def begun(self, lines: list[Any], key: str) -> Iterator[dict[str, Any]]:
        """The outcomes as they come; to leave the iterator is to leave the service."""
        with self.service.http.stream(
            "POST", PATH, content=body_of(lines), headers=self._headers(key)
        ) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)

    def get(self, path: str, **query: Any) -> Any:
        answer = self.service.http.get(path, params=query, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def contents(self) -> list[str]:
        """Of all memories, oldest first."""
        found: list[str] = []
        query: dict[str, Any] = {"limit": 100}
        while True:
            page = self.get("/v1/memories", **query)
            found += [memory["content"] for memory in page["items"]]
            if not page["has_more"]:
                return found[::-1]
            query["cursor"] = page["next_cursor"]

    def credits(self) -> int:
        return self.get("/v1/usage")["credits"]["used"]

    def _headers(self, key: str | None) -> dict[str, str]:
        return {**self.headers, **NDJSON, **({"Idempotency-Key": key} if key else {})}


@pytest.fixture
def account(service: Served) -> Importer:
    return Importer(service)


def test_each_line_has_its_outcome_in_order_and_each_memory_is_found(account: Importer) -> None:
    count = 2 * BATCH_ITEMS_MAX + 50
    *outcomes, last = account.outcomes(lines_of(count))
    assert [outcome["line"] for outcome in outcomes] == list(range(1, count + 1))
    assert {outcome["status"] for outcome in outcomes} == {"created"}
    assert last == {"summary": {"lines": count, "created": count, **SUMMARY_OF_NOTHING_WRONG}}
    sent = [line["content"] for line in lines_of(count)]
    assert account.contents() == sent
    for place in (0, BATCH_ITEMS_MAX, count - 1):
        memory = account.get(f"/v1/memories/{outcomes[place]['id']}")
        assert (memory["content"], memory["user_id"]) == (sent[place], "keeper")
    assert account.credits() == count
    found = account.service.http.post(
        "/v1/search", json={"query": "lamp 137 of the pier"}, headers=account.headers
    ).json()
    assert found["results"][0]["id"] == outcomes[137]["id"]


def test_what_is_no_memory_fails_alone(account: Importer) -> None:
    lines = lines_of(BATCH_ITEMS_MAX + 20)
    wrong = {3: {}, 7: {"content": "  "}, 110: {"content": "x", "importance": 7}}
    for place, line in wrong.items():
        lines[place] = line
    lines[50] = {"content": "Elsewhere.", "collection_id": "nope"}
    *outcomes, last = account.outcomes(lines)
    failed = {outcome["line"] - 1: outcome for outcome in outcomes if outcome["status"] == "failed"}
    assert set(failed) == {*wrong, 50}
    for place in wrong:
        assert failed[place]["error"]["code"] == "validation_error"
        assert failed[place]["id"] is None
    assert "content" in failed[3]["error"]["message"]
    assert "importance" in failed[110]["error"]["message"]
    assert failed[50]["error"]["code"] == "collection_not_found"
    created = len(lines) - 4
    assert last["summary"] == {
        "lines": len(lines), "created": created, "failed": 4, "error": None,
    }  # fmt: skip
    assert len(account.contents()) == account.credits() == created


def test_another_accounts_collection_takes_nothing_in(account: Importer, service: Served) -> None:
    stranger = Importer(service)
    theirs = service.http.post(
        "/v1/collections", json={"name": "theirs"}, headers=stranger.headers
    ).json()["id"]
    lines = lines_of(BATCH_ITEMS_MAX + 10)
    lines[5] = {"content": "Mine in theirs.", "collection_id": theirs}
    *outcomes, last = account.outcomes(lines)
    assert outcomes[5]["error"]["code"] == "permission_denied"
    assert (last["summary"]["created"], last["summary"]["error"]) == (10, None)
    assert stranger.contents() == []
    assert len(account.contents()) == account.credits() == 10


def test_a_body_that_is_no_json_is_refused_before_anything_is_stored(account: Importer) -> None:
    answer = account.send([*lines_of(2 * BATCH_ITEMS_MAX), b'{"content": "cut'])
    assert answer.status_code == 400
    assert f"Line {2 * BATCH_ITEMS_MAX + 1}:" in answer.json()["error"]["message"]
    array = account.send([{"content": "one"}, b"", b"[1]"])
    assert array.status_code == 400
    assert "Line 2: it must be a JSON object" in array.json()["error"]["message"]
    plain = account.service.http.post(
        PATH, content=body_of(lines_of(1)), headers={**account.headers, "Content-Type": "text/csv"}
    )
    assert plain.status_code == 400
    assert "application/x-ndjson" in plain.json()["error"]["message"]
    assert account.send([]).status_code in (400, 422)
    assert account.contents() == []
    assert account.credits() == 0


def test_a_whole_array_is_taken_too(account: Importer) -> None:
    answer = account.service.http.post(
        PATH, json={"memories": lines_of(3)}, headers=account.headers
    )
    assert [json.loads(line).get("line") for line in answer.text.splitlines()] == [1, 2, 3, None]


def test_an_import_that_its_client_left_goes_on_under_its_key(account: Importer) -> None:
    lines = lines_of(6 * BATCH_ITEMS_MAX)
    begun = account.begun(lines, "pier")
    first = list(itertools.islice(begun, BATCH_ITEMS_MAX))
    begun.close()
    answers = iter(lambda: account.send(lines, "pier"), None)
    # Until the service has noticed that nobody listens, it is busy with the first.
    answer = next(answer for answer in answers if answer.status_code != 409)
    *outcomes, last = [json.loads(line) for line in answer.text.splitlines()]
    assert outcomes[:BATCH_ITEMS_MAX] == first
    assert last["summary"]["created"] == len(lines)
    assert account.contents() == [line["content"] for line in lines]
    assert account.credits() == len(lines)
    assert account.outcomes(lines, "pier") == [*outcomes, last]
    assert account.send(lines_of(3), "pier").status_code in (409, 422)
    assert account.credits() == len(account.contents()) == len(lines)


def test_other_lines_under_a_key_are_refused_also_where_the_first_were_broken_off(
    account: Importer,
) -> None:
    lines = lines_of(6 * BATCH_ITEMS_MAX)
    begun = account.begun(lines, "pier")
    next(begun)
    begun.close()
    answers = iter(lambda: account.send(lines_of(3, first=7), "pier"), None)
    busy = "still running"
    answer = next(each for each in answers if busy not in each.text)
    assert answer.status_code == 409, answer.text
    assert "Lamp 7 of the pier is lit." not in account.contents()[7 + 1 :]


def test_an_import_goes_on_after_a_kill(tmp_path: Path) -> None:
    lines = lines_of(8 * BATCH_ITEMS_MAX)
    with served(tmp_path / "data") as service:
        account = Importer(service)
        begun = account.begun(lines, "pier")
        told = list(itertools.islice(begun, 2 * BATCH_ITEMS_MAX))
        service.kill()
        with pytest.raises(httpx.TransportError):
            list(begun)
    with served(tmp_path / "data") as service:
        account.service = service
        before = account.contents()
        assert before[: len(told)] == [line["content"] for line in lines[: len(told)]]
        assert len(before) < len(lines)
        *outcomes, last = account.outcomes(lines, "pier")
        assert outcomes[: len(told)] == told
        assert last["summary"] == {
            "lines": len(lines), "created": len(lines), **SUMMARY_OF_NOTHING_WRONG,
        }  # fmt: skip
        assert account.contents() == [line["content"] for line in lines]
        assert account.credits() == len(lines)


def test_it_stops_where_the_room_ends_and_goes_on_where_there_is_more(tmp_path: Path) -> None:
    lines = lines_of(7 * BATCH_ITEMS_MAX)
    with over_http(tmp_path, tiers__enterprise_text_bytes=8_000) as service:
        token = service.register("ada@example.com")
        headers = {"Authorization": f"Bearer {token}", **NDJSON, "Idempotency-Key": "pier"}

        def imported() -> list[dict[str, Any]]:
            answer = service.http.post(PATH, content=body_of(lines), headers=headers)
            assert answer.status_code == 200, answer.text
            return [json.loads(line) for line in answer.text.splitlines()]

        *outcomes, last = imported()
        assert last["summary"]["error"]["code"] == "quota_exceeded"
        assert (last["summary"]["failed"], last["summary"]["lines"]) == (0, len(lines))
        assert [outcome["line"] for outcome in outcomes] == list(range(1, len(outcomes) + 1))
        assert {outcome["status"] for outcome in outcomes} == {"created"}
        stored = service.get("/v1/usage", token).json()["credits"]["used"]
        assert 0 < last["summary"]["created"] == len(outcomes) == stored < len(lines)
        large = {"content": "Every lamp of the pier is lit. " * 300}
        refused = service.http.post(
            PATH, content=body_of([large]), headers={**headers, "Idempotency-Key": "large"}
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "quota_exceeded")
        owner = {"Authorization": headers["Authorization"]}
        service.http.delete(f"/v1/memories/{outcomes[0]['id']}", headers=owner)
        again = imported()
        assert [outcome["id"] for outcome in again[1 : len(outcomes)]] == [
            outcome["id"] for outcome in outcomes[1:]
        ]
