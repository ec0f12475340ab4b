"""Scripts, and the language whose stemmer serves each."""

from __future__ import annotations

_SCRIPTS = (  # first and last code point of a script's letters after NFKC, and its stemmer
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0530, 0x058F, "armenian"),
    (0x0600, 0x08FF, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x1F00, 0x1FFF, "greek"),
)
_LATIN_END = 0x0250


def script_of(word: str) -> str | None:
    """The language whose stemmer serves the word's script; "" when none does; None for Latin
    script.
    """
    first = ord(word[0])
    if first < _LATIN_END or 0x1E00 <= first <= 0x1EFF:
        return None
    return next((language for low, high, language in _SCRIPTS if low <= first <= high), "")
