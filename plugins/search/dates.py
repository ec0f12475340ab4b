"""The times a query speaks of, and how near a memory lies to them.

"What did we plan in July 2023", "who called yesterday", "where were we last summer": a memory that
happened then, or was told soon after, is a better answer, so nearness to a named time is a soft
boost and never a filter. Owns the reading of English time expressions; it knows neither storage nor
ranking.

A query's time becomes *stretches* of days. Relative ones ("two weeks ago", "last Friday") count
from a reference day; a weekday is the one to come where the verb beside it looks ahead. A date
without a year ("in July", "on May 7th", "at Christmas") means that time of any year. Seasons are
those of the northern half.

    named                    1 within                     less around it: things are told later
    a day                    the day and 2 days after     0.6 from 1 day before to 14 days after
    weeks, months, seasons   the stretch itself           0.5 up to 12 days after
    a year or more           0.3

Days are counted from 1970-01-01 in UTC. A text that has neither a digit nor a piece of a word for a
time costs no more than looking for those.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import numpy as np

from plugins.search.tenses import AHEAD, UNTOLD, tense_around
from runtime.timestamps import DAY_MS
from storage.text import may_hold

READ_CHARS_MAX = 2_000
STRETCHES_MAX = 8
YEARS_MAX = (
    64  # a date without a year is tried in so many years, the last ones memories happened in
)
AGO_MAX = 1_000

DAY_AFTER, DAY_AROUND = 2, (-1, 14)
STRETCH_AFTER = 12
DAY_NEAR, STRETCH_NEAR, YEAR = 0.6, 0.5, 0.3
SHORT_DAYS, LONG_DAYS = (
    3,
    200,
)  # up to the first a stretch counts as a day (a weekend does), from the second as a year

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_PLAIN_MONTHS = frozenset(["may", "march", "mar", "jan", "dec", "sep"])
_WEEKDAYS = {
    name: number for number, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_FEASTS = {"christmas": (12, 25), "new year": (1, 1), "halloween": (10, 31), "valentine": (2, 14)}
_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_UNIT = r"(?:day|week|weekend|month|year)"
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})".replace(" ", r"\s+")
_EXPRESSION = re.compile(
    rf"""\b(?=\w)(?:
      (?P<iso>(?P<iso_y>{_YEAR})[-/.](?P<iso_m>0?[1-9]|1[0-2])(?:[-/.](?P<iso_d>0?[1-9]|[12]\d|3[01]))?)\b
    | (?P<slash>(?P<one>\d\d?)[/.](?P<two>\d\d?)[/.](?P<slash_y>{_YEAR}))\b
    | (?P<dmy>(?P<dmy_d>{_DAY})\s+(?:of\s+)?(?P<dmy_m>{_MONTH})
        (?:,?\s+(?:of\s+)?(?P<dmy_y>{_YEAR})\b)?)
    | (?P<mdy>(?P<mdy_m>{_MONTH})\s*(?P<mdy_d>{_DAY})\b(?:,?\s+(?:of\s+)?(?P<mdy_y>{_YEAR})\b)?)
    | (?P<month>(?:(?P<month_which>last|this|next)\s+)?(?P<month_m>{_MONTH})
        (?:,?\s+(?:of\s+)?(?P<month_y>{_YEAR})\b)?)
    | (?P<ago>(?P<ago_n>{_COUNT})\s+(?P<ago_unit>{_UNIT})s?\s+(?:ago|earlier|back)\b)
    | (?P<past>(?:last|past|previous)\s+(?P<past_n>{_COUNT})\s+(?P<past_unit>{_UNIT})s?\b)
    | (?P<period>(?P<period_which>last|past|previous|this|next|coming)\s+(?P<period_unit>{_UNIT})\b)
    | (?P<weekday>(?:(?P<weekday_which>last|next|this|on)\s+)
        (?P<weekday_d>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b)
    | (?P<season>(?:(?P<season_which>last|this|next|in|during|of)\s+(?:the\s+)?)?
        (?P<season_s>spring|summer|autumn|fall|winter)
        (?:\s+(?:of\s+)?(?P<season_y>{_YEAR})\b)?)\b
    | (?P<feast>(?P<feast_f>christmas|new\ year|halloween|valentine)(?:['’]?s)?(?:\s+(?:eve|day))?
        (?:\s+(?:of\s+)?(?P<feast_y>{_YEAR})\b)?)
    | (?P<beside>(?P<beside_n>{_COUNT})\s+(?P<beside_unit>{_UNIT})s?\s+
        (?P<beside_way>after|before|from)\s+(?P<beside_day>yesterday|today|tomorrow|now)\b)
    | (?P<ahead>in\s+(?P<ahead_n>{_COUNT})\s+(?P<ahead_unit>{_UNIT})s?\b
        (?P<ahead_time>['’]?s?\s+time\b)?)
    | (?P<near>(?:the\s+)?day\s+(?:before\s+yesterday|after\s+tomorrow)
        |yesterday|today|tonight|tomorrow|this\s+(?:morning|afternoon|evening)|last\s+night)\b
    | (?P<year>(?P<year_y>{_YEAR})(?:s\b)?)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# Of these and the digits every expression has one.
_PIECES = (
    "day", "week", "year", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct",
    "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "spring", "summer", "autumn",
    "fall", "winter", "christmas", "halloween", "valentine", "night", "tomorrow", "morning",
    "afternoon", "evening",
)  # fmt: skip
_BETWEEN = re.compile(r"\s*(?:and|to|until|till|through|-|–)\s*", re.IGNORECASE)
_LEADS_TO_MONTH = re.compile(
    r"\b(?:in|of|since|until|during|by|from|to|and|between|early|mid|late)[\s-]+$", re.IGNORECASE
)
_OPENS_RANGE = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Days first … last, both included. Without a year (`yearly`) it is one of the year 2000 and
    means that time of any year.
    """

    first: date
    last: date
    yearly: bool = False


def find_dates(query: str, reference: date) -> list[Stretch]:
    """What the query names, in its order, at most STRETCHES_MAX. "from A to B" and "between A and
    B" are one stretch.
    """
    found: list[Stretch] = []
    begin = end = 0
    for _, match, stretch in _expressions(query, reference):
        opened = (
            found
            and _BETWEEN.fullmatch(query, end, match.start())
            and _OPENS_RANGE.search(query[:begin])
        )
        if opened and (joined := _joined(found[-1], stretch)) is not None:
            found[-1] = joined
        else:
            found.append(stretch)
        begin, end = match.start(), match.end()
        if len(found) == STRETCHES_MAX:
            break
    return found


def relative_dates(text: str, reference: date) -> list[tuple[int, Stretch]]:
    """(where it ends, what it means) of each time in the text that counts from the day on which it
    was said: "yesterday", "two weeks ago", "last summer". At most STRETCHES_MAX, in order.
    """
    found = (
        (match.end(), stretch)
        for kind, match, stretch in _expressions(text, reference)
        if not stretch.yearly and (kind in _RELATIVE or match.groupdict().get(f"{kind}_which"))
    )
    return list(islice(found, STRETCHES_MAX))


def named_days(query: str, reference: date) -> list[tuple[str, date]]:
    """(its words, the day) of each whole date in the query, at most STRETCHES_MAX, in order."""
    found = (
        (match[0], stretch.first)
        for kind, match, stretch in _expressions(query, reference)
        if kind in _WHOLE and stretch.first == stretch.last and not stretch.yearly
    )
    return list(islice(found, STRETCHES_MAX))


def _expressions(text: str, reference: date) -> Iterator[tuple[str, re.Match[str], Stretch]]:
    """(kind, match, meaning) of each expression that means a time."""
    if not may_hold(text, _PIECES):
        return
    for match in _EXPRESSION.finditer(text[:READ_CHARS_MAX]):
        kind = (
            match.lastgroup
            if match.lastgroup in _READERS
            else next(name for name in _READERS if match[name] is not None)
        )
        stretch = _read(kind, match, reference)
        if stretch is not None:
            yield kind, match, stretch


def nearness(stretches: Sequence[Stretch], occurred_at: np.ndarray) -> np.ndarray:
    """(n,) Unix milliseconds -> (n,) float32 from 0 to 1: how near each lies to the nearest of the
    stretches.
    """
    best = np.zeros(len(occurred_at), np.float32)
    if not len(best) or not stretches:
        return best
    days = occurred_at // DAY_MS
    for stretch in stretches:
        for first, last in _placed(stretch, days):
            np.maximum(best, _near(days - first, last - first + 1), out=best)
    return best


def within(stretches: Sequence[Stretch]) -> float:
    """How near what happened within one of the stretches is: of years less, where they are all that
    is named.
    """
    lengths = [(stretch.last - stretch.first).days + 1 for stretch in stretches]
    return YEAR if lengths and min(lengths) >= LONG_DAYS else 1.0


def _near(after: np.ndarray, length: int) -> np.ndarray:
    """(n,) 0 to 1, how near each is. after: days since the first day of a stretch of `length`."""
    if length >= LONG_DAYS:
        return np.where((after >= 0) & (after < length), YEAR, 0).astype(np.float32)
    if length <= SHORT_DAYS:
        around = (after >= DAY_AROUND[0]) & (after < length + DAY_AROUND[1])
        within = (after >= 0) & (after < length + DAY_AFTER)
        return np.where(within, 1, np.where(around, DAY_NEAR, 0)).astype(np.float32)
    within, later = (
        (after >= 0) & (after < length),
        (after >= length) & (after < length + STRETCH_AFTER),
    )
    return np.where(within, 1, np.where(later, STRETCH_NEAR, 0)).astype(np.float32)


def _placed(stretch: Stretch, days: np.ndarray) -> list[tuple[int, int]]:
    """First and last day of the stretch; of a yearly one, in each year that one of `days` lies in,
    and the year before.
    """
    first, last = _number(stretch.first), _number(stretch.last)
    if not stretch.yearly:
        return [(first, last)]
    years = np.unique(days.astype("datetime64[D]").astype("datetime64[Y]").astype(int) + 1970)[
        -YEARS_MAX:
    ].tolist()
    placed = []
    for year in sorted({*years, *(year - 1 for year in years)}):
        if 1 <= year < 9999:
            begin = _number(_day(year, stretch.first.month, stretch.first.day))
            placed.append((begin, begin + last - first))
    return placed


# --- reading one expression -----------------------------------------------------------------------


def _read(kind: str, match: re.Match[str], reference: date) -> Stretch | None:
    """Read a time; None where the words only look like a time, or the calendar has no such day."""
    try:
        return _READERS[kind](match, reference)
    except (ValueError, OverflowError):
        return None


def _iso(match: re.Match[str], reference: date) -> Stretch | None:
    year, month = int(match["iso_y"]), int(match["iso_m"])
    return _one_day(year, month, int(match["iso_d"])) if match["iso_d"] else _one_month(year, month)


def _slash(match: re.Match[str], reference: date) -> Stretch | None:
    one, two, year = int(match["one"]), int(match["two"]), int(match["slash_y"])
    return _one_day(year, one, two) if one <= 12 else _one_day(year, two, one)


def _day_first(match: re.Match[str], reference: date) -> Stretch | None:
    return _one_day(_year(match["dmy_y"]), _month(match["dmy_m"]), _digits(match["dmy_d"]))


def _month_first(match: re.Match[str], reference: date) -> Stretch | None:
    return _one_day(_year(match["mdy_y"]), _month(match["mdy_m"]), _digits(match["mdy_d"]))


def _month_alone(match: re.Match[str], reference: date) -> Stretch | None:
    name, which, year = (
        match["month_m"].rstrip("."),
        (match["month_which"] or "").lower(),
        _year(match["month_y"]),
    )
    # "may", "march" and short forms are also ordinary words and names; a preposition, a year or a
    # capital inside the query tells.
    is_plain = name.lower() in _PLAIN_MONTHS and (name.islower() or name.lower() != "march")
    if (
        is_plain
        and not which
        and year is None
        and not _LEADS_TO_MONTH.search(match.string[: match.start()])
    ):
        return None
    month = _month(name)
    if year is None and which in ("last", "this", "next"):
        year = reference.year
        if which == "last" and month >= reference.month:
            year -= 1
        elif which == "next" and month <= reference.month:
            year += 1
    return _one_month(year, month)


def _ago(match: re.Match[str], reference: date) -> Stretch | None:
    return _away(reference, -_count(match["ago_n"]), match["ago_unit"].lower())


def _beside(match: re.Match[str], reference: date) -> Stretch | None:
    from_today = {"yesterday": -1, "tomorrow": 1}.get(match["beside_day"].lower(), 0)
    day = reference + timedelta(from_today)
    way = -1 if match["beside_way"].lower() == "before" else 1
    return _away(day, way * _count(match["beside_n"]), match["beside_unit"].lower())


def _ahead(match: re.Match[str], reference: date) -> Stretch | None:
    # "He built it in three days" is how long it took.
    if match["ahead_time"] is None and tense_around(match.string, *match.span()) != AHEAD:
        return None
    return _away(reference, _count(match["ahead_n"]), match["ahead_unit"].lower())


def _past(match: re.Match[str], reference: date) -> Stretch | None:
    count, unit = _count(match["past_n"]), match["past_unit"].lower()
    return Stretch(
        reference - timedelta(count * {"day": 1, "month": 31, "year": 366}.get(unit, 7)), reference
    )


def _one_period(match: re.Match[str], reference: date) -> Stretch | None:
    step = {"this": 0, "next": 1, "coming": 1}.get(match["period_which"].lower(), -1)
    return _period(match["period_unit"].lower(), reference, step)


def _weekday(match: re.Match[str], reference: date) -> Stretch | None:
    ahead = (_WEEKDAYS[match["weekday_d"].lower()[:3]] - reference.weekday()) % 7
    which = match["weekday_which"].lower()
    if which == "next":
        return _days(reference + timedelta(ahead or 7), 1)
    if which == "last":
        return _days(reference - timedelta((7 - ahead) % 7 or 7), 1)
    tense = tense_around(match.string, *match.span())
    if which == "this" and tense == UNTOLD:
        of_this_week = ahead if reference.weekday() + ahead < 7 else ahead - 7
        return _days(reference + timedelta(of_this_week), 1)
    if tense == AHEAD:
        return _days(reference + timedelta(ahead if which == "this" else ahead or 7), 1)
    return _days(reference - timedelta((7 - ahead) % 7), 1)


def _season(match: re.Match[str], reference: date) -> Stretch | None:
    which, begin = (match["season_which"] or "").lower(), _SEASONS[match["season_s"].lower()]
    year = _year(match["season_y"])
    if year is None and not which:
        return None  # "spring cleaning", "a fall"
    if year is None and which in ("last", "this", "next"):
        year = reference.year
        started = date(year, begin, 1) <= reference
        over = _three_months(year, begin).last < reference
        if which == "last" and not over:
            year -= 1
        elif which == "next" and started:
            year += 1
    return _three_months(year, begin)


def _feast(match: re.Match[str], reference: date) -> Stretch | None:
    return _one_day(_year(match["feast_y"]), *_FEASTS[match["feast_f"].lower()])


def _near_today(match: re.Match[str], reference: date) -> Stretch | None:
    words = match["near"].lower()
    step = (
        -2
        if "before" in words
        else 2
        if "after" in words.split()
        else -1
        if words in ("yesterday", "last night")
        else 1
        if words == "tomorrow"
        else 0
    )
    return _days(reference + timedelta(step), 1)


def _year_alone(match: re.Match[str], reference: date) -> Stretch | None:
    year = int(match["year_y"])
    return Stretch(
        date(year, 1, 1), date(year + 9 if match["year"].endswith("s") else year, 12, 31)
    )


_READERS: dict[str, Callable[[re.Match[str], date], Stretch | None]] = {
    "iso": _iso, "slash": _slash, "dmy": _day_first, "mdy": _month_first, "month": _month_alone,
    "ago": _ago, "past": _past, "period": _one_period, "weekday": _weekday, "season": _season,
    "feast": _feast, "near": _near_today, "beside": _beside, "ahead": _ahead, "year": _year_alone,
}  # fmt: skip

# Those that may be a whole date.
_WHOLE = frozenset(["iso", "slash", "dmy", "mdy"])

# Those that count from a day always; others where they say last, this or next.
_RELATIVE = frozenset(["ago", "past", "period", "weekday", "near", "beside", "ahead"])


# --- the calendar ---------------------------------------------------------------------------------


def _joined(one: Stretch, other: Stretch) -> Stretch | None:
    """Join: from the beginning of the one to the end of the other; "from May to July 2023" takes
    its year from the second.
    """
    if one.yearly and not other.yearly:
        one = Stretch(_day(other.last.year, one.first.month, one.first.day), one.last)
    return Stretch(one.first, other.last, other.yearly) if one.first <= other.last else None


def _period(unit: str, reference: date, step: int) -> Stretch:
    """The calendar week, weekend, month or year `step` of them away from the one of the
    reference.
    """
    if unit == "day":
        return _days(reference + timedelta(step), 1)
    if unit in ("week", "weekend"):
        monday = reference - timedelta(reference.weekday()) + timedelta(7 * step)
        return _days(monday, 7) if unit == "week" else _days(monday + timedelta(5), 2)
    if unit == "month":
        months = reference.year * 12 + reference.month - 1 + step
        return _one_month(months // 12, months % 12 + 1)
    return Stretch(date(reference.year + step, 1, 1), date(reference.year + step, 12, 31))


def _away(day: date, step: int, unit: str) -> Stretch:
    """What lies so many units after a day, before it where `step` is negative: a week as the seven
    days around, a month or year as that of the calendar.
    """
    if unit == "day":
        return _days(day + timedelta(step), 1)
    if unit in ("week", "weekend"):
        return _days(day + timedelta(7 * step - 3), 7)
    return _period(unit, day, step)


def _days(first: date, count: int) -> Stretch:
    return Stretch(first, first + timedelta(count - 1))


def _one_day(year: int | None, month: int, day: int) -> Stretch:
    at = date(2000 if year is None else year, month, day)
    return Stretch(at, at, year is None)


def _one_month(year: int | None, month: int) -> Stretch:
    of = 2000 if year is None else year
    return Stretch(date(of, month, 1), date(of, month, monthrange(of, month)[1]), year is None)


def _three_months(year: int | None, begin: int) -> Stretch:
    of = 2000 if year is None else year
    end = _one_month(of + (begin + 2 > 12), (begin + 1) % 12 + 1).last
    return Stretch(date(of, begin, 1), end, year is None)


def _day(year: int, month: int, day: int) -> date:
    """That day, or the month's last when the month is shorter."""
    return date(year, month, min(day, monthrange(year, month)[1]))


def _number(day: date) -> int:
    return day.toordinal() - _EPOCH


def _month(name: str) -> int:
    return _MONTHS[name[:3].lower()]


def _year(text: str | None) -> int | None:
    return None if text is None else int(text)


def _digits(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def _count(text: str) -> int:
    text = " ".join(text.lower().split())
    return min(int(text) if text.isdigit() else _NUMBERS[text], AGO_MAX)


def reference_day(unix_ms: int) -> date:
    """The UTC day of an instant."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).date()


_EPOCH = date(1970, 1, 1).toordinal()
