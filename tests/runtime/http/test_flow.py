"""Flows through the real gateway and a real shard: who may begin one, what it composes, how it
ends.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import Field

from plugins import accounts
from runtime import limits
from runtime.api.operation import ABORT, END, KEEP, Body, Flow, Idempotency, Operation, Reply
from runtime.api.plugin import Plugin
from runtime.cluster import LocalShards
from runtime.errors import BadRequest, Unavailable
from runtime.http import flow
from runtime.shard import holds
from tests.support.over_http import WAIT_SECONDS_MAX, OverHttp, over_http
from tests.support.worlds import example_plugin

KEPT_SECONDS = 0.3


class Wish(Body):
    label: str = Field(max_length=20, description="What the bookmarks are for.")
    count: int = Field(1, description="How many to make.")
    fail: bool = Field(False, description="Fail after making them.")
    wait: bool = Field(False, description="Wait for the test.")
    outcome: str | None = Field(None, description="What it has cost before it fails.")


class FlowHarness:
    """What handlers and tests tell each other."""

    def __init__(self) -> None:
        self.reached, self.go_on, self.stopped = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )
        self.runs = 0

    async def pause(self) -> None:
        self.reached.set()
        try:
            while not self.go_on.is_set():
                await asyncio.sleep(0.002)
        except asyncio.CancelledError:
            self.stopped.set()
            raise


STAGE = FlowHarness()


def load(ctx: Any, body: Wish) -> dict[str, Any]:
    return {"tenant": ctx.principal.tenant_id, "now": ctx.now}


def finish(ctx: Any, body: Wish) -> None:
    """Leaves a bookmark that says how the flow went."""
    plugin_create({"url": f"end:{ctx.prepared}", "label": body.label}, ctx)


def plugin_create(fields: dict[str, Any], ctx: Any) -> None:
    operation = ctx.registry.operations["bookmarks.create"]
    operation.handler(ctx, operation.body.model_validate(fields))


async def make(call: Any, steps: Any, models: Any) -> Reply:
    STAGE.runs += 1
    if call.body.wait:
        await STAGE.pause()
    made = [
        await steps.run("bookmarks.create", {"url": f"made:{n}", "label": call.body.label})
        for n in range(call.body.count)
    ]
    if call.body.fail:
        steps.outcome = call.body.outcome
        raise BadRequest("As wished.")
    listed = await steps.run("bookmarks.list", query={"label": call.body.label})
    one = await steps.run("bookmarks.get", id=made[0]["id"])
    return Reply(
        200,
        {"made": len(made), "listed": listed["total_count"], "one": one["url"], **call.loaded},
        outcome="whole",
    )


class Words:
    """A body of `count` chunks, one a millisecond. Like a generator's, its chunks end before it may
    be closed.
    """

    def __init__(self, reply: Reply, wish: Wish):
        self.reply, self.wish, self.number = reply, wish, 0
        self.is_running = False

    def __aiter__(self) -> Words:
        return self

    async def __anext__(self) -> bytes:
        self.is_running = True
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            for _ in range(5):
                await asyncio.sleep(0)  # lets go of what it holds
            raise
        finally:
            self.is_running = False
        self.number += 1
        self.reply.outcome = self.number
        if self.number > self.wish.count:
            if self.wish.fail:
                self.reply.error = BadRequest("On the way.")
            raise StopAsyncIteration
        return b"word%d " % self.number

    async def aclose(self) -> None:
        if self.is_running:
            raise RuntimeError("it is running")
        STAGE.stopped.set()


async def stream(call: Any, steps: Any, models: Any) -> Reply:
    reply = Reply(200, headers={"X-Extra": "yes"}, content_type="text/plain")
    reply.body = Words(reply, call.body)
    return reply


def operation(name: str, handler: Any, scope: str = "write", **fields: Any) -> Operation:
    return Flow(
        f"flows.{name}", "POST", f"/v1/flows/{name}", handler, "A flow", None,
        body=Wish, scope=scope, finish=finish, idempotency=Idempotency.CACHED, **fields,
    )  # fmt: skip


PLUGIN = Plugin(
    "flows",
    requires=("bookmarks",),
    operations=(
        operation("make", make, load=load),
        operation("paid", make, load=load, credits=2),
        operation("stream", stream),
    ),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    plugins = (accounts.plugin, example_plugin(), PLUGIN)
    with over_http(
        tmp_path_factory.mktemp("flows"), plugins, limits__requests_per_minute=100_000
    ) as service:
        yield service


@pytest.fixture
def me(service: OverHttp, request: pytest.FixtureRequest) -> str:
    for event in (STAGE.reached, STAGE.go_on, STAGE.stopped):
        event.clear()
    STAGE.runs = 0
    return service.register(f"{abs(hash(request.node.name))}@example.com")


def marks(service: OverHttp, who: str) -> list[str]:
    return sorted(item["url"] for item in service.get("/v1/bookmarks", who).json()["items"])


def test_a_flow_composes_operations_and_ends_in_one_transaction(service: OverHttp, me: str) -> None:
    answer = service.post("/v1/flows/make", {"label": "a", "count": 2}, me)
    body = answer.json()
    assert (answer.status_code, body["made"], body["listed"], body["one"]) == (200, 2, 2, "made:0")
    assert body["tenant"] == service.get("/v1/auth/me", me).json()["user_id"]
    assert marks(service, me) == ["end:whole", "made:0", "made:1"]


def test_a_flow_is_one_request(tmp_path: Path) -> None:
    plugins = (accounts.plugin, example_plugin(), PLUGIN)
    with over_http(tmp_path, plugins, limits__requests_per_minute=2) as service:
        me = service.register()
        assert [
            service.post("/v1/flows/make", {"label": "a", "count": 5}, me).status_code
            for _ in range(3)
        ] == [200, 200, 429]


def test_who_may_not_begin_starts_nothing(service: OverHttp, me: str) -> None:
    key = service.post("/v1/auth/api-keys", {"name": "k", "scopes": ["read"]}, me).json()["key"]
    assert service.post("/v1/flows/make", {"label": "a"}, key).status_code == 403
    assert service.post("/v1/flows/make", {"label": "a"}, "mem_sk_" + "0" * 64).status_code == 401
    assert service.post("/v1/flows/make", {}, me).status_code == 422
    assert service.post("/v1/flows/make", {}, key).status_code == 403
    assert STAGE.runs == 0


def test_a_failed_flow_finishes_nothing_and_frees_its_key(service: OverHttp, me: str) -> None:
    for _ in range(2):
        answer = service.post(
            "/v1/flows/make", {"label": "a", "fail": True}, me, Idempotency_Key="k"
        )
        assert answer.status_code == 400 and answer.json()["error"]["message"] == "As wished."
    assert STAGE.runs == 2
    assert marks(service, me) == ["made:0"], (
        "the parts carry keys of their own, and nothing was finished"
    )


def test_a_flow_whose_end_is_lost_frees_its_key(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = service.shard.execute

    async def losing(call: Any) -> Reply:
        return Reply(503, error=Unavailable("Lost.")) if call.stage == "end" else await whole(call)

    monkeypatch.setattr(service.shard, "execute", losing)
    assert (
        service.post("/v1/flows/make", {"label": "a"}, me, Idempotency_Key="k").status_code == 503
    )

    async def raising(call: Any) -> Reply:
        if call.stage == "end":
            raise Unavailable("Lost.")
        return await whole(call)

    monkeypatch.setattr(LocalShards, "execute", lambda shards, call: raising(call))
    assert (
        service.post("/v1/flows/make", {"label": "b"}, me, Idempotency_Key="l").status_code == 503
    )
    monkeypatch.undo()
    assert (
        service.post("/v1/flows/make", {"label": "b"}, me, Idempotency_Key="l").status_code == 200
    )


def test_a_repeated_key_is_answered_from_the_record(service: OverHttp, me: str) -> None:
    first = service.post("/v1/flows/make", {"label": "a"}, me, Idempotency_Key="k")
    again = service.post("/v1/flows/make", {"label": "a"}, me, Idempotency_Key="k")
    assert again.content == first.content and again.headers["X-Idempotent-Replay"] == "true"
    assert STAGE.runs == 1 and marks(service, me) == ["end:whole", "made:0"]
    assert (
        service.post("/v1/flows/make", {"label": "b"}, me, Idempotency_Key="k").status_code == 409
    )


def test_a_twin_waits_for_a_running_flow(service: OverHttp, me: str) -> None:
    wish = {"label": "a", "wait": True}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.post, "/v1/flows/make", wish, me, Idempotency_Key="k")
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
        twin = service.post("/v1/flows/make", wish, me, Idempotency_Key="k")
        other = service.post("/v1/bookmarks", {"url": "x"}, me, Idempotency_Key="k")
        assert (twin.status_code, twin.headers["Retry-After"], other.status_code) == (409, "1", 409)
        STAGE.go_on.set()
        assert running.result().status_code == 200
    assert STAGE.runs == 1


def test_a_hold_that_expired_is_taken_over_and_its_owner_ends_without_effect(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = {"label": "a", "wait": True}
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(holds, "FLOW_KEPT_SECONDS", 0)
        stale = pool.submit(service.post, "/v1/flows/make", wish, me, Idempotency_Key="k")
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
        STAGE.reached.clear()
        monkeypatch.setattr(holds, "FLOW_KEPT_SECONDS", limits.FLOW_KEPT_SECONDS)
        taken = pool.submit(service.post, "/v1/flows/make", wish, me, Idempotency_Key="k")
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
        STAGE.go_on.set()
        statuses = {stale.result().status_code, taken.result().status_code}
    assert 200 in statuses <= {200, 409}, (
        "parts that run at the same moment tell one of them to wait"
    )
    assert marks(service, me) == ["end:whole", "made:0"]


def test_a_flow_that_is_under_way_keeps_its_key(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (holds, flow):
        monkeypatch.setattr(module, "FLOW_KEPT_SECONDS", KEPT_SECONDS)
    wish = {"label": "a", "wait": True}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.post, "/v1/flows/make", wish, me, Idempotency_Key="k")
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
        until = time.monotonic() + 3 * KEPT_SECONDS
        while time.monotonic() < until:
            twin = service.post("/v1/flows/make", wish, me, Idempotency_Key="k")
            assert twin.status_code == 409
        STAGE.go_on.set()
        assert running.result().status_code == 200
    assert STAGE.runs == 1


def test_a_flow_that_has_ended_keeps_its_key_no_further(service: OverHttp, me: str) -> None:
    async def keeping() -> list[asyncio.Task[Any]]:
        """What would go on for as long as a flow may take."""
        return [task for task in asyncio.all_tasks() if "Flow._keep" in str(task.get_coro())]

    wish = {"label": "a", "wait": True}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.post, "/v1/flows/make", wish, me, Idempotency_Key="k")
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
        assert service.run(keeping())
        STAGE.go_on.set()
        assert running.result().status_code == 200
    service.until(lambda: not service.run(keeping()))


def test_the_key_and_credits_of_a_gateway_that_is_gone_are_had_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = (accounts.plugin, example_plugin(), PLUGIN)
    monkeypatch.setattr(holds, "FLOW_KEPT_SECONDS", KEPT_SECONDS)
    with over_http(tmp_path, plugins, limits__credits_per_month=3) as service:
        me, whole = service.register(), service.shard.execute

        async def unheard(call: Any) -> Reply:
            """What a gateway that is gone says after it has begun."""
            lost = call.stage in (KEEP, END, ABORT)
            return Reply(503, error=Unavailable("Lost.")) if lost else await whole(call)

        def asked() -> httpx.Response:
            return service.post("/v1/flows/paid", {"label": "a"}, me, Idempotency_Key="k")

        with monkeypatch.context() as patch:
            patch.setattr(service.shard, "execute", unheard)
            assert asked().status_code == 503
        assert asked().status_code == 409
        service.until(lambda: asked().status_code != 409)
        assert asked().status_code == 200


def test_a_client_that_leaves_stops_the_flow(service: OverHttp, me: str) -> None:
    body = b'{"label": "a", "wait": true}'
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port)) as client:
        client.sendall(
            b"POST /v1/flows/make HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
            b"Idempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (me.encode(), len(body), body)
        )
        assert STAGE.reached.wait(WAIT_SECONDS_MAX)
    assert STAGE.stopped.wait(WAIT_SECONDS_MAX)
    STAGE.go_on.set()
    again = service.post("/v1/flows/make", {"label": "a", "wait": True}, me, Idempotency_Key="k")
    assert again.status_code in (200, 409)  # 409 for the moment in which the key is given back


def test_a_stream_goes_out_as_it_comes_and_ends_the_flow(service: OverHttp, me: str) -> None:
    answer = service.post("/v1/flows/stream", {"label": "a", "count": 3}, me, Idempotency_Key="k")
    assert answer.text == "word1 word2 word3 " and answer.headers["X-Extra"] == "yes"
    for name in ("X-Request-ID", "X-Process-Time", "X-Service-Version", "X-Service-Build"):
        assert answer.headers[name]
    again = service.post("/v1/flows/stream", {"label": "a", "count": 3}, me, Idempotency_Key="k")
    assert (again.content, again.headers["X-Idempotent-Replay"], again.headers["Content-Type"]) == (
        answer.content,
        "true",
        "text/plain",
    )
    assert marks(service, me) == ["end:4"]


def test_a_stream_that_fails_on_the_way_has_cost_what_it_came_to(
    service: OverHttp, me: str
) -> None:
    for _ in range(2):
        wish = {"label": "a", "count": 1, "fail": True}
        answer = service.post("/v1/flows/stream", wish, me, Idempotency_Key="k")
        assert answer.text == "word1 " and "X-Idempotent-Replay" not in answer.headers
    assert marks(service, me) == ["end:2", "end:2"]


@pytest.mark.parametrize("outcome", [None, "paid"])
def test_a_failed_flow_ends_where_it_has_cost_something(
    service: OverHttp, me: str, outcome: str | None
) -> None:
    wish = {"label": "a", "count": 0, "fail": True, "outcome": outcome}
    for _ in range(2):
        answer = service.post("/v1/flows/make", wish, me, Idempotency_Key="k")
        assert answer.status_code == 400
    assert STAGE.runs == 2 and marks(service, me) == ([] if outcome is None else ["end:paid"] * 2)


@pytest.mark.parametrize("fail", [False, True])
def test_the_end_of_a_stream_that_is_refused_for_a_moment_is_tried_again(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch, fail: bool
) -> None:
    whole, refused = LocalShards.execute, []

    async def busy(shards: LocalShards, call: Any) -> Reply:
        if call.stage == "end" and len(refused) < 2:
            refused.append(call.stage)
            if len(refused) == 1:
                raise Unavailable("Busy.")
            return Reply(503, error=Unavailable("Busy."))
        return await whole(shards, call)

    monkeypatch.setattr(LocalShards, "execute", busy)
    monkeypatch.setattr(flow, "FLOW_END_PAUSES_SECONDS", (0, 0))
    wish = {"label": "a", "count": 1, "fail": fail}
    assert service.post("/v1/flows/stream", wish, me).text == "word1 "
    service.until(lambda: marks(service, me) == ["end:2"])
    assert len(refused) == 2


def test_leaving_a_stream_closes_it_and_ends_the_flow(service: OverHttp, me: str) -> None:
    sent = {
        "json": {"label": "a", "count": 1_000_000},
        "headers": {"Authorization": f"Bearer {me}", "Idempotency-Key": "k"},
    }
    with service.http.stream("POST", "/v1/flows/stream", **sent) as answer:
        next(answer.iter_bytes())
    assert STAGE.stopped.wait(WAIT_SECONDS_MAX)
    service.until(lambda: marks(service, me))
    (end,) = marks(service, me)
    assert end.startswith("end:")
    short = service.post("/v1/flows/stream", {"label": "a", "count": 2}, me, Idempotency_Key="k")
    assert short.text == "word1 word2 ", "half a stream is remembered by nobody"


@pytest.mark.parametrize(("headers", "kept"), [({"Idempotency_Key": "k"}, True), ({}, False)])
def test_a_stream_is_kept_for_nobody_but_who_can_ask_for_it_again(
    service: OverHttp, me: str, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], kept: bool
) -> None:
    ends, end = list[tuple[Any, bool]](), flow.Flow.end

    async def noted(self: Any, reply: Reply, *, remember: bool = True) -> Reply:
        ends.append((reply.body, remember))
        return await end(self, reply, remember=remember)

    monkeypatch.setattr(flow.Flow, "end", noted)
    service.post("/v1/flows/stream", {"label": "a", "count": 2}, me, **headers)
    service.until(lambda: marks(service, me))
    assert ends == [(b"word1 word2 " if kept else None, kept)]
