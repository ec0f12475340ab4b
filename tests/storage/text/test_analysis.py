"""Text analysis: words of many scripts, joined tokens, the guess of the language, spans, and what a
query finds in a text.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.text import (
    STOP_WORDS,
    Matcher,
    analysis,
    analyze,
    content_words,
    query_terms,
    read_query,
)
from storage.text.languages import TEXT_EVIDENCE, language_of


def finds(query: str, text: str) -> bool:
    """Whether each word of the query, as a whole, is among the text's terms."""
    terms = set(analyze(text))
    return all(query_terms(word)[0] in terms for word in query.split())


def meets(query: str, text: str) -> bool:
    """Whether a search for the query comes upon the text."""
    return not set(query_terms(query)).isdisjoint(analyze(text))


def bare(text: str) -> str:
    """Letters and digits without case, width and accents."""
    return "".join(
        char for char in unicodedata.normalize("NFKD", text).casefold() if char.isalnum()
    )


@given(st.text(alphabet="abZ01._:-/@&+'#, ()htpsHTP\n", max_size=40))
@settings(max_examples=300, deadline=None)
def test_plain_words_are_found_sooner_and_the_same(text: str) -> None:
    whole = re.compile(analysis.token_pattern("[A-Za-z0-9]+", ""), re.ASCII)
    assert [match.span() for match in analysis.ASCII_TOKENS.finditer(text)] == [
        match.span() for match in whole.finditer(text)
    ]


def test_english_words_lose_case_endings_and_stop_words() -> None:
    assert analyze("She was painting the Lakes, and painted a lake.") == [
        "paint",
        "lake",
        "paint",
        "lake",
    ]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("foo_bar", "call foo_bar() first"),
        ("bar", "call foo_bar() first"),
        ("fooBar", "call foo_bar() first"),
        ("getUserName", "the function getUserName fails"),
        ("user names", "the function getUserName fails"),
        ("v1.2.3", "released v1.2.3 yesterday"),
        ("1.2.3", "released 1.2.3 yesterday"),
        ("ABC-123", "ticket ABC-123 is open"),
        ("abc123", "ticket ABC-123 is open"),
        ("123", "ticket ABC-123 is open"),
        ("1234567", "call me at +49 170 1234567"),
        ("555-123-4567", "phone: (555) 123-4567"),
        ("ada@example.com", "write to Ada@Example.com."),
        ("example.com", "write to Ada@Example.com."),
        ("https://example.com/a/b?x=1", "see (https://example.com/a/b?x=1)."),
        ("example", "see https://example.com/a/b?x=1"),
        ("2023-05-08", "on 2023-05-08 at noon"),
        ("2023", "on 2023-05-08 at noon"),
        ("12:30", "at 12:30 sharp"),
        ("1000", "it cost 1,000 dollars"),
        ("3 pm", "see you at 3pm"),
        ("iphone", "my new iPhone15"),
        ("2", "the 2nd time"),
        ("email", "no e-mails today"),
        ("e-mail", "no emails today"),
        ("node.js", "I like NodeJS"),
        ("C++", "written in C++, not C#"),
        ("c#", "written in C++, not C#"),
        ("std::vector", "a std::vector of ints"),
        ("John's", "John went home"),
        ("john", "that is John's"),
        ("o'brien", "Mr O’Brien called"),
        ("src/main.py", "edit src/main.py"),
        ("AT&T", "a bill from AT&T"),
        ("usa", "made in the U.S.A."),
    ],
)
def test_tokens_are_found_whole_and_by_parts(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    "spelling", ["+49 170 1234567", "+49 (170) 123-4567", "+491701234567", "+49/170.1234567"]
)
def test_a_phone_number_is_one_term_however_it_is_grouped(spelling: str) -> None:
    assert "+491701234567" in query_terms(spelling)
    assert "+491701234567" in analyze(f"call {spelling}, please")


@pytest.mark.parametrize(
    "number", ["1990", "2023", "007", "3.14", "12345678901234567890", "1.000.000"]
)
def test_numbers_stay_as_they_are(number: str) -> None:
    assert analyze(f"value {number} here")[1] == number


@pytest.mark.parametrize(
    ("one", "other"), [("v1.2.3", "v12.3"), ("c", "C++"), ("2023-05-08", "20230508")]
)
def test_different_identifiers_stay_different(one: str, other: str) -> None:
    assert query_terms(one)[0] not in analyze(other)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Haus", "Die Häuser in der Stadt sind sehr schön und nicht teuer"),
        ("Wo sind die Häuser?", "In der Stadt gibt es ein Haus, aber ich sehe es nicht"),
        ("Häuser", "Häuser kaufen"),
        ("l’école", "Les enfants vont à l'école avec leurs amis"),
        ("gato", "Mi perro no quiere a los gatos de la casa"),
        ("książki", "Książki są dla mnie bardzo ważne"),
        ("cafe", "Café au lait"),
        ("Café", "Cafe\u0301 au lait"),
        ("full", "Ｆｕｌｌ width"),
        ("мама рама", "Мама мыла рамы"),
        ("кот", "вижу кота"),
        ("كتاب", "قرأت الكتاب أمس"),
        ("किताब", "मुझे किताबें पढ़ना पसंद है"),
        ("γατα", "Οι γάτες είναι στο σπίτι"),
        ("猫", "私は黒猫が好きです"),
        ("黒猫", "私は黒猫が好きです"),
        ("東京", "東京タワー"),
        ("한국", "한국어를 배웁니다"),
        ("สวัสดี", "สวัสดีครับ"),
        ("123", "الرقم ١٢٣"),
    ],
)
def test_other_languages_and_scripts_meet(query: str, text: str) -> None:
    assert meets(query, text)


def test_characters_that_are_not_neighbours_do_not_meet() -> None:
    assert not meets("京東", "東京タワー")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Take care and go see the old man in the hat", "english"),
        ("van life", "english"),
        ("La Paz", "english"),
        ("Was die Leute sagen ist mir nicht so wichtig", "german"),
        ("Je ne sais pas où il est avec ses amis", "french"),
        ("No sé dónde está mi hermano pero lo quiero mucho", "spanish"),
        ("Eu não sei onde está o meu irmão", "portuguese"),
        ("Non so dove sono gli amici della mia sorella", "italian"),
        ("Ik weet niet waar mijn broer is maar hij komt", "dutch"),
        ("Jag vet inte var min bror är men han kommer", "swedish"),
        ("Nie wiem gdzie jest mój brat ale on się nie boi", "polish"),
        ("Bu kitap çok güzel ama ben onu daha okumadım", "turkish"),
    ],
)
def test_function_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(analysis.tokens_of(text), TEXT_EVIDENCE) == language


def test_a_text_of_stop_words_keeps_them() -> None:
    assert analyze("Who is he?") == ["who", "is", "he"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]
    assert analyze("I don't") == ["i", "don't"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "?!…",
        "😀",
        "\u200d",
        "_",
        "'",
        "' '",
        "\x00",
        "e\u0301\u0302" * 3,
        "+",
        "://",
        "http://",
        "@@",
        "a" * 5_000,
    ],
)
def test_odd_texts_raise_nothing(text: str) -> None:
    assert isinstance(analyze(text), list)
    assert isinstance(query_terms(text), list)


def test_a_query_asks_for_each_term_once() -> None:
    assert query_terms("lake lakes Lake LAKE") == ["lake"]


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("two harbours and a harbour", "harbour"),
        ("die Häuser und das Haus waren sehr schön", "häuser"),
        ("昨日は図書館で勉強した", "図書館"),
        ("no match", "zebra"),
    ],
)
def test_matching_spans_are_those_whose_terms_match(text: str, term: str) -> None:
    terms = frozenset(query_terms(term))
    found = Matcher(terms).spans(text)
    assert all(bare(text[start:end])[:2] in bare(term) for start, end in found)
    assert bool(found) == bool(terms & set(analyze(text)))


MET = """paint Paint painted painting. paints, re-paint paint's (paint) "paint" paint: 4paint
    paintX paint.er http://paint.er/a/paint lake lakes Lake! lake; LAKE the 12 3.5 , ' -
    Häuser 図書館 _paint paint_ paint# run running ran"""


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(MET.split())), max_size=12),
    st.sampled_from([" ", "  ", "\n", ""]),
)
def test_words_met_before_are_found_where_all_words_would_be(
    words: list[str], between: str
) -> None:
    text, terms = between.join(words), frozenset(query_terms("painting lakes running"))
    counted = Counter(term for term in analyze(text) if term in terms)
    assert set(Matcher(terms).spans(text, counted)) == set(Matcher(terms).spans(text))


def test_counting_what_is_looked_for_saves_taking_the_text_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, terms = "We painted the boat; painting it took a day.", frozenset(query_terms("paint"))
    expected = Matcher(terms).spans(text)
    monkeypatch.setattr(analysis, "ASCII_TOKENS", None)  # which takes the text apart
    assert Matcher(terms).spans(text, {"paint": 2}) == expected == [(3, 10), (21, 29)]
    assert Matcher(terms).spans(text, {}) == []


def test_content_words_are_the_tokens_that_carry_terms() -> None:
    text = "“Ｃafé” für the getUserName, 黒猫 & naïve e-mails"
    words = content_words(text)
    assert [text[word.start : word.end] for word in words] == [
        "Ｃafé",
        "für",
        "getUserName",
        "黒猫",
        "naïve",
        "e-mails",
    ]
    assert "user" in words[2].terms
    assert {term for word in words for term in word.terms} == set(analyze(text)) - {"黒", "猫"}


def test_a_querys_content_words_give_its_terms() -> None:
    query = "Wo ist der Schlüssel zum Keller?"
    assert [term for word in read_query(query).words for term in word.terms] == query_terms(query)


def test_stop_lists_hold_words_as_they_are_looked_up() -> None:
    for language, words in STOP_WORDS.items():
        assert words == {analysis.normal(word) for word in words}, language


def test_the_memory_of_words_is_bounded() -> None:
    words = analysis.Words("english")
    for number in range(analysis.CACHED_WORDS_MAX + 10):
        assert words[f"word{number}"].text
    assert len(words) <= analysis.CACHED_WORDS_MAX


def test_threads_get_the_same_terms() -> None:
    texts = [f"running{chr(97 + n % 26)}s houses{chr(97 + n // 26)} paintings" for n in range(300)]
    expected = [analyze(text) for text in texts]
    for cache in analysis.CACHES.values():
        cache.clear()
    found: list[list[list[str]]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda out=out: out.extend(analyze(text) for text in texts))
        for out in found
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(terms == expected for terms in found)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_terms_inside_it(text: str) -> None:
    terms = analyze(text)
    assert all(terms) and terms == analyze(text)
    for start, end, found in content_words(text):
        assert found and 0 <= start < end <= len(text)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12),
        min_size=1,
        max_size=6,
    )
)
def test_a_word_finds_the_text_it_stands_in(words: list[str]) -> None:
    text = " ".join(words)
    every = set(analyze(text)) | {
        term for word in words for term in analyze(word) if word.lower() in STOP_WORDS["english"]
    }
    for word in words:
        plain = [
            term
            for term in query_terms(word)
            if not any(term in stops for stops in STOP_WORDS.values())
        ]
        assert not plain or every & set(plain)


def test_a_word_of_a_query_has_the_terms_that_it_has_there() -> None:
    query = read_query("Quando Gianna è andata a Roma con gli amici dell'università?")
    assert query.language == "italian"
    assert query.terms_of("amici") == next(
        word.terms for word in query.words if query.text[word.start : word.end] == "amici"
    )
    assert set(query.terms_of("università")) == set(read_query("università", "italian").terms)
