"""A running service is given another model: what a start without a word about it says, and what
becomes of searches and memories when the process is killed while it embeds anew.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.checkpoints import save_checkpoint
from tests.support.commands import admin
from tests.support.served import Served, refusal, served

EMAIL = "ada@example.com"
THINGS = ("bread", "lighthouse", "violin", "garden", "ferry", "kettle", "orchard", "glove")
TEXTS = [f"{THINGS[i % 8]} and {THINGS[i // 8 % 8]} number {i}" for i in range(400)]
QUERIES = ("violin garden", "a glove by the kettle", "number 17", "ferry to the lighthouse")


def store(service: Served, token: str, texts: list[str]) -> None:
    for start in range(0, len(texts), 100):
        answer = service.http.post(
            "/v1/memories/batch",
            json={"memories": [{"content": text} for text in texts[start : start + 100]],
                  "wait_for_index": True},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        assert answer.status_code in (201, 202, 207), answer.text


def search(service: Served, token: str, query: str, kind: str = "vector") -> list[str]:
    answer = service.http.post(
        "/v1/search",
        json={"query": query, "search_type": kind, "relevance": "all"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert not body["degraded"] and body["results"], body
    return [hit["content"] for hit in body["results"]]


@pytest.mark.long
def test_a_service_killed_while_it_embeds_anew_goes_on_and_ends_as_if_never_another(
    tmp_path: Path,
) -> None:
    save_checkpoint(tmp_path / "a", "bert", words=THINGS, seed=1)
    save_checkpoint(tmp_path / "b", "xlm-roberta", words=THINGS, seed=2)
    data = tmp_path / "data"
    of_a = {"embedder__model_path": tmp_path / "a"}
    of_b = {"embedder__model_path": tmp_path / "b"}
    both = {**of_b, "previous_embedder__backend": "minilm",
            "previous_embedder__model_path": tmp_path / "a"}  # fmt: skip
    with served(data, **of_a) as service:
        token = service.register(EMAIL)
        store(service, token, TEXTS)
        before = [search(service, token, query) for query in QUERIES]
    refused = refusal(data, **{name.replace("__", "."): value for name, value in of_b.items()})
    assert "mneme admin re-embed" in refused and "previous_embedder" in refused

    with served(data, **both) as service:
        assert [search(service, token, query) for query in QUERIES] == before
        assert admin("re-embed", data, "--no-wait", service=service)[0] == 0
        service.kill()
    with served(data, **both) as service:
        failed: list[BaseException] = []
        done = threading.Event()

        def ask() -> None:
            try:
                while not done.is_set():
                    for query in QUERIES:
                        search(service, token, query)
            except BaseException as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        status, told, _ = admin("re-embed", data, service=service)
        done.set()
        asking.join()
        assert not failed and status == 0 and "1 accounts are done." in told
        after = [search(service, token, query) for query in QUERIES]
        hybrid = [search(service, token, query, "hybrid") for query in QUERIES]
        assert after != before
    with served(data, **of_b) as service:
        assert [search(service, token, query) for query in QUERIES] == after
    with served(tmp_path / "fresh", **of_b) as service:
        token = service.register(EMAIL)
        store(service, token, TEXTS)
        assert [search(service, token, query) for query in QUERIES] == after
        assert [search(service, token, query, "hybrid") for query in QUERIES] == hybrid
