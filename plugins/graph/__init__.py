"""The knowledge graph: who and what the memories speak of, and how they relate, on two clocks.

The operations are in operations.py, what they do in queries.py. What is stored, and how it changes,
is in rows.py, store.py, merging.py and forgetting.py; the figures in statistics.py. Every memory is
read for whom it mentions: reading.py has the job, mentions.py says what a mention is, noting.py
whose. Searching is in search.py, and what is near in proximity.py.

Choices:
- An entity is looked up by id, name or alias; among several of a name, the one most spoken of is
  meant. A name that is given without a type means any entity of that name.
- What is created through the API stays until it is deleted, unless it names a source memory: then
  it goes with that memory.
- A functional claim may be made beside another one: both stand and are listed as a contradiction.
  `close_previous` ends the earlier ones where the new one begins (at valid_from, else now) instead.
- Statistics count the claims that stand; a claim that has ended stands, one that was taken back
  does not.
- When a memory is superseded without anybody ending its claims, they are taken back; restoring it
  brings them back.
- An entity is what a memory names, whose things somebody owns, or what the API was asked to make.
  What claims alone speak of ("likes | karaoke") is a value: found by its name and at the ends of
  its claims, and in no list of entities.
- An entity is the same for the whole account; "my sister" is that of whoever speaks.
- A question that names both an entity and a target is answered with the claims on the ways between
  them.
"""

from __future__ import annotations

from plugins.collections import COLLECTION_CLEANUP
from plugins.graph import operations, privacy, queries, reading, search, unread
from plugins.graph.forgetting import forget_memory
from plugins.graph.limits import ENTITIES_KEPT
from plugins.graph.mentions import Mentioned, mentioned_by
from plugins.graph.models import GRAPH_WRITE
from plugins.graph.noting import note_stored
from plugins.graph.restoring import RESTORE
from plugins.graph.rows import (
    FUNCTIONAL,
    GRAPH_IDS,
    INDEXES,
    TABLES,
    UNKNOWN_TYPE,
    EntityRow,
    RelationshipRow,
)
from plugins.graph.settings import GraphSettings
from plugins.graph.store import (
    Claim,
    assert_claim,
    begin_claim,
    claims_of,
    end_claim,
    ensure_entity,
    get_claim,
    get_entities,
    named,
    note_bound,
    part_claim,
    refreshed,
    support_claim,
)
from plugins.graph.tools import TOOLS
from plugins.graph.unread import read_at_once
from plugins.memories import MEMORY_CREATED, MEMORY_DELETED, MEMORY_UPDATED
from runtime.api.plugin import Plugin
from runtime.api.tiers import Feature

__all__ = [
    "FUNCTIONAL",
    "UNKNOWN_TYPE",
    "Claim",
    "EntityRow",
    "Mentioned",
    "RelationshipRow",
    "assert_claim",
    "begin_claim",
    "claims_of",
    "end_claim",
    "ensure_entity",
    "forget_memory",
    "get_claim",
    "get_entities",
    "mentioned_by",
    "named",
    "note_bound",
    "note_stored",
    "part_claim",
    "plugin",
    "read_at_once",
    "refreshed",
    "support_claim",
]

plugin = Plugin(
    name="graph",
    id_prefixes=("ent", "rel"),
    records=dict.fromkeys(("ent", "rel"), lambda ctx, its_id: ctx[GRAPH_IDS].has(its_id)),
    requires=("memories", "collections", "search"),
    settings={"graph": GraphSettings},
    tools=TOOLS,
    operations=(*operations.OPERATIONS, *search.OPERATIONS),
    tables=TABLES,
    indexes=INDEXES,
    events=(queries.GRAPH_CHANGED,),
    jobs=(reading.READ_JOB,),
    catch_up=reading.CATCH_UP,
    # What was added since has a default.
    migrations={(table, 1): lambda row: row for table in ("graph_entities", "graph_relationships")},
    subscribe={
        MEMORY_CREATED.kind: reading.on_created,
        MEMORY_DELETED.kind: queries.on_deleted,
        MEMORY_UPDATED.kind: queries.on_updated,
        COLLECTION_CLEANUP.kind: queries.sweep_collection,
    },
    retrievers=(search.RETRIEVER,),
    features={
        "graph_write": GRAPH_WRITE,
        "graph_query": Feature(
            "Deep queries and contradictions of the knowledge graph", tier="starter"
        ),
    },
    figures=privacy.figures,
    keeps=(ENTITIES_KEPT,),
    checks=(unread.CHECK,),
    erase=privacy.erase,
    export=privacy.export,
    restore=RESTORE,
)
