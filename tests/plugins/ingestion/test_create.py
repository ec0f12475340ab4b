"""POST /v1/memories with `infer`: what can be learned is stored, in the shape of a create."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import serve_app
from runtime.api.operation import Reply
from runtime.cluster.batching import (
    BATCHES_UNDER_WAY_MAX,
    BatchingQueue,
    Early,
    pack_replies,
    queue_of,
    unpack_calls,
)
from runtime.inference import Models
from runtime.inference.openai_chat import OpenAiLanguageModel
from tests.support.embedding import WordEmbedder
from tests.support.in_process import InProcess, in_process
from tests.support.shard_harness import ShardHarness
from tests.support.upstream import Upstream, upstream, waits


class Account:
    def __init__(self, service: InProcess):
        self.service, self.token = service, service.register("ada@example.com")

    def create(self, body: dict[str, Any], **headers: str) -> Any:
        return self.service.request("POST", "/v1/memories", body, who=self.token, **headers)

    def get(self, path: str) -> Any:
        return self.service.request("GET", path, who=self.token).json()


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with in_process(tmp_path) as service:
        yield Account(service)


MOVED = {
    "content": "I moved from Lisbon to Oslo in May. What a day!",
    "speaker": "Ada",
    "infer": True,
}


def test_what_was_learned_is_answered(account: Account) -> None:
    answer = account.create(MOVED)
    body = answer.json()
    assert answer.status_code == 201
    assert (body["content"], body["created_count"], body["searchable"]) == (
        MOVED["content"],
        1,
        True,
    )
    assert body["results"][0]["event"] == "ADD" and body["memory_ids"] == [body["id"]]
    assert account.get(body["poll_url"])["result"]["engine"] == "rules"
    again = account.create(MOVED).json()
    assert (again["created_count"], again["skipped_count"], again["memory_ids"]) == (0, 1, [])
    assert [result["event"] for result in again["results"]] == ["NOOP"]


def test_an_update_is_counted(account: Account) -> None:
    account.create({**MOVED, "content": "I live in Lisbon.", "occurred_at": "2023-01-01"})
    body = account.create({**MOVED, "occurred_at": "2023-06-01"}).json()
    assert (body["created_count"], body["updated_count"]) == (1, 1)
    assert [result["event"] for result in body["results"]] == ["UPDATE"]


def test_what_was_learned_has_the_role_it_was_said_in(account: Account) -> None:
    def roles(path: str, body: dict[str, Any]) -> set[str | None]:
        known = {memory["id"] for memory in account.get("/v1/memories")["items"]}
        answer = account.service.request("POST", path, body, who=account.token, Prefer="wait=9")
        assert answer.status_code in (200, 201), answer.text
        made = account.get("/v1/memories")["items"]
        return {memory["role"] for memory in made if memory["id"] not in known}

    process, create = "/v1/memories/process", "/v1/memories"
    said = {"role": "user", "name": "Ada", "content": "I live in Lisbon."}
    told = {"role": "narrator", "content": "My sister Clara plays the cello."}
    context = {"role": "assistant", "content": "I live in Rome."}
    assert roles(process, {"messages": [context, said]}) == {"user"}
    assert roles(process, {"messages": [told]}) == {None}
    assert roles(process, {"content": "I work at Farfetch."}) == {"user"}
    assert roles(create, {"content": "I like green tea.", "infer": True}) == {"user"}
    noted = {"content": "I play the violin.", "infer": True, "role": "tool"}
    assert roles(create, noted) == {"tool"}
    found = account.service.request(
        "POST",
        "/v1/search",
        {"query": "Lisbon", "filters": {"role": {"eq": "user"}}},
        who=account.token,
    ).json()
    assert [hit["content"] for hit in found["results"]][:1] == ["I live in Lisbon."]


def test_nothing_to_learn_is_no_error(account: Account) -> None:
    answer = account.create({"content": "How are you?", "infer": True})
    body = answer.json()
    assert (answer.status_code, body["created_count"], body["results"]) == (201, 0, [])
    assert body["outbox_event_id"].startswith("evt_")


@pytest.mark.parametrize("how", [{"async_dispatch": True}, {}])
def test_it_can_be_left_to_a_job(account: Account, how: dict[str, Any]) -> None:
    answer = account.create({**MOVED, **how}, **({} if how else {"Prefer": "respond-async"}))
    body = answer.json()
    assert answer.status_code == 202 and not body["searchable"]
    assert (
        answer.headers["Location"] == body["status_url"] == body["poll_url"]
        and "Retry-After" in answer.headers
    )
    account.service.until(lambda: account.get(body["poll_url"])["status"] == "completed")
    assert [memory["content"] for memory in account.get("/v1/memories")["items"]] == [
        MOVED["content"]
    ]


def test_a_repeated_key_is_one_ingestion(account: Account) -> None:
    first = account.create({**MOVED, "async_dispatch": True}, Idempotency_Key="k")
    account.service.until(lambda: account.get(first.json()["poll_url"])["status"] == "completed")
    again = account.create({**MOVED, "async_dispatch": True}, Idempotency_Key="k")
    assert (first.status_code, again.status_code) == (202, 201)
    assert again.json()["job_id"] == first.json()["job_id"] and again.json()["created_count"] == 1
    assert account.get("/v1/memories")["total_count"] == 1


def test_process_waits_when_asked_to(account: Account) -> None:
    asked = {"content": "I live in Oslo."}
    waited = account.service.request(
        "POST", "/v1/memories/process", asked, who=account.token, Prefer="wait=30"
    )
    assert waited.status_code == 200 and waited.json()["result"]["memories_created"] == 1
    assert account.get(waited.json()["status_url"])["status"] == "completed"
    for longer in ("wait=100000", "wait=" + "9" * 5_000):
        answer = account.service.request(
            "POST", "/v1/memories/process", asked, who=account.token, Prefer=longer
        )
        assert answer.status_code == 200, longer[:20]
    account.service.embedder.late = True
    late = account.service.request(
        "POST",
        "/v1/memories/process",
        {"content": "I love jazz."},
        who=account.token,
        Prefer="wait=0",
    )
    assert late.status_code == 202
    account.service.embedder.late = False


@pytest.fixture
def pondering(tmp_path: Path) -> Iterator[tuple[ShardHarness, str, Upstream, WordEmbedder]]:
    """A shard whose language model answers when it may, and then with nothing that could be
    used.
    """
    with upstream() as endpoint:
        endpoint.will(waits)
        embedder, model = WordEmbedder(), OpenAiLanguageModel(endpoint.url, None, "slow")
        harness = ShardHarness(tmp_path, serve_app.PLUGINS, Models(embedder, language_model=model))
        yield harness, harness.register(), endpoint, embedder
        endpoint.go_on.set()
        harness.settle()
        harness.run(model.close())
        harness.close()


@pytest.mark.parametrize(
    "neighbour", ["memories.create", "memories.create_raw", "memories.process"]
)
def test_a_neighbour_does_not_wait_for_the_model(
    pondering: tuple[ShardHarness, str, Upstream, WordEmbedder], neighbour: str
) -> None:
    """Through the queues in which calls of a gateway travel to a shard: many share a message."""
    harness, me, endpoint, _ = pondering

    async def send(message: bytes, early: Early) -> bytes:
        return pack_replies(
            await harness.shard.execute_many(
                unpack_calls(message), lambda part: early(pack_replies(part))
            )
        )

    async def work() -> None:
        queues = {
            name: BatchingQueue(name, send, lambda seconds: asyncio.sleep(0, True))
            for name in BATCHES_UNDER_WAY_MAX
        }

        def execute(operation: str, body: dict[str, Any]) -> asyncio.Task[Reply]:
            call = harness.form(operation, body, who=me)
            return asyncio.create_task(
                queues[queue_of(harness.registry.operations[operation], call)].execute(call)
            )

        ingesting = [
            execute("memories.create", MOVED)
            for _ in range(BATCHES_UNDER_WAY_MAX["slow_write"] + 1)
        ]
        beside = execute(neighbour, {"content": "Beside it."})
        assert (await beside).status in (201, 202)
        while len(endpoint.requests) < len(ingesting):
            await asyncio.sleep(0.01)
        assert (await execute(neighbour, {"content": "After it."})).status in (201, 202)
        assert not any(task.done() for task in ingesting)
        endpoint.go_on.set()
        assert {(await task).status for task in ingesting} == {201}

    harness.run(work())


def test_jobs_that_ask_a_model_hold_up_no_other_jobs(
    pondering: tuple[ShardHarness, str, Upstream, WordEmbedder],
) -> None:
    harness, me, endpoint, embedder = pondering
    for _ in range(2 * harness.settings.jobs.at_once):
        harness("memories.process", {"content": "I live in Oslo."}, who=me)
    harness.until(lambda: bool(endpoint.requests))
    embedder.down = True
    late = harness("memories.create", {"content": "It is indexed by a job."}, who=me).body
    embedder.down = False
    assert not late["searchable"]
    harness.until(lambda: harness("memories.get", who=me, id=late["id"]).body["searchable"])
    assert harness("memories.list", who=me).body["total_count"] == 1, "no ingestion has ended"
