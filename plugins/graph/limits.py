"""Bounds of the knowledge graph, with the unit at the end of each name."""

from __future__ import annotations

from runtime.settings import Kept

ALIASES_MAX = 64
ALIAS_SOURCES_MAX = 8  # memories that are remembered to have given an entity a name
ENTITY_TYPE_CHARS_MAX = 64
GRAPH_DEPTH_MAX = 5
GRAPH_ITEMS_DEFAULT = 50
GRAPH_ITEMS_MAX = 500
CLAIMS_VISITED_MAX = 20_000
ENDS_PER_CLAIM_ITEMS_MAX = 1_000  # that are remembered
CLAIMS_COMPARED_MAX = 200
CLAIMS_PER_ENTITY_READ_MAX = 1_000
SOURCES_PER_CLAIM_MAX = 64
SOURCE_MEMORIES_SHOWN_MAX = 50
ENTITIES_IN_QUERY_MAX = 8
QUERY_WORDS_READ_MAX = 40
MEMORIES_PER_ENTITY_MAX = 100
GRAPH_CLAIMS_SEARCHED_MAX = 500
GRAPH_NODES_MAX = 4_000  # entities and memories around those that a search begins with
GRAPH_MEMORIES_EXPANDED_MAX = 200  # whose other entities are looked at, a hop
GRAPH_SEARCH_MS_MAX = 250  # for looking around
UNREAD_MEMORIES_SEARCHED_MAX = 256
ENTITIES_SWEPT_PER_STEP = 100
ENTITY_NAME_CHARS_MAX = 80
ENTITY_NAME_WORDS_MAX = 8
MENTIONS_PER_MEMORY_MAX = 64
MENTIONS_MOVED_MAX = 1_000  # of an entity that turns out to be another one
ENTITIES_NAMED_MAX = 10  # in an answer that asks which of them is meant
CLAIMS_MERGED_MAX = 50  # of an entity that somebody merges into another one, in a transaction
MENTIONS_MERGED_MAX = 200
READING_DELAY_MS = 200
MEMORIES_PASSED_MAX = 1_000  # memories that wait while later ones were read
READING_MEMORIES_PER_STEP = 16
READING_CHARS_PER_STEP_MAX = 8_000
READING_CHARS_PER_MEMORY_MAX = 20_000  # a longer one is read so far
READING_ATTEMPTS_MAX = 20
READING_YIELDS_SHARE = 0.25  # of a core, to what else the process does
READING_LOOK_SECONDS = 0.1
READING_LOOKS_MAX = 100  # so a step waits ten seconds at most

# --- what an account may keep, by its tier --------------------------------------------------------
ENTITIES_KEPT = Kept(
    "entities",
    "Entities of the knowledge graph that the API was asked for that an account of the tier {tier} "
    "may keep",
    {"free": 10_000, "starter": 250_000, "pro": 1_000_000, "scale": 5_000_000},
    place=70,
)
