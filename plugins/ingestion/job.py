"""The job that turns a conversation into memories: load, extract outside any transaction, settle
inside one.

    load      the conversation, from `ingestion_inputs` or as it was handed in
    prepare   facts, by the language model if one is configured, else by the rules; which turns
              are kept; then the index of every text
    handler   compare and store (plugins/ingestion/resolution.py), in the transaction that completes
              the job

The same three steps serve a request that waits for its result: its own load, prepare and handler
call them, and the job is stored as completed in the write that did its work. A dry run settles in a
child transaction and takes it back.

Inputs are kept only while a job needs them. What a job's result says of a memory is blanked when
that memory is deleted.

    ingestion_inputs  (key,) -> Conversation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from plugins.collections import CollectionNotFound, require_collection
from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Extraction, Said
from plugins.ingestion.language_model import ModelEngine
from plugins.ingestion.rereading import read_anew
from plugins.ingestion.resolution import settle
from plugins.ingestion.settings import IngestionSettings
from plugins.ingestion.statements import Count, ResolutionOutcome, Statement, Target, statements
from plugins.ingestion.store import FACT, FACTS, TURN, facts_of_turn
from plugins.ingestion.successors import forget_memory as forget_claims
from plugins.ingestion.texts import Texts
from plugins.memories import delete_memories, find_row, leave_out_text
from runtime.api import jobs, metering
from runtime.api.conditions import holds_for
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.inference import Models
from storage.store import Table

PROCESS = "memories.process"
NOT_READ = frozenset({"assistant", "system", "tool", "function", "developer"})


class Conversation(msgspec.Struct, omit_defaults=True):
    """What is ingested. messages: (role, name or None, content); fields: MemoryRow fields that all
    its memories have.
    """

    messages: list[tuple[str, str | None, str]]
    occurred_at: int
    fields: dict[str, Any] = {}
    collection_id: str | None = None
    instructions: str | None = None
    dry_run: bool = False

    @property
    def said(self) -> list[Said]:
        """The messages as an engine reads them; a nameless user is known by the end user's id."""
        nameless = self.fields.get("user_id")
        return [
            Said(
                name or (nameless if role == "user" and nameless else role),
                text,
                role not in NOT_READ,
                role,
            )
            for role, name, text in self.messages
        ]


class Addressee(msgspec.Struct):
    """What of a Conversation says which memories it will become. Its text, which may be most of a
    request's ten megabytes, is not read.
    """

    fields: dict[str, Any] = {}
    collection_id: str | None = None


_addressee = msgspec.msgpack.Decoder(Addressee).decode

INPUTS: Table[Conversation] = Table(
    "ingestion_inputs", key=("key",), row=Conversation, doc="conversations that wait for their job"
)


@dataclass(slots=True)
class Prepared:
    """A conversation with what was found in it."""

    conversation: Conversation
    found: Extraction
    statements: list[Statement]
    count: Count


def load(ctx: ReadContext, payload: Mapping[str, Any]) -> tuple[Conversation | None, float]:
    """The conversation, None when it is gone, because everything of its end user or its account was
    deleted; and from which salience its turns are kept.
    """
    return ctx[INPUTS].get(payload["key"]), IngestionSettings.of(ctx.settings).salience_min


async def prepare(
    steps: JobSteps,
    loaded: tuple[Conversation | None, float],
    payload: Mapping[str, Any],
    models: Models,
) -> Prepared | None:
    conversation, salience_min = loaded
    return None if conversation is None else await extract(conversation, models, salience_min)


async def extract(conversation: Conversation, models: Models, salience_min: float) -> Prepared:
    """Find the facts, index what is kept, and read whom it mentions, by one run of the model for a
    text. Without an embedder the memories become searchable, and are read, later.
    """
    said, texts = conversation.said, Texts(models)
    await texts.take_in((one.speaker, one.content) for one in said if one.told)
    engine = RuleEngine(texts.read)
    if models.language_model is not None:
        engine = ModelEngine(models.language_model, engine)
    found = await engine.extract(said, conversation.occurred_at, conversation.instructions)
    wanted, count = statements(found.facts, said, salience_min)
    await texts.prepare(wanted, said, conversation.fields)
    return Prepared(conversation, found, wanted, count)


def finish(ctx: WriteContext, payload: Mapping[str, Any]) -> dict[str, Any] | jobs.GiveUp:
    """The handler: store what is new, and forget the input. An input that went while it was read is
    not wanted any more.
    """
    if not ctx[INPUTS].delete(payload["key"]) or ctx.prepared is None:
        return jobs.GiveUp("What it was to store was deleted before it was stored.")
    try:
        return settled(ctx, ctx.prepared, ctx.call.request_id)
    except CollectionNotFound:
        return jobs.GiveUp("The collection was deleted before this could be stored.")


def settled(ctx: WriteContext, prepared: Prepared, job_id: str) -> dict[str, Any]:
    """Store what is new of a conversation, or rehearse it; -> the job's result. Raises
    CollectionNotFound where its collection was deleted meanwhile.
    """
    conversation = prepared.conversation
    collection = require_collection(ctx, conversation.collection_id)
    target = Target(collection, conversation.fields, conversation.occurred_at, job_id)
    if conversation.dry_run:
        return result_of(_rehearsed(ctx, prepared, target), prepared.found, prepared.count)
    outcome = settle(ctx, prepared.statements, conversation.said, target)
    metering.require_left(ctx, len(outcome.created))
    ctx.credits += len(outcome.created)  # beside those of the call
    return result_of(outcome, prepared.found, prepared.count)


def _rehearsed(ctx: WriteContext, prepared: Prepared, target: Target) -> ResolutionOutcome:
    """What settling would do. Memories that it would make have no id."""
    said = prepared.conversation.said
    outcome = ctx.rehearse(lambda within: settle(within, prepared.statements, said, target))
    for event in outcome.events:
        if event["event"] != "NOOP" or event["memory_id"] in outcome.created:
            event["memory_id"] = None
        event.pop("merged_memory_id", None)
    return outcome


def result_of(outcome: ResolutionOutcome, found: Extraction, count: Count) -> dict[str, Any]:
    """Turn an outcome into the result of the job."""
    count.left_out["duplicate"] = outcome.repeated
    result = {
        "facts_extracted": len(found.facts),
        "memories_created": len(outcome.created),
        "memories_updated": outcome.updated,
        "memories_invalidated": outcome.invalidated,
        "skipped": outcome.skipped,
        "events": outcome.events,
        "statements": count.view(),
        "entities": len(outcome.entities),
        "relationships": len(outcome.relationships),
        "engine": found.engine,
    }
    return result | ({"degraded": list(found.degraded)} if found.degraded else {})


def give_up(ctx: WriteContext, payload: Mapping[str, Any], reason: str) -> None:
    ctx[INPUTS].delete(payload["key"])


def enqueue(ctx: WriteContext, conversation: Conversation) -> str:
    """Have it done in the background, in a concurrency group of the account's: a language model may
    take minutes; -> the job's id.
    """
    key = ctx.next_ordinal("ingestion_inputs")
    ctx[INPUTS].put((key,), conversation)
    return ctx.enqueue(PROCESS, {"key": key}, group=f"ingestion/{ctx.principal.tenant_id}")


def complete_now(ctx: WriteContext, prepared: Prepared) -> jobs.JobRow:
    """Do it in this very transaction, and store the job as completed; -> its row."""
    job_id = ctx.enqueue(PROCESS, {})
    jobs.begin(ctx, job_id)
    jobs.complete(ctx, job_id, lambda within, payload: settled(within, prepared, job_id))
    return jobs.row(ctx, job_id)


def forget_memory(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a deleted memory has no claims, gives back what it superseded, and is quoted by
    no job.
    """
    for job_id in forget_claims(ctx, resource_id):
        found = jobs.find(ctx, job_id)
        if found is None or not isinstance(found[1].result, dict):
            continue
        ordinal, row = found
        for event in row.result.get("events", ()):
            leave_out_text(event, lambda memory_id: memory_id == resource_id)
        ctx[jobs.JOBS].put((ordinal,), row)


def on_cleared(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: where all memories of an end user, a session or an account are deleted, what
    waits to become such memories goes with them.
    """
    inputs, default = ctx[INPUTS], require_collection(ctx, None).id
    for key in list(inputs.keys()):  # one at a time: together they may not fit the memory
        raw = inputs.get_raw(*key)
        assert raw is not None  # it is this transaction that deletes
        waiting = _addressee(raw)
        of: dict[str, str | None] = {name: waiting.fields.get(name) for name in data["scopes"]}
        of["collection_id"] = waiting.collection_id or default
        if data["collection_id"] not in (None, of["collection_id"]):
            continue
        if any(value not in (None, of[name]) for name, value in data["scopes"].items()):
            continue
        # It has no more than these yet: nobody knows which other conditions it will pass.
        if holds_for(data["filters"], of):
            inputs.delete(*key)


def on_dropped(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: the default collection stays when it is emptied, but what waits to get into it
    goes. Jobs of other collections find them gone.
    """
    default = require_collection(ctx, None).id
    if default in data["ids"]:
        cleared = {"collection_id": default, "scopes": {}, "filters": {}}
        on_cleared(ctx, event_id, kind, cleared, resource_id)


def on_updated(
    ctx: WriteContext, event_id: str, kind: str, data: Mapping[str, Any], resource_id: str
) -> None:
    """Subscriber: a memory whose text was rewritten makes none of the claims that were found in the
    old one, and no fact rests on it; what was ingested is read anew.
    """
    row = find_row(ctx, resource_id)
    if row is not None and row.version > 1 and row.content_version == row.version:
        claimed = ctx[FACTS].delete_prefix(resource_id)
        delete_memories(ctx, facts_of_turn(ctx, row))
        if claimed or row.source_type in (FACT, TURN):
            read_anew(ctx, row)


JOB = Job(
    PROCESS,
    finish,
    load=load,
    prepare=prepare,
    failed=give_up,
    retry=RetryStrategy(attempts=5, base_ms=1_000, max_ms=60_000),
    listed=True,
)
