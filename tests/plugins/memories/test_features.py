from __future__ import annotations

import numpy as np
import pytest

from plugins.memories.features import (
    COLUMNS,
    NOTHING,
    TextFeatures,
    keyed_hash,
    links,
    pack,
    relinked,
)

QUESTION, NUMBER, TIME = TextFeatures.QUESTION, TextFeatures.NUMBER, TextFeatures.TIME
QUOTE, ACKNOWLEDGEMENT = TextFeatures.QUOTE, TextFeatures.ACKNOWLEDGEMENT


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Do you like tea?", QUESTION),
        ('She asked "why?"', QUESTION | QUOTE),
        ("你好吗？", QUESTION),
        ("I like tea.", 0),
        ("I may like it.", 0),
        ("Thanks, that helps!", ACKNOWLEDGEMENT),
        ("Wow!! Really?", ACKNOWLEDGEMENT | QUESTION),
        ("We met last Friday, two weeks ago.", TIME | NUMBER),
        ("I flew in on 8 May", TIME | NUMBER),
        ("He was born in 1999", TIME | NUMBER),
        ("She has three cats", NUMBER),
        ("I read “Becoming Nicole”.", QUOTE),
        ("", 0),
    ],
)
def test_flags(text: str, flags: int) -> None:
    assert TextFeatures.of(text, 3).flags == flags


MOMENTS = (
    "yesterday,today,tonight,tomorrow,years ago,recently,lately,at noon,at midnight,on Tuesday,"
    "this May,last night,next second,a minute,an hour,two days,this morning,past afternoon,"
    "previous evening,few weeks,coming weekend,several months,last few years,a decade,"
    "next semester,last spring,this summer,last fall,next autumn,this winter,last Christmas,"
    "coming Easter,last Thanksgiving,this Halloween,last birthday,in January,February,March,April,"
    "June,July,August,September,October,November,December,jan 5,8 May,1st of may,in 1999,12:30,"
    "5 pm,1/2/24"
)
NUMBERS = (
    "two,Three,four,five,six,seven,eight,nine,ten,eleven,twelve,dozen,dozens,twenty,thirty,forty,"
    "fifty,hundred,hundreds,thousand,thousands,million,millions,TWICE,both,couple,several,once,7,"
    "v2,(three),four-leaf"
)
NEITHER = "twofold,tens,_both,once_,maybe,hourly,a may,weekly,monthly,in the"


@pytest.mark.parametrize("before", ["so, ", "voilà, "])
def test_numbers_and_times_are_found_whatever_letters_stand_beside(before: str) -> None:
    """A text of plain letters is looked through by another way than others."""

    def found(text: str) -> int:
        return TextFeatures.of(before + text + ".", 3).flags

    assert [text for text in MOMENTS.split(",") if not found(text) & TIME] == []
    assert [text for text in NUMBERS.split(",") if not found(text) & NUMBER] == []
    assert [text for text in NEITHER.split(",") if found(text)] == []


def test_capitals_count_inside_sentences_only() -> None:
    assert TextFeatures.of("We went to Lisbon, Porto and Faro. Then home.", 3).capitals == 3
    assert TextFeatures.of("Then we left. And I slept.", 3).capitals == 0


def test_persons_are_shares_of_the_words() -> None:
    features = TextFeatures.of("I gave you my book", 2)
    assert (features.first_person, features.second_person) == (102, 51)
    assert TextFeatures.of("Ich war da", 2).first_person == 0


def test_rows_become_columns() -> None:
    most = TextFeatures(65_535, 31, 255, 255, 255)
    packed = [
        pack(TextFeatures(), created_at=-1, occurred_at=2**40, session=0, speaker=0, collection=0),
        pack(
            most,
            created_at=5,
            occurred_at=6,
            session=2**63 - 1,
            speaker=7,
            previous=8,
            following=9,
            collection=2**32 - 1,
        ),
    ]
    found = np.frombuffer(b"".join(packed), COLUMNS)
    assert len(packed[0]) == COLUMNS.itemsize == 56
    assert found["created_at"].tolist() == [-1, 5]
    assert found["previous"].tolist() == [NOTHING, 8]
    assert found["session"].tolist() == [0, 2**63 - 1]
    assert found["content_words"].tolist() == [0, 65_535]
    assert found["second_person"].tolist() == [0, 255]
    assert links(packed[1]) == (8, 9) and links(None) == (NOTHING, NOTHING)
    assert links(relinked(packed[1], following=3)) == (8, 3)
    assert relinked(relinked(packed[1], previous=1), previous=8) == packed[1]


def test_marks_tell_names_apart_and_tenants_too() -> None:
    hashes = {
        keyed_hash(secret, kind, *parts)
        for secret in (b"a", b"b")
        for kind in ("session", "speaker")
        for parts in (("x", "y"), ("xy",), ("x",))
    }
    assert len(hashes) == 12
    assert all(0 < value < 2**63 for value in hashes)


def test_long_texts_cost_no_more_than_their_beginning() -> None:
    assert TextFeatures.of("tea " * 100_000 + "?", 99_999).content_words == 65_535
