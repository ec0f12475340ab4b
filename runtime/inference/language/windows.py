"""Texts as the model reads them: windows of whole sentences, none longer than it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runtime.inference.language.parse import ToRead
from runtime.inference.language.segmentation import Segment


def windows(
    text: str, segments: Sequence[Segment], pieces: Callable[[str], int], pieces_max: int
) -> list[list[Segment]]:
    """The sentences in order, together at most `pieces_max` of the model's tokens to a window. A
    sentence that is longer by itself becomes several.

    pieces  how many tokens a text is, from pieces_max on not exactly
    """
    if segments and len(text) < pieces_max and text.isascii():
        return [list(segments)]  # a token has a character at least
    found: list[list[Segment]] = []
    room = 0
    for segment in segments:
        for part, count in _fitting(text, segment, pieces, pieces_max):
            if not found or count > room:
                found.append([])
                room = pieces_max
            found[-1].append(part)
            room -= count
    return found


def _fitting(
    text: str, segment: Segment, pieces: Callable[[str], int], pieces_max: int
) -> Iterator[tuple[Segment, int]]:
    count = pieces(text[segment.start : segment.end])
    words = segment.words
    if count < pieces_max or len(words) == 1:
        yield segment, min(count, pieces_max)
        return
    for half in (words[: len(words) // 2], words[len(words) // 2 :]):
        yield from _fitting(text, Segment(half[0][0], half[-1][1], half), pieces, pieces_max)


def to_read(text: str, window: Sequence[Segment]) -> tuple[str, ToRead]:
    """The window's text, and its words in it."""
    first = window[0].start
    return text[first : window[-1].end], ToRead(
        tuple(tuple(text[start:end] for start, end in each.words) for each in window),
        tuple((start - first, end - first) for each in window for start, end in each.words),
    )
