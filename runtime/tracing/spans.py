"""Spans: what is open where, who is under whom, and what an ended one is handed to.

Which span is open is a context variable, so tasks that a request starts are within it, and threads
are not: what runs on a thread is timed by whoever awaits it.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Protocol

Attribute = str | int

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01
_FAILED_STATUS_MIN = 500


@dataclass(frozen=True, slots=True)
class Parent:
    """A span of another process, or of another time, as its `traceparent` tells of it."""

    trace_id: int
    span_id: int
    is_sampled: bool
    is_remote = True


class Span:
    """Open while its `with` statement is, and handed to the recorder at its end.

    kind        "server" of requests, "consumer" of jobs, "internal" of what is part of them
    attributes  by their names; one without a dot is sent as `mneme.{name}`
    error       the type of what ended it, "" without; has_failed: and that was no refusal
    began, ended  nanoseconds since 1970
    """

    __slots__ = (
        "_token",
        "attributes",
        "began",
        "ended",
        "error",
        "has_failed",
        "is_sampled",
        "kind",
        "name",
        "parent",
        "span_id",
        "trace_id",
    )

    is_remote = False

    def __init__(
        self,
        name: str,
        kind: str,
        parent: Span | Parent | None,
        trace_id: int,
        is_sampled: bool,
        attributes: dict[str, Attribute],
    ):
        self.name, self.kind, self.parent, self.attributes = name, kind, parent, attributes
        self.trace_id, self.span_id, self.is_sampled = trace_id, random.getrandbits(64), is_sampled
        self.error, self.has_failed = "", False
        self.began = self.ended = 0
        self._token: Token[Span | None]

    def __enter__(self) -> None:
        self._token = _OPEN.set(self)
        self.began = time.time_ns()

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        _OPEN.reset(self._token)
        del self._token  # with all that the context held, while the span waits to be sent
        if kind is not None:
            self.error = kind.__name__
            self.has_failed = getattr(error, "status", _FAILED_STATUS_MIN) >= _FAILED_STATUS_MIN
        if self.is_sampled and _recorder is not None:
            self.ended = time.time_ns()
            _recorder.record(self)


class _Unrecorded:
    """Stands for a span that nobody asked for."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Apart:
    def __enter__(self) -> None:
        self._token = _OPEN.set(None)

    def __exit__(self, *_: object) -> None:
        _OPEN.reset(self._token)


Opened = Span | _Unrecorded | _Apart


class Recorder(Protocol):
    def samples(self, name: str, trace_id: int, parent: Parent | None) -> bool:
        """Whether a trace is recorded from here on. parent: in whose trace, where somebody else
        began it.
        """
        ...

    def record(self, span: Span) -> None:
        """Take an ended span. Returns at once."""
        ...

    def close(self) -> None:
        """Send what was taken; blocks for a bounded time."""
        ...


_OPEN: ContextVar[Span | None] = ContextVar("open_span", default=None)
_UNRECORDED = _Unrecorded()
_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> Recorder | None:
    """Have this process's spans go to a recorder from now on, None for none; -> the one before."""
    global _recorder
    before, _recorder = _recorder, recorder
    return before


def request(headers: Iterable[tuple[bytes, bytes]]) -> Opened:
    """The span of a request with these headers, under its client's; `answered` names it."""
    if _recorder is None:
        return _UNRECORDED
    sent = ""
    for name, value in headers:
        if name == b"traceparent":
            sent = value.decode("latin-1")
            break
    return _begun(_recorder, "request", "server", sent, {})


def job(traceparent: str, name: str, job_id: str, attempt: int) -> Opened:
    """The span of an attempt of a job, under what queued it, or of a trace of its own."""
    if _recorder is None:
        return _UNRECORDED
    told: dict[str, Attribute] = {"job_id": job_id, "attempt": attempt}
    return _begun(_recorder, f"job {name}", "consumer", traceparent, told)


def resumed(traceparent: str, name: str, of: str, **attributes: Attribute) -> Opened:
    """A span under one of another process; where none was told, a part of the one open here."""
    parent = _parsed(traceparent) if traceparent else _OPEN.get()
    return _under(parent, name, of, attributes)


def part(name: str, of: str, **attributes: Attribute) -> Opened:
    """A span under the one that is open here; nothing where none is. It is called `{name} {of}`."""
    return _under(_OPEN.get(), name, of, attributes)


def apart() -> Opened:
    """Within, no span is open: what serves many requests at once is part of none of them."""
    return _Apart()


def carried() -> str:
    """The open span as a `traceparent`, "" where none is."""
    span = _OPEN.get()
    if span is None:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{_SAMPLED if span.is_sampled else 0:02x}"


def answered(operation: str, method: str, status: int, request_id: str) -> None:
    """Name the request's span after its operation, and say what became of it."""
    span = _OPEN.get()
    if span is None or not span.is_sampled:
        return
    span.name = operation
    span.attributes = {
        "http.request.method": method,
        "http.response.status_code": status,
        "request_id": request_id,
    }
    if status >= _FAILED_STATUS_MIN:
        span.error, span.has_failed = str(status), True


def _begun(
    recorder: Recorder, name: str, kind: str, traceparent: str, told: dict[str, Attribute]
) -> Span:
    parent = _parsed(traceparent) if traceparent else None
    trace_id = random.getrandbits(128) if parent is None else parent.trace_id
    is_sampled = recorder.samples(name, trace_id, parent)
    return Span(name, kind, parent, trace_id, is_sampled, told)


def _under(
    parent: Span | Parent | None, name: str, of: str, attributes: dict[str, Attribute]
) -> Opened:
    if parent is None or _recorder is None:
        return _UNRECORDED
    if not parent.is_sampled and parent is _OPEN.get():
        return _UNRECORDED  # whoever resumes the one above records nothing either
    return Span(f"{name} {of}", "internal", parent, parent.trace_id, parent.is_sampled, attributes)


def _parsed(traceparent: str) -> Parent | None:
    """Read a traceparent; None where it is not one, as the standard has it: a trace of one's own
    begins then.
    """
    read = _TRACEPARENT.fullmatch(traceparent)
    if read is None:
        return None
    trace_id, span_id = int(read[1], 16), int(read[2], 16)
    if not trace_id or not span_id or (traceparent.startswith("00") and read[4]):
        return None
    return Parent(trace_id, span_id, bool(int(read[3], 16) & _SAMPLED))
