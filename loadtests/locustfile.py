"""Users as they come: each registers, is given some memories, then searches far more than it
writes.

    .venv/bin/mneme serve .venv/bin/locust -f loadtests/locustfile.py --headless -u 8 -r 2 -t 60s
    --host http://127.0.0.1:8000

prints requests per second and latencies by task; without --headless it serves a page at
http://localhost:8089. The mix of tasks and how much a user has at the start come from a file of
loadtests/workloads: MNEME_WORKLOAD=ingest locust …

Every user has an account of its own, so users spread over slots and shards. A user waits for each
answer but does not pause, which makes -u the number of requests in flight. One locust process takes
a core of its own: on the machine that also serves, this measures a mix, not a ceiling
(loadtests/compare.py does that).
"""

from __future__ import annotations

import os
import random
import sys
from collections import deque
from pathlib import Path
from typing import Any

from locust import FastHttpUser, events, task
from locust.exception import StopUser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import conversations
from loadtests.load import Workload

WORKLOAD = Workload.named(os.environ.get("MNEME_WORKLOAD", "standard"))
START_MEMORIES_MAX = 400
KNOWN_IDS_MAX = 2_000
DIFFERENT_TEXTS = 20_000

QUESTIONS = conversations.questions(DIFFERENT_TEXTS, seed=3)
FACTS = conversations.facts(DIFFERENT_TEXTS, seed=4)


class Person(FastHttpUser):
    """One end user of an application that remembers."""

    def on_start(self) -> None:
        """Register, make an API key, and store the first conversations."""
        self.chance = random.Random()
        self.known: deque[str] = deque(maxlen=KNOWN_IDS_MAX)
        account = {
            "email": f"user-{self.chance.getrandbits(64):x}@example.com",
            "password": "a long enough password",
            "full_name": "A user",
        }
        session = self._ask("POST", "/v1/auth/register", account)
        self._key = session.get("access_token", "")
        self._key = self._ask(
            "POST", "/v1/auth/api-keys", {"name": "load", "scopes": ["read", "write"]}
        ).get("key")
        if not self._key:
            raise StopUser
        stored = conversations.memories(
            min(WORKLOAD.memories, START_MEMORIES_MAX), self.chance.randrange(1_000)
        )
        for start in range(0, len(stored), WORKLOAD.batch):
            batch = {"memories": stored[start : start + WORKLOAD.batch], "wait_for_index": True}
            self.known += self._ask("POST", "/v1/memories/batch", batch).get("memory_ids", ())

    @task(WORKLOAD.mix["search"])
    def search(self) -> None:
        self._ask(
            "POST",
            "/v1/search",
            {"query": self.chance.choice(QUESTIONS), "limit": WORKLOAD.results},
        )

    @task(WORKLOAD.mix["add"])
    def add(self) -> None:
        self.known += self._ask("POST", "/v1/memories", {"content": self.chance.choice(FACTS)}).get(
            "memory_ids", ()
        )

    @task(WORKLOAD.mix["read"])
    def read(self) -> None:
        if self.known:
            self._ask(
                "GET", f"/v1/memories/{self.chance.choice(self.known)}", name="/v1/memories/{id}"
            )

    @task(WORKLOAD.mix["list"])
    def list_newest(self) -> None:
        self._ask("GET", "/v1/memories?limit=20")

    @task(WORKLOAD.mix["update"])
    def update(self) -> None:
        if self.known:
            change = {
                "content": self.chance.choice(FACTS),
                "importance": round(self.chance.random(), 2),
            }
            self._ask(
                "PATCH",
                f"/v1/memories/{self.chance.choice(self.known)}",
                change,
                name="/v1/memories/{id}",
            )

    @task(WORKLOAD.mix["delete"])
    def delete(self) -> None:
        if self.known:
            self._ask("DELETE", f"/v1/memories/{self.known.popleft()}", name="/v1/memories/{id}")

    _key = ""

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, name: str | None = None
    ) -> dict[str, Any]:
        """The decoded body of a success; {} for a failure, which locust counts."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        with self.client.request(
            method, path, json=body, headers=headers, name=name, catch_response=True
        ) as answer:
            if not 200 <= answer.status_code < 300:
                answer.failure(f"status {answer.status_code}")
                return {}
            return answer.json()


@events.quitting.add_listener
def _fail_on_errors(environment: Any, **_: Any) -> None:
    """Exit status 1 when any request failed, so that a script can tell."""
    if environment.stats.total.num_failures:
        environment.process_exit_code = 1
