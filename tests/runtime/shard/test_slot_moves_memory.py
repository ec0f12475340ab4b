"""What is in memory of a slot that moves away and comes back, and what is beside its store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from runtime.errors import Moved, Unavailable
from runtime.shard import slot_moves
from runtime.tenancy import slot_of_email
from storage.indexes import tenants_known
from storage.indexes.kept import DIRECTORY
from storage.indexes.vectors import space as vectors_space
from storage.store import Keyring, Scope, Store
from tests.support.sharded import Sharded, emails, sharded

FACTS = 12


async def by_meaning(service: Sharded, token: str, query: str) -> list[str]:
    body = {"query": query, "search_type": "vector"}
    answer = await service.call("POST", "/v1/search", body, who=token)
    assert answer.status_code == 200, answer.text
    return [each["content"] for each in answer.json()["results"]]


async def in_memory(service: Sharded) -> tuple[int, str, str]:
    """An account of shard 0 whose vectors are in memory: its slot, its token, and the path of one
    of its memories.
    """
    (email,) = emails(0, 2, 1)
    token = await service.register(email)
    for number in range(FACTS):
        answer = await service.remember(token, f"fact number {number} of {number * 7}")
        assert answer.status_code == 201, answer.text
    listed = await service.call("GET", "/v1/memories?limit=100", who=token)
    await by_meaning(service, token, "fact number 3")
    return slot_of_email(email), token, f"/v1/memories/{listed.json()['items'][5]['id']}"


def test_a_slot_that_comes_back_is_answered_from_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its erasure was broken off once all rows were gone."""
    monkeypatch.setattr(vectors_space, "KEPT_MIN", 4)
    shred, refused = Keyring.shred, list[bytes]()

    def refused_once(keyring: Keyring, scope: bytes) -> bool:
        if not refused:
            refused.append(scope)
            raise Unavailable("Too many writes are waiting.")
        return shred(keyring, scope)

    async def work() -> None:
        async with sharded(tmp_path) as service:
            slot, token, path = await in_memory(service)
            source = service.opened[0]
            monkeypatch.setattr(Keyring, "shred", refused_once)
            await service.operate("POST", "/moves", {"slots": [slot], "shard": 1})
            await service.moved()
            assert refused and not service.rows(0, slot)
            assert source.store.residents.bytes_of(Scope(slot, 1)) == 0
            assert not list((source.directory / DIRECTORY).glob("*"))

            changed = {"content": "zebra crossing at noon"}
            assert (await service.call("PATCH", path, changed, who=token)).status_code == 200
            looked = list[str]()

            def while_it_comes(store: Store, of: Collection[int], *, files: bool) -> set[Scope]:
                if store is source.store and slot in of and not files:
                    with pytest.raises(Moved):  # nobody may ask before this is forgotten
                        source.parts.gate.check(slot)
                    looked.append("closed")
                return tenants_known(store, of, files=files)

            monkeypatch.setattr(slot_moves, "tenants_known", while_it_comes)
            await service.operate("POST", "/moves", {"slots": [slot], "shard": 0})
            await service.moved()
            assert looked == ["closed"]
            assert (await by_meaning(service, token, "zebra crossing"))[0] == changed["content"]

    asyncio.run(work())


def test_what_was_in_memory_of_an_earlier_stay_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where it was not forgotten when the slot left."""

    def none_where_it_leaves(store: Store, of: Collection[int], *, files: bool) -> set[Scope]:
        return set() if files else tenants_known(store, of, files=files)

    async def work() -> None:
        async with sharded(tmp_path) as service:
            slot, token, path = await in_memory(service)
            monkeypatch.setattr(slot_moves, "tenants_known", none_where_it_leaves)
            await service.operate("POST", "/moves", {"slots": [slot], "shard": 1})
            await service.moved()
            assert service.opened[0].store.residents.bytes_of(Scope(slot, 1)) > 0
            changed = {"content": "zebra crossing at noon"}
            await service.call("PATCH", path, changed, who=token)
            await service.operate("POST", "/moves", {"slots": [slot], "shard": 0})
            await service.moved()
            assert (await by_meaning(service, token, "zebra crossing"))[0] == changed["content"]

    asyncio.run(work())
