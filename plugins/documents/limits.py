"""Bounds of documents and of the parsers that read them, with the unit at the end of each name."""

from __future__ import annotations

from runtime.settings import Kept

BLOBS_ORPHANED_SECONDS = 3_600
BLOBS_SWEPT_PER_STEP = 1_000
DOCUMENTS_SWEPT_PER_STEP = 100
DOCUMENTS_BESIDE_MAX = 16
DOCUMENT_RESERVED_SECONDS_MAX = 7 * 24 * 3600
PARSERS_AT_ONCE_MAX = 2
PARSER_OUTPUT_BYTES_MAX = 128 * 1024 * 1024
PARSE_ATTEMPTS_MAX = 5
INDEX_ATTEMPTS_MAX = 2_000
CHUNK_TOKENS_MAX = 200
CHUNK_OVERLAP_TOKENS = 30
CHUNKS_MAX = 20_000
CHUNKS_PER_STEP = 64
TEXT_PIECE_CHARS = 16_384
RECORDING_PIECE_SECONDS_MAX = 300
PICTURES_PER_STEP = 4

# --- what an account may keep, by its tier --------------------------------------------------------
FILE_BYTES_KEPT = Kept(
    "file_bytes",
    "Bytes that the files of an account of the tier {tier}, and the texts read out of them, may "
    "have",
    {"free": 1024**3, "starter": 10 * 1024**3, "pro": 50 * 1024**3, "scale": 250 * 1024**3},
    place=10,
)
DOCUMENTS_KEPT = Kept(
    "documents",
    "Documents that an account of the tier {tier} may keep",
    {"free": 1_000, "starter": 10_000, "pro": 50_000, "scale": 250_000},
    place=60,
)
