"""Words one slip of the fingers away: what a word that nobody knows may have been meant to be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator

import numpy as np

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
        self._fitting = _Fitting(known)

    def meant(self, word: str) -> dict[str, float]:
        """The known words that one slip may have made this one of, and how likely.

        The first letter stays, which people rarely get wrong. Empty for what is no word of the
        Latin letters a to z, or longer than WORD_CHARS_MAX.
        """
        word = word.lower()
        if not _is_spelled(word):
            return {}
        size, last = len(word), _shared_chars(self._beginnings, word)
        if not last:
            return {}
        first = size - _shared_chars(self._endings, word[::-1])  # what is from here on is an ending
        places = range(max(1, first - 1), min(last + 1, size))
        swaps = range(max(2, first - 1), min(last + 2, size))
        gaps = range(max(1, first), min(last, size) + 1)
        found: dict[str, float] = {}
        for made, likely in _undone(word, places, gaps, swaps):
            found |= dict.fromkeys([each for each in made if each in self._known], likely)
        found.pop(word, None)
        return found

    def undone(self, word: str) -> dict[str, float]:
        """The texts that one slip may have made the word of, and how likely, as `meant` has them,
        be they known or not: names, mostly, that only whoever looks them up can tell from nonsense.

        A letter is put only where some known word has it between the same letters, two before and
        two after it; else there were some fifty texts for each letter. Of slips in names that are
        no known words nearly nine in ten are undone so.
        """
        word = word.lower()
        if not _is_spelled(word):
            return {}
        size, fitting = len(word), self._fitting
        ways = _undone(word, range(1, size), range(1, size + 1), range(2, size), fitting.letters)
        found = {each: likely for made, likely in ways for each in made}
        found.pop(word, None)
        return found


def slip_shape(word: str, chars: int) -> str:
    """What a word of so many characters that one slip makes of this one has in common with it: few
    words that are something else have the same.
    """
    return f"{word[:1]}{chars}"


class _Fitting:
    """Which letters stand between which in known words: three tables of bit masks, a bit a letter,
    by the two letters beside it; place 0 is the beginning of a word.
    """

    def __init__(self, known: Collection[str]):
        words = " ".join(word for word in known if _is_spelled(word))
        codes = np.frombuffer(f" {words}".encode(), np.uint8).astype(np.intp) - (ord("a") - 1)
        codes[codes < 0] = 0
        first, second, third = codes[:-2], codes[1:-1], codes[2:]
        inside = (second > 0) & (third > 0)
        seen = np.zeros((27, 27, 27), bool)
        seen[first[inside], second[inside], third[inside]] = True
        bits = np.int64(1) << np.arange(27)
        self._after = (seen @ bits).tolist()  # [a][b] -> x of "abx"
        self._between = (seen.transpose(0, 2, 1) @ bits).tolist()  # [a][b] -> x of "axb"
        self._before = (seen.transpose(1, 2, 0) @ bits).tolist()  # [a][b] -> x of "xab"

    def letters(self, before: str, after: str) -> str:
        """Those that stand between these two, of which the two letters nearest count."""
        a, b = ([0] + [ord(char) - 96 for char in before[-2:]])[-2:]
        fit = self._after[a][b]
        if after:
            c = ord(after[0]) - 96
            fit &= self._between[b][c]
            if len(after) > 1:
                fit &= self._before[c][ord(after[1]) - 96]
        return "".join([letter for letter, bit in _BITS if fit & bit]) if fit else ""


_BITS = [(letter, 1 << place) for place, letter in enumerate(LETTERS, 1)]


def _any_letter(before: str, after: str) -> str:
    return LETTERS


def _is_spelled(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) <= WORD_CHARS_MAX


def _undone(
    word: str,
    places: range,
    gaps: range,
    swaps: range,
    letters: Callable[[str, str], str] = _any_letter,
) -> Iterator[tuple[list[str], float]]:
    """What the word was before a slip: a wrong letter or one too many at one of the places, one
    left out before one of the gaps, two swapped that end at one of the swaps. letters: those to try
    between what is before a place and what is after it.
    """
    ends = [(word[:i], word[i + 1 :]) for i in places]
    yield [a + letter + b for a, b in ends for letter in letters(a, b)], WRONG
    yield [a + b for a, b in ends], TOO_MANY
    ends = [(word[:i], word[i:]) for i in gaps]
    yield [a + letter + b for a, b in ends for letter in letters(a, b)], LEFT_OUT
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
