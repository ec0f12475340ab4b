"""BM25 over postings that live in ordinary tables, so they commit together with the rows they
describe.

    index    the declaration, and the index inside one reader and one tenant
    stored   how its rows are laid out
    held     what searches of a large account keep of them in memory
    scoring  the compiled loops of a search
"""

from storage.indexes.lexical.index import BoundLexical, LexicalIndex
from storage.indexes.lexical.stored import OCCURRENCES_SCORED_MAX

__all__ = ["OCCURRENCES_SCORED_MAX", "BoundLexical", "LexicalIndex"]
