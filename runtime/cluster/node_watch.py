"""Who brings shards to nodes: each where the placement says, and to another node when its own is
lost.

It holds no truth. Where a shard lives is in the placement; what it remembers is when it last heard
of a shard. Killed at any moment, its successor reads the placement and goes on: shards that should
run and do not are started, and those that run where they should not are ended. Two of them at work
at once do no harm, since each change of the placement succeeds once, and a shard's actor is named
after its place.

A node is lost when Ray says that it is gone and nothing was heard of its shards for
`cluster.node_lost_seconds`. Then its shards get a new place, and opening them there
(runtime/cluster/shard_home.py) takes them from whoever had them. A node that comes back earlier
opens its directories as if nothing had been; one that comes back later sets them aside. It does not
matter whether Ray was right: a shard that was taken from a node that lives acknowledges nothing
more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from runtime.cluster.nodes import Inspection
from runtime.limits import (
    NODE_WATCH_SECONDS,
    RESTORATIONS_KEPT_ENTRIES,
    UNFIT_NODE_REST_SECONDS,
)
from runtime.placement import Placement, PlacementTable
from runtime.settings import Settings

log = logging.getLogger("mneme.node_watch")

Home = tuple[int, str]  # (shard's number, name of its node)


class Nodes(Protocol):
    """What the watch needs of a cluster. `alive`, `running`, `start` and `end` block."""

    def alive(self, placement: Placement) -> set[str]: ...
    def running(self) -> set[Home]: ...
    def start(self, home: Home) -> None: ...
    def end(self, home: Home) -> None: ...
    async def open(self, home: Home) -> None: ...
    async def status(self, home: Home) -> dict[str, Any]: ...
    async def inspect(self, node: str, others: set[str]) -> Inspection: ...


class NoNodes(Exception):
    """No node can take a shard; the message says why."""


@dataclass(slots=True)
class _Heard:
    """The last status of a shard. at: Unix seconds; since: of time.monotonic(); silent_at: Unix
    seconds of the first silence after it.
    """

    at: float
    since: float
    unshipped_seconds: float
    silent_at: float | None = None


@dataclass(slots=True)
class Restoration:
    """A shard that got a new place. lost_at: Unix seconds, when nothing was heard of it any more;
    shipped_at: up to when all that it had acknowledged is known to be in object storage."""

    shard: int
    source: str
    target: str
    lost_at: float
    shipped_at: float
    ended_at: float | None = None
    behind_seconds_max: float | None = None

    def ended(self, status: dict[str, Any], replicated: bool, has_bound: bool) -> None:
        """Note that it answers at its new place. behind_seconds_max: what was acknowledged in so
        many seconds may be missing. Whoever had it may have acknowledged until its lease was over,
        silent or not; without bound where it does so without a lease.
        """
        restored = status.get("restored")
        self.ended_at = time.time()
        if replicated or restored is None:  # None: opened where its directory was
            self.behind_seconds_max = 0.0
        elif has_bound:
            known = max(self.shipped_at, restored["at_ms"] / 1000)
            self.behind_seconds_max = max(0.0, restored["alone_at_ms"] / 1000 - known)

    def report(self) -> dict[str, Any]:
        return {
            "shard": self.shard,
            "source": self.source,
            "target": self.target,
            "seconds": round((self.ended_at or time.time()) - self.lost_at, 3),
            "done": self.ended_at is not None,
            "behind_seconds_max": None
            if self.behind_seconds_max is None
            else round(self.behind_seconds_max, 3),
        }


class NodeWatch:
    """Lives on one event loop."""

    def __init__(self, settings: Settings, table: PlacementTable, nodes: Nodes):
        self._limit = settings.cluster.node_lost_seconds
        self._waits = settings.cluster.lost_shards == "wait"
        self._replicated = settings.durability.mode == "replicated"
        self._has_bound = not settings.durability.outage_writes_may_be_lost
        self._table, self._nodes = table, nodes
        self._inspections: dict[str, Inspection] = {}
        self._inspecting: dict[str, asyncio.Task[Inspection]] = {}
        self._unfit_at: dict[str, float] = {}  # when a node was last found so
        self._heard: dict[int, _Heard] = {}
        self._gone: dict[str, float] = {}
        self._restorations: deque[Restoration] = deque(maxlen=RESTORATIONS_KEPT_ENTRIES)
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await self.step()
            except asyncio.CancelledError:
                raise
            except Exception as failed:
                log.warning("the nodes could not be looked after: %r", failed)
            await asyncio.sleep(NODE_WATCH_SECONDS)

    async def open(self) -> None:
        """Bring every shard to a node and open it. Raises NoNodes, and what the first shard says
        that does not open.
        """
        placement = await self.step(patiently=True)
        if all(not place.node for place in placement.shards):
            problems = [found.problem for found in self._inspections.values() if found.problem]
            raise NoNodes(
                problems[0] if problems else "No node of the Ray cluster can take a shard."
            )
        await asyncio.gather(
            *(self._nodes.open(home) for home in _homes(placement) if home[1] not in self._gone)
        )

    async def step(self, *, patiently: bool = False) -> Placement:
        """Look once, and do what is to be done; -> the placement after it. patiently: wait for new
        nodes' inspections.
        """
        async with self._turn:
            placement = await asyncio.to_thread(self._table.load)
            alive = await asyncio.to_thread(self._nodes.alive, placement)
            usable = await self._usable(alive, patiently)
            placement = await self._rehoused(placement, alive, usable)
            await asyncio.to_thread(self._conform, placement, alive)
            await asyncio.gather(*(self._listen(home) for home in _homes(placement)))
            return placement

    async def _usable(self, alive: set[str], patiently: bool) -> set[str]:
        """The nodes that were inspected and found fit. One that was not is inspected again before
        long: it may only have been too busy to answer, or be mended.
        """
        for node in [*self._inspections, *self._inspecting]:
            if node not in alive:
                self._inspections.pop(node, None)
                self._unfit_at.pop(node, None)
                if node in self._inspecting:
                    self._inspecting.pop(node).cancel()
        now = time.monotonic()
        rested = {n for n, at in self._unfit_at.items() if now - at >= UNFIT_NODE_REST_SECONDS}
        known = self._inspections.keys() - rested
        for node in alive - known - self._inspecting.keys():
            self._inspecting[node] = asyncio.create_task(self._nodes.inspect(node, alive))
        if patiently:
            await asyncio.gather(*self._inspecting.values(), return_exceptions=True)
        for node, task in list(self._inspecting.items()):
            if task.done():
                del self._inspecting[node]
                self._take_in(node, self._judged(node, task.result()))
        return {node for node, found in self._inspections.items() if not found.problem}

    def _take_in(self, node: str, found: Inspection) -> None:
        before = self._inspections.get(node, Inspection())
        self._inspections[node] = found
        self._unfit_at.pop(node, None)
        if found.problem:
            self._unfit_at[node] = time.monotonic()
            if found.problem != before.problem:
                log.error("a node gets no shard: %s", found.problem)
        elif before.problem:
            log.warning("node %s is fit for shards again", node)

    def _judged(self, node: str, found: Inspection) -> Inspection:
        for name, other in self._inspections.items():
            if name != node and found.place and found.place == other.place:
                problem = (
                    f"Node {name} keeps its data in {found.place}, too; give each node a data "
                    "directory of its own."
                )
                found = Inspection(found.place, found.shards, problem)
        return found

    async def _rehoused(self, placement: Placement, alive: set[str], usable: set[str]) -> Placement:
        """The placement in which every shard has a node, and those of lost nodes another one."""
        now = time.monotonic()
        for node in {place.node for place in placement.shards} - alive - {""}:
            heard = [
                self._heard[number].since
                for number, place in enumerate(placement.shards)
                if place.node == node and number in self._heard
            ]
            if node not in self._gone:
                log.warning("node %s is gone", node)
            self._gone.setdefault(node, max(heard, default=now))
        self._gone = {node: since for node, since in self._gone.items() if node not in alive}
        holders = {number: node for node in usable for number in self._inspections[node].shards}
        lost = {node for node, since in self._gone.items() if now - since >= self._limit}
        if self._waits:
            lost = {
                node
                for node in lost
                if all(number in holders for number, home in _homes(placement) if home == node)
            }
        if not self._inspecting.keys() - self._inspections.keys():
            # new shards are spread over all nodes that are there
            lost.add("")
        before, after = (
            placement,
            await asyncio.to_thread(
                self._table.change, lambda newest: newest.rehoused(lost, usable, holders)
            ),
        )
        self._gone = {
            node: since
            for node, since in self._gone.items()
            if any(place.node == node for place in after.shards)
        }
        for number, node in _homes(after):
            source = before.shards[number].node if number < len(before.shards) else ""
            if source not in ("", node):
                self._note(number, source, node)
        return after

    def _note(self, number: int, source: str, target: str) -> None:
        heard = self._heard.pop(number, None)
        lost_at = time.time() if heard is None or heard.silent_at is None else heard.silent_at
        shipped_at = 0.0 if heard is None else heard.at - heard.unshipped_seconds
        self._restorations.append(Restoration(number, source, target, lost_at, shipped_at))
        log.error("shard %d moves from the lost node %s to node %s", number, source, target)

    def _conform(self, placement: Placement, alive: set[str]) -> None:
        """Start what should run and does not; end what runs where it should not."""
        homes, running = set(_homes(placement)), self._nodes.running()
        for home in sorted(running - homes):
            self._nodes.end(home)
        for home in sorted(homes - running):
            if home[1] in alive:
                self._nodes.start(home)

    async def _listen(self, home: Home) -> None:
        """Ask a shard how it is, which also has it open its directory after a restart."""
        number, node = home
        status = await self._nodes.status(home) if node not in self._gone else {}
        if not status.get("open"):
            heard = self._heard.get(number)
            if heard is not None and heard.silent_at is None:
                heard.silent_at = time.time()
            return
        unshipped = float(status.get("log", {}).get("unshipped_seconds", 0.0))
        self._heard[number] = _Heard(time.time(), time.monotonic(), unshipped)
        for restoration in self._restorations:
            if (restoration.shard, restoration.target, restoration.ended_at) == (
                number,
                node,
                None,
            ):
                restoration.ended(status, self._replicated, self._has_bound)
                report = restoration.report()
                log.error(
                    "shard %d is back on node %s, %s s behind at most",
                    number,
                    node,
                    report["behind_seconds_max"],
                )

    def report(self) -> dict[str, Any]:
        """For people: nodes that are gone or unfit, and shards that got a new place."""
        now = time.monotonic()
        return {
            "gone": [
                {"node": node, "seconds": round(now - since, 3)}
                for node, since in sorted(self._gone.items())
            ],
            "unfit": [
                {"node": node, "problem": found.problem}
                for node, found in sorted(self._inspections.items())
                if found.problem
            ],
            "nodes": sorted(self._inspections),
            "restorations": [restoration.report() for restoration in self._restorations],
        }


def _homes(placement: Placement) -> Iterable[Home]:
    """Where each shard that has a node lives."""
    return [(number, place.node) for number, place in enumerate(placement.shards) if place.node]
