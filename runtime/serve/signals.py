"""The signals that end the service, and what they do at each time of its life."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopRequested(KeyboardInterrupt):
    """A signal that ends the service came while it was still starting. (An event loop lets only
    this kind through.)
    """


class Signals:
    """SIGINT, SIGTERM, and SIGHUP of a terminal that was closed, unless nohup has it ignored: they
    break off a start, end a running service, and change nothing while it is being taken down.

    on_stop  is called, in the main thread, when one comes to a service that runs
    """

    def __init__(self) -> None:
        self.on_stop: Callable[[], None] = lambda: None
        self._before: dict[int, Any] = {}
        self._starting = True
        self._stop = threading.Event()

    def __enter__(self) -> Signals:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        found = {number: signal.getsignal(number) for number in numbers}
        self._before = {
            number: before for number, before in found.items() if before != signal.SIG_IGN
        }
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def take(self) -> None:
        """Install the handlers; again after ray.init, which puts its own in place."""
        for number in self._before:
            signal.signal(number, self._received)

    def _received(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()
        if self._starting:
            self._starting = False
            raise StopRequested
        self.on_stop()

    def started(self) -> None:
        """Have a signal answered by wait(), or by a server that takes the signals
        itself.
        """
        self._starting = False

    @property
    def numbers(self) -> list[int]:
        """Those that end the service."""
        return [int(number) for number in self._before]

    def block(self) -> int:
        """Have those that come from now on wait for whoever asks for them; -> a pipe's descriptor.
        Threads that ran already still take them, and this process may become another program before
        it learns of that: what they take lies in the pipe.
        """
        taken, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told)
        signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
        return taken

    def wait(self, seconds: float) -> bool:
        """-> whether a stop was asked for within that time."""
        return self._stop.wait(seconds)
