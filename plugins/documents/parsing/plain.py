"""Text as it stands: TXT and Markdown, and the two formats that data comes in, CSV and JSON.

UTF-8 is what text is in, or UTF-16 where a mark of order says so; anything else is guessed from the
bytes (encodings.py).
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from .encodings import guessed
from .extraction import Extraction, ParseFailed, TextBuilder, cleaned
from .formats import TXT
from .limits import EXTRACTED_CHARS_MAX, MARKUP_DEPTH_MAX, TABLE_CELLS_MAX
from .tables import add_rows, counted

_PARAGRAPH_END = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(?=.)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(```|~~~)")


def decoded(raw: bytes) -> str:
    """Raise ParseFailed for what is no text."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode(guessed(raw), "replace")


def read_text(file: BinaryIO, filename: str) -> Extraction:
    return _paragraphs(_whole(file))


def _paragraphs(text: str, **fields: str) -> Extraction:
    builder = TextBuilder()
    for paragraph in _PARAGRAPH_END.split(text):
        builder.add(paragraph)
    return builder.done(**fields)


def read_markdown(file: BinaryIO, filename: str) -> Extraction:
    """The source as it stands; headings of both kinds, none inside fenced code."""
    builder = TextBuilder()
    paragraph: list[str] = []
    fence = ""

    def end_paragraph() -> None:
        builder.add("\n".join(paragraph))
        paragraph.clear()

    for line in _whole(file).split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence:
            heading, underline = _ATX.match(line), _SETEXT.fullmatch(line)
            if heading:
                end_paragraph()
                title = line[heading.end() :]
                builder.add(title.rstrip("#").rstrip(" \t") or title[0], heading=len(heading[1]))
                continue
            if underline and len(paragraph) == 1:
                builder.add(paragraph.pop(), heading=1 if underline[1][0] == "=" else 2)
                continue
            if not line.strip():
                end_paragraph()
                continue
        paragraph.append(line)
    end_paragraph()
    return builder.done()


def read_csv(file: BinaryIO, filename: str) -> Extraction:
    text = _whole(file)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:65_536], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if PurePosixPath(filename.lower()).suffix == ".tsv" else csv.excel
    builder = TextBuilder()
    csv.field_size_limit(EXTRACTED_CHARS_MAX)  # of a cell, which may be the whole text
    try:
        add_rows(
            builder,
            (
                [" ".join(cell.split()) for cell in row]
                for row in counted(csv.reader(io.StringIO(text), dialect), [0])
            ),
        )
    except csv.Error:
        raise ParseFailed("damaged", "The file cannot be read as a table.") from None
    return builder.done()


def read_json(file: BinaryIO, filename: str) -> Extraction:
    """One line for each value, with the way to it: `users[0].name: Ada`. A file of one JSON text
    per line is read as a list. What only begins like JSON, and is not called so, is text.
    """
    text = _whole(file)
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            if "json" not in PurePosixPath(filename.lower()).suffix:
                return _paragraphs(text, media_type=TXT)
            raise ParseFailed("damaged", "The file is not valid JSON.") from None
    builder = TextBuilder()
    for place, (way, leaf) in enumerate(_leaves(value, "", 0)):
        if place > TABLE_CELLS_MAX:
            raise ParseFailed("too_many_cells", f"The file has more than {TABLE_CELLS_MAX} values.")
        shown = leaf if isinstance(leaf, str) else json.dumps(leaf)
        builder.add(f"{way}: {shown}" if way else shown, gap="\n")
    return builder.done()


def _leaves(value: Any, way: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > MARKUP_DEPTH_MAX:
        raise ParseFailed("damaged", "The file is nested too deeply.")
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{way}.{name}" if way else str(name), depth + 1)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{way}[{place}]", depth + 1)
    else:
        yield way, value


def _whole(file: BinaryIO) -> str:
    text = cleaned(decoded(file.read()))
    if len(text) > EXTRACTED_CHARS_MAX:
        raise ParseFailed(
            "too_much_text",
            f"The text of this file is longer than {EXTRACTED_CHARS_MAX} characters.",
        )
    return text
