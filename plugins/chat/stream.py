"""One answer, streamed: what the endpoint sends goes out event by event, as server-sent events.

An event is held back until the next one is there, since the last one before usage carries `memory`.
From the event that finishes the answer on, all are held until the turn is stored: whoever was told
that the answer is finished may leave, and finds the turn remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from plugins.chat import bounds
from runtime.api.operation import Reply
from runtime.errors import ApiError
from runtime.inference import CompletionFailed, Events, Usage


class Stream:
    """The frames of one answer.

    memory  what the last event before usage says of it
    keep    stores the turn, given what was answered
    """

    def __init__(
        self,
        events: Events,
        memory: Mapping[str, Any],
        keep: Callable[[str], Awaitable[None]],
        reply: Reply,
        request_id: str,
        wants_usage: bool,
    ):
        self._events, self._memory, self._keep = events, memory, keep
        self._reply, self._request_id = reply, request_id
        self._frames = self._all()
        self._wants_usage = wants_usage
        self._same: dict[str, Any] = {}
        self._with_role: set[Any] = set()
        self._said: list[str] = []
        self._is_counted = False  # by the endpoint
        self._has_begun = False  # whether a word of the answer came

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._frames)

    async def aclose(self) -> None:
        await self._frames.aclose()
        await self._events.aclose()  # the frames do not close it when they were never begun

    async def _all(self):
        held: list[dict[str, Any]] = []
        try:
            async for event in self._events:
                self._count(event)
                if _is_usage(event) and not self._wants_usage:
                    continue
                event = self._tidied(event)
                if not held or not _finishes(held[0]) or _says(event):
                    for earlier in held:
                        yield _frame(earlier)
                    held = []
                held.append(event)
            await self._keep("".join(self._said))
            for event in self._recalled(held):
                yield _frame(event)
        except (CompletionFailed, ApiError) as failed:
            for event in held:
                if not _is_usage(event):
                    yield _frame(_unfinished(event))
            yield self._failure(failed.answer if isinstance(failed, CompletionFailed) else failed)
        yield b"data: [DONE]\n\n"

    def _recalled(self, held: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The last events of an answer, with `memory` in the last one before usage."""
        place = next((at for at in reversed(range(len(held))) if not _is_usage(held[at])), 0)
        return [
            event | ({"memory": self._memory} if at == place else {})
            for at, event in enumerate(held)
        ]

    def _count(self, event: dict[str, Any]) -> None:
        """Keep what the answer comes to so far, since its reader may leave at any time."""
        counted = Usage.of(event).total_tokens
        if counted:
            self._reply.outcome, self._is_counted = counted, True
            return
        said = sum(
            bounds.answered_tokens(choice.get("delta")) for choice in event.get("choices") or ()
        )
        self._has_begun = self._has_begun or said > 0
        if not self._is_counted:
            self._reply.outcome += said

    def _tidied(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with what every chunk must agree on, as the first one said it."""
        if not self._same:
            self._same = {name: event[name] for name in ("id", "created", "model") if name in event}
        for choice in event.get("choices") or ():
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                continue
            index = choice.get("index", 0)
            if index not in self._with_role:
                self._with_role.add(index)
                delta.setdefault("role", "assistant")
            if index == 0 and isinstance(delta.get("content"), str):
                self._said.append(delta["content"])
        return {**event, "object": "chat.completion.chunk", **self._same}

    def _failure(self, error: ApiError) -> bytes:
        """The error frame; what came before it is charged, and not remembered as an answer."""
        self._reply.error = error
        if not (self._has_begun or self._is_counted):
            self._reply.outcome = None
        frame = {
            "message": error.message,
            "type": error.type,
            "code": error.code,
            "param": error.param,
        }
        return _frame(
            {"error": {**frame, "status_code": error.status, "request_id": self._request_id}}
        )


def _is_usage(event: dict[str, Any]) -> bool:
    return not event.get("choices") and event.get("usage") is not None


def _finishes(event: dict[str, Any]) -> bool:
    return any(choice.get("finish_reason") for choice in event.get("choices") or ())


def _says(event: dict[str, Any]) -> bool:
    return any(bounds.answered_tokens(choice.get("delta")) for choice in event.get("choices") or ())


def _unfinished(event: dict[str, Any]) -> dict[str, Any]:
    """The event of an answer that failed, as one among others."""
    choices = [{**choice, "finish_reason": None} for choice in event.get("choices") or ()]
    return {**event, "choices": choices}


def _frame(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
