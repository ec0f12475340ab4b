"""Searches in other languages than English, with an embedder that was taught English alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.languages import SET, read_notes
from tests.support.search_harness import SearchHarness

NOTES_MAX = 12
SOME = {
    "zh": ["房租每月三千二百元，每月五号之前转给房东。", "车库的租金涨到了六百，合同签到年底。"],
    "ja": ["家賃は月八万五千円。", "猫は掃除機が大嫌いだ。"],
    "ko": ["월세는 육십오만 원이다.", "고양이는 청소기 소리를 무서워한다."],
    "ar": ["إيجار الشقة أربعة آلاف درهم.", "قطتنا تخاف من المكنسة."],
    "hi": ["घर का किराया अठारह हज़ार रुपये है।", "बिल्ली पटाखों से डरती है।"],
    "ru": ["Аренда стоит сорок две тысячи.", "Кошка боится пылесоса."],
}
ABSENT = {
    "zh": "护照放在什么地方？",
    "ja": "パスポートはどこですか？",
    "ko": "여권이 어디에 있어요?",
    "ar": "أين جواز السفر؟",
    "hi": "पासपोर्ट कहाँ रखा है?",
    "ru": "Где лежит загранпаспорт?",
}


@pytest.fixture
def library(tmp_path: Path) -> Iterator[SearchHarness]:
    harness = SearchHarness(tmp_path)
    harness.embedder.reads_all = False
    yield harness
    harness.close()


@pytest.mark.parametrize("language", sorted(path.stem for path in SET.glob("*.txt")))
def test_the_note_that_answers_is_first(library: SearchHarness, language: str) -> None:
    notes = read_notes(SET / f"{language}.txt")[:NOTES_MAX]
    ids = [library.add(note) for note, _ in notes]
    first = [
        library.ids(questions[0])[:1] == [id] for id, (_, questions) in zip(ids, notes, strict=True)
    ]
    assert sum(first) >= NOTES_MAX - 2


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("zh", "房租多少？"),
        ("ja", "家賃はいくらですか？"),
        ("ko", "월세가 얼마예요?"),
        ("ar", "كم إيجار الشقة؟"),
        ("hi", "घर का किराया कितना है?"),
        ("ru", "Сколько стоит аренда?"),
    ],
)
def test_confidence_is_how_much_of_the_question_the_words_meet(
    library: SearchHarness, language: str, question: str
) -> None:
    ids = [library.add(note) for note in SOME[language]]
    found = library.find(question)
    assert found["evidence_ids"][0] == ids[0] and found["query_confidence"] > 0.5
    more = library.find(question.rstrip("？?؟") + " " + ABSENT[language])
    assert more["evidence_ids"][0] == ids[0]
    assert more["query_confidence"] < found["query_confidence"]
    absent = library.find(ABSENT[language])
    assert absent["query_confidence"] < 0.5


def test_a_number_beside_another_script_is_not_compared_by_meaning(library: SearchHarness) -> None:
    library.add("8 8 8")
    assert library.find("眼科复查是几号 8")["total"] == 1
    assert library.find("眼科复查是几号")["no_match"]
    assert library.embedder.texts == ["8 8 8"]


def test_a_word_of_latin_letters_is_still_compared_by_meaning(library: SearchHarness) -> None:
    meeting = library.add("Zoom 会议改到下午三点。")
    library.add("周二和客户开会。")
    assert library.ids("Zoom 会议几点？")[0] == meeting
    assert library.embedder.texts[-1] == "Zoom ？"


def test_meaning_alone_makes_nobody_sure_in_a_language_that_was_not_taught(
    library: SearchHarness,
) -> None:
    library.add("Der Zahnarzt nahm sich sehr viel Zeit.")
    sure = (
        "Wie viel Zeit nahm sich der Zahnarzt?",
        "Wer ist das und wo wohnt der Zahnarzt jetzt in Ulm?",
    )
    met, unmet = (library.find(query)["query_confidence"] for query in sure)
    assert unmet <= 0.5 < met
    library.embedder.reads_all = True
    assert library.find(sure[1])["query_confidence"] >= unmet


def test_a_stop_word_is_no_slip(library: SearchHarness) -> None:
    library.embedder.known_spellings = {"wann": ["wand"], "salbe": ["sale"]}
    library.add("Katrin empfiehlt Die Wand.")
    assert library.find("Bis wann ist die Salbe da?", search_type="bm25")["no_match"]
    sale = library.add("A sale.")
    assert library.ids("Until when is the salbe there?", search_type="bm25") == [sale]


def test_what_was_taught_in_another_language_knows_of_no_slips_in_this_one(
    library: SearchHarness,
) -> None:
    library.embedder.known_spellings = {"salbe": ["sale"]}
    sale = library.add("A sale.")
    german = "Bis wann ist die salbe da?"
    assert library.find(german, search_type="bm25")["no_match"]
    library.embedder.reads_all = True
    assert library.ids(german, search_type="bm25") == [sale]
