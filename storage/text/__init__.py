"""Texts as a search sees them: their terms, their language's stop words, their passages.

    analyze, query_terms     the terms that an index stores of a text; those that a query asks for
    query_language           the language that a query's Latin words speak
    content_words, Matcher   words at their places in a text, for excerpts that show why it matched
    spellings                words that one slip of the fingers makes of a word
    passages                 a long text in parts that a model reads whole
    estimated_tokens         about how many tokens a text is

Pure functions, which know no index, no tenant and no storage.
"""

from storage.text.analysis import (
    ContentWord,
    Matcher,
    analyze,
    content_words,
    query_language,
    query_terms,
)
from storage.text.passages import ASCII_PER_TOKEN, estimated_tokens, passages
from storage.text.spelling import spellings
from storage.text.stop_words import STOP_WORDS, word_set

__all__ = [
    "ASCII_PER_TOKEN",
    "STOP_WORDS",
    "ContentWord",
    "Matcher",
    "analyze",
    "content_words",
    "estimated_tokens",
    "passages",
    "query_language",
    "query_terms",
    "spellings",
    "word_set",
]
