"""Insights over many decisions: python loadtests/insights.py [--decisions 100000] [--rounds 400]

Fills one policy with decisions and outcomes through the service, then measures `GET …/insights`
against `GET …/decisions/{id}`, a point read, alternating, through the real gateway in one process.
Prints the p50 of both and their ratio, at the start and at the end.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson

from runtime.api import Call, Reply
from runtime.http.credentials import read_authorization
from tests.support.in_process import InProcess, in_process

AT_ONCE = 256
POLICY = "support.complaint"


def call(service: InProcess, token: str, operation: str, body: Any, **path: str) -> Call:
    """What the gateway would make of this request."""
    now_ms = int(time.time() * 1000)
    credential, slot = read_authorization(f"Bearer {token}", service.secrets, now_ms)
    parsed = service.registry.operations[operation].body.model_validate(body)
    return Call(
        operation, slot, now_ms, random.randbytes(32), "load", credential, parsed, path=path
    )


async def fill(service: InProcess, token: str, count: int) -> str:
    """Decisions of two actions, nine in ten with an outcome; -> an id of one."""
    done, last = 0, ""
    new = {
        "policy_key": POLICY,
        "candidates": [{"action_key": "refund"}, {"action_key": "voucher"}],
        "mode": "explore",
    }
    while done < count:
        size = min(AT_ONCE, count - done)
        replies = await together(
            service, [call(service, token, "learning.decide", new) for _ in range(size)]
        )
        receipts = [orjson.loads(reply.body) for reply in replies]
        reports = []
        for receipt in receipts[: size * 9 // 10]:
            success = random.random() < (0.6 if receipt["chosen_action_key"] == "refund" else 0.5)
            reports.append(
                call(
                    service,
                    token,
                    "learning.report",
                    {"success": success},
                    id=receipt["decision_id"],
                )
            )
        await together(service, reports)
        done, last = done + size, receipts[0]["decision_id"]
    return last


async def together(service: InProcess, calls: list[Call]) -> list[Reply]:
    replies = [reply for reply in await service.shard.execute_many(calls) if reply is not None]
    assert all(reply.error is None for reply in replies), next(
        reply.error for reply in replies if reply.error
    )
    return replies


def measure(service: InProcess, token: str, decision: str, rounds: int) -> None:
    """p50 of both, alternating, in milliseconds."""
    paths = {
        "point read": f"/v1/learning/decisions/{decision}",
        "insights": f"/v1/learning/policies/{POLICY}/insights",
    }
    taken: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(rounds):
        for name, path in paths.items():
            begun = time.perf_counter()
            assert service.request("GET", path, who=token).status_code == 200
            taken[name].append((time.perf_counter() - begun) * 1000)
    p50 = {name: statistics.median(times) for name, times in taken.items()}
    print(
        f"  point read {p50['point read']:.3f} ms, insights {p50['insights']:.3f} ms, ratio "
        f"{p50['insights'] / p50['point read']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=400)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, in_process(Path(directory)) as service:
        token = service.register("ada@example.com")
        decision = service.run(fill(service, token, 100))
        print("100 decisions")
        measure(service, token, decision, chosen.rounds)
        begun = time.perf_counter()
        decision = service.run(fill(service, token, chosen.decisions - 100))
        print(
            f"{chosen.decisions:,} decisions, "
            f"{chosen.decisions / (time.perf_counter() - begun):.0f} a second with their outcomes"
        )
        measure(service, token, decision, chosen.rounds)
        begun = time.perf_counter()
        answer = service.request(
            "POST", f"/v1/learning/policies/{POLICY}/evaluate", {"limit": 100_000}, who=token
        )
        print(
            f"  evaluate over all of them: {time.perf_counter() - begun:.2f} s, "
            f"{answer.json()['verdict']}"
        )


if __name__ == "__main__":
    main()
