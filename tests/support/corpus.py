"""Files that tests make themselves, one of each format, with what is to be read in them.

What writes a format is loaded when it is needed: every worker lists all tests, and few write files.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from email.message import EmailMessage
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import sounds

# --- PDF ------------------------------------------------------------------------------------------


def pdf(pages: list[list[tuple[int, str]]], *, title: str = "") -> bytes:
    """Pages of (size in points, line) from top to bottom, in any script.

    Written by hand: its font maps every code to the character of the same number, so that no font
    file is needed.
    """

    def hexadecimal(text: str) -> str:
        return text.encode("utf-16-be").hex()

    objects: list[bytes] = []

    def add(content: str | bytes) -> int:
        objects.append(content.encode() if isinstance(content, str) else content)
        return len(objects)

    mapping = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 "
        "def\n"
    )
    mapping += "1 begincodespacerange <0000> <FFFF> endcodespacerange\n100 beginbfrange\n"
    mapping += "".join(f"<{high:02x}00> <{high:02x}FF> <{high:02x}00>\n" for high in range(100))
    mapping += "endbfrange\n100 beginbfrange\n" + "".join(
        f"<{high:02x}00> <{high:02x}FF> <{high:02x}00>\n" for high in range(100, 200)
    )
    mapping += "endbfrange endcmap end end"
    catalogue = add("")
    tree = add("")
    unicode = add(f"<< /Length {len(mapping)} >>\nstream\n{mapping}\nendstream")
    bounds = (
        "/FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV "
        "80"
    )
    descriptor = add(f"<< /Type /FontDescriptor /FontName /Any /Flags 4 {bounds} >>")
    inner = add(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) "
        "/Ordering (Identity) /Supplement 0 >> "
        f"/DW 500 /FontDescriptor {descriptor} 0 R >>"
    )
    encoded = f"/Encoding /Identity-H /DescendantFonts [{inner} 0 R] /ToUnicode {unicode} 0 R"
    font = add(f"<< /Type /Font /Subtype /Type0 /BaseFont /Any {encoded} >>")
    page = (
        f"/Type /Page /Parent {tree} 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 {font} "
        "0 R >> >>"
    )
    kids = []
    for lines in pages:
        drawn, height = "BT\n", 780
        for size, line in lines:
            height -= size + 6
            drawn += f"/F1 {size} Tf 1 0 0 1 50 {height} Tm <{hexadecimal(line)}> Tj\n"
        drawn += "ET"
        content = add(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
        kids.append(add(f"<< {page} /Contents {content} 0 R >>"))
    about = add(f"<< /Title <feff{hexadecimal(title)}> >>")
    objects[catalogue - 1] = f"<< /Type /Catalog /Pages {tree} 0 R >>".encode()
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects[tree - 1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{listed}] >>".encode()
    out, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = (
        f"trailer << /Size {len(objects) + 1} /Root {catalogue} 0 R /Info {about} 0 R "
        f">>\nstartxref\n{len(out)}\n%%EOF"
    )
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def long_pdf(pages: int, sentences: int = 30) -> bytes:
    """Pages of about `sentences` sentences, each with a number in it that no other has."""
    made = []
    for page in range(1, pages + 1):
        lines = [(18, f"Chapter {page}")]
        lines += [
            (
                10,
                f"Remark {page * 1000 + n} of the report says that station {n} was visited in good "
                "time.",
            )
            for n in range(sentences)
        ]
        made.append(lines)
    return pdf(made)


def encrypted_pdf() -> bytes:
    from fpdf import FPDF

    made = FPDF()
    made.set_encryption(owner_password="owner", user_password="user")
    made.add_page()
    made.set_font("Helvetica", size=12)
    made.cell(text="Nobody may read this.")
    return bytes(made.output())


def picture(text: str = "INVOICE 4711", kind: str = "PNG") -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (640, 200), "white")
    ImageDraw.Draw(image).text((40, 80), text, fill="black")
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def scanned_pdf(pages: int = 2) -> bytes:
    from fpdf import FPDF

    made = FPDF()
    for number in range(1, pages + 1):
        made.add_page()
        made.image(io.BytesIO(picture(f"PAGE {number}")), w=150)
    return bytes(made.output())


def claiming_pdf(pages: int) -> bytes:
    """A PDF of one page whose page tree says it has many more."""
    return pdf([[(12, "One.")]]).replace(b"/Count 1 ", f"/Count {pages} ".encode())


# --- Office ---------------------------------------------------------------------------------------


def docx() -> bytes:
    from docx import Document
    from docx.enum.text import WD_BREAK

    made = Document()
    made.core_properties.title = "Harbour handbook"
    made.add_heading("Opening hours", 1)
    made.add_paragraph("The harbour office opens at seven.")
    table = made.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, (("Berth", "Fee"), ("North", "12 €")), strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    made.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
    made.add_heading("Правила", 2)
    made.add_paragraph("Якорь бросают только у южного мола.")
    return _saved(made)


def pptx() -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    made = Presentation()
    first = made.slides.add_slide(made.slide_layouts[1])
    first.shapes.title.text = "Quarterly review"
    first.placeholders[1].text = "Sales rose in Lisbon."
    second = made.slides.add_slide(made.slide_layouts[5])
    second.shapes.title.text = "数字"
    table = second.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for row, cells in enumerate((("City", "Sales"), ("大阪", "42"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    second.notes_slide.notes_text_frame.text = "Mention the warehouse fire."
    return _saved(made)


def xlsx() -> bytes:
    from openpyxl import Workbook

    made = Workbook()
    made.active.title = "People"
    for row in (
        ["Name", "Born", "City"],
        ["Ada Lovelace", 1815, "London"],
        ["اليزابيث", 1990.5, None],
    ):
        made.active.append(row)
    second = made.create_sheet("Totals")
    second.append([1, 2, 3])
    return _saved(made)


def _saved(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def zip_of(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def bomb() -> bytes:
    """A small DOCX of which one part unpacks to 20 MB, a thousand times its size."""
    return zip_of(
        {
            "[Content_Types].xml": b"<Types/>",
            "word/document.xml": b"<w:document>" + b" " * 20_000_000,
        }
    )


def billion_laughs() -> bytes:
    entities = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
    text = (
        b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY l0 "lol">'
        + entities
        + b"]><w:document>&l9;</w:document>"
    )
    return zip_of({"[Content_Types].xml": b"<Types/>", "word/document.xml": text})


# --- text -----------------------------------------------------------------------------------------

MARKDOWN = """# Garden

Beans are sown in *April*.

## Tools

```
# not a heading
```

Shears
======

They hang in the shed.
"""
HTML = """<!doctype html><html><head><title>Tide table</title><style>p { color: red }</style></head>
<body><h1>High water</h1><p>At <b>Dover</b> it is high at&nbsp;six.<br>Ebb follows.</p>\
<script>alert("no")</script>
<ul><li>Spring tide</li><li>Neap tide</li></ul>
<table><tr><th>Port</th><th>Time</th></tr><tr><td>Πειραιάς</td><td>06:10</td></tr></table></body></html>"""
CSV = "Name;City;Visits\nGrace;New York;3\nJürgen;Köln;12\n"
JSON = (
    '{"owner": "Ada", "boats": [{"name": "Sparrow", "length": 9.5}, {"name": "雀", "sold": true}]}'
)
SRT = (
    "1\n00:00:01,500 --> 00:00:03,000\nGood <i>morning</i>.\n\n2\n01:02:03,250 --> "
    "01:02:05,000\nThe ferry\nleaves at ten.\n"
)
VTT = (
    "WEBVTT\n\nNOTE nothing to be read\n\n00:01.500 --> 00:03.000 align:start\n<v Ada>Good "
    "morning.\n\nlast\n01:02:03.250 --> 01:02:05.000\nTen &amp; no later.\n"
)


def eml() -> bytes:
    message = EmailMessage()
    message["Subject"] = "Änderung der Lieferung"
    message["From"] = "Ada <ada@example.com>"
    message["To"] = "bob@example.com"
    message["Date"] = "Thu, 07 May 2026 10:00:00 +0000"
    message.set_content("Hello Bob,\n\nthe pump arrives on Friday.\n")
    message.add_alternative("<p>the pump arrives on <b>Friday</b></p>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="note.pdf")
    return message.as_bytes()


# --- recordings -----------------------------------------------------------------------------------

CODECS = {
    "mp3": "libmp3lame",
    "flac": "flac",
    "ogg": "libopus",
    "m4a": "aac",
    "mp4": "aac",
    "mov": "aac",
    "webm": "libopus",
}
_CONTAINERS = {"m4a": "ipod"}


def recording(samples: np.ndarray, extension: str) -> bytes:
    """Sound in one of the formats; those of films have a picture as well."""
    if extension == "wav":
        return sounds.wav(samples)
    import av

    out = io.BytesIO()
    rate = 48_000
    samples = np.repeat(samples, rate // sounds.RATE)
    with av.open(out, "w", format=_CONTAINERS.get(extension, extension)) as container:
        film = (
            container.add_stream("libvpx" if extension == "webm" else "mpeg4", rate=5)
            if extension in ("mp4", "mov", "webm")
            else None
        )
        stream = container.add_stream(CODECS[extension], rate=rate)
        stream.layout = "mono"
        if film is not None:
            film.width, film.height, film.pix_fmt = 64, 48, "yuv420p"
            container.mux(
                film.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), "rgb24"))
            )
            container.mux(film.encode())
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts = rate, 0
        fifo = av.AudioFifo()
        fifo.write(frame)
        resampler = av.AudioResampler(
            format=stream.format, layout="mono", rate=rate, frame_size=stream.frame_size or 4_096
        )
        for made in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(made))
        container.mux(stream.encode(None))
    return out.getvalue()


def subtitled(cues: list[tuple[float, float, str]]) -> bytes:
    """A WebM file whose only track is subtitles."""

    def element(number: str, content: bytes) -> bytes:
        return bytes.fromhex(number) + (0x01 << 56 | len(content)).to_bytes(8, "big") + content

    def whole(number: str, value: int) -> bytes:
        return element(number, value.to_bytes(4, "big"))

    head = element(
        "1A45DFA3",
        whole("4286", 1) + element("4282", b"webm") + whole("4287", 2) + whole("4285", 2),
    )
    track = (
        whole("D7", 1)
        + whole("73C5", 1)
        + whole("83", 17)
        + element("86", b"S_TEXT/UTF8")
        + element("22B59C", b"eng")
    )
    blocks = b""
    for begins, ends, text in cues:
        block = b"\x81" + struct.pack(">h", int(begins * 1000)) + b"\x00" + text.encode()
        blocks += element("A0", element("A1", block) + whole("9B", int((ends - begins) * 1000)))
    info = element(
        "1549A966",
        whole("2AD7B1", 1_000_000) + element("4489", struct.pack(">d", cues[-1][1] * 1000)),
    )
    return head + element(
        "18538067",
        info
        + element("1654AE6B", element("AE", track))
        + element("1F43B675", whole("E7", 0) + blocks),
    )


ASS_HEADER = b"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,16

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


def film(extension: str, cues: list[tuple[float, float, str]]) -> bytes:
    """An MP4 or MOV with a picture and a track of timed text."""
    import av

    out = io.BytesIO()
    with av.open(out, "w", format=extension) as container:
        picture, text = container.add_stream("mpeg4", rate=5), container.add_stream("mov_text")
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        text.time_base = Fraction(1, 1_000)
        text.codec_context.subtitle_header = ASS_HEADER
        container.mux(
            picture.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), "rgb24"))
        )
        container.mux(picture.encode())
        for begins, ends, words in cues:
            packet = av.Packet(len(words.encode()).to_bytes(2, "big") + words.encode())
            packet.stream, packet.time_base = text, text.time_base
            packet.pts = packet.dts = int(begins * 1000)
            packet.duration = int((ends - begins) * 1000)
            container.mux(packet)
    return out.getvalue()


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size and has hardly any content."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            len(content).to_bytes(4, "big")
            + kind
            + content
            + zlib.crc32(kind + content).to_bytes(4, "big")
        )

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def write_all(directory: Path) -> list[Path]:
    """A folder with one file of each format of text."""
    contents = {
        "handbook.docx": docx(), "review.pptx": pptx(), "people.xlsx": xlsx(),
        "garden.md": MARKDOWN.encode(), "tides.html": HTML.encode(), "visits.csv": CSV.encode(),
        "boats.json": JSON.encode(), "mail.eml": eml(), "ferry.srt": SRT.encode(),
        "ferry.vtt": VTT.encode(), "report.pdf": pdf([[(12, "The pump is green.")]]),
        "note.txt": b"A plain note.",
    }  # fmt: skip
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return [directory / name for name in contents]
