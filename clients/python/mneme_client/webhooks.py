"""Is this request really from the service? What a webhook receiver must know before it believes a
word.

    event = verify_webhook(body, headers, secret)

Two forms of signature are sent, and either one is enough: the service's own and that of Standard
Webhooks.

    X-Webhook-Signature-256            sha256=<hex HMAC-SHA256 of "<X-Webhook-Timestamp>.<body>"
                                       under the secret>
    X-Webhook-Signature-256-Previous   the same under the secret before, for a while after a
                                       rotation
    webhook-signature                  v1,<base64 HMAC-SHA256 of
                                       "<webhook-id>.<webhook-timestamp>.<body>">, several parted by
                                       spaces

So a receiver keeps working with its old secret until the grace of a rotation ends, and may be given
both at once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import cast

from .errors import NotGenuine
from .models import WebhookEvent

TOLERANCE_SECONDS = 300
TIMESTAMP_CHARS_MAX = 12
SECRET_PREFIX = "whsec_"


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> WebhookEvent:
    """The event in a received request. Raises NotGenuine.

    body     as it came: bytes that were decoded and encoded again are others
    headers  in any case
    secret   the webhook's signing secret, or several that may count
    now      seconds since 1970, by default the clock's
    """
    found = {name.lower(): value for name, value in headers.items()}
    secrets = [secret] if isinstance(secret, str) else list(secret)
    instant = time.time() if now is None else now
    reasons = [form(body, found, secrets, instant, tolerance_seconds) for form in (_own, _standard)]
    if None not in reasons:
        raise NotGenuine(next(reason for reason in reasons if reason))
    try:
        return cast(WebhookEvent, json.loads(body))
    except ValueError:
        raise NotGenuine("The body is signed but is no JSON.") from None


def _own(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], now: float, tolerance: float
) -> str | None:
    """Why the service's own form does not hold; None where it does."""
    stamp = headers.get("x-webhook-timestamp", "")
    if reason := _untimely(stamp, now, tolerance):
        return reason
    given = [
        headers.get(name, "")
        for name in ("x-webhook-signature-256", "x-webhook-signature-256-previous")
    ]
    signed = stamp.encode() + b"." + body
    expected = [
        "sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets
    ]
    return None if _any_equal(expected, given) else "The signature does not fit body and secret."


def _standard(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], now: float, tolerance: float
) -> str | None:
    """The same for Standard Webhooks, whose secrets are base64 after `whsec_`, or else text."""
    stamp = headers.get("webhook-timestamp", "")
    if reason := _untimely(stamp, now, tolerance):
        return reason
    given = headers.get("webhook-signature", "").split()
    signed = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
    keys = [key for secret in secrets for key in _keys(secret)]
    expected = [
        "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys
    ]
    return None if _any_equal(expected, given) else "The signature does not fit body and secret."


def _untimely(stamp: str, now: float, tolerance: float) -> str | None:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= TIMESTAMP_CHARS_MAX):
        return "The timestamp is missing or no number."
    return (
        None
        if abs(now - int(stamp)) <= tolerance
        else f"It was signed more than {tolerance:g} seconds ago, or in the future."
    )


def _any_equal(expected: Sequence[str], given: Sequence[str]) -> bool:
    """Compared in a time that does not tell where two differ; all of them, whichever fits."""
    return any(
        [
            hmac.compare_digest(mine.encode(), theirs.encode())
            for mine in expected
            for theirs in given
        ]
    )


def _keys(secret: str) -> list[bytes]:
    keys = [secret.encode()]
    if secret.startswith(SECRET_PREFIX):
        text = secret.removeprefix(SECRET_PREFIX).rstrip("=").replace("-", "+").replace("_", "/")
        try:
            keys.append(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
        except binascii.Error:
            return keys
    return [key for key in keys if key]
