"""DOCX: headers, then paragraphs and tables in their order, then footers; headings by style; pages
by the breaks that are written in the file. Footnotes, endnotes and comments follow the paragraph or
the table that they are for.

A page number is known where the author broke the page or the program that saved the file noted its
own breaks; a file without either has no pages. What is in a content control stands where the
control does. A table inside a cell follows the row that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from docx import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.part import XmlPart
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from docx.oxml.xmlchemy import BaseOxmlElement
from docx.text.paragraph import Paragraph

from .extraction import Extraction, TextBuilder
from .formats import DOCX
from .tables import row_as_line

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_AROUND = (qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"))
_BREAK, _RENDERED, _TYPE = qn("w:br"), qn("w:lastRenderedPageBreak"), qn("w:type")
_TEXT = qn("w:t")
_NOTES = {
    qn("w:footnoteReference"): RELATIONSHIP_TYPE.FOOTNOTES,
    qn("w:endnoteReference"): RELATIONSHIP_TYPE.ENDNOTES,
    qn("w:commentReference"): RELATIONSHIP_TYPE.COMMENTS,
}
_ID = qn("w:id")
_SIGNS = {qn("w:tab"): "\t", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_COLUMNS_MAX = 63  # Word's own bound


def read(file: BinaryIO, filename: str) -> Extraction:
    document = Document(file)
    builder = TextBuilder()
    body, notes = document.element.body, _notes(document)
    page, breaks = 1, any(_is_page_break(element) for element in body.iter(_BREAK, _RENDERED))
    if breaks:
        builder.turn_to(page)
    _add_around(builder, document, RELATIONSHIP_TYPE.HEADER)
    for item in _inside(body, _PARAGRAPH, _TABLE):
        if item.tag == _TABLE:
            for line in _lines(item):
                builder.add(line, gap="\n")
            _add_notes(builder, item, notes)
            continue
        level = _level(Paragraph(item, document))
        for text in _between_breaks(item):
            if text is None:
                page += 1
                builder.turn_to(page)
            else:
                builder.add(text, heading=level)
        _add_notes(builder, item, notes)
    _add_around(builder, document, RELATIONSHIP_TYPE.FOOTER)
    title = (document.core_properties.title or "").strip() or builder.title
    return builder.done(title=title, page_count=page if breaks else None, media_type=DOCX)


def _add_around(builder: TextBuilder, document: Any, kind: str) -> None:
    """Append the headers or the footers. Those that say the same, as of several sections, once."""
    parts = [rel.target_part for rel in document.part.rels.values() if rel.reltype == kind]
    texts = ("\n".join(_texts(part.element)) for part in parts if isinstance(part, XmlPart))
    for text in dict.fromkeys(texts):
        builder.add(text)


def _notes(document: Any) -> dict[tuple[str, str | None], BaseOxmlElement]:
    """Footnotes, endnotes and comments by the kind of what refers to them, and their number."""
    found = {}
    for reference, kind in _NOTES.items():
        for rel in document.part.rels.values():
            if rel.reltype == kind and not rel.is_external:
                part = rel.target_part
                root = part.element if isinstance(part, XmlPart) else parse_xml(part.blob)
                found |= {(reference, note.get(_ID)): note for note in root}
    return found


def _add_notes(
    builder: TextBuilder,
    item: BaseOxmlElement,
    notes: dict[tuple[str, str | None], BaseOxmlElement],
) -> None:
    """Append what the item refers to, each once in the file."""
    for reference in item.iter(*_NOTES):
        note = notes.pop((reference.tag, reference.get(_ID)), None)
        if note is not None:
            builder.add("\n".join(_texts(note)))


def _inside(element: BaseOxmlElement, *kinds: str) -> Iterator[BaseOxmlElement]:
    """The children of these kinds, those in content controls included."""
    for child in element:
        if child.tag in kinds:
            yield child
        elif child.tag in _AROUND:
            yield from _inside(child, *kinds)


def _texts(element: BaseOxmlElement) -> Iterator[str]:
    """The paragraphs and the rows of tables."""
    for item in _inside(element, _PARAGRAPH, _TABLE):
        if item.tag == _TABLE:
            yield from _lines(item)
        else:
            yield _text(item)


def _lines(table: BaseOxmlElement) -> Iterator[str]:
    """Its rows, each followed by the tables in it. A merged cell is in each of its places."""
    above: list[str] = []
    for row in _inside(table, _ROW):
        texts = [""] * min(row.grid_before, _COLUMNS_MAX)
        cells = list(_inside(row, _CELL))
        for cell in cells:
            if cell.vMerge == "continue" and len(texts) < len(above):
                text = above[len(texts)]
            else:
                text = "\n".join(_text(item) for item in _inside(cell, _PARAGRAPH))
            texts += [text] * min(cell.grid_span, _COLUMNS_MAX)
        yield row_as_line(texts)
        above = texts
        for cell in cells:
            for inner in _inside(cell, _TABLE):
                yield from _lines(inner)


def _level(paragraph: Paragraph) -> int:
    name = paragraph.style.name if paragraph.style is not None else ""
    if name == "Title":
        return 1
    found = _HEADING.fullmatch(name or "")
    return int(found[1]) if found else 0


def _is_page_break(element: BaseOxmlElement) -> bool:
    return element.tag == _RENDERED or element.get(_TYPE) == "page"


def _text(paragraph: BaseOxmlElement) -> str:
    return "\n".join(text for text in _between_breaks(paragraph) if text is not None)


def _between_breaks(paragraph: BaseOxmlElement) -> Iterator[str | None]:
    """The paragraph's text, with None where a page ends. The paragraphs of a text box that hangs on
    it are lines of their own; what older programs would show in the place of one is left out.
    """
    text = ""
    twice = {inner for fallback in paragraph.iter(_FALLBACK) for inner in fallback.iter()}
    for element in paragraph.iter(_TEXT, _BREAK, _RENDERED, _PARAGRAPH, *_SIGNS):
        if element in twice or element is paragraph:
            continue
        if element.tag == _TEXT:
            text += element.text or ""
        elif element.tag == _PARAGRAPH:
            text += "\n"
        elif element.tag in _SIGNS:
            text += _SIGNS[element.tag]
        elif _is_page_break(element):
            yield text
            yield None
            text = ""
        else:
            text += "\n"
    yield text
