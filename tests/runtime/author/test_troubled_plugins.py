"""Plugins whose code fails, in a whole service: what it costs them, and that nobody else pays."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mneme import Idempotency, Job, Plugin, Read, Retriever, RetryStrategy, View, Write
from mneme.testing import Harness


class Done(View):
    done: bool


def leave(*_: Any) -> None:
    """What a library does that was made for the command line."""
    sys.exit(2)


async def leave_later(*_: Any) -> None:
    sys.exit(2)


def done(ctx: Any, body: Any) -> dict[str, bool]:
    return {"done": True}


def begin(name: str) -> Callable[..., dict[str, bool]]:
    def handler(ctx: Any, body: Any) -> dict[str, bool]:
        ctx.enqueue(name, {})
        return {"done": True}

    return handler


def read(name: str, handler: Callable[..., Any] = leave, **given: Any) -> Read:
    path = f"/v1/{name.replace('.', '/')}"
    given = {"summary": "Read", **given}
    return Read(name=name, method="GET", path=path, handler=handler, response=Done, **given)


def write(name: str, handler: Callable[..., Any] = leave, **given: Any) -> Write:
    path = f"/v1/{name.replace('.', '/')}"
    given = {"summary": "Write", "scope": "write", "idempotency": Idempotency.CACHED, **given}
    return Write(name=name, method="POST", path=path, handler=handler, response=Done, **given)


ONCE = RetryStrategy(attempts=1)
LEAVING = Plugin(
    "leaving",
    jobs=(
        Job("leaving.works", leave, retry=ONCE),
        Job("leaving.prepares", done, prepare=leave_later, retry=ONCE),
    ),
    operations=(
        read("leaving.reads"),
        read("leaving.reads_much", heavy=True),
        read("leaving.thinks", done, prepare=leave_later),
        write("leaving.writes"),
        write("leaving.prepares", done, prepare=leave_later),
        write("leaving.works", begin("leaving.works")),
        write("leaving.works_later", begin("leaving.prepares")),
    ),
)


def test_code_that_ends_the_process_fails_alone(tmp_path: Path) -> None:
    with Harness(tmp_path, LEAVING) as service:
        me = service.register()
        for operation in LEAVING.operations:
            answer = service.request(operation.method, operation.path, who=me)
            enqueues = operation.name.startswith("leaving.works")
            assert answer.status_code == (200 if enqueues else 500), operation.name
            service.settle()
            made = service.request("POST", "/v1/memories", {"content": "Ada keeps bees."}, who=me)
            assert made.status_code in (201, 202), f"after {operation.name}"


@pytest.mark.parametrize("score", ["high", None, math.nan], ids=str)
@pytest.mark.parametrize("weighs", [lambda settings: 1.0, leave], ids=["weighs", "leaves"])
def test_scores_that_are_no_numbers_cost_their_own_retriever(
    tmp_path: Path, score: Any, weighs: Callable[[Any], float]
) -> None:
    found = Retriever("odd.scores", lambda ctx, query: {0: score}, in_hybrid=True, weight=weighs)
    with Harness(tmp_path, Plugin("odd", retrievers=(found,))) as service:
        me = service.register()
        service.request("POST", "/v1/memories", {"content": "Ada keeps bees."}, who=me)
        service.settle()
        answer = service.request("POST", "/v1/search", {"query": "Who keeps bees?"}, who=me)
        assert answer.status_code == 200
        told = answer.json()
        assert (len(told["results"]), told["degraded_reasons"]) == (1, ["odd.scores_unavailable"])
