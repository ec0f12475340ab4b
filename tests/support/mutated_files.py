"""Damaged files, made of sound ones by seed: bytes and numbers changed, pieces cut, doubled and
moved, tokens of the format strewn in; archives and pictures with their checksums put right again,
so that the damage is seen by whoever reads what is inside.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from plugins.documents.parsing import formats as f
from tests.support import corpus, sounds

FILE_BYTES_MAX = 1024 * 1024
_EDITS_MAX = 6
_REPEATS_MAX = 20_000
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_DECIMAL = re.compile(rb"\d+")
_PNG_MARK = b"\x89PNG\r\n\x1a\n"

# What the readers of a format look for, and what nests.
_XML = (b"<", b">", b"</w:p>", b"<w:p>", b"<w:t>", b"&amp;", b"&#x10FFFF;", b"<![CDATA[", b"<!--",
        b' xml:space="preserve"', b"<row>", b'<c t="s"><v>1</v></c>', b'r="XFD1048576"',
        b"<a:t>x</a:t>", b'<!DOCTYPE x [<!ENTITY a "b">]>')  # fmt: skip
_PDF = (b"obj", b"endobj", b"<<", b">>", b"[", b"(", b" 0 R", b"/Kids [2 0 R]", b"/Parent 2 0 R",
        b"/Filter [/FlateDecode /FlateDecode]", b"BT ", b" Tj", b"q ", b"/Count 99999999",
        b"/Length -1", b"stream\n", b"/MediaBox [0 0 1e9 1e9]", b"/F1 1e9 Tf")  # fmt: skip
_TEXT = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\x85", b"\xed\xa0\x80", b"#", b"=", b"-",
         b"`", b">", b"\t", b"|", b",", b";", b'"', b"!", b"\xc2\xa0", b"\xe3\x80\x82")  # fmt: skip
_JSON = (b"{", b"[", b'"', b'{"a":', b"[[[[", b"1e999", b"\\ud800", b"-", b"null,", b"NaN")
_HTML = (b"<div>", b"<table><tr><td>", b"<!--", b"-->", b"<script>", b"<p", b"&nbsp", b"&#0;",
         b"<a href='", b"<select><option>", b"<svg><math>", b"</", b"<br>", b"<li>")  # fmt: skip
_MAIL = (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n", b"--x--\n", b"=?utf-8?B?", b"?=",
         b"Content-Transfer-Encoding: base64\n", b"charset=utf-7", b"boundary=", b"\n\n", b";",
         b"filename*0*=")  # fmt: skip
_CUES = (b"-->", b"00:00:01,000", b"99:99:99.999", b"\n\n", b"WEBVTT", b"<v ", b"<i>", b"&", b"1\n")


class Sample(NamedTuple):
    """order: the task of the parser, without its bounds; tokens: what is strewn into the file."""

    name: str
    order: dict[str, object]
    content: bytes
    tokens: tuple[bytes, ...]


def samples() -> list[Sample]:
    """One sound file or more for every parser, and every task that the parser has for it."""

    def read(name: str, kind: str, content: bytes, tokens: tuple[bytes, ...]) -> Sample:
        order = {"task": "read", "media_type": kind, "filename": name}
        return Sample(name, order, content, tokens)

    report = corpus.pdf([[(20, "Grüße"), (11, "Die Pumpe ist grün.")], [(11, "Ende.")]])
    made = [
        read("report.pdf", f.PDF, report, _PDF),
        read("scan.pdf", f.PDF, corpus.scanned_pdf(1), _PDF),
        read("secret.pdf", f.PDF, corpus.encrypted_pdf(), _PDF),
        read("handbook.docx", f.DOCX, corpus.docx(), _XML),
        read("review.pptx", f.PPTX, corpus.pptx(), _XML),
        read("people.xlsx", f.XLSX, corpus.xlsx(), _XML),
        read("note.txt", f.TXT, "Grüße, 世界. A plain note.\n".encode() * 4, _TEXT),
        read("wide.txt", f.TXT, "Grüße, 世界".encode("utf-16"), _TEXT),
        read("garden.md", f.MARKDOWN, corpus.MARKDOWN.encode(), _TEXT),
        read("visits.csv", f.CSV, corpus.CSV.encode(), _TEXT),
        read("boats.json", f.JSON, corpus.JSON.encode(), _JSON),
        read("tides.html", f.HTML, corpus.HTML.encode(), _HTML),
        read("mail.eml", f.EML, corpus.eml(), _MAIL),
        read("ferry.srt", f.SRT, corpus.SRT.encode(), _CUES),
        read("ferry.vtt", f.VTT, corpus.VTT.encode(), _CUES),
    ]
    pages = {"task": "show", "media_type": f.PDF, "filename": "report.pdf", "pages": [1, 2]}
    made.append(Sample("pages of report.pdf", pages, report, _PDF))
    for kind, extension in ((f.PNG, "PNG"), (f.JPEG, "JPEG"), (f.WEBP, "WEBP")):
        order = {"task": "show", "media_type": kind, "filename": "a", "pages": [1]}
        content = corpus.picture("INVOICE", extension)
        made.append(Sample(f"picture.{extension.lower()}", order, content, ()))
    return made + _recordings()


def _recordings() -> list[Sample]:
    made = []
    sound = np.r_[sounds.silence(0.3), sounds.tone(0.7, 220, 440)]
    kinds = {"wav": f.WAV, "mp3": f.MP3, "flac": f.FLAC, "ogg": f.OGG, "m4a": f.M4A, "mp4": f.MP4,
             "mov": f.MOV, "webm": f.WEBM}  # fmt: skip
    files = {name: corpus.recording(sound, name) for name in kinds}
    cues = [(0.5, 1.5, "Good morning."), (2.0, 3.0, "The ferry leaves.")]
    kinds |= {"timed.webm": f.WEBM, "timed.mp4": f.MP4}
    files |= {"timed.webm": corpus.subtitled(cues), "timed.mp4": corpus.film("mp4", cues)}
    for name, content in files.items():
        order = {"media_type": kinds[name], "filename": f"a.{name}"}
        hear = {"task": "hear", **order}
        made.append(Sample(f"sound.{name}", hear, content, ()))
    cut = {"task": "cut", "media_type": f.MP3, "filename": "a.mp3", "begins": 0.1, "ends": 0.6}
    made.append(Sample("piece of sound.mp3", cut, files["mp3"], ()))
    return made


def mutated(sample: Sample, donor: bytes, chance: random.Random) -> bytes:
    """The sample's file, damaged; pieces of the donor may come into it. FILE_BYTES_MAX at most."""
    content = sample.content
    if content.startswith(b"PK\x03\x04") and chance.random() < 0.8:
        return _in_archive(sample, donor, chance)
    if content.startswith(_PNG_MARK) and chance.random() < 0.8:
        return _with_checksums(_edited(content, donor, (), chance))[:FILE_BYTES_MAX]
    return _edited(content, donor, sample.tokens, chance)


def _in_archive(sample: Sample, donor: bytes, chance: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(sample.content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(chance.randint(1, 3)):
        name = chance.choice(sorted(parts))
        what = chance.random()
        if what < 0.1:
            del parts[name]
        elif what < 0.2:
            parts[name] = parts[chance.choice(sorted(parts))]
        else:
            parts[name] = _edited(parts[name], donor, sample.tokens, chance)
        if not parts:
            break
    return corpus.zip_of(parts)[:FILE_BYTES_MAX]


def _with_checksums(content: bytes) -> bytes:
    """A PNG as it is, each chunk with the checksum of what is in it."""
    out, place = bytearray(content), len(_PNG_MARK)
    while place + 12 <= len(out):
        end = place + 8 + int.from_bytes(out[place : place + 4], "big")
        if end + 4 > len(out):
            break
        out[end : end + 4] = zlib.crc32(out[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(out)


def _edited(
    content: bytes, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random
) -> bytes:
    made = bytearray(content)
    for _ in range(chance.randint(1, _EDITS_MAX)):
        _EDITS[chance.randrange(len(_EDITS))](made, donor, tokens, chance)
        del made[FILE_BYTES_MAX:]
    return bytes(made)


_Edit = Callable[[bytearray, bytes, tuple[bytes, ...], random.Random], None]


def _piece(made: bytes | bytearray, chance: random.Random) -> slice:
    begin = chance.randrange(len(made) + 1)
    return slice(begin, begin + int(2 ** (chance.random() * 12)))


def _flip(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        if made:
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)


def _number(
    made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random
) -> None:
    width = chance.choice((1, 2, 4, 8))
    value = chance.choice((*_NUMBERS, chance.getrandbits(32))) % (1 << 8 * width)
    at = chance.randrange(len(made) + 1)
    made[at : at + width] = value.to_bytes(width, chance.choice(("big", "little")))


def _decimal(
    made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random
) -> None:
    found = list(_DECIMAL.finditer(made))
    if found:
        one = chance.choice(found)
        made[one.start() : one.end()] = str(
            chance.choice((*_NUMBERS, -1, 10**18, chance.getrandbits(16)))
        ).encode()


def _cut(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    del made[_piece(made, chance)]


def _end(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    if chance.random() < 0.3:
        del made[chance.randrange(len(made) + 1) :]


def _move(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    at, piece = chance.randrange(len(made) + 1), bytes(made[_piece(made, chance)])
    made[at:at] = piece * (chance.randint(2, 50) if chance.random() < 0.3 else 1)


def _splice(
    made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random
) -> None:
    made[_piece(made, chance)] = donor[_piece(donor, chance)]


def _strew(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    if tokens:
        at, token = chance.randrange(len(made) + 1), chance.choice(tokens)
        many = int(_REPEATS_MAX ** chance.random()) if chance.random() < 0.3 else 1
        made[at:at] = token * many


def _nest(made: bytearray, donor: bytes, tokens: tuple[bytes, ...], chance: random.Random) -> None:
    """Two tokens by turns, many times over."""
    if tokens and chance.random() < 0.3:
        at = chance.randrange(len(made) + 1)
        pair = chance.choice(tokens) + chance.choice(tokens)
        made[at:at] = pair * int(_REPEATS_MAX ** chance.random())


_EDITS: tuple[_Edit, ...] = (
    _flip, _number, _decimal, _cut, _end, _move, _splice, _strew, _nest,
)  # fmt: skip
