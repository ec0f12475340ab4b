"""XLSX: each sheet is a page, its name a heading; each row is a line (tables.py); then come the
comments on its cells.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, BinaryIO

from openpyxl.packaging.relationship import get_dependents, get_rels_path
from openpyxl.reader.excel import ExcelReader
from openpyxl.xml.constants import COMMENTS_NS
from openpyxl.xml.functions import fromstring

from .extraction import Extraction, TextBuilder
from .formats import XLSX
from .tables import add_rows, counted

_THREAD, _IN_THREAD = "[Threaded comment]", "Comment:"


def read(file: BinaryIO, filename: str) -> Extraction:
    reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
    reader.read()
    book = reader.wb
    paths = {sheet.name: rel.target for sheet, rel in reader.parser.find_sheets()}
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
        for line in _comments(reader, paths[sheet.title]):
            builder.add(line, gap="\n")
    stated = (book.properties.title or "").strip()
    return builder.done(title=stated or None, page_count=len(book.worksheets), media_type=XLSX)


def _comments(reader: ExcelReader, path: str) -> Iterator[str]:
    """Of a sheet: the cell and what is said of it. Excel keeps a thread as a comment, too, whose
    first lines are for older programs.
    """
    parts = set(reader.valid_files)
    if get_rels_path(path) not in parts:
        return
    for rel in get_dependents(reader.archive, get_rels_path(path)).find(COMMENTS_NS):
        if rel.target not in parts:
            continue
        for comment in fromstring(reader.archive.read(rel.target)).iter("{*}comment"):
            text = "".join(run.text or "" for run in comment.iterfind(".//{*}t"))
            if text.startswith(_THREAD):
                text = text.partition(_IN_THREAD)[2] or text
            if words := " ".join(text.split()):
                yield f"{comment.get('ref')}: {words}"


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
