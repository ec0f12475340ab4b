"""A process killed in the midst of ingestion: every accepted job completes, and what it stores is
there exactly once.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.served import Served, served

JOBS = 40
SECONDS_MAX = 120
POLL_SECONDS = 0.05
NAMES = [
    first + second
    for first in ("Ba", "Ce", "Di", "Fo", "Gu", "Ha", "Je", "Li")
    for second in ("ro", "na", "lim", "dor", "sel")
]


def said(number: int) -> dict[str, Any]:
    """A conversation about somebody of its own."""
    name = NAMES[number]
    return {
        "messages": [
            {
                "role": "user",
                "name": "Ada",
                "content": f"My friend {name} plays the cello. {name} lives in {name}ville.",
            }
        ]
    }


def everything(service: Served, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next_cursor": "", "has_more": True}
    while page["has_more"]:
        page = service.http.get(path, params={"limit": 100, "cursor": page["next_cursor"]}).json()
        items += page["items"]
    return items


@pytest.mark.slow
def test_a_job_completes_exactly_once_whatever_kills_the_process(tmp_path: Path) -> None:
    data = tmp_path / "data"
    while True:
        with served(data, jobs__at_once=2) as service:
            headers = {"Authorization": f"Bearer {service.register()}"}
            service.http.headers.update(headers)
            accepted = [
                service.http.post("/v1/memories/process", json=said(n)).json()["job_id"]
                for n in range(JOBS)
            ]
            jobs = everything(service, "/v1/memories/jobs")
            service.kill()
        if any(job["status"] != "completed" for job in jobs):
            break
        data = data.with_name(data.name + "-again")  # the kill came too late to interrupt anything
    with served(data) as service:
        service.http.headers.update(headers)
        deadline = time.monotonic() + SECONDS_MAX
        while {job["status"] for job in everything(service, "/v1/memories/jobs")} != {"completed"}:
            assert time.monotonic() < deadline, "a job never completed"
            time.sleep(POLL_SECONDS)
        jobs = everything(service, "/v1/memories/jobs")
        ingested = {
            job["job_id"]: job["result"]
            for job in jobs
            if "facts_extracted" in (job["result"] or {})
        }
        assert set(ingested) == set(accepted)
        contents = Counter(memory["content"] for memory in everything(service, "/v1/memories"))
        assert contents == {
            text: 1
            for name in NAMES
            for text in (
                f"My friend {name} plays the cello. {name} lives in {name}ville.",
                f"My friend {name} plays the cello.",
                f"{name} lives in {name}ville.",
            )
        }
        assert sum(result["memories_created"] for result in ingested.values()) == 3 * JOBS
        stats = service.http.get("/v1/knowledge-graph/stats").json()
        assert (stats["relationships"], stats["contradictions"]) == (3 * JOBS, 0)
