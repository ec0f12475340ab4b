"""What readers make of files: no text of a file is lost, and none runs into the next."""

from __future__ import annotations

import io

from plugins.documents.parsing import pdf


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
