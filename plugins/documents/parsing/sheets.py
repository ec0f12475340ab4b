"""XLSX: each sheet is a page, its name a heading; each row is a line (tables.py)."""

from __future__ import annotations

import datetime
from typing import Any, BinaryIO

from openpyxl import load_workbook

from .extraction import Extraction, TextBuilder
from .formats import XLSX
from .tables import add_rows, counted


def read(file: BinaryIO, filename: str) -> Extraction:
    book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    builder = TextBuilder()
    cells = [0]
    for number, sheet in enumerate(book.worksheets, 1):
        builder.turn_to(number)
        builder.add(sheet.title, heading=1)
        sheet.reset_dimensions()
        add_rows(
            builder,
            (
                [_text(value) for value in row]
                for row in counted(sheet.iter_rows(values_only=True), cells)
            ),
        )
    stated = (book.properties.title or "").strip()
    return builder.done(title=stated or None, page_count=len(book.worksheets), media_type=XLSX)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return (
            value.date().isoformat()
            if value.time() == datetime.time()
            else value.isoformat(" ", "seconds")
        )
    return " ".join(str(value).split())
