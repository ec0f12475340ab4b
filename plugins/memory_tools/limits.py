"""Bounds of the files of the memory tool, with the unit at the end of each name."""

from __future__ import annotations

MEMORY_FILES_MAX = 1_000  # of one tree
LINES_NAMED_MAX = 100
ECHOED_CHARS_MAX = 200
MEMORY_PATH_CHARS_MAX = 1_024
MEMORY_PATH_DEPTH_MAX = 16
