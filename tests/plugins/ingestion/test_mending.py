"""What readings get wrong of what people type: clauses by a comma alone, "'s" for "has", a value
after a colon, parents by what they are called.
"""

from __future__ import annotations

import pytest

from plugins.ingestion.engine import RuleEngine
from tests.support.claimed import claims


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Dad died in 2019, mum's in a care home in Rotherham now",
            ("Ada's mother", "is_in", "care home in Rotherham", "holds"),
        ),
        (
            "Dad died in 2019, mum's in a care home in Rotherham now",
            ("Ada's father", "did", "died in 2019", "holds"),
        ),
        ("me and Ben split up, i'm back home", ("Ada", "did", "split up", "holds")),
        ("Mum's moved to Stoke", ("Ada's mother", "lives_in", "Stoke", "holds")),
        ("Tom's called Tommy", ("Tom", "named", "Tommy", "holds")),
        (
            "Main contact at Sutter Ridge: Dolores Amaya.",
            ("Main contact at Sutter Ridge", "is", "Dolores Amaya", "holds"),
        ),
        (
            "Log retention for EU tenants: 30 days.",
            ("Log retention for EU tenants", "measures", "30 days", "holds"),
        ),
        (
            "I left Asda, now I'm at the head office doing the accounts",
            ("Ada", "works_at", "Asda", "ended"),
        ),
        ("turns out I'm not allergic to nuts", ("Ada", "allergic_to", "nuts", "denied")),
        ("hi, I'm Marta", ("Ada", "named", "Marta", "holds")),
        ("I'm Scorpio", ("Ada", "is", "Scorpio", "holds")),
        ("we settled into the Harrogate house", ("Ada", "lives_in", "Harrogate", "holds")),
        ("I'm off ramipril now", ("Ada", "take", "ramipril", "ended")),
        ("Tom's divorced", ("Tom", "is", "divorced", "holds")),
        ("I'm no longer on sertraline", ("Ada", "take", "sertraline", "ended")),
    ],
)
def test_it_is_told(engine: RuleEngine, text: str, expected: tuple[str, str, str, str]) -> None:
    assert expected in claims(engine, text)


@pytest.mark.parametrize(
    "text",
    [
        "If I win the lottery, I'm moving to Spain",
        "If you ask me, Tom lives in Leeds",
        "I think, she's in Leeds",
        "My phone died on the train, it's an old one",
    ],
)
def test_nothing_holds_or_is_over(engine: RuleEngine, text: str) -> None:
    told = {(predicate, polarity) for _, predicate, _, polarity in claims(engine, text)}
    assert told <= {("did", "holds")}


def test_what_ends_as_a_medicine_does_need_be_none(engine: RuleEngine) -> None:
    assert ("Ada", "take", "magazine", "holds") not in claims(engine, "I'm on a magazine")


def test_where_somebody_reports_is_nobody(engine: RuleEngine) -> None:
    told = claims(engine, "I report to Birmingham tomorrow")
    assert not any(predicate == "boss" for _, predicate, _, _ in told)


def test_a_list_of_things_is_no_value(engine: RuleEngine) -> None:
    assert claims(engine, "The shopping list: eggs and milk") == set()
