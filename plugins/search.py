"""Search: from a question to the memories that answer it (specification part 4, Search).

One snapshot serves the whole request. Channels propose candidates inside the *universe*, the bitmap of memories that are live
and pass every filter, so that what a filter excludes is never scored:

    lexical    the best by BM25
    semantic   the nearest vectors
    …          retrievers of other plugins, declared in the registry

The candidates and their session neighbours are then ranked by plugins/ranking.py and hydrated from the same snapshot. The
embedding of the query is made before, outside any snapshot; when it is late or its backend is down, the search goes on
lexically and says `degraded`.

Honest answers: scores are absolute, and results too weak to stand are not padded out to `limit`. They are dropped, and when
nothing is left the answer is `no_match`, unless the caller asks for weak results, which then come flagged.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator
from pyroaring import BitMap

from plugins import ranking
from plugins.collections import require_collection
from plugins.memories import Memory
from plugins.memory_store import MEMORIES, MEMORY_FIELDS, MEMORY_TEXT, MEMORY_VECTORS, MemoryRow, find_ordinal, live, scoped
from plugins.search_views import SearchReply, hit_view
from runtime.errors import NotFound
from runtime.inference import InferenceUnavailable, Models
from runtime.limits import CANDIDATES_PER_CHANNEL_MAX, QUERY_CHARS_MAX, SCOPE_CHARS_MAX, SEARCH_ITEMS_DEFAULT, SEARCH_ITEMS_MAX, SEARCH_OFFSET_MAX
from runtime.operation import Body, Call, Kind, Operation, Query, ReadContext
from runtime.plugin import Plugin
