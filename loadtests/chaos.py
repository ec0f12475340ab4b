"""Kill, stop and cut off parts of the service while it writes, and audit what is left:

    python loadtests/chaos.py [--engine local|ray|nodes] [--rounds 300] [--seed 7] [--kinds a,b]

Each round eighteen writers of three accounts write, two numbers are raised and read, slots move now
and then, and in the midst of it something fails:

    service             kill −9 of every process, which are then started anew      (local, ray)
    shard               kill −9 of the actor that owns a store                     (ray, nodes)
    shard-stopped       SIGSTOP of one for up to 8 s, which then goes on           (ray, nodes)
    reader              kill −9 of a process that reads beside a shard's own       (ray)
    reader-stopped      SIGSTOP of one for up to 8 s, which then goes on           (ray)
    gateway             kill −9 of a replica that was answering requests           (ray, nodes)
    supervisor          kill −9 of whoever moves slots, in a move                  (ray, nodes)
    supervisor-stopped  SIGSTOP in a move, for up to 8 s; then it goes on          (ray, nodes)
    node-back           kill −9 of a node's raylet and all below it; the node comes back with its
                        directory, at once or when its shards are elsewhere        (nodes)
    node-lost           the same, and its directory is gone                        (nodes)
    node-stopped        SIGSTOP of a whole node for up to 24 s, four leases, in a move, the
                        supervisor's if that may be: Ray gives it up, others take over, then it
                        wakes, its raylet last                                     (nodes)
    cut-objects         what a node sends to the object store is lost, up to 24 s  (nodes)
    cut-head            ... to Ray's head, where clients and perhaps the supervisor are
    cut-nodes           ... to the other node, so its gateway does not reach that one's shards
    cut-off             ... to all of them, but answers still reach the clients    (nodes)

`local` and `ray` are `mneme serve` on this machine with two shards. `nodes` is a Ray cluster of a
head and two nodes with three shards, `replicated`, on machines of a network of their own
(loadtests/network.py): that needs Linux, `ip`, `unshare` and `nsenter`.

Then everything acknowledged is read back, what was written since the last round and a sample of the
rest (in an installation's last round all of it) is found by a search, every unanswered write is
repeated under its Idempotency-Key and must have happened exactly once. No read may go back behind
what was acknowledged before it began. Every few rounds `mneme admin verify` finds every invariant
of the stores kept. A difference ends the run with the failed comparison, and what it left is kept.
`--seed` repeats the writes and the order of the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import network
from loadtests.chaos_sites import KINDS, OF_A_MOVE, SHARDS, OneMachine, SeveralMachines, Site
from loadtests.nodes_apart import DATA, HEAD
from runtime.limits import SLOTS
from runtime.tenancy import slot_of_email
from tests.support.crashes import Books
from tests.support.sharded import emails
from tests.support.tally import Tally

ACCOUNTS, TALLIES, WRITERS = 3, 2, 6  # writers of an account
ACKNOWLEDGEMENTS = (20, 150)
AFTERWARDS = 10  # of each account
OLDER_SEARCHED = 30  # of each account
SLOTS_BESIDE = 40  # that move along, though they are empty
MOVES = 0.4  # share of the other rounds in which slots move
MOVE_SECONDS_MAX = 1.5  # from an order to the fault
AFTERWARDS_SECONDS_MAX = 900
POLL_SECONDS = 0.05


@dataclass
class Count:
    """What one kind of fault came to, over its rounds."""

    rounds: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    moves: int = 0


class Done(NamedTuple):
    """What a round came to. seconds: until all was whole again."""

    kind: str
    moves: bool
    acknowledged: int
    unanswered: int
    seconds: float


class Round:
    """Clients of one installation, who write until a fault has come and they are served again."""

    def __init__(self, site: Site, books: list[Books], tallies: list[Tally]):
        self.site, self.books, self.tallies = site, books, tallies
        self._over = False

    async def run(self, acknowledgements: int, strike: Callable[[], None]) -> None:
        """Raises TimeoutError where an account is not served again."""
        async with asyncio.TaskGroup() as clients:
            for client in self.books:
                clients.create_task(client.write(lambda: not self._over))
            for client in self.tallies:
                clients.create_task(client.run(lambda: not self._over))
            try:
                await self._until_more(acknowledgements // len(self.books), 0)
                await asyncio.to_thread(strike)
                await self._until_more(AFTERWARDS, 1)
            finally:
                self._over = True

    async def _until_more(self, writes: int, raised: int) -> None:
        goals = [(client, client.acknowledged + writes) for client in self.books]
        goals += [(client, client.acknowledged + raised) for client in self.tallies]
        async with asyncio.timeout(AFTERWARDS_SECONDS_MAX):
            while any(client.acknowledged < goal for client, goal in goals):
                await asyncio.sleep(POLL_SECONDS)


@dataclass
class Chaos:
    directory: Path
    engine: str
    kinds: tuple[str, ...]
    verified_every: int
    chance: random.Random
    counts: dict[str, Count] = field(default_factory=dict)
    verified: int = 0
    memories: int = 0
    reads: int = 0

    def run(self, rounds: int, each: int) -> None:
        """So many rounds, `each` of them at most on one installation."""
        for first in range(1, rounds + 1, each):
            directory = self.directory / f"from-{first}"
            self._run(directory, range(first, min(first + each, rounds + 1)))
            shutil.rmtree(directory)

    def _run(self, directory: Path, numbers: range) -> None:
        with contextlib.ExitStack() as around:
            if self.engine == "nodes":
                machines = around.enter_context(network.Network(HEAD + DATA))
                directory.mkdir()
                site: Site = SeveralMachines(directory, machines, self.chance)
            else:
                site = OneMachine(directory, self.engine, self.chance)
            around.callback(site.end)
            addresses = emails(0, SHARDS, ACCOUNTS) + emails(1, SHARDS, TALLIES)
            self.chance.shuffle(addresses)
            books = [self._books(site, address) for address in addresses[:ACCOUNTS]]
            tallies = [self._tally(site, address) for address in addresses[ACCOUNTS:]]
            slots = [slot_of_email(address) for address in addresses]
            for number in numbers:
                is_last = number == numbers[-1]
                done = self._round(site, books, tallies, slots)
                asyncio.run(audit(books, None if is_last else OLDER_SEARCHED))
                self._count(number, done)
                if is_last or number % self.verified_every == 0:
                    site.verify()
                    self.verified += 1
            self.memories += sum(len(each.memories) for each in books)
            self.reads += sum(each.reads for each in tallies)

    def _books(self, site: Site, email: str) -> Books:
        return Books(
            site.url,
            site.register(email),
            self.chance.getrandbits(32),
            writers=WRITERS,
            transport=site.transport,
        )

    def _tally(self, site: Site, email: str) -> Tally:
        return Tally(
            site.url, site.register(email), site.transport, sees_only_stored=not site.takes_over
        )

    def _round(
        self, site: Site, books: list[Books], tallies: list[Tally], slots: list[int]
    ) -> Done:
        kind = self.chance.choice(self.kinds)
        moves = kind in OF_A_MOVE or self.chance.random() < MOVES
        moving = slots + self.chance.sample(range(SLOTS), SLOTS_BESIDE)
        target, pause = self.chance.randrange(SHARDS), self.chance.uniform(0, MOVE_SECONDS_MAX)

        def strike() -> None:
            if moves:
                site.order_move(moving, target)
                time.sleep(pause)
            site.faults[kind]()

        before, begun = sum(each.acknowledged for each in books), time.perf_counter()
        asyncio.run(Round(site, books, tallies).run(self.chance.randint(*ACKNOWLEDGEMENTS), strike))
        site.until_whole()
        return Done(
            kind,
            moves,
            sum(each.acknowledged for each in books) - before,
            sum(len(each.limbo) for each in books),
            time.perf_counter() - begun,
        )

    def _count(self, number: int, done: Done) -> None:
        """Of a round that was audited."""
        count = self.counts.setdefault(done.kind, Count())
        count.rounds, count.moves = count.rounds + 1, count.moves + done.moves
        count.acknowledged += done.acknowledged
        count.unanswered += done.unanswered
        told = f"{done.acknowledged} acknowledged, {done.unanswered} unanswered"
        told += ", in a move" * done.moves
        print(f"round {number:3d}, {done.kind}: {told}, {done.seconds:.1f} s", flush=True)


async def audit(books: list[Books], sample: int | None) -> None:
    for each in books:
        await each.audit(sample)


def report(chaos: Chaos, ended: str) -> None:
    """ended: why, when it was not for the number of rounds."""
    print("\n| what failed | rounds | of them in a move | acknowledged | unanswered |")
    print("|---|---|---|---|---|")
    for kind, count in sorted(chaos.counts.items()):
        print(
            f"| {kind} | {count.rounds} | {count.moves} | {count.acknowledged} | "
            f"{count.unanswered} |"
        )
    print(
        f"\n{sum(count.rounds for count in chaos.counts.values())} rounds, "
        f"{sum(count.acknowledged for count in chaos.counts.values())} acknowledged writes, "
        + (
            ended
            or f"0 lost, 0 doubled; {chaos.reads} reads of numbers, none went back; "
            f"{chaos.verified} verifications, 0 findings; {chaos.memories} memories in the end."
        )
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--each",
        type=int,
        default=25,
        metavar="ROUNDS",
        help="rounds on one installation (%(default)s)",
    )
    parser.add_argument("--engine", choices=tuple(KINDS), default="local")
    parser.add_argument("--kinds", help="of faults, with commas between; all of the engine's")
    parser.add_argument(
        "--verify-every",
        type=int,
        default=5,
        metavar="ROUNDS",
        help="and at the end of an installation (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    given.kinds = tuple(given.kinds.split(",")) if given.kinds else KINDS[given.engine]
    if unknown := set(given.kinds) - set(KINDS[given.engine]):
        parser.error(f"engine {given.engine} has no {', '.join(sorted(unknown))}")
    return given


def main() -> int:
    given = arguments()
    if given.engine == "nodes":
        network.enter()
    again = (
        f"python loadtests/chaos.py --engine {given.engine} --seed {given.seed} --rounds "
        f"{given.rounds} --each {given.each} --kinds {','.join(given.kinds)} "
        f"--verify-every {given.verify_every}"
    )
    print(again, flush=True)
    directory = Path(tempfile.mkdtemp(prefix="mneme-chaos-"))
    chaos = Chaos(
        directory, given.engine, given.kinds, given.verify_every, random.Random(given.seed)
    )
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background a shell has one ignored
        signal.signal(number, lambda *_: sys.exit(1))
    ended = ""
    try:
        chaos.run(given.rounds, given.each)
    except* AssertionError as differences:
        ended = f"DIFFERENCE: {differences.exceptions}"
    except* TimeoutError as late:
        ended = f"NOT SERVED AGAIN: {late.exceptions}"
    report(chaos, ended)
    if ended:
        print(f"What is left lies in {directory}. Again: {again}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
