"""Two nodes on Ray, one of which is killed while it is written to, and the supervisor with it; the
node comes back too late.
"""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from runtime.cluster.shard_home import SET_ASIDE
from tests.support.several_nodes import SeveralNodes, several_nodes
from tests.support.sharded import emails

WAIT_SECONDS_MAX = 240
WRITE_SECONDS = 0.02  # between two writes


class Writer(threading.Thread):
    """Writes to all accounts in turn, each write repeated under its key until it is
    acknowledged.
    """

    def __init__(self, service: SeveralNodes, tokens: list[str]):
        super().__init__(daemon=True)
        self.service, self.tokens = service, tokens
        self.acknowledged: dict[str, set[str]] = {token: set() for token in tokens}
        self.stopped = threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.service.url, timeout=60) as http:
            for number, token in zip(itertools.count(), itertools.cycle(self.tokens), strict=False):
                text = f"note {number} of the harbour"
                headers = {
                    "Authorization": f"Bearer {token}",
                    "Idempotency-Key": f"n{number}",
                    "Prefer": "respond-async",
                }
                while not self.stopped.is_set():
                    try:
                        answer = http.post(
                            "/v1/memories",
                            json={"messages": [{"role": "user", "content": text}]},
                            headers=headers,
                        )
                    except httpx.TransportError:
                        time.sleep(WRITE_SECONDS)  # the gateway, or its proxy, went with it
                        continue
                    if answer.is_success:
                        self.acknowledged[token].add(text)
                        time.sleep(WRITE_SECONDS)
                        break
                    # Ray Serve's proxy, whose gateway went in the midst of a request, says so in
                    # words of its own.
                    is_serves = answer.status_code == 500 and answer.headers.get(
                        "content-type", ""
                    ).startswith("text/plain")
                    assert is_serves or answer.status_code in (502, 503), answer.text
                    time.sleep(0.1)
                if self.stopped.is_set():
                    return

    def until_all_are_written_to_again(self) -> None:
        before = {token: len(texts) for token, texts in self.acknowledged.items()}
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while any(len(self.acknowledged[token]) <= count for token, count in before.items()):
            assert self.is_alive() and time.monotonic() < deadline, self.service.story()
            time.sleep(0.1)


def once_open(service: SeveralNodes) -> dict[str, Any]:
    """The report, when every shard is open in the eyes of the gateway, those that nobody calls
    included.
    """
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        report = service.report()
        if all(shard["open"] for shard in report["shards"]) and all(
            came["done"] for came in report["restorations"]
        ):
            return report
        assert time.monotonic() < deadline, report
        time.sleep(0.1)


def texts(service: SeveralNodes, token: str) -> list[str]:
    with httpx.Client(base_url=service.url, timeout=60) as http:
        found, cursor = [], ""
        while cursor is not None:
            path = "/v1/memories?limit=100" + (f"&cursor={cursor}" if cursor else "")
            page = http.get(path, headers={"Authorization": f"Bearer {token}"}).json()
            found += [memory["content"] for memory in page["items"]]
            cursor = page["next_cursor"]
        return found


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("shards", [2, pytest.param(4, marks=pytest.mark.long)])
def test_a_lost_node_loses_no_acknowledged_write(tmp_path: Path, shards: int) -> None:
    each = shards // 2  # of two nodes
    settings = {
        "shards__count": shards,
        "durability__mode": "replicated",
        "cluster__node_lost_seconds": 1,
        "cluster__lease_seconds": 5,
        "auth__register_per_minute": 0,
    }
    with several_nodes(tmp_path, "ab", **settings) as service:
        owners = sorted(shard["node"] for shard in service.report()["shards"])
        assert owners == ["a"] * each + ["b"] * each
        writer = Writer(
            service,
            [service.register(email) for number in range(2) for email in emails(number, shards, 2)],
        )
        writer.start()
        writer.until_all_are_written_to_again()
        service.nodes["b"].kill()
        # unless it went with the node; whoever follows it has to find out what is to be done
        service.kill_supervisor()
        writer.until_all_are_written_to_again()
        report = once_open(
            service
        )  # a shard acknowledges as soon as it is back; its watcher hears of that at the next look
        behind = [came["behind_seconds_max"] for came in report["restorations"]]
        assert behind == [0] * each and report["gone"] == []
        assert {shard["node"] for shard in report["shards"]} == {"a"}

        late = service.add("b")
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        # One directory after the other, and each is kept.
        while list(late.data_dir.glob("shards/*")):
            assert time.monotonic() < deadline, service.report()
            time.sleep(0.2)
        assert len(list(late.data_dir.glob(f"{SET_ASIDE}/*"))) == each
        writer.until_all_are_written_to_again()
        writer.stopped.set()
        writer.join(WAIT_SECONDS_MAX)
        for token, acknowledged in writer.acknowledged.items():
            found = texts(service, token)
            assert acknowledged <= set(found) and len(found) == len(set(found))
