"""What the service's address says while nothing behind it can answer: a 503 in the shape of all
errors, with a Retry-After.
"""

from __future__ import annotations

import orjson

from runtime.errors import Unavailable
from runtime.limits import RETRY_AFTER_SECONDS


def unavailable_response(
    *headers: str, request_id: str | None = None, body: bytes | None = None, is_sent: bool = True
) -> bytes:
    """A whole HTTP response. headers: further ones, each a line; body: in place of an error;
    is_sent: whether it is, which it is not where it is asked for by HEAD.
    """
    if body is None:
        body = unavailable_body(
            "The service is starting or restarting. Retry in a moment with the same "
            "Idempotency-Key.",
            request_id,
        )
    lines = (
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/json",
        f"Retry-After: {RETRY_AFTER_SECONDS}",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + (body if is_sent else b"")


def unavailable_body(message: str, request_id: str | None = None) -> bytes:
    """The body of a 503, in the shape of all errors."""
    error = {
        "message": message,
        "type": Unavailable.type,
        "param": None,
        "status_code": Unavailable.status,
    }
    return orjson.dumps(
        {"error": error if request_id is None else error | {"request_id": request_id}}
    )
