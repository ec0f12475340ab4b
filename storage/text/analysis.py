"""Text to search terms: what a lexical index stores of a text, and what it looks up for a query.

It owns word segmentation, normalisation, stemming, stop words and the guess of a text's language.
It knows no index, no tenant and no storage; every function is pure, and the same text always gives
the same terms.

How a text becomes terms
- A token is a run of letters, marks and digits, joined by single inner signs: foo_bar, v1.2.3,
  ABC-123, user@example.com, 12:30, src/main.py; web addresses and phone numbers are tokens of their
  own.
- A joined token gives one term for the whole, without its signs (kept only between digits:
  2023-05-08), and the terms of its parts, so that either finds it: "e-mail" meets "email", foo_bar
  meets fooBar and foo. So does a change of case or from letters to digits: getUserName, iPhone15.
- Words are compared in NFKC, case-folded, without stop words, and stemmed by the Snowball stemmer
  of their script. Numbers and everything that holds a digit are never stemmed.
- Latin script is stemmed as English, and, when the text's function words clearly speak another
  language, as that language too. The English form is always there, so **a word is found by the form
  it was written in, whatever the guess was**; a guess that fails costs only inflected forms.
  Accents are optional: "café" gives "café" and "cafe".
- Scripts written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping
  pairs of characters. Texts also give each Han character alone, so that a query of one character
  finds it; longer queries ask for pairs only.
- A text that consists of stop words alone keeps them.

The language is guessed from function words, not from letter statistics: it costs two microseconds,
needs no model, and what one short text says about itself cannot change with a library's version.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import regex
import Stemmer

from storage.text.asking import asked_terms, asking_language, is_asking, is_east_asian
from storage.text.glance import DIGIT
from storage.text.languages import (
    QUERY_EVIDENCE,
    TEXT_EVIDENCE,
    VOTING_WORDS_MAX,
    language_of,
)
from storage.text.scripts import script_of
from storage.text.stop_words import STOP_WORDS, word_set

CACHED_WORDS_MAX = 16_384  # per language
CACHED_CHARS_MAX = 32
TELLING_CHARS_MIN = 5  # of a word with a digit in it
STEMMED_CHARS_MAX = 64
PIECES_PER_TOKEN_MAX = 64

SUBWORD_CHARS_MIN = 2.5  # on average, for a token to be taken apart

Span = tuple[str, int, int]
Pattern = re.Pattern[str] | regex.Pattern[str]
Piece = tuple[str, int, int, bool]  # term, start, end, whether it is a stop word


class _Word(NamedTuple):
    """What one token gives. `every` keeps stop words; `pieces` are (term, start, end) inside the
    token, stop words left out.
    """

    text: tuple[str, ...]
    query: tuple[str, ...]
    every: tuple[str, ...]
    pieces: tuple[Span, ...]


# --- segmentation ---------------------------------------------------------------------------------

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_APOSTROPHES = "'’ʼ＇"
_JOINER = rf"(?:_+|::|[.\-‐‑/@&+{_APOSTROPHES}]|(?<=\d)[,:](?=\d))"
_ADDRESS = r"(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://[^\s<>\"]*[\w/]"
_PHONE = (
    r"(?:\+\d[\d ()./-]{5,20}\d|\(?\b0\d{2,4}\)?[ /-]\d[\d /-]{3,14}\d|\(?\b\d{3}\)?[ "
    r".-]\d{3}[.-]\d{4})(?![\w-])"
)


def token_pattern(letters: str, unspaced: str) -> str:
    word = rf"{letters}(?:{_JOINER}{letters}){{0,31}}(?:(?:\+\+|(?<=(?<!\w)\w)\#)(?!\w))?"
    return rf"{_ADDRESS}|{_PHONE}{unspaced}|{word}"


# Most tokens are plain words; the first branch takes them without trying what else they might
# begin.
ASCII_TOKENS = re.compile(
    r"[A-Za-z]++(?![0-9_.:\-/@&+'#])|" + token_pattern("[A-Za-z0-9]+", ""), re.ASCII
)
_TOKENS = regex.compile(
    token_pattern(
        rf"[[\p{{L}}\p{{M}}\p{{N}}\u00ad\u200c\u200d]--[{_UNSPACED}]]+",
        rf"|[{_UNSPACED}ー々〆][{_UNSPACED}ー々〆\p{{M}}ﾞﾟ]*",
    ),
    regex.V1,
)
_UNSPACED_RUN = regex.compile(rf"[{_UNSPACED}ー々〆]")
_HAN = regex.compile(r"\p{Han}")
_GRAPHEMES = regex.compile(r"\X")
_LETTERS = regex.compile(
    rf"[\p{{L}}\p{{M}}\p{{N}}\u00ad\u200c\u200d]+(?:[{_APOSTROPHES}][\p{{L}}\p{{M}}]+)*"
)
_KINDS = regex.compile(rf"[\p{{L}}\p{{M}}{_APOSTROPHES}]+|\p{{N}}+")
_CASES = regex.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[[\p{L}\p{M}]--\p{Lu}]+", regex.V1)
_SEGMENTS = regex.compile(r"[^/@]+")
_LOOSE_JOINERS = regex.compile(rf"(?<!\d){_JOINER}|{_JOINER}(?!\d)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PHONE_TOKEN = re.compile(_PHONE)
_INVISIBLE = str.maketrans({"\u00ad": None, "\u200c": None, "\u200d": None, "’": "'", "ʼ": "'"})
_UNDECOMPOSED = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)


def tokens_of(text: str) -> list[str]:
    return ASCII_TOKENS.findall(text) if text.isascii() else _TOKENS.findall(text)


def normal(token: str) -> str:
    """Compatibility form, case-folded, plain apostrophes, decimal digits of every script as 0 …
    9.
    """
    if token.isascii():
        return token.lower()
    folded = (
        unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", token).casefold())
        .translate(_INVISIBLE)
        .replace("i\u0307", "i")
    )
    if any(not char.isascii() and char.isdecimal() for char in folded):
        folded = "".join(
            str(unicodedata.decimal(char)) if char.isdecimal() else char for char in folded
        )
    return folded


def _unaccented(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.translate(_UNDECOMPOSED))
    return unicodedata.normalize(
        "NFC", "".join(char for char in parts if not unicodedata.combining(char))
    )


# --- words to terms -------------------------------------------------------------------------------

_CLITICS = word_set("s t re ve ll d m")
_NEGATED = word_set(
    "don isn aren wasn weren hasn haven hadn doesn didn won wouldn couldn shouldn mustn needn "
    "mightn shan ain"
)
_ELISIONS = word_set(
    """l d j c n s m t qu jusqu lorsqu puisqu quoiqu dell nell sull all dall coll un quest
    quell sant bell gl pell tutt anch dov com cos"""
)

_stemmers: dict[str, Stemmer.Stemmer] = {}
_stemming = threading.Lock()  # a Stemmer keeps its word in itself: one thread at a time


def _stem(word: str, language: str) -> str:
    if len(word) > STEMMED_CHARS_MAX:
        return word
    with _stemming:
        stemmer = _stemmers.get(language)
        if stemmer is None:
            stemmer = _stemmers[language] = Stemmer.Stemmer(language, 0)
        return stemmer.stemWord(word)


def _forms(word: str, language: str) -> tuple[str, ...]:
    """The terms of a normalised word without digits: stems by its script, or by `language` and by
    English.
    """
    script = script_of(word)
    if script is not None:
        return (_stem(word, script) if script else word,)
    plain = _stem(_unaccented(word), "english")
    own = plain if language == "english" and word.isascii() else _stem(word, language)
    return (plain,) if own == plain else (own, plain)


def _is_stop(word: str, language: str) -> bool:
    script = script_of(word)
    return word in STOP_WORDS.get(language if script is None else script, ())


def _plain_word(token: str, language: str) -> tuple[tuple[str, ...], bool]:
    """A token of letters and perhaps apostrophes -> (its terms, whether it is a stop word)."""
    word = normal(token).strip("'")
    head, sign, tail = word.rpartition("'")
    if sign and tail in _CLITICS:
        if head in _NEGATED or head in STOP_WORDS["english"]:
            return (word,), True
        word = head
    head, sign, tail = word.partition("'")
    if sign and head in _ELISIONS:
        word = tail.replace("'", "")
    elif sign:
        parts = [
            form
            for part in word.split("'")
            if len(part) > 1 and not _is_stop(part, language)
            for form in _forms(part, language)
        ]
        return (*_forms(word.replace("'", ""), language), *parts), False
    if not word:
        return (), True
    return _forms(word, language), _is_stop(word, language)


def _has_digit(token: str) -> bool:
    return any(char.isdigit() for char in token)


def _subwords(token: str, pattern: regex.Pattern[str]) -> list[Span]:
    """The pieces a pattern finds in a token, when they are two or more and no crumbs; single
    letters are left out.
    """
    found = [(match.group(), match.start(), match.end()) for match in pattern.finditer(token)]
    pair_with_number = len(found) == 2 and _has_digit(token)
    if len(found) < 2 or (len(token) < SUBWORD_CHARS_MIN * len(found) and not pair_with_number):
        return []
    return [(piece, start, end) for piece, start, end in found if len(piece) > 1 or piece.isdigit()]


def _part(token: str, language: str) -> Iterator[Piece]:
    """A token without joiners: itself, then what it is made of: iPhone15 -> iphone15, iphone,
    phone, 15.
    """
    if token.isdigit():
        yield normal(token), 0, len(token), False
        return
    if _has_digit(token):
        whole = normal(token)
        yield whole, 0, len(token), False
        ordinal = _ORDINAL.fullmatch(whole)
        if ordinal:
            yield ordinal[1], 0, len(ordinal[1]), False
            return
        subwords = _subwords(token, _KINDS)
    else:
        forms, stop = _plain_word(token, language)
        for form in forms:
            yield form, 0, len(token), stop
        if token.islower() or any(sign in token for sign in _APOSTROPHES):
            return
        subwords = _subwords(token, _CASES)
    for piece, offset, _ in subwords:
        for term, start, end, stop in _part(piece, language):
            yield term, offset + start, offset + end, stop


def _whole(token: str, language: str, *, is_address: bool) -> tuple[str, ...]:
    """The terms of a joined token as one: without its joiners, but for those between digits."""
    whole = normal(token)
    if is_address:
        whole = "".join(char for char in whole if char.isalnum())
    elif _PHONE_TOKEN.fullmatch(token):
        whole = ("+" if whole[0] == "+" else "") + "".join(char for char in whole if char.isdigit())
    elif whole[-1] not in "+#":
        whole = _LOOSE_JOINERS.sub("", whole)
    return _forms(whole, language) if whole.isalpha() else (whole,) if whole else ()


def _joined(token: str, language: str) -> Iterator[Piece]:
    """A token with joiners: the whole; for an address or path its segments; then the parts."""
    if _THOUSANDS.fullmatch(token):
        yield token.replace(",", ""), 0, len(token), False
        return
    body = token.find("://") + 3 if "://" in token else 0
    for form in _whole(token[body:], language, is_address=body > 0):
        yield form, 0, len(token), False
    segments = list(_SEGMENTS.finditer(token, body))
    for segment in segments:
        if len(segments) > 1 and not _LETTERS.fullmatch(segment.group()):
            for form in _whole(segment.group(), language, is_address=body > 0):
                yield form, segment.start(), segment.end(), False
        for match in _LETTERS.finditer(token, segment.start(), segment.end()):
            piece = match.group()
            if len(piece) > 1 or piece.isdigit():
                for term, start, end, stop in _part(piece, language):
                    yield term, match.start() + start, match.start() + end, stop


def _unspaced(token: str) -> _Word:
    """Pairs of neighbouring characters; texts also give each Han character, queries only a lone
    one.
    """
    marks = [
        (normal(match.group()), match.start(), match.end()) for match in _GRAPHEMES.finditer(token)
    ]
    if len(marks) == 1:
        terms = (marks[0][0],)
        return _Word(terms, terms, terms, tuple(marks))
    pieces: list[Span] = []
    pairs: list[str] = []
    for index, (mark, start, end) in enumerate(marks):
        if index + 1 < len(marks):
            pairs.append(mark + marks[index + 1][0])
            pieces.append((pairs[-1], start, marks[index + 1][2]))
        if _HAN.match(mark):
            pieces.append((mark, start, end))
    terms = tuple(term for term, _, _ in pieces)
    return _Word(terms, tuple(pairs), terms, tuple(pieces))


def _all_letters(token: str, language: str) -> _Word:
    """A word of ASCII letters, all small but perhaps the first: what most are. It has no parts."""
    word, size = token.lower(), len(token)
    forms = _forms(word, language)
    if word in STOP_WORDS[language]:
        return _Word((), (), forms, ())
    return _Word(forms, forms, forms, tuple([(form, 0, size) for form in forms]))


def _word(token: str, language: str) -> _Word:
    if token.isascii():
        if token.isalpha() and token[1:].islower():
            return _all_letters(token, language)
    elif _UNSPACED_RUN.match(token):
        return _unspaced(token)
    plain = _LETTERS.fullmatch(token) is not None
    found: list[Piece] = []
    for piece in _part(token, language) if plain else _joined(token, language):
        found.append(piece)
        if len(found) == PIECES_PER_TOKEN_MAX:
            break
    kept = tuple((term, start, end) for term, start, end, stop in found if not stop)
    terms = tuple(term for term, _, _ in kept)
    return _Word(terms, terms, tuple(term for term, _, _, _ in found), kept)


class Words(dict[str, _Word]):
    """Tokens met before in one language. It empties itself when full: a fresh start costs less than
    keeping an order of use.

    forms   term -> those of them that are ASCII letters and give it once, as a whole
    asked   token of a query -> the terms that it is looked up by
    """

    def __init__(self, language: str):
        super().__init__()
        self.language = language
        self.forms: dict[str, list[str]] = {}
        self.asked: dict[str, tuple[str, ...]] = {}

    def looked_up(self, token: str) -> tuple[str, ...]:
        """The terms of a query's token; none of a word that only asks."""
        known = self.asked.get(token)
        if known is not None:
            return known
        found = _looked_up(token, self)
        if is_remembered(token):
            if len(self.asked) >= CACHED_WORDS_MAX:
                self.asked.clear()
            self.asked[token] = found
        return found

    def __missing__(self, token: str) -> _Word:
        word = _word(token, self.language)
        if is_remembered(token):
            if len(self) >= CACHED_WORDS_MAX:
                self.clear()
                self.forms = {}
            if token not in self and token.isascii() and token.isalpha():
                for term, start, end in word.pieces:
                    if end - start == len(token) and word.text.count(term) == 1:
                        self.forms.setdefault(term, []).append(token)
            self[token] = word
        return word


def is_remembered(word: str) -> bool:
    """Whether what is found out of a word may be kept for whoever uses it next, of all accounts.
    Not of a very long one, which takes room; and not of a long number, or of a code: hardly anybody
    else has it, and how soon an answer comes would tell that somebody has.
    """
    if len(word) < TELLING_CHARS_MIN:
        return True
    return len(word) <= CACHED_CHARS_MAX and DIGIT.search(word) is None


def _words_for(tokens: list[str], evidence: float) -> Words:
    return CACHES[language_of(tokens, evidence)]


# --- what others call -----------------------------------------------------------------------------


def analyze(text: str) -> list[str]:
    """The terms a text is indexed under, in order, repeated as often as they occur."""
    tokens = tokens_of(text)
    words = _words_for(tokens, TEXT_EVIDENCE)
    terms: list[str] = []
    for token in tokens:
        terms += words[token].text
    if not terms:
        for token in tokens:
            terms += words[token].every
    return terms


def is_english(text: str) -> bool:
    """Whether a text's Latin words are English: their function words are, or those of another
    language alone are no more than those of English alone. So a name, an initial or a word of slang
    that is a function word elsewhere makes no short sentence foreign.
    """
    tokens = tokens_of(text)
    other = language_of(tokens, TEXT_EVIDENCE)
    if other == "english":
        return True
    words = {token.lower() for token in tokens[:VOTING_WORDS_MAX] if len(token) > 1}
    english, theirs = words & STOP_WORDS["english"], words & STOP_WORDS[other]
    return len(theirs - english) <= len(english - theirs)


class ContentWord(NamedTuple):
    """A token outside the stop words: where it stands, in code points, end exclusive, and the terms
    it is looked up by.
    """

    start: int
    end: int
    terms: tuple[str, ...]


def content_words(text: str) -> list[ContentWord]:
    """The text's words that carry meaning, in order."""
    matches = list((ASCII_TOKENS if text.isascii() else _TOKENS).finditer(text))
    words = _words_for([match[0] for match in matches], TEXT_EVIDENCE)
    found = ((match, words[match[0]].query) for match in matches)
    return [ContentWord(*match.span(), terms) for match, terms in found if terms]


class Matcher:
    """Finds what of a text gives one of some terms."""

    def __init__(self, terms: frozenset[str]):
        self._terms = terms

    def spans(
        self, text: str, occurrences: Mapping[str, int] | None = None
    ) -> list[tuple[int, int]]:
        """(start, end) of every word or part of a word that gives one of the terms, in order.

        occurrences  how often the text gives each of the terms that it gives, where that is known:
                     then looking for words met before is mostly enough, which is a tenth of the
                     work
        """
        if not self._terms or occurrences == {}:
            return []
        if occurrences is not None and (known := _known(text, occurrences)) is not None:
            return known
        pattern = ASCII_TOKENS if text.isascii() else _TOKENS
        tokens = pattern.findall(text)
        # The English forms are always there, so the language matters only where they give nothing.
        spans = self._in(CACHES["english"], tokens, pattern, text)
        if not spans and (language := language_of(tokens, TEXT_EVIDENCE)) != "english":
            spans = self._in(CACHES[language], tokens, pattern, text)
        return spans

    def _in(
        self, words: Words, tokens: list[str], pattern: Pattern, text: str
    ) -> list[tuple[int, int]]:
        terms = self._terms
        hits = {token for token in tokens if not terms.isdisjoint(words[token].text)}
        if not hits:
            return []
        found = (
            (match.start(), words[match[0]].pieces)
            for match in pattern.finditer(text)
            if match[0] in hits
        )
        return [
            (at + start, at + end)
            for at, pieces in found
            for term, start, end in pieces
            if term in terms
        ]


_BEFORE = frozenset(' \n\t"')
_AFTER = frozenset(' \n\t",;!?)')
_ENDS = frozenset(".:'")  # where no letter follows


def _known(text: str, occurrences: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """The words met before that give these terms so often, in order; None when some of them were
    not found.

    Only such are taken as surely are tokens, whatever is around them: between spaces, with
    punctuation after them.
    """
    found: set[tuple[int, int]] = set()
    size, forms = len(text), CACHES["english"].forms
    for term, count in occurrences.items():
        places: set[tuple[int, int]] = set()
        for form in forms.get(term, ()):
            end, width = 0, len(form)
            while (start := text.find(form, end)) >= 0:
                end = start + width
                if start and text[start - 1] not in _BEFORE:
                    continue
                after = text[end] if end < size else " "
                if after in _AFTER or (
                    after in _ENDS and (end + 1 == size or text[end + 1] in _BEFORE)
                ):
                    places.add((start, end))
        if len(places) != count:
            return None
        found |= places
    return sorted(found)


class QueryText(NamedTuple):
    """A query, read once.

    language  what its Latin words speak: English unless its function words say otherwise
    words     those that carry meaning, in order
    terms     the distinct terms to look up, in order
    """

    text: str
    language: str
    words: list[ContentWord]
    terms: list[str]

    def terms_of(self, word: str) -> Sequence[str]:
        """The terms that a word of it is looked up by."""
        for each in self.words:
            if self.text[each.start : each.end] == word:
                return each.terms
        return read_query(word, self.language).terms


def read_query(text: str, language: str | None = None) -> QueryText:
    """What a search needs to know of a query, or of a part of one whose language is known. One
    function word is evidence enough for another language; a query of nothing else is looked up by
    those.
    """
    matches = list((ASCII_TOKENS if text.isascii() else _TOKENS).finditer(text))
    tokens = [match[0] for match in matches]
    words = _words_of_query(tokens) if language is None else CACHES[language]
    looked_up = zip(matches, map(words.looked_up, tokens), strict=True)
    found = [ContentWord(*match.span(), terms) for match, terms in looked_up if terms]
    terms = dict.fromkeys([term for word in found for term in word.terms])
    if not terms:
        terms = dict.fromkeys([term for token in tokens for term in words[token].query])
    if not terms:
        terms = dict.fromkeys([term for token in tokens for term in words[token].every])
    return QueryText(text, words.language, found, list(terms))


def query_terms(text: str) -> list[str]:
    """The distinct terms to look up for a query, in order."""
    return read_query(text).terms


def _words_of_query(tokens: list[str]) -> Words:
    words = _words_for(tokens, QUERY_EVIDENCE)
    if words.language != "english":
        return words
    asked = asking_language([token.lower() for token in tokens])
    return words if asked is None else CACHES[asked]


def _looked_up(token: str, words: Words) -> tuple[str, ...]:
    word = normal(token)
    if not token.isascii() and _UNSPACED_RUN.match(token):
        return asked_terms(word) if is_east_asian(word) else words[token].query
    language = (script_of(word) or words.language) if word else words.language
    return () if is_asking(word, language) else words[token].query


CACHES = {
    language: Words(language)
    for language in STOP_WORDS
    if script_of(next(iter(STOP_WORDS[language]))) is None
}
