"""Text features: what a memory's text shows at a glance, found once when it is indexed and kept in
56 bytes.

A search ranks some hundred candidates by more than their words: who speaks, in which session, when,
whether the text is a question or holds a number. Reading whole memories for that would decode their
contents too, so each memory has a feature row of fixed layout beside it, and the rows of any set of
candidates become one NumPy array with named columns (`columns`).

    created_at, occurred_at   int64, Unix milliseconds
    session, speaker          uint64 keyed hashes of the session and the speaker, 0 for none; equal
                              hashes mean equal names
    previous, following       uint32 ordinals of the memories before and after it in its session, in
                              order of arrival; NOTHING for none
    collection                uint32 number of its collection
    content_words             uint16, search terms of the text, at most 65,535
    flags                     uint8: QUESTION, NUMBER, TIME, QUOTE, ACKNOWLEDGEMENT
    capitals                  uint8, capitalised words inside sentences, at most 255
    first_person, second_person   uint8, share of such words among all words, times 255

The word lists are English; in other languages most flags stay unset, which ranks a memory neither
up nor down.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from storage.text import DIGIT, may_hold, slip_shape

NOTHING = 0xFFFF_FFFF
HASHES_CACHED_MAX = 8_192
READ_CHARS_MAX = 20_000  # a longer text has shown what it is by then

NAME_WORDS_MAX = 8

COLUMNS = np.dtype(
    [
        ("created_at", "<i8"),
        ("occurred_at", "<i8"),
        ("session", "<u8"),
        ("speaker", "<u8"),
        ("previous", "<u4"),
        ("following", "<u4"),
        ("collection", "<u4"),
        ("content_words", "<u2"),
        ("flags", "u1"),
        ("capitals", "u1"),
        ("first_person", "u1"),
        ("second_person", "u1"),
        ("unused", "V6"),
    ]
)
_LINKS = struct.Struct("<II")
_LINKS_AT = struct.calcsize("<qqQQ")  # the columns before them
_LAYOUT = struct.Struct("<qqQQIIIHBBBB6x")

_MOMENTS = "yesterday|today|tonight|tomorrow|ago|recently|lately|noon|midnight"
_SPANS = (
    "seconds?|minutes?|hours?|days?|nights?|mornings?|afternoons?|evenings?|weeks?|weekends?|"
    "months?|years?|decades?|semesters?"
)
_SEASONS = "spring|summer|fall|autumn|winter|christmas|easter|thanksgiving|halloween|birthday"
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_SHORT_MONTHS = "(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)[. ]+\\d"
_TIMES = re.compile(
    rf"\b(?:{_MOMENTS}|{_MONTHS}|{_SHORT_MONTHS}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|(?:in|on|of|since|until|by|last|next|this) may|may \d|\d(?:st|nd|rd|th)? (?:of )?may"
    rf"|(?:last|next|this|past|previous|coming) (?:few |couple of )?(?:{_SPANS}|{_SEASONS})"
    rf"|(?:\d+|an?|two|three|four|five|six|seven|eight|nine|ten|few|several|couple of) (?:{_SPANS})"
    r"|(?:19|20)\d\d|\d{1,2}:\d\d|\d{1,2} ?[ap]\.?m\b|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})",
    re.IGNORECASE,
)
# One of these, or a digit, is in whatever tells a time ("day" in every day of the week).
_IN_TIMES = "|".join([_MOMENTS, _SPANS.replace("s?", ""), _SEASONS, _MONTHS, "may"]).split("|")
_NUMBER_NAMES = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|dozens|twenty|thirty|forty|"
    "fifty|hundred|hundreds|thousand|thousands|million|millions|twice|both|couple|several|once"
)
_NUMBERS = re.compile(rf"\d|\b(?:{_NUMBER_NAMES})\b", re.IGNORECASE)
_NUMBER_WORDS = frozenset(_NUMBER_NAMES.split("|"))
_QUOTES = re.compile(r"[\"“«„][^\"”»“\n]{2,80}[\"”»“]")
_OPENINGS = re.compile(
    r"\W*(?:thanks|thank "
    r"you|thx|wow|whoa|yeah|yes|yep|yup|ok|okay|sure|great|cool|nice|awesome|amazing|absolutely|"
    r"definitely|exactly"
    r"|totally|congrats|congratulations|haha|lol|no problem|you're welcome|sounds "
    r"good|that's|glad|hey|hi|hello|bye|take care)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W_]+")
_INSIDE = re.compile(r"(?:(?<=[^\W_] )|(?<=[,;:&] ))[^\W\d_]\w+")
_NAME_WORD = re.compile(r"[^\W\d_]+")
_FIRST = frozenset(["i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"])
_SECOND = frozenset(["you", "your", "yours", "yourself", "yourselves"])


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """What the text alone shows: units as in the module docstring."""

    QUESTION: ClassVar[int] = 1
    NUMBER: ClassVar[int] = 2
    TIME: ClassVar[int] = 4
    QUOTE: ClassVar[int] = 8
    ACKNOWLEDGEMENT: ClassVar[int] = 16

    content_words: int = 0
    flags: int = 0
    capitals: int = 0
    first_person: int = 0
    second_person: int = 0

    @classmethod
    def of(cls, text: str, content_words: int) -> Self:
        """Find a text's features. content_words: the number of its search terms, which the caller
        has counted already.
        """
        text = text[:READ_CHARS_MAX]
        words = _WORDS.findall(text.lower())
        flags = cls.QUESTION if text.rstrip(" \t\r\n\"'”’)]*").endswith(("?", "？", "؟")) else 0
        if _has_number(text, words):
            flags |= cls.NUMBER
        if may_hold(text, _IN_TIMES) and _TIMES.search(text):
            flags |= cls.TIME
        if _QUOTES.search(text):
            flags |= cls.QUOTE
        if _OPENINGS.match(text):
            flags |= cls.ACKNOWLEDGEMENT
        scale = 255 / max(1, len(words))
        return cls(
            content_words=min(content_words, 65_535),
            flags=flags,
            capitals=min(255, sum(word[0].isupper() for word in _INSIDE.findall(text))),
            first_person=int(scale * sum(word in _FIRST for word in words)),
            second_person=int(scale * sum(word in _SECOND for word in words)),
        )

    @staticmethod
    def numbers_in(text: str) -> list[str]:
        """The digits and the number words of a text, in order."""
        return [found.casefold() for found in _NUMBERS.findall(text[:READ_CHARS_MAX])]


def _has_number(text: str, words: list[str]) -> bool:
    """Whether a text has a digit or a number word; words: its own, in small letters."""
    if text.isascii() and "_" not in text:  # where the words are what lies between bounds
        return not _NUMBER_WORDS.isdisjoint(words) or DIGIT.search(text) is not None
    return _NUMBERS.search(text) is not None


def pack(
    features: TextFeatures,
    *,
    created_at: int,
    occurred_at: int,
    session: int,
    speaker: int,
    collection: int,
    previous: int = NOTHING,
    following: int = NOTHING,
) -> bytes:
    """A feature record's bytes."""
    text = (
        features.content_words,
        features.flags,
        features.capitals,
        features.first_person,
        features.second_person,
    )
    return _LAYOUT.pack(
        created_at, occurred_at, session, speaker, previous, following, collection, *text
    )


def links(raw: bytes | None) -> tuple[int, int]:
    """(previous, following) of a feature record; NOTHING twice when there is no record."""
    return (NOTHING, NOTHING) if raw is None else _LINKS.unpack_from(raw, _LINKS_AT)


def relinked(raw: bytes, *, previous: int | None = None, following: int | None = None) -> bytes:
    """The record with another neighbour on one or both sides."""
    before, after = links(raw)
    new = _LINKS.pack(
        before if previous is None else previous, after if following is None else following
    )
    return raw[:_LINKS_AT] + new + raw[_LINKS_AT + _LINKS.size :]


def words_of_name(name: str) -> frozenset[str]:
    """The words of a person's name, case-folded, at most NAME_WORDS_MAX; any one of them names the
    speaker.
    """
    return frozenset(word.casefold() for word in _NAME_WORD.findall(name)[:NAME_WORDS_MAX])


def entries_of_name(name: str) -> set[tuple[str, str]]:
    """Every (field, value) of MEMORY_FIELDS by which what this speaker said is found."""
    words = words_of_name(name)
    return {("speaker_word", word) for word in words} | {
        ("speaker_shape", slip_shape(word, len(word))) for word in words
    }


ABSENT = pack(TextFeatures(), created_at=0, occurred_at=0, session=0, speaker=0, collection=0)


@lru_cache(maxsize=HASHES_CACHED_MAX)
def keyed_hash(secret: bytes, kind: str, *parts: object) -> int:
    """Hash a name to a number from 1 to 2⁶³−1; the secret keeps names from being guessed
    out of index keys.
    """
    hashed = "\0".join([kind, *(f"{len(str(part))}:{part}" for part in parts)])
    digest = hashlib.blake2b(hashed.encode(), key=secret[:64], digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1
