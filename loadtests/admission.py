"""What rate limiting costs the read path: the same reads through two services, one with every limit
on and one with none.

    python loadtests/admission.py [--rounds 400] [--requests 50]

Both live in this process, gateway and shard, without a socket, which makes the path shorter and the
limits' share of it larger than it is for a client. They are asked in turn, a few dozen requests at
a time, in an order that alternates, so whatever else the machine does falls on both; what is
measured is processor time. The limits are so high that none is reached. Requests are counted for
usage on both sides. Printed are medians over the rounds, in microseconds a request, and the median
of the paired differences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import serve_app  # noqa: E402
from runtime.cluster import LocalShards  # noqa: E402
from runtime.installation import Layout, Secrets  # noqa: E402
from serve_app import Settings  # noqa: E402

NO_LIMITS = {
    "limits.requests_per_minute": 0,
    "limits.endpoint_caps": False,
    "limits.credits_per_month": 0,
    "limits.features": False,
}
ALL_LIMITS = {
    "limits.requests_per_minute": 10**8,
    "limits.endpoint_caps": True,
    "limits.search_per_minute": 10**8,
    "limits.credits_per_month": 10**9,
    "limits.features": True,
}
COMMON = {
    "shards.count": 1,
    "embedder.threads": 1,
    "billing.default_tier": "free",
    "log.level": "error",
}
MEMORIES = 50
WARM_UP_ROUNDS = 10


class Side:
    """A service on a directory of its own, and the microseconds of each of its rounds."""

    def __init__(self, directory: Path, limits: dict[str, Any]):
        self.settings = Settings.load(None, {**COMMON, **limits, "data_dir": str(directory)})
        self.rounds: list[float] = []
        self._headers: list[tuple[bytes, bytes]] = [
            (b"host", b"mneme.test"),
            (b"content-type", b"application/json"),
        ]
        self._paths: list[str] = []

    async def open(self) -> None:
        """Open the service, register an account and store what is read later."""
        Layout.load_or_create(self.settings.data_dir, 1)
        Secrets.load(self.settings.data_dir / "secrets", create=True)
        self._shards = LocalShards([await serve_app.open_shard(self.settings, 0)])
        self._application = serve_app.build_local(self.settings, self._shards)
        account = {
            "email": "load@example.com",
            "password": "a long enough password",
            "full_name": "Load",
        }
        token = (await self.ask("POST", "/v1/auth/register", account))["access_token"]
        self._headers.append((b"authorization", f"Bearer {token}".encode()))
        memories = [
            {"content": f"Parcel {number} went to the depot."} for number in range(MEMORIES)
        ]
        made = await self.ask(
            "POST", "/v1/memories/batch", {"memories": memories, "wait_for_index": True}
        )
        self._paths = [f"/v1/memories/{memory_id}" for memory_id in made["memory_ids"]]

    async def close(self) -> None:
        await self._shards.drain()
        await self._shards.close()

    async def round(self, requests: int) -> float:
        """Microseconds of processor time a request."""
        begun = time.process_time()
        for number in range(requests):
            await self._get(self._paths[number % len(self._paths)])
        return (time.process_time() - begun) / requests * 1e6

    async def _get(self, path: str) -> None:
        status, _ = await self._send("GET", path, b"")
        if status != 200:
            raise SystemExit(f"{path} was answered {status}.")

    async def ask(self, method: str, path: str, body: dict[str, Any]) -> Any:
        status, content = await self._send(method, path, json.dumps(body).encode())
        if status not in (200, 201):
            raise SystemExit(f"{path} was answered {status}: {content[:200]!r}.")
        return json.loads(content)

    async def _send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        status, content = 0, b""

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, content
            status = message.get("status", status)
            content += message.get("body", b"")

        scope = {
            "type": "http", "http_version": "1.1", "scheme": "http", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": b"", "headers": self._headers,
            "client": ("127.0.0.1", 1),
        }  # fmt: skip
        await self._application(scope, receive, send)
        return status, content


async def _measure(rounds: int, requests: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mneme-admission-") as directory:
        sides = [Side(Path(directory) / "off", NO_LIMITS), Side(Path(directory) / "on", ALL_LIMITS)]
        for side in sides:
            await side.open()
        for number in range(rounds + WARM_UP_ROUNDS):
            for side in sides if number % 2 else sides[::-1]:
                side.rounds.append(await side.round(requests))
        for side in sides:
            await side.close()
    off, on = (side.rounds[WARM_UP_ROUNDS:] for side in sides)
    without = statistics.median(off)
    more = statistics.median(one - other for one, other in zip(on, off, strict=True))
    return {
        "off_us": round(without, 1),
        "on_us": round(statistics.median(on), 1),
        "difference_us": round(more, 2),
        "share": f"{more / without:+.1%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What rate limiting costs the read path.")
    parser.add_argument("--rounds", type=int, default=400, help="rounds of each side (%(default)s)")
    parser.add_argument(
        "--requests", type=int, default=50, help="requests of a round (%(default)s)"
    )
    options = parser.parse_args()
    print(json.dumps(asyncio.run(_measure(options.rounds, options.requests))))


if __name__ == "__main__":
    main()
