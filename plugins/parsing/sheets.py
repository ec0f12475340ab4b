"""XLSX and CSV: each sheet is a page, its name a heading; each row is a line.

A row alone says little: "Ada | 1815". Where the first row names the columns, every other row is written with those names, "Name:
Ada; Born: 1815", so that a line is understood, and found, by itself. The first row names the columns when it has a text in each
of them, no two the same, none of them a number.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from openpyxl import load_workbook

from plugins.parsing.archives import check_archive
from plugins.parsing.extraction import Extraction, ParseFailed, TextBuilder
from plugins.parsing.formats import XLSX
from plugins.parsing.word import other_kind
from runtime.limits import TABLE_CELLS_MAX

_EMPTY_ROWS_MAX = 10_000  # a sheet may claim a million rows and have three


def read(file: BinaryIO, filename: str) -> Extraction:
    kind = check_archive(file)
    if kind != XLSX:
        return other_kind(kind, file, filename)
    book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    builder = TextBuilder()
    cells = [0]
    for number, sheet in enumerate(book.worksheets, 1):
        builder.turn_to(number)
        builder.add(sheet.title, heading=1)
        sheet.reset_dimensions()
        add_rows(builder, ([_text(value) for value in row] for row in _counted(sheet.iter_rows(values_only=True), cells)))
    stated = (book.properties.title or "").strip()
    return builder.done(title=stated or None, page_count=len(book.worksheets), media_type=XLSX)


def add_rows(builder: TextBuilder, rows: Iterable[list[str]]) -> None:
    """A table, row by row."""
    names: list[str] | None = None
    first, empty = True, 0
    for row in rows:
        while row and not row[-1]:
            row.pop()
        if not row:
            empty += 1
            if empty > _EMPTY_ROWS_MAX:
                return
            continue
        empty = 0
        if first:
            first, names = False, row if _names_columns(row) else None
            builder.add(" | ".join(row), gap="\n\n")
        elif names is None or len(row) > len(names):
            builder.add(" | ".join(row), gap="\n")
        else:
            builder.add("; ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=False) if cell), gap="\n")


def _names_columns(row: list[str]) -> bool:
    return len(row) > 1 and all(row) and len(set(row)) == len(row) and not any(_is_number(cell) for cell in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").rstrip("%"))
    except ValueError:
        return False
    return True


def _counted(rows: Iterable[tuple[Any, ...]], cells: list[int]) -> Iterator[tuple[Any, ...]]:
    """The rows, up to the bound of all sheets together."""
    for row in rows:
        cells[0] += len(row)
        if cells[0] > TABLE_CELLS_MAX:
            raise ParseFailed("too_many_cells", f"The file has more than {TABLE_CELLS_MAX} cells.")
        yield row


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ", "seconds")
    return " ".join(str(value).split())
