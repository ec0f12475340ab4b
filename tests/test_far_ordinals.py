"""An account that has had many memories answers as one that has had few, and takes as much: through
a service with two shards, with filters, deletions, a restart and a move to the other shard.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from runtime.api.context import COUNTERS
from runtime.tenancy import slot_of_email
from storage.store import Scope
from tests.support.sharded import Sharded, emails, sharded

AHEAD = (50_000_000, 1_000_000_000, 4_000_000_000)
PLACES, THINGS = ("attic", "garden", "kitchen"), ("key", "lamp", "letter", "clock")
MEMORIES = [
    {
        "content": f"Ada put the {thing} number {number} into the {place}",
        "tags": [place],
        "session_id": f"evening {number % 4}",
        "occurred_at": f"2026-0{1 + number % 9}-03T10:00:00Z",
    }
    for number, (place, thing) in enumerate(
        (place, thing) for place in PLACES for thing in THINGS for _ in range(3)
    )
]
LONG = {
    "content": " ".join(f"The {number}th day was spent in the garden." for number in range(300))
}
QUERIES: list[dict[str, Any]] = [
    {"query": "where is the lamp number 16?"},
    {"query": "what lies in the garden", "filters": {"tags": ["garden"]}},
    {"query": "letter", "filters": {"session_id": "evening 2"}},
    {"query": "the clock of May 2026", "limit": 20},
    {"query": "number 7"},
]


def scope_of(service: Sharded, shard: int, email: str) -> Scope:
    with service.opened[shard].store.snapshot() as snapshot:
        (scope,) = [each for each in snapshot.scopes(slot_of_email(email)) if each.tenant]
    return scope


def set_ahead(service: Sharded, shard: int, email: str, last: int) -> None:
    """Let the account have had so many memories and passages of long ones."""
    scope = scope_of(service, shard, email)

    def work(transaction) -> None:
        for counter in ("memories", "memory_chunks"):
            transaction.bind(COUNTERS, scope).put((counter,), last.to_bytes(8, "big"))

    service.opened[shard].store.write(work)


async def found(service: Sharded, who: str) -> list[Any]:
    """Texts and scores of every query's results."""
    answers = []
    for query in QUERIES:
        answer = await service.call("POST", "/v1/search", query, who=who)
        assert answer.status_code == 200, answer.text
        hits = answer.json()["results"]
        answers.append([(hit["content"], hit["score"]) for hit in hits])
    return answers


def resident_bytes(service: Sharded, shard: int, email: str) -> int:
    store, scope = service.opened[shard].store, scope_of(service, shard, email)
    names = ("vectors", "words", "cues", "chunks", "chunk_runs", "chunk_owners")
    states = [store.residents.peek((f"memory_{name}", scope)) for name in names]
    return sum(state.nbytes for state in states if state is not None)


def test_an_account_answers_and_takes_the_same_however_many_memories_it_had(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            near, far = emails(0, 2, 2)
            tokens = {email: await service.register(email) for email in (near, far)}
            ids: dict[str, list[str]] = {near: [], far: []}
            given = [*MEMORIES, LONG]
            for number, memory in enumerate(given):
                if not number % (1 + len(given) // len(AHEAD)):
                    set_ahead(service, 0, far, AHEAD[len(AHEAD) * number // len(given)])
                for email in (near, far):
                    answer = await service.call("POST", "/v1/memories", memory, who=tokens[email])
                    assert answer.status_code == 201, answer.text
                    ids[email].append(answer.json()["id"])
            await service.idle(0)

            async def compared(shard: int) -> list[Any]:
                answers = await found(service, tokens[near])
                assert all(answers) and await found(service, tokens[far]) == answers
                taken = [
                    resident_bytes(service, at, each) for at, each in ((0, near), (shard, far))
                ]
                assert 0 < taken[1] <= 1.2 * taken[0]
                return answers

            whole = await compared(0)
            for email in (near, far):
                for gone in ids[email][5:20]:
                    path = f"/v1/memories/{gone}"
                    answer = await service.call("DELETE", path, who=tokens[email])
                    assert answer.is_success, answer.text
            left = await compared(0)
            assert left != whole
            await service.restart(0)
            assert await compared(0) == left
            await service.operate("POST", "/moves", {"slots": [slot_of_email(far)], "shard": 1})
            await service.moved()
            assert await compared(1) == left

    asyncio.run(work())
