"""Dictionary forms: a word's ending taken off and another put on, or a list of words that go their
own way.
"""

from __future__ import annotations


def edit_of(word: str, lemma: str) -> str:
    """The edit that makes the word the lemma: "<letters taken off>+<letters put on>", such as
    "3+y" for "cities" and "city".
    """
    common = 0
    while common < min(len(word), len(lemma)) and word[common] == lemma[common]:
        common += 1
    return f"{len(word) - common}+{lemma[common:]}"


def edited(word: str, edit: str) -> str:
    """The word after an edit; as it is where it is too short for it."""
    taken, _, put = edit.partition("+")
    left = len(word) - int(taken)
    return word[:left] + put if left > 0 or (left == 0 and put) else word
