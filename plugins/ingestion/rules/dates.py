"""Times inside a sentence, resolved against the moment it was said.

"In May", said on 8 May 2023, is 1 May 2023; said in February it is May of the year before, unless
the sentence looks ahead. "Last Friday" is the Friday before. English is read by
plugins/search/dates.py; here are the words of the other languages, one table each. What is found is
the beginning of the time meant, as Unix milliseconds at midnight UTC.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from plugins.search import find_dates
from runtime.timestamps import DAY_MS


@dataclass(frozen=True, slots=True)
class Words:
    """A language's words for times. months and weekdays in order; `days` maps a phrase to days from
    today; units: word -> day, week …
    """

    months: str
    weekdays: str
    days: dict[str, int]
    units: dict[str, str]
    numbers: dict[str, int]
    last: tuple[str, ...]
    following: tuple[str, ...]
    ago: str


_WORDS = {
    "de": Words(
        "januar februar märz april mai juni juli august september oktober november dezember",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        {"vorgestern": -2, "gestern": -1, "heute": 0, "übermorgen": 2, "morgen": 1},
        {"tag": "day", "tagen": "day", "woche": "week", "wochen": "week", "monat": "month",
         "monaten": "month", "jahr": "year",
         "jahren": "year", "wochenende": "week"},
        {"einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6,
         "zehn": 10},
        (r"(?:letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?)\s+{unit}",),
        (r"(?:nächste[nrsm]?|kommende[nrsm]?)\s+{unit}",), r"vor\s+{n}\s+{unit}",
    ),
    "fr": Words(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        {"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "après-demain": 2, "demain": 1},
        {"jour": "day", "jours": "day", "semaine": "week", "semaines": "week", "mois": "month",
         "an": "year", "ans": "year", "année": "year",
         "week-end": "week"},
        {"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "dix": 10},
        (r"{unit}\s+(?:dernier|dernière|passée?)",), (r"{unit}\s+prochaine?",),
        r"il\s+y\s+a\s+{n}\s+{unit}",
    ),
    "es": Words(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "lunes martes miércoles jueves viernes sábado domingo",
        {"anteayer": -2, "ayer": -1, "hoy": 0, "pasado mañana": 2, "mañana": 1},
        {"día": "day", "días": "day", "semana": "week", "semanas": "week", "mes": "month",
         "meses": "month", "año": "year", "años": "year"},
        {"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "diez": 10},
        (r"{unit}\s+pasad[oa]", r"(?:últim[oa]|pasad[oa])\s+{unit}"),
        (r"próxim[oa]\s+{unit}", r"{unit}\s+(?:que\s+viene|próxim[oa])"), r"hace\s+{n}\s+{unit}",
    ),
    "it": Words(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        {"l'altro ieri": -2, "ieri": -1, "oggi": 0, "dopodomani": 2, "domani": 1},
        {"giorno": "day", "giorni": "day", "settimana": "week", "settimane": "week",
         "mese": "month", "mesi": "month", "anno": "year",
         "anni": "year"},
        {"un": 1, "una": 1, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sei": 6, "dieci": 10},
        (r"{unit}\s+scors[oa]", r"(?:scors[oa]|ultim[oa])\s+{unit}"),
        (r"prossim[oa]\s+{unit}", r"{unit}\s+prossim[oa]"), r"{n}\s+{unit}\s+fa",
    ),
    "pt": Words(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
        {"anteontem": -2, "ontem": -1, "hoje": 0, "depois de amanhã": 2, "amanhã": 1},
        {"dia": "day", "dias": "day", "semana": "week", "semanas": "week", "mês": "month",
         "meses": "month", "ano": "year", "anos": "year"},
        {"um": 1, "uma": 1, "dois": 2, "duas": 2, "três": 3, "quatro": 4, "cinco": 5, "seis": 6,
         "dez": 10},
        (r"{unit}\s+passad[oa]", r"últim[oa]\s+{unit}"),
        (r"próxim[oa]\s+{unit}", r"{unit}\s+que\s+vem"), r"há\s+{n}\s+{unit}",
    ),
    "nl": Words(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        {"eergisteren": -2, "gisteren": -1, "vandaag": 0, "overmorgen": 2, "morgen": 1},
        {"dag": "day", "dagen": "day", "week": "week", "weken": "week", "maand": "month",
         "maanden": "month", "jaar": "year"},
        {"een": 1, "twee": 2, "drie": 3, "vier": 4, "vijf": 5, "zes": 6, "tien": 10},
        (r"(?:vorige?|afgelopen)\s+{unit}",), (r"(?:volgende?|komende?)\s+{unit}",),
        r"{n}\s+{unit}\s+geleden",
    ),
}  # fmt: skip
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NAMED_DAY = re.compile(
    r"\b(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)-(?P<d>\d\d)\b|\b(?P<d2>\d{1,2})[./](?P<m2>\d{1,2})[./"
    r"](?P<y2>(?:19|20)\d\d)\b"
)


def resolve(text: str, at: int, language: str = "en", *, ahead: bool = False) -> int | None:
    """The beginning of the first time `text` names, as it is meant by someone who speaks at `at`;
    None when it names none.

    ahead: the sentence looks into the future, so a date without a year is the next one.
    """
    today = datetime.fromtimestamp(at / 1000, UTC).date()
    try:
        day = (
            _english(text, today, ahead)
            if language == "en"
            else _foreign(text, today, language, ahead)
        )
    except (ValueError, OverflowError):
        return None
    return None if day is None else (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_MS


def _english(text: str, today: date, ahead: bool) -> date | None:
    stretch = next(iter(find_dates(text, today)), None)
    if stretch is None:
        return None
    return (
        _of_a_year(stretch.first.month, stretch.first.day, today, ahead)
        if stretch.yearly
        else stretch.first
    )


def _of_a_year(month: int, day: int, today: date, ahead: bool) -> date:
    """This month and day in the year that is meant: the last one that has begun, or the next
    one.
    """
    found = date(today.year, month, min(day, calendar.monthrange(today.year, month)[1]))
    if ahead and (found.year, found.month) < (today.year, today.month):
        return found.replace(year=found.year + 1)
    if not ahead and found > today:
        return found.replace(year=found.year - 1)
    return found


def _foreign(text: str, today: date, language: str, ahead: bool) -> date | None:
    words, low = _WORDS.get(language), text.lower()
    if words is None:
        return None
    exact = _NAMED_DAY.search(low)
    if exact is not None:
        parts = (
            (exact["y"], exact["m"], exact["d"])
            if exact["y"]
            else (exact["y2"], exact["m2"], exact["d2"])
        )
        return date(*map(int, parts))
    for phrase, days in words.days.items():
        if re.search(rf"\b{re.escape(phrase)}\b", low):
            return today + timedelta(days)
    return _relative(low, words, today) or _calendar(low, words, today, ahead)


def _relative(low: str, words: Words, today: date) -> date | None:
    unit = rf"(?P<unit>{'|'.join(sorted(words.units, key=len, reverse=True))})\b"
    number = rf"(?P<n>\d{{1,3}}|{'|'.join(words.numbers)})"
    ago = re.search(r"\b" + words.ago.replace("{n}", number).replace("{unit}", unit), low)
    if ago is not None:
        count = int(ago["n"]) if ago["n"].isdecimal() else words.numbers[ago["n"]]
        return _stepped(words.units[ago["unit"]], today, -count)
    for forms, step in ((words.last, -1), (words.following, 1)):
        for form in forms:
            found = re.search(r"\b" + form.replace("{unit}", unit), low)
            if found is not None:
                return _stepped(words.units[found["unit"]], today, step)
    return None


def _stepped(unit: str, today: date, step: int) -> date:
    if unit == "day":
        return today + timedelta(step)
    if unit == "week":
        return today - timedelta(today.weekday()) + timedelta(7 * step)
    if unit == "month":
        months = today.year * 12 + today.month - 1 + step
        return date(months // 12, months % 12 + 1, 1)
    return date(today.year + step, 1, 1)


def _calendar(low: str, words: Words, today: date, ahead: bool) -> date | None:
    year = _YEAR.search(low)
    months = words.months.split()
    named = re.search(
        rf"(?:\b(?P<day>\d{{1,2}})[.º°]?\s+(?:de\s+)?)?\b(?P<month>{'|'.join(months)})\b", low
    )
    if named is not None:
        month, day = months.index(named["month"]) + 1, int(named["day"] or 1)
        return date(int(year[0]), month, day) if year else _of_a_year(month, day, today, ahead)
    for number, name in enumerate(words.weekdays.split()):
        if re.search(rf"\b{name}\b", low):
            return (
                today + timedelta((number - today.weekday()) % 7 or 7)
                if ahead
                else today - timedelta((today.weekday() - number) % 7 or 7)
            )
    return date(int(year[0]), 1, 1) if year else None
