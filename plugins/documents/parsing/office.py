"""Office files: what the archive holds decides which reader takes it, not what its name says.

The archive is looked through before any library unpacks it (archives.py). All three readers are
imported with this module, because a file may turn out to be another kind than its name says, and
nothing can be imported any more once the process is confined.
"""

from __future__ import annotations

from typing import BinaryIO

from . import sheets, slides, word
from .archives import check_archive
from .extraction import Extraction
from .formats import DOCX, PPTX, XLSX

_READERS = {DOCX: word.read, PPTX: slides.read, XLSX: sheets.read}


def read(file: BinaryIO, filename: str) -> Extraction:
    """Read a DOCX, PPTX or XLSX. Raises ParseFailed."""
    return _READERS[check_archive(file)](file, filename)
