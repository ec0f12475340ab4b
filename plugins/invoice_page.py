"""An invoice as a page to print: one HTML document without scripts, links or anything fetched from elsewhere.

Whatever a person wrote (names, reasons) is escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 46rem; margin: 3rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0; } .muted { color: #666; } .status { text-transform: uppercase; letter-spacing: .08em; }
header { display: flex; justify-content: space-between; align-items: baseline; border-bottom: 2px solid #1a1a1a; padding-bottom: .75rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 1.5rem 0; } dt { color: #666; } dd { margin: 0; }
table { width: 100%; border-collapse: collapse; } th { text-align: left; font-weight: 600; border-bottom: 1px solid #999; }
th, td { padding: .5rem .25rem; vertical-align: top; } td { border-bottom: 1px solid #e5e5e5; }
.number { text-align: right; white-space: nowrap; }
tfoot td { border: 0; font-weight: 600; } @page { margin: 2cm; } @media print { body { margin: 0; max-width: none; } }
"""


def page(invoice: dict[str, Any], issuer: str) -> bytes:
    """The document as the API shows it, and who issues it -> HTML, UTF-8."""
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
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    lines = "".join(_line(line, currency) for line in invoice["lines"])
    sums = [("Total", invoice["total_cents"])]
    if invoice["credited_cents"]:
        sums += [("Credited", -invoice["credited_cents"]), ("Due", invoice["total_cents"] - invoice["credited_cents"])]
    totals = "".join(
        f'<tr><td colspan="3" class="number">{name}</td><td class="number">{money(cents, currency)}</td></tr>' for name, cents in sums
    )
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} {escape(invoice["number"])}</title><style>{_STYLE}</style></head>
<body><header><h1>{title} {escape(invoice["number"])}</h1><span class="status">{escape(invoice["status"])}</span></header>
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
        f'<tr><td>{escape(line["description"])}<br><span class="muted">{_days(line)}</span></td><td class="number">{quantity}</td>'
        f'<td class="number">{money(line["unit_cents"], currency)}</td><td class="number">{money(line["amount_cents"], currency)}</td></tr>'
    )


def _days(part: dict[str, Any]) -> str:
    return f"{part['period_start'][:10]} to {part['period_end'][:10]} (exclusive)"
