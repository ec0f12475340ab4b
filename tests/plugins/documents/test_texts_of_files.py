"""What readers make of files: no text of a file is lost, and none runs into the next."""

from __future__ import annotations

import datetime
import io
import zipfile
from typing import Any

import pytest

from plugins.documents.parsing import formats, markup, pdf, plain, sheets, slides, tables, word
from plugins.documents.parsing.extraction import ParseFailed
from tests.support.document_harness import DocumentHarness


def saved(made: Any) -> io.BytesIO:
    """An Office file, as its library writes it."""
    out = io.BytesIO()
    made.save(out)
    return out


def pdf_of_table(rows: list[list[str]]) -> bytes:
    from fpdf import FPDF

    made = FPDF()
    made.add_page()
    made.set_font("Helvetica", size=12)
    with made.table() as table:
        for row in rows:
            line = table.row()
            for cell in row:
                line.cell(cell)
    return bytes(made.output())


def test_numbers_below_each_other_in_a_pdf_stay_apart() -> None:
    def text(rows: list[list[str]]) -> str:
        return pdf.read(io.BytesIO(pdf_of_table(rows)), "a.pdf").text

    stock = [["Item", "Qty"], ["Bolts", "42"], ["", "7"], ["Nuts", "100"]]
    assert text(stock) == "Item Qty\nBolts 42\n7\nNuts 100"
    column = [["Day", "Visits"], *(["", number] for number in ("4", "7", "100", "5"))]
    assert text(column) == "Day Visits\n4\n7\n100\n5"


def test_exponents_and_turned_letters_of_a_pdf_stay_on_their_line() -> None:
    from fpdf import FPDF

    made = FPDF()
    made.add_page()
    made.set_font("Helvetica", size=12)
    made.write(text="10")
    made.char_vpos = "SUP"
    made.write(text="6")
    made.char_vpos = "LINE"
    with made.rotation(45, x=60, y=150):
        for place, letter in enumerate("WWMM"):
            made.text(60 + made.get_string_width("WWMM"[:place]), 150, letter)
    assert pdf.read(io.BytesIO(bytes(made.output())), "a.pdf").text == "106\nWWMM"


def test_an_empty_cell_keeps_its_column() -> None:
    from docx import Document
    from pptx import Presentation
    from pptx.util import Inches

    rows = [["Item", "Qty", "Note"], ["", "7", ""], ["", "", "late"], ["", "", ""]]
    document, deck = Document(), Presentation()
    table = document.add_table(len(rows), 3)
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    drawn = shapes.add_table(len(rows), 3, *[Inches(1)] * 4).table
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(number, column).text = drawn.cell(number, column).text = text
    written = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    html = io.BytesIO(f"<table>{written}</table>".encode())
    shown = "Item | Qty | Note\n| 7\n|  | late"
    assert word.read(saved(document), "a.docx").text == shown
    assert slides.read(saved(deck), "a.pptx").text == shown
    assert markup.read_html(html, "a.html").text == shown


def control(inside: str) -> Any:
    """A content control of Word in another one, around paragraphs, rows or cells."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    held = f"<w:sdt><w:sdtContent>{inside}</w:sdtContent></w:sdt>"
    return parse_xml(f"<w:sdt {nsdecls('w')}><w:sdtContent>{held}</w:sdtContent></w:sdt>")


def test_all_of_a_word_file_is_read() -> None:
    from docx import Document
    from docx.oxml.ns import qn

    made = Document()
    first, second = made.sections[0], made.add_section()
    second.header.is_linked_to_previous = False
    for header in (first.header, second.header):
        header.paragraphs[0].text = "Acme Ltd"
    first.footer.paragraphs[0].text = "Confidential"
    text = "<w:r><w:t>{}</w:t></w:r>"
    heading = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    made.element.body.insert(0, control(f"<w:p>{heading}{text.format('Order')}</w:p>"))
    signs = "<w:t>E</w:t><w:noBreakHyphen/><w:t>mail</w:t><w:cr/><w:t>or letter</w:t>"
    made.element.body.insert(1, control(f"<w:p><w:r>{signs}</w:r></w:p>"))
    table = made.add_table(2, 2)
    for place in range(4):
        table.cell(place // 2, place % 2).text = f"cell {place}"
    nested = table.cell(0, 0).add_table(1, 2)
    nested.cell(0, 0).text, nested.cell(0, 1).text = "inner", "7"
    rows = made.element.body.find(qn("w:tbl"))
    rows.xpath("w:tr[2]/w:tc[2]")[0].append(control(f"<w:p>{text.format('held')}</w:p>"))
    rows.append(control(f"<w:tr><w:tc><w:p>{text.format('repeated')}</w:p></w:tc></w:tr>"))
    read = word.read(saved(made), "a.docx")
    assert read.text.split("\n") == [
        *("Acme Ltd", "", "Order", "", "E-mail", "or letter"),
        *("cell 0 | cell 1", "inner | 7", "cell 2 | cell 3 held", "repeated", "", "Confidential"),
    ]
    assert [read.text[block.start : block.end] for block in read.blocks if block.heading] == [
        "Order"
    ]


def test_all_of_a_slide_is_read() -> None:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    deck = Presentation()
    shapes: Any = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    box = shapes.add_textbox(0, 0, 1, 1)
    paragraph = box.text_frame.paragraphs[0]
    paragraph.add_run().text = "Hello"
    paragraph.add_line_break()
    paragraph.add_run().text = "World"
    numbers = CategoryChartData()
    numbers.categories = ["Lisbon", "Porto"]
    numbers.add_series("Visits", (3, 5))
    numbers.add_series("Sales", (1, 2))
    chart = shapes.add_chart(XL_CHART_TYPE.LINE, 0, Inches(3), 1, 1, numbers).chart
    chart.has_title = chart.value_axis.has_title = True
    chart.chart_title.text_frame.text = "Our year"
    chart.value_axis.axis_title.text_frame.text = "Thousands"
    assert slides.read(saved(deck), "a.pptx").text == (
        "Hello\nWorld\nOur year\nVisits\nLisbon: 3; Porto: 5\nSales\nLisbon: 1; Porto: 2\nThousands"
    )


def test_a_chart_is_read_as_it_shows_its_numbers() -> None:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData, XyChartData
    from pptx.enum.chart import XL_CHART_TYPE

    days, years, points = CategoryChartData(), CategoryChartData(), XyChartData()
    days.categories = [datetime.date(2026, 3, day) for day in (1, 2)]
    days.add_series("Rain", (0.1 + 0.2, None))
    years.categories = ["007", "1e5"]
    years.add_series("Agents", (2, 2))
    years.add_series("Doubles", (2, 2))
    points.add_series("Pairs").add_data_point(1.5, 7)
    deck = Presentation()
    shapes: Any = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    for top, (kind, numbers) in enumerate(
        (("LINE", days), ("COLUMN_CLUSTERED", years), ("XY_SCATTER", points))
    ):
        shapes.add_chart(XL_CHART_TYPE[kind], 0, top, 1, 1, numbers)
    assert slides.read(saved(deck), "a.pptx").text.split("\n") == [
        *("Rain", "2026-03-01: 0.3", "Agents", "007: 2; 1e5: 2", "Doubles", "007: 2; 1e5: 2"),
        *("Pairs", "1.5: 7"),
    ]


def test_points_of_charts_count_as_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    numbers = CategoryChartData()
    numbers.categories = ["a", "b"]
    numbers.add_series("Visits", (3, 5))
    deck = Presentation()
    shapes: Any = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 1, 1, numbers)
    monkeypatch.setattr(tables, "TABLE_CELLS_MAX", 3)
    with pytest.raises(ParseFailed) as failed:
        slides.read(saved(deck), "a.pptx")
    assert failed.value.reason == "too_many_cells"


def with_parts(file: io.BytesIO, parts: dict[str, str], edited: dict[str, tuple[str, str]]) -> Any:
    """An Office file with parts more, and with others in which one text takes another's place."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode("latin-1")
            before, after = edited.get(name, ("", ""))
            assert before in content, name
            new.writestr(name, content.replace(before, after, 1).encode("latin-1"))
        for name, content in parts.items():
            new.writestr(name, content)
    return out


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"


def relationships(**targets: str) -> str:
    """Their end, to be put in the place of it: one to a part of each kind."""
    return (
        "".join(
            f'<Relationship Id="x{kind}" Type="{OFFICE}/{kind}" Target="{target}"/>'
            for kind, target in targets.items()
        )
        + "</Relationships>"
    )


def test_notes_and_comments_of_a_word_file_follow_what_they_are_for() -> None:
    from docx import Document
    from docx.oxml.ns import nsdecls

    made = Document()
    made.add_paragraph("Terms apply.")
    commented = made.add_paragraph("Draft.")
    made.add_comment(commented.runs, "Who signs it?", author="Ada")
    made.add_table(1, 1).cell(0, 0).text = "Price"
    made.add_paragraph("The end.")
    note = "<w:{0} w:id='{1}'><w:p><w:r><w:t>{2}</w:t></w:r></w:p></w:{0}>"
    parts = {
        f"word/{kind}s.xml": f"<w:{kind}s {nsdecls('w')}>"
        + "".join(note.format(kind, number, text) for number, text in texts.items())
        + f"</w:{kind}s>"
        for kind, texts in {
            "footnote": {0: "", 1: "Within the EU.", 2: "Never referred to."},
            "endnote": {1: "Without VAT."},
        }.items()
    }
    text = saved(made)
    for place, kind in (("apply.", "footnote"), ("Price", "endnote"), ("end.", "footnote")):
        reference = f"</w:t><w:{kind}Reference w:id='1'/>"
        text = with_parts(text, {}, {"word/document.xml": (f"{place}</w:t>", place + reference)})
    text = with_parts(
        text,
        parts,
        {
            "word/_rels/document.xml.rels": (
                "</Relationships>",
                relationships(footnotes="footnotes.xml", endnotes="endnotes.xml"),
            )
        },
    )
    assert word.read(text, "a.docx").text.replace("\n\n", "\n").split("\n") == [
        *("Terms apply.", "Within the EU.", "Draft.", "Who signs it?"),
        *("Price", "Without VAT.", "The end."),
    ]


DIAGRAM = f'xmlns:dgm="{DRAWING}/diagram"'


def frame(number: int = 9) -> Any:
    """A shape that shows the diagram of its slide."""
    from pptx.oxml import parse_xml
    from pptx.oxml.ns import nsdecls

    return parse_xml(
        f"<p:graphicFrame {nsdecls('p', 'a', 'r')}><p:nvGraphicFramePr>"
        f'<p:cNvPr id="{number}" name="d"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>'
        '<p:xfrm><a:off x="0" y="0"/><a:ext cx="1" cy="1"/></p:xfrm>'
        f'<a:graphic><a:graphicData uri="{DRAWING}/diagram">'
        f'<dgm:relIds {DIAGRAM} r:dm="xdiagramData"/></a:graphicData></a:graphic>'
        "</p:graphicFrame>"
    )


def diagram(*points: str) -> str:
    from pptx.oxml.ns import nsdecls

    point = "<dgm:pt><dgm:t><a:p><a:r><a:t>{}</a:t></a:r></a:p></dgm:t></dgm:pt>"
    said = "".join(point.format(text) if text else "<dgm:pt/>" for text in points)
    return f"<dgm:dataModel {DIAGRAM} {nsdecls('a')}><dgm:ptLst>{said}</dgm:ptLst></dgm:dataModel>"


def test_diagrams_notes_and_comments_of_a_slide_are_read() -> None:
    from pptx import Presentation
    from pptx.oxml.ns import nsdecls

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.element.append(frame())
    notes = slide.notes_slide.notes_text_frame
    assert notes is not None
    notes.text = "Say hello."
    said = f"<p:cmLst {nsdecls('p')}><p:cm><p:text>Too long.</p:text></p:cm></p:cmLst>"
    file = with_parts(
        saved(deck),
        {
            "ppt/diagrams/data1.xml": diagram("Plan", "Build"),
            "ppt/comments/comment1.xml": said,
        },
        {
            "ppt/slides/_rels/slide1.xml.rels": (
                "</Relationships>",
                relationships(
                    diagramData="../diagrams/data1.xml", comments="../comments/comment1.xml"
                ),
            )
        },
    )
    assert slides.read(file, "a.pptx").text == "Plan\nBuild\n\nSay hello.\n\nToo long."


def test_a_diagram_that_is_shown_very_often_is_read_in_time(alone: DocumentHarness) -> None:
    from pptx import Presentation

    deck, often = Presentation(), 3_000
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for number in range(often):
        slide.shapes.element.append(frame(9 + number))
    file = with_parts(
        saved(deck),
        {"ppt/diagrams/data1.xml": diagram("Plan", *[""] * 600_000)},
        {
            "ppt/slides/_rels/slide1.xml.rels": (
                "</Relationships>", relationships(diagramData="../diagrams/data1.xml"),
            )
        },
    )  # fmt: skip
    document = alone.processed("often.pptx", file.getvalue())
    assert (document["status"], document["error"]) == ("completed", None)
    text = alone.service.request("GET", f"/v1/documents/{document['id']}/text", who=alone.token)
    assert text.text.split("\n") == ["Plan"] * often


def test_comments_on_the_cells_of_a_sheet_are_read() -> None:
    from openpyxl import Workbook
    from openpyxl.comments import Comment

    book = Workbook()
    first, second = book.active, book.create_sheet("Costs")
    assert first is not None
    first["A1"], second["B2"], second["C3"] = "Ada", 7, 8
    second["B2"].comment = Comment("Without VAT.", "Ben")
    second["C3"].comment = Comment("[Threaded comment]\n\nUpdate.\n\nComment:\n    Why?", "tc")
    read = sheets.read(saved(book), "a.xlsx")
    costs = [read.text[block.start : block.end] for block in read.blocks if block.page == 2]
    assert costs == ["Costs", "| 7", "|  | 8", "B2: Without VAT.", "C3: Why?"]


def test_a_cell_of_a_page_is_read_as_it_is_shown() -> None:
    page = (
        "<table><caption>Our <b>offices</b></caption><thead><tr><th>Name<th>Address</tr></thead>"
        "<tr><td>Ada</td><td>Street<br>City</td></tr>"
        "<tr><td><p>p1</p><p>p2</p></td><td><ul><li>one<li>two</ul></td></tr>"
        "<tr><td><script>let hidden = 1</script><style>td { color: red }</style>Bob</td>"
        "<td>in<i>line</i></td></tr></table>"
    )
    assert markup.read_html(io.BytesIO(page.encode()), "a.html").text == (
        "Our offices\nName | Address\nAda | Street City\np1 p2 | one two\nBob | inline"
    )


def test_a_cell_of_data_may_be_long() -> None:
    long = "word " * 40_000 + "end"
    made = io.BytesIO(f'Name,Note\nAda,"{long}"\nBob,short\n'.encode())
    assert plain.read_csv(made, "a.csv").text.split("\n") == [
        *("Name | Note", f"Name: Ada; Note: {long}", "Name: Bob; Note: short"),
    ]


@pytest.mark.parametrize(
    "head",
    [
        '<html><head><meta charset="windows-1250"></head>',
        '<?xml version="1.0" encoding="windows-1250"?>\n<html xmlns="http://www.w3.org/1999/xhtml">',
    ],
)
def test_a_page_is_in_the_encoding_that_it_names(head: str) -> None:
    made = f"{head}<body><p>Řeka</p></body></html>".encode("cp1250")
    assert markup.read_html(io.BytesIO(made), "a.xhtml").text == "Řeka"
    other = f"{head.replace('windows-1250', 'utf-16')}<body><p>Řeka</p></body></html>".encode()
    assert markup.read_html(io.BytesIO(other), "a.xhtml").text == "Řeka"


def test_what_only_begins_like_json_is_text() -> None:
    made = b"[1] A. Lovelace, Notes, 1843.\n\n[2] C. Babbage."
    read = plain.read_json(io.BytesIO(made), "references")
    assert (read.text, read.media_type, len(read.blocks)) == (made.decode(), formats.TXT, 2)
    for name in ("a.json", "a.jsonl"):
        with pytest.raises(ParseFailed):
            plain.read_json(io.BytesIO(made), name)


ENCODED = [
    ("cp1252", "“Smart quotes” — and dashes… price 5€ Müller"),
    ("cp1252", "Café crème brûlée déjà vu…"),
    ("cp1252", "naïve"),
    ("latin-1", "El niño comió mañana en la montaña."),
    ("latin-1", "Ærø ligger syd for Fyn, og på øen bor få."),
    ("cp850", "Größe: 5 m² Übermaß für Flöße"),
    ("iso-8859-2", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    ("cp1250", "Zażółć gęślą jaźń, proszę pana."),
    ("cp1254", "Günaydın dünya, bugün hava çok güzel, değil mi?"),
    ("koi8-r", "Привет, мир. Это русский текст."),
    ("cp1251", "Привет, мир. Это русский текст."),
    ("cp1253", "Καλημέρα κόσμε. Αυτό είναι ελληνικό κείμενο."),
    ("cp1255", "שלום עולם. זה טקסט בעברית."),
    ("cp1256", "مرحبا بالعالم. هذا نص عربي."),
    ("shift_jis", "こんにちは、世界。これは日本語のテキストです。"),
    ("gb18030", "你好，世界。这是一个中文文本。"),
    ("cp949", "안녕하세요, 세계. 이것은 한국어 텍스트입니다."),
    ("utf-16", "Grüße, Привет, 世界"),
    ("utf-8-sig", "Grüße, Привет, 世界"),
]


@pytest.mark.parametrize(("encoding", "text"), ENCODED)
@pytest.mark.parametrize("times", [1, 100])
def test_a_text_is_decoded_by_the_encoding_that_it_is_in(
    encoding: str, text: str, times: int
) -> None:
    written = "\n".join([text] * times)
    assert plain.read_text(io.BytesIO(written.encode(encoding)), "a.txt").text == written


def test_a_few_damaged_bytes_of_utf_8_leave_the_rest_as_it_is() -> None:
    written = "Grüße aus Köln, Привет, 世界\n" * 10
    raw = written.encode() + b"\xff end \xc3"
    assert plain.read_text(io.BytesIO(raw), "a.txt").text == f"{written}\ufffd end \ufffd"


def test_a_text_is_decoded_by_what_comes_late_in_it() -> None:
    written = "plain words\n" * 100_000 + "Grüße"
    assert plain.read_text(io.BytesIO(written.encode("cp1252")), "a.txt").text == written


@pytest.mark.parametrize("raw", ["Да, 7".encode("cp1251"), "東京".encode("shift_jis"), b"\x81\xff"])
def test_what_a_few_bytes_may_be_is_not_guessed(raw: bytes) -> None:
    with pytest.raises(ParseFailed) as failed:
        plain.read_text(io.BytesIO(raw), "a.txt")
    assert failed.value.reason == "unknown_encoding"


def test_a_text_box_of_a_docx_is_read_once() -> None:
    from docx import Document
    from docx.oxml import parse_xml

    word_ns = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    lines = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in ("Boxed.", "Twice?"))
    box = f"<w:pict><w:txbxContent>{lines}</w:txbxContent></w:pict>"
    document = Document()
    document.element.body.insert(
        0,
        parse_xml(
            f'<w:p xmlns:w="{word_ns}" xmlns:mc="{mc}"><w:r><w:t>Beside it.</w:t></w:r><w:r>'
            f'<mc:AlternateContent><mc:Choice Requires="wps">{box}</mc:Choice>'
            f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        ),
    )
    file = io.BytesIO()
    document.save(file)
    assert word.read(file, "a.docx").text == "Beside it.\nBoxed.\nTwice?"
