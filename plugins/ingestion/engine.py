"""The engine that needs no language model: facts of English from the trees of its sentences
(clauses/), those of other languages, and of English that no trees are read of, by patterns
(rules/).

It is made to be right rather than complete. What is injected into conversations from memory is left
out: what was recalled is not said anew.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain

from plugins.ingestion import clauses, rules
from plugins.ingestion.corrections import read_corrections, without_cues
from plugins.ingestion.facts import (
    CORRECTS,
    TAKES_BACK,
    Extraction,
    Fact,
    Said,
    supported,
)
from plugins.ingestion.limits import (
    FACTS_PER_JOB_MAX,
    READ_CHARS_MAX,
    RULES_SECONDS_MAX,
)
from runtime.inference import InferenceUnavailable, language
from runtime.long_work import aside

ReadLanguage = Callable[[Sequence[str]], Awaitable[list[language.Reading]]]
_UNREAD = language.Reading()
ENGLISH = "en"


class RuleEngine:
    """The Engine that needs no language model. read: Models.read_language; without it patterns
    alone are looked for.
    """

    def __init__(self, read: ReadLanguage | None = None):
        self._read = read

    async def extract(self, said: Sequence[Said], at: int, instructions: str | None) -> Extraction:
        """instructions are for a language model; rules know what they look for."""
        readings, degraded = await self._readings(said)
        facts, whole = await aside(_find, said, at, readings)
        if not whole:
            degraded = (*degraded, "the conversation was too long to be read to its end")
        return Extraction(facts, "rules", degraded)

    async def _readings(
        self, said: Sequence[Said]
    ) -> tuple[list[language.Reading], tuple[str, ...]]:
        """What is read of each message, and what went wrong."""
        asked = [
            index
            for index, one in enumerate(said)
            if one.told
            and len(one.content) <= READ_CHARS_MAX
            and rules.language_of(one.content) == ENGLISH
        ]
        readings = [_UNREAD] * len(said)
        if self._read is None or not asked:
            return readings, ()
        texts = [without_cues(rules.without_recalled(said[index].content)) for index in asked]
        try:
            read = await self._read(texts)
        except InferenceUnavailable:
            return readings, ("the sentences could not be read: patterns alone were looked for",)
        for index, reading in zip(asked, read, strict=True):
            readings[index] = reading
        return readings, ()


def find_facts(
    said: Sequence[Said], at: int, readings: Sequence[language.Reading] = ()
) -> list[Fact]:
    """The facts the rules find, in the order of the conversation, each with a span that bears it
    out. readings: of each message, or none.
    """
    return _find(said, at, readings or [_UNREAD] * len(said))[0]


def _find(
    said: Sequence[Said], at: int, readings: Sequence[language.Reading]
) -> tuple[list[Fact], bool]:
    """(facts, whether everything was read): at most FACTS_PER_JOB_MAX, and for at most
    RULES_SECONDS_MAX of this thread's processor time, so that a busy machine loses no facts.
    """
    deadline = time.thread_time() + RULES_SECONDS_MAX
    patterns, talk, found = rules.Talk(at), clauses.Talk(at), []
    for index, (one, reading) in enumerate(zip(said, readings, strict=True)):
        if not one.told:
            continue
        is_read = any(sentence.tokens for sentence in reading.sentences)
        if is_read:
            parts = clauses.read_facts(one.content, reading, one.speaker, index, talk)
        else:
            parts = rules.read_patterns(one, index, patterns)
        if is_read or rules.language_of(one.content) == ENGLISH:
            parts = chain([list(read_corrections(one, index))], parts)
        for part in parts:
            found += part
            if len(found) >= FACTS_PER_JOB_MAX or time.thread_time() > deadline:
                return _finished(found, said), False
    return _finished(found, said), True


def _finished(found: list[Fact], said: Sequence[Said]) -> list[Fact]:
    facts = supported(_without_repeats(found), said)
    return rules.in_whole_sentences(facts, said)


def _without_repeats(found: list[Fact]) -> list[Fact]:
    """Each claim once; the first mention counts, unless a later one says more about when."""
    kept: dict[tuple[str | int, ...], Fact] = {}
    for fact in found:
        key = (fact.subject.casefold(), fact.predicate, fact.object.casefold(), fact.polarity)
        if fact.predicate in (CORRECTS, TAKES_BACK):
            key = (*key, fact.source)  # each is about the statement before it
        if key not in kept or (kept[key].valid_from is None and fact.valid_from is not None):
            kept[key] = fact
    return list(kept.values())
