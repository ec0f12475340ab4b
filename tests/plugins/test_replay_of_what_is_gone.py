"""A repeated Idempotency-Key whose answer was about a record that has been deleted since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.in_process import InProcess, in_process


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(Path(tmp_path_factory.mktemp("replay"))) as service:
        yield service


def ask(
    service: InProcess, me: str, method: str, path: str, body: Any = None, key: str | None = None
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return service.request(method, path, body, who=me, **headers)


def made(service: InProcess, me: str, path: str, body: dict[str, Any]) -> str:
    answer = ask(service, me, "POST", path, body)
    assert answer.is_success, answer.text
    return answer.json()["id"]


def test_a_change_of_a_memory_is_not_repeated_once_it_is_deleted(service: InProcess) -> None:
    me = service.register("changed@example.com")
    memory = made(service, me, "/v1/memories", {"content": "the safe opens with 4711"})
    path, change = f"/v1/memories/{memory}", {"content": "the safe opens with 0815"}
    first = ask(service, me, "PATCH", path, change, "change")
    again = ask(service, me, "PATCH", path, change, "change")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    gone = ask(service, me, "DELETE", path, key="delete")
    repeated = ask(service, me, "PATCH", path, change, "change")
    assert repeated.status_code == 404
    assert "0815" not in repeated.text
    # That a deletion was done is repeated: nothing that it names could be read even then.
    deleted = ask(service, me, "DELETE", path, key="delete")
    assert (deleted.status_code, deleted.content) == (gone.status_code, gone.content)
    assert deleted.headers["X-Idempotent-Replay"] == "true"


def test_an_answer_that_rests_on_a_deleted_memory_is_not_repeated(service: InProcess) -> None:
    me = service.register("asking@example.com")
    told = {"content": "Mira Anand's violin is from Cremona.", "wait_for_index": True}
    memory = made(service, me, "/v1/memories", told)
    question = {"query": "Where is Mira Anand's violin from?"}
    answer = ask(service, me, "POST", "/v1/search/reason", question, "why")
    assert memory in answer.text
    again = ask(service, me, "POST", "/v1/search/reason", question, "why")
    assert again.content == answer.content
    ask(service, me, "DELETE", f"/v1/memories/{memory}")
    repeated = ask(service, me, "POST", "/v1/search/reason", question, "why")
    assert repeated.status_code == 404
    assert "Cremona" not in repeated.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/auth/api-keys", {"name": "for a while"}),
        ("/v1/webhooks", {"url": "https://93.184.215.14/", "events": ["memory.created"]}),
        ("/v1/collections", {"name": "Violins"}),
    ],
)
def test_a_record_that_was_deleted_is_not_made_again(
    service: InProcess, path: str, body: dict[str, Any]
) -> None:
    me = service.register(f"{path.rpartition('/')[2]}@example.com")
    first = ask(service, me, "POST", path, body, "make")
    record = first.json()["id"]
    assert ask(service, me, "POST", path, body, "make").content == first.content
    assert ask(service, me, "DELETE", f"{path}/{record}").is_success
    repeated = ask(service, me, "POST", path, body, "make")
    assert repeated.status_code == 404, repeated.text
    assert ask(service, me, "GET", path).json()["total_count"] == (path == "/v1/collections")
