"""DOCX: paragraphs and tables in their order; headings by style; pages by the breaks that are
written in the file.

A page number is known where the author broke the page or the program that saved the file noted its
own breaks; a file without either has no pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from docx import Document
from docx.oxml.ns import qn
from docx.oxml.xmlchemy import BaseOxmlElement
from docx.table import Table
from docx.text.paragraph import Paragraph

from .extraction import Extraction, TextBuilder
from .formats import DOCX
from .tables import row_as_line

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_BREAK, _RENDERED, _TYPE = qn("w:br"), qn("w:lastRenderedPageBreak"), qn("w:type")
_TEXT, _TAB = qn("w:t"), qn("w:tab")


def read(file: BinaryIO, filename: str) -> Extraction:
    document = Document(file)
    builder = TextBuilder()
    page, breaks = (
        1,
        any(_is_page_break(element) for element in document.element.body.iter(_BREAK, _RENDERED)),
    )
    if breaks:
        builder.turn_to(page)
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            for row in item.rows:
                builder.add(row_as_line([cell.text for cell in row.cells]), gap="\n")
            continue
        level = _level(item)
        for text in _between_breaks(item):
            if text is None:
                page += 1
                builder.turn_to(page)
            else:
                builder.add(text, heading=level)
    title = (document.core_properties.title or "").strip() or builder.title
    return builder.done(title=title, page_count=page if breaks else None, media_type=DOCX)


def _level(paragraph: Paragraph) -> int:
    name = paragraph.style.name if paragraph.style is not None else ""
    if name == "Title":
        return 1
    found = _HEADING.fullmatch(name or "")
    return int(found[1]) if found else 0


def _is_page_break(element: BaseOxmlElement) -> bool:
    return element.tag == _RENDERED or element.get(_TYPE) == "page"


def _between_breaks(paragraph: Paragraph) -> Iterator[str | None]:
    """The paragraph's text, with None where a page ends."""
    text = ""
    for element in paragraph._p.iter(_TEXT, _TAB, _BREAK, _RENDERED):
        if element.tag == _TEXT:
            text += element.text or ""
        elif element.tag == _TAB:
            text += "\t"
        elif _is_page_break(element):
            yield text
            yield None
            text = ""
        else:
            text += "\n"
    yield text
