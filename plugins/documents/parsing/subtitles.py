"""SRT and WebVTT: cues with their times. Tags are dropped; of a WebVTT voice the name stays, `Ada:
…`.
"""

from __future__ import annotations

import html
import re
from typing import BinaryIO

from .extraction import Extraction, ParseFailed, TextBuilder, cleaned
from .limits import CUES_MAX
from .plain import decoded

_TIMES = re.compile(
    r"\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})\s+-->\s+((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})(?:\s.*)?"
)
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?\s++([^<>]++)>")
_TAG = re.compile(r"</?[a-zA-Z0-9.:#=\"' -]*>|\{\\[^{}]*+\}")


def read_srt(file: BinaryIO, filename: str) -> Extraction:
    return _read(cleaned(decoded(file.read())))


def read_vtt(file: BinaryIO, filename: str) -> Extraction:
    return _read(cleaned(decoded(file.read())))


def _read(text: str) -> Extraction:
    """A cue is a line of times and the lines up to the next empty one; what stands outside of cues
    (notes, styles) is no text.
    """
    builder = TextBuilder()
    last, cues = 0.0, 0
    for part in re.split(r"\n[ \t]*\n", text):
        lines = part.strip("\n").split("\n")
        matches = ((place, _TIMES.fullmatch(line)) for place, line in enumerate(lines[:2]))
        found = next(((place, times) for place, times in matches if times is not None), None)
        if found is None:
            continue
        place, times = found
        cues += 1
        if cues > CUES_MAX:
            raise ParseFailed("too_much_text", f"The file has more than {CUES_MAX} cues.")
        begins, ends = (_seconds(time) for time in times.groups())
        builder.add(spoken("\n".join(lines[place + 1 :])), gap="\n", begins=begins, ends=ends)
        last = max(last, ends)
    if not cues:
        raise ParseFailed("damaged", "The file has no cues with times.")
    return builder.done(transcript=True, duration_seconds=last)


def spoken(text: str) -> str:
    """A cue's text without its markup."""
    return html.unescape(_TAG.sub("", _VOICE.sub(r"\1: ", text)))


def _seconds(time: str) -> float:
    *minutes, seconds = time.replace(",", ".").split(":")
    total = 0.0
    for part in minutes:
        total = total * 60 + int(part)
    return round(total * 60 + float(seconds), 3)
