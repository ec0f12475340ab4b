"""Directories of a shard on several nodes: made, opened, restored, or set aside, and never two of
them served.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import serve_app
from runtime.api.operation import Call
from runtime.cli import admin_storage
from runtime.cli.backup import BackupError
from runtime.cli.doctor import ownership
from runtime.cli.shipped_log import shipped_log
from runtime.cluster import CannotOpen
from runtime.cluster.actors import ShardActor
from runtime.cluster.nodes import look_around
from runtime.cluster.shard_home import SET_ASIDE, held_shards, open_at_home, set_aside
from runtime.inference import Models, load_language_model
from runtime.installation import (
    Layout,
    LayoutError,
    Secrets,
    copy_layout,
    make_shared_layout,
    shard_directory,
    shared_objects,
)
from runtime.placement import Place, Placement, PlacementTable, SlotGate
from runtime.settings import NODE_VARIABLE, Settings
from runtime.shard import Shard
from runtime.tenancy import slot_of_email
from storage.replication import Superseded
from tests.support.embedding import WordEmbedder
from tests.support.leases import waited_out
from tests.support.several_nodes import SECRETS
from tests.support.worlds import settings


@pytest.fixture
def given(tmp_path: Path) -> Settings:
    """Of an installation on several nodes, whose layout is made."""
    where = {
        "object_store__url": f"file://{tmp_path}/objects",
        "cluster__name": "harbour",
        "durability__mode": "replicated",
    }
    found = settings(
        data_dir=str(tmp_path / "own"),
        **where,
        **{name.replace(".", "__"): value for name, value in SECRETS.items()},
    )
    make_shared_layout(shared_objects(found), "harbour", 1)
    PlacementTable.of(found).change(lambda newest: newest.placed({0: Place("a")}))
    return found


class Node:
    """One shard's directory on one node, in this process."""

    def __init__(self, given: Settings, data_dir: Path):
        self.settings = given.on_node({NODE_VARIABLE: str(data_dir)})
        data_dir.mkdir(exist_ok=True)
        layout = make_shared_layout(shared_objects(given), "harbour", 1)
        copy_layout(layout, data_dir)
        self.layout = layout

    async def make(self) -> Shard:
        models = Models(WordEmbedder(), load_language_model(self.settings))
        directory, gate = (
            shard_directory(self.settings.data_dir, 0),
            SlotGate(0, PlacementTable.of(self.settings)),
        )
        return Shard(
            directory,
            serve_app.registry(),
            self.settings,
            models,
            self.layout.identity(0),
            Secrets.of(self.settings),
            gate,
        )

    async def open(self) -> Shard:
        with waited_out():
            return await open_at_home(self.settings, 0, self.make)


async def register(shard: Shard, number: int) -> int:
    body = {
        "email": f"user{number}@example.com",
        "password": "correct horse battery staple",
        "full_name": "Ada",
    }
    operation = shard.registry.operations["auth.register"]
    slot = slot_of_email(body["email"])
    call = Call(
        operation.name,
        slot,
        1_790_000_000_000 + number,
        bytes([number] * 32),
        f"r{number}",
        body=operation.body(**body),
    )
    return (await shard.execute(call)).status


def accounts(shard: Shard) -> int:
    with shard.store.snapshot() as snapshot:
        return sum(1 for slot in snapshot.slots() for _ in snapshot.scopes(slot))


def test_a_lost_directory_is_restored_elsewhere_and_set_aside_when_it_comes_back(
    given: Settings, tmp_path: Path
) -> None:
    async def work() -> None:
        first = await Node(given, tmp_path / "a").open()
        assert first.restored is None
        for number in range(3):
            assert await register(first, number) == 201
        found = accounts(first)
        await first.close()
        again = await Node(given, tmp_path / "a").open()  # its node came back in time
        assert again.restored is None and accounts(again) == found

        second = await Node(given, tmp_path / "b").open()  # it did not
        assert second.restored is not None and accounts(second) == found
        assert (await second.status())["restored"]["sequence"] == second.restored.sequence
        assert await register(second, 7) == 201
        await again.close()

        third = await Node(
            given, tmp_path / "a"
        ).open()  # the placement had it come back later, when it was overtaken
        assert third.restored is not None and accounts(third) == accounts(second)
        (kept,) = (tmp_path / "a" / SET_ASIDE).iterdir()
        assert (kept / "data.mdb").exists()
        await second.close()
        with pytest.raises(Superseded):
            await (await Node(given, tmp_path / "b").make()).open(create=False)
        await third.close()

    asyncio.run(work())


def test_only_the_node_of_the_placement_opens_a_shard(given: Settings) -> None:
    actor = ShardActor(given, 0, "serve_app:open_shard", "b")
    with pytest.raises(CannotOpen, match="Shard 0 lives on node a by now, not on node b"):
        asyncio.run(actor.open())
    assert not held_shards(given.data_dir)


def test_a_node_says_what_it_holds_and_sets_aside_what_lives_elsewhere(
    given: Settings, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv(NODE_VARIABLE, str(tmp_path / "a"))

    async def work() -> None:
        await (await Node(given, tmp_path / "a").open()).close()

    asyncio.run(work())
    found = look_around(given, "a", {"a", "b"})
    assert (found.shards, found.problem) == ((0,), "") and found.place.endswith(str(tmp_path / "a"))
    PlacementTable.of(given).change(lambda newest: newest.placed({0: Place("b")}))
    assert look_around(given, "a", {"a"}).shards == (
        0,
    )  # b is not there, so this may be the newest that there is
    assert look_around(given, "a", {"a", "b"}).shards == ()
    assert len(list((tmp_path / "a" / SET_ASIDE).iterdir())) == 1


def test_a_directory_in_use_is_not_set_aside(given: Settings, tmp_path: Path) -> None:
    async def work() -> None:
        shard = await Node(given, tmp_path / "a").open()
        assert set_aside(tmp_path / "a", 0) is None and held_shards(tmp_path / "a") == [0]
        await shard.close()

    asyncio.run(work())


def test_a_node_that_does_not_belong_is_named(
    given: Settings, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("MNEME_SECRETS__PEPPER", "33" * 32)
    assert (
        look_around(given, "a", {"a"}).problem
        == "The environment of node a has another secret pepper than the settings of the service."
    )
    monkeypatch.delenv("MNEME_SECRETS__PEPPER")
    Layout.load_or_create(given.data_dir, 1)
    assert "holds data of another installation" in look_around(given, "a", {"a"}).problem


def test_a_directory_of_a_node_is_not_served_alone(given: Settings, tmp_path: Path) -> None:
    copy_layout(make_shared_layout(shared_objects(given), "harbour", 1), tmp_path / "a")
    with pytest.raises(LayoutError, match="placement is missing"):
        PlacementTable(tmp_path / "a").load()


def test_the_operator_s_commands_know_that_a_node_has_some_shards_only(
    given: Settings, tmp_path: Path
) -> None:
    node = Node(given, tmp_path / "a")
    PlacementTable.of(given).resize(2)

    async def work() -> None:
        shard = await node.open()
        await register(shard, 1)
        await shard.close()

    asyncio.run(work())
    assert admin_storage.verify(Namespace(repair=False), node.settings) == 0
    for found in (ownership(node.settings), shipped_log(node.settings)):
        assert found.verdict == "ok" and "every shard" in found.what, found.what
    with pytest.raises(BackupError, match="object store is the backup"):
        admin_storage.back_up(Namespace(directory=tmp_path / "backup"), node.settings)


def test_the_placement_of_several_nodes_is_published_once(given: Settings) -> None:
    first, second = PlacementTable.of(given), PlacementTable.of(given)
    seen: list[Placement] = []

    def late(newest: Placement) -> Placement:
        seen.append(newest)
        if len(seen) == 1:
            first.change(lambda found: found.resized(2))
        return newest.placed({0: Place("c")})

    placement = second.change(late)
    assert [found.version for found in seen] == [1, 2] and placement.version == 3
    assert [place.node for place in first.load().shards] == ["c", ""]
    assert PlacementTable.of(given).load() == placement
