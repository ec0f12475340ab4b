"""Bounds of memories, their filters and their indexing, with the unit at the end of each name."""

from __future__ import annotations

from runtime.settings import Kept

# --- pages and batches ----------------------------------------------------------------------------
BATCH_ITEMS_MAX = 100
BULK_DELETE_MEMORIES_MAX = 500
LIST_OFFSET_MAX = 1_000_000_000
LISTED_SCOPES_MAX = 1_000  # users, agents, applications and runs on one page
LISTED_VALUES_MAX = 1_000  # of one field, on one page
MESSAGES_MAX = 100
IMPORT_LINES_MAX = 100_000

# --- memories -------------------------------------------------------------------------------------
CONTENT_CHARS_MAX = 100_000
TITLE_CHARS_MAX = 255
TAG_CHARS_MAX = 64
TAGS_MAX = 32
SCOPE_CHARS_MAX = 255
SOURCE_CHARS_MAX = 2_048
INDEXED_INLINE_CHARS_MAX = 4_096
MEMORIES_SWEPT_PER_STEP = 100
MEMORIES_MEASURED_PER_STEP = 500
EXPIRY_DELAY_MS = 60_000
INDEX_ATTEMPTS_MAX = 2_000

# --- erasing, export, import ----------------------------------------------------------------------
EXPORT_VERSIONS_MAX = 1_000  # of a memory, in one record
# Well below what a body may be, in bytes and in values.
EXPORT_VERSIONS_BYTES_MAX = 128 * 1024
IMPORT_VERSIONS_MAX = 10_000
VERSIONS_PER_MEMORY_MAX = 1_000_000_000

# --- filters --------------------------------------------------------------------------------------
FILTER_NODES_MAX = 256
FILTER_VALUES_MAX = 4_096  # in all lists of one filter
FILTER_NODES_LIGHT_MAX = 16  # a filter with more is heavy
FILTER_VALUES_LIGHT_MAX = 64
TEXTS_READ_MAX = 20_000  # memories whose texts one filter may read
TEXTS_COMPARED_MAX = 1_000_000  # memories times conditions
TEXT_CHARS_COMPARED_MAX = 200_000_000  # characters times conditions
TEXT_ROWS_AT_ONCE = 64
METADATA_VALUES_INDEXED_MAX = 256  # of one memory

# --- indexing -------------------------------------------------------------------------------------
PASSAGE_TOKENS_MAX = 200  # by estimate; well below what the embedded model reads
PASSAGES_PER_MEMORY_MAX = 192
PASSAGES_INDEXED_PER_STEP = 256  # by one step of an index job
# by estimate; several such requests must get through within one time limit of the embedder
EMBEDDED_TOKENS_PER_REQUEST_MAX = 4_000
WORD_VECTORS_PER_MEMORY_MAX = 1_024
TEXTS_VERIFIED_AT_ONCE_MAX = 256
RE_EMBEDDED_ROWS_PER_STEP = 64
RE_EMBED_ATTEMPTS_MAX = 2_000
VECTORS_FREED_PER_STEP = 500
VECTORS_FREED_AFTER_SECONDS = 60  # longer than a search may take

# --- what an account may keep, by its tier --------------------------------------------------------
TEXT_BYTES_KEPT = Kept(
    "text_bytes",
    "Bytes of memories' texts, tags and metadata, earlier versions included, that an account of "
    "the tier {tier} may keep",
    {"free": 100 * 1024**2, "starter": 2 * 1024**3, "pro": 10 * 1024**3, "scale": 50 * 1024**3},
    words="bytes of memories' texts and of their earlier versions",
    way_out="Delete memories that are not needed",
    place=20,
)
MEMORIES_KEPT = Kept(
    "memories",
    "Memories, those of documents and conversations included, that an account of the tier {tier} "
    "may keep",
    {"free": 10_000, "starter": 250_000, "pro": 1_000_000, "scale": 5_000_000},
    place=50,
)
