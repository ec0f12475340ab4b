"""Sections of a profile: which fact belongs under which heading, and what was so once.

A section has what holds and, apart from it, what held before: a value that a later one replaced, or
that was said to hold no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from storage.text import word_set

Section = Literal[
    "who",
    "where",
    "work",
    "people",
    "health_and_diet",
    "likes_and_dislikes",
    "plans",
    "habits",
    "possessions",
    "dates",
]
SECTIONS: tuple[Section, ...] = get_args(Section)

_KEYS_OF: dict[Section, str] = {
    "who": "named age comes_from born_in speaks is feels knows grew_up_in",
    "where": "lives_in stays_in located_in",
    "work": "works_at works_as works_in studies_at studies learns doing",
    "people": """married_to engaged_to partner_of sister brother mother father daughter son friend
        colleague boss neighbor grandmother grandfather aunt uncle cousin roommate niece nephew
        granddaughter grandson child tutor coach physio tailor advisor dentist doctor landlord
        therapist accountant hairdresser wife husband partner girlfriend boyfriend mom dad
        has_pet dog cat""",
    "health_and_diet": "allergic_to has_condition diet eat drink take",
    "likes_and_dislikes": "likes dislikes prefers fears",
    "plans": "plans",
    "habits": "habit plays",
    "possessions": "owns has uses drive",
    "dates": "born_on takes_place",
}
_SECTIONS: dict[str, Section] = {
    key: section for section, keys in _KEYS_OF.items() for key in keys.split()
}
# What somebody is that tells of health or of what they eat.
_HEALTH = word_set(
    """vegan vegetarian veggie pescatarian coeliac celiac gluten-free lactose intolerant diabetic
    asthmatic pregnant allergic blind deaf"""
)


def section_of(key: str, value: str) -> Section | None:
    """Where a fact belongs; None where it belongs nowhere."""
    if key == "is" and not _HEALTH.isdisjoint(value.casefold().split()):
        return "health_and_diet"
    return "likes_and_dislikes" if key.startswith("favorite") else _SECTIONS.get(key)


def in_sections(
    current: Iterable[dict[str, Any]], former: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The sections that have a fact, in the order of SECTIONS. Facts are views: with key and
    value.
    """
    made: dict[Section, dict[str, Any]] = {
        name: {"name": name, "current": [], "former": []} for name in SECTIONS
    }
    for when, facts in (("current", current), ("former", former)):
        for fact in facts:
            name = section_of(fact["key"], fact["value"])
            if name is not None:
                made[name][when].append(fact)
    return [each for each in made.values() if each["current"] or each["former"]]
