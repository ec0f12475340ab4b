"""Which slot a tenant lives in: the one fact about an account that follows from its e-mail address
alone.
"""

from __future__ import annotations

import hashlib
import unicodedata


def normalise_email(email: str) -> str:
    """Trimmed, NFKC, lower case: the one spelling under which an account is known."""
    return unicodedata.normalize("NFKC", email.strip()).lower()


def slot_of_email(email: str) -> int:
    """0 … 4095, from any spelling of the address."""
    return int.from_bytes(hashlib.sha256(normalise_email(email).encode()).digest()[:2], "big") >> 4
