"""One endpoint of a model that somebody else serves over HTTP: how it is asked, how often again,
and what its failures are.

What holds for each question, whatever the model is for:

    tried again   408, 429, 5xx, and connections that fail or break off. Any other status is final,
                  and so is an answer that is too large: it would be the same again
    attempts      a bounded number in all, 0.25 s apart, doubled each time up to 8 s, of which the
                  upper half is left to chance, so that those who failed together do not come back
                  together; or as long as Retry-After says, if that is longer
    deadline      covers every attempt and every wait. A wait that would pass it fails at once
                  rather than at the deadline
    answers       are read up to a limit, and only where the status is 200
    destination   only the settings say where texts go: no redirects, no proxies of the environment
    failures      are told by status or by the kind of the fault. Their messages hold neither text
                  nor key, nor does any cause of theirs

Does not know what is asked or what an answer means; whoever asks makes an error of its own kind of
it. An endpoint has one pool of connections, opened by the first question, and belongs to the event
loop that asks it; close it in that loop. A question that is cancelled leaves its connection closed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from runtime import limits, tracing
from runtime.retry_after import seconds_asked


class EndpointFailed(Exception):
    """No usable answer; another time there may be one."""


class EndpointRefused(EndpointFailed):
    """The endpoint does not take this, with a status that trying again does not change."""

    def __init__(self, reason: str, status: int):
        super().__init__(reason)
        self.status = status


class _TryAgain(Exception):
    """An attempt failed in a way that may pass; `after_seconds` is what the endpoint asked for, 0
    when it did not.
    """

    def __init__(self, reason: str, after_seconds: float = 0.0):
        super().__init__(reason)
        self.after_seconds = after_seconds


class RemoteEndpoint:
    """Asks one endpoint, as the module docstring says: again where that may help, within bounds.

    name              of the endpoint in messages, such as "the reranker"
    section           of the settings, where base_url, model and api_key stand
    attempts_max      for one question
    answer_bytes_max  of one answer
    """

    def __init__(
        self,
        name: str,
        section: str,
        base_url: str,
        api_key: str | None,
        *,
        attempts_max: int,
        answer_bytes_max: int,
    ):
        self._name = name
        self._section = section
        self._base_url = base_url.rstrip("/")
        self._attempts_max = attempts_max
        self._answer_bytes_max = answer_bytes_max
        import httpx  # a tenth of a start, for those that ask an endpoint at all

        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=None,  # the deadline covers everything
            limits=httpx.Limits(max_connections=limits.REMOTE_CONNECTIONS_MAX),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close its connections. May be called twice."""
        await self._client.aclose()

    async def post(self, path: str, deadline: float, **content: Any) -> bytes:
        """POST {base_url}{path} with httpx's json, data or files -> the body of a 200.

        deadline: in seconds of the loop's clock. Raises EndpointFailed, EndpointRefused, and
        TimeoutError at the deadline.
        """
        if self._client.is_closed:
            raise EndpointFailed(f"{self._name} is closed")
        with tracing.part("endpoint", self._section):
            return await self._tried(path, deadline, content)

    async def _tried(self, path: str, deadline: float, content: dict[str, Any]) -> bytes:
        """The body of a 200, after as many attempts as it takes and as there may be."""
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout_at(deadline):
            for attempt in range(1, self._attempts_max + 1):
                try:
                    return await self._attempt(path, content)
                except _TryAgain as failure:
                    if attempt == self._attempts_max:
                        raise EndpointFailed(
                            f"{self._name} failed {attempt} times: {failure}"
                        ) from None
                    wait = max(backoff_seconds(attempt), failure.after_seconds)
                    if clock() + wait >= deadline:
                        late = f"its next attempt, in {wait:.1f} s, would be past the time limit"
                        raise EndpointFailed(f"{self._name} failed: {failure}; {late}") from None
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, path: str, content: dict[str, Any]) -> bytes:
        """The body of a 200. Raises _TryAgain, EndpointFailed, EndpointRefused."""
        import httpx

        try:
            async with self._client.stream("POST", self._base_url + path, **content) as response:
                status = response.status_code
                if status in (408, 429) or status >= 500:
                    raise _TryAgain(
                        f"status {status}",
                        seconds_asked(response.headers.get("Retry-After")) or 0.0,
                    )
                if status != 200:
                    hint = f"check {self._section}.base_url, model and api_key"
                    raise EndpointRefused(f"{self._name} answered {status}; {hint}", status)
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > self._answer_bytes_max:
                        raise EndpointFailed(
                            f"{self._name}'s answer is larger than any answer should be"
                        )
                return bytes(body)
        # An httpx error may quote what was sent, a malformed key included: its type is all that is
        # told, and it is no cause.
        except (
            httpx.LocalProtocolError,
            httpx.UnsupportedProtocol,
            httpx.InvalidURL,
            httpx.DecodingError,
        ) as unusable:
            raise EndpointFailed(
                f"{self._name} cannot be used: {type(unusable).__name__}"
            ) from None
        except httpx.TransportError as broken:
            raise _TryAgain(type(broken).__name__) from None


def backoff_seconds(attempt: int) -> float:
    """The wait after so many attempts, from 1."""
    full = min(
        limits.REMOTE_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1), limits.REMOTE_BACKOFF_SECONDS_MAX
    )
    return full * random.uniform(0.5, 1.0)
