"""What a text mentions: entities by their names, and things that somebody owns.

A mention is a noun phrase, and nothing else is one. Either it has a proper name, which the language
heads found as a span ("the Blue Heron lighthouse", "Ines Moreau"), or it is a concrete noun with an
owner who is known ("my sister", "Ana's van"). Pronouns, verbs, times, nationalities and abstract
nouns are none. A word that is written large only where a sentence begins may be any word there: as
a name it counts where the account knows it as one.

Whose things are "my" things, the speaker says: "my sister" of Mira is "Mira's sister". Where text
names her too ("my sister Ana", "Ana, my sister", "my sister is Ana") it is Ana, also called Mira's
sister.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plugins.graph.limits import (
    ENTITY_NAME_CHARS_MAX,
    ENTITY_NAME_WORDS_MAX,
    MENTIONS_PER_MEMORY_MAX,
)
from plugins.graph.rows import UNKNOWN_TYPE
from runtime.inference import language
from storage.text import word_set

CERTAINTY_MIN = 0.25  # of a span, which then says what a name stands for
SURE_CERTAINTY_MIN = 0.5
FIRST_CERTAINTY_MIN = 0.9  # of a span that is the first word of its sentence
OWNED_CERTAINTY_MIN = 0.4  # of the arc from what is owned to its owner
NAMED_KINDS = frozenset(["person", "place", "organization", "event", "work", "animal", "object"])
OWNED_KINDS = frozenset(["person", "place", "organization", "animal", "object"])
# Parts of a body, and what is told of once, or of everybody: nothing one could meet again by this.
_PASSING = word_set(
    """hand arm leg foot eye ear nose mouth face head hair heart body back skin finger toe knee
    ankle shoulder chest stomach tummy belly brain blood bone tooth teeth lip neck throat voice
    breath tear fault turn rest whole self own thing stuff one lot bit side end part kind sort way
    step pic picture photo page line footstep place space area spot corner zone center centre haven
    sanctuary world life live soul generation community society country state nation city seat tip
    set pocket road path journey tour audience viewer reader other everyone everybody people person
    guy dude buster rock player opponent rival fan fanbase shooter character volunteer veteran
    customer outlet dish yoga vibe environment atmosphere surroundings level base
    mind dream idea hope goal thought feeling memory name job work spirit energy health mood style
    taste wallet"""
)
# Words that are written large inside a sentence and name nobody.
_NO_NAMES = word_set(
    """i me my mine you your he him she her it we us our they them their this that these those who
    what which there here yes no ok okay god lord hey hi wow oh lol omg btw tv pm am mr mrs ms dr
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat
    sun january february march april june july august september october november december jan feb
    mar apr jun jul aug sep sept oct nov dec today tomorrow yesterday c'mon please thanks zen
    r&r"""
)
_OPENING, _CLOSING = frozenset('"“«'), frozenset('"”»')
_LINKS = frozenset(["of", "the", "de", "la", "van", "von", "der", "&"])
_NAME_TAGS = frozenset(["PROPN", "NOUN", "ADJ", "VERB", "NUM", "X"])
_ABBREVIATED = word_set("dr mr mrs ms prof st mt ft jr sr gen col capt rev hon no vol")
_LIVING = frozenset(["person", "animal"])
_MINE = frozenset(["my", "our"])
_WHITE_MARKS = "\"'“”‘’«»`*_-–—()[]{}<>#@~,.:;!?…|/\\"


NAMELESS = "user"  # who speaks where nobody says who


class Mention(NamedTuple):
    """Somebody or something that a text speaks of.

    name     as it is written, without articles
    kind     person, place, organization, event, work, animal or object
    aliases  what the text, or its owner, calls it besides
    is_sure  whether it is a mention by what the text shows; else it is one where the account knows
             the name
    """

    name: str
    kind: str
    aliases: tuple[str, ...] = ()
    is_sure: bool = True


class Mentioned(NamedTuple):
    """What a memory mentions. was_read: whether its text is of a language that is read."""

    mentions: list[Mention]
    was_read: bool


def mentioned_by(
    text: str,
    reading: language.Reading,
    *,
    speaker: str | None,
    role: str | None,
    user_id: str | None,
) -> Mentioned:
    """What the memory of a text mentions, by what was read of it, and by who speaks and as what.
    Whoever speaks of themselves by "I" mentions themselves.
    """
    # Whose "my" things its are: nobody's where an assistant or a tool speaks.
    owner = None if role not in (None, "user") else speaker or user_id or NAMELESS
    tokens = [token for sentence in reading.sentences for token in sentence.tokens]
    themselves = []
    if owner is not None and speaker not in (None, NAMELESS):
        speaks = any("Person=1" in token.features for token in tokens)
        themselves = [Mention(speaker, "person")] if speaks else []
    found = mentions_of(text, reading, owner) if tokens else _named_abroad(text)
    return Mentioned(themselves + found, bool(tokens))


def _named_abroad(text: str) -> list[Mention]:
    """The entities of a text in a language of which names alone are read, each once."""
    found: dict[str, Mention] = {}
    for name in language.names(text):
        called = text[name.start : name.end].strip(_WHITE_MARKS)
        if len(called) <= ENTITY_NAME_CHARS_MAX and len(found) < MENTIONS_PER_MEMORY_MAX:
            kind = name.kind or UNKNOWN_TYPE
            found.setdefault(called.casefold(), Mention(called, kind))
    return list(found.values())


def mentions_of(text: str, reading: language.Reading, speaker: str | None) -> list[Mention]:
    """The entities that a text mentions, each once, in order; at most MENTIONS_PER_MEMORY_MAX.
    speaker: whose "my" is, None where nobody knows.
    """
    found: dict[str, Mention] = {}
    for sentence in reading.sentences:
        for mention in _Mentions(text, sentence, speaker):
            key = mention.name.casefold()
            before = found.get(key)
            if before is not None:
                mention = before._replace(
                    aliases=tuple(dict.fromkeys((*before.aliases, *mention.aliases))),
                    is_sure=before.is_sure or mention.is_sure,
                )
            elif len(found) == MENTIONS_PER_MEMORY_MAX:
                return list(found.values())
            found[key] = mention
    return list(found.values())


class _Mentions:
    """The mentions of one sentence."""

    def __init__(self, text: str, sentence: language.Sentence, speaker: str | None):
        self._text, self._sentence, self._speaker = text, sentence, speaker
        self._tokens = sentence.tokens
        self._first = next(
            (at for at, token in enumerate(self._tokens) if self._word(at)[0].isalnum()), 0
        )
        self._shouts = self._is_shouting()

    def __iter__(self) -> Iterator[Mention]:
        named = dict(self._named())
        for head, alias, kind in self._owned():
            beside = (at for at in self._names_beside(head) if at in named)
            namesake = next((at for at in beside if self._agree(at, named[at], kind)), None)
            if namesake is None:
                if head not in named:
                    yield Mention(alias, kind)
                continue
            mention = named[namesake]
            merged = mention._replace(aliases=(*mention.aliases, alias), is_sure=True)
            if mention.kind == UNKNOWN_TYPE:
                merged = merged._replace(kind=kind)
            named |= {at: merged for at, each in named.items() if each is mention}
        yield from dict.fromkeys(named.values())

    def _agree(self, at: int, mention: Mention, kind: str) -> bool:
        """Whether a name may be that of an owned thing of this kind, and addresses nobody."""
        if self._tokens[at].relation == "vocative":
            return False
        if mention.kind == UNKNOWN_TYPE:
            return True
        return (kind in _LIVING) == (mention.kind in _LIVING)

    # --- names ------------------------------------------------------------------------------------

    def _named(self) -> Iterator[tuple[int, Mention]]:
        """(token, mention) for each token of each name."""
        at = 0
        while at < len(self._tokens):
            end = self._end_of_title(at)
            if end > at:
                title = self._phrase(at, end)
                mention = Mention(title, "work") if _is_name(title, end - at) else None
            else:
                end = self._end_of_name(at)
                mention = self._name(at, end) if end > at else None
            if mention is not None:
                for number in range(at, end):
                    yield number, mention
            at = max(end, at + 1)

    def _end_of_title(self, at: int) -> int:
        """Where a title in quotation marks ends, of several words with large ones at both ends;
        `at` where none begins there.
        """
        if not at or self._word(at - 1) not in _OPENING or not self._word(at)[0].isupper():
            return at
        for end in range(at + 2, min(at + ENTITY_NAME_WORDS_MAX + 1, len(self._tokens))):
            if self._word(end) in _CLOSING:
                return end if self._word(end - 1)[0].isupper() else at
        return at

    def _end_of_name(self, at: int) -> int:
        """Where a run of words written large ends that has a proper name in it; `at` where none
        begins there.
        """
        if self._shouts or not self._is_large(at):
            return at
        end = at
        while end < len(self._tokens):
            if self._is_large(end) or (end > at and self._tokens[end].tag == "NUM"):
                end += 1
                if self._ends_sentence(end - 1):
                    break
                continue
            further = self._after_link(end) if end > at else end
            if further == end:
                break
            end = further
        return end if any(self._tokens[each].tag == "PROPN" for each in range(at, end)) else at

    def _ends_sentence(self, at: int) -> bool:
        """Whether a word has the full stop of its sentence, and no abbreviation's: "Max." """
        word = self._small(at)
        return word.endswith(".") and word.count(".") == 1 and (
            len(word) > 2 and word[:-1] not in _ABBREVIATED
        )  # fmt: skip

    def _after_link(self, at: int) -> int:
        """Behind "of", "of the", a hyphen and the like, where a large word follows; else `at`."""
        end = at
        if self._word(at) == "-" and self._tokens[at].start == self._tokens[at - 1].end:
            tight = at + 1 < len(self._tokens) and (
                self._tokens[at + 1].start == self._tokens[at].end
            )
            return at + 1 if tight and self._is_large(at + 1) else at
        while end < len(self._tokens) and end - at < 2 and self._word(end) in _LINKS:
            end += 1
        linked = at < end < len(self._tokens) and self._word(at) != "the"
        return end if linked and self._is_large(end) else at

    def _is_large(self, at: int) -> bool:
        token, word = self._tokens[at], self._word(at)
        if not word[0].isupper() or token.tag not in _NAME_TAGS:
            return False
        return token.tag == "PROPN" or at != self._first

    def _name(self, first: int, end: int) -> Mention | None:
        span = self._span(first, end)
        head = next(
            (at for at in range(first, end) if not first <= self._tokens[at].head < end), first
        )
        last = end + self._goes_on(end, first, span)
        kind = self._kind_of(head, last - 1, span)
        if kind == "time" or self._tokens[head].relation == "discourse":
            return None
        if span is None and last == end and self._modifies_noun(head, end):
            return None
        name = self._phrase(first, last)
        if not _is_name(name, last - first):
            return None
        is_sure = (
            first != self._first
            or (end - first > 1 and self._tokens[end - 1].tag == "PROPN")
            or self._is_surely_named(first, span)
        )
        if kind not in NAMED_KINDS:
            kind = UNKNOWN_TYPE
            if not is_sure:
                return None
        aliases = (self._phrase(first, end),) if last > end and end - first > 1 else ()
        return Mention(name, kind, aliases, is_sure)

    def _kind_of(self, head: int, last: int, span: language.Span | None) -> str:
        """What a name's span says, or, where that is not sure of it, its head."""
        if span is not None and span.certainty >= SURE_CERTAINTY_MIN:
            return span.kind
        kinds = (_kind(self._tokens[head]), span.kind if span else "", _kind(self._tokens[last]))
        return next((kind for kind in kinds if kind in NAMED_KINDS or kind == "time"), "")

    def _is_surely_named(self, at: int, span: language.Span | None) -> bool:
        """Whether the first word of a sentence is a name by more than its size."""
        if span is None or span.kind not in ("person", "place"):
            return False
        is_owner = at + 1 < len(self._tokens) and self._tokens[at].relation == "nmod:poss"
        return span.certainty >= (SURE_CERTAINTY_MIN if is_owner else FIRST_CERTAINTY_MIN)

    def _modifies_noun(self, head: int, end: int) -> bool:
        """Whether words written large only describe a noun, as in "a Zen garden"."""
        token = self._tokens[head]
        return token.relation in ("compound", "amod") and token.head >= end

    def _span(self, first: int, end: int) -> language.Span | None:
        """The span that has most of these tokens."""
        shared = [
            (min(span.last, end) - max(span.first, first), span.certainty, span)
            for span in self._sentence.spans
            if span.certainty >= CERTAINTY_MIN and span.first < end and span.last > first
        ]
        return max(shared, default=(0, 0.0, None))[2]

    def _goes_on(self, at: int, first: int, span: language.Span | None) -> bool:
        """Whether the noun at `at` belongs to the name before it: "the Blue Heron lighthouse"."""
        if at >= len(self._tokens) or (span and span.certainty >= SURE_CERTAINTY_MIN):
            return False
        noun, before = self._tokens[at], self._tokens[first:at]
        is_definite = first > 0 and self._small(first - 1) == "the"
        kinds = ("place", "organization", "object") if is_definite else ("place", "organization")
        return (
            noun.tag == "NOUN"
            and "Number=Sing" in noun.features
            and _kind(noun) in kinds
            and noun.lemma not in _PASSING
            and any(token.head == at for token in before)
        )

    def _is_shouting(self) -> bool:
        words = [self._word(at) for at in range(len(self._tokens))]
        long = [word for word in words if word.isalpha() and len(word) > 1]
        return len(long) > 2 and sum(word.isupper() for word in long) > len(long) / 2

    # --- what is owned ----------------------------------------------------------------------------

    def _owned(self) -> Iterator[tuple[int, str, str]]:
        """(its token, what it is called, its kind) of each thing with an owner."""
        for at, token in enumerate(self._tokens):
            if token.relation == "nmod:poss" and token.head >= 0:
                called = self._called(token.head, at, hops=2)
                if called is not None:
                    kind = _kind(self._tokens[token.head])
                    yield token.head, called, kind

    def _called(self, head: int, owner: int, hops: int) -> str | None:
        """What the thing at `head` is called after its owner; None where it is no entity."""
        thing, by = self._tokens[head], self._tokens[owner]
        if (
            thing.tag != "NOUN"
            or _kind(thing) not in OWNED_KINDS
            or thing.lemma in _PASSING
            or by.certainty < OWNED_CERTAINTY_MIN
            or owner > head
        ):
            return None
        if self._small(owner) == "our" and "Number=Plur" in thing.features:
            return None  # of whom, nobody knows: "our schools"
        whose = self._owner(owner, hops)
        if whose is None:
            return None
        first = head
        while first - 1 > owner and self._modifies(first - 1, head):
            first -= 1
        name = f"{whose}'s {self._phrase(first, head + 1)}"
        return name if _is_name(name, head + 1 - first) else None

    def _modifies(self, at: int, head: int) -> bool:
        token = self._tokens[at]
        return token.relation == "compound" and token.head == head and token.tag == "NOUN"

    def _owner(self, at: int, hops: int) -> str | None:
        token = self._tokens[at]
        if token.tag == "PRON":
            return self._speaker if token.lemma in _MINE or self._small(at) in _MINE else None
        if token.tag == "PROPN":
            mention = dict(self._named()).get(at)
            return None if mention is None or mention.kind != "person" else mention.name
        if hops > 1 and token.tag == "NOUN":
            for number, further in enumerate(self._tokens):
                if further.head == at and further.relation == "nmod:poss":
                    return self._called(at, number, hops - 1)
        return None

    def _names_beside(self, head: int) -> Iterator[int]:
        """Tokens that may be the name of the thing at `head`."""
        thing = self._tokens[head]
        is_listed = any(each.head == head and each.relation == "cc" for each in self._tokens)
        if thing.relation in ("appos", "conj") and 0 <= thing.head < head and not is_listed:
            yield thing.head
        if head + 1 < len(self._tokens):
            following = self._tokens[head + 1]
            if following.head == head or (following.head, following.relation) == (
                thing.head,
                thing.relation,
            ):
                yield head + 1  # "my sister Ana", whatever the tree makes of it
        for at in range(head + 2, len(self._tokens)):
            if self._tokens[at].head == head and self._tokens[at].relation == "appos":
                yield at
        if thing.relation == "nmod:poss" and self._tokens[thing.head].lemma == "name":
            thing = self._tokens[thing.head]  # "my sister's name is Ana"
        if thing.relation == "nsubj" and thing.head > head and self._is_copular(thing.head):
            yield thing.head

    def _is_copular(self, at: int) -> bool:
        children = [token for token in self._tokens if token.head == at]
        return any(token.relation == "cop" for token in children) and not any(
            token.relation in ("advmod", "case") for token in children
        )

    # --- words ------------------------------------------------------------------------------------

    def _word(self, at: int) -> str:
        token = self._tokens[at]
        return self._text[token.start : token.end]

    def _small(self, at: int) -> str:
        return self._word(at).casefold()

    def _phrase(self, first: int, end: int) -> str:
        words = self._text[self._tokens[first].start : self._tokens[end - 1].end]
        return " ".join(words.split()).strip(_WHITE_MARKS)


def _kind(token: language.Token) -> str:
    return next((each[5:] for each in token.features if each.startswith("Kind=")), "")


def _is_name(name: str, words: int) -> bool:
    return (
        words <= ENTITY_NAME_WORDS_MAX
        and 1 < len(name) <= ENTITY_NAME_CHARS_MAX
        and sum(char.isalpha() for char in name) > 1
        and name.casefold() not in _NO_NAMES
        and not (name[:-1].isupper() and name[-1] == "s")
    )
