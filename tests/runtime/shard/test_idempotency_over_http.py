"""Fifty requests at once under one Idempotency-Key, over sockets to a real service; then the store
is opened and counted.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

import serve_app
from runtime.api.outbox import OUTBOX
from runtime.installation import Layout, Secrets
from runtime.shard.idempotency import IDEMPOTENCY
from storage.store import Store, Table
from tests.support.served import Served

TWINS = 50


def at_once(
    service: Served, token: str, method: str, path: str, body: Any, keys: list[str]
) -> list[httpx.Response]:
    """One request per key, all under way together, each on a connection of its own."""

    async def ask() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=len(keys), max_keepalive_connections=len(keys))
        async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as client:
            headers = {"Authorization": f"Bearer {token}"}
            await asyncio.gather(
                *(client.get("/v1/health") for _ in keys)
            )  # every connection is open before the race
            asked = (
                client.request(method, path, json=body, headers={**headers, "Idempotency-Key": key})
                for key in keys
            )
            return list(await asyncio.gather(*asked))

    return asyncio.run(ask())


def stored(service: Served, table: Table) -> list[Any]:
    """The rows of all accounts, read beside the running service."""
    tables, identity = (
        serve_app.registry().tables.values(),
        Layout.load(service.data_dir).identity(0),
    )
    service_key = Secrets.load(service.data_dir / "secrets", create=False).service
    store = Store.open_to_read(
        service.data_dir / "shards/0000", tables, identity=identity, service_key=service_key
    )
    try:
        with store.snapshot() as snapshot:
            return [
                row
                for scope in snapshot.scopes()
                if scope.tenant
                for _, row in snapshot.bind(table, scope).scan()
            ]
    finally:
        store.close()


def events(service: Served, kind: str, resource_ids: set[str]) -> int:
    """How many events of this kind are about these resources."""
    return sum(
        row.kind == kind and row.resource_id in resource_ids for row in stored(service, OUTBOX)
    )


@pytest.mark.parametrize(
    "path", ["/v1/memories", "/v1/memories/raw", "/v1/memories/batch", "/v1/memory-tools/insert"]
)
def test_canonical_twins_make_one_memory_and_get_one_answer(service: Served, path: str) -> None:
    me = service.register(f"{path.replace('/', '-')}@example.com")
    body: dict[str, Any] = {"content": "Ada keeps her violin in the harbour office."}
    body = {"memories": [body]} if path.endswith("batch") else body
    before = len(stored(service, IDEMPOTENCY))
    answers = at_once(service, me, "POST", path, body, ["twin"] * TWINS)
    assert {answer.status_code for answer in answers} <= {201, 202}
    bodies = [
        {name: value for name, value in answer.json().items() if name != "request_id"}
        for answer in answers
    ]
    ids = {each["memory_ids"][0] if "memory_ids" in each else each["id"] for each in bodies}
    assert len(ids) == 1
    ready = [
        each for each, answer in zip(bodies, answers, strict=True) if answer.status_code == 201
    ]
    assert all(each == ready[0] for each in ready)
    assert all("X-Idempotent-Replay" not in answer.headers for answer in answers)
    listed = service.http.get("/v1/memories", headers={"Authorization": f"Bearer {me}"}).json()
    assert [item["id"] for item in listed["items"]] == list(ids)
    assert events(service, "memory.created", ids) == 1
    assert len(stored(service, IDEMPOTENCY)) == before + 1


def test_cached_twins_make_one_collection_and_are_told_to_wait_or_answered_alike(
    service: Served,
) -> None:
    me = service.register("cached@example.com")
    body = {"name": "work", "metadata": {"team": "blue"}}
    answers = at_once(service, me, "POST", "/v1/collections", body, ["twin"] * TWINS)
    waiting = [answer for answer in answers if answer.status_code == 409]
    done = [answer for answer in answers if answer.status_code == 201]
    assert len(waiting) + len(done) == TWINS and done
    assert all(
        int(answer.headers["Retry-After"]) >= 1
        and "still running" in answer.json()["error"]["message"]
        for answer in waiting
    )
    assert len({answer.content for answer in done}) == 1, (
        "a replay is the first answer, byte for byte"
    )
    assert sum("X-Idempotent-Replay" not in answer.headers for answer in done) == 1
    assert len({answer.headers["X-Request-ID"] for answer in answers}) == TWINS
    again = at_once(service, me, "POST", "/v1/collections", body, ["twin"] * 3)
    assert all(
        answer.content == done[0].content and answer.headers["X-Idempotent-Replay"] == "true"
        for answer in again
    )
    listed = service.http.get(
        "/v1/collections?name=work", headers={"Authorization": f"Bearer {me}"}
    ).json()
    assert (
        listed["total_count"] == 1
        and events(service, "collection.created", {done[0].json()["id"]}) == 1
    )


def test_of_twins_that_differ_one_wins(service: Served) -> None:
    me = service.register("differ@example.com")

    async def race() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=service.url, timeout=60, headers={"Authorization": f"Bearer {me}"}
        ) as client:
            bodies = [{"content": f"version {number}"} for number in range(20)]
            return list(
                await asyncio.gather(
                    *(
                        client.post("/v1/memories", json=b, headers={"Idempotency-Key": "k"})
                        for b in bodies
                    )
                )
            )

    answers = asyncio.run(race())
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses[0] in (201, 202) and statuses[1:] == [409] * 19
    assert all(
        answer.headers.get("x-should-retry") == "false"
        for answer in answers
        if answer.status_code == 409
    )
    assert (
        service.http.get("/v1/memories", headers={"Authorization": f"Bearer {me}"}).json()[
            "total_count"
        ]
        == 1
    )


def test_of_many_who_saw_the_same_version_one_may_change_it(service: Served) -> None:
    me = service.register("versions@example.com")
    headers = {"Authorization": f"Bearer {me}"}
    made = service.http.post(
        "/v1/memories", json={"content": "a first version", "wait_for_index": True}, headers=headers
    )
    memory = f"/v1/memories/{made.json()['id']}"
    tag = service.http.get(memory, headers=headers).headers["ETag"]

    async def race() -> list[int]:
        async with httpx.AsyncClient(
            base_url=service.url, timeout=60, headers={**headers, "If-Match": tag}
        ) as client:
            asked = (client.patch(memory, json={"title": f"by {number}"}) for number in range(20))
            return sorted(answer.status_code for answer in await asyncio.gather(*asked))

    assert asyncio.run(race()) == [200] + [412] * 19
    after = service.http.get(memory, headers=headers)
    assert after.json()["version"] == 2 and after.headers["ETag"] == '"2"'


def test_a_list_read_page_by_page_shows_each_lasting_item_once_while_others_come_and_go(
    service: Served,
) -> None:
    me = service.register("pages@example.com")
    headers = {"Authorization": f"Bearer {me}", "Prefer": "respond-async"}
    lasting = []
    for start in range(0, 240, 60):
        batch = {"memories": [{"content": f"lasting {start + n}"} for n in range(60)]}
        lasting += service.http.post("/v1/memories/batch", json=batch, headers=headers).json()[
            "memory_ids"
        ]

    async def story() -> list[str]:
        reading = True
        async with httpx.AsyncClient(base_url=service.url, timeout=60, headers=headers) as client:

            async def come_and_go() -> None:
                while reading:
                    made = await client.post("/v1/memories/raw", json={"content": "fleeting"})
                    await client.delete(f"/v1/memories/{made.json()['id']}")

            writers = [asyncio.create_task(come_and_go()) for _ in range(6)]
            seen, page = [], {"has_more": True, "next_cursor": ""}
            while page["has_more"]:
                page = (
                    await client.get(f"/v1/memories?limit=7&cursor={page['next_cursor']}")
                ).json()
                seen += [item["id"] for item in page["items"]]
            reading = False
            await asyncio.gather(*writers)
            return seen

    seen = asyncio.run(story())
    assert len(seen) == len(set(seen))
    assert [each for each in seen if each in set(lasting)] == lasting[::-1]
