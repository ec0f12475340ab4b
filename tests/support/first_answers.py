"""What a client is told on a service's address from before its start until it is healthy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from threading import Event, Thread

import httpx

from runtime.serve import HEALTH_PATH

PAUSE_SECONDS = 0.02
GAP_SECONDS_MAX, WAIT_SECONDS_MAX = 2.0, 60
MORE = 50  # answers, once all is well


@dataclass
class FirstAnswers:
    """refusals: how often nobody was there, before and after the first answer; asking: who asks."""

    refusals: list[int] = field(default_factory=lambda: [0, 0])
    answers: list[httpx.Response] = field(default_factory=list)
    asking: Thread | None = None

    def wait(self) -> None:
        """Until enough were asked."""
        assert self.asking is not None
        self.asking.join(WAIT_SECONDS_MAX)

    def check(self) -> None:
        """From the first answer on clients are told to come back until all is well, and then never
        again. Nobody is there for a moment at most, when the address changes hands.
        """
        self.wait()
        early = [*takewhile(lambda answer: answer.status_code != 200, self.answers)]
        assert early
        for each in early:
            assert each.status_code == 503, each.text
            assert each.headers["Retry-After"] == "1"
            told = each.json()
            # What stands in while the front door changes hands tells everybody the same.
            assert "starting" in (told["error"]["message"] if "error" in told else told["status"])
        late = self.answers[len(early) :]
        assert [each.text for each in late if each.status_code != 200] == []
        assert len(late) > MORE
        assert self.refusals[1] <= GAP_SECONDS_MAX / PAUSE_SECONDS


@contextmanager
def first_answers(port: int, found: FirstAnswers) -> Iterator[None]:
    """Ask again and again, each time on a connection of its own, until some time after the first
    200, or the block ends.
    """
    over = Event()

    def ask() -> None:
        well = 0
        while True:
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}{HEALTH_PATH}", timeout=60)
                found.answers.append(answer)
                well += answer.status_code == 200
                if well > MORE:
                    return
            except httpx.TransportError:
                found.refusals[bool(found.answers)] += 1
            if over.wait(PAUSE_SECONDS):
                return

    found.asking = asking = Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
