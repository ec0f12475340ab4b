"""Lists that come in pages, read as if they were whole.

A listing asks for nothing until it is looked at. Iterating over it walks all its pages, each
fetched when the one before is used up; an item that is there throughout is met exactly once,
whatever is written meanwhile. `limit` of the operation is the size of a page, not of the list.

    for memory in client.memories.list(user_id="ada"): ...
    newest = client.memories.list(limit=10).page()["items"]

For `async` code the same with `async for` and `await listing.page()`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, Generic, TypedDict, TypeVar, cast

from .request import Request
from .transport import AsyncTransport, Transport, unreadable

T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None
    """What `cursor` must be for the page after this one."""
    has_more: bool
    total_count: int
    """How many items the whole list has."""


def page_of(request: Request, answer: Any) -> Page[Any]:
    """An answer as a page. Raises UnreadableAnswer where it is none."""
    if not Page.__required_keys__ <= answer.keys():
        raise unreadable(request, "no page of a list")
    return cast(Page[Any], answer)


def after(request: Request, page: Page[T]) -> Request | None:
    """The request of the page after this one; None where this is the last."""
    cursor = page["next_cursor"]
    return (
        replace(request, query={**request.query, "cursor": cursor})
        if page["has_more"] and cursor
        else None
    )


class Listing(Generic[T]):
    """A list of T."""

    def __init__(self, transport: Transport, request: Request):
        self._transport, self._request = transport, request

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page["items"]

    def page(self) -> Page[T]:
        """The first page, or the one at `cursor`."""
        return page_of(self._request, self._transport.json(self._request))

    def pages(self) -> Iterator[Page[T]]:
        """Page by page, to the end."""
        request: Request | None = self._request
        while request is not None:
            page: Page[T] = page_of(request, self._transport.json(request))
            yield page
            request = after(request, page)


class AsyncListing(Generic[T]):
    """A list of T, for `async for`."""

    def __init__(self, transport: AsyncTransport, request: Request):
        self._transport, self._request = transport, request

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page["items"]:
                yield item

    async def page(self) -> Page[T]:
        """The first page, or the one at `cursor`."""
        return page_of(self._request, await self._transport.json(self._request))

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Page by page, to the end."""
        request: Request | None = self._request
        while request is not None:
            page: Page[T] = page_of(request, await self._transport.json(request))
            yield page
            request = after(request, page)
