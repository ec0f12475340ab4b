"""What of a query is looked up, in languages other than English."""

from __future__ import annotations

import pytest

from storage.text import STOP_WORDS, analyze, content_words, query_terms, read_query
from storage.text.asking import QUESTION_WORDS


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("中药什么时候喝？", ["中药", "喝"]),
        ("了解目的地", ["了解", "解目", "目的", "的地"]),
        ("房租多少钱？", ["房租", "钱"]),
        ("猫が嫌いなものは何？", ["猫", "嫌い"]),
        ("家賃はいくらですか？", ["家賃"]),
        ("ごみの日はいつ？", ["ごみ", "日"]),
        ("월세가 얼마예요?", ["월세"]),
        ("약을 어디에 뒀지", ["약을", "뒀지"]),
        ("Сколько лет дедушке?", ["лет", "дедушк"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("สวัสดี", ["สวั", "วัส", "สดี"]),
    ],
)
def test_words_that_only_ask_are_not_looked_up(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@pytest.mark.parametrize(
    "query", ["什么", "何ですか", "언제야", "сколько", "कितना", "quién cuánto"]
)
def test_a_query_that_only_asks_is_looked_up_as_it_is(query: str) -> None:
    assert not set(query_terms(query)).isdisjoint(analyze(query))


def test_texts_keep_the_words_that_ask() -> None:
    for text in ("多少", "얼마예요", "сколько", "wieviel"):
        assert content_words(text) and analyze(text)


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("What did Melanie paint?", "english"),
        ("¿Cuánto pago de alquiler?", "spanish"),
        ("Wogegen hilft Salbei?", "german"),
        ("Wo ist die Salbe und wer hat sie?", "german"),
        ("房租多少？", "english"),
    ],
)
def test_a_query_speaks_the_language_of_its_function_words(query: str, language: str) -> None:
    assert read_query(query).language == language


def test_each_language_of_question_words_has_stop_words() -> None:
    assert set(QUESTION_WORDS) <= set(STOP_WORDS) - {"english"}
