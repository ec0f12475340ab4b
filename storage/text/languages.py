"""Which language a text is written in."""

from __future__ import annotations

from storage.text.analysis import TEXT_EVIDENCE, VOTING_WORDS_MAX, language_of, tokens_of
from storage.text.stop_words import STOP_WORDS


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
