"""How an event proves where it comes from.

    X-Webhook-Timestamp               seconds of the attempt, fresh each time
    X-Webhook-Signature-256           sha256=<hex of HMAC-SHA256(secret's UTF-8 bytes,
                                      "<timestamp>.<body>")>
    X-Webhook-Signature-256-Previous  the same with the secret before, while a rotation's grace
                                      lasts
    webhook-id, webhook-timestamp, webhook-signature   the same event for receivers that follow
                                                       Standard Webhooks

Standard Webhooks reads a secret as base64 after `whsec_`; a secret of the caller's own may be none.
So webhook-signature holds a signature with the decoded bytes, where there are any, and one with the
UTF-8 bytes: a receiver accepts whichever it can make.

Signing and verifying are the same few lines, kept together so that they cannot drift apart. Nothing
here knows what is signed.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence

from runtime.limits import WEBHOOK_SIGNATURE_AGE_SECONDS_MAX

SECRET_PREFIX = "whsec_"
TIMESTAMP_CHARS_MAX = 12
SIGNATURE, PREVIOUS_SIGNATURE, TIMESTAMP = (
    "X-Webhook-Signature-256",
    "X-Webhook-Signature-256-Previous",
    "X-Webhook-Timestamp",
)


class NotGenuine(Exception):
    """The request was not signed with this secret, or too long ago; the message says which."""


def headers(event_id: str, body: bytes, secrets: Sequence[str], now_seconds: int) -> dict[str, str]:
    """The headers that sign `body`. secrets: the one in force, then the previous one while it still
    counts.
    """
    made = {TIMESTAMP: str(now_seconds), SIGNATURE: signature(body, secrets[0], now_seconds)}
    if len(secrets) > 1:
        made[PREVIOUS_SIGNATURE] = signature(body, secrets[1], now_seconds)
    standard = [
        _standard(event_id, body, key, now_seconds)
        for secret in secrets
        for key in _standard_keys(secret)
    ]
    return made | {
        "webhook-id": event_id,
        "webhook-timestamp": str(now_seconds),
        "webhook-signature": " ".join(standard),
    }


def signature(body: bytes, secret: str, timestamp: int) -> str:
    """The value of X-Webhook-Signature-256."""
    return "sha256=" + hmac.digest(secret.encode(), b"%d." % timestamp + body, "sha256").hex()


def verify(body: bytes, given: Mapping[str, str], secret: str, now_seconds: float) -> None:
    """Check a received request; `given` are its headers, in any case. Raises NotGenuine."""
    found = {name.lower(): value for name, value in given.items()}
    timestamp = found.get(TIMESTAMP.lower(), "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= TIMESTAMP_CHARS_MAX):
        raise NotGenuine(f"The header {TIMESTAMP} is missing or no number.")
    if abs(now_seconds - int(timestamp)) > WEBHOOK_SIGNATURE_AGE_SECONDS_MAX:
        raise NotGenuine(
            f"It was signed more than {WEBHOOK_SIGNATURE_AGE_SECONDS_MAX} seconds ago, or in the "
            "future."
        )
    expected = signature(body, secret, int(timestamp)).encode()
    if not any(
        hmac.compare_digest(expected, found.get(name.lower(), "").encode())
        for name in (SIGNATURE, PREVIOUS_SIGNATURE)
    ):
        raise NotGenuine("The signature does not fit body and secret.")


def _standard_keys(secret: str) -> list[bytes]:
    keys = [secret.encode()]
    if secret.startswith(SECRET_PREFIX):
        text = secret.removeprefix(SECRET_PREFIX).rstrip("=")
        try:
            decoded = base64.b64decode(
                text + "=" * (-len(text) % 4),
                altchars=b"-_" if set(text) & set("-_") else None,
                validate=True,
            )
        except ValueError:
            return keys
        keys = [decoded, *keys] if decoded else keys
    return keys


def _standard(event_id: str, body: bytes, key: bytes, timestamp: int) -> str:
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(digest).decode()
