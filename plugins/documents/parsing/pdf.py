"""PDF: the text page by page, and headings by the size of their letters.

A PDF knows no headings, only letters of a size. A line that is clearly larger than most of the
document's text, short and no sentence is one; its level is the rank of its size among those. Words
that a line break divides with a hyphen are joined.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium

from .extraction import Extraction, ParseFailed, TextBuilder
from .limits import HEADING_CHARS_MAX, PAGES_MAX

_LARGER = 1.15  # than most of the text, for a heading
_HEADING_LEVELS = 6
_HYPHENS = ("\x02", "\ufffe")  # how pdfium writes a hyphen at which a word was divided
_PART = re.compile(r"[^\0-\x20]+|\n")  # a word, or the end of a line
_IDEOGRAPHS = "\u2e80"
_LINE_STEP = 0.7  # of the size of letters: farther up or down than this is no index or exponent
_SHOWING = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM, pdfium.FPDF_PAGEOBJ_SHADING)


@dataclass(slots=True)
class _Line:
    text: str
    size: float


def open_pdf(file: BinaryIO) -> pypdfium2.PdfDocument:
    """Open a PDF. Raises ParseFailed."""
    try:
        document = pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as refused:
        if "password" in str(refused).lower() or "security" in str(refused).lower():
            raise ParseFailed("encrypted", "The file is protected with a password.") from None
        raise ParseFailed(
            "damaged", "The file is not a readable PDF; it is cut short or damaged."
        ) from None
    if len(document) > PAGES_MAX:
        raise ParseFailed("too_many_pages", f"The file claims more than {PAGES_MAX} pages.")
    return document


def read(file: BinaryIO, filename: str) -> Extraction:
    document = open_pdf(file)
    pages: list[list[_Line]] = []
    pictures = []
    for number in range(len(document)):
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            raise ParseFailed("damaged", f"Page {number + 1} of the file cannot be read.") from None
        lines = _lines(page)
        if not lines and any(True for _ in page.get_objects(filter=_SHOWING, max_depth=1)):
            pictures.append(number + 1)
        pages.append(lines)
        page.close()
    sizes = Counter[float]()
    for line in (line for lines in pages for line in lines):
        sizes[line.size] += len(line.text)
    levels = _levels(sizes)
    builder = TextBuilder()
    for number, lines in enumerate(pages, 1):
        builder.turn_to(number)
        for text, level in _paragraphs(lines, levels):
            builder.add(text, heading=level)
    title = (document.get_metadata_value("Title") or "").strip() or builder.title
    return builder.done(title=title, page_count=len(pages), pictures=pictures)


def _lines(page: pypdfium2.PdfPage) -> list[_Line]:
    """The page's lines with the size of their first letter, in points. An empty line divides
    paragraphs.
    """
    text_page = page.get_textpage()
    text = _text(text_page)
    found = []
    for begin, end in _spans(text_page, text):
        words = text[begin:end].replace("\0", "")  # of no known character
        words = words.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip()
        letter = begin + len(words) - len(words.lstrip())
        found.append(_Line(words, round(_size(text_page, letter), 1) if words else 0.0))
    text_page.close()
    return found if any(line.text for line in found) else []


def _text(text_page: pypdfium2.PdfTextPage) -> str:
    """What is on the page, one UTF-16 code unit for each of pdfium's characters."""
    count = text_page.count_chars()
    if count <= 0:
        return ""
    units = (ctypes.c_ushort * (count + 1))()
    if pdfium.FPDFText_GetText(text_page.raw, 0, count, units) == count + 1:
        return "".join(map(chr, units[:count]))
    # It leaves out characters that nobody knows, and the others have other places then.
    return "".join(chr(pdfium.FPDFText_GetUnicode(text_page.raw, at)) for at in range(count))


def _spans(text_page: pypdfium2.PdfTextPage, text: str) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of the characters of each line.

    pdfium ends most lines itself, and takes what is written by itself below a word for the word's
    end: a table's "7" below "42" for "427". What is one object is never on two lines.
    """
    begin, last, origin = 0, None, cache(partial(_origin, text_page))
    for part in _PART.finditer(text):
        first = part.start()
        if part[0] == "\n":
            yield begin, first
            begin, last = part.end(), None
            continue
        pairs = [] if last is None else [(last, first)]
        last = part.end() - 1
        if _is_apart(text_page, text, origin, first, last):
            pairs += itertools.pairwise(range(first, last + 1))
        for one, other in pairs:
            if _is_apart(text_page, text, origin, one, other) and (
                _object(text_page, one) != _object(text_page, other)
            ):
                yield begin, other
                begin = other
    yield begin, len(text)


def _object(text_page: pypdfium2.PdfTextPage, at: int) -> int | None:
    written = pdfium.FPDFText_GetTextObject(text_page.raw, at)
    return ctypes.cast(written, ctypes.c_void_p).value


def _is_apart(
    text_page: pypdfium2.PdfTextPage,
    text: str,
    origin: Callable[[int], tuple[float, float]],
    one: int,
    other: int,
) -> bool:
    """Whether a character is on another line than the one before it, seen as they are turned.
    Ideographs may be written downwards.
    """
    if min(text[one], text[other]) >= _IDEOGRAPHS:
        return False
    (x, y), (to_x, to_y) = origin(one), origin(other)
    if y == to_y:  # as nearly everywhere
        return False
    clockwise = pdfium.FPDFText_GetCharAngle(text_page.raw, other)
    step = math.cos(clockwise) * (to_y - y) + math.sin(clockwise) * (to_x - x)
    return abs(step) > _LINE_STEP * max(_size(text_page, one), _size(text_page, other))


def _origin(text_page: pypdfium2.PdfTextPage, index: int) -> tuple[float, float]:
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text_page.raw, index, x, y)
    return x.value, y.value


def _size(text_page: pypdfium2.PdfTextPage, index: int) -> float:
    """Of a letter as it is shown: some programs write everything at size 1, and stretch it."""
    size = pdfium.FPDFText_GetFontSize(text_page.raw, index)
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFText_GetMatrix(text_page.raw, index, matrix):
        return size
    return size * ((matrix.c**2 + matrix.d**2) ** 0.5 or 1.0)


def _levels(sizes: Counter[float]) -> dict[float, int]:
    """Size -> level of heading, for the sizes that are headings'."""
    sizes.pop(0.0, None)
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    larger = sorted((size for size in sizes if size >= body * _LARGER), reverse=True)
    return {size: min(level, _HEADING_LEVELS) for level, size in enumerate(larger, 1)}


def _paragraphs(lines: list[_Line], levels: dict[float, int]) -> list[tuple[str, int]]:
    """(text, level of heading or 0). Lines of one size follow each other in a paragraph; headings
    of one size join.
    """
    found: list[tuple[str, int]] = []
    ends = True
    for line in lines:
        if not line.text.strip():
            ends = True
            continue
        level = levels.get(line.size, 0)
        if level and (
            len(line.text) > HEADING_CHARS_MAX or line.text.rstrip().endswith((".", ",", ";"))
        ):
            level = 0
        if found and not ends and found[-1][1] == level:
            found[-1] = (_joined(found[-1][0], line.text), level)
        else:
            found.append((line.text, level))
        ends = False
    return [(text.rstrip("".join(_HYPHENS)), level) for text, level in found]


def _joined(text: str, following: str) -> str:
    if text.endswith(_HYPHENS):
        return text[:-1] + following.lstrip()
    return f"{text}\n{following}"
