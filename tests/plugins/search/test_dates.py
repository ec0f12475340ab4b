"""Times in queries: what is read, what is left alone, and how near a day lies."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import numpy as np
import pytest

from plugins.search.dates import Stretch, find_dates, nearness, reference_day

FRIDAY = date(2024, 3, 15)


def ms(*days: str) -> np.ndarray:
    return np.array(
        [int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000) for day in days]
    )


def read(query: str) -> list[str]:
    """Each stretch as "first..last", the year of a yearly one as "*"."""
    shown = []
    for stretch in find_dates(query, FRIDAY):
        ends = [str(day) for day in dict.fromkeys((stretch.first, stretch.last))]
        shown.append(
            "..".join(
                end.replace("2000", "*").replace("2001", "*") if stretch.yearly else end
                for end in ends
            )
        )
    return shown


@pytest.mark.parametrize(
    ("query", "stretches"),
    [
        ("what happened on 7 May 2023?", ["2023-05-07"]),
        ("on the 7th of May, 2023", ["2023-05-07"]),
        ("May 7th, 2023", ["2023-05-07"]),
        ("2023-05-07 and 5/8/2023 and 13/5/2023", ["2023-05-07", "2023-05-08", "2023-05-13"]),
        ("in July 2023", ["2023-07-01..2023-07-31"]),
        ("2023-07", ["2023-07-01..2023-07-31"]),
        ("in 2023", ["2023-01-01..2023-12-31"]),
        ("in the 1990s", ["1990-01-01..1999-12-31"]),
        ("on May 7th", ["*-05-07"]),
        ("at Christmas, or Christmas 2022", ["*-12-25", "2022-12-25"]),
        ("in winter", ["*-12-01..*-02-28"]),
        ("summer of 2022", ["2022-06-01..2022-08-31"]),
        ("yesterday", ["2024-03-14"]),
        ("the day before yesterday", ["2024-03-13"]),
        ("last night, tomorrow", ["2024-03-14", "2024-03-16"]),
        ("3 days ago", ["2024-03-12"]),
        ("a couple of days ago", ["2024-03-13"]),
        ("two weeks ago", ["2024-02-27..2024-03-04"]),
        ("a month ago", ["2024-02-01..2024-02-29"]),
        ("last week", ["2024-03-04..2024-03-10"]),
        ("next weekend", ["2024-03-23..2024-03-24"]),
        ("this year", ["2024-01-01..2024-12-31"]),
        ("in the past two weeks", ["2024-03-01..2024-03-15"]),
        ("on Friday", ["2024-03-15"]),
        ("last Friday", ["2024-03-08"]),
        ("next Monday", ["2024-03-18"]),
        ("last summer", ["2023-06-01..2023-08-31"]),
        ("this summer", ["2024-06-01..2024-08-31"]),
        ("last winter", ["2023-12-01..2024-02-29"]),
        ("last May", ["2023-05-01..2023-05-31"]),
        ("next January", ["2025-01-01..2025-01-31"]),
        ("between May 3 and June 2 2023", ["2023-05-03..2023-06-02"]),
        ("from May to July 2023", ["2023-05-01..2023-07-31"]),
        ("from 2019 to 2021", ["2019-01-01..2021-12-31"]),
        ("in March", ["*-03-01..*-03-31"]),
    ],
)
def test_times_are_read(query: str, stretches: list[str]) -> None:
    assert read(query) == stretches


WEDNESDAY = date(2026, 11, 18)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("the day after tomorrow", 20),
        ("two days after tomorrow", 21),
        ("a day after tomorrow", 20),
        ("the day before yesterday", 16),
        ("two days before yesterday", 15),
        ("three days from now", 21),
        ("in three days' time", 21),
        ("two days ago", 16),
        ("last Thursday", 12),
        ("next Thursday", 19),
        ("this Thursday", 19),
        ("this Monday", 16),
        ("I saw her this Thursday", 12),
        ("I will see her this Monday", 23),
        ("The plumber comes on Monday.", 23),
        ("The plumber came on Monday.", 16),
        ("Did the plumber come on Monday?", 16),
        ("When does the plumber come on Monday?", 23),
        ("The party is on Monday.", 23),
        ("We're meeting on Monday.", 23),
        ("I have an appointment on Monday.", 23),
        ("I have eaten pizza on Monday.", 16),
        ("On Monday we went home.", 16),
        ("On Monday I'll go home.", 23),
        ("I was told that she arrives on Monday.", 23),
        ("She leaves soon. What we ate on Monday", 16),
        ("She comes on Wednesday.", 25),
        ("the dinner on Monday", 16),
        ("Anna's meeting on Monday", 16),
        ("Do you remember the dinner on Monday?", 16),
        ("The exam starts in three days.", 21),
    ],
)
def test_the_verb_tells_which_day_is_meant(text: str, day: int) -> None:
    assert find_dates(text, WEDNESDAY) == [Stretch(date(2026, 11, day), date(2026, 11, day))]


def test_weekends_and_weeks_ahead() -> None:
    assert find_dates("this weekend", WEDNESDAY) == [
        Stretch(date(2026, 11, 21), date(2026, 11, 22))
    ]
    around = [Stretch(date(2026, 11, 29), date(2026, 12, 5))]
    for text in ("two weeks from now", "She returns in two weeks."):
        assert find_dates(text, WEDNESDAY) == around
    assert find_dates("He built it in three days.", WEDNESDAY) == []


@pytest.mark.parametrize(
    "query",
    [
        "may I come in",
        "spring cleaning",
        "a fall",
        "march on",
        "31 June 2023",
        "version 3.11",
        "route 66",
        "the sun",
        "call 5551234",
        "",
        "🙂",
    ],
)
def test_what_is_no_time_is_left_alone(query: str) -> None:
    assert read(query) == []


def test_nearness_of_a_day_fades_within_two_weeks() -> None:
    day = find_dates("10 July 2023", FRIDAY)
    days = ms(
        "2023-07-08",
        "2023-07-09",
        "2023-07-10T23:59",
        "2023-07-12",
        "2023-07-13",
        "2023-07-24",
        "2023-07-25",
    )
    assert nearness(day, days).tolist() == pytest.approx([0, 0.6, 1, 1, 0.6, 0.6, 0])


def test_nearness_of_a_month_and_of_a_year() -> None:
    days = ms("2023-06-30", "2023-07-01", "2023-07-31", "2023-08-12", "2023-08-13")
    assert nearness(find_dates("July 2023", FRIDAY), days).tolist() == [0, 1, 1, 0.5, 0]
    assert nearness(find_dates("in 2023", FRIDAY), days).tolist() == pytest.approx([0.3] * 5)


def test_a_date_without_a_year_is_of_any_year() -> None:
    days = ms("1999-12-26", "2021-01-02", "2021-06-01", "2024-02-29")
    assert nearness(find_dates("at Christmas", FRIDAY), days).tolist() == pytest.approx(
        [1, 0.6, 0, 0]
    )
    assert nearness(find_dates("in winter", FRIDAY), days).tolist() == [1, 1, 0, 0.5]


def test_no_time_and_no_memory_are_near_nothing() -> None:
    assert nearness([], ms("2023-01-01")).tolist() == [0]
    assert nearness([Stretch(FRIDAY, FRIDAY)], ms()).tolist() == []


def test_the_edges_of_the_calendar_do_not_break_it() -> None:
    edge = date(9999, 12, 31)
    assert find_dates("tomorrow", edge) == [] and find_dates("999 years ago", date(1, 1, 1)) == []
    assert nearness(
        find_dates("at Christmas in winter", edge),
        np.array([-62_135_596_800_000, 253_402_300_799_999]),
    ).shape == (2,)


def test_reading_takes_a_moment_whatever_the_query() -> None:
    started = time.process_time()
    for query in (
        "last " * 400,
        "May " * 500,
        "1 " * 1000,
        "the day before " * 130,
        "in the " * 290,
        "2023-" * 400,
        "is a " * 400 + "on Monday",
        "on Monday does it " * 110,
    ):
        find_dates(query, FRIDAY)
    assert time.process_time() - started < 1


def test_the_reference_day_is_in_utc() -> None:
    assert reference_day(0) == date(1970, 1, 1) and reference_day(-1) == date(1969, 12, 31)
