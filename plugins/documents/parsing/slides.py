"""PPTX: each slide is a page, its title a heading; then its texts, its tables, the words and
numbers of its charts and the words of its diagrams from top to bottom, its notes and its comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from openpyxl.styles.numbers import is_date_format
from openpyxl.utils.datetime import from_excel
from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn

from .extraction import Extraction, TextBuilder
from .formats import PPTX
from .tables import counted, row_as_line

_GROUP_DEPTH_MAX = 16
_LABEL, _NUMBERS = qn("c:tx"), (qn("c:val"), qn("c:yVal"))
_CATEGORIES = (qn("c:cat"), qn("c:xVal"))
_OF_NUMBERS = (qn("c:numRef"), qn("c:numLit"))
_POINT, _VALUE, _FORMAT = qn("c:pt"), qn("c:v"), qn("c:formatCode")
_PARAGRAPH, _BREAK, _TEXT = qn("a:p"), qn("a:br"), qn("a:t")
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATED = qn("r:dm")
_COMMENTS = (
    RELATIONSHIP_TYPE.COMMENTS,
    "http://schemas.microsoft.com/office/2018/10/relationships/comments",
)
_COMMENT_TEXT = qn("p:text")


def read(file: BinaryIO, filename: str) -> Extraction:
    deck = Presentation(file)
    builder = TextBuilder()
    cells, diagrams = [0], dict[Any, list[str]]()
    for number, slide in enumerate(deck.slides, 1):
        builder.turn_to(number)
        title = slide.shapes.title
        if title is not None and title.has_text_frame:
            builder.add(title.text_frame.text, heading=1)
        shapes = [
            shape
            for shape in _shapes(slide.shapes)
            if title is None or shape.shape_id != title.shape_id
        ]
        for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
            _add(builder, shape, cells, diagrams)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            builder.add(slide.notes_slide.notes_text_frame.text)
        for comment in _comments(slide):
            builder.add(comment)
    stated = (deck.core_properties.title or "").strip()
    return builder.done(title=stated or builder.title, page_count=len(deck.slides), media_type=PPTX)


def _shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:
    """All shapes, those inside groups included."""
    for shape in shapes:
        inner = getattr(shape, "shapes", None)
        if inner is not None and depth < _GROUP_DEPTH_MAX:
            yield from _shapes(inner, depth + 1)
        else:
            yield shape


def _add(
    builder: TextBuilder, shape: Any, cells: list[int], diagrams: dict[Any, list[str]]
) -> None:
    """cells: the number of all charts' points so far; diagrams: what those said that were shown."""
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            builder.add(row_as_line([cell.text for cell in row.cells]), gap="\n")
    elif getattr(shape, "has_chart", False):
        for line in _lines(shape.chart_part._element, cells):
            builder.add(line, gap="\n")
    elif getattr(shape, "has_text_frame", False):
        for paragraph in shape.text_frame.paragraphs:
            builder.add(paragraph.text, gap="\n")
    else:
        for paragraph in _of_diagram(shape, diagrams):
            builder.add(paragraph, gap="\n")


def _lines(chart: Any, cells: list[int]) -> Iterator[str]:
    """A chart's titles, and of each series its name and then what it has at its categories. A title
    that repeats another is left out.
    """
    said, series, named = set(), None, {}
    for element in chart.iter(_LABEL, *_CATEGORIES, *_NUMBERS):
        if element.tag == _LABEL:
            stated = row_as_line([value.text or "" for value in element.iter(_VALUE)])
            words = [stated, *(part.text for part in element.iter(_PARAGRAPH))]
            yield from (line for line in dict.fromkeys(words) if line not in said)
            said.update(words)
        elif element.tag in _CATEGORIES:  # they come before the numbers
            series, named = element.getparent(), dict(_points(element))
        else:
            names = named if series is element.getparent() else {}
            pairs = [[names.get(place, ""), number] for place, number in _points(element)]
            yield "; ".join(
                f"{name}: {number}" if name else number for name, number in counted(pairs, cells)
            )


def _points(element: Any) -> Iterator[tuple[str | None, str]]:
    """(place, text as it is shown) of what a chart keeps of its cells. Of categories on several
    levels those next to the axis come first in the file, and their names are not overwritten.
    """
    form = element.find(f".//{_FORMAT}")
    is_date = form is not None and bool(form.text) and is_date_format(form.text)
    are_numbers = any(element.find(kind) is not None for kind in _OF_NUMBERS)
    seen = set()
    for point in element.iter(_POINT):
        place, value = point.get("idx"), point.find(_VALUE)
        if value is not None and value.text and place not in seen:
            seen.add(place)
            text = _shown(value.text, is_date) if are_numbers else value.text
            yield place, " ".join(text.split())


def _shown(text: str, is_date: bool) -> str:
    """A number without the digits that only a computer sees, a day as a day."""
    try:
        number = float(text)
        return from_excel(number).date().isoformat() if is_date else f"{number:.15g}"
    except (ValueError, OverflowError, AttributeError):
        return text


def _of_diagram(shape: Any, read: dict[Any, list[str]]) -> list[str]:
    """The paragraphs of a SmartArt, in the order of its points. Its part is read once, however
    often it is shown.
    """
    related = next(shape.element.iter(f"{_DIAGRAM}relIds"), None)
    rel = None if related is None else shape.part.rels.get(related.get(_RELATED))
    if rel is None or rel.is_external:
        return []
    if (part := rel.target_part) not in read:
        texts = parse_xml(part.blob).iter(f"{_DIAGRAM}t")
        read[part] = [paragraph for text in texts for paragraph in _paragraphs(text)]
    return read[part]


def _comments(slide: Any) -> Iterator[str]:
    read = set()
    for rel in slide.part.rels.values():
        if rel.reltype in _COMMENTS and not rel.is_external and rel.target_part not in read:
            read.add(rel.target_part)  # a part may be named many times
            root = parse_xml(rel.target_part.blob)
            yield from (text.text or "" for text in root.iter(_COMMENT_TEXT))
            yield from _paragraphs(root)


def _paragraphs(element: Any) -> Iterator[str]:
    for paragraph in element.iter(_PARAGRAPH):
        yield "".join(
            "\n" if part.tag == _BREAK else part.text or ""
            for part in paragraph.iter(_TEXT, _BREAK)
        )
