"""Words one slip of the fingers away: what a word that nobody knows may have been meant to be."""

from __future__ import annotations

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_CHARS_MAX = 32
# How likely a slip makes just this word of the one that was meant: two letters swapped, one left
# out, one too many, a wrong one. The last two may be any letter, mostly one beside on the keys.
SWAPPED, LEFT_OUT, TOO_MANY, WRONG = 1.0, 1.0, 0.2, 0.1


def spellings(word: str) -> dict[str, float]:
    """Every word that one slip may have made this one of, in small letters, and how likely.

    The first letter stays, which people rarely get wrong. Empty for what is no word of the Latin
    letters a to z, or longer than WORD_CHARS_MAX.
    """
    word = word.lower()
    if not (word.isascii() and word.isalpha()) or len(word) > WORD_CHARS_MAX:
        return {}
    cuts = range(1, len(word))
    wrong = [word[:i] + letter + word[i + 1 :] for i in cuts for letter in LETTERS]
    too_many = [word[:i] + word[i + 1 :] for i in cuts]
    left_out = [word[:i] + letter + word[i:] for i in (*cuts, len(word)) for letter in LETTERS]
    swapped = [word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :] for i in cuts[1:]]
    made = {
        **dict.fromkeys(wrong, WRONG),
        **dict.fromkeys(too_many, TOO_MANY),
        **dict.fromkeys(left_out, LEFT_OUT),
        **dict.fromkeys(swapped, SWAPPED),
    }
    made.pop(word, None)
    return made
