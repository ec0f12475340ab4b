"""One seed: clients, faults, and what is held throughout.

one owner       when a shard answers for a slot, no other would answer for it at that moment
nothing lost    what was acknowledged, and what somebody outside was told, is in every read that
                begins later
one place       in the end the rows of a slot are at its owner, nowhere else, and object storage
                gives back the same
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson

import runtime.cluster.shard_home
import runtime.cluster.supervisor
import runtime.installation.blobs
import runtime.installation.shared_layout
import runtime.shard.durability
import storage.replication.shipper
import storage.replication.snapshots
import storage.store.environment
from plugins import accounts
from runtime.api.operation import Call, Reply
from runtime.errors import ApiError, Moved
from runtime.installation import Secrets, make_shared_layout, shard_place, shared_objects
from runtime.placement import Placement, PlacementTable, SlotMap
from runtime.shard import Shard, slot_moves
from storage.indexes import load_kernels
from storage.replication import packs, restore
from storage.store import DATA_FILE, DeviceFailed, Store, StoreError, StoreFull
from tests.control_plane import ledger
from tests.control_plane.hub import Hub, Loop, Machine
from tests.control_plane.machines import HEAD, Control, World
from tests.control_plane.objects import Bucket, Line, MemoryObjects
from tests.control_plane.threads import patched
from tests.support.registry import registry_of
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import settings

SECONDS, QUIET_SECONDS, SETTLED_SECONDS_MAX = (8.0, 12.0, 30.0), 10.0, 400.0
FAULT_SECONDS = (0.7, 1.2, 2.5)  # from one to the next
STEPS_BEGUN, STEPS_LATER = ("begin", "read", "take"), ("changed", "freeze", "secured", "secured")
STANDS_SECONDS_MAX = 12.0  # a supervisor that nobody wakes
SHARDS, CLIENTS, GATEWAYS, NAMES = 3, 3, 2, 3
BEGIN_SECONDS_MAX = 60.0
SECRETS = Secrets(bytes(range(32)), bytes(range(32, 64)), "mem_op_" + "0" * 64)
MAP_BYTES = 64 << 20
SLOTS = 4_096


class Broken(AssertionError):
    """A promise was broken."""


@dataclass
class Told:
    """What happened in a history. faults: how often each kind did."""

    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    reads: int = 0
    publications: int = 0
    digest: str = ""


def run(seed: int) -> Told:
    """Run one history. Raises Broken."""
    load_kernels()  # while locks are real ones, which Numba makes when it is loaded
    directory = Path(tempfile.mkdtemp(prefix="mneme-plane-", dir=_memory()))
    quiet = logging.getLogger("mneme")
    disabled, quiet.disabled = quiet.disabled, True
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()
    history = History(directory, seed)
    try:
        return history.run()
    finally:
        history.end()
        del history
        gc.collect()
        gc.enable()
        sys.unraisablehook, quiet.disabled = hook, disabled
        logging.disable(level)
        shutil.rmtree(directory, ignore_errors=True)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Forms(ShardHarness):
    """Makes calls of requests, as a gateway would."""

    def __init__(self, registry: Any, now_ms: int):
        self.registry, self.secrets, self.now_ms, self._seeds = registry, SECRETS, now_ms, 0


class Client:
    """Writes growing numbers under a few names, one request at a time, and reads them back.

    sent: the highest number under each name that may be there; floor: the lowest that has to be
    """

    def __init__(self, history: History, number: int):
        self.history = history
        self.email = f"client{number}@example.com"
        self.token = ""
        self.slot = 0
        self.sent: Counter[str] = Counter()
        self.floor: Counter[str] = Counter()

    async def live(self, gateway: Gateway) -> None:
        chance = self.history.chance
        while not self.history.is_ending:
            if not self.token:
                await self._register(gateway)
            elif chance.random() < 0.5:
                await self.write(gateway, f"{self.email}/{chance.randrange(NAMES)}")
            else:
                await self.read(gateway, f"{self.email}/{chance.randrange(NAMES)}")
            await asyncio.sleep(chance.expovariate(1 / self.history.pause))

    async def _register(self, gateway: Gateway) -> None:
        body = {"email": self.email, "password": "correct horse", "full_name": "Ada"}
        reply = await gateway.send(self.history.forms.form("auth.register", body))
        if reply is not None and reply.status == 409:  # an answer that was lost
            login = {"email": self.email, "password": "correct horse"}
            reply = await gateway.send(self.history.forms.form("auth.login", login))
        if reply is not None and reply.error is None:
            self.token = orjson.loads(reply.body)["access_token"]
            form = self.history.forms.form("ledger.read", who=self.token, query={"name": "x"})
            assert isinstance(form, Call)
            self.slot = form.slot

    async def write(self, gateway: Gateway, name: str) -> None:
        self.sent[name] += 1
        number = self.sent[name]
        filling = "x" * self.history.chance.choice((0, 0, 700))
        body = {"name": name, "number": number, "filling": filling}
        for _ in range(3):
            call = self.history.forms.form(
                "ledger.enter", body, who=self.token, key=f"{name}-{number}"
            )
            reply = await gateway.send(call)
            if reply is not None and reply.error is None:
                self.floor[name] = max(self.floor[name], number)
                self.history.told.acknowledged += 1
                return
            await asyncio.sleep(0.2)

    async def read(self, gateway: Gateway, name: str) -> bool:
        floor = self.floor[name]
        call = self.history.forms.form("ledger.read", who=self.token, query={"name": name})
        reply = await gateway.send(call)
        if reply is None or reply.error is not None:
            if reply is not None and reply.status in (401, 404):
                self.history.broken(f"{self.email} is not known any more: {reply.error}")
            return False
        number = orjson.loads(reply.body)["number"]
        self.history.told.reads += 1
        if not floor <= number <= self.sent[name]:
            self.history.broken(
                f"{name} is {number} where at least {floor} was acknowledged or told of"
            )
        return True


class Gateway:
    """A gateway on a machine of its own, with its clients."""

    def __init__(self, history: History, name: str, clients: list[Client]):
        self.history, self.name, self.clients = history, name, clients
        self.machine = history.world.machine(name)
        self.loop: Loop | None = None
        history.hub.spawn(self.machine, self._run)

    def _run(self) -> None:
        self.loop = Loop(self.history.hub, self.machine)
        self.loop.run(self._serve())

    async def _serve(self) -> None:
        table = PlacementTable.of(self.history.world.settings)
        while True:
            try:
                self.map = SlotMap(await asyncio.to_thread(table.load), table)
                break
            except StoreError:  # the object store did not answer
                await asyncio.sleep(0.2)
        await asyncio.gather(*(client.live(self) for client in self.clients))
        await asyncio.Event().wait()  # whoever looks at the end asks through it, too

    async def send(self, call: Call | ApiError) -> Reply | None:
        """The reply; None where there is none."""
        assert isinstance(call, Call), call
        try:
            return await self.map.execute(call, self._ask)
        except ApiError:
            await self.map.refresh()
            return None

    async def _ask(self, number: int, call: Call) -> Reply:
        home = (number, self.map.placement.shards[number].node)

        async def work(shard: Shard) -> Reply:
            reply = await shard.execute(replace(call))
            if not isinstance(reply.error, Moved) and reply.status < 500:
                self.history.one_answers(call.slot, shard)
            return reply

        return await self.history.world.ask(self.name, home, work)


class History:
    """One seed, from its first moment to its last."""

    def __init__(self, directory: Path, seed: int):
        self.chance = random.Random(f"history {seed}")
        self.hub = Hub(seed)
        self.told = Told()
        self.is_ending = False
        self._problem = ""
        self._patches = patched(self.hub)
        self._patch(seed)
        line = self.line = Line(self.hub, random.Random(f"line {seed}"))
        MemoryObjects.bucket = self.bucket = Bucket(line)
        registry = registry_of((accounts.plugin, ledger.PLUGIN))
        given = settings(
            data_dir=str(directory),
            object_store__url="s3://bucket/place",
            object_store__ship_interval_ms=5,
            durability__mode="replicated",
            durability__wait_seconds_max=self.chance.choice((1, 3)),
            cluster__name="plane",
            cluster__lease_seconds=self.chance.choice((3, 5, 8)),
            cluster__node_lost_seconds=self.chance.choice((2, 4)),
            storage__map_bytes_max=MAP_BYTES,
        )
        self.pause = self.chance.choice((0.05, 0.2, 0.6))
        self.world = World(self.hub, line, given, registry, SECRETS, SHARDS, self.chance)
        make_shared_layout(shared_objects(given), "plane", SHARDS)
        self.forms = Forms(registry, int(self.hub.calendar() * 1000))
        self.clients = [Client(self, number) for number in range(CLIENTS)]
        ledger.Outside.told = self._outside

    def _patch(self, seed: int) -> None:
        enter, chance = self._patches.enter_context, random.Random(f"bytes {seed}")
        for module in (
            runtime.shard.durability, runtime.cluster.shard_home,
            runtime.installation.blobs, runtime.installation.shared_layout,
        ):  # fmt: skip
            enter(patch.object(module, "ObjectStore", MemoryObjects))
        enter(patch.object(storage.replication.shipper, "home_of", str))
        enter(patch.object(storage.store.environment, "copy_data", copied))
        restoring = sys.modules[restore.__module__]
        for module in (restoring, packs):
            enter(patch.object(module, "ThreadPoolExecutor", AtOnce))
        enter(
            patch.object(
                storage.replication.snapshots,
                "SEGMENTS_BETWEEN_MAX",
                self.chance.choice((40, 10_000)),
            )
        )
        enter(patch.object(packs, "PACKED_AT_ONCE", self.chance.choice((2, 5, 64))))
        between = self.chance.choice((4, 16, 256))
        enter(patch.object(packs, "SEGMENTS_BETWEEN", between))
        enter(patch.object(packs, "SEGMENTS_BETWEEN_IN_A_FLOOD", 2 * between))
        enter(patch.object(packs, "FEW_SEGMENTS", 1))
        enter(patch("os.urandom", chance.randbytes))
        enter(patch.object(runtime.cluster.supervisor, "MOVE_RETRY_SECONDS", 0.1))
        piece_bytes = self.chance.choice((150, 400, 2_000, 1 << 18))
        enter(patch.object(slot_moves, "SLOT_PIECE_BYTES", piece_bytes))
        enter(patch.object(slot_moves, "SLOT_ROWS_ERASED_PER_STEP", self.chance.choice((3, 2_000))))
        random.seed(seed)

    # --- what is held -----------------------------------------------------------------------------

    def broken(self, problem: str) -> None:
        self._problem = self._problem or f"{problem} (at {self.hub.now:.3f} s)"

    def one_answers(self, slot: int, mine: Shard) -> None:
        """The shard that has just answered for a slot is the only one that would."""
        for other in self.world.processes.values():
            if other.shard is None or other.shard is mine or other.machine.dead:
                continue
            parts = other.shard.parts
            with self.hub.on(other.machine):
                try:
                    parts.gate.check(slot)
                except Moved:
                    continue
                if parts.durability is not None and parts.durability.may_answer:
                    self.broken(
                        f"slot {slot} is answered for by shard {mine.identity.shard} in "
                        f"{mine.directory} and by {other.home}"
                    )

    def _outside(self, name: str, number: int) -> None:
        client = next(each for each in self.clients if name.startswith(each.email))
        client.floor[name] = max(client.floor[name], number)

    # --- the course of it -------------------------------------------------------------------------

    def run(self) -> Told:
        self.controls = [Control(self.world, f"control-{number}") for number in range(2)]
        opened = self.world.processes.values()
        self._until(
            lambda: sum(process.shard is not None for process in opened) == SHARDS,
            BEGIN_SECONDS_MAX,
            "the shards do not open",
        )
        self.gateways = [
            Gateway(self, f"gateway-{number}", self.clients[number::GATEWAYS])
            for number in range(GATEWAYS)
        ]
        self._until(
            lambda: all(each.token for each in self.clients), BEGIN_SECONDS_MAX, "nobody registers"
        )
        ends_at = self.hub.now + self.chance.choice(SECONDS)
        pause, weights = self.chance.choice(FAULT_SECONDS), self._weights()
        while self.hub.now < ends_at:
            self.hub.run(
                self.hub.now + self.chance.expovariate(1 / pause), lambda: bool(self._problem)
            )
            self._check()
            self.chance.choices(self._menu, weights)[0](self)
        self._settle()
        return self.told

    def _check(self) -> None:
        if self.hub.failures:
            raise self.hub.failures[0]
        if self._problem:
            raise Broken(self._problem)

    def _until(self, is_done: Any, seconds: float, otherwise: str) -> None:
        ends_at = self.hub.now + seconds
        while not is_done():
            self.hub.run(self.hub.now + 0.05)
            self._check()
            if self.hub.now > ends_at:
                raise Broken(otherwise)

    def _are_open(self, placement: Placement) -> bool:
        """Whether each shard is open where it lives."""
        homes = enumerate(placement.shards)
        processes = [self.world.processes.get((number, place.node)) for number, place in homes]
        return all(process is not None and process.shard is not None for process in processes)

    def _note(self, fault: str) -> None:
        self.told.faults[fault] += 1

    def _kill(self) -> None:
        if self.world.processes:
            self.world.processes[self.chance.choice(sorted(self.world.processes))].end()
            self._note("shards killed")

    def _lose(self) -> None:
        """A machine loses its power, and perhaps its disk; it is back after a while."""
        up = [node for node in self.world.nodes if node not in self.world.down]
        if len(up) < 2:
            return
        node, with_disk = self.chance.choice(up), self.chance.random() < 0.5
        self.world.lose_power(node, with_disk=with_disk)
        self._note("machines lost with their disk" if with_disk else "machines lost")
        self._later(lambda: self.world.down.discard(node))

    def _stop(self) -> None:
        """A process stands still for a while."""
        stopped = [*self.world.processes.values(), *self.controls]
        each = self.chance.choice(stopped)
        each.machine.until = self.hub.now + self.chance.choice((0.3, 3, 12))
        self._note("stops of supervisors" if isinstance(each, Control) else "stops of shards")

    def _kill_control(self) -> None:
        number = self.chance.randrange(2)
        self.controls[number].machine.dead = True
        self.controls[number] = Control(self.world, f"control-{number}")
        self._note("supervisors killed")

    def _cut(self) -> None:
        ends = ["objects", HEAD, "gateway-0", "gateway-1", "control-0", "control-1"]
        node = self.chance.choice(self.world.nodes)
        for end in self.chance.sample(ends, self.chance.choice((1, 1, 2, 6))):
            self.line.cut.add((node, end))
            self._later(lambda end=end: self.line.cut.discard((node, end)))
            self._note(f"cuts to {end.partition('-')[0]}")

    def _part(self) -> None:
        """A machine is cut off from the rest of the cluster: its owner's lease goes on, and others
        take its shards.
        """
        node, seconds = self.chance.choice(self.world.nodes), self.chance.choice((4, 8, 12))
        ends = ["objects", HEAD, *self.chance.choice(((), ("control-0", "control-1")))]
        self.line.cut |= {(node, end) for end in ends}
        self._later(lambda: self.line.cut.difference_update((node, end) for end in ends), seconds)
        self._note("machines cut off")

    def _noise(self) -> None:
        for kind in ("lost", "unanswered", "late", "doubled"):
            setattr(self.line, kind, self.chance.choice((0, 0, 0.03, 0.15)))
        self.line.delay = self.chance.choice((0.002, 0.01, 0.05, 0.2))

    def _fail_disk(self) -> None:
        if self.world.processes:
            process = self.world.processes[self.chance.choice(sorted(self.world.processes))]
            process.fails_with = self.chance.choice((DeviceFailed, StoreFull))
            self._note(
                "disks that fail" if process.fails_with is DeviceFailed else "disks that are full"
            )

    def _move(self) -> None:
        self._order(self.chance.choice(self.controls), self.chance.randint(1, len(self.clients)))

    def _order(self, control: Control, slots: int) -> None:
        chosen = self.chance.sample([client.slot for client in self.clients], slots)
        control.order(slots=sorted(chosen), shard=self.chance.randrange(SHARDS))
        self._note("moves asked for")

    def _stop_at_a_step(self) -> None:
        """A supervisor stands still in the middle of a move, which the other one takes over, and
        wakes when that one is in the middle of it.
        """
        number, chance = self.chance.randrange(2), self.chance
        control, other = self.controls[number], self.controls[1 - number]

        def stop() -> None:
            control.machine.until = self.hub.now + STANDS_SECONDS_MAX
            other.before(chance.choice(STEPS_BEGUN), chance.choice((1, 2, 4)), wake)
            other.go_on()
            self._note("supervisors stopped in a move")

        def wake() -> None:
            control.machine.until = self.hub.now

        control.before(chance.choice(STEPS_LATER), chance.choice((1, 2)), stop)
        self._order(control, len(self.clients))

    _menu = (
        _move, _kill, _lose, _stop, _kill_control, _cut, _part, _noise, _fail_disk, _stop_at_a_step
    )  # fmt: skip

    def _weights(self) -> list[float]:
        """How likely each fault is in this history: some are rare in one and crowd another."""
        return [5.0, *(self.chance.choice((0.2, 1, 3)) for _ in self._menu[1:])]

    def _later(self, work: Any, seconds: float | None = None) -> None:
        after = seconds or self.chance.choice((0.5, 3, 10))

        def run() -> None:
            self.hub.wait(after)
            work()

        self.hub.spawn(Machine("weather"), run)

    def _settle(self) -> None:
        """All faults are over: in the end everything is in one place, and there."""
        self.line.cut.clear()
        self.world.down.clear()
        for kind in ("lost", "unanswered", "late", "doubled"):
            setattr(self.line, kind, 0.0)
        self.line.delay = 0.002
        for process in self.world.processes.values():
            process.machine.until, process.fails_with = 0.0, None
        for control in self.controls:
            control.machine.until = 0.0
        names = {
            "lost": "requests lost",
            "unanswered": "answers lost",
            "late": "requests late",
            "doubled": "messages doubled",
        }
        self.told.faults.update({names[kind]: count for kind, count in self.line.told.items()})
        table = PlacementTable.of(self.world.settings)
        self._until_moved(table)
        self.is_ending = True
        done: list[bool] = []
        gateway = self.gateways[0]

        async def look() -> None:
            for client in self.clients:
                for number in range(NAMES):
                    while not await client.read(gateway, f"{client.email}/{number}"):
                        await asyncio.sleep(0.1)
            done.append(True)

        assert gateway.loop is not None
        gateway.loop.call_soon_threadsafe(lambda: gateway.loop and gateway.loop.create_task(look()))
        self._until(lambda: bool(done), SETTLED_SECONDS_MAX, "clients get no answer")
        version = -1
        while version != table.load().version:  # an order may have come late
            self._until_moved(table)
            version = table.load().version
            self.hub.run(self.hub.now + QUIET_SECONDS)
        self._check()
        self._compare(table)

    def _until_moved(self, table: PlacementTable) -> None:
        self._until(
            lambda: not (placement := table.load()).moves and self._are_open(placement),
            SETTLED_SECONDS_MAX,
            "moves do not come to their end",
        )

    def _compare(self, table: PlacementTable) -> None:
        placement, found = table.load(), hashlib.sha256()
        self.told.publications = placement.version
        homes = {number: place.node for number, place in enumerate(placement.shards)}
        for number, node in homes.items():
            shard = self.world.processes[number, node].shard
            assert shard is not None
            live = rows(shard.store)
            for client in self.clients:
                if any(slot == client.slot for slot, *_ in live) != (
                    placement.owners[client.slot] == number
                ):
                    raise Broken(f"the rows of slot {client.slot} are not where they belong")
            objects = MemoryObjects("s3://bucket/place").below(shard_place("plane", number))
            again = self.world.settings.data_dir / f"again-{number}"
            restore(objects, again)
            store = Store.open(
                again, self.world.registry.tables.values(), identity=shard.identity,
                create=False, map_bytes=MAP_BYTES, service_key=SECRETS.service,
            )  # fmt: skip
            restored = rows(store)
            store.close()
            if restored != live:
                raise Broken(f"object storage gives back another shard {number}")
            found.update(repr(sorted(live.items())).encode())
        found.update(repr((self.told.acknowledged, self.told.reads, self.hub.now)).encode())
        self.told.digest = found.hexdigest()

    def end(self) -> None:
        self.hub.end()
        for process in [*self.world.processes.values(), *self.world.gone]:
            if process.shard is not None:
                process.shard.store.close()
        self._patches.close()


def rows(store: Store) -> dict[tuple[int, int, str], int]:
    """What was entered, by slot, tenant and name; of an account that is there, "" as well."""
    found = {}
    with store.snapshot() as snapshot:
        for slot in snapshot.slots():
            for scope in snapshot.scopes(slot):
                if scope.tenant:
                    found[slot, scope.tenant, ""] = 0
                    for key, row in snapshot.bind(ledger.ENTRIES, scope).scan():
                        found[slot, scope.tenant, key[0]] = row.number
    return found


def copied(source: Path, target: Path, map_bytes: int = 0, *, compact: bool = True) -> None:
    """copy_data without a process of its own: nobody writes while a strand runs."""
    target.mkdir(parents=True)
    shutil.copy(source / DATA_FILE, target / DATA_FILE)


class AtOnce:
    """A pool that does what it is given at once."""

    def __init__(self, threads: int):
        self.threads = threads

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, *given: Any) -> Any:
        return Ended(work, given)


class Ended:
    """What `submit` gives."""

    def __init__(self, work: Any, given: Any):
        self._result, self._failed = None, None
        try:
            self._result = work(*given)
        except Exception as failed:
            self._failed = failed

    def result(self) -> Any:
        if self._failed is not None:
            raise self._failed
        return self._result
