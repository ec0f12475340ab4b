"""Kill parts of the service while it writes and audit what is left: python loadtests/chaos.py
[--rounds 200] [--engine ray]

Each round sixteen writers write, and at a random moment something gets kill −9:

    service  every process of it, which is then started anew           (both engines)
    shard    the actor that owns the store; the service goes on        (ray)
    gateway  a replica that was answering requests; the service goes on (ray)

Then everything acknowledged is read back, what was written since the last round and a sample of the
rest (in an installation's last round all of it) is found by a search, every unanswered write is
repeated under its Idempotency-Key and must have happened exactly once, and `mneme admin verify`
finds every invariant of the store kept, after a kill of the whole service also before its next
start. A difference ends the run with the failed comparison. `--seed` repeats the writes and the
order of the kills.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.serve import RunDirectory
from tests.support.crashes import Books, write_until
from tests.support.served import MNEME, ROOT, Served

TARGETS = {"local": ("service",), "ray": ("shard", "gateway", "service")}
ACKNOWLEDGEMENTS = (20, 300)
AFTERWARDS = 30
VERIFY_SECONDS_MAX = 300
OLDER_SEARCHED = 200


@dataclass
class Count:
    """What one kind of kill came to, over its rounds."""

    rounds: int = 0
    acknowledged: int = 0
    unanswered: int = 0


@dataclass
class Chaos:
    directory: Path
    engine: str
    chance: random.Random
    counts: dict[str, Count] = field(default_factory=dict)
    verified: int = 0
    memories: int = 0
    data_dir: Path = Path()

    def run(self, rounds: int, each: int) -> None:
        """So many rounds, `each` of them at most on one installation."""
        for first in range(1, rounds + 1, each):
            self.data_dir = self.directory / f"from-{first}"
            self._run(range(first, min(first + each, rounds + 1)))
            shutil.rmtree(self.data_dir)

    def _run(self, numbers: range) -> None:
        service = Served(self.data_dir, self.engine)
        try:
            books = Books(service.url, service.register(), self.chance.getrandbits(32))
            for number in numbers:
                target = self.chance.choice(TARGETS[self.engine])
                before, begun = books.acknowledged, time.perf_counter()
                service = self._strike(service, target, books)
                books.url = service.url
                asyncio.run(books.audit(None if number == numbers[-1] else OLDER_SEARCHED))
                self._verify()
                self._count(number, target, books, before, time.perf_counter() - begun)
            self.memories += len(books.memories)
        finally:
            service.end()

    def _strike(self, service: Served, target: str, books: Books) -> Served:
        """Write, kill in the midst of it, and give back the service that runs afterwards."""
        strike: dict[str, Callable[[], None]] = {
            "service": lambda: kill_all(service),
            "shard": lambda: service.shard_process().kill(),
            "gateway": lambda: self.chance.choice(service.gateway_processes()).kill(),
        }
        acknowledgements = self.chance.randint(*ACKNOWLEDGEMENTS)
        write_until(
            books,
            acknowledgements,
            strike[target],
            afterwards=0 if target == "service" else AFTERWARDS,
        )
        if target != "service":
            return service
        service.end()
        self._verify()
        return Served(self.data_dir, self.engine)

    def _verify(self) -> None:
        command = [
            MNEME,
            "admin",
            "verify",
            "--config",
            str(ROOT / "configs/test.yaml"),
            "--data-dir",
            str(self.data_dir),
        ]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=VERIFY_SECONDS_MAX,
            cwd=ROOT,
            check=False,
        )
        assert ended.returncode == 0, f"an invariant is violated:\n{ended.stdout}{ended.stderr}"
        self.verified += 1

    def _count(self, number: int, target: str, books: Books, before: int, seconds: float) -> None:
        count = self.counts.setdefault(target, Count())
        acknowledged = books.acknowledged - before
        count.rounds += 1
        count.acknowledged += acknowledged
        count.unanswered += books.left_in_limbo
        told = (
            f"{acknowledged} acknowledged, {books.left_in_limbo} unanswered, {len(books.memories)} "
            f"memories, {seconds:.1f} s"
        )
        print(f"round {number:3d}, {target}: {told}", flush=True)


def kill_all(service: Served) -> None:
    """The service and, on Ray, everything it started, as a power failure would."""
    processes = RunDirectory.of(service.data_dir).processes()
    service.kill()
    for process in processes:
        process.kill()


def report(chaos: Chaos) -> None:
    print("\n| killed | rounds | acknowledged | unanswered |\n|---|---|---|---|")
    for target, count in sorted(chaos.counts.items()):
        print(f"| {target} | {count.rounds} | {count.acknowledged} | {count.unanswered} |")
    print(
        f"\n{sum(count.acknowledged for count in chaos.counts.values())} acknowledged writes, 0 "
        "lost, 0 doubled; "
        f"{chaos.verified} verifications of the store, 0 findings; {chaos.memories} memories in "
        "the end."
    )


def main() -> int:
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
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    print(f"engine {given.engine}, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mneme-chaos-") as directory:
        chaos = Chaos(Path(directory), given.engine, random.Random(given.seed))
        try:
            chaos.run(given.rounds, given.each)
        except AssertionError as difference:
            again = (
                f"python loadtests/chaos.py --engine {given.engine} --seed {given.seed} --rounds "
                f"{given.rounds} --each {given.each}"
            )
            print(f"DIFFERENCE: {difference}\nAgain: {again}")
            return 1
        report(chaos)
    return 0


if __name__ == "__main__":
    sys.exit(main())
