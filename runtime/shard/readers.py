"""What a shard knows of the processes beside it that read for it: that there may be some, and what
they are asked and told. How they are reached is runtime/cluster/readers.py.

The shard's own process is its only writer, and it alone lets calls in: credential, ceilings and
credits are its, so that they stay exact however many processes read. What comes after that of a
read that takes a while may be done in a reader process, which has the same store open, to read it.
Its snapshot is taken after the call came to it, so it holds whatever was acknowledged before. What
it keeps in memory of an account is fed with the same changes as the shard's own, which are sent
before anybody is told of a commit, and so before any call that follows.

A reader owns nothing: what one does not answer, the shard's process answers itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from runtime.api.context import ReadContext
from runtime.api.operation import Call, Principal, Reply
from runtime.limits import READER_ACCOUNT_BYTES_MAX
from runtime.settings import Settings
from storage.store import Committed, Scope

Announced = Sequence[tuple[str, Mapping[str, Any], str]]  # (kind of the event, its data, of what)
Accessed = Sequence[tuple[str, Any]]  # as ReadContext.count_accesses notes it


class Answered(NamedTuple):
    """What a reader makes of a call: its reply, encoded, and what the shard is to write because of
    it.
    """

    reply: Reply
    announced: Announced
    accessed: Accessed

    @classmethod
    def of(cls, reply: Reply, ctx: ReadContext) -> Answered:
        """ctx: what the read's handler was given."""
        told = [(event.kind, data(), about) for event, data, about in ctx.announced]
        return cls(reply, told, ctx.accessed)


@dataclass(frozen=True, slots=True)
class ReaderFigures:
    """For a shard's status.

    count             how many there are to be
    ready             how many are heard of
    under_way         calls that they were asked
    unsent_bytes      of what they have not taken in yet
    given_back_total  calls that the shard answered after all
    ended_total       processes
    """

    count: int = 0
    ready: int = 0
    under_way: int = 0
    unsent_bytes: int = 0
    calls_total: int = 0
    given_back_total: int = 0
    ended_total: int = 0


_READERS_PART = (
    0.25  # of the memory, together: what many search at once, and not whatever is stored
)


def own_bytes_max(settings: Settings, readers: int) -> int:
    """How many bytes of accounts a shard's own process may keep, where so many read beside it: all
    of them together keep what one would.
    """
    whole = settings.memory.resident_bytes_max
    return int(whole * (1 - _READERS_PART)) if readers else whole


def reader_bytes_max(settings: Settings, readers: int) -> int:
    """How many bytes of accounts each of so many readers may keep."""
    return int(settings.memory.resident_bytes_max * _READERS_PART) // readers


def account_bytes_max(settings: Settings, readers: int) -> int:
    """How many bytes of an account may be in several processes; of a larger one they are in the
    shard's own alone.
    """
    return min(READER_ACCOUNT_BYTES_MAX, reader_bytes_max(settings, readers) // 2)


class Place(Protocol):
    """A reader that has room."""

    async def ask(self, call: Call, principal: Principal, scope: Scope) -> Answered | None:
        """None where it did not answer; then the shard does."""
        ...


class Readers(Protocol):
    """All methods but `feed` and `rekeyed` are called on the shard's event loop.

    count  how many processes beside the shard's own there are to be
    """

    count: int

    async def start(self, after_loss: Callable[[], Awaitable[None]]) -> None:
        """Does not wait until they are ready. after_loss: called when one has ended."""
        ...

    def place(self, account: tuple[int, int], here: int, *, heavy: bool) -> Place | None:
        """Where a call of this account should be read. None: in the shard's own process, which has
        `here` of them under way.
        """
        ...

    def feed(self, committed: Committed) -> None:
        """Tell those who may have something of these accounts in memory what a commit changed;
        from any thread, in the order of commits, and before anybody is told of it.
        """
        ...

    def rekeyed(self, place: int) -> None:
        """Tell them which record of the keyring was overwritten or replaced; from any thread."""
        ...

    def forget(self, scopes: Collection[Scope]) -> None:
        """Have what is in memory of these accounts dropped."""
        ...

    def figures(self) -> ReaderFigures: ...

    async def close(self) -> None: ...


class NoReaders:
    """A shard whose own process reads, too."""

    count = 0

    async def start(self, after_loss: Callable[[], Awaitable[None]]) -> None:
        return None

    def place(self, account: tuple[int, int], here: int, *, heavy: bool) -> Place | None:
        return None

    def feed(self, committed: Committed) -> None:
        return None

    def rekeyed(self, place: int) -> None:
        return None

    def forget(self, scopes: Collection[Scope]) -> None:
        return None

    def figures(self) -> ReaderFigures:
        return ReaderFigures()

    async def close(self) -> None:
        return None
