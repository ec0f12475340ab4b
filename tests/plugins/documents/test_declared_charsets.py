"""The encoding that the form says of a text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.document_harness import DocumentHarness

pytestmark = pytest.mark.usefixtures("without_delay")


def read(reader: DocumentHarness, name: str, content: bytes, declared: str) -> str:
    document = reader.processed(name, content, content_type=declared)
    assert document["status"] == "completed", document
    return reader.text(document)


@pytest.mark.parametrize(
    ("charset", "text"),
    [("cp850", "Größe"), ("iso-2022-jp", "こんにちは"), ("ISO-8859-7", "Ώρα"), ("koi8-r", "Да")],
)
def test_a_text_is_in_the_encoding_that_is_said_of_it(
    alone: DocumentHarness, charset: str, text: str
) -> None:
    content = text.encode(charset)
    assert read(alone, "a.txt", content, f'text/plain; charset="{charset}"') == text
    rows = f"Name\n{text}".encode(charset)
    assert text in read(alone, "a.csv", rows, f"text/csv; charset={charset}")


@pytest.mark.parametrize(
    "charset", ["iso-8859-1", "us-ascii", "utf-16", "klingon", "hex", "punycode", ""]
)
def test_what_is_sound_or_cannot_be_so_is_read_as_ever(
    alone: DocumentHarness, charset: str
) -> None:
    text = "Größe, こんにちは"
    assert read(alone, "a.txt", text.encode(), f"text/plain; charset={charset}") == text
    text = "Ça va très bien, merci à toi."
    declared = "text/plain; charset=utf-8"
    assert read(alone, "b.txt", text.encode("cp1252"), declared) == text


def test_a_text_that_failed_is_read_in_the_encoding_that_is_said_of_it_later(
    alone: DocumentHarness,
) -> None:
    content = '{"a": "Москва"}'.encode("koi8-r")  # too few letters to guess by
    assert alone.processed("a.json", content)["status"] == "failed"
    assert "Москва" in read(alone, "a.json", content, "application/json; charset=koi8-r")


def sent(reader: DocumentHarness, content: bytes, charset: str = "") -> tuple[int, dict[str, Any]]:
    """The status of an upload, and its document."""
    declared = {"content_type": f"text/plain; charset={charset}"} if charset else {}
    answer = reader.service.upload("a.txt", content, who=reader.token, **declared)
    return answer.status_code, answer.json()["document"]


def told_by(reader: DocumentHarness, document: dict[str, Any]) -> list[str]:
    """The text of the document, and what its memory says."""
    (chunk,) = reader.chunks(reader("GET", f"/v1/documents/{document['id']}"))
    memory = reader("GET", f"/v1/memories/{chunk['memory_id']}")
    return [reader.text(document), memory["content"]]


def test_a_text_that_was_read_in_another_encoding_is_read_anew(alone: DocumentHarness) -> None:
    text, misread = "čeština jedna", "čeątina jedna"
    content = text.encode("iso8859-2")
    first = alone.processed("a.txt", content)
    assert told_by(alone, first) == [misread, misread]
    for charset, read_as in (
        ("iso-8859-2", text),
        ("utf-8", misread),  # which it is not, so it is guessed as before
        ("Latin2", text),
    ):
        status, document = sent(alone, content, charset)
        assert (status, document["id"]) == (202, first["id"]), charset
        alone.idle()
        assert told_by(alone, document) == [read_as, read_as], charset
    for charset in ("iso-8859-2", "latin2", "klingon", ""):
        status, document = sent(alone, content, charset)
        assert status == 200, "it is read so, or nothing else is said of it"
        assert told_by(alone, document) == [text, text]
    told = [item["content"] for item in alone("GET", "/v1/memories?limit=100")["items"]]
    assert (told.count(text), told.count(misread)) == (1, 0)


def test_an_encoding_that_is_said_while_a_text_is_read_counts(alone: DocumentHarness) -> None:
    text = "čeština doma"
    content = text.encode("iso8859-2")
    first, second = sent(alone, content), sent(alone, content, "iso-8859-2")
    assert (first[0], second[0]) == (202, 202) and first[1]["id"] == second[1]["id"]
    alone.idle()
    assert told_by(alone, second[1]) == [text, text]
    told = [item["content"] for item in alone("GET", "/v1/memories?limit=100")["items"]]
    assert told.count(text) == 1


def test_an_encoding_stays_said_of_a_text_that_is_read_once_more(alone: DocumentHarness) -> None:
    text = "čeština venku"
    content = text.encode("iso8859-2")
    first = alone.processed("a.txt", content, content_type="text/plain;charset=iso-8859-2")
    (chunk,) = alone.chunks(first)
    alone("DELETE", f"/v1/memories/{chunk['memory_id']}")
    assert sent(alone, content)[0] == 202
    alone.idle()
    assert told_by(alone, first) == [text, text]
