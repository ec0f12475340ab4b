"""Which language a text is written in: that of its function words."""

from __future__ import annotations

from collections.abc import Iterable

from storage.text.scripts import script_of
from storage.text.stop_words import ENGLISH_TOO, STOP_WORDS

VOTING_WORDS_MAX = 256
TEXT_EVIDENCE, QUERY_EVIDENCE = 1.5, 1.0
ENGLISH_MARGIN = 1.2


def language_of(tokens: list[str], evidence: float) -> str:
    """The language of a text's Latin words: English unless function words of another outweigh
    it.
    """
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
    against = sum(
        _VOTES[token][0] if token in _VOTES else 1.0 for token in voters if token.lower() in english
    )
    return best if tally[best] > ENGLISH_MARGIN * against else "english"


def _votes() -> dict[str, tuple[float, tuple[str, ...]]]:
    """Function word -> (weight, languages other than English that use it). The more languages share
    a word, the less it says.
    """
    users: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            users.setdefault(word, []).append(language)
    return {
        spelling: vote
        for word, languages in users.items()
        for spelling, vote in _ballots(word, languages)
    }


def _ballots(
    word: str, languages: list[str]
) -> Iterable[tuple[str, tuple[float, tuple[str, ...]]]]:
    others = tuple(
        language for language in languages if language != "english" and script_of(word) is None
    )
    if not others:
        return
    shared = len(others) + (2 if "english" in languages or word in ENGLISH_TOO else 0)
    vote = (shared**-0.5, others)
    yield word, vote
    yield word.capitalize(), vote


_VOTES = _votes()
