"""What a text shows at a glance: patterns that take long are looked for only where they may be."""

from __future__ import annotations

import re
from collections.abc import Iterable

DIGIT = re.compile(r"\d")


def may_hold(text: str, pieces: Iterable[str]) -> bool:
    """Whether a text has a digit, or one of these pieces in whatever case. True of every text that
    is not ASCII, where more letters than these are alike but for their case.

    pieces  in small letters
    """
    if not text.isascii() or DIGIT.search(text):
        return True
    lowered = text.lower()
    return any(piece in lowered for piece in pieces)
