"""The two clients: `Mneme`, whose calls block, and `AsyncMneme`, whose calls are awaited.

    with Mneme(api_key="mem_sk_…") as client:
        client.memories.create(content="Ada eats no nuts.")
        client.search("What must Ada not eat?")["results"]

Every operation of the service is a method of theirs, by its name: `memories.create` is
`client.memories.create(…)`. What a path names, and the only required field, may be given by
position; the rest is named. Answers are plain dictionaries, typed (models.py).

Two arguments are the same everywhere. `idempotency_key` names a call that changes something:
however often it is sent, it takes effect once; each call has a new one unless you give yours, which
is worth it where the same call may be made again by another process. `timeout` is in seconds, for
connecting and between two pieces of the answer.

A client is safe to share between threads, or between tasks, and keeps its connections open until it
is closed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, cast

import httpx

from .async_operations import AsyncOperations
from .models import Document, JobView, Memory
from .operations import Operations
from .request import header_text
from .retries import Retries
from .transport import AsyncTransport, Transport
from .waiting import address, wait, wait_async

BASE_URL_VARIABLE, API_KEY_VARIABLE = "MNEME_BASE_URL", "MNEME_API_KEY"
BASE_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 60.0
DEADLINE_SECONDS = 60.0
API_PATH = "/v1"
MEMORIES, JOBS, DOCUMENTS = "/v1/memories/", "/v1/memories/jobs/", "/v1/documents/"


def _base_url(given: str | None) -> str:
    """The address as it stands before /v1; one that ends so is taken as well."""
    url = (os.environ.get(BASE_URL_VARIABLE) or BASE_URL) if given is None else given
    url = url.strip()
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address; it begins with http:// or https://.")
    try:
        host = httpx.URL(url).host
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no address: {error}.") from error
    if not host:
        raise ValueError(f"{url!r} is no address; it names no host.")
    return url.rstrip("/").removesuffix(API_PATH).rstrip("/")


def _key(given: str | None) -> str | None:
    if given is not None:
        return header_text("api_key", given)
    surrounding = os.environ.get(API_KEY_VARIABLE)
    return header_text(f"${API_KEY_VARIABLE}", surrounding) if surrounding else None


class Mneme(Operations):
    """A connection to the service.

    base_url  by default $MNEME_BASE_URL, else http://127.0.0.1:8000; with or without /v1
    api_key   an API key or an access token; by default $MNEME_API_KEY. Public operations need none
    timeout   seconds for connecting, and between two pieces of an answer
    retries   how patient it is
    http      an httpx client of your own: proxies, certificates, limits; it stays yours to close

    Raises ValueError for an address that is none, and for a key that no header can hold.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
    ):
        self.transport = Transport(
            _base_url(base_url), _key(api_key), timeout, retries or Retries(), http
        )
        super().__init__(self.transport)

    def __enter__(self) -> Mneme:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self.transport.close()

    def wait_ready(
        self, memory: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> Memory:
        """The memory, once searches find it; given by its id or by what a create answered.

        Raises DeadlineExceeded and ProcessingFailed. For a batch, or several messages, wait_job
        does the same.
        """
        return cast(Memory, wait(self.transport, address(memory, MEMORIES), deadline_seconds))

    def wait_job(
        self, job: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> JobView:
        """The job, once it is completed; given by its id or by an answer that names it. Raises as
        wait_ready.
        """
        return cast(JobView, wait(self.transport, address(job, JOBS), deadline_seconds))

    def wait_document(
        self, document: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> Document:
        """The document, once its chunks are found; given by its id or by what the upload answered.
        Raises as wait_ready.
        """
        return cast(Document, wait(self.transport, address(document, DOCUMENTS), deadline_seconds))


class AsyncMneme(AsyncOperations):
    """A connection to the service, for `async` code. The arguments are those of Mneme."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        http: httpx.AsyncClient | None = None,
    ):
        self.transport = AsyncTransport(
            _base_url(base_url), _key(api_key), timeout, retries or Retries(), http
        )
        super().__init__(self.transport)

    async def __aenter__(self) -> AsyncMneme:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connections."""
        await self.transport.close()

    async def wait_ready(
        self, memory: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> Memory:
        """The memory, once searches find it; given by its id or by what a create answered.

        Raises DeadlineExceeded and ProcessingFailed. For a batch, or several messages, wait_job
        does the same.
        """
        return cast(
            Memory, await wait_async(self.transport, address(memory, MEMORIES), deadline_seconds)
        )

    async def wait_job(
        self, job: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> JobView:
        """The job, once it is completed; given by its id or by an answer that names it. Raises as
        wait_ready.
        """
        return cast(JobView, await wait_async(self.transport, address(job, JOBS), deadline_seconds))

    async def wait_document(
        self, document: str | Mapping[str, Any], deadline_seconds: float = DEADLINE_SECONDS
    ) -> Document:
        """The document, once its chunks are found; given by its id or by what the upload answered.
        Raises as wait_ready.
        """
        return cast(
            Document,
            await wait_async(self.transport, address(document, DOCUMENTS), deadline_seconds),
        )
