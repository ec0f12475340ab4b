"""What encoding a text is in that is neither sound UTF-8 nor bears a mark of order.

UTF-8 with a few bytes that are damaged is UTF-8 still: no other encoding looks like it for long.
Encodings of one byte a character give a text to almost any bytes. Which of them a text in Latin
letters is in, its letters beyond ASCII tell: those of the right encoding are all of one language's.
Where several encodings would do, cp1252 is the one. Anything else charset-normalizer is asked, for
the encodings that there are many files in; where all that it has to go by is a few letters, or the
text looks odd, nobody knows.

What whoever sends it says that it is in goes before all that, but not before what it shows itself.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import string
from itertools import islice
from typing import BinaryIO

from .extraction import ParseFailed

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE_BYTES_MAX = 1024 * 1024
_RUNS_MAX = 10_000  # of characters beyond ASCII, that are looked at
_RUN_LETTERS_MAX = 4  # beyond ASCII in a row, in Latin writing
_SOUND_PER_DAMAGED_MIN = 8  # characters beyond ASCII
_LATIN_SHARE_MIN = 0.9
_CHARACTERS_MIN = 12  # beyond ASCII, to go by where no language is recognised
_ODDITY_MAX = 0.1
# Each in order of preference.
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "iso8859_15", "cp850", "mac_roman")
_OTHERS = (
    "gb18030", "big5", "euc_jp", "cp1255", "cp1256", "cp1251", "koi8_u", "koi8_r", "cp866",
    "cp1253", "iso8859_7", "iso8859_5", "cp932", "cp949", "cp874", "mac_cyrillic",
)  # fmt: skip
_ALPHABETS = (
    "àâæçéèêëîïôœùûüÿ", "äöüßé", "áéíóúüñ", "àèéìíîòóù", "áâãàçéêíóôõúü", "åäöéšž", "æøåé",
    "ëïéèöüáóê", "áðéíóúýþæö", "àçéèíïóòúü", "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž",
    "áéíóöőúüű", "čćđšž", "ăâîșțşţ", "çğıi\u0307öşüâîû", "ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž", "ëç",
)  # fmt: skip
# By the names that Python gives them; those of its own, such as unicode_escape, are none of texts.
_OF_TEXTS = re.compile(
    r"ascii|utf-(?:8|16|32)(?:-\w+)?|(?:cp|ptcp|kz)\d+|iso(?:8859-\d+|2022_\w+)|koi8-\w|mac-\w+|"
    r"big5\w*|euc_\w+|gb\w+|hz|hp-roman8|johab|shift_jis\w*|tis-620"
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_LAST_CONTROL = "\x9f"
_ASCII_LETTERS = string.ascii_letters.encode()
_IN_WORDS = "’‘–—·…\xad"
_BESIDE_WORDS = _IN_WORDS + "“”„‚«»‹›•€£¥§©®™°²³ªº¿¡\xa0"


def declared(charset: str | None) -> str | None:
    """The encoding that a text is said to be in, where it is one that texts are in."""
    if not charset:
        return None
    try:
        found = codecs.lookup(charset)
    except (LookupError, ValueError):  # nobody knows it
        return None
    return found.name if _OF_TEXTS.fullmatch(found.name) else None


def in_utf8(file: BinaryIO, encoding: str) -> BinaryIO:
    """A text in the encoding that is said of it, as UTF-8; as it is where it cannot be in that, or
    says itself what it is in: by a mark of order, or by letters in UTF-8.
    """
    raw = file.read()
    if not raw.startswith(_MARKS):
        # Encodings such as ISO-2022-JP have bytes of ASCII alone, which say nothing.
        for likely in (encoding,) if raw.isascii() else ("utf-8", encoding):
            with contextlib.suppress(UnicodeError):
                return io.BytesIO(raw.decode(likely).encode())
    return io.BytesIO(raw)


def guessed(raw: bytes) -> str:
    """The name of the encoding. Raises ParseFailed where none is likely."""
    sample = raw[:_SAMPLE_BYTES_MAX]
    if _is_damaged_utf_8(sample):
        return "utf-8"
    shares = {name: _latin_share(sample, name) for name in _LATIN}
    likely = max(shares, key=lambda name: shares[name])
    if shares[likely] >= _LATIN_SHARE_MIN:
        return likely
    from charset_normalizer import from_bytes  # takes a while, and hardly any file needs it

    order = [*_OTHERS, *_LATIN]
    found = min(
        from_bytes(sample, cp_isolation=order),
        key=lambda one: (round(one.chaos, 2), -round(one.coherence, 2), order.index(one.encoding)),
        default=None,
    )
    if found is None or (not found.coherence and _is_weak(str(found), found.chaos)):
        raise ParseFailed(
            "unknown_encoding",
            "The text is in no encoding that could be recognised; send it as UTF-8.",
        )
    return found.encoding


def _is_damaged_utf_8(sample: bytes) -> bool:
    text = sample.decode(errors="replace")
    damaged = text.count("\ufffd")
    return _beyond_ascii(text) - damaged >= _SOUND_PER_DAMAGED_MIN * max(1, damaged)


def _is_weak(text: str, oddity: float) -> bool:
    return _beyond_ascii(text) < _CHARACTERS_MIN or oddity > _ODDITY_MAX


def _beyond_ascii(text: str) -> int:
    return sum(len(run[0]) for run in _BEYOND_ASCII.finditer(text))


def _latin_share(sample: bytes, encoding: str) -> float:
    """The largest share that the letters of one language have in what is beyond ASCII, signs left
    out that may stand where they do.
    """
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return 0.0
    letters: dict[str, int] = {}
    others = 0
    for run in islice(_BEYOND_ASCII.finditer(text), _RUNS_MAX):
        if len(run[0]) > _RUN_LETTERS_MAX and run[0].isalpha():
            others += len(run[0])
            continue
        for at in range(*run.span()):
            if _is_letter(text, at):
                letters[text[at].lower()] = letters.get(text[at].lower(), 0) + 1
            else:
                others += not _may_stand(text, at)
    total = sum(letters.values()) + others
    if not total:
        return 1.0
    if total > len(sample) - len(sample.translate(None, _ASCII_LETTERS)):
        return 0.0  # no language in Latin letters has so few that are ASCII's
    return (
        max(
            sum(count for letter, count in letters.items() if letter in alphabet)
            for alphabet in _ALPHABETS
        )
        / total
    )


def _is_letter(text: str, at: int) -> bool:
    """A capital inside a word counts for none."""
    letter = text[at]
    return letter.isalpha() and not (letter.isupper() and text[max(at - 1, 0) : at].islower())


def _may_stand(text: str, at: int) -> bool:
    if text[at] <= _LAST_CONTROL:
        return False
    before, after = text[max(at - 1, 0) : at].isalpha(), text[at + 1 : at + 2].isalpha()
    if before and after:
        return text[at] in _IN_WORDS
    return text[at] in _BESIDE_WORDS or not (before or after or text[at].isalpha())
