"""What a file is, by its first bytes; the extension only decides between texts, and between
archives of the same kind.

A few kilobytes cannot tell everything: a ZIP archive that calls itself .docx is taken for one, and
the parser finds out. What is recognised as something else, or as no text at all, is refused before
it is whole.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TXT, MARKDOWN, HTML, CSV, JSON, EML = (
    "text/plain",
    "text/markdown",
    "text/html",
    "text/csv",
    "application/json",
    "message/rfc822",
)
SRT, VTT = "application/x-subrip", "text/vtt"
MP3, WAV, M4A, FLAC, OGG = "audio/mpeg", "audio/wav", "audio/mp4", "audio/flac", "audio/ogg"
MP4, WEBM, MOV = "video/mp4", "video/webm", "video/quicktime"
PNG, JPEG, WEBP = "image/png", "image/jpeg", "image/webp"

SOUND = frozenset((MP3, WAV, M4A, FLAC, OGG, MP4, WEBM, MOV))
SUBTITLES = frozenset((SRT, VTT))
PICTURES = frozenset((PNG, JPEG, WEBP))
MEDIA = SOUND | PICTURES
# Of these it may be said what they are in; of the others some say it themselves, and the rest are
# no texts.
DECLARABLE = frozenset((TXT, MARKDOWN, CSV, JSON)) | SUBTITLES
ARCHIVES = {".docx": DOCX, ".pptx": PPTX, ".xlsx": XLSX}
TEXTS = {
    ".txt": TXT, ".text": TXT, ".log": TXT, ".md": MARKDOWN, ".markdown": MARKDOWN, ".html": HTML,
    ".htm": HTML, ".xhtml": HTML, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".eml": EML, ".srt": SRT,
    ".vtt": VTT,
}  # fmt: skip
_PARTS = {b"word/": DOCX, b"ppt/": PPTX, b"xl/": XLSX}
_MARKS_OF_ORDER = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROLS_SHARE_MAX = 0.02
_PDF_HEADER, _PDF_HEADER_WITHIN = b"%PDF-", 1024
_PDF = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,1019}%PDF-\d")
_JSON = re.compile(rb"(?:\[\s*+)*+(?:\{\s*+[\"}]|[\"\]\d-]|true|false|null)")
_SPACE = re.compile(rb"\s*+")
_HTML_TAG = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_MAIL = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]*+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+){2,}+")
_MAIL_FIELD = re.compile(
    rb"^(?:From|Received|Return-Path|Message-ID|MIME-Version):", re.IGNORECASE | re.MULTILINE
)
_SRT = re.compile(rb"\s*+\d++\s*\r?\n\d+:\d\d:\d\d[,.]\d+ --> ")
_VTT = re.compile(rb"WEBVTT[ \t\r\n]")
_VTT_TIME = re.compile(rb"\d\d:\d\d[.,]\d{1,3}[ \t]++-->")
_ID3 = re.compile(rb"ID3[\x02-\x04][^\xff].[\x00-\x7f]{4}", re.DOTALL)  # version, flags, size
_MPEG_LAYER_3 = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")
_MP4_BOXES = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")


def media_type_of(head: bytes, filename: str) -> str | None:
    """The first bytes (64 KiB, or all there are) and the name -> one of the media types above, or
    None.
    """
    extension = PurePosixPath(filename.lower()).suffix
    binary = _binary_type(head, extension)
    if binary is not None:
        return binary or None
    return _text_type(head, extension) if _is_text(head) else None


def _binary_type(head: bytes, extension: str) -> str | None:
    """A media type, "" for something that is not supported, None where the bytes are of no binary
    format known here.
    """
    if _is_pdf(head, extension):
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return next((kind for part, kind in _PARTS.items() if part in head), None) or ARCHIVES.get(
            extension, ""
        )
    if head.startswith(b"{\\rtf"):
        return ""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head[:4] == b"RIFF":
        return {b"WAVE": WAV, b"WEBP": WEBP}.get(head[8:12], "")
    if head.startswith(b"fLaC"):
        return FLAC
    if head.startswith(b"OggS"):
        return OGG
    if head.startswith(b"\x1aE\xdf\xa3"):
        return WEBM if b"webm" in head[:64] else ""
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        return (
            MOV
            if brand == b"qt  "
            else M4A
            if brand in (b"M4A ", b"M4B ")
            else ""
            if brand in (b"heic", b"avif", b"mif1")
            else MP4
        )
    if head[4:8] in _MP4_BOXES:
        return MOV
    if _ID3.match(head) or _MPEG_LAYER_3.match(head):
        return MP3
    return None


def _is_pdf(head: bytes, extension: str) -> bool:
    """Readers take a file whose header comes somewhat later, too; so does an article that is about
    the header have it.
    """
    if _PDF.match(head):
        return True
    return _PDF_HEADER in head[:_PDF_HEADER_WITHIN] and (extension == ".pdf" or not _is_text(head))


def _is_text(head: bytes) -> bool:
    if head.startswith(_MARKS_OF_ORDER[1:]):
        return True  # UTF-16 is full of what would be control characters
    return len(_CONTROLS.findall(head)) <= _CONTROLS_SHARE_MAX * len(head) and b"\x00" not in head


def _text_type(head: bytes, extension: str) -> str:
    text = head.removeprefix(_MARKS_OF_ORDER[0])
    if _VTT.match(text) and _VTT_TIME.search(text):
        return VTT
    if _SRT.match(text):
        return SRT
    if _HTML_TAG.match(text, _after_comments(text)):
        return HTML
    if extension in TEXTS:
        return TEXTS[extension]
    begun = _space_end(text, 0)
    if text[begun : begun + 1] in (b"{", b"[") and _JSON.match(text, begun):
        return JSON
    mail = _MAIL.match(text)
    return EML if mail and _MAIL_FIELD.search(mail[0]) else TXT


def _after_comments(text: bytes) -> int:
    """Where the white space and the comments at the beginning end; each comment ends at its first
    -->.
    """
    place = _space_end(text, 0)
    while text.startswith(b"<!--", place):
        end = text.find(b"-->", place + len(b"<!--"))
        if end == -1:
            return place
        place = _space_end(text, end + len(b"-->"))
    return place


def _space_end(text: bytes, begin: int) -> int:
    found = _SPACE.match(text, begin)
    return begin if found is None else found.end()
