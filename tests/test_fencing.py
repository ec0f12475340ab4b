"""An owner that is stopped in the middle of writes, while another takes over its shard, and that
wakes up: real processes, real signals.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from runtime.cli import doctor
from runtime.cli.recovery import restore_installation
from runtime.installation import shard_place
from serve_app import Settings
from storage.replication import ObjectStore, restore
from tests.support.in_process import in_process
from tests.support.leases import waited_out
from tests.support.served import REQUEST_SECONDS_MAX, STOP_SECONDS_MAX, Served, refusal, served

pytestmark = pytest.mark.slow

WRITERS = 3
WRITES_BEFORE = 12
POLL_SECONDS = 0.02
WRITE_SECONDS = 0.02  # between two writes of a writer


class Writers:
    """Clients that write all the time. `answered`: (text, whether it was sent after the stop,
    status; 0 for no answer).
    """

    def __init__(self, service: Served, token: str):
        self.service, self.token = service, token
        self.answered: list[tuple[str, bool, int]] = []
        self.stopped = self.over = False
        self.threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(WRITERS)
        ]

    def write(self, text: str) -> None:
        with self._client() as client:
            self._write(client, text)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.service.url,
            headers={"Authorization": f"Bearer {self.token}", "Prefer": "respond-async"},
            timeout=REQUEST_SECONDS_MAX,
            trust_env=False,
        )

    def _write(self, client: httpx.Client, text: str) -> None:
        late, status = self.stopped, 0
        with contextlib.suppress(httpx.HTTPError):
            status = client.post("/v1/memories/raw", json={"content": text}).status_code
        self.answered.append((text, late, status))

    def _run(self, writer: int) -> None:
        number = 0
        with self._client() as client:
            while not self.over:
                self._write(client, f"writer {writer} keeps number {number}")
                number += 1
                time.sleep(WRITE_SECONDS)

    def acknowledged(self, *, late: bool) -> set[str]:
        return {
            text
            for text, sent_late, status in self.answered
            if sent_late == late and 200 <= status < 300
        }


def contents(service: Served, token: str) -> set[str]:
    found, cursor = set(), ""
    while cursor is not None:
        answer = service.http.get(
            f"/v1/memories?limit=100{cursor}", headers={"Authorization": f"Bearer {token}"}
        )
        found |= {item["content"] for item in answer.json()["items"]}
        cursor = answer.json()["next_cursor"] and f"&cursor={answer.json()['next_cursor']}"
    return found


@pytest.mark.parametrize("mode", ["local", "replicated"])
def test_an_owner_that_wakes_up_acknowledges_nothing_and_ends(tmp_path: Path, mode: str) -> None:
    """Without fencing `late` is not empty: writes that waited for the process while it was stopped,
    or came after it woke up, are answered with 201 and are nowhere but on its disk. And the process
    goes on, so that waiting for its end fails.
    """
    options = {
        "object_store__url": f"file://{tmp_path}/objects",
        "durability__mode": mode,
        "durability__wait_seconds_max": 30,
    }
    with served(tmp_path / "first", cluster__lease_seconds=3, **options) as first:
        token = first.register()
        writers = Writers(first, token)
        for thread in writers.threads:
            thread.start()
        while len(writers.acknowledged(late=False)) < WRITES_BEFORE:
            assert all(thread.is_alive() for thread in writers.threads)
            time.sleep(POLL_SECONDS)
        first.process.send_signal(signal.SIGSTOP)
        writers.stopped = True
        waiting = threading.Thread(
            target=writers.write, args=("sent while it was stopped",), daemon=True
        )
        waiting.start()
        shutil.copytree(tmp_path / "first" / "secrets", tmp_path / "second" / "secrets")
        given = Settings.load(
            overrides=[f"data_dir={tmp_path}/second", f"object_store.url=file://{tmp_path}/objects"]
        )
        restore_installation(
            given, cluster_id=None, at=None, take_over=True, report=lambda *_: None
        )
        with served(tmp_path / "second", **options) as second:
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait(STOP_SECONDS_MAX) == 1
            writers.over = True
            for thread in (*writers.threads, waiting):
                thread.join()
            assert any(sent_late for _, sent_late, _ in writers.answered)
            late = writers.acknowledged(late=True)
            assert late == set()
            if mode == "replicated":  # the other may lose the last moments, the account's too
                assert writers.acknowledged(late=False) <= contents(second, token)
            last_line = first.errors.strip().splitlines()[-1]
            assert (
                "is owned by another process by now" in last_line and "Traceback" not in last_line
            )
            found = doctor.ownership(
                Settings.load(
                    overrides=[
                        f"data_dir={tmp_path}/first",
                        f"object_store.url=file://{tmp_path}/objects",
                    ]
                )
            )
            assert found.verdict == "wrong" and "shard 0 was taken over by" in found.what
            assert "Restore the shard" in refusal(
                tmp_path / "first",
                **{name.replace("__", "."): value for name, value in options.items()},
            )


def test_health_and_doctor_name_a_shard_that_was_taken_over(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/objects"
    with in_process(tmp_path / "data", object_store__url=url) as service:
        service.register("ada@example.org")
        service.until(lambda: service.log()["complete"])
        assert service.request("GET", "/v1/health").json()["checks"] == {"shards": "ok"}
        cluster_id = service.shard.store.identity.cluster_id
        with waited_out():
            restore(
                ObjectStore(url).below(shard_place(cluster_id, 0)),
                tmp_path / "other",
                take_over=True,
                owner="a test",
            )
        service.until(lambda: service.request("GET", "/v1/health").status_code == 503)
        health = service.request("GET", "/v1/health").json()
        assert health["status"] == "degraded" and health["checks"] == {
            "shards": "0 of 1 are open; fenced: 0"
        }
