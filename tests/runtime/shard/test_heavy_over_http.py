"""Requests that read much, over HTTP, against a neighbour: none of them holds the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import serve_app
from runtime import turns
from runtime.api.operation import Read
from runtime.api.plugin import Plugin
from runtime.machine import usable_cores
from tests.support.over_http import OverHttp, over_http

WAIT_SECONDS_MAX = 60
HOLDERS = [f"holder{number}@example.com" for number in range(max(1, usable_cores() // 2))]
WIDE = {"OR": [{"content": {"icontains": f"nothing {number}"}} for number in range(250)]}
ENTITY = "/v1/knowledge-graph"
REQUESTS = {
    "a wide list": ("POST", "/v1/memories/query", {"filters": WIDE}),
    "a wide search": ("POST", "/v1/search", {"query": "note", "filters": WIDE}),
    "a wide advanced search": ("POST", "/v1/search/advanced", {"query": "note", "filters": WIDE}),
    "a wide context": ("POST", "/v1/context", {"query": "note", "filters": WIDE}),
    "a search for a long text": ("POST", "/v1/search", {"query": "note " * 300}),
    "a search in the past": ("POST", "/v1/search", {"query": "note", "as_of": "2026-01-01"}),
    "values": ("POST", "/v1/memories/values", {"field": "metadata.room"}),
    "scopes": ("GET", "/v1/memories/scopes", None),
    "an audit": ("GET", "/v1/memories/audit", None),
    "a part of an export": ("GET", "/v1/account/export/parts", None),
    "a deep question": ("POST", f"{ENTITY}/query", {"entity": "Ada", "depth": 5}),
    "contradictions": ("GET", f"{ENTITY}/contradictions", None),
    "a timeline": ("GET", f"{ENTITY}/timeline/Ada", None),
    "entities": ("GET", f"{ENTITY}/entities?name_prefix=a", None),
    "a search by the graph": ("POST", "/v1/search/graph", {"entity": "Ada", "depth": 5}),
    "an evaluation": (
        "POST",
        "/v1/learning/policies/support/evaluate",
        {"target": {"action_key": "refund"}},
    ),
    "insights": ("GET", "/v1/learning/policies/support/insights", None),
    "policies": ("GET", "/v1/learning/policies", None),
}


class Held:
    """The service while all cores that long work may have are taken."""

    def __init__(self, directory: Path):
        self.may_end = threading.Event()
        self.busy = threading.Semaphore(0)
        plugin = Plugin(
            name="hold",
            operations=(Read("hold.on", "GET", "/hold", self._hold, "", None, heavy=True),),
        )
        self._made = over_http(directory, (*serve_app.registry().plugins, plugin))
        self.service: OverHttp = self._made.__enter__()

    def _hold(self, ctx, body) -> dict:
        self.busy.release()
        assert self.may_end.wait(WAIT_SECONDS_MAX)
        return {}

    def close(self) -> None:
        self._made.__exit__(None, None, None)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    held = Held(tmp_path_factory.mktemp("held"))
    yield held
    held.close()


def test_a_neighbour_is_answered_while_wide_requests_wait_and_run(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cores of heavy reads are taken: so every wide request waits, which shows that it runs
    there and nowhere else; and the neighbour's requests are answered.
    """
    monkeypatch.setattr(turns, "CROWDED_SECONDS", WAIT_SECONDS_MAX * 10)
    service = held.service
    mine = [service.register(f"wide{number}@example.com") for number in range(len(REQUESTS))]
    for who in mine:
        service.remember(who, "a note of Ada")
        service.post(f"{ENTITY}/relationships", {"source": "Ada", "target": "x", "type": "y"}, who)
        decision = {"policy_key": "support", "candidates": [{"action_key": "refund"}],
                    "baseline_action_key": "refund", "mode": "auto"}  # fmt: skip
        assert service.post("/v1/learning/decisions", decision, who).status_code == 201
    neighbour = service.register("neighbour@example.com")
    own = service.remember(neighbour, "mine")[0]
    with ThreadPoolExecutor(len(REQUESTS) + len(HOLDERS)) as clients:
        holders = [
            clients.submit(service.get, "/hold", service.register(email)) for email in HOLDERS
        ]
        for _ in holders:
            assert held.busy.acquire(timeout=WAIT_SECONDS_MAX)

        def ask(who: str, method: str, path: str, body: object) -> int:
            sent = {"Authorization": f"Bearer {who}"}
            return service.http.request(method, path, json=body, headers=sent).status_code

        wide = {
            name: clients.submit(ask, who, *request)
            for who, (name, request) in zip(mine, REQUESTS.items(), strict=True)
        }

        async def waiting() -> int:
            return (await service.shard.status())["heavy_reads"]

        try:
            service.until(lambda: service.run(waiting()) == len(REQUESTS) + len(HOLDERS))
            assert service.http.get("/v1/health").status_code == 200
            assert service.get(f"/v1/memories/{own}", neighbour).status_code == 200
            assert service.post("/v1/search", {"query": "mine"}, neighbour).status_code == 200
            assert not any(answer.done() for answer in wide.values())
        finally:
            held.may_end.set()
        assert {name: answer.result() for name, answer in wide.items()} == dict.fromkeys(wide, 200)
        assert [answer.result().status_code for answer in holders] == [200] * len(holders)


def test_a_filter_beyond_its_bounds_is_refused_over_http(held: Held) -> None:
    """Texts compared too often: 422 with what to do, in a list as in a search."""
    service = held.service
    who = service.register("long@example.com")
    service.remember(who, *("x" * 99_999 for _ in range(9)))
    for path, body in (("/v1/memories/query", {}), ("/v1/search", {"query": "x"})):
        answer = service.post(path, {**body, "filters": WIDE}, who)
        assert answer.status_code == 422
        assert "narrow it by other fields" in answer.json()["error"]["message"]
