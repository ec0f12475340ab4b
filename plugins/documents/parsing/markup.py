"""HTML and mail: what a reader would see, without scripts, styles and tags.

HTML is taken apart by lxml's own HTML parser, which knows no entities but HTML's and fetches
nothing. Of a mail, its subject, people and date come first, then its text, or its HTML where there
is no text, and the names of what is attached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import BinaryIO

import lxml.etree as etree
from lxml import html

from .extraction import Extraction, ParseFailed, TextBuilder
from .limits import MARKUP_DEPTH_MAX
from .plain import decoded
from .tables import row_as_line

_UNSEEN = {
    "script",
    "style",
    "noscript",
    "template",
    "head",
    "svg",
    "iframe",
    "object",
    "select",
    "datalist",
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header",
    "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody",
    "td", "tfoot", "th", "thead", "tr", "ul", *_HEADINGS,
}  # fmt: skip
# What can be read like this has one byte for each of these characters, whatever it says of itself.
_CHARSET = re.compile(
    rb"(?:<meta[^<>]+charset|^\s{0,100}<\?xml\s[^>]+encoding)\s*=\s*"
    rb"[\"']?(?!utf-?(?:16|32))([A-Za-z0-9_.:-]+)",
    re.IGNORECASE,
)
_SPACE, _SPACES, _AROUND_LINE_END = re.compile(r"\s+"), re.compile(r" {2,}"), re.compile(r" ?\n ?")
_PARTS_MAX = 1_000


def read_html(file: BinaryIO, filename: str) -> Extraction:
    raw = file.read()
    declared = _CHARSET.search(raw[:4096])
    try:
        text = raw.decode(declared[1].decode("ascii")) if declared else decoded(raw)
    except (LookupError, UnicodeDecodeError):
        text = decoded(raw)
    builder = TextBuilder()
    title = add_html(builder, text)
    return builder.done(title=title or builder.title)


def add_html(builder: TextBuilder, text: str) -> str:
    """Append what a page shows; -> its title."""
    parser = html.HTMLParser(
        encoding="utf-8",
        recover=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    try:
        root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return ""
    for kind, content in _blocks(root, 0):
        if kind == "row":
            builder.add(content, gap="\n")
        else:
            content = (
                content if kind == "pre" else _AROUND_LINE_END.sub("\n", _SPACES.sub(" ", content))
            )
            builder.add(
                content, heading=_HEADINGS.get(kind, 0), gap="\n" if kind == "li" else "\n\n"
            )
    found = root.find(".//title")
    return " ".join((found.text or "").split()) if found is not None else ""


def _blocks(element: etree._Element, depth: int) -> Iterator[tuple[str, str]]:
    """(tag of the block, its text), in reading order."""
    if depth > MARKUP_DEPTH_MAX:
        raise ParseFailed("damaged", "The file is nested too deeply.")
    tag = element.tag if isinstance(element.tag, str) else ""
    if tag in _UNSEEN:
        return
    if tag == "table" and not element.xpath(".//table"):
        for part in element.iter("caption", "tr"):
            if part.tag == "caption":
                yield from _blocks(part, depth + 1)
            else:
                yield "row", row_as_line([_cell(cell, depth) for cell in part.xpath("./td|./th")])
        return
    fold = str if tag == "pre" else _folded
    inline = fold(element.text or "")
    for child in element:
        name = child.tag if isinstance(child.tag, str) else ""
        if name in _BLOCKS or _holds_block(child):
            yield tag, inline
            inline = ""
            yield from _blocks(child, depth + 1)
        else:
            inline += _inline(child, fold)
        inline += fold(child.tail or "")
    yield tag, inline


def _cell(element: etree._Element, depth: int) -> str:
    return "\n".join(text for _, text in _blocks(element, depth + 1))


def _holds_block(element: etree._Element) -> bool:
    return any(
        isinstance(inner.tag, str) and inner.tag in _BLOCKS for inner in element.iterdescendants()
    )


def _inline(element: etree._Element, fold: Callable[[str], str]) -> str:
    """The text of an element that is no block, with a line end for each <br>."""
    pieces = []
    unseen = 0
    for event, inner in etree.iterwalk(element, events=("start", "end")):
        hidden = inner.tag in _UNSEEN
        if event == "start":
            unseen += hidden
            text = "\n" if inner.tag == "br" else fold(inner.text or "")
        else:
            unseen -= hidden
            text = "" if inner is element else fold(inner.tail or "")
        if not unseen:
            pieces.append(text)
    return "".join(pieces)


def _folded(text: str) -> str:
    """White space as HTML shows it: one space."""
    return _SPACE.sub(" ", text)


def read_mail(file: BinaryIO, filename: str) -> Extraction:
    message = BytesParser(policy=policy.default).parse(file)
    builder = TextBuilder()
    subject = " ".join(str(message.get("Subject", "")).split())
    builder.add(subject, heading=1)
    head = [
        f"{name}: {' '.join(str(message[name]).split())}"
        for name in ("From", "To", "Cc", "Date")
        if message[name]
    ]
    builder.add("\n".join(head))
    _add_body(builder, message)
    attached = (
        [part.get_filename() or "unnamed" for part in message.iter_attachments()][:_PARTS_MAX]
        if message.is_multipart()
        else []
    )
    if attached:
        builder.add("Attachments: " + ", ".join(attached))
    return builder.done(title=subject or None)


def _add_body(builder: TextBuilder, message: EmailMessage) -> None:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return
    try:
        text = body.get_content()
    except (LookupError, KeyError):  # an encoding nobody knows
        raw = body.get_payload(decode=True)
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""
    if body.get_content_subtype() == "html":
        add_html(builder, text)
        return
    for paragraph in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.replace("\r\n", "\n")):
        builder.add(paragraph)
