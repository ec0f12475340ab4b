"""Rows of text files: CSV with a header, and the COPY blocks of a dump of PostgreSQL.

Both are read row by row. A dump is the plain one, as `pg_dump --table=store` writes it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from runtime.cli.moving_in.records import ImportFailed

FIELD_CHARS_MAX = 4 * 1024**2
SAMPLE_CHARS = 64 * 1024
DELIMITERS = ",;\t|"
DUMP_MARKS = ("-- PostgreSQL database dump", "COPY ")
COPY = re.compile(r'COPY (?:"?\w+"?\.)?"?(\w+)"? \(([^)]*)\) FROM stdin;')
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def of_csv(path: Path) -> Iterator[dict[str, str]]:
    """The rows, by the names of the header. Raises ImportFailed."""
    csv.field_size_limit(FIELD_CHARS_MAX)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            # The header alone: texts have commas of their own.
            header = file.readline(SAMPLE_CHARS)
            delimiter = max(DELIMITERS, key=header.count)
            file.seek(0)
            for row in csv.DictReader(file, delimiter=delimiter, strict=True):
                yield {name: value for name, value in row.items() if name and value is not None}
    except UnicodeDecodeError:
        raise ImportFailed(f"{path} is not UTF-8 text") from None
    except csv.Error as broken:
        raise ImportFailed(f"{path} is not CSV: {broken}") from None


def of_dump(path: Path, table: str) -> Iterator[dict[str, str]]:
    """The rows of one table of a plain dump; NULLs are left out. Raises ImportFailed."""
    columns: list[str] = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if not columns:
                    begins = COPY.match(line)
                    if begins and begins[1] == table:
                        columns = [name.strip().strip('"') for name in begins[2].split(",")]
                elif line.rstrip("\n") == "\\.":
                    columns = []
                else:
                    cells = line.rstrip("\n").split("\t")
                    yield {
                        name: _ESCAPED.sub(_unescaped, cell)
                        for name, cell in zip(columns, cells, strict=True)
                        if cell != "\\N"
                    }
    except UnicodeDecodeError:
        raise ImportFailed(f"{path} is not UTF-8 text") from None
    except ValueError:
        raise ImportFailed(f"{path} has a row that has not as many columns as its table") from None


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    if said[0] == "x" and len(said) > 1:
        return chr(int(said[1:], 16))
    return chr(int(said, 8)) if said[0] in "01234567" else _CONTROL.get(said, said)
