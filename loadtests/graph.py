"""How long a question to a large graph takes, against a point read of the same service.

    .venv/bin/python loadtests/graph.py
    .venv/bin/python loadtests/graph.py --entities 10000 --edges 50000 --questions 500

Builds a graph in a throw-away directory (names drawn with a heavy tail, so that there are hubs),
serves it in this process through the real gateway, and asks: one memory by its id (the point read),
one entity, and queries of depth 1, 2 and 3, one at a time.
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

from plugins.graph import Claim, assert_claim, ensure_entity
from runtime.api import Call, WriteContext
from runtime.http.credentials import read_authorization
from runtime.shard import auth
from storage.store import Transaction
from tests.support.in_process import InProcess, in_process

EDGES_PER_COMMIT = 2_000
TARGET_RATIO = 5.0


def build(service: InProcess, token: str, entities: int, edges: int, seed: int) -> float:
    """Fill the graph as the API would, many claims to a commit; -> seconds."""
    chance = random.Random(seed)
    credential, slot = read_authorization(
        f"Bearer {token}", service.secrets, int(time.time() * 1000)
    )
    started = time.perf_counter()
    rows: list[Any] = []

    def write(count: int, make: Any) -> None:
        def work(transaction: Transaction) -> None:
            principal, scope = auth.resolve(
                transaction, slot, credential, int(time.time() * 1000), service.secrets
            )
            call = Call("load", slot, int(time.time() * 1000), chance.randbytes(32), "load")
            ctx = WriteContext(transaction, scope, call, service.shard.environment, principal)
            for _ in range(count):
                make(ctx)

        service.shard.store.write(work)

    for start in range(0, entities, EDGES_PER_COMMIT):
        write(
            min(EDGES_PER_COMMIT, entities - start),
            lambda ctx: rows.append(ensure_entity(ctx, f"Entity {len(rows)}", "thing")[0]),
        )

    def edge(ctx: WriteContext) -> None:
        source, target = (
            rows[chance.randrange(entities)],
            rows[int(entities * chance.random() ** 1.5)],
        )
        assert_claim(ctx, Claim(source, chance.choice(("knows", "likes", "uses", "near")), target))

    for start in range(0, edges, EDGES_PER_COMMIT):
        write(min(EDGES_PER_COMMIT, edges - start), edge)
    return time.perf_counter() - started


def measure(service: InProcess, token: str, requests: list[tuple[str, str, Any]]) -> list[float]:
    """Milliseconds of each request, one at a time."""
    taken = []
    for method, path, body in requests:
        started = time.perf_counter()
        answer = service.request(method, path, body, who=token)
        taken.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.text
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as directory, in_process(Path(directory)) as service:
        token = service.register("ada@example.com")
        memory = service.request(
            "POST", "/v1/memories", {"content": "A point to read."}, who=token
        ).json()["id"]
        seconds = build(service, token, options.entities, options.edges, options.seed)
        stats = service.request("GET", "/v1/knowledge-graph/stats", who=token).json()
        print(
            f"{stats['entities']} entities, {stats['relationships']} relationships in "
            f"{seconds:.1f} s; largest degree {stats['max_degree']}"
        )
        names = [f"Entity {chance.randrange(options.entities)}" for _ in range(options.questions)]
        asked = {"point read": [("GET", f"/v1/memories/{memory}", None)] * options.questions}
        asked["entity"] = [
            ("GET", f"/v1/knowledge-graph/entities/{name.replace(' ', '%20')}", None)
            for name in names
        ]
        for depth in (1, 2, 3):
            asked[f"depth {depth}"] = [
                ("POST", "/v1/knowledge-graph/query", {"entity": name, "depth": depth})
                for name in names
            ]
        medians = {}
        for what, requests in asked.items():
            taken = sorted(measure(service, token, requests))
            medians[what] = statistics.median(taken)
            ratio = medians[what] / medians["point read"]
            print(
                f"{what:<12} p50 {medians[what]:7.2f} ms   p95 "
                f"{taken[int(len(taken) * 0.95)]:7.2f} ms   {ratio:5.2f} × a point read"
            )
    return int(medians["depth 2"] > TARGET_RATIO * medians["point read"])


if __name__ == "__main__":
    sys.exit(main())
