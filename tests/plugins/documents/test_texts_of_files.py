"""What readers make of files: no text of a file is lost, and none runs into the next."""

from __future__ import annotations

import io
from typing import Any

from plugins.documents.parsing import markup, pdf, slides, word


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
