"""A sentence with its words and what depends on them."""

from __future__ import annotations

from collections.abc import Container

import regex as re

from plugins.ingestion.clauses.mending import mended
from runtime.inference import language
from storage.text import word_set

# What a phrase has beside what it names: clauses about it, asides, further members of a list.
ASIDES = frozenset(
    {
        "acl:relcl", "acl", "advcl", "appos", "cc", "conj", "dep", "discourse", "dislocated",
        "parataxis", "punct", "vocative",
    }
)  # fmt: skip


# The same of what depends on such a phrase: lists belong to it.
INNER_ASIDES = frozenset(
    {"acl:relcl", "advcl", "dep", "discourse", "dislocated", "parataxis", "vocative", "punct"}
)


_TITLES = frozenset({"Mr", "Mrs", "Ms", "Miss", "Dr", "Prof", "Professor"})
_CLITIC = re.compile("['’]s")


def _with_copula(text: str, tokens: tuple[language.Token, ...]) -> tuple[language.Token, ...]:
    """The tokens, "'s" being read as "is" where a sentence without a verb cannot else be one: "my
    manager's Folasade", "the standup's at 10", not "Anna's birthday party". How sure that is, is
    how sure the arc of "'s" was.
    """
    if not tokens or not _CLITIC.search(text, tokens[0].start, tokens[-1].end):
        return tokens
    place = next((n for n, token in enumerate(tokens) if _is_clitic(text, token)), 0)
    if any(token.tag in ("VERB", "AUX") for n, token in enumerate(tokens) if n != place):
        return tokens
    if not place or place + 1 >= len(tokens) or tokens[place].head < 0:
        return tokens
    owner, after = tokens[place].head, tokens[place + 1]
    if owner > place and tokens[owner].tag in ("NUM", "ADJ"):  # "my sister Ana's 27"
        return _relabelled(tokens, {place: tokens[place]._replace(**_COPULA)})
    head = next((n for n in range(place + 1, len(tokens)) if tokens[n].head in (-1, owner)), None)
    if head is None or owner > place:
        return tokens
    opens = after.tag in ("DET", "ADP") or after.relation == "nmod:poss"
    ends = head == place + 1 and tokens[head].tag in ("NUM", "ADJ")
    named = tokens[head].tag == "PROPN" and tokens[owner].tag == "NOUN"
    if not (opens or ends or (named and head == place + 1)):
        return tokens
    changed = {
        owner: tokens[owner]._replace(
            head=head, relation="nsubj", certainty=tokens[place].certainty
        ),
        place: tokens[place]._replace(head=head, **_COPULA),
        head: tokens[head]._replace(head=-1, relation="root"),
    }
    return _relabelled(tokens, changed)


_COPULA = {
    "relation": "cop", "lemma": "be", "tag": "AUX",
    "features": frozenset({"Tense=Pres", "VerbForm=Fin"}),
}  # fmt: skip


# What somebody is towards something: "allergic to nuts".
_STATES = frozenset({("allergic", "to"), ("fond", "of"), ("terrified", "of"), ("afraid", "of")})


def _with_opening_state(
    text: str, tokens: tuple[language.Token, ...]
) -> tuple[language.Token, ...]:
    """The tokens, a state that a sentence opens with up to a mark being what it tells of who says
    it: "allergic to nuts, found out at school".
    """
    if len(tokens) < 3 or tokens[0].tag == "VERB" or (
        (tokens[0].lemma.casefold(), tokens[1].lemma) not in _STATES
    ):  # fmt: skip
        return tokens
    what = tokens[1].head
    if not 1 < what < len(tokens) or tokens[what].head != 0:
        return tokens
    end = what + 1
    if end < len(tokens) and tokens[end].tag != "PUNCT" and tokens[end].head != what:
        return tokens
    if any(token.head == 0 and token.relation in ("cop", "nsubj", "aux") for token in tokens):
        return tokens
    opening = tokens[0]._replace(
        tag="ADJ", lemma=tokens[0].lemma.casefold(), head=-1, relation="root"
    )
    return _relabelled(tokens, {0: opening, what: tokens[what]._replace(relation="obl")})


def _relabelled(
    tokens: tuple[language.Token, ...], changed: dict[int, language.Token]
) -> tuple[language.Token, ...]:
    return tuple(changed.get(n, token) for n, token in enumerate(tokens))


def _is_clitic(text: str, token: language.Token) -> bool:
    is_owners = token.tag == "PART" or (token.tag == "AUX" and token.relation == "case")
    return is_owners and text[token.start : token.end] in ("'s", "’s")


# What a clause is only announced by: "the thing is, …", "the good news is that …".
_ANNOUNCING = word_set("thing fact truth news problem trouble point catch reason issue upshot")


def _without_announcement(
    text: str, tokens: tuple[language.Token, ...]
) -> tuple[language.Token, ...]:
    """The tokens, "the thing is" being an aside where what it announces is read as a clause with
    two subjects.
    """
    for place, token in enumerate(tokens):
        after = place + 1
        if token.relation != "nsubj" or token.lemma not in _ANNOUNCING or (
            after >= len(tokens) or tokens[after].relation != "cop"
        ):  # fmt: skip
            continue
        head = token.head
        if tokens[after].head != head or text[tokens[after].start : tokens[after].end] != "is":
            continue
        own = [n for n in range(after + 1, len(tokens)) if tokens[n].head == head]
        if not any(tokens[n].relation.startswith("nsubj") for n in own if n < head):
            continue
        aside = [place, after, *(n for n in own if tokens[n].lemma == "that" and n == after + 1)]
        return _relabelled(tokens, {n: tokens[n]._replace(relation="discourse") for n in aside})
    return tokens


class Tree:
    """A sentence of a text. Tokens are named by their places in it."""

    def __init__(self, text: str, sentence: language.Sentence):
        self.text, self.sentence = text, sentence
        read = _without_announcement(text, _with_copula(text, sentence.tokens))
        self.tokens = mended(text, sentence, _with_opening_state(text, read))
        self.relations = [token.relation for token in self.tokens]
        self.children: list[list[int]] = [[] for _ in self.tokens]
        for place, token in enumerate(self.tokens):
            if token.head >= 0:
                self.children[token.head].append(place)

    def word(self, place: int) -> str:
        token = self.tokens[place]
        return self.text[token.start : token.end]

    def of(self, place: int, *relations: str) -> list[int]:
        """What depends on a token by one of these relations."""
        below = self.children[place]
        return [each for each in below if self.relations[each] in relations] if below else below

    def first(self, place: int, *relations: str) -> int | None:
        for each in self.children[place]:
            if self.relations[each] in relations:
                return each
        return None

    def phrase(
        self,
        place: int,
        without: Container[str] = ASIDES,
        inside: Container[str] = INNER_ASIDES,
    ) -> list[int]:
        """A token with all that depends on it, in order, but for what these relations lead to.

        without: from the token itself; inside: from what depends on it
        """
        found = [place]
        for each in found:
            left_out = without if each == place else inside
            found += [
                child for child in self.children[each] if self.relations[child] not in left_out
            ]
        return sorted(found)

    def opening(self, place: int) -> int:
        """The first token of the phrase that a token has."""
        left_out: Container[str] = ASIDES
        while True:
            before = next(
                (each for each in self.children[place] if self.relations[each] not in left_out),
                place,
            )
            if before >= place:
                return place
            place, left_out = before, INNER_ASIDES

    def text_of(self, places: list[int]) -> str:
        """The words of these tokens, as they stand in the text where nothing but marks is between
        them.
        """
        if not places:
            return ""
        parts, start = [], places[0]
        for before, after in zip(places, [*places[1:], None], strict=True):
            if after is None or any(
                self.tokens[each].tag not in ("PUNCT", "SYM") for each in range(before + 1, after)
            ):
                parts.append(self.text[self.tokens[start].start : self.tokens[before].end])
                start = after if after is not None else start
        return " ".join(" ".join(parts).split())

    def name(self, place: int, without: int | None = None) -> str:
        """The name that a token is part of, but for the token `without`."""
        for span in self.sentence.spans:
            if span.first <= place < span.last and span.kind != "time" and (
                without is None or not span.first <= without < span.last
            ):  # fmt: skip
                kept = list(range(span.first, span.last))
                while len(kept) > 1 and self.tokens[kept[-1]].tag in ("PART", "AUX", "PUNCT"):
                    kept.pop()
                return self.text_of(self._with_title(self._with_number(kept)))
        kept, after = {place, *self.of(place, "flat", "compound", "nummod")}, place + 1
        while after < len(self.tokens) and self.tokens[place].tag == "PROPN" and (
            self.tokens[after].tag == "PROPN"
        ):  # fmt: skip
            kept.add(after)
            after += 1
        return self.text_of(sorted(kept - {without}))

    def _with_title(self, kept: list[int]) -> list[int]:
        """A name with the title before it, "Mrs Oda"; a title alone with the name after it."""
        before, after = kept[0] - 1, kept[-1] + 1
        if before >= 0 and self.word(before).rstrip(".") in _TITLES:
            return [before, *kept]
        if after < len(self.tokens) and self.tokens[after].tag == "PROPN" and (
            self.word(kept[-1]).rstrip(".") in _TITLES
        ):  # fmt: skip
            return [*kept, after]
        return kept

    def _with_number(self, kept: list[int]) -> list[int]:
        """A name with the number that a hyphen joins to it: "INC-2291"."""
        mark, number = kept[-1] + 1, kept[-1] + 2
        if number < len(self.tokens) and self.is_joined(mark) and (
            self.tokens[number].tag == "NUM" and self.tokens[number].head in kept
        ):  # fmt: skip
            return [*kept, number]
        return kept

    def is_joined(self, place: int) -> bool:
        """Whether a token is a hyphen between two words, with no space around it."""
        token = self.tokens[place]
        around = self.text[token.start - 1 : token.start] + self.text[token.end : token.end + 1]
        return self.word(place) == "-" and len(around) == 2 and around.isalnum()

    def kind(self, place: int) -> str | None:
        """What kind of thing a token is said to be, by the span it lies in."""
        return next(
            (span.kind for span in self.sentence.spans if span.first <= place < span.last), None
        )

    def is_in_small_letters(self) -> bool:
        """Whether names are written like other words here."""
        return self.text[self.sentence.start : self.sentence.end].islower()

    def is_time(self, place: int) -> bool:
        return self.kind(place) == "time"

    def certainty(self, *places: int | None) -> float:
        """How sure the arcs of these tokens are: as the least sure of them."""
        return min(self.tokens[place].certainty for place in places if place is not None)

    def has(self, place: int, feature: str) -> bool:
        return feature in self.tokens[place].features
