"""How long another server asks to be left alone."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from runtime.retry_after import seconds_asked


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("0", 0),
        ("9" * 400, 1e9),
        ("Fri, 01 Jan 9999 00:00:00 GMT", 1e9),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50),
        ("Thu, 01 Jan 1970 00:01:00 -0000", 50),  # a date without a zone is in UTC
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0),
        *((said, None) for said in (None, "", "soon", "-5", "1.5.2", "inf", "٣")),
        ("Thu, 01 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_it_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert seconds_asked(header, 10.0) == seconds


def test_a_date_is_as_far_off_as_the_clock_says() -> None:
    before = time.time()
    asked = seconds_asked(formatdate(before + 100, usegmt=True))
    assert asked is not None and 99 - (time.time() - before) <= asked <= 100
