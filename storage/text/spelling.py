"""Words one slip of the fingers away: what a word that nobody knows may have been meant to be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_CHARS_MAX = 32
# How likely a slip makes just this word of the one that was meant: two letters swapped, one left
# out, one too many, a wrong one. The last two may be any letter, mostly one beside on the keys.
SWAPPED, LEFT_OUT, TOO_MANY, WRONG = 1.0, 1.0, 0.2, 0.1


class Speller:
    """Finds the words that a word may be a slip for, among those it knows.

    A slip leaves what is before it and what is after it as they were, so only places are tried
    where some known word begins and some known word ends like this one: mostly a few, or none.
    """

    def __init__(self, known: Collection[str]):
        self._known = known
        self._beginnings = sorted(known)
        self._endings = sorted(word[::-1] for word in known)

    def meant(self, word: str) -> dict[str, float]:
        """The known words that one slip may have made this one of, and how likely.

        The first letter stays, which people rarely get wrong. Empty for what is no word of the
        Latin letters a to z, or longer than WORD_CHARS_MAX.
        """
        word = word.lower()
        if not _is_spelled(word):
            return {}
        size, last = len(word), _shared_chars(self._beginnings, word)
        first = size - _shared_chars(self._endings, word[::-1])  # what is from here on is an ending
        places = range(max(1, first - 1), min(last + 1, size))
        swaps = range(max(2, first - 1), min(last + 2, size))
        gaps = range(max(1, first), min(last, size) + 1)
        found: dict[str, float] = {}
        for made, likely in _undone(word, places, gaps, swaps):
            found |= dict.fromkeys([each for each in made if each in self._known], likely)
        found.pop(word, None)
        return found


def slips_undone(word: str) -> dict[str, float]:
    """Every text, some fifty for each letter, that one slip may have made the word of, and how
    likely, as `Speller.meant` has them.
    """
    word = word.lower()
    if not _is_spelled(word):
        return {}
    size = len(word)
    ways = _undone(word, range(1, size), range(1, size + 1), range(2, size))
    found = {each: likely for made, likely in ways for each in made}
    found.pop(word, None)
    return found


def _is_spelled(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) <= WORD_CHARS_MAX


def _undone(
    word: str, places: range, gaps: range, swaps: range
) -> Iterator[tuple[list[str], float]]:
    """What the word was before a slip: a wrong letter or one too many at one of the places, one
    left out before one of the gaps, two swapped that end at one of the swaps.
    """
    yield [word[:i] + letter + word[i + 1 :] for i in places for letter in LETTERS], WRONG
    yield [word[:i] + word[i + 1 :] for i in places], TOO_MANY
    yield [word[:i] + letter + word[i:] for i in gaps for letter in LETTERS], LEFT_OUT
    yield [word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :] for i in swaps], SWAPPED


def _shared_chars(ordered: list[str], word: str) -> int:
    """How many of the word's first letters some of these begin with: one of the two beside its own
    place among them does.
    """
    at = bisect_left(ordered, word)
    shared = 0
    for near in ordered[max(at - 1, 0) : at + 1]:
        while word[: shared + 1] == near[: shared + 1] and shared < len(word):
            shared += 1
    return shared
