"""Cuts a text into the pieces that are searched: each as large as the embedding model reads well,
none across a page.

A chunk ends where something ends, by preference a section, then a block, then a sentence, then a
word. Its size is counted in estimated tokens: words of the model are about four letters long,
characters of Chinese, Japanese and Korean one each. The next chunk of the same section begins a few
sentences before the last one ended, so that what is said across a border is found.

Invariants
- chunk.text == text[start:end]; the union of all chunks is the whole text, white space included;
- no chunk spans pages, starts before the one before it, or is empty of anything but white space;
- the same extraction gives the same chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from plugins.documents.limits import CHUNK_OVERLAP_TOKENS, CHUNK_TOKENS_MAX
from plugins.documents.parsing.extraction import Block, Extraction

# A run of marks is tried once, from its beginning: where that is no end, no later mark of the run
# is one.
SENTENCE_END = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s+|[。！？]+[」』”’)]*\s*|\n+)")
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class TextChunk:
    """text[start:end], the page it is on, the heading above its beginning, and from when to when it
    was said (seconds).
    """

    start: int
    end: int
    page: int | None = None
    heading: str | None = None
    begins: float | None = None
    ends: float | None = None


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence or less: never divided any further."""

    start: int
    end: int
    tokens: int
    block: Block


def chunked(extraction: Extraction) -> list[TextChunk]:
    """The chunks of a text, in order."""
    text, blocks = extraction.text, extraction.blocks
    if not text.strip():
        return []
    found: list[TextChunk] = []
    heading: str | None = None
    for section in _sections(blocks):
        for block in takewhile(lambda block: block.heading, section):
            heading = " ".join(text[block.start : block.end].split())
        for first, last in _packed([unit for block in section for unit in _units(text, block)]):
            found.append(_chunk(first, last, heading))
    return _covering(found, len(text))


def tokens_of(text: str) -> int:
    """Roughly how many tokens the embedding model makes of a text, rather too many than too few."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // _CHARS_PER_TOKEN)


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Runs of blocks on one page under one heading. Headings that follow each other open one
    section together.
    """
    section: list[Block] = []
    for block in blocks:
        opens = block.heading and not (section and all(before.heading for before in section))
        if section and (opens or block.page != section[0].page):
            yield section
            section = []
        section.append(block)
    if section:
        yield section


def _units(text: str, block: Block) -> Iterator[_Unit]:
    """The block's sentences; a longer one in pieces at white space, or anywhere where there is
    none.
    """
    start = block.start
    ends = [start + match.end() for match in SENTENCE_END.finditer(text[start : block.end])]
    for end in (*ends, block.end):
        while start < end:
            stop = _reach(text, start, end)
            yield _Unit(start, stop, tokens_of(text[start:stop]), block)
            start = stop


def _reach(text: str, start: int, end: int) -> int:
    """How far a unit from `start` may go."""
    piece = text[start : min(end, start + CHUNK_TOKENS_MAX * _CHARS_PER_TOKEN)]
    while tokens_of(piece) > CHUNK_TOKENS_MAX:
        piece = piece[: max(1, len(piece) * CHUNK_TOKENS_MAX // tokens_of(piece))]
    stop = start + len(piece)
    if stop == end:
        return end
    space = max(
        text.rfind(" ", start + len(piece) // 2, stop),
        text.rfind("\n", start + len(piece) // 2, stop),
    )
    return space + 1 if space > start else stop


def _packed(units: Sequence[_Unit]) -> Iterator[tuple[_Unit, _Unit]]:
    """(first, last) of each chunk: as many units as fit, the next one starting so many back as the
    overlap allows.
    """
    first = 0
    while first < len(units):
        last, tokens = first, units[first].tokens
        while last + 1 < len(units) and tokens + units[last + 1].tokens <= CHUNK_TOKENS_MAX:
            last += 1
            tokens += units[last].tokens
        yield units[first], units[last]
        if last + 1 == len(units):
            return
        following, overlap = last + 1, 0
        while (
            following - 1 > first and overlap + units[following - 1].tokens <= CHUNK_OVERLAP_TOKENS
        ):
            following -= 1
            overlap += units[following].tokens
        # The overlap must leave room for something new, or the same chunk would come again and
        # again.
        if overlap + units[last + 1].tokens > CHUNK_TOKENS_MAX:
            following = last + 1
        first = following


def _chunk(first: _Unit, last: _Unit, heading: str | None) -> TextChunk:
    return TextChunk(
        first.start, last.end, first.block.page, heading, first.block.begins, last.block.ends
    )


def _covering(chunks: list[TextChunk], length: int) -> list[TextChunk]:
    """The white space between chunks goes to the one before it, and that before the first to the
    first.
    """
    covering = []
    for place, chunk in enumerate(chunks):
        following = chunks[place + 1].start if place + 1 < len(chunks) else length
        start = 0 if place == 0 else chunk.start
        end = max(chunk.end, following)
        covering.append(TextChunk(start, end, chunk.page, chunk.heading, chunk.begins, chunk.ends))
    return covering
