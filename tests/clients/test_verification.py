"""verify_webhook takes what the service signed, in either form, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from mneme_client import NotGenuine, verify_webhook
from standardwebhooks.webhooks import Webhook

from runtime.signatures import headers

NEW, OLD = "whsec_" + "C" * 43, "whsec_" + "-_" + "D" * 41
OF_OWN = "a secret of the caller's own"
BODY = '{"event_type": "memory.created", "data": {"id": "mem_1", "content": "Grüße"}}'.encode()
NOW = 1_790_000_000
OWN_FORM = ("X-Webhook-Timestamp", "X-Webhook-Signature-256", "X-Webhook-Signature-256-Previous")


def only(form: str, signed: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in signed.items() if (name in OWN_FORM) == (form == "own")}


@pytest.mark.parametrize("form", ["own", "standard"])
@pytest.mark.parametrize("secret", [NEW, OLD, OF_OWN])
def test_what_is_signed_is_taken(form: str, secret: str) -> None:
    signed = only(form, headers("evt_1", BODY, [secret], NOW))
    assert verify_webhook(BODY, signed, secret, now=NOW)["data"]["id"] == "mem_1"
    assert verify_webhook(
        BODY, {name.upper(): value for name, value in signed.items()}, secret, now=NOW + 300
    )
    assert verify_webhook(BODY, signed, [OF_OWN + "2", secret], now=NOW - 300)


@pytest.mark.parametrize("form", ["own", "standard"])
def test_during_a_rotation_either_secret_does(form: str) -> None:
    signed = only(form, headers("evt_1", BODY, [NEW, OLD], NOW))
    assert verify_webhook(BODY, signed, NEW, now=NOW) == verify_webhook(BODY, signed, OLD, now=NOW)


def test_what_another_library_signs_is_taken() -> None:
    signature = Webhook(NEW).sign("evt_1", datetime.fromtimestamp(NOW, UTC), BODY.decode())
    signed = {"webhook-id": "evt_1", "webhook-timestamp": str(NOW), "webhook-signature": signature}
    assert verify_webhook(BODY, signed, NEW, now=NOW)


@pytest.mark.parametrize("form", ["own", "standard"])
def test_everything_else_is_refused(form: str) -> None:
    signed = only(form, headers("evt_1", BODY, [NEW], NOW))
    for body, given, secret, now in (
        (BODY + b" ", signed, NEW, NOW),
        (BODY, signed, OLD, NOW),
        (BODY, signed, NEW, NOW + 301),
        (BODY, signed, NEW, NOW - 301),
        (
            BODY,
            {**signed, "X-Webhook-Timestamp": str(NOW + 1), "webhook-timestamp": str(NOW + 1)},
            NEW,
            NOW,
        ),
        (BODY, {**signed, "X-Webhook-Timestamp": "١٢", "webhook-timestamp": "9" * 40}, NEW, NOW),
        (BODY, {**signed, "X-Webhook-Signature-256": "", "webhook-signature": ""}, NEW, NOW),
        (
            BODY,
            {**signed, "X-Webhook-Signature-256": "sha256=ü", "webhook-signature": "v1,ü v2"},
            NEW,
            NOW,
        ),
        (BODY, {}, NEW, NOW),
        (BODY, signed, [], NOW),
    ):
        with pytest.raises(NotGenuine):
            verify_webhook(body, given, secret, now=now)


def test_the_tolerance_is_the_caller_s_choice() -> None:
    signed = headers("evt_1", BODY, [NEW], NOW)
    assert verify_webhook(BODY, signed, NEW, now=NOW + 900, tolerance_seconds=1000)
    with pytest.raises(NotGenuine, match="more than 10 seconds"):
        verify_webhook(BODY, signed, NEW, now=NOW + 11, tolerance_seconds=10)


def test_a_signed_body_that_is_no_json_is_refused() -> None:
    with pytest.raises(NotGenuine, match="no JSON"):
        verify_webhook(b"hello", headers("evt_1", b"hello", [NEW], NOW), NEW, now=NOW)
