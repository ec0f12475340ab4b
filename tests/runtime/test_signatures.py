"""What a receiver must check, and what must not pass."""

from __future__ import annotations

import pytest

from runtime.limits import WEBHOOK_SIGNATURE_AGE_SECONDS_MAX
from runtime.signatures import NotGenuine, headers, signature, verify

SECRET, BODY, NOW = "whsec_" + "A" * 43, b'{"id": "evt_1"}', 1_800_000_000


def test_the_signature_is_the_specification_s() -> None:
    """A value computed elsewhere: printf '1.x' | openssl dgst -sha256 -hmac key."""
    assert (
        signature(b"x", "key", 1)
        == "sha256=fc4913c41a7bf793267e2a384f3261c9436ec2cd097bd745e7b0d99113f510ec"
    )


def test_the_previous_secret_passes_while_it_signs_as_well() -> None:
    signed = headers("evt_1", BODY, [SECRET, "the one before it"], NOW)
    for secret in (SECRET, "the one before it"):
        verify(BODY, signed, secret, NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {"X-Webhook-Signature-256": "sha256=" + "0" * 64},
        {"X-Webhook-Signature-256": ""},
        {"X-Webhook-Signature-256": "sha256=é"},
        {"X-Webhook-Timestamp": str(NOW + 1)},
        {"X-Webhook-Timestamp": "now"},
        {"X-Webhook-Timestamp": "٣"},
        {"X-Webhook-Timestamp": "9" * 5_000},
    ],
)
def test_what_was_changed_does_not_pass(changed: dict[str, str]) -> None:
    signed = headers("evt_1", BODY, [SECRET], NOW)
    verify(BODY, {name.upper(): value for name, value in signed.items()}, SECRET, NOW)
    with pytest.raises(NotGenuine):
        verify(BODY, {**signed, **changed}, SECRET, NOW)


@pytest.mark.parametrize(
    "age", [WEBHOOK_SIGNATURE_AGE_SECONDS_MAX + 1, -WEBHOOK_SIGNATURE_AGE_SECONDS_MAX - 1]
)
def test_what_is_old_or_from_the_future_does_not_pass(age: int) -> None:
    signed = headers("evt_1", BODY, [SECRET], NOW)
    with pytest.raises(NotGenuine):
        verify(BODY, signed, SECRET, NOW + age)
