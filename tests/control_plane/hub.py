"""Strands in place of threads, and the time that they see.

One strand runs at a time, until it waits; which one goes on then is drawn from the seed. Time is a
number, which passes only when all of them wait. Every machine has a clock of its own, which may go
fast or slow, and may be stopped or dead.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from asyncio import _get_running_loop, _set_running_loop  # of asyncio.events.__all__, for loops
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import greenlet

EPOCH_SECONDS = 1_790_000_000.0
LOOKED_SECONDS = 0.1  # how soon a machine that is let go on before its time does


class Machine:
    """rate: seconds of its clock in one; ahead: of its calendar; until: it stands still until then;
    dead: it never goes on.
    """

    def __init__(self, name: str, rate: float = 1.0, ahead: float = 0.0):
        self.name, self.rate, self.ahead = name, rate, ahead
        self.until = 0.0
        self.dead = False


class Strand:
    """What a thread is elsewhere, on one machine."""

    def __init__(self, hub: Hub, machine: Machine, work: Callable[[], Any]):
        self.machine, self.is_over = machine, False
        self.turn = 0  # how often it went on: a timer of an earlier wait means nothing
        self.woken = False
        self._work, self._hub = work, hub
        self.inner = greenlet.greenlet(self._run, hub.main)
        self.joiners: list[Strand] = []

    def _run(self) -> None:
        _set_running_loop(None)
        try:
            self._work()
        finally:
            self.is_over = True
            for each in self.joiners:
                self._hub.wake(each)


class Hub:
    """now: seconds since the history began."""

    def __init__(self, seed: int):
        self.now = 0.0
        self.chance = random.Random(f"hub {seed}")
        self.main = greenlet.getcurrent()
        self.is_over = False
        self._home = Machine("nowhere")
        self._seen: Machine | None = None
        self._current: Strand | None = None
        self._ready: list[Strand] = []
        self._timers: list[tuple[float, int, Strand, int]] = []
        self._numbers = itertools.count()
        self._strands: list[Strand] = []
        self.failures: list[BaseException] = []

    @property
    def machine(self) -> Machine:
        """Whose strand runs."""
        if self._seen is not None:
            return self._seen
        return self._home if self._current is None else self._current.machine

    @property
    def current(self) -> Strand | None:
        return self._current

    @contextmanager
    def on(self, machine: Machine) -> Iterator[None]:
        """A block that does not wait and goes by this machine's clock."""
        before, self._seen = self._seen, machine
        try:
            yield
        finally:
            self._seen = before

    def uptime(self) -> float:
        """By the clock of the machine whose strand runs."""
        return self.now * self.machine.rate

    def calendar(self) -> float:
        return EPOCH_SECONDS + self.uptime() + self.machine.ahead

    def spawn(self, machine: Machine, work: Callable[[], Any]) -> Strand:
        strand = Strand(self, machine, work)
        self._strands.append(strand)
        self._ready.append(strand)
        return strand

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until somebody wakes this strand, or so long by its machine's clock; -> whether it
        was woken.
        """
        strand = self._current
        if strand is None or self.is_over:
            return False
        if seconds is not None:
            at = self.now + max(0.0, seconds) / strand.machine.rate
            heapq.heappush(self._timers, (at, next(self._numbers), strand, strand.turn))
        strand.woken = False
        loop = _get_running_loop()
        self.main.switch()
        if self.is_over:
            raise greenlet.GreenletExit
        _set_running_loop(loop)
        return strand.woken

    def wake(self, strand: Strand) -> None:
        if not self.is_over and not strand.woken and strand is not self._current:
            strand.woken = True
            self._go_on(strand)

    def _go_on(self, strand: Strand) -> None:
        strand.turn += 1
        self._ready.append(strand)

    def run(self, until: float, is_done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass up to that moment, or until it is done."""
        while not is_done() and not self.failures:
            if not self._ready:
                if not self._timers or self._timers[0][0] > until:
                    self.now = until
                    return
                at, _, strand, turn = heapq.heappop(self._timers)
                self.now = max(self.now, at)
                if strand.turn == turn and not strand.is_over:
                    self._go_on(strand)
                continue
            place = self.chance.randrange(len(self._ready))
            self._ready[place], self._ready[-1] = self._ready[-1], self._ready[place]
            strand = self._ready.pop()
            machine = strand.machine
            if machine.dead or strand.is_over:
                continue
            if machine.until > self.now:
                at = min(machine.until, self.now + LOOKED_SECONDS)
                heapq.heappush(self._timers, (at, next(self._numbers), strand, strand.turn))
                continue
            self._switch(strand)

    def _switch(self, strand: Strand) -> None:
        self._current = strand
        try:
            strand.inner.switch()
        except greenlet.GreenletExit:
            pass
        except BaseException as failed:
            self.failures.append(failed)
        finally:
            self._current = None
            _set_running_loop(None)

    def end(self) -> None:
        """Nobody goes on."""
        self.is_over = True
        for strand in self._strands:
            if not strand.inner.dead:
                try:
                    strand.inner.throw(greenlet.GreenletExit)
                except BaseException:
                    continue
                finally:
                    _set_running_loop(None)
        self._strands.clear()


class Loop(asyncio.base_events.BaseEventLoop):
    """An event loop of a machine, which runs in a strand."""

    def __init__(self, hub: Hub, machine: Machine):
        super().__init__()
        self._hub, self._machine = hub, machine
        self._selector = self
        self._is_called = False
        self._strand: Strand | None = None
        self.set_exception_handler(lambda loop, context: None)

    def run(self, work: Any) -> None:
        self._strand = self._hub.current
        self.run_until_complete(work)

    def time(self) -> float:
        return self._hub.now * self._machine.rate

    def select(self, timeout: float | None) -> list[Any]:
        if not self._is_called and (timeout is None or timeout > 0):
            self._hub.wait(timeout)
        self._is_called = False
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        self._is_called = True
        if self._strand is not None:
            self._hub.wake(self._strand)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()

        def settle(result: Any, failed: BaseException | None) -> None:
            if future.done():
                return
            if failed is None:
                future.set_result(result)
            else:
                future.set_exception(failed)

        def work() -> None:
            try:
                result, failed = func(*args), None
            except greenlet.GreenletExit:
                raise
            except BaseException as raised:
                result, failed = None, raised
            if not self.is_closed():
                self.call_soon_threadsafe(settle, result, failed)

        self._hub.spawn(self._machine, work)
        return future
