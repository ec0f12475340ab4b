"""An invoice as a page to print: one HTML document without scripts, links or anything fetched from
elsewhere.

Whatever a person wrote (names, reasons) is escaped.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_STYLE = (Path(__file__).parent / "invoice.css").read_text(encoding="utf-8")


def page(invoice: dict[str, Any], issuer: str) -> bytes:
    """What `ledger.view` says of a document, and who issues it -> HTML, UTF-8."""
    currency = invoice["currency"]
    title = "Credit note" if invoice["kind"] == "credit_note" else "Invoice"
    facts = {
        "Issued by": issuer,
        "Billed to": f"{invoice['billed_to']['name']}, {invoice['billed_to']['email']}",
        "Issued on": invoice["issued_at"][:10],
        "Period": _days(invoice),
    }
    if invoice["paid_at"]:
        facts["Paid on"] = invoice["paid_at"][:10]
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
    )
    lines = "".join(_line(line, currency) for line in invoice["lines"])
    sums = [("Total", invoice["total_cents"])]
    if invoice["credited_cents"]:
        sums += [
            ("Credited", -invoice["credited_cents"]),
            ("Due", invoice["total_cents"] - invoice["credited_cents"]),
        ]
    totals = "".join(
        f'<tr><td colspan="3" class="number">{name}</td><td '
        f'class="number">{money(cents, currency)}</td></tr>'
        for name, cents in sums
    )
    status = f'<span class="status">{escape(invoice["status"])}</span>'
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} {escape(invoice["number"])}</title><style>
{_STYLE}</style></head>
<body><header><h1>{title} {escape(invoice["number"])}</h1>{status}</header>
<dl>{listed}</dl>
<table><thead><tr><th>Description</th><th class="number">Quantity</th><th class="number">Price</th>
<th class="number">Amount</th></tr></thead><tbody>{lines}</tbody><tfoot>{totals}</tfoot></table>
</body></html>
"""
    return html.encode()


def money(cents: float, currency: str) -> str:
    """1234 -> "12.34 USD"; fractions of a cent keep their digits."""
    whole = f"{cents / 100:,.2f}" if cents == int(cents) else f"{cents / 100:,.7f}".rstrip("0")
    return f"{whole} {currency.upper()}"


def _line(line: dict[str, Any], currency: str) -> str:
    quantity = f"{line['quantity']:,.6f}".rstrip("0").rstrip(".")
    return (
        f"<tr><td>{escape(line['description'])}<br><span "
        f'class="muted">{_days(line)}</span></td><td class="number">{quantity}</td>'
        f'<td class="number">{money(line["unit_cents"], currency)}</td><td '
        f'class="number">{money(line["amount_cents"], currency)}</td></tr>'
    )


def _days(part: dict[str, Any]) -> str:
    return f"{part['period_start'][:10]} to {part['period_end'][:10]} (exclusive)"
