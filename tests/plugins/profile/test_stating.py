"""What is denied, doubted, supposed, dreamt, quoted or said by others is no fact of a profile."""

from __future__ import annotations

import pytest

from plugins.profile.rules import observations


def found(text: str) -> set[tuple[str, str, bool]]:
    return {(one.key, one.value, one.holds) for one in observations(text, own=True, names=["Ada"])}


@pytest.mark.parametrize(
    "text",
    [
        "It's not true that I work at Shell.",
        "It is false that I love jazz.",
        "I doubt that I am allergic to nuts.",
        "I don't think I'm a vegan.",
        "I deny that I work at Shell.",
        "I never said I live in Bonn.",
        "Suppose I live in Monaco, and I work at Shell.",
        "Imagine I'm a pilot.",
        "I pretended that I am a pilot.",
        "I would be lying if I said I like opera.",
        "My colleague Tom says I am allergic to gluten.",
        "Tom told me I live in Paris.",
        "People assume that I love jazz.",
        "It seems I am allergic to nuts.",
        "I'm not sure whether I like jazz.",
        "Tom asked why I live in Rome.",
        "If I live in Rome, I like pizza.",
        "I like jazz, I think.",
        "Neither my wife nor I like opera.",
        "In my dream I am married and I live in Paris.",
        "It isn't true that my name is Bob.",
        "Tom says my name is Bob.",
        "They say that I am vegan and I love tofu.",
        "Tom says Ada lives in Rome.",
        "> I live in Rome.",
        "  >> I am vegan",
        "I am allergic to neither nuts nor milk.",
        "I like neither tea nor coffee.",
        "I hate to say it, but you are right.",
        "I'm going to be a while.",
        "I left Graz at six.",
        "I left Graz last night by train.",
    ],
)
def test_what_is_not_stated_is_no_fact(text: str) -> None:
    assert found(text) == set()


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("Today I live in Rome.", "lives_in", "Rome"),
        ("My wife and I live in Rome.", "lives_in", "Rome"),
        ("Because I live in Rome, I like pizza.", "lives_in", "Rome"),
        ("I know I am allergic to nuts.", "allergic_to", "nuts"),
        ("After work I play the guitar.", "plays", "guitar"),
        ("In 2019 I moved to Rome.", "lives_in", "Rome"),
        ("Honestly I love opera.", "likes", "opera"),
        ("I would love to come but I live in Berlin.", "lives_in", "Berlin"),
        ("If you must know: no. But I am vegan.", "diet", "vegan"),
        ("Not only do I like tea, I love it.", "likes", "tea"),
        ("I must say I love opera.", "likes", "opera"),
        ("Let me tell you, I love opera.", "likes", "opera"),
        ("I never smoke and I live in Rome.", "lives_in", "Rome"),
        ("I don't like tea, but I love coffee.", "likes", "coffee"),
        ("I said yes because I live in Rome.", "lives_in", "Rome"),
        ("Hello, my name is Bob.", "named", "Bob"),
        ("Tom says my sister Maria is nice.", "sister", "Maria"),
        ("> I live in Rome.\nI live in Graz.", "lives_in", "Graz"),
        ("I like to cook.", "likes", "to cook"),
        ("I'm planning to be a nurse.", "plans", "be a nurse"),
    ],
)
def test_what_is_stated_is_a_fact(text: str, key: str, value: str) -> None:
    assert (key, value, True) in found(text)


@pytest.mark.parametrize("when", ["", " in 2019", " for good", " two years ago", " last year"])
def test_who_left_a_town_lives_there_no_more(when: str) -> None:
    assert found(f"I left Graz{when}.") == {("lives_in", "Graz", False)}
