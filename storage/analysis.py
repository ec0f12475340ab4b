"""Text to search terms: what a lexical index stores of a text, and what it looks up for a query.

It owns word segmentation, normalisation, stemming, stop words and the guess of a text's language. It knows no index, no tenant
and no storage; every function is pure, and the same text always gives the same terms.

How a text becomes terms
- A token is a run of letters, marks and digits, joined by single inner signs: foo_bar, v1.2.3, ABC-123, user@example.com,
  12:30, src/main.py; web addresses and phone numbers are tokens of their own.
- A joined token gives one term for the whole, without its signs (kept only between digits: 2023-05-08), and the terms of its
  parts, so that either finds it: "e-mail" meets "email", foo_bar meets fooBar and foo. So does a change of case or from letters
  to digits: getUserName, iPhone15.
- Words are compared in NFKC, case-folded, without stop words, and stemmed by the Snowball stemmer of their script. Numbers and
  everything that holds a digit are never stemmed.
- Latin script is stemmed as English, and, when the text's function words clearly speak another language, as that language too.
  The English form is always there, so **a word is found by the form it was written in, whatever the guess was**; a guess that
  fails costs only inflected forms. Accents are optional: "café" gives "café" and "cafe".
- Scripts written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping pairs of characters. Texts also
  give each Han character alone, so that a query of one character finds it; longer queries ask for pairs only.
- A text that consists of stop words alone keeps them.

The language is guessed from function words, not from letter statistics: it costs two microseconds, needs no model, and what
one short text says about itself cannot change with a library's version.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import regex
import Stemmer

CACHED_WORDS_MAX = 16_384  # per language
CACHED_CHARS_MAX = 32
STEMMED_CHARS_MAX = 64
PIECES_PER_TOKEN_MAX = 64
VOTING_WORDS_MAX = 256
TEXT_EVIDENCE, QUERY_EVIDENCE = 1.5, 1.0
ENGLISH_MARGIN = 1.2

SUBWORD_CHARS_MIN = 2.5  # on average, for a token to be taken apart

Span = tuple[str, int, int]
Piece = tuple[str, int, int, bool]  # term, start, end, whether it is a stop word


class _Word(NamedTuple):
    """What one token gives. `every` keeps stop words; `pieces` are (term, start, end) inside the token, stop words left out."""

    text: tuple[str, ...]
    query: tuple[str, ...]
    every: tuple[str, ...]
    pieces: tuple[Span, ...]


# --- segmentation -----------------------------------------------------------------------------------------------------

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_APOSTROPHES = "'’ʼ＇"
_JOINER = rf"(?:_+|::|[.\-‐‑/@&+{_APOSTROPHES}]|(?<=\d)[,:](?=\d))"
_ADDRESS = r"(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://[^\s<>\"]*[\w/]"
_PHONE = r"(?:\+\d[\d ()./-]{5,20}\d|\(?\b0\d{2,4}\)?[ /-]\d[\d /-]{3,14}\d|\(?\b\d{3}\)?[ .-]\d{3}[.-]\d{4})(?![\w-])"


def _pattern(letters: str, unspaced: str) -> str:
    word = rf"{letters}(?:{_JOINER}{letters}){{0,31}}(?:(?:\+\+|(?<=(?<!\w)\w)\#)(?!\w))?"
    return rf"{_ADDRESS}|{_PHONE}{unspaced}|{word}"


# Most tokens are plain words; the first branch takes them without trying what else they might begin.
_ASCII_TOKENS = re.compile(r"[A-Za-z]++(?![0-9_.:\-/@&+'#])|" + _pattern("[A-Za-z0-9]+", ""), re.ASCII)
_TOKENS = regex.compile(
    _pattern(rf"[[\p{{L}}\p{{M}}\p{{N}}\u00ad\u200c\u200d]--[{_UNSPACED}]]+", rf"|[{_UNSPACED}ー々〆][{_UNSPACED}ー々〆\p{{M}}ﾞﾟ]*"), regex.V1
)
_UNSPACED_RUN = regex.compile(rf"[{_UNSPACED}ー々〆]")
_HAN = regex.compile(r"\p{Han}")
_GRAPHEMES = regex.compile(r"\X")
_LETTERS = regex.compile(rf"[\p{{L}}\p{{M}}\p{{N}}\u00ad\u200c\u200d]+(?:[{_APOSTROPHES}][\p{{L}}\p{{M}}]+)*")
_KINDS = regex.compile(rf"[\p{{L}}\p{{M}}{_APOSTROPHES}]+|\p{{N}}+")
_CASES = regex.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[[\p{L}\p{M}]--\p{Lu}]+", regex.V1)
_SEGMENTS = regex.compile(r"[^/@]+")
_LOOSE_JOINERS = regex.compile(rf"(?<!\d){_JOINER}|{_JOINER}(?!\d)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PHONE_TOKEN = re.compile(_PHONE)
_INVISIBLE = str.maketrans({"\u00ad": None, "\u200c": None, "\u200d": None, "’": "'", "ʼ": "'"})
_UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


def _tokens(text: str) -> list[str]:
    return _ASCII_TOKENS.findall(text) if text.isascii() else _TOKENS.findall(text)


def _normal(token: str) -> str:
    """Compatibility form, case-folded, plain apostrophes, decimal digits of every script as 0 … 9."""
    if token.isascii():
        return token.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", token).casefold()).translate(_INVISIBLE).replace("i\u0307", "i")
    if any(not char.isascii() and char.isdecimal() for char in folded):
        folded = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in folded)
    return folded


def _unaccented(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.translate(_UNDECOMPOSED))
    return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# --- words to terms ---------------------------------------------------------------------------------------------------

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
_CLITICS = _listed("s t re ve ll d m")
_NEGATED = _listed("don isn aren wasn weren hasn haven hadn doesn didn won wouldn couldn shouldn mustn needn mightn shan ain")
_ELISIONS = _listed(
    """l d j c n s m t qu jusqu lorsqu puisqu quoiqu dell nell sull all dall coll un quest quell sant bell gl pell tutt anch dov com cos"""
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


def _script_of(word: str) -> str | None:
    """The language whose stemmer serves the word's script; "" when none does; None for Latin script."""
    first = ord(word[0])
    if first < _LATIN_END or 0x1E00 <= first <= 0x1EFF:
        return None
    return next((language for low, high, language in _SCRIPTS if low <= first <= high), "")


def _forms(word: str, language: str) -> tuple[str, ...]:
    """The terms of a normalised word without digits: stems by its script, or by `language` and by English."""
    script = _script_of(word)
    if script is not None:
        return (_stem(word, script) if script else word,)
    plain = _stem(_unaccented(word), "english")
    own = _stem(word, language)
    return (plain,) if own == plain else (own, plain)


def _is_stop(word: str, language: str) -> bool:
    script = _script_of(word)
    return word in STOP_WORDS.get(language if script is None else script, ())


def _plain_word(token: str, language: str) -> tuple[tuple[str, ...], bool]:
    """A token of letters and perhaps apostrophes -> (its terms, whether it is a stop word)."""
    word = _normal(token).strip("'")
    head, sign, tail = word.rpartition("'")
    if sign and tail in _CLITICS:
        if head in _NEGATED or head in STOP_WORDS["english"]:
            return (word,), True
        word = head
    head, sign, tail = word.partition("'")
    if sign and head in _ELISIONS:
        word = tail.replace("'", "")
    elif sign:
        parts = [form for part in word.split("'") if len(part) > 1 and not _is_stop(part, language) for form in _forms(part, language)]
        return (*_forms(word.replace("'", ""), language), *parts), False
    if not word:
        return (), True
    return _forms(word, language), _is_stop(word, language)


def _has_digit(token: str) -> bool:
    return any(char.isdigit() for char in token)


def _subwords(token: str, pattern: regex.Pattern[str]) -> list[Span]:
    """The pieces a pattern finds in a token, when they are two or more and no crumbs; single letters are left out."""
    found = [(match.group(), match.start(), match.end()) for match in pattern.finditer(token)]
    pair_with_number = len(found) == 2 and _has_digit(token)
    if len(found) < 2 or (len(token) < SUBWORD_CHARS_MIN * len(found) and not pair_with_number):
        return []
    return [(piece, start, end) for piece, start, end in found if len(piece) > 1 or piece.isdigit()]


def _part(token: str, language: str) -> Iterator[Piece]:
    """A token without joiners: itself, then what it is made of: iPhone15 -> iphone15, iphone, phone, 15."""
    if token.isdigit():
        yield _normal(token), 0, len(token), False
        return
    if _has_digit(token):
        whole = _normal(token)
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
    whole = _normal(token)
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
    """Pairs of neighbouring characters; texts also give each Han character, queries only a lone one."""
    marks = [(_normal(match.group()), match.start(), match.end()) for match in _GRAPHEMES.finditer(token)]
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


def _word(token: str, language: str) -> _Word:
    if not token.isascii() and _UNSPACED_RUN.match(token):
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


class _Words(dict[str, _Word]):
    """Tokens met before in one language. It empties itself when full: a fresh start costs less than keeping an order of use.

    forms   term -> those of them that are ASCII letters and give it once, as a whole
    """

    def __init__(self, language: str):
        super().__init__()
        self.language = language
        self.forms: dict[str, list[str]] = {}

    def __missing__(self, token: str) -> _Word:
        word = _word(token, self.language)
        if len(token) <= CACHED_CHARS_MAX:
            if len(self) >= CACHED_WORDS_MAX:
                self.clear()
                self.forms = {}
            if token not in self and token.isascii() and token.isalpha():
                for term, start, end in word.pieces:
                    if end - start == len(token) and word.text.count(term) == 1:
                        self.forms.setdefault(term, []).append(token)
            self[token] = word
        return word


# --- language ---------------------------------------------------------------------------------------------------------


def _language(tokens: list[str], evidence: float) -> str:
    """The language of a text's Latin words: English unless function words of another outweigh it."""
    voters = dict.fromkeys(tokens[:VOTING_WORDS_MAX])
    votes = [vote for token in voters if (vote := _VOTES.get(token)) is not None]
    if sum(weight for weight, _ in votes) < evidence:
        return "english"
    tally: dict[str, float] = {}
    for weight, languages in votes:
        for language in languages:
            tally[language] = tally.get(language, 0.0) + weight
    best = max(tally, key=tally.__getitem__)
    if tally[best] < evidence:
        return "english"
    english = STOP_WORDS["english"]
    against = sum(_VOTES[token][0] if token in _VOTES else 1.0 for token in voters if token.lower() in english)
    return best if tally[best] > ENGLISH_MARGIN * against else "english"


def _words_for(tokens: list[str], evidence: float) -> _Words:
    return _CACHES[_language(tokens, evidence)]


# --- what others call -------------------------------------------------------------------------------------------------


def analyze(text: str) -> list[str]:
    """The terms a text is indexed under, in order, repeated as often as they occur."""
    tokens = _tokens(text)
    words = _words_for(tokens, TEXT_EVIDENCE)
    terms: list[str] = []
    for token in tokens:
        terms += words[token].text
    if not terms:
        for token in tokens:
            terms += words[token].every
    return terms


class ContentWord(NamedTuple):
    """A token outside the stop words: where it stands, in code points, end exclusive, and the terms it is looked up by."""

    start: int
    end: int
    terms: tuple[str, ...]


def content_words(text: str, *, is_query: bool = False) -> list[ContentWord]:
    """The text's words that carry meaning, in order. `is_query`: one function word is evidence enough for another language."""
    matches = list((_ASCII_TOKENS if text.isascii() else _TOKENS).finditer(text))
    words = _words_for([match.group() for match in matches], QUERY_EVIDENCE if is_query else TEXT_EVIDENCE)
    found = ((match, words[match.group()].query) for match in matches)
    return [ContentWord(match.start(), match.end(), terms) for match, terms in found if terms]


class Matcher:
    """Finds what of a text gives one of some terms."""

    def __init__(self, terms: frozenset[str]):
        self._terms = terms

    def spans(self, text: str, occurrences: Mapping[str, int] | None = None) -> list[tuple[int, int]]:
        """(start, end) of every word or part of a word that gives one of the terms, in order.

        occurrences  how often the text gives each of the terms that it gives, where that is known: then looking for words met before
                     is mostly enough, which is a tenth of the work
        """
        if not self._terms or occurrences == {}:
            return []
        if occurrences is not None and (known := _known(text, occurrences)) is not None:
            return known
        pattern = _ASCII_TOKENS if text.isascii() else _TOKENS
        tokens = pattern.findall(text)
        # The English forms are always there, so the language matters only where they give nothing.
        spans = self._in(_CACHES["english"], tokens, pattern, text)
        if not spans and (language := _language(tokens, TEXT_EVIDENCE)) != "english":
            spans = self._in(_CACHES[language], tokens, pattern, text)
        return spans

    def _in(self, words: _Words, tokens: list[str], pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
        terms = self._terms
        hits = {token for token in tokens if not terms.isdisjoint(words[token].text)}
        if not hits:
            return []
        found = ((match.start(), words[match[0]].pieces) for match in pattern.finditer(text) if match[0] in hits)
        return [(at + start, at + end) for at, pieces in found for term, start, end in pieces if term in terms]


_BEFORE = frozenset(' \n\t"')
_AFTER = frozenset(' \n\t",;!?)')
_ENDS = frozenset(".:'")  # where no letter follows


def _known(text: str, occurrences: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """The words met before that give these terms so often, in order; None when some of them were not found.

    Only such are taken as surely are tokens, whatever is around them: between spaces, with punctuation after them.
    """
    found: set[tuple[int, int]] = set()
    size, forms = len(text), _CACHES["english"].forms
    for term, count in occurrences.items():
        places: set[tuple[int, int]] = set()
        for form in forms.get(term, ()):
            end, width = 0, len(form)
            while (start := text.find(form, end)) >= 0:
                end = start + width
                if start and text[start - 1] not in _BEFORE:
                    continue
                after = text[end] if end < size else " "
                if after in _AFTER or (after in _ENDS and (end + 1 == size or text[end + 1] in _BEFORE)):
                    places.add((start, end))
        if len(places) != count:
            return None
        found |= places
    return sorted(found)


def query_terms(text: str) -> list[str]:
    """The distinct terms to look up for a query, in order. One function word is evidence enough for another language."""
    tokens = _tokens(text)
    words = _words_for(tokens, QUERY_EVIDENCE)
    terms = dict.fromkeys(term for token in tokens for term in words[token].query)
    return list(terms or dict.fromkeys(term for token in tokens for term in words[token].every))


# --- function words ---------------------------------------------------------------------------------------------------

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": """a about above after again against all am an and any are aren as at be because been before being below
            between both but by can cannot could did do does doing down during each few for from further had has have having he
            her here hers herself him himself his how i if in into is it its itself just let me more most my myself no nor not
            now of off on once only or other ought our ours ourselves out over own same she should so some such than that the
            their theirs them themselves then there these they this those through to too under until up upon us very was we
            were what when where which while who whom why will with would you your yours yourself yourselves""",
        "german": """aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da
            damit dann das dass dein deine deinem deinen deiner dem den denn der des dessen dich die dies diese diesem diesen
            dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure für gegen gewesen
            hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist jede
            jedem jeden jeder jedes jetzt kann kein keine keinen keiner können könnte man mein meine meinem meinen meiner mich
            mir mit muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie
            sind so soll sollte sondern über um und uns unser unsere unter viel vom von vor wann war waren warum was weil wenn
            wer werde werden wie wieder will wir wird wirst wo würde würden zu zum zur zwischen dass""",
        "french": """à ai aie ainsi après as au aucun aucune aussi autre aux avait avec avez avoir avons bien c ce cela ces cet
            cette ceux chez ci comme comment d dans de des donc dont du elle elles en encore entre es est et était étaient été
            être eu fait faire font ici il ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne ni nos notre
            nous on ont ou où par parce pas pendant peu peut plus pour pourquoi qu quand que quel quelle quelles quels qui
            quoi s sa sans se sera ses si son sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vos
            votre vous y""",
        "spanish": """a al algo algunos ante antes aquí así aunque cada como cómo con contra cuál cuando cuándo de del desde
            donde dónde dos durante e el él ella ellas ellos en entre era eran eres es esa esas ese eso esos esta está estaba
            están estar estas este esto estos estoy fue fueron ha había han has hasta hay he la las le les lo los más me mi
            mis mucho muchos muy nada ni no nos nosotros nuestra nuestro o os otra otro para pero poco por porque qué que quien
            quién se sea ser si sí sido siempre sin sobre son soy su sus también tan tanto te tengo ti tiene tienen todo todos
            tu tus un una uno unos usted ya yo""",
        "portuguese": """a à ainda ao aos aquela aquele aqui as às até com como da das de dela dele deles depois do dos e é ela
            elas ele eles em entre era eram essa esse esta está estão estar estava este estou eu foi foram há isso isto já la
            lhe mais mas me mesmo meu meus minha minhas muito muitos na não nas nem no nos nós nossa nosso num numa o onde os
            ou para pela pelo por porque qual quando que quem são se sem ser seu seus só sobre sua suas também te tem têm
            tenho ter teu tu tua tudo um uma umas uns você vocês""",
        "italian": """a ad agli ai al alla alle allo anche ancora avere aveva che chi ci come con contro cosa cui da dagli dai
            dal dalla dalle de degli dei del della delle dello di dopo dove e è ed era erano essere fa fra fu gli ha hai hanno
            ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio molto ne nei nel nella nelle nello no noi non
            nostra nostro o ogni per perché però più poi qual quale quando quanto quella quelle quelli quello questa queste
            questi questo qui se sei si sia siamo sono sopra sta stato su sua sue sugli sui sul sulla suo suoi ti tra tu tua
            tuo tutti tutto un una uno vi voi""",
        "dutch": """aan af al alle als altijd ander andere bij ben bent daar dan dat de der deze die dit doch doen door dus een
            eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jouw
            jullie kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat ons onze ook op
            over reeds te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel werd wezen
            wie wij wil word worden wordt zal ze zei zelf zich zij zijn zo zonder zou""",
        "swedish": """all alla allt att av blev bli blir då de dem den denna deras dess det detta dig din dina ditt du där efter
            ej eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke in inom inte jag ju kan kunde
            man med mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på redan samma sig sin sina
            sitt ska skulle som så sådan till under upp ut utan vad var vara varför varit vart vem vi vid vilka vilken vilket
            är än åt över""",
        "danish": """ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter
            ej eller en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvem hvis hvor hvordan
            hvorfor hvornår i ikke ind jeg jer kan kunne man mange med meget men mig min mine mit mod ned nej nogen noget nogle
            nu når og også om op os over på selv sig sin sine sit skal skulle som sådan til ud under var vi vil ville vor være
            været""",
        "norwegian": """alle at av bare ble blei bli blir da de deg dem den denne der deres det dette di din disse du eller en
            enn er et ett etter for fordi fra før ha hadde han hans har henne hennes her hun hva hvem hver hvis hvor hvordan
            hvorfor i ikke inn jeg kan kunne man mange med meg meget mellom men mer min mine mitt mot når noe noen nå og også
            om opp oss over på seg selv si sin sine sitt skal skulle slik som så til um ut uten var vår være vært ved vi vil
            ville å""",
        "finnish": """ei eivät en että ettei hän häntä he heidän heitä hänen ja jo jos joka jonka jossa jota kanssa kuin kuka
            kun koska me meidän mikä minä minua minulla minun minut missä mitä mutta mukaan myös ne niin niitä nyt nämä näin
            olen olet oli olivat olla ole olemme on ovat se sen siinä sinä sinun sitä sitten tai tämä tämän te teidän tässä
            tätä vaan vain vielä voi""",
        "polish": """a aby ale albo bardzo bez będzie bo był była było były być co coś czy czym dla do dlaczego gdy gdzie go i
            ich ile im ja jak jaki jako je jego jej jest jestem jeszcze jeśli już każdy kiedy kto która które który lub ma mam
            mi mnie moja moje może mój mu my na nad nam nas nasz nic nie nim o od on ona one oni oraz po pod przed przez przy
            są się sobie swoje ta tak także tam te tego tej ten teraz to tu ty tylko tym w we wszystko z za ze że żeby""",
        "czech": """a aby ale ani až bez bude budu by byl byla bylo byly být co což další dnes do ho i já jak jako je jeho jejich
            jen jeho její jestli ještě ji jsem jsi jsme jsou k kam kde kdo když která které který ma má mám mě mezi mi mít můj
            moje může my na nad nám nás ne než nebo není o od on ona oni pak po pod podle pokud pro proč protože před při s se
            si sice své svůj ta tak také tam te tedy ten to tohle tom tu ty u už v ve však všechno vy z za ze že""",
        "turkish": """acaba ama ancak aslında az bana bazı ben beni benim bir biri biz bize bizim bu buna bunu bunun burada çok
            çünkü da daha de değil diye en gibi göre hem hep hepsi her hiç için ile ise kadar kim kime mi mı mu mü nasıl ne
            neden nerede niçin o olan olarak oldu olduğu olmak on ona onu onun sana sen seni senin siz sizin şey şimdi şu var
            ve veya ya yani yok""",
        "romanian": """a acea aceasta această aceea acel acest acesta ai aici al ale am ar are as asta au avea ca că când care
            ce cea cel cine cu cum da dar de decât deci despre din după e ea ei el ele era este eu eram fi fie fost foarte iar
            îi îl îmi în își între la le lor lui mai mă mea mei mele meu mi mult nici noastră nostru nu o pe pentru prin sa să
            sale sau se si și său sunt te tot tu un una unde unei unui va vă voi vor""",
        "hungarian": """a abban ahhoz akkor alatt által amely ami annak az azért azok azon azt azzal be csak de e egy egyik el
            elő én ennek és ez ezek ezt fel ha hanem hiszen hogy hogyan ide így ill illetve is itt ki kell le legyen lehet
            lenne lesz lett már meg mert mi mint mit most nagyon ne nekem neki nem nincs ő ők olyan össze pedig s sem szerint
            te tehát több úgy után vagy vagyok valami van vannak volt voltak""",
        "indonesian": """ada adalah agar akan aku anda apa apakah atau bagaimana bahwa banyak belum bisa bukan dalam dan dapat
            dari dengan di dia hanya harus ingin ini itu jadi jika juga kalau kami kamu karena kata ke kepada kita lagi lebih
            mana masih mengapa mereka namun nya oleh pada para saat saja sangat saya seperti sebagai sebuah secara sedang
            semua siapa sudah tapi telah tentang tersebut tetapi tidak untuk yang""",
        "catalan": """a al als amb aquell aquella aquest aquesta això així cada com d de del dels des després doncs el ell ella
            ells els em en entre era eren és et ets fa fins ha han has havia hi ho i ja jo l la les li lo meu meva meus molt
            molts no nosaltres o on per però perquè més què qual quan que qui sense ser seu seva si sobre sóc som són seus tan
            també te tenir teu teva tot tots tu un una uns us va vaig van vostre""",
        "russian": """а без более бы был была были было быть в вам вас вот все всего всех вы где да даже для до его ее её если
            есть еще ещё же за здесь и из или им их к как какая какой когда кто куда ли лучше между меня мне много может мой
            моя мы на над надо нас не него нее нет ни них но ну о об один он она они от очень по под после потом почему при
            про с сам свою себя со так также там те тебя тем то того тоже только том ты у уже хотя чего чей чем через что
            чтобы эта эти это этого этой этом этот эту я""",
        "arabic": """في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن أنا انا أنت انت ما ماذا متى أين اين
            كيف لماذا هل لا لم لن قد كان كانت يكون و أو او ثم أن ان إن كل بعض بين بعد قبل عند حتى إذا اذا لكن أي اي كما أيضا
            به بها له لها فيه فيها منه منها عليه عليها ليس غير""",
        "hindi": """का की के को में से है हैं था थी थे और या पर यह ये वह वे मैं हम तुम आप उस इस उन इन जो कि ने तो भी ही एक
            कौन क्या कब कहाँ कैसे क्यों हो होता होती होते हुआ हुई कर करना करने किया गया गई लिए साथ तक अपना अपनी अपने मेरा मेरी
            मेरे उसका उसकी उसके नहीं न ना वाला वाली वाले रहा रही रहे सकता जब तब अब""",
        "greek": """ο η το οι τα του τησ των τον την και κι να με σε από απο για στο στη στην στον στα στουσ στισ που πωσ πώσ τι
            ποιοσ ποια ποιο πού πότε γιατί δεν δε μη μην θα είναι ειναι ήταν εἶναι έχω έχει ένα ένασ μια μία αυτό αυτόσ αυτή
            αυτά εγώ εσύ εμείσ μου σου μασ σασ τουσ τισ αν αλλά ή είτε όταν όπωσ ωσ σαν πολύ τόσο πιο""",
    }.items()
}  # fmt: skip

# Function words that an English text may well contain as ordinary words or names: weaker evidence than their rarity suggests.
_ENGLISH_TOO = _listed(
    """ad ai al all alla also am are as at au be ben bin by can care come con da dare de den der des di die dig do dog doe don due e el
    en end er era es et eu fa far fast fi fin for fra from go ha ham has hat he her hi him his ho hun i il in ja jo kan la las le li
    lo los ma man mas me men met mi min mine mit mod moi most mot mu my na no nu o of om on one op or os over pa par pas per plus pour
    pro qui que se sees si sin sit so son su sur ta tag te tot the to ton top tu u un under up us va van var ve vi via voi vor want
    war was we wel who wie will wo y ya ze zo here"""
)


def _votes() -> dict[str, tuple[float, tuple[str, ...]]]:
    """Function word -> (weight, languages other than English that use it). The more languages share a word, the less it says."""
    users: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            users.setdefault(word, []).append(language)
    return {spelling: vote for word, languages in users.items() for spelling, vote in _ballots(word, languages)}


def _ballots(word: str, languages: list[str]) -> Iterable[tuple[str, tuple[float, tuple[str, ...]]]]:
    others = tuple(language for language in languages if language != "english" and _script_of(word) is None)
    if not others:
        return
    shared = len(others) + (2 if "english" in languages or word in _ENGLISH_TOO else 0)
    vote = (shared**-0.5, others)
    yield word, vote
    yield word.capitalize(), vote


_VOTES = _votes()
_CACHES = {language: _Words(language) for language in STOP_WORDS if _script_of(next(iter(STOP_WORDS[language]))) is None}
