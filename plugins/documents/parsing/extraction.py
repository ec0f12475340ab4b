"""What a parser makes of a file: its text, and where in it the pages, headings and times are.

Offsets count code points of `text`; a block is a piece of it that belongs together (a paragraph, a
heading, a line of a table, a cue). Blocks ascend and do not overlap; between them is nothing but
white space. What a parser hands in is cleaned here: line ends become "\\n", what is no character
(NUL and other controls, half surrogates) is dropped.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .limits import EXTRACTED_CHARS_MAX, HEADING_CHARS_MAX, PAGES_MAX

_LINE_END = re.compile(r"\r\n?|[\u2028\x85\x0b\x0c]")
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class ParseFailed(Exception):
    """The file cannot be read. reason: a word for programs; the message: a sentence for people,
    without the file's own text.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason
        self.message = message


class Block(msgspec.Struct, omit_defaults=True):
    """text[start:end]. heading: its level from 1, 0 for none; page from 1; begins and ends in
    seconds.
    """

    start: int
    end: int
    heading: int = 0
    page: int | None = None
    begins: float | None = None
    ends: float | None = None


class Extraction(msgspec.Struct, omit_defaults=True):
    """media_type: what the file turned out to be, where the parser knows better than its
    beginning.
    """

    text: str = ""
    blocks: list[Block] = []
    title: str | None = None
    page_count: int | None = None
    media_type: str | None = None
    duration_seconds: float | None = None
    transcript: bool = False
    language: str | None = None
    pictures: list[int] = []  # pages without text that show something; to be read by a model


class Failure(msgspec.Struct):
    reason: str
    message: str


class ParserReply(msgspec.Struct, omit_defaults=True):
    """What the confined process writes to its parent: a failure, or what its task makes."""

    failure: Failure | None = None
    extraction: Extraction | None = None
    value: Any = None


class TextBuilder:
    """Collects blocks in reading order."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0
        self.page: int | None = None
        self.title: str | None = None

    def add(
        self,
        text: str,
        *,
        heading: int = 0,
        gap: str = "\n\n",
        begins: float | None = None,
        ends: float | None = None,
    ) -> None:
        """Append a block, `gap` after the one before. White space around it is dropped; nothing but
        white space is no block.
        """
        text = cleaned(text).strip()
        if not text:
            return
        if self._pieces:
            self._pieces.append(gap)
            self._length += len(gap)
        start = self._length
        self._length += len(text)
        if self._length > EXTRACTED_CHARS_MAX:
            raise ParseFailed(
                "too_much_text",
                f"The text of this file is longer than {EXTRACTED_CHARS_MAX} characters.",
            )
        self._pieces.append(text)
        level = heading if len(text) <= HEADING_CHARS_MAX else 0
        self._blocks.append(Block(start, self._length, level, self.page, begins, ends))
        if level == 1 and self.title is None:
            self.title = " ".join(text.split())

    def turn_to(self, page: int) -> None:
        """What is added from now on is on this page."""
        if page > PAGES_MAX:
            raise ParseFailed("too_many_pages", f"The file has more than {PAGES_MAX} pages.")
        self.page = page

    def done(self, **fields: Any) -> Extraction:
        fields.setdefault("title", self.title)
        return Extraction("".join(self._pieces), self._blocks, **fields)


def cleaned(text: str) -> str:
    return _NO_CHARACTER.sub("", _LINE_END.sub("\n", text))
