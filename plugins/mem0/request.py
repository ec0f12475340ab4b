"""A request of mem0's client, and the calls of our operations that it becomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from runtime.api.mount import InProcessClient, Scope

PASSED_ON = ("retry-after", "www-authenticate", "x-should-retry", "x-ratelimit-limit")


class CallRefused(Exception):
    """Our own API refused."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


@dataclass(slots=True)
class Mem0Request:
    """One request of theirs, with the parts of its path, its query and its body (an object).

    status  that of our last answer
    writes  how many calls of ours took the request's Idempotency-Key
    """

    client: InProcessClient
    scope: Scope
    path: str
    parts: dict[str, str]
    query: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    writes: int = 0

    async def ask(
        self,
        method: str,
        path: str,
        json: Any = None,
        query: Mapping[str, Any] | None = None,
        prefer: str = "",
    ) -> Any:
        """The body of a success of ours. Raises CallRefused."""
        sent = dict(self.scope["headers"])
        headers = [(b"prefer", prefer.encode())] if prefer else []
        key = sent.get(b"idempotency-key")
        if key is not None and method != "GET":
            # A request of theirs may be several of ours, and a key belongs to one.
            headers.append(
                (
                    b"idempotency-key",
                    key
                    if not self.writes
                    else sha256(b"%d:" % self.writes + key).hexdigest().encode(),
                )
            )
            self.writes += 1
        authorization = sent[b"authorization"].decode("latin-1")
        answer = await self.client.call(
            method,
            path,
            within=self.scope,
            authorization=authorization,
            query=urlencode(query or {}),
            json=json,
            headers=headers,
        )
        if answer.status >= 400:
            raise CallRefused(answer.status, answer.json(), answer.headers)
        self.status = answer.status
        return answer.json()


Handler = Callable[[Mem0Request], Awaitable[Any]]
