"""The values of a JSON or JSON Lines file, one after the other.

An array is read element by element and JSON Lines line by line, so a file of any size is read
within the memory of its largest value. A document that is one object has to be held whole, which
DOCUMENT_BYTES_MAX bounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from runtime.cli.moving_in.records import ImportFailed

DOCUMENT_BYTES_MAX = 512 * 1024**2
VALUE_CHARS_MAX = 16 * 1024**2
CHUNK_CHARS = 256 * 1024
_BROKEN = (ValueError, RecursionError)  # the latter is of what is nested too deeply
_WHITE = re.compile(r"[ \t\r\n]*")


def values(path: Path) -> Iterator[Any]:
    """The elements of an array, the lines of JSON Lines, or the one value; of an empty file none.
    Raises ImportFailed.
    """
    with path.open(encoding="utf-8-sig") as file:
        yield from values_of(file, path, path.stat().st_size)


def values_of(file: TextIO, path: Path, size: int) -> Iterator[Any]:
    """The values of an open file at its beginning, as of `values`; path: what it is called in
    messages; size: in bytes. Raises ImportFailed.
    """
    try:
        head = file.read(CHUNK_CHARS)
        file.seek(0)
        if not size:
            return
        if head.lstrip()[:1] == "[":
            yield from _elements(path, file)
        elif _is_lines(head):
            yield from _lines(path, file)
        else:
            yield _whole(path, file, size)
    except UnicodeDecodeError:
        raise ImportFailed(f"{path} is not UTF-8 text") from None


def _is_lines(head: str) -> bool:
    """Whether the first line is a value by itself, and there is more than one."""
    first, newline, rest = head.lstrip().partition("\n")
    try:
        json.loads(first)
    except _BROKEN:
        return False
    return bool(newline and rest.strip())


def _lines(path: Path, file: TextIO) -> Iterator[Any]:
    number = 0
    while line := file.readline(VALUE_CHARS_MAX):
        number += 1
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except _BROKEN as broken:
            raise _neither(path, broken, number) from None


def _whole(path: Path, file: TextIO, size: int) -> Any:
    if size > DOCUMENT_BYTES_MAX:
        raise ImportFailed(
            f"{path} is one JSON value of more than {DOCUMENT_BYTES_MAX} bytes, which would have "
            "to be held in memory; write it as JSON Lines, one memory a line"
        )
    text = file.read()
    try:
        return json.loads(text)
    except _BROKEN as broken:
        raise _neither(path, broken, getattr(broken, "lineno", 1)) from None


class _Window:
    """The part of a file that is held, and the place in it.

    text, at   what is held, and the index of the next character that is not white
    ended      the file goes no further than that
    """

    def __init__(self, file: TextIO):
        self._file, self.text, self.at, self.ended = file, "", 0, False
        self._lines_before = 1

    @property
    def line(self) -> int:
        return self._lines_before + self.text.count("\n", 0, self.at)

    def go_to(self, index: int) -> str:
        """Go to the next character from there on that is not white; -> it, "" at the end."""
        self.at = index
        while True:
            self.at = _WHITE.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text) or self.ended:
                return self.text[self.at : self.at + 1]
            self.widen()

    def widen(self) -> None:
        """Hold more, and what lies behind no longer."""
        self._lines_before = self.line
        kept = self.text[self.at :]
        more = self._file.read(max(CHUNK_CHARS, len(kept)))
        self.text, self.at, self.ended = kept + more, 0, not more


def _elements(path: Path, file: TextIO) -> Iterator[Any]:
    """The elements of the array that the file is, of which one at a time is held."""
    window, decoder = _Window(file), json.JSONDecoder()
    window.go_to(0)
    mark = window.go_to(window.at + 1)
    while mark != "]":
        value, end = _element(path, window, decoder)
        yield value
        mark = window.go_to(end)
        if mark == ",":
            window.go_to(window.at + 1)
        elif mark != "]":
            raise ImportFailed(
                f"{path} is neither JSON nor JSON Lines: a comma or the end of its array is "
                f"missing at line {window.line}"
            )
    if window.go_to(window.at + 1):
        raise ImportFailed(f"{path} goes on behind the end of its array at line {window.line}")


def _element(path: Path, window: _Window, decoder: json.JSONDecoder) -> tuple[Any, int]:
    """The element at the window's place, and where it ends."""
    while True:
        try:
            value, end = decoder.raw_decode(window.text, window.at)
            # A number at the end of what is held may go on in what is not.
            if window.ended or end < len(window.text):
                return value, end
        except json.JSONDecodeError as broken:
            if window.ended or len(window.text) - window.at > VALUE_CHARS_MAX:
                raise _neither(path, broken, window.line) from None
        except _BROKEN as broken:
            raise _neither(path, broken, window.line) from None
        window.widen()


def _neither(path: Path, broken: Exception, line: int) -> ImportFailed:
    said = broken.msg if isinstance(broken, json.JSONDecodeError) else "not a value"
    if isinstance(broken, RecursionError):
        said = "nested too deeply"
    return ImportFailed(f"{path} is neither JSON nor JSON Lines: {said} at line {line}")
