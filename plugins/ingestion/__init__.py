"""Smart ingestion: a conversation goes in; what was said and what can be learned from it come out.

    sentences.py, salience.py             where sentences end; which turns have something to say
    facts.py                              what a fact is
    engine.py, language_model.py          the two engines that find them: rules, or a language model
    clauses/, rules/                      what the rules read: the trees of English sentences; the
                                          patterns of other languages
    corrections.py, taking_back.py        what corrects the statement before it, and which that is
    countries.py, spelling.py             which places are countries; one spelling for a noun
    statements.py, classification.py      turns and facts as they are compared with what is known,
                                          and how they stand to that
    resolution.py, superseding.py,        doing what follows: ADD, UPDATE, DELETE, NOOP; what has no
    successors.py                         claim left; and what follows when a memory goes
    duplicates.py                         near duplicates: one memory stands for several, and can be
                                          parted from them
    job.py                                the job: load, extract, settle
    rereading.py                          the claims of a memory whose text was edited
    process.py                            POST /v1/memories/process, undo
    create.py                             POST /v1/memories with `infer`
    audit.py                              what could be tidied: duplicates, stale and unused
                                          memories; merging
    tiers.py                              short_term, long_term, archived
    privacy.py                            what is erased and exported

Choices:
- The memory of a turn is its text, whole and verbatim. Facts are derived from it, rest on it and
  go with it; nothing of them replaces it. Every memory is made of whole sentences, and none is
  finer than its sentence: one that tells two things holds until both are over.
- A turn is left out as a whole or not at all. What is left out is counted by reason.
- A message of role assistant, system or tool is context: nothing is learned from it.
- A nameless user's facts are about the end user's id when one is given, else about `user`.
- A memory has the role of the message that says it first; a text without messages counts as the
  user's, unless a create gives it a role.
- `Prefer: wait=N` does the work in the request, for at most N and at most 30 seconds; when that
  runs out the job does it.
- A statement that says that something known holds no more is a DELETE: it is stored, and supersedes
  what it ends.
- A correction is about its speaker's statement directly before it on the same occasion, and takes
  back what that alone says: "forget that" deletes nothing.
- A job is undone by deleting what it created: what those memories had superseded holds again.
"""

from __future__ import annotations

from plugins.collections import COLLECTIONS_DROPPED
from plugins.ingestion import audit, create, privacy, process, rereading, successors, tiers
from plugins.ingestion.create import INGESTED
from plugins.ingestion.job import JOB, forget_memory, on_cleared, on_dropped, on_updated
from plugins.ingestion.settings import IngestionSettings
from plugins.ingestion.spelling import in_one_spelling
from plugins.ingestion.store import CLAIMS_CHANGED, FactRow, facts_of
from plugins.ingestion.tiers import TIER_CHANGED
from plugins.ingestion.tools import TOOLS
from plugins.memories import (
    MEMORIES_ACCESSED,
    MEMORY_CREATED,
    MEMORY_DELETED,
    MEMORY_UPDATED,
)
from runtime.api.plugin import Plugin

__all__ = ["FactRow", "facts_of", "in_one_spelling", "plugin"]

plugin = Plugin(
    name="ingestion",
    requires=("memories", "collections", "graph", "search"),
    tools=TOOLS,
    operations=(*process.OPERATIONS, *audit.OPERATIONS),
    replaces=(create.operation(),),
    settings={"ingestion": IngestionSettings},
    tables=privacy.TABLES,
    events=(CLAIMS_CHANGED, INGESTED, TIER_CHANGED),
    subscribe={
        MEMORY_DELETED.kind: forget_memory,
        MEMORY_UPDATED.kind: on_updated,
        MEMORY_CREATED.kind: tiers.on_life,
        MEMORIES_ACCESSED.kind: tiers.on_life,
        "internal.memories_cleared": on_cleared,
        COLLECTIONS_DROPPED.kind: on_dropped,
        "internal.handed_on": successors.on_handed_on,
    },
    jobs=(JOB, rereading.JOB, tiers.JOB),
    erase=privacy.erase,
    export=privacy.export,
)
