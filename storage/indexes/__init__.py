"""What is found by something other than its key: indexes over the ordinals of a tenant's rows.

    bitmap, filter    which ordinals carry a value, and conditions over values
    lexical           BM25 over the terms of texts
    vectors           the nearest of unit vectors
    word_vectors      how near documents come to each word of a query
    columns           records of a fixed size by ordinal
    resident_index    how the last two keep in memory what they derive from their rows
    change_tokens     where among ordinals something changed since somebody looked
    kept, applied     the files that large states leave for the next load, and when one is right
    builder           the thread that makes cells and writes such files
    ordinals, top_k   sets of ordinals, and the best of many scores
    kernels           how loops over them are compiled
    fetching          what they will read soon, asked for ahead
    processor         what they may use of it
    slots             what is built and forgotten where a slot comes and goes

An index is declared once (`Index` says what all share) and bound to a reader and a tenant. Its rows
are written in the transaction of what they describe.

Names are loaded when they are asked for: some of these files need a compiler or a library of
graphs, which a command that asks for bitmaps alone should not wait for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.indexes.bitmap import (
        PREFIX_CHARS_MAX,
        BitmapIndex,
        BoundBitmaps,
        StoredValue,
        Value,
    )
    from storage.indexes.change_tokens import ChangeTokens
    from storage.indexes.columns import BoundColumns, ColumnIndex
    from storage.indexes.fetching import write_fetch
    from storage.indexes.filter import AllOf, AnyOf, Between, Equals, Filter, Not
    from storage.indexes.index import Index
    from storage.indexes.kernels import (
        BOOL,
        FLOAT32,
        INT8,
        INT32,
        INT64,
        UINT16,
        UINT32,
        UINT64,
        exact,
        in_array,
        inline,
        kernel,
        load_kernels,
        out_array,
    )
    from storage.indexes.lexical import OCCURRENCES_SCORED_MAX, BoundLexical, LexicalIndex
    from storage.indexes.ordinals import Ordinals, among, ascending, ordinals_of, place_among
    from storage.indexes.processor import byte_products
    from storage.indexes.slots import build_for_slot, forget_tenants, tenants_known
    from storage.indexes.top_k import Scores, best
    from storage.indexes.vectors import BoundVectors, Scan, VectorIndex
    from storage.indexes.word_vectors import BoundWords, WordVectors

_ROOMS = {
    "bitmap": ("BitmapIndex", "BoundBitmaps", "PREFIX_CHARS_MAX", "StoredValue", "Value"),
    "change_tokens": ("ChangeTokens",),
    "columns": ("BoundColumns", "ColumnIndex"),
    "fetching": ("write_fetch",),
    "filter": ("AllOf", "AnyOf", "Between", "Equals", "Filter", "Not"),
    "index": ("Index",),
    "kernels": (
        "BOOL",
        "FLOAT32",
        "INT8",
        "INT32",
        "INT64",
        "UINT16",
        "UINT32",
        "UINT64",
        "in_array",
        "exact",
        "inline",
        "kernel",
        "load_kernels",
        "out_array",
    ),
    "lexical": ("OCCURRENCES_SCORED_MAX", "BoundLexical", "LexicalIndex"),
    "ordinals": ("Ordinals", "among", "ascending", "ordinals_of", "place_among"),
    "processor": ("byte_products",),
    "slots": ("build_for_slot", "forget_tenants", "tenants_known"),
    "top_k": ("Scores", "best"),
    "vectors": ("BoundVectors", "Scan", "VectorIndex"),
    "word_vectors": ("BoundWords", "WordVectors"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "BOOL",
    "FLOAT32",
    "INT8",
    "INT32",
    "INT64",
    "OCCURRENCES_SCORED_MAX",
    "PREFIX_CHARS_MAX",
    "UINT16",
    "UINT32",
    "UINT64",
    "AllOf",
    "AnyOf",
    "Between",
    "BitmapIndex",
    "BoundBitmaps",
    "BoundColumns",
    "BoundLexical",
    "BoundVectors",
    "BoundWords",
    "ChangeTokens",
    "ColumnIndex",
    "Equals",
    "Filter",
    "Index",
    "LexicalIndex",
    "Not",
    "Ordinals",
    "Scan",
    "Scores",
    "StoredValue",
    "Value",
    "VectorIndex",
    "WordVectors",
    "among",
    "ascending",
    "best",
    "build_for_slot",
    "byte_products",
    "exact",
    "forget_tenants",
    "in_array",
    "inline",
    "kernel",
    "load_kernels",
    "ordinals_of",
    "out_array",
    "place_among",
    "tenants_known",
    "write_fetch",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
