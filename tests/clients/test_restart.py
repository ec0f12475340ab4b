"""A service that is killed and started again under a client's writes: none is lost, none is there
twice.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mneme_client import AsyncMneme, Retries

from runtime.serve import free_port
from tests.support.served import Served

AT_ONCE = 16
PATIENT = Retries(attempts_max=100, wait_seconds_max=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("writes", [100, pytest.param(2_000, marks=pytest.mark.long)])
def test_writes_survive_a_kill_of_the_service(tmp_path: Path, writes: int) -> None:
    """Killed once half of the writes are answered, sixteen under way; on the same port and
    directory a moment later.
    """
    services = [Served(tmp_path / "data", port=free_port("127.0.0.1"))]
    try:
        asyncio.run(_write_through_a_kill(services, writes))
    finally:
        services[-1].end()


async def _write_through_a_kill(services: list[Served], writes: int) -> None:
    (first,) = services
    wanted = iter([f"fact number {number}" for number in range(writes)])
    answered: dict[str, str] = {}
    half = asyncio.Event()

    async with AsyncMneme(base_url=first.url, api_key=first.register(), retries=PATIENT) as client:

        async def write() -> None:
            for content in wanted:
                answered[content] = (
                    await client.memories.create(content=content, prefer="respond-async")
                )["id"]
                if len(answered) >= writes // 2:
                    half.set()

        async def kill_and_start() -> None:
            await half.wait()
            first.kill()
            services.append(
                await asyncio.to_thread(
                    Served, first.data_dir, port=int(first.url.rpartition(":")[2])
                )
            )

        await asyncio.gather(kill_and_start(), *(write() for _ in range(AT_ONCE)))
        assert len(answered) == writes
        stored = {
            memory["content"]: memory["id"] async for memory in client.memories.list(limit=100)
        }
        assert stored == answered
        assert (await client.memories.list().page())["total_count"] == writes
