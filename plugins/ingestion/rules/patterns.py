"""What a language brings to the rules engine: its rules, and the words that bend or cut what they
find.

A rule's pattern has the group `o` for the object, and one of `me`, `kin` (with `kinname`), `pron`,
`name` for the subject. `rel` names a relation where the rule has no predicate of its own, `before`
an object that the clause says is over, `kind` a detail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import regex as re


@cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.VERSION1)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, compiled when it is first needed: a start need not wait for those of
    all languages.
    """

    text: str

    @property
    def compiled(self) -> re.Pattern[str]:
        return _compiled(self.text)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of clauses, and the claim that one makes.

    predicate  "" when the group `rel` says it
    changes    the clause tells of a change, so a time in it is when the claim began
    dated      a time in the clause belongs to the claim (an event, a plan)
    ends       the clause says that it holds no more
    listed     the object may be an enumeration
    whole      the object is the rest of the clause, times included
    alone      once it matches, no further rule looks at the clause
    """

    predicate: str
    pattern: Pattern
    changes: bool = False
    dated: bool = False
    ends: bool = False
    listed: bool = False
    whole: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """What the engine needs to read a language.

    small_words   by which the language is recognised
    cut           where one clause ends and the next begins
    unsure        clauses that wonder, wish or suppose
    ended, denied "no longer", "not"
    since         words after which a time is when the claim began
    tail, end     what is trimmed off an object; off a whole one
    article       what is trimmed off its front
    enumeration   between the parts of an object
    introduction  groups rel and o: "my sister Clara"
    relatives     word -> predicate; genders: predicate -> "f" or "m"; pronouns: word -> gender
    i             how the speaker is the subject of a clause
    joint, elided "and" before a clause; a verb that begins one whose subject is the one before
    no_names, no_objects  words that look like a name, that say nothing as an object
    """

    code: str
    small_words: frozenset[str]
    rules: tuple[Rule, ...]
    cut: Pattern
    unsure: Pattern
    ended: Pattern
    denied: Pattern
    since: Pattern
    tail: Pattern
    end: Pattern
    article: Pattern
    enumeration: Pattern
    introduction: Pattern
    relatives: dict[str, str]
    i: str
    joint: Pattern
    elided: Pattern
    pronouns: dict[str, str] = field(default_factory=dict)
    no_names: frozenset[str] = frozenset()
    no_objects: frozenset[str] = frozenset()

    @property
    def genders(self) -> dict[str, str]:
        return GENDERS


GENDERS = {
    "sister": "f", "mother": "f", "daughter": "f", "grandmother": "f", "aunt": "f",
    "brother": "m", "father": "m", "son": "m", "grandfather": "m", "uncle": "m",
}  # fmt: skip
NAME = (
    r"(?!I\b)\p{Lu}[\p{L}\p{M}'’-]*"
    r"(?:\s+(?:(?:de|da|do|dos|del|della|di|van|von|la|le|el|al|bin|of|"
    r"the)\s+)?(?!I\b)\p{Lu}[\p{L}\p{M}'’.-]*){0,3}"
)


def rule(predicate: str, pattern: str, **further: bool) -> Rule:
    return Rule(predicate, Pattern(pattern), **further)


def words(*texts: str) -> frozenset[str]:
    """The words of some texts."""
    return frozenset(word for text in texts for word in text.split())


def related(**by_predicate: str) -> dict[str, str]:
    """Words for relatives by predicate -> word to predicate."""
    return {word: predicate for predicate, text in by_predicate.items() for word in text.split()}
