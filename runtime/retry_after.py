"""How long another server asks to be left alone: its Retry-After header (RFC 9110, 10.2.3)."""

from __future__ import annotations

import re
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")  # some servers send fractions
_SECONDS_MAX = 1e9  # more says no more, and may be more than a float holds


def seconds_asked(header: str | None, now: float | None = None) -> float | None:
    """A Retry-After, in seconds or as a date -> seconds from now, 0 for a date that is past; None
    where there is none, and for anything else.

    now: Unix seconds; the clock's without.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _SECONDS_MAX)
    try:
        moment = parsedate_to_datetime(text)
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, at - (time.time() if now is None else now)), _SECONDS_MAX)
