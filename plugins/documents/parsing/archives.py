"""Looks at a ZIP archive before any library unpacks it: how many entries it has, how large they
grow, and that its XML has no entities.

Office formats need no document type declaration, so one is refused: it is where entities that
expand without end are declared.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from typing import BinaryIO

from .extraction import ParseFailed
from .formats import DOCX, PPTX, XLSX
from .limits import ARCHIVE_BYTES_MAX, ARCHIVE_ENTRIES_MAX, ARCHIVE_RATIO_MAX, XML_BYTES_MAX

_SMALL_BYTES = 1024 * 1024  # up to here an archive may pack as tightly as it likes
_PIECE_BYTES = 1024 * 1024
_DECLARATION = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_MAIN_PART = {DOCX: "word/document.xml", PPTX: "ppt/presentation.xml", XLSX: "xl/workbook.xml"}


def check_archive(file: BinaryIO) -> str:
    """-> what the archive is. Raises ParseFailed. The sizes that it claims are not believed:
    entries are unpacked and counted.
    """
    size = file.seek(0, 2)
    file.seek(0)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError):
        raise ParseFailed(
            "damaged", "The file is not a readable Office file; it is cut short or damaged."
        ) from None
    entries = archive.infolist()
    if len(entries) > ARCHIVE_ENTRIES_MAX:
        raise ParseFailed(
            "archive_too_large", f"The file unpacks to more than {ARCHIVE_ENTRIES_MAX} parts."
        )
    budget = min(ARCHIVE_BYTES_MAX, max(_SMALL_BYTES, size * ARCHIVE_RATIO_MAX))
    unpacked = 0
    for entry in entries:
        if entry.flag_bits & 1:
            raise ParseFailed("encrypted", "The file is protected with a password.")
        unpacked += _check_entry(archive, entry, budget - unpacked)
    names = {entry.filename for entry in entries}
    kind = next((kind for kind, part in _MAIN_PART.items() if part in names), None)
    if kind is None:
        raise ParseFailed("unsupported", "The archive is no Office file.")
    file.seek(0)
    return kind


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> int:
    """-> its real size."""
    is_xml = entry.filename.lower().endswith((".xml", ".rels"))
    size, tail = 0, b""
    try:
        with archive.open(entry) as part:
            while piece := part.read(_PIECE_BYTES):
                size += len(piece)
                if size > left or (is_xml and size > XML_BYTES_MAX):
                    raise ParseFailed(
                        "archive_too_large",
                        "The file unpacks to far more than it may; it looks like a bomb.",
                    )
                if is_xml and _DECLARATION.search(tail + piece.replace(b"\0", b"")):
                    raise ParseFailed(
                        "forbidden_xml",
                        "The file declares XML entities, which Office files have no use for.",
                    )
                tail = piece[-16:]
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as broken:
        raise ParseFailed(
            "damaged", f"A part of the file cannot be unpacked ({type(broken).__name__})."
        ) from None
    return size
