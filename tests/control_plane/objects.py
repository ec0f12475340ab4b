"""An object store in memory, at the other end of a bad line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

from storage.replication import ObjectStore, ObjectStoreFailed
from tests.control_plane.hub import Hub, Machine

ASKED_SECONDS_MAX = 3.0
LATE_SECONDS_MAX = 8.0


class Line:
    """What happens to requests and messages. cut: pairs of names that do not reach each other;
    faults: what share of what is sent is lost, answered in vain, late or doubled; told: how often.
    """

    def __init__(self, hub: Hub, chance: random.Random):
        self.hub, self.chance = hub, chance
        self.cut: set[tuple[str, str]] = set()
        self.lost = self.unanswered = self.late = self.doubled = 0.0
        self.delay = 0.004
        self.told: Counter[str] = Counter()

    def is_cut(self, one: str, other: str) -> bool:
        return (one, other) in self.cut or (other, one) in self.cut

    def drawn(self, kind: str) -> bool:
        """Whether this happens to what is sent now."""
        if self.chance.random() >= getattr(self, kind):
            return False
        self.told[kind] += 1
        return True

    def seconds(self) -> float:
        """How long something is on its way: what was sent later may come first."""
        return self.chance.expovariate(1 / self.delay)


class Bucket:
    """Objects by path, with when they were stored."""

    def __init__(self, line: Line):
        self.line = line
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.clock = Machine("objects")


class MemoryObjects(ObjectStore):
    """An ObjectStore over a bucket, as the machine reaches it whose strand asks."""

    bucket: Bucket  # of the history that runs

    def __init__(self, url: str, place: str = "", *, make: bool = True):
        self.url, self._at = url, place

    def make_ready(self, folder: str) -> None:
        """Nothing has to be."""

    def below(self, place: str) -> MemoryObjects:
        return type(self)(self.url, f"{self._at}{place}/")

    @property
    def may_tear(self) -> bool:
        return False

    def _ask(self, work: Callable[[dict[str, tuple[bytes, float]]], Any]) -> Any:
        line, bucket = self.bucket.line, self.bucket
        hub = line.hub
        if hub.current is None:
            return work(bucket.objects)
        name = hub.machine.name
        hub.wait(line.seconds())
        if line.is_cut(name, "objects") or line.drawn("lost"):
            hub.wait(line.chance.uniform(0.05, ASKED_SECONDS_MAX))
            raise ObjectStoreFailed("the request was lost")
        if line.drawn("late"):

            def later() -> None:
                hub.wait(line.chance.uniform(0, LATE_SECONDS_MAX))
                work(bucket.objects)

            hub.spawn(bucket.clock, later)
            hub.wait(line.chance.uniform(0.05, ASKED_SECONDS_MAX))
            raise ObjectStoreFailed("the request is late")
        answer = work(bucket.objects)
        hub.wait(line.seconds())
        if line.is_cut(name, "objects") or line.drawn("unanswered"):
            raise ObjectStoreFailed("the answer was lost")
        return answer

    def put_new(self, path: str, content: bytes) -> bool:
        def put(objects: dict[str, tuple[bytes, float]]) -> bool:
            found = objects.setdefault(self._at + path, mine := (content, self._now()))
            return found is mine

        return self._ask(put)

    def put_file(self, path: str, file: BinaryIO) -> None:
        content = file.read()
        self._ask(lambda objects: objects.update({self._at + path: (content, self._now())}))

    def get(self, path: str) -> bytes | None:
        return self._ask(lambda objects: objects.get(self._at + path, (None, 0))[0])

    def has(self, path: str) -> bool:
        return self._ask(lambda objects: self._at + path in objects)

    def have(self, folder: str, names: Sequence[str]) -> list[bool]:
        return [self.has(f"{folder}/{name}") for name in names]

    def fetch(self, path: str, target: BinaryIO) -> bool:
        content = self.get(path)
        if content is not None:
            target.write(content)
        return content is not None

    def names(self, folder: str) -> list[str]:
        start = f"{self._at}{folder}/" if folder else self._at
        return self._ask(lambda objects: sorted(
            path.removeprefix(start) for path in objects if path.startswith(start)
        ))  # fmt: skip

    def stored_at(self, folder: str) -> dict[str, int]:
        start = f"{self._at}{folder}/"
        return self._ask(lambda objects: {
            path.removeprefix(start): int(at * 1000)
            for path, (_, at) in objects.items() if path.startswith(start)
        })  # fmt: skip

    def folders(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self.names("") if "/" in name})

    def delete(self, paths: Iterable[str]) -> None:
        gone = [self._at + path for path in paths]
        self._ask(lambda objects: [objects.pop(path, None) for path in gone])

    def _now(self) -> float:
        return self.bucket.line.hub.now
