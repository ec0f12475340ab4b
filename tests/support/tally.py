"""A memory whose text is a number: one client raises it, others read it, and no read may go back.

A read that begins after a number was acknowledged gives that number or a later one, whoever was
killed, stopped or cut off meanwhile.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import httpx

from tests.support.crashes import REQUEST_SECONDS_MAX, is_no_answer

READERS = 2
PAUSE_SECONDS = 0.1  # between two requests of a client

Transport = Callable[[], httpx.AsyncBaseTransport]


class Tally:
    """In an account of its own. sent: the highest number that may be there; acknowledged: the
    lowest.

    sees_only_stored  what a read gave was stored as safely as what is acknowledged, so that no
                      later read of the same client may give less. False where a shard may be taken
                      over: a read may give what was not acknowledged yet, and is lost then
    """

    def __init__(self, url: str, token: str, transport: Transport, *, sees_only_stored: bool):
        self.url, self._transport = url, transport
        self._headers = {"Authorization": f"Bearer {token}"}
        self._sees_only_stored = sees_only_stored
        self._path = ""
        self.sent = self.acknowledged = self.reads = 0

    async def run(self, going_on: Callable[[], bool]) -> None:
        """Raise it and read it while `going_on()`."""
        async with httpx.AsyncClient(
            base_url=self.url,
            headers=self._headers,
            timeout=REQUEST_SECONDS_MAX,
            transport=self._transport(),
        ) as client:
            while not self._path:
                await self._make(client)
            await asyncio.gather(
                self._raise(client, going_on),
                *(self._read(client, going_on) for _ in range(READERS)),
            )

    async def _make(self, client: httpx.AsyncClient) -> None:
        made = await self._ask(client, "POST", "/v1/memories/raw", 0)
        if made is not None:
            self._path = f"/v1/memories/{made.json()['id']}"

    async def _raise(self, client: httpx.AsyncClient, going_on: Callable[[], bool]) -> None:
        while going_on():
            self.sent = self.acknowledged + 1
            if await self._ask(client, "PATCH", self._path, self.sent) is not None:
                self.acknowledged = self.sent
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, client: httpx.AsyncClient, going_on: Callable[[], bool]) -> None:
        seen = 0
        while going_on():
            floor = max(self.acknowledged, seen)
            answer = await self._ask(client, "GET", self._path, None)
            if answer is not None:
                found = re.search(r"\d+", answer.json()["content"])
                number = int(found[0]) if found else -1
                assert floor <= number <= self.sent, (
                    f"a read gave {number}, after {floor} and before {self.sent + 1}"
                )
                self.reads += 1
                seen = number if self._sees_only_stored else 0
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, number: int | None
    ) -> httpx.Response | None:
        """The answer, None where there was none. A number is written under a key of its own."""
        body = None if number is None else {"content": f"The tally stands at {number}."}
        headers = {} if number is None else {"Idempotency-Key": f"tally-{number}"}
        try:
            answer = await client.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            return None
        if is_no_answer(answer):
            return None
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer
