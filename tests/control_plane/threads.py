"""What `threading`, `queue` and `time` give to code that runs in strands."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar
from unittest.mock import patch

from tests.control_plane.hub import Hub, Strand


class _OfHub:
    hub: ClassVar[Hub]  # of the history that runs


class Event(_OfHub):
    def __init__(self) -> None:
        self._is_set, self._waiting = False, list[Strand]()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for strand in waiting:
            self.hub.wake(strand)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set and self.hub.current is not None:
            self._waiting.append(self.hub.current)
            self.hub.wait(timeout)
        return self._is_set


class Lock(_OfHub):
    def __init__(self) -> None:
        self._holder: Any = None
        self._depth = 0
        self._waiting: deque[Strand] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = self.hub.current or self.hub
        while self._depth and not self.hub.is_over:
            if isinstance(self, RLock) and self._holder is me:
                break
            if not blocking:
                return False
            assert isinstance(me, Strand)
            self._waiting.append(me)
            self.hub.wait()
        self._holder, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth and self._waiting:
            self.hub.wake(self._waiting.popleft())

    def locked(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """One that its holder may take again."""


class Condition(_OfHub):
    def __init__(self, lock: Any = None):
        self._lock, self._event = lock or RLock(), Event()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        self._event.clear()
        self._lock.release()
        try:
            return self._event.wait(timeout)
        finally:
            self._lock.acquire()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else self.hub.uptime() + timeout
        while not (found := predicate()) and not self.hub.is_over:
            left = None if until is None else until - self.hub.uptime()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return found

    def notify(self, n: int = 1) -> None:
        self._event.set()

    notify_all = notify


class Thread(_OfHub):
    def __init__(
        self, group: None = None, target: Any = None, name: str = "", args: Any = (),
        kwargs: Any = None, *, daemon: bool | None = None,
    ):  # fmt: skip
        self._work = lambda: target(*args, **(kwargs or {}))
        self.name, self._strand = name, None

    def start(self) -> None:
        self._strand = self.hub.spawn(self.hub.machine, self._work)

    def is_alive(self) -> bool:
        return self._strand is not None and not self._strand.is_over

    def join(self, timeout: float | None = None) -> None:
        if self._strand is not None and not self._strand.is_over and self.hub.current is not None:
            self._strand.joiners.append(self.hub.current)
            self.hub.wait(timeout)


class SimpleQueue(_OfHub):
    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._filled = Event()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self._items.append(item)
        self._filled.set()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        while not self._items:
            self._filled.clear()
            self._filled.wait()
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise queue.Empty
        return self._items.popleft()


def patched(hub: Hub) -> ExitStack:
    """Threads and time of this process are the hub's until the stack is closed."""
    _OfHub.hub = hub
    stack = ExitStack()
    for owner, name, instead in (
        (threading, "Event", Event), (threading, "Lock", Lock), (threading, "RLock", RLock),
        (threading, "Condition", Condition), (threading, "Thread", Thread),
        (queue, "SimpleQueue", SimpleQueue),
        (time, "sleep", hub.wait),
        (time, "time", hub.calendar),
        (time, "time_ns", lambda: int(hub.calendar() * 1e9)),
        (time, "monotonic", hub.uptime),
        (time, "perf_counter", hub.uptime),
        (time, "clock_gettime", lambda clock: hub.uptime()),
    ):  # fmt: skip
        stack.enter_context(patch.object(owner, name, instead))
    return stack
