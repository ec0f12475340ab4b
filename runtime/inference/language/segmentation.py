"""Sentences and words of English as people type it, by their spelling alone.

Words are cut as the treebanks of Universal Dependencies cut them: "don't" is "do" and "n't",
"Anna's" is "Anna" and "'s", "well-known" is three; an address, a smiley or a run of marks is one.
Every character that is no white space belongs to exactly one word. Both passes go over the text
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import regex

from runtime.inference.language.reading import Reading, Sentence
from storage.text import word_set

SENTENCE_TOKENS_MAX = 96
WRAPPED_LINE_CHARS_MIN = 56  # a line at least so long may have been broken by its width

Spans = list[tuple[int, int]]


class Segment(NamedTuple):
    """A sentence before it is read: its code points, and those of its words."""

    start: int
    end: int
    words: Spans


_TITLES = (
    "mr|mrs|ms|mx|dr|prof|rev|hon|gen|lt|col|capt|sgt|maj|gov|sen|rep|pres|st|mt|ft|messrs|mme|vs"
)
_SHORTENED = (
    "jr|sr|inc|ltd|corp|dept|univ|approx|ave|blvd|rd|etc|fig|vol|est|tel|ext|min|max|hrs|hr|cf|al|"
    "jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|mon|tue|tues|wed|thu|thur|thurs|fri"
)
_SUFFIXES = (
    "com|org|net|edu|gov|io|co|uk|de|fr|app|dev|ai|me|tv|us|ca|au|info|"
    "pdf|doc|docx|txt|jpg|jpeg|png|gif|mp3|mp4|csv|json|xml|html|py|js|zip|xls|xlsx|ppt|pptx"
)
_PREFIXES = (
    "e|co|re|pre|non|anti|ex|semi|sub|mid|pro|post|pan|multi|mini|micro|un|over|cross|self|x|t"
)
_WORD = r"[\p{L}\p{M}\p{N}_\u00ad\u200c\u200d]"
_EMOJI = r"(?![\p{N}#*©®™])\p{Extended_Pictographic}"
_PATTERN = regex.compile(
    # Most words are plain ones; the first branch takes them without trying what else they might be.
    rf"""
      (?P<word> (?!xd++(?!\w))[a-z]++(?=[\s,!?;)]|\Z) )
    | (?P<address> (?:https?://|ftp://|www\.)\S++
                 | [\w.+%-]{{1,64}}+@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,5}}
                 | (?<![\w.-])[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{0,4}}?
                   \.(?:{_SUFFIXES})(?![\w.]\w)(?!\w) )
    | (?P<tagged> [@\#]{_WORD}++ )
    | (?P<smiley> (?:[:;=]['’]?[-^o]?[)(\]\[DPpO/\\|*3@$]{{1,8}}+ | xD{{1,8}}+ | <3{{1,8}}+ | </3
                 | \^_{{0,8}}\^ | -_{{1,8}}+- | o_o | ¯\\_\(ツ\)_/¯ | t_t)(?!\w) )
    | (?P<title> (?<!\w)(?:{_TITLES})\.(?=\s{{0,4}}+{_WORD}) )
    | (?P<shortened> (?<!\w)(?:(?:{_SHORTENED})\.(?!\w) | (?:\p{{L}}\.){{2,8}}+(?!\w)
                 | \p{{Lu}}\.(?=\s?\p{{Lu}}) | (?:e\.g|i\.e|a\.m|p\.m|ph\.d)\.?(?!\w)) )
    | (?P<number> \p{{N}}++(?:[.,:/]\p{{N}}++)*+ (?:(?:st|nd|rd|th|s)(?!\w))?+ )
    | (?P<prefixed> (?<![\w-])(?:{_PREFIXES})-\p{{L}}++ )
    | (?P<word> {_WORD}++ (?:['’`]{_WORD}++)*+ )
    | (?P<emoji> {_EMOJI}(?:[\p{{M}}\u200d\ufe0f]|[\U0001f3fb-\U0001f3ff]|(?<=\u200d){_EMOJI})*+
                 | \p{{Regional_Indicator}}{{1,2}} )
    | (?P<end> [.。．]{{2,}}+ | …[.…]*+ | [!?！？]++ | [.。．؟।] )
    | (?P<clitic> ['’`](?:s|m|re|ve|ll|d|em|til|cause|bout)(?!\w) )
    | (?P<mark> -{{2,}}+ | \*++ | _++ | ={{2,}}+ | ~++ | [-=]{{1,8}}+> | \S )
    """,
    regex.VERBOSE | regex.IGNORECASE,
)

# Where a word without apostrophe is cut in two.
_NEGATED = word_set("do does did wo ca have has had is was are were would could should")
_CONTRACTED = {
    **{"cannot": 3, "gonna": 3, "wanna": 3, "gotta": 3, "lemme": 3, "gimme": 3, "im": 1, "ive": 1},
    **{f"{verb}nt": len(verb) for verb in _NEGATED},
}
_APOSTROPHES = "'’`"
_CLITICS = word_set("s m re ve ll d")
_UNITS = word_set("am pm km kg mg ml cm mm lb lbs min mins hr hrs")
_DIGITS = regex.compile(r"\p{N}++")
_TRAILING = ".,;:!?'\"”’)]>}…"
_CLOSERS = frozenset("\"”’)]}»'")
# Words that begin a sentence after "etc." or "p.m."; after others it may go on.
_STARTERS = word_set(
    """the a an this that these those i he she it we they you my his her its our their your there
    here but and so or if when while what who where why how in on at for from with after before as
    since then now also not no yes yeah ok okay please let's let do does did is are was were have
    has can could would should will one some most many all both each every another"""
)


def read_sentences(text: str) -> list[Segment]:
    """The text's sentences with their words, in order."""
    found: list[Segment] = []
    words: Spans = []
    kinds: list[str] = []
    for start, end, kind in _words(text):
        if words and (
            len(words) == SENTENCE_TOKENS_MAX or _is_break(text, words, kinds, start, kind)
        ):
            found.append(Segment(words[0][0], words[-1][1], words))
            words, kinds = [], []
        words.append((start, end))
        kinds.append(kind)
    return [*found, Segment(words[0][0], words[-1][1], words)] if words else found


def unread(text: str) -> Reading:
    """The text's sentences without tokens."""
    return Reading(tuple(Sentence(each.start, each.end) for each in read_sentences(text)))


def _words(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, kind) of each word; the kind is a group of the pattern."""
    for match in _PATTERN.finditer(text):
        start, end = match.span()
        kind = match.lastgroup or "mark"
        if kind == "address":
            body = start + len(match[0].rstrip(_TRAILING))
            yield start, body, kind
            for at in range(body, end):
                yield at, at + 1, "end" if text[at] in ".!?…" else "mark"
            continue
        if kind == "word":
            word = match[0]
            at = _second_part(word) or (_unit(word) if word[0].isdigit() else 0)
            if at:
                yield start, start + at, kind
                start += at
        yield start, end, kind


def _second_part(word: str) -> int:
    """Where a contraction's second part begins; 0 for another word."""
    small = word.lower()
    if len(small) < 2:
        return 0
    if small in _CONTRACTED:
        return _CONTRACTED[small]
    if small.isalnum():
        return 0
    mark = max(map(small.rfind, _APOSTROPHES))
    if mark < 1:
        return 0
    if small[mark + 1 :] == "t" and small[mark - 1] == "n" and mark > 1:
        return mark - 1
    return mark if small[mark + 1 :] in _CLITICS else 0


def _unit(word: str) -> int:
    """Where the unit begins of a number written together with it; 0 for another word."""
    match = _DIGITS.match(word)
    return match.end() if match and word[match.end() :].lower() in _UNITS else 0


def _is_break(text: str, words: Spans, kinds: list[str], start: int, kind: str) -> bool:
    """Whether a sentence of these words ends before the word that begins at `start`."""
    gap = text[words[-1][1] : start]
    if kinds[-1] == "word" and gap in ("", " "):
        return False
    if "\n" in gap or "\r" in gap:
        return _is_line_break(text, words, kinds, gap, start)
    at = len(words) - 1
    while at > 0 and (text[slice(*words[at])] in _CLOSERS or kinds[at] in ("emoji", "smiley")):
        at -= 1
    last, closed = text[slice(*words[at])], at < len(words) - 1
    if kind in ("emoji", "smiley") or (text[start] in _CLOSERS and not gap):
        return False
    following = text[start : start + 24]
    capital = following[:1].isupper() or (following[:1] in '"“‘(' and following[1:2].isupper())
    match kinds[at]:
        case "end" if last[0] in "!?！？":
            return not closed or not following[0].islower() or not gap.strip('"”’')
        case "end" if len(last) > 1 or last == "…":
            return capital and following[:2] not in ("I ", "I'", "I’")
        case "end":
            if (at == 1 and kinds[0] == "number") or (not gap and last == "." and not capital):
                return False
            return not (closed and following[0].islower())
        case "shortened" if at == len(words) - 1 and capital:
            return _first_word(following) in _STARTERS
    has_smiley = any(kinds[number] in ("emoji", "smiley") for number in range(at + 1, len(words)))
    return has_smiley and capital


def _is_line_break(text: str, words: Spans, kinds: list[str], gap: str, start: int) -> bool:
    """Whether a line's end ends the sentence, or only broke it by the line's width."""
    if gap.count("\n") > 1 or kinds[-1] == "end" or not text[start].islower():
        return True
    line = words[-1][1] - (text.rfind("\n", words[0][0], words[-1][1]) + 1 or words[0][0])
    return line < WRAPPED_LINE_CHARS_MIN or text[words[-1][1] - 1] in ":;"


def _first_word(text: str) -> str:
    letters = 0
    while letters < len(text) and text[letters].isalpha():
        letters += 1
    return text[:letters].lower()
