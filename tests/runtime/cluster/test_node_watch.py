"""Shards and the nodes they live on: spread, moved when a node is lost, left alone when it comes
back, whoever watches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from runtime.cluster import node_watch, supervisor_actor
from runtime.cluster.node_watch import Home, NodeWatch, NoNodes
from runtime.cluster.nodes import Inspection
from runtime.installation import (
    LayoutError,
    copy_layout,
    make_shared_layout,
    read_shared_layout,
)
from runtime.placement import COPYING, UNDOING, Move, Placement, SharedPlacementTable
from runtime.settings import Settings
from storage.replication import ObjectStore

SHARDS = 4


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


class Room:
    """A cluster that does what it is told. places: node -> what its inspection says; actors: the
    shards that run.
    """

    def __init__(self, *names: str):
        self.places = {name: Inspection(f"host:{name}") for name in names}
        self.actors: set[Home] = set()
        self.opened: set[Home] = set()
        self.restored_at_ms: int | None = None
        self.alone_at_ms = 0

    def alive(self, placement: Placement) -> set[str]:
        return set(self.places)

    def running(self) -> set[Home]:
        return set(self.actors)

    def start(self, home: Home) -> None:
        self.actors.add(home)

    def end(self, home: Home) -> None:
        self.actors.remove(home)

    async def open(self, home: Home) -> None:
        self.opened.add(home)

    async def status(self, home: Home) -> dict[str, Any]:
        if home not in self.actors or home[1] not in self.places:
            return {}
        restored = (
            {}
            if self.restored_at_ms is None
            else {"restored": {"at_ms": self.restored_at_ms, "alone_at_ms": self.alone_at_ms}}
        )
        return {"open": True, "log": {"unshipped_seconds": 0.25}, **restored}

    async def inspect(self, node: str, others: set[str]) -> Inspection:
        return self.places[node]

    def lose(self, node: str) -> Inspection:
        return self.places.pop(node)


class World:
    """A table in an object store, a room, and whoever watches it at the moment."""

    def __init__(self, directory: Path, *nodes: str, **settings: Any):
        given = {
            "object_store.url": f"file://{directory}",
            "cluster.name": "harbour",
            "cluster.node_lost_seconds": 0,
            **settings,
        }
        self.settings = Settings.load(None, given)
        self.objects = ObjectStore(f"file://{directory}").below("harbour")
        make_shared_layout(self.objects, "harbour", SHARDS)
        self.room = Room(*nodes)
        self.watch = self.successor()

    def successor(self) -> NodeWatch:
        self.watch = NodeWatch(self.settings, SharedPlacementTable(self.objects), self.room)
        return self.watch

    def homes(self) -> list[str]:
        return [place.node for place in SharedPlacementTable(self.objects).load().shards]


@on_a_loop
async def test_shards_are_spread_over_the_nodes_and_opened(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    await world.watch.open()
    assert sorted(world.homes()) == ["a", "a", "b", "b"]
    assert world.room.actors == world.room.opened == set(enumerate(world.homes()))
    version = SharedPlacementTable(world.objects).load().version
    await world.watch.step()
    assert SharedPlacementTable(world.objects).load().version == version


@on_a_loop
async def test_a_node_that_joins_gets_the_shards_that_are_new(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    await world.watch.open()
    table = SharedPlacementTable(world.objects)
    table.resize(SHARDS + 2)
    world.room.places["c"] = Inspection("c")
    await world.successor().open()
    assert sorted(world.homes()) == ["a", "a", "b", "b", "c", "c"]
    assert not table.load().slots_of(SHARDS)
    table.resize(SHARDS)
    assert len(world.homes()) == SHARDS
    with pytest.raises(LayoutError, match="Shard 3 holds slots"):
        table.resize(1)


@on_a_loop
async def test_a_node_that_has_the_directory_gets_the_shard(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    world.room.places = {"a": Inspection("host:a"), "b": Inspection("host:b", (0, 1, 2))}
    await world.watch.open()
    assert world.homes() == ["b", "b", "b", "a"]


@on_a_loop
async def test_shards_of_a_lost_node_live_elsewhere_and_stay_there(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", "c")
    await world.watch.open()
    await world.watch.step()
    before = world.homes()
    lost = world.room.lose("b")
    world.room.restored_at_ms = 0
    world.room.alone_at_ms = (time.time_ns() // 1_000_000) + 15_000
    await world.watch.step()
    after = world.homes()
    assert {before[number] for number in range(SHARDS) if before[number] != after[number]} == {
        "b"
    } and "b" not in after
    assert world.room.actors == set(enumerate(after))
    (told,) = [
        each for each in world.watch.report()["restorations"] if each["shard"] == before.index("b")
    ]
    assert told["done"] and told["source"] == "b"
    # It may have gone on until its lease was over, for longer than anybody heard of it.
    assert 15 <= told["behind_seconds_max"] < 75
    world.room.places["b"] = lost
    await world.watch.step(patiently=True)
    assert world.homes() == after


@on_a_loop
async def test_nobody_says_how_much_is_lost_where_a_former_owner_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", **{"durability.outage_writes_may_be_lost": True})
    await world.watch.open()
    world.room.lose("b")
    world.room.restored_at_ms = 0
    await world.watch.step()
    told = world.watch.report()["restorations"]
    assert {(each["done"], each["behind_seconds_max"]) for each in told} == {(True, None)}


@on_a_loop
async def test_what_is_stored_before_it_is_acknowledged_is_never_behind(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", **{"durability.mode": "replicated"})
    await world.watch.open()
    world.room.lose("b")
    world.room.restored_at_ms = 0
    await world.watch.step()
    assert {each["behind_seconds_max"] for each in world.watch.report()["restorations"]} == {0.0}


@on_a_loop
async def test_a_node_that_comes_back_in_time_keeps_its_shards(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", **{"cluster.node_lost_seconds": 3600})
    await world.watch.open()
    before, lost = world.homes(), world.room.lose("b")
    await world.watch.step()
    assert world.homes() == before and [gone["node"] for gone in world.watch.report()["gone"]] == [
        "b"
    ]
    world.room.places["b"] = lost
    await world.watch.step(patiently=True)
    assert world.homes() == before and not world.watch.report()["gone"]


@on_a_loop
async def test_shards_can_be_told_to_wait_for_their_directory(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", **{"cluster.lost_shards": "wait"})
    await world.watch.open()
    before = world.homes()
    world.room.lose("b")
    await world.watch.step()
    assert world.homes() == before
    mine = tuple(number for number, node in enumerate(before) if node == "b")
    world.room.places["e"] = Inspection("host:e", mine)  # the same disk, under another name
    await world.watch.step(patiently=True)
    assert [node for node in world.homes() if node != "a"] == ["e"] * len(mine)


@pytest.mark.parametrize("published", [False, True])
@on_a_loop
async def test_a_successor_goes_on_wherever_the_watch_was_killed(
    tmp_path: Path, published: bool
) -> None:
    world = World(tmp_path, "a", "b")
    await world.watch.open()
    world.room.lose("b")
    if published:  # and killed before it started anything
        SharedPlacementTable(world.objects).change(lambda newest: newest.rehoused({"b"}, ["a"], {}))
    await world.successor().step(patiently=True)
    assert world.homes() == ["a"] * SHARDS
    assert world.room.actors == {(number, "a") for number in range(SHARDS)}


@on_a_loop
async def test_two_that_watch_at_once_do_no_harm(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", "c")
    first, second = world.watch, world.successor()
    await asyncio.gather(first.open(), second.open())
    world.room.lose("c")
    await asyncio.gather(first.step(), second.step())
    assert set(world.homes()) == {"a", "b"} and world.room.actors == set(enumerate(world.homes()))


@on_a_loop
async def test_nodes_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")
    world.room.places = {"a": Inspection("host:/data"), "b": Inspection("host:/data")}
    await world.watch.open()
    (unfit,) = world.watch.report()["unfit"]
    assert "host:/data" in unfit["problem"] and set(world.homes()) == {"a", "b"} - {unfit["node"]}
    world = World(tmp_path / "other", "a")
    world.room.places = {"a": Inspection(problem="Node a has no disk.")}
    with pytest.raises(NoNodes, match="has no disk"):
        await world.watch.open()


@on_a_loop
async def test_a_node_that_could_not_be_inspected_is_inspected_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_watch, "UNFIT_NODE_REST_SECONDS", 0)
    world = World(tmp_path, "a", "b")
    await world.watch.open()
    world.successor()  # it finds the only node that is left too busy to answer
    world.room.lose("b")
    fit, world.room.places["a"] = world.room.places["a"], Inspection(problem="no answer")
    await world.watch.step(patiently=True)
    assert "b" in world.homes() and world.watch.report()["unfit"]
    world.room.places["a"] = fit
    await world.watch.step(patiently=True)
    await world.watch.step(patiently=True)
    assert set(world.homes()) == {"a"} and not world.watch.report()["unfit"]


@on_a_loop
async def test_it_watches_on_after_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_watch, "NODE_WATCH_SECONDS", 0.001)
    world = World(tmp_path, "a")
    faults = [OSError("Ray does not answer")] * 3
    found = world.room.alive

    def alive(placement: Placement) -> set[str]:
        if faults:
            raise faults.pop()
        return found(placement)

    world.room.alive = alive
    watching = asyncio.create_task(world.watch.run())
    async with asyncio.timeout(30):
        while world.homes() != ["a"] * SHARDS:
            await asyncio.sleep(0.01)
    watching.cancel()


@on_a_loop
async def test_a_supervisor_watches_as_soon_as_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever started it may be gone when Ray starts it again."""
    given = {"data_dir": str(tmp_path / "data"), "shards.count": SHARDS}
    world = World(tmp_path / "objects", "a", "b", **given)
    monkeypatch.setattr(supervisor_actor, "RayNodes", lambda *_: world.room)
    monkeypatch.setattr(supervisor_actor, "log_to_file", lambda *_: None)
    supervisor = supervisor_actor.SupervisorActor(world.settings, "serve_app:open_shard")
    async with asyncio.timeout(10):
        while sorted(world.homes()) != ["a", "a", "b", "b"]:
            await asyncio.sleep(0.01)
    await supervisor.drain()


@on_a_loop
async def test_a_supervisor_goes_on_with_moves_that_nobody_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: Any, **__: Any) -> Any:
        raise ValueError("no shard is there")

    given = {"data_dir": str(tmp_path / "data"), "shards.count": SHARDS}
    world = World(tmp_path / "objects", "a", "b", **given)
    monkeypatch.setattr(supervisor_actor, "RayNodes", lambda *_: world.room)
    monkeypatch.setattr(supervisor_actor, "log_to_file", lambda *_: None)
    monkeypatch.setattr("ray.get_actor", nobody)
    table = SharedPlacementTable(world.objects)
    slot = table.load().slots_of(0)[0]
    copied = Move("mv_1", (slot,), 0, 1, COPYING, token="its predecessor's")
    table.change(lambda newest: newest.planned([copied]))
    supervisor = supervisor_actor.SupervisorActor(world.settings, "serve_app:open_shard")
    async with asyncio.timeout(10):
        while table.load().moves[0].state != UNDOING:
            await asyncio.sleep(0.01)
    await supervisor.drain()


@on_a_loop
async def test_no_layout_is_made_where_there_was_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the object store's disk is not mounted."""
    data, given = tmp_path / "data", {"data_dir": str(tmp_path / "data"), "shards.count": SHARDS}
    world = World(tmp_path / "objects", "a", "b", **given)
    monkeypatch.setattr(supervisor_actor, "RayNodes", lambda *_: world.room)
    monkeypatch.setattr(supervisor_actor, "log_to_file", lambda *_: None)
    await world.watch.open()
    layout, running = read_shared_layout(world.objects), set(world.room.actors)
    (tmp_path / "objects").rename(tmp_path / "unmounted")

    async def lay_out() -> None:
        supervisor = supervisor_actor.SupervisorActor(world.settings, "serve_app:open_shard")
        try:
            await supervisor.lay_out()
        finally:
            await supervisor.drain()

    with pytest.raises(LayoutError, match="Is its disk mounted"):
        await lay_out()
    assert world.room.actors == running
    world.room.actors.clear()  # a restart of everything; the node has a copy
    data.mkdir()
    copy_layout(layout, data)
    with pytest.raises(LayoutError, match="Is its disk mounted"):
        await lay_out()
    (tmp_path / "objects").rmdir()
    (tmp_path / "unmounted").rename(tmp_path / "objects")
    await lay_out()
