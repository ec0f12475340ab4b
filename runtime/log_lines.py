"""What the service says about itself in words: log lines for people and for machines.

Owns their two formats, text and JSON.

Invariant: no credential reaches a log line, whoever wrote the line. The formatter masks what looks
like one in the finished text, tracebacks included.
"""

from __future__ import annotations

import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from runtime.settings import Settings

# The request a log line belongs to; the gateway sets it, and tasks started for the request inherit
# it.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

_SECRETS = re.compile(
    # API keys, the operator token, webhook signing secrets; not tickets, which are logged where no
    # mail is sent
    r"(mem_sk_|mem_op_|whsec_)[A-Za-z0-9_\-]+"
    # whatever follows an authorization scheme
    r"|(\bBearer\s+|\bauthorization[\"']?\s*[:=]\s*[\"']?\w+\s+)[^\s\"',}]+"
    # JWTs; their heads are short
    r"|\b(ey)[A-Za-z0-9_\-]{8,2048}+\.[A-Za-z0-9_\-]++\.[A-Za-z0-9_\-]*"
    r"|\b(sk-)[A-Za-z0-9_\-]{8,}",  # keys of language model providers
    re.IGNORECASE,
)
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {10: "\\n", 13: "\\r", 9: "\\t"}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def mask_secrets(text: str) -> str:
    """The text with every API key, signing secret, token and authorization value replaced by ****;
    their prefixes stay.
    """
    return _SECRETS.sub(
        lambda match: "".join(group or "" for group in match.groups()) + "****", text
    )


def configure_logging(settings: Settings, *streams: TextIO) -> None:
    """Send all logging of this process to each of `streams` (standard error, where none is given)
    in the configured format, masked.
    """
    root = logging.getLogger()
    root.handlers.clear()
    for stream in streams or (sys.stderr,):
        handler = _Lines(stream)
        handler.setFormatter(_JsonLines() if settings.log.format == "json" else _TextLines())
        root.addHandler(handler)
    root.setLevel(settings.log.level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        inner = logging.getLogger(name)
        inner.handlers.clear()
        inner.propagate = True
    # One line per request from these would drown what the service itself has to say.
    for name in ("uvicorn.access", "httpx", "httpcore", "httpx2", "httpcore2", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.StreamHandler[TextIO]):
    """A line that its stream does not take, as of a full disk, is lost without a word in another
    format on standard error.
    """

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _JsonLines(logging.Formatter):
    """One object per line: at, level, logger, message, request_id, the fields given as `extra`, and
    error (a traceback).
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": _request_id(record),
            **_extra(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return mask_secrets(
            orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        )


class _TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO mneme.shard [request id] message key=value`; line breaks in a
    message are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().translate(_CONTROL)
        request_id = _request_id(record)
        parts = [
            f"{_instant(record)} {record.levelname:<7} {record.name}",
            f"[{request_id}]" if request_id else "",
            message,
        ]
        parts += [f"{name}={value}".translate(_CONTROL) for name, value in _extra(record).items()]
        line = " ".join(part for part in parts if part)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return mask_secrets(line)


def _instant(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        + f"{int(record.msecs):03d}Z"
    )


def _request_id(record: logging.LogRecord) -> str:
    return str(getattr(record, "request_id", "") or REQUEST_ID.get())


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    # Libraries (Ray among them) leave private notes on a record; only what was given as `extra` is
    # meant to be read.
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and name[0] != "_" and name != "request_id"
    }
