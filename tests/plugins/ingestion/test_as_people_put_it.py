"""What people say by the way: what somebody is asked to keep, what speakers say of themselves as
far as they know, in small letters, without "I", of things by their letters or numbers.
"""

from __future__ import annotations

import pytest

from plugins.ingestion.engine import RuleEngine
from tests.support.claimed import claims


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please note that my sister Ana lives in Porto.", ("Ana", "lives_in", "Porto", "holds")),
        ("Keep in mind I'm vegan.", ("Ada", "is", "vegan", "holds")),
        ("Don't forget I'm allergic to cats.", ("Ada", "allergic_to", "cats", "holds")),
        ("It turns out I'm allergic to kiwi.", ("Ada", "allergic_to", "kiwi", "holds")),
        ("I think my favourite book is Rebecca.", ("Ada", "favorite", "Rebecca", "holds")),
        ("I'd say I'm an introvert.", ("Ada", "is", "introvert", "holds")),
        ("I believe my blood type is O.", ("Ada's blood type", "is", "O", "holds")),
        ("I hate waiting in queues.", ("Ada", "dislikes", "waiting in queues", "holds")),
        ("don't own a car", ("Ada", "owns", "car", "denied")),
        ("still can't smell petrol", ("Ada", "can", "smell petrol", "denied")),
        ("Never been a coffee person.", ("Ada", "is", "coffee person", "denied")),
        ("I was married to Ben.", ("Ada", "did", "was married to Ben", "holds")),
        ("I was engaged to a lad called Rhys.", ("Ada", "did", "was engaged to a lad", "holds")),
        ("I'm seeing a physio called Agnieszka.", ("Ada", "see", "Agnieszka", "holds")),
        ("my sister ana lives in porto", ("ana", "lives_in", "porto", "holds")),
        ("my sister ana lives in porto", ("Ada", "sister", "ana", "holds")),
        ("My first son Chidi lives in Jos.", ("Ada", "son", "Chidi", "holds")),
        ("The car's MOT is due on the 30th.", ("car's MOT", "takes_place", "30th", "holds")),
        ("My last day is December 6.", ("Ada's last day", "takes_place", "December 6", "holds")),
        ("By the way, the fair is on March 3.", ("fair", "takes_place", "March 3", "holds")),
        ("The report isn't due until Friday.", ("report", "takes_place", "Friday", "holds")),
        ("DNS belongs to NetOps since May.", ("DNS", "belong_to", "NetOps", "holds")),
        ("The Harbor migration is 70% done.", ("Harbor migration", "is", "70% done", "holds")),
        ("boiler packed in on Sunday", ("boiler", "did", "packed in on Sunday", "holds")),
    ],
)  # fmt: skip
def test_it_is_told(engine: RuleEngine, text: str, expected: tuple[str, str, str, str]) -> None:
    assert expected in claims(engine, text)


@pytest.mark.parametrize(
    "text",
    [
        "I think I lost my passport.",
        "I don't think I like opera.",
        "I thought I was allergic to cats.",
        "My boss thinks I'm lazy.",
        "I'm not sure I'm allergic to nuts.",
        "I'm no longer sure I'm allergic to nuts.",
        "I was sure my boss is Rhys.",
        "Be sure my boss is Rhys.",
        "I no longer think I'm allergic to nuts.",
        "I wrongly think I live in Bradford.",
        "I rarely think I'm a vegetarian.",
        "I would think I live in Bradford.",
        "I think if I move to Leeds my boss is Rhys.",
        "I think I live in Leeds or Bradford.",
        "I think I've a good idea.",
        "Never note that I live in York.",
        "Don't own up to it.",
        "Don't like that post.",
        "TRAFFIC is terrible today.",
        "Money ran out.",
        "Remember to buy milk.",
        "Don't eat the cake.",
        "Don't miss a beat!",
        "I think Ana is in love.",
    ],
)
def test_what_is_open_or_asked_for_is_not(engine: RuleEngine, text: str) -> None:
    assert not claims(engine, text)


@pytest.mark.parametrize(
    ("text", "unsaid"),
    [
        ("I was married to Ben.", "married_to"),
        ("I was engaged to Ben.", "engaged_to"),
        ("I was allergic to eggs as a child.", "allergic_to"),
        ("I was terrified of dogs.", "fears"),
    ],
)
def test_what_was_so_is_not_said_to_be_so(engine: RuleEngine, text: str, unsaid: str) -> None:
    assert unsaid not in {predicate for _, predicate, _, _ in claims(engine, text)}


def test_a_pet_that_is_named_is_not_a_thing_besides(engine: RuleEngine) -> None:
    assert claims(engine, "My cat Biscuit is 14.") == {
        ("Ada", "has_pet", "Biscuit", "holds"),
        ("Biscuit", "age", "14", "holds"),
    }
