"""Tables as lines of text.

A table inside a text is written as it stands, cells with " | " between them. Of a file that is a
table, a row alone says little: "Ada | 1815". Where the first row names the columns, every other row
is written with those names, "Name: Ada; Born: 1815", so that a line is understood, and found, by
itself. The first row names the columns when it has a text in each of them, no two the same, none of
them a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .extraction import ParseFailed, TextBuilder
from .limits import TABLE_CELLS_MAX

_EMPTY_ROWS_MAX = 10_000  # a sheet may claim a million rows and have three


def row_as_line(row: list[str]) -> str:
    """A row as it stands: cells with " | " between them, empty ones at the end left out."""
    return " | ".join(" ".join(cell.split()) for cell in row).rstrip(" |")


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
            builder.add(
                "; ".join(
                    f"{name}: {cell}" for name, cell in zip(names, row, strict=False) if cell
                ),
                gap="\n",
            )


def _names_columns(row: list[str]) -> bool:
    return (
        len(row) > 1
        and all(row)
        and len(set(row)) == len(row)
        and not any(_is_number(cell) for cell in row)
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").rstrip("%"))
    except ValueError:
        return False
    return True


def counted(rows: Iterable[Sequence[Any]], cells: list[int]) -> Iterator[Sequence[Any]]:
    """The rows, up to the bound that holds for all tables which share `cells`, the number of cells
    so far.
    """
    for row in rows:
        cells[0] += len(row)
        if cells[0] > TABLE_CELLS_MAX:
            raise ParseFailed("too_many_cells", f"The file has more than {TABLE_CELLS_MAX} cells.")
        yield row
