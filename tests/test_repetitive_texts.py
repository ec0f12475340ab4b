"""Files and texts of nothing but marks are taken like any other, and nobody else waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.served import Served, served

ANSWERED_SECONDS_MAX = 10
SEARCHABLE_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(Path(tmp_path_factory.mktemp("repetitive") / "data")) as running:
        yield running


@pytest.fixture(scope="module")
def http(service: Served) -> Iterator[httpx.Client]:
    with client_of(service, "ada@example.com") as client:
        yield client


def client_of(service: Served, email: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {service.register(email)}"}
    return httpx.Client(base_url=service.url, headers=headers, timeout=ANSWERED_SECONDS_MAX)


def meanwhile(service: Served, others: httpx.Client, path: str, work: Any) -> httpx.Response:
    """The answer to this work, while others ask for this path and for the service's health, at
    least once each.
    """
    with ThreadPoolExecutor(1) as threads:
        answer: Future[httpx.Response] = threads.submit(work)
        while True:
            over = answer.done()
            assert (
                httpx.get(f"{service.url}/v1/health", timeout=ANSWERED_SECONDS_MAX).status_code
                == 200
            )
            assert others.get(path).status_code == 200
            if over:
                return answer.result()


def test_a_file_of_empty_comments_is_taken_like_any_other(
    service: Served, http: httpx.Client
) -> None:
    form = {"file": ("a.txt", b"<!---->" * 40 + b"x")}
    answer = meanwhile(
        service, http, "/v1/documents", lambda: http.post("/v1/documents/upload", files=form)
    )
    assert answer.status_code == 202, answer.text


def test_a_memory_of_marks_alone_becomes_searchable_and_a_neighbour_reads_on(
    service: Served, http: httpx.Client
) -> None:
    with client_of(service, "grace@example.com") as neighbour:
        memory = {"content": "!" * 100_000}
        answer = meanwhile(
            service, neighbour, "/v1/memories", lambda: http.post("/v1/memories/raw", json=memory)
        )
        assert answer.status_code in (201, 202), answer.text
        address = f"/v1/memories/{answer.json()['id']}"
        deadline = time.monotonic() + SEARCHABLE_SECONDS_MAX
        while time.monotonic() < deadline:
            if meanwhile(service, neighbour, "/v1/memories", lambda: http.get(address)).json()[
                "searchable"
            ]:
                return
    raise AssertionError("the memory does not become searchable")
