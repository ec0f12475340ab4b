"""Dictionary forms of verbs whose edit leaves an e too few, or one too many."""

from __future__ import annotations

import pytest

from runtime.inference.language.lemmas import completed

COMPLETED = {
    "reliv": "relive", "recharg": "recharge", "judg": "judge", "decid": "decide",
    "provid": "provide", "resid": "reside", "reduc": "reduce", "danc": "dance",
    "realiz": "realize", "juggl": "juggle", "crav": "crave", "expresse": "express",
    "discusse": "discuss", "hik": "hike", "practic": "practice", "prepp": "prep", "jogg": "jog",
    "relocat": "relocate", "postpon": "postpone",
    "migrat": "migrate", "upgrad": "upgrade", "trad": "trade",
    "pursu": "pursue", "servic": "service", "guid": "guide", "rehears": "rehearse",
    "captur": "capture", "explor": "explore", "imagin": "imagine", "chatt": "chat",
    "publishe": "publish", "mixe": "mix", "damag": "damage", "explod": "explode",
}  # fmt: skip
COMPLETE = (
    "avoid",
    "bring",
    "quiz",
    "trek",
    "panic",
    "egg",
    "talk",
    "speak",
    "cook",
    "sync",
    "rev",
    "control",
    "finesse",
    "add",
    "miss",
    "live",
    "curl",
    "eat",
    "repeat",
    "concat",
    "drag",
    "read",
    "begin",
    "explain",
    "occur",
    "appear",
    "focus",
    "ignite",
    "taste",
    "",
)


@pytest.mark.parametrize("verb", COMPLETED)
def test_an_ending_that_no_verb_has_is_completed(verb: str) -> None:
    assert completed(verb) == COMPLETED[verb]


@pytest.mark.parametrize("verb", COMPLETE)
def test_a_verb_that_is_one_stays(verb: str) -> None:
    assert completed(verb) == verb
