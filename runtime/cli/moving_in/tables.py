"""Rows of files: CSV with a header, the COPY blocks of a dump of PostgreSQL, and Parquet.

Text is read row by row, Parquet in batches. A dump is the plain one, as `pg_dump --table=store`
writes it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from runtime.cli.moving_in.records import ImportFailed
from runtime.extras import PARQUET

FIELD_CHARS_MAX = 4 * 1024**2
PARQUET_HEAD = b"PAR1"
BATCH_ROWS = 200
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


def of_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows, with values of JSON's types; what is NULL or no number is left out. Raises
    ImportFailed.
    """
    if PARQUET.is_missing:
        raise ImportFailed(f"{PARQUET.purpose} needs more packages: {PARQUET.command}")
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    plain = ((name, _plain(each)) for name, each in row.items())
                    yield {name: each for name, each in plain if each is not None}
    except (pyarrow.ArrowException, OSError) as broken:
        raise ImportFailed(f"{path} cannot be read as Parquet: {broken}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
