"""PPTX: each slide is a page, its title a heading; then its texts and tables from top to bottom,
and its notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from pptx import Presentation

from .extraction import Extraction, TextBuilder
from .formats import PPTX
from .tables import row_as_line

_GROUP_DEPTH_MAX = 16


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
    elif getattr(shape, "has_text_frame", False):
        for paragraph in shape.text_frame.paragraphs:
            builder.add("".join(run.text for run in paragraph.runs), gap="\n")
