"""The encoding that the form says of a text."""

from __future__ import annotations

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
