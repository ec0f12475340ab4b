"""What a client is told on a service's address from before its start until it is healthy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx

from runtime.serve import HEALTH_PATH

PAUSE_SECONDS = 0.02


@dataclass
class FirstAnswers:
    """refusals: how often nobody was there, before and after the first answer."""

    refusals: list[int] = field(default_factory=lambda: [0, 0])
    answers: list[httpx.Response] = field(default_factory=list)

    def check(self) -> None:
        """From the first answer on every client has one, and is told to come back until all is
        well.
        """
        *early, healthy = self.answers
        assert healthy.status_code == 200
        assert early
        for each in early:
            assert each.status_code == 503, each.text
            assert each.headers["Retry-After"] == "1"
            assert "starting" in each.json()["error"]["message"]
        assert self.refusals[1] == 0


@contextmanager
def first_answers(port: int, found: FirstAnswers) -> Iterator[Thread]:
    """Ask again and again, each time on a connection of its own, until a 200 or the block ends;
    who asks is what the block gets.
    """
    over = Event()

    def ask() -> None:
        for _ in itertools.count():
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}{HEALTH_PATH}", timeout=60)
                found.answers.append(answer)
                if answer.status_code == 200:
                    return
            except httpx.TransportError:
                found.refusals[bool(found.answers)] += 1
            if over.wait(PAUSE_SECONDS):
                return

    asking = Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield asking
    finally:
        over.set()
        asking.join()
