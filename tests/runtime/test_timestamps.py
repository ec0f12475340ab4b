from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from runtime.timestamps import (
    MS_MAX,
    MS_MIN,
    EndTimestamp,
    ExclusiveEndTimestamp,
    Timestamp,
    iso,
    parse,
    parse_end,
)

NOON = 1_778_241_600_000  # 2026-05-08T12:00:00Z


class Form(BaseModel):
    at: Timestamp
    until: EndTimestamp | None = None
    before: ExclusiveEndTimestamp | None = None


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-05-08T12:00:00Z", NOON),
        ("2026-05-08T12:00:00.000Z", NOON),
        ("2026-05-08t12:00:00z", NOON),
        ("2026-05-08 12:00:00", NOON),
        ("2026-05-08T12:00", NOON),
        ("2026-05-08T14:00:00+02:00", NOON),
        ("2026-05-08T14:00:00 02:00", NOON),
        ("2026-05-08T14:00:00+0200", NOON),
        ("2026-05-08T06:30:00-05:30", NOON),
        ("2026-05-08T10:00:00-02", NOON),
        ("2026-05-08", NOON - 12 * 3_600_000),
        ("2026-05-08T12:00:00.1Z", NOON + 100),
        ("2026-05-08T12:00:00,123999999Z", NOON + 123),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01", MS_MIN),
        ("9999-12-31T23:59:59.999Z", MS_MAX),
    ],
)
def test_text_becomes_milliseconds(text: str, ms: int) -> None:
    assert parse(text) == ms
    assert Form(at=text).at == ms


@pytest.mark.parametrize(
    "value",
    [
        NOON, 1.5, True, "", " ", "now", "1778241600", "2026-13-01", "2026-02-30",
        "2026-05-08T25:00:00Z", "2026-05-08T12:60Z",
        "2026-05-08T12:00:00+24:00", "2026-05-08T12:00:00+02:60", "2026-05-08Z", "2026-05-08T12Z",
        "2026-W19-5", "20260508", "08/05/2026",
        "2026-05-08T12:00.5Z", "0000-01-01", "10000-01-01", "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "２０２６-05-08", "2026-05-08T12:00:00Z\n", "2026-05-08T12:00:00." + "0" * 80 + "Z", [], {},
        None,
    ],
)  # fmt: skip
def test_anything_else_is_refused_without_echoing_it(value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Form(at=value)
    (finding,) = refused.value.errors()
    assert finding["type"] == "datetime_parsing"
    assert "ISO 8601" in finding["msg"]


def test_an_optional_field_takes_null() -> None:
    assert Form(at="2026-05-08", until=None).until is None


def test_the_schema_says_date_time() -> None:
    assert Form.model_json_schema()["properties"]["at"] == {
        "format": "date-time",
        "title": "At",
        "type": "string",
    }


def test_the_wire_form() -> None:
    assert iso(1_778_248_560_000) == "2026-05-08T13:56:00.000Z"
    assert iso(-1) == "1969-12-31T23:59:59.999Z"
    assert iso(MS_MIN) == "0001-01-01T00:00:00.000Z"
    with pytest.raises(OverflowError):
        iso(MS_MAX + 1)


@given(st.integers(MS_MIN, MS_MAX))
def test_what_iso_writes_parse_reads(ms: int) -> None:
    assert parse(iso(ms)) == ms


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_the_standard_library(moment: datetime) -> None:
    assert parse(moment.isoformat()) == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        milliseconds=1
    )


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2026-05-08", "2026-05-08T23:59:59.999Z"),
        ("2026-05-08T00:00", "2026-05-08T00:00:00.000Z"),
        ("9999-12-31", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_date_alone_as_an_end_is_the_whole_day(text: str, until: str) -> None:
    form = Form.model_validate({"at": text, "until": text, "before": text})
    assert (form.at, form.until) == (parse(text), parse(until))
    assert iso(parse_end(text)) == until
    assert form.before == parse(until) + (len(text) == len("2026-05-08"))
