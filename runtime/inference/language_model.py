"""The language model: what may be asked of one, what comes back, and what a failure means to
whoever asked.

    complete   our own questions: a text, or an object of a given pydantic model, within one time
               limit
    answer     somebody else's request passed through: the endpoint's answer as it came
    stream     the same, event by event; it returns once the first event is there

Whatever goes wrong is CompletionFailed: down, late, overloaded, refused, or an answer that makes no
sense. Does not know what a prompt is for. The one model there is speaks to an endpoint
(openai_chat.py), which is imported where the settings name one: what it stands on takes nearly
half a second of a start.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload

from pydantic import BaseModel

from runtime import limits
from runtime.errors import ApiError, UpstreamFailed, UpstreamTimeout

Message = Mapping[str, Any]
Parsed = TypeVar("Parsed", bound=BaseModel | None)
Schema = TypeVar("Schema", bound=BaseModel)


class CompletionFailed(Exception):
    """No usable answer. The message says why and holds neither prompt nor secret; `answer` is the
    error to pass on.
    """

    def __init__(self, reason: str, answer: ApiError | None = None):
        super().__init__(reason)
        self.answer = answer or UpstreamFailed(f"The language model failed: {reason}.")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; zeros where it did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Usage:
        """Read the `usage` of a completion or of a stream's last event."""
        said = answer.get("usage")
        if not isinstance(said, Mapping):
            return cls()
        counts = (said.get(name) for name in ("prompt_tokens", "completion_tokens"))
        return cls(*(count if isinstance(count, int) and count >= 0 else 0 for count in counts))


@dataclass(frozen=True, slots=True)
class Completion(Generic[Parsed]):
    """text: what the model wrote. parsed: the object read from it, None without a schema. usage: of
    all rounds together.
    """

    text: str
    parsed: Parsed
    usage: Usage


class LanguageModel(Protocol):
    """A chat model. `name` is what requests without a model of their own ask for."""

    @property
    def name(self) -> str: ...

    @overload
    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> Completion[None]: ...

    @overload
    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: type[Schema],
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> Completion[Schema]:
        """Messages of role and content -> a completion; with a schema, one whose `parsed` is valid.
        Raises CompletionFailed.
        """
        ...

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A chat completions request without `stream` -> the endpoint's answer, unchanged. Raises
        CompletionFailed.
        """
        ...

    async def stream(self, request: Mapping[str, Any]) -> Events:
        """The same with `stream: true` -> its events, the first of which has arrived. Raises
        CompletionFailed.
        """
        ...

    async def close(self) -> None:
        """Give up what is held. May be called twice."""
        ...


class Events:
    """The events of a stream up to [DONE], each within the time limit of the one before.

    Iterate, and `aclose` whatever happens: that ends the call upstream. Raises CompletionFailed,
    also where the stream ends before every choice was finished: an answer that breaks off is never
    taken for a whole one.
    """

    def __init__(self, sent: AsyncGenerator[Any, None], timeout_seconds: float):
        self._sent = sent
        self.timeout_seconds = timeout_seconds
        self._first: dict[str, Any] | None = None
        self._count = 0
        self._unfinished: set[Any] = set()

    async def begin(self) -> None:
        """Await the first event."""
        try:
            self._first = await self._next()
        except StopAsyncIteration:
            raise CompletionFailed("its stream ended before the first event") from None

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> dict[str, Any]:
        first, self._first = self._first, None
        return await self._next() if first is None else first

    async def aclose(self) -> None:
        await self._sent.aclose()

    async def _next(self) -> dict[str, Any]:
        try:
            with deadline(self.timeout_seconds):
                async with asyncio.timeout(self.timeout_seconds):
                    event = await anext(self._sent)
        except StopAsyncIteration:
            if self._unfinished:
                raise CompletionFailed("its stream ended before the answer was finished") from None
            raise
        self._count += 1
        choices = event.get("choices", ()) if isinstance(event, dict) else None
        if not isinstance(choices, list | tuple) or self._count > limits.STREAM_EVENTS_MAX:
            raise CompletionFailed("its stream makes no sense")
        for choice in choices:
            if not isinstance(choice, dict) or not isinstance(choice.get("index"), int | None):
                raise CompletionFailed("its stream makes no sense")
            index = choice.get("index", 0)
            (
                self._unfinished.add
                if choice.get("finish_reason") is None
                else self._unfinished.discard
            )(index)
        return event


@contextlib.contextmanager
def deadline(seconds: float):
    """Make what came too late a CompletionFailed."""
    try:
        yield
    except TimeoutError as late:
        reason = f"it took longer than {seconds:g} seconds"
        raise CompletionFailed(
            reason, UpstreamTimeout(f"The language model failed: {reason}.", retry_after_seconds=1)
        ) from late
