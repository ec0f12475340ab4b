"""Machines, the shards on them, and messages between them."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from runtime.api.plugin import Registry
from runtime.cluster.node_watch import Home, NodeWatch
from runtime.cluster.nodes import Inspection
from runtime.cluster.shard_home import open_at_home, set_strangers_aside
from runtime.cluster.supervisor import Supervisor
from runtime.errors import Unavailable
from runtime.installation import FORMAT_VERSION, Secrets, shard_directory
from runtime.placement import Placement, PlacementTable, SlotGate
from runtime.settings import Settings
from runtime.shard import Shard, StorageFailed
from storage.store import Identity, StoreError
from tests.control_plane.hub import Hub, Loop, Machine
from tests.control_plane.objects import LATE_SECONDS_MAX, Line

HEAD = "head"  # who knows which machines are there
ASKED_SECONDS_MAX, UNHEARD_SECONDS = 8.0, 1.0
RESTARTED_SECONDS = 0.5
RATES = (0.96, 1.04)  # two clocks differ by less than a lease allows for
AHEAD_SECONDS_MAX = 90.0
OVERTAKEN_BY_MAX = 40  # messages


class Process:
    """A shard on a machine, from the start of its process to its end."""

    def __init__(self, world: World, home: Home):
        self.world, self.home = world, home
        self.machine = world.machine(home[1])
        self.shard: Shard | None = None
        self.loop: Loop | None = None
        self.fails_with: type[StoreError] | None = None
        world.hub.spawn(self.machine, self._run)

    def _run(self) -> None:
        self.loop = Loop(self.world.hub, self.machine)
        self.loop.run(self._serve())

    async def _serve(self) -> None:
        number, node = self.home
        settings = self.world.settings_on(node)

        async def make() -> Shard:
            identity = Identity(
                str(settings.cluster.name), number, self.world.shards, 4_096, FORMAT_VERSION
            )
            gate = SlotGate(number, await asyncio.to_thread(PlacementTable.of, settings))
            directory = shard_directory(settings.data_dir, number)
            return Shard(
                directory, self.world.registry, settings, None, identity, self.world.secrets, gate
            )

        try:
            shard = await open_at_home(settings, number, make)
        except (StoreError, Unavailable):
            await asyncio.sleep(RESTARTED_SECONDS)
            return self.end()
        commit = shard.store.write

        def write(work: Any) -> Any:
            failing, self.fails_with = self.fails_with, None
            if failing is None:
                return commit(work)
            raise failing("the disk of this machine fails")

        shard.store.write = write  # type: ignore[method-assign]
        self.shard = shard
        await shard.until_fenced()
        self.end()

    def end(self) -> None:
        """Nothing of it goes on; what is on its disk is there for the next one."""
        if not self.machine.dead:
            self.machine.dead = True
            self.world.processes.pop(self.home, None)
            self.world.gone.append(self)
            number, node = self.home
            self.world.renew(shard_directory(self.world.settings_on(node).data_dir, number))

    def do(self, work: Callable[[Shard], Awaitable[Any]], told: Callable[..., None]) -> None:
        """Have it do something; told: what it gave, or what it raised."""

        async def run() -> None:
            assert self.shard is not None
            try:
                answer, failed = await work(self.shard), None
            except StorageFailed as fault:
                answer, failed = None, fault
            except Exception as raised:
                answer, failed = None, raised
            if isinstance(failed, StorageFailed):
                return self.end()
            await asyncio.sleep(self.world.line.seconds())
            told(answer, failed)

        assert self.loop is not None
        self.loop.call_soon_threadsafe(lambda: self.loop and self.loop.create_task(run()))


class World:
    """processes: those that run, by where they live; nodes: names of the machines; down: those
    without power.
    """

    def __init__(
        self, hub: Hub, line: Line, settings: Settings, registry: Registry, secrets: Secrets,
        shards: int, chance: random.Random,
    ):  # fmt: skip
        self.hub, self.line, self.settings, self.registry = hub, line, settings, registry
        self.secrets, self.shards, self.chance = secrets, shards, chance
        self.nodes = ["a", "b", "c"]
        self.down: set[str] = set()
        self.processes: dict[Home, Process] = {}
        self.gone: list[Process] = []
        self._directories = itertools.count()
        self._sent, self._held = 0, list[tuple[int, Process, Any, Any]]()

    def machine(self, name: str) -> Machine:
        ahead = self.chance.uniform(-AHEAD_SECONDS_MAX, AHEAD_SECONDS_MAX)
        return Machine(name, self.chance.uniform(*RATES), ahead)

    def settings_on(self, node: str) -> Settings:
        return self.settings.model_copy(update={"data_dir": self.settings.data_dir / node})

    def renew(self, directory: Path) -> None:
        """The same files in another directory of that name: the process that had it open is not
        there to let go of it.
        """
        if directory.exists():
            old = self.settings.data_dir / "gone" / str(next(self._directories))
            old.parent.mkdir(exist_ok=True)
            directory.rename(old)
            left = shutil.ignore_patterns("lock.mdb", "LOCK", "*.partial", ".snapshot")
            shutil.copytree(old, directory, ignore=left)

    def lose_power(self, node: str, *, with_disk: bool) -> None:
        self.down.add(node)
        for home, process in list(self.processes.items()):
            if home[1] == node:
                process.end()
        if with_disk:
            shutil.rmtree(self.settings_on(node).data_dir, ignore_errors=True)

    async def ask(self, source: str, home: Home, work: Callable[[Shard], Awaitable[Any]]) -> Any:
        """Send a request to a shard and wait for its answer. Raises Unavailable where none came,
        and what the shard raised.
        """
        line, loop = self.line, asyncio.get_running_loop()
        await asyncio.sleep(line.seconds())
        process = self.processes.get(home)
        if line.is_cut(source, home[1]) or line.drawn("lost"):
            await asyncio.sleep(UNHEARD_SECONDS)
            raise Unavailable("Nobody heard of it.")
        if process is None or process.shard is None:
            raise Unavailable("The shard is not there.")
        answered = loop.create_future()

        def settle(answer: Any, failed: BaseException | None) -> None:
            if not answered.done():
                answered.set_result(answer) if failed is None else answered.set_exception(failed)

        def told(answer: Any, failed: BaseException | None) -> None:
            if not (line.is_cut(source, home[1]) or line.drawn("unanswered")):
                loop.call_soon_threadsafe(settle, answer, failed)

        self._overtaken()
        if line.drawn("doubled"):
            self._later(process, work, told)
        if line.drawn("late"):
            self._later(process, work, told)
        else:
            process.do(work, told)
        try:
            async with asyncio.timeout(ASKED_SECONDS_MAX):
                return await answered
        except TimeoutError:
            raise Unavailable("No answer came.") from None

    def _later(self, process: Process, work: Any, told: Any) -> None:
        """A message comes after others that were sent later: so many, or in so much time."""
        chance = self.line.chance
        if chance.random() < 0.5:
            self._held.append(
                (self._sent + chance.randint(1, OVERTAKEN_BY_MAX), process, work, told)
            )
            return

        def wait() -> None:
            self.hub.wait(chance.uniform(0, LATE_SECONDS_MAX))
            process.do(work, told)

        self.hub.spawn(process.machine, wait)

    def _overtaken(self) -> None:
        """Another message is sent: some that were held back have been overtaken by enough."""
        self._sent += 1
        due = [held for held in self._held if held[0] <= self._sent]
        self._held = [held for held in self._held if held[0] > self._sent]
        for _, process, work, told in due:
            process.do(work, told)


class ClusterNodes:
    """What a watch knows of the machines, which the head of the cluster tells it."""

    def __init__(self, world: World, own: str):
        self._world, self._own = world, own

    def alive(self, placement: Placement) -> set[str]:
        world = self._world
        return {
            node
            for node in world.nodes
            if node not in world.down and not world.line.is_cut(node, HEAD)
        }

    def running(self) -> set[Home]:
        return set(self._world.processes)

    def start(self, home: Home) -> None:
        if home not in self._world.processes and home[1] not in self._world.down:
            self._world.processes[home] = Process(self._world, home)

    def end(self, home: Home) -> None:
        process = self._world.processes.get(home)
        if process is not None and not self._world.line.is_cut(home[1], HEAD):
            process.end()

    async def open(self, home: Home) -> None:
        self.start(home)

    async def status(self, home: Home) -> dict[str, Any]:
        try:
            return await self._world.ask(self._own, home, lambda shard: shard.status())
        except (Unavailable, StorageFailed):  # nobody is there, or whoever was has ended
            return {}

    async def inspect(self, node: str, others: set[str]) -> Inspection:
        settings = self._world.settings_on(node)
        settings.data_dir.mkdir(exist_ok=True)
        placement = await asyncio.to_thread(PlacementTable.of(settings).load)
        kept = set_strangers_aside(settings, placement, node, others)
        return Inspection(node, tuple(kept))


class Control:
    """A process with a supervisor and a watch, one of two."""

    def __init__(self, world: World, name: str):
        self.world, self.name = world, name
        self.machine = world.machine(name)
        self.table = PlacementTable.of(world.settings)
        self.supervisor: Supervisor | None = None
        self.loop: Loop | None = None
        self._awaited: tuple[str, int, Callable[[], None]] | None = None
        world.hub.spawn(self.machine, self._run)

    def _run(self) -> None:
        self.loop = Loop(self.world.hub, self.machine)
        self.loop.run(self._serve())

    async def _serve(self) -> None:
        self.supervisor = Supervisor(self.table, self._ask)
        nodes = ClusterNodes(self.world, self.name)
        watch = NodeWatch(self.world.settings, self.table, nodes)
        self.supervisor.start()
        await watch.run()

    async def _ask(self, number: int, step: str, *given: Any) -> Any:
        self._look_at(step)
        placement = await asyncio.to_thread(self.table.load)
        home = (number, placement.shards[number].node)
        return await self.world.ask(self.name, home, lambda shard: shard.order(step, *given))

    def order(self, **given: Any) -> None:
        """Have slots moved, if it can be heard."""
        if self.loop is not None and self.supervisor is not None:
            supervisor, loop = self.supervisor, self.loop

            async def move() -> None:
                await supervisor.order("move", **given)

            loop.call_soon_threadsafe(lambda: loop.create_task(move()))

    def before(self, step: str, times: int, work: Callable[[], None]) -> None:
        """What is done when its supervisor is about to ask for this step of a move for the
        `times`-th time from now on.
        """
        self._awaited = step, times, work

    def _look_at(self, step: str) -> None:
        if self._awaited is not None and self._awaited[0] == step:
            _, times, work = self._awaited
            self._awaited = (step, times - 1, work) if times > 1 else None
            if times == 1:
                work()

    def go_on(self) -> None:
        """Have it look for moves that somebody else began."""
        if self.loop is not None and self.supervisor is not None:
            self.loop.call_soon_threadsafe(self.supervisor.start)
