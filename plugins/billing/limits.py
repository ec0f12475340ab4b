"""Bounds of billing and of calls to a payment provider, with the unit at the end of each name."""

from __future__ import annotations

PERIODS_CLOSED_PER_STEP = 24
RETAINED_PER_PAGE_RECORDS_MAX = 500
PAYMENT_CALL_SECONDS_MAX = 20
PAYMENT_CALL_RETRIES_MAX = 2
# Some twenty hours in all: Stripe knows a repeated request for one for a day.
PAYMENT_ATTEMPTS_MAX = 22
PAYMENT_BACKOFF_MS_MAX = 2 * 3600 * 1000
SIGNATURE_AGE_SECONDS_MAX = 300
REASON_CHARS_MAX = 500
