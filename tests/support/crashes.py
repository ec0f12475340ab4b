"""Writers that keep books while the service under them is killed, and an audit of what is left
afterwards.

Sixteen writers create, batch, change and delete memories over HTTP, each write under an
Idempotency-Key of its own. What was acknowledged goes into the books. A write that got no answer,
or a 502, 503 or 504, is in *limbo*: it may have happened, as a whole, or not at all. Half of those
are sent again at once, under their own keys. After the crash the audit reads everything back and
compares; then every write that is still in limbo is sent again and must have happened exactly once.

tests/test_crash.py runs a few rounds of this, loadtests/chaos.py as many as you like.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

WRITERS = 16
BATCH_ITEMS_MAX = 6
READERS = 8
REQUEST_SECONDS_MAX = 60
INDEXED_SECONDS_MAX = 120
POLL_SECONDS = 0.05
PAUSE_SECONDS = 0.3  # of a writer that got no answer
ANSWERED_SECONDS_MAX = 300  # of an audit's requests, each
NO_ANSWER = (502, 503, 504)  # of the service, or of the proxy before a gateway that was killed


@dataclass
class Write:
    """One request and what it does: `contents` it creates, or the memory `target` that it changes
    or deletes.
    """

    method: str
    path: str
    body: Any
    key: str
    contents: list[str]
    target: str | None = None


class Books:
    """What must be there: id -> content; and what may be. transport: what its requests go through,
    made anew for each client.
    """

    def __init__(
        self,
        url: str,
        token: str,
        seed: int,
        *,
        writers: int = WRITERS,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
    ):
        self.url = url
        self.token = token
        self._writers, self._transport = writers, transport
        self.memories: dict[str, str] = {}
        self.limbo: list[Write] = []
        self.acknowledged = 0
        self.left_in_limbo = 0  # how many there were at the last audit
        self._chance = random.Random(seed)
        self._free: list[str] = []  # memories that nobody is changing just now
        self._written = 0
        self._changed: set[str] = set()  # since the last audit

    # --- writing ----------------------------------------------------------------------------------

    async def write(self, going_on: Callable[[], bool]) -> None:
        """Let all writers write while `going_on()`; it is asked after each answer, and never sees
        one of them waiting on it.
        """
        async with self._client() as client:

            async def writer() -> None:
                while going_on():
                    write = self._next()
                    while not await self._send(client, write):
                        await asyncio.sleep(PAUSE_SECONDS)
                        if not going_on() or self._chance.random() < 0.5:
                            break
                        self.limbo.remove(write)

            await asyncio.gather(*(writer() for _ in range(self._writers)))

    def _next(self) -> Write:
        self._written += 1
        key = f"write-{self._written}"
        dice = self._chance.random()
        if dice < 0.2 and len(self._free) > self._writers:
            target = self._free.pop(self._chance.randrange(len(self._free)))
            if dice < 0.07:
                return Write("DELETE", f"/v1/memories/{target}", None, key, [], target)
            text = self._text()
            return Write("PATCH", f"/v1/memories/{target}", {"content": text}, key, [text], target)
        if dice < 0.35:
            texts = [self._text() for _ in range(self._chance.randint(2, BATCH_ITEMS_MAX))]
            return Write(
                "POST",
                "/v1/memories/batch",
                {"memories": [{"content": text} for text in texts]},
                key,
                texts,
            )
        text = self._text()
        return Write(
            "POST",
            self._chance.choice(("/v1/memories", "/v1/memories/raw")),
            {"content": text},
            key,
            [text],
        )

    def _text(self) -> str:
        """A sentence that no other memory shares its one odd word with."""
        odd = "".join(self._chance.choices("bdfgklmnprtvz", k=14))
        return f"Parcel {odd} went to the depot on the hill."

    async def _send(self, client: httpx.AsyncClient, write: Write) -> bool:
        """Send it and book the answer; -> whether there was one."""
        try:
            answer = await client.request(
                write.method, write.path, json=write.body, headers={"Idempotency-Key": write.key}
            )
        except httpx.TransportError:
            self.limbo.append(write)
            return False
        if is_no_answer(answer):
            self.limbo.append(write)
            return False
        assert answer.status_code in (200, 201, 202), (
            f"{write.method} {write.path}: {answer.status_code} {answer.text}"
        )
        self._book(write, answer.json())
        self.acknowledged += 1
        return True

    def _book(self, write: Write, body: dict[str, Any]) -> None:
        if write.method == "DELETE":
            self.memories.pop(write.target, None)
            return
        if write.method == "PATCH":
            self.memories[write.target] = write.contents[0]
            self._changed.add(write.target)
            self._free.append(write.target)
            return
        made = body.get("memory_ids") or [body["id"]]
        assert len(made) == len(write.contents)
        self.memories |= dict(zip(made, write.contents, strict=True))
        self._changed |= set(made)
        self._free += made

    # --- after the crash --------------------------------------------------------------------------

    async def audit(self, sample: int | None = None) -> None:
        """Compare everything with the books, settle the limbo, and compare again, counts and search
        included.

        sample  how many of the memories that no write since the last audit touched are searched
                for; None for all
        """
        self.left_in_limbo = len(self.limbo)
        async with self._client() as client:
            await self._compare(client, await self._everything(client))
            for write in self.limbo[:]:
                await self._settle(client, write)
            stored = await self._everything(client)
            assert stored == self.memories, (
                "after every write in limbo was repeated, the books and the store differ"
            )
            default = await self._get(client, "/v1/collections/default")
            assert default["memory_count"] == len(self.memories)
            await self._wait_until_indexed(client)
            older = [memory_id for memory_id in self.memories if memory_id not in self._changed]
            if sample is not None and sample < len(older):
                older = self._chance.sample(older, sample)
            await self._each(
                client,
                [*(self._changed & self.memories.keys()), *older],
                self._is_readable_and_found,
            )
            self._changed = set()

    async def _compare(self, client: httpx.AsyncClient, stored: dict[str, str]) -> None:
        """What was acknowledged is there; whatever else is there comes from a write in limbo,
        whole.
        """
        unsure = {write.target: write for write in self.limbo if write.target is not None}
        for memory_id, content in self.memories.items():
            write = unsure.get(memory_id)
            allowed = (
                [content]
                if write is None
                else [content, write.contents[0]]
                if write.contents
                else [content, None]
            )
            assert stored.get(memory_id) in allowed, (
                f"acknowledged, then lost or changed: {memory_id}"
            )
        further = Counter(
            content for memory_id, content in stored.items() if memory_id not in self.memories
        )
        for write in self.limbo:
            if write.target is None:
                there = {further.pop(content, 0) for content in write.contents}
                assert there in ({0}, {1}), f"half a write, or twice: {write.key}"
        assert not further, "there are memories that nobody wrote"

    async def _settle(self, client: httpx.AsyncClient, write: Write) -> None:
        """Send a write in limbo again, under its own key, until it is answered."""
        async with asyncio.timeout(ANSWERED_SECONDS_MAX):
            while True:
                self.limbo.remove(write)
                if await self._send(client, write):
                    return
                await asyncio.sleep(POLL_SECONDS)

    async def _everything(self, client: httpx.AsyncClient) -> dict[str, str]:
        """All memories by listing them; ids are distinct and total_count is their number."""
        items: list[dict[str, Any]] = []
        page: dict[str, Any] = {"has_more": True, "next_cursor": ""}
        while page["has_more"]:
            page = await self._get(client, f"/v1/memories?limit=100&cursor={page['next_cursor']}")
            items += page["items"]
        found = {item["id"]: item["content"] for item in items}
        assert len(found) == len(items) == page["total_count"]
        return found

    async def _wait_until_indexed(self, client: httpx.AsyncClient) -> None:
        async with asyncio.timeout(INDEXED_SECONDS_MAX):
            for status in ("queued", "processing"):
                while (await self._get(client, f"/v1/memories/jobs?status={status}&limit=1"))[
                    "total_count"
                ]:
                    await asyncio.sleep(POLL_SECONDS)

    async def _is_readable_and_found(self, client: httpx.AsyncClient, memory_id: str) -> None:
        memory = await self._get(client, f"/v1/memories/{memory_id}")
        assert (memory["content"], memory["searchable"]) == (self.memories[memory_id], True)
        word = memory["content"].split()[1]
        found = await self._answer(
            client, "POST", "/v1/search", {"query": word, "search_type": "bm25", "limit": 2}
        )
        assert found["evidence_ids"] == [memory_id], f"{word}: {found}"

    async def _each(
        self,
        client: httpx.AsyncClient,
        ids: list[str],
        check: Callable[[httpx.AsyncClient, str], Any],
    ) -> None:
        waiting = iter(ids)

        async def reader() -> None:
            for memory_id in waiting:
                await check(client, memory_id)

        await asyncio.gather(*(reader() for _ in range(READERS)))

    async def _get(self, client: httpx.AsyncClient, path: str) -> dict[str, Any]:
        return await self._answer(client, "GET", path)

    async def _answer(
        self, client: httpx.AsyncClient, method: str, path: str, body: Any = None
    ) -> dict[str, Any]:
        """What a read gives that must succeed; a shard or a gateway that restarts just now is
        waited for.
        """
        async with asyncio.timeout(ANSWERED_SECONDS_MAX):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await client.request(method, path, json=body)
                    if not is_no_answer(answer):
                        break
                await asyncio.sleep(POLL_SECONDS)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _client(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=WRITERS, max_keepalive_connections=WRITERS)
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=REQUEST_SECONDS_MAX,
            limits=limits,
            transport=None if self._transport is None else self._transport(),
        )


def is_no_answer(answer: httpx.Response) -> bool:
    """Whether what came says nothing of what happened: of the service, or of a proxy before a
    gateway that went. Ray Serve's own, on a cluster that was joined, says so with a 500, or with a
    404 while it knows no path, in plain text. A repeat that comes while the first is under way is
    told 409, and when to come again.
    """
    status = answer.status_code
    is_serves = "X-Service-Version" not in answer.headers
    return (
        status in NO_ANSWER
        or (is_serves and status in (404, 500))
        or (status == 409 and "Retry-After" in answer.headers)
    )


def write_until(
    books: Books, acknowledgements: int, strike: Callable[[], None], *, afterwards: int = 0
) -> None:
    """Write; `strike()` in the midst of it, once so many writes were acknowledged; then up to
    `afterwards` more are written.

    The strike comes from within an acknowledgement, when the other writers have requests under way.
    """
    until = books.acknowledged + acknowledgements
    struck = False

    def going_on() -> bool:
        nonlocal struck
        if books.acknowledged >= until and not struck:
            struck = True
            strike()
        return not struck or books.acknowledged < until + afterwards

    asyncio.run(books.write(going_on))
