"""Smart ingestion: a conversation goes in, what can be learned from it comes out (specification part 4, Memories).

    plugins/facts.py, fact_*.py      what a fact is, and the two engines that find them: rules, or a language model
    plugins/fact_resolution.py       comparing with what is known: ADD, UPDATE, DELETE, NOOP
    plugins/fact_merging.py          near duplicates: one memory stands for several, and can be parted from them
    plugins/ingestion_job.py         the job: load, extract, settle
    plugins/ingestion_process.py     POST /v1/memories/process, undo
    plugins/ingestion_create.py      POST /v1/memories with `infer`
    plugins/memory_audit.py          what could be tidied: duplicates, stale and unused memories; merging
    plugins/memory_tiers.py          short_term, long_term, archived

Choices where the specification is silent:
- A message of role assistant, system or tool is context: nothing is learned from it.
- A nameless user's facts are about the end user's id when one is given, else about `user`.
- `Prefer: wait=N` does the work in the request, for at most N and at most 30 seconds; when that runs out the job does it.
- A statement that says that something known holds no more is a DELETE: it is stored, and supersedes what it ends.
- A job is undone by deleting what it created: what those memories had superseded holds again.
"""

from __future__ import annotations

from plugins import ingestion_create, ingestion_process, memory_audit, memory_tiers
from plugins.ingestion_job import JOB, forget_memory, on_updated
from plugins.memory_accesses import MEMORIES_ACCESSED
from plugins.memory_store import MEMORY_CREATED, MEMORY_DELETED, MEMORY_UPDATED
from runtime.operation import WriteContext
from runtime.plugin import Plugin


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove every claim, every waiting conversation and the tiers' alarm. Counts of rows by table."""
    return ingestion_process.erase(ctx) | memory_tiers.erase(ctx)


plugin = Plugin(
    name="ingestion",
    requires=("memories", "collections", "graph", "search"),
    operations=(*ingestion_process.OPERATIONS, *memory_audit.OPERATIONS),
    replaces=(ingestion_create.operation(),),
    tables=(*ingestion_process.TABLES, *memory_tiers.TABLES),
    events=(ingestion_create.INGESTED, memory_tiers.TIER_CHANGED),
    subscribe={
        MEMORY_DELETED.kind: forget_memory,
        MEMORY_UPDATED.kind: on_updated,
        MEMORY_CREATED.kind: memory_tiers.on_life,
        MEMORIES_ACCESSED.kind: memory_tiers.on_life,
    },
    jobs=(JOB, memory_tiers.JOB),
    erase=erase,
    export=ingestion_process.export,
)
