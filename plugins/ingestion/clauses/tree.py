"""A sentence with its words and what depends on them."""

from __future__ import annotations

from collections.abc import Container

from runtime.inference import language

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


def _with_copula(text: str, tokens: tuple[language.Token, ...]) -> tuple[language.Token, ...]:
    """The tokens, "'s" being read as "is" where a sentence without a verb cannot else be one: "my
    manager's Folasade", "the standup's at 10", not "Anna's birthday party". How sure that is, is
    how sure the arc of "'s" was.
    """
    if any(token.tag in ("VERB", "AUX") for token in tokens):
        return tokens
    place = next((n for n, token in enumerate(tokens) if _is_clitic(text, token)), 0)
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


def _relabelled(
    tokens: tuple[language.Token, ...], changed: dict[int, language.Token]
) -> tuple[language.Token, ...]:
    return tuple(changed.get(n, token) for n, token in enumerate(tokens))


def _is_clitic(text: str, token: language.Token) -> bool:
    return token.tag == "PART" and text[token.start : token.end] in ("'s", "’s")


class Tree:
    """A sentence of a text. Tokens are named by their places in it."""

    def __init__(self, text: str, sentence: language.Sentence):
        self.text, self.sentence = text, sentence
        self.tokens: tuple[language.Token, ...] = _with_copula(text, sentence.tokens)
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
                return self.text_of(kept)
        kept, after = {place, *self.of(place, "flat", "compound", "nummod")}, place + 1
        while after < len(self.tokens) and self.tokens[place].tag == "PROPN" and (
            self.tokens[after].tag == "PROPN"
        ):  # fmt: skip
            kept.add(after)
            after += 1
        return self.text_of(sorted(kept - {without}))

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
