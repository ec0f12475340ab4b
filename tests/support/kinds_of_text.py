"""Texts of many kinds, each of one thing over and over: what patterns, tokenisers, counters of
graphemes and normalisers may be slow at.
"""

from __future__ import annotations

UNITS: dict[str, str] = {
    "exclamation marks": "!", "wide exclamation marks": "！", "question marks": "?",
    "ellipses": "…", "full stops": ".", "full stops of CJK": "。", "commas": ",",
    "hyphens": "-", "underscores": "_", "slashes": "/", "backslashes": "\\", "quotes": '"',
    "apostrophes": "'", "opening quotes": "“(", "parentheses": "(", "brackets": "[",
    "braces": "{", "angles": "<", "comments": "<!---->", "open comments": "<!--", "tags": "<a ",
    "entities": "&amp;", "ampersands": "&", "percents": "%", "ats": "@", "addresses": "a@a.",
    "colons": ":", "equals": "=", "hashes": "#", "stars": "*", "backticks": "`", "pipes": "|",
    "spaces": " ", "lines": "\n", "tabs": "\t", "carriage returns": "\r\n", "blank lines": " \n",
    "no-break spaces": "\u00a0", "zero-width spaces": "\u200b", "letters": "a", "capitals": "A",
    "words of a letter": "a ", "initials": "A. ", "initials without spaces": "a.",
    "digits": "7", "numbers": "7 ", "decimals": "7.", "times": "12:30 ", "dates": "2024-01-02 ",
    "negations": "not ", "conjunctions": "and ", "names": "Ada Lovelace ", "lists": "Ada, ",
    "claims": "I live in Oslo. ", "possessives": "Ada's sister's ", "links": "http://a.b/",
    "combining marks": "e\u0301", "marks alone": "\u0301", "ideographs": "中", "syllables": "한",
    "right to left": "شكرا ", "emoji": "🙂", "joined emoji": "👩‍👩‍👧", "capital I with a dot": "İ",
    "sharp s": "ß",
}  # fmt: skip


def text_of(kind: str, chars: int) -> str:
    """So many characters of a kind."""
    unit = UNITS[kind]
    return (unit * (chars // len(unit) + 1))[:chars]
