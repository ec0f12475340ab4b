"""Texts as a search sees them: their terms, their language's stop words, their passages.

    analyze                  the terms that an index stores of a text
    read_query, query_terms  what a search needs to know of a query, all at once; its terms alone
    content_words, Matcher   words at their places in a text, for excerpts that show why it matched
    Speller, slip_shape      which of the words it knows a word may be a slip of the fingers for;
                             what words one slip apart have in common
    is_english               whether it is written in English
    is_remembered            whether what is found out of a word may be kept for all accounts
    passages                 a long text in parts that a model reads whole
    estimated_tokens         about how many tokens a text is
    DIGIT, may_hold          whether it has a digit; whether an expression may be in it at all

Pure functions, which know no index, no tenant and no storage.
"""

from storage.text.analysis import (
    ContentWord,
    Matcher,
    QueryText,
    analyze,
    content_words,
    is_english,
    is_remembered,
    query_terms,
    read_query,
)
from storage.text.glance import DIGIT, may_hold
from storage.text.passages import ASCII_PER_TOKEN, estimated_tokens, passages
from storage.text.spelling import Speller, slip_shape
from storage.text.stop_words import STOP_WORDS, word_set

__all__ = [
    "ASCII_PER_TOKEN",
    "DIGIT",
    "STOP_WORDS",
    "ContentWord",
    "Matcher",
    "QueryText",
    "Speller",
    "analyze",
    "content_words",
    "estimated_tokens",
    "is_english",
    "is_remembered",
    "may_hold",
    "passages",
    "query_terms",
    "read_query",
    "slip_shape",
    "word_set",
]
