"""PPTX: each slide is a page, its title a heading; then its texts, its tables and the words of its
charts from top to bottom, and its notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from pptx import Presentation
from pptx.oxml.ns import qn

from .extraction import Extraction, TextBuilder
from .formats import PPTX
from .tables import row_as_line

_GROUP_DEPTH_MAX = 16
_LABEL, _CATEGORIES, _NUMBERS = qn("c:tx"), qn("c:cat"), qn("c:numRef")
_VALUE, _PARAGRAPH = qn("c:v"), qn("a:p")


def read(file: BinaryIO, filename: str) -> Extraction:
    deck = Presentation(file)
    builder = TextBuilder()
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
            _add(builder, shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            builder.add(slide.notes_slide.notes_text_frame.text)
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


def _add(builder: TextBuilder, shape: Any) -> None:
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            builder.add(row_as_line([cell.text for cell in row.cells]), gap="\n")
    elif getattr(shape, "has_chart", False):
        for line in dict.fromkeys(_words(shape.chart_part._element)):
            builder.add(line, gap="\n")
    elif getattr(shape, "has_text_frame", False):
        for paragraph in shape.text_frame.paragraphs:
            builder.add(paragraph.text, gap="\n")


def _words(chart: Any) -> Iterator[str]:
    """A chart's titles, the names of its series and their categories; each series has its own."""
    for element in chart.iter(_LABEL, _CATEGORIES):
        if element.find(_NUMBERS) is None:
            yield row_as_line([value.text or "" for value in element.iter(_VALUE)])
            yield from (part.text for part in element.iter(_PARAGRAPH))
