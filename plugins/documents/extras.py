"""What reading files stands on, and which files need it: those of text and subtitles need none."""

from __future__ import annotations

from plugins.documents.parsing import formats as f
from runtime.extras import Extra

DOCUMENTS = Extra(
    "documents",
    ("PIL", "docx", "lxml", "openpyxl", "pptx", "pypdfium2"),
    "reading PDF, Office files, HTML and mail",
)
MEDIA = Extra("media", ("PIL", "av", "webrtcvad"), "reading recordings and pictures")
_OF_DOCUMENTS = frozenset((f.PDF, f.DOCX, f.PPTX, f.XLSX, f.HTML, f.EML))


def extra_of(media_type: str) -> Extra | None:
    """What a file of this type cannot be read without."""
    if media_type in f.MEDIA:
        return MEDIA
    return DOCUMENTS if media_type in _OF_DOCUMENTS else None
