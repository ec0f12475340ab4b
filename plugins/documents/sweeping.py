"""What nobody needs any more goes in bounded steps: files, those of documents that failed too, the
rows of deleted documents, dropped collections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from plugins.collections import CLEANUP_ROWS_PER_STEP, Sweep
from plugins.documents.limits import (
    BLOBS_ORPHANED_SECONDS,
    BLOBS_SWEPT_PER_STEP,
    DOCUMENTS_SWEPT_PER_STEP,
)
from plugins.documents.settings import DocumentsSettings
from plugins.documents.store import (
    DOCUMENT_BLOBS,
    DOCUMENT_FIELDS,
    DOCUMENT_SWEEP,
    DOCUMENTS,
    FAILED,
    PARTS,
    DocumentRow,
    concurrency_group_of,
    content_key,
    remove,
    remove_file_of,
)
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.plugin import Job
from runtime.api.steps import JobSteps
from runtime.installation import blob_store
from storage.blobs import BlobStore


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing a dropped collection's documents. A step as large as ours
    leaves no allowance for others.

    Their memories are members of the collection too, and go as such.
    """
    step = min(data.rows_left, DOCUMENTS_SWEPT_PER_STEP)
    if step <= 0:
        return
    members = ctx.index(DOCUMENT_FIELDS).of("collection", data.number)[:step]
    for row in ctx[DOCUMENTS].rows([(ordinal,) for ordinal in members]):
        remove(ctx, row)
    data.erased("documents", len(members))
    if len(members) == step:
        data.rows_left = 0


def remove_file_later(ctx: WriteContext, row: DocumentRow) -> None:
    """Have the file of a document that failed removed, unless it is tried again before."""
    ctx.enqueue(
        "documents.failed_file",
        {"ordinal": row.ordinal, "version": row.version},
        delay_ms=DocumentsSettings.of(ctx.settings).failed_file_kept_seconds * 1000,
        group=concurrency_group_of(ctx, "files"),
    )


def remove_failed_file(ctx: WriteContext, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The job `documents.failed_file`: nothing, where the document is gone or was tried again."""
    row = ctx[DOCUMENTS].get(payload["ordinal"])
    if row is None or (row.status, row.version) != (FAILED, payload["version"]):
        return {"removed": False}
    remove_file_of(ctx, row)
    return {"removed": True}


def look_for_orphans(ctx: WriteContext) -> None:
    """Have, now and then, a job look for files that no document needs: of uploads whose end nobody
    learnt.
    """
    last = ctx[DOCUMENT_SWEEP].get()
    if last is None or int.from_bytes(last, "big") + BLOBS_ORPHANED_SECONDS * 1000 <= ctx.now:
        ctx[DOCUMENT_SWEEP].put((), ctx.now.to_bytes(8, "big"))
        ctx.enqueue("documents.orphans", {"unlink": []}, group=concurrency_group_of(ctx, "files"))


def _load_sweep(ctx: ReadContext, payload: Mapping[str, Any]) -> tuple[BlobStore, str]:
    return blob_store(ctx.settings), ctx.principal.tenant_id


async def _unlink(
    steps: JobSteps, loaded: tuple[BlobStore, str], payload: Mapping[str, Any], models: Any
) -> None:
    """Remove the files. A name is never used twice, so a file that nobody needs is needed by nobody
    ever after.
    """
    blobs, owner = loaded
    for name in payload["files"]:
        await asyncio.to_thread(blobs.remove, owner, name)


def sweep(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `documents.sweep`: files that lost their last document, and in bounded steps what a
    deleted document left behind.
    """
    left = CLEANUP_ROWS_PER_STEP
    erased = {"files": len(payload["files"]), **payload["erased"]}
    if payload["ordinal"] is not None:
        for table in PARTS:
            for key in list(ctx[table].keys(payload["ordinal"], limit=left)):
                ctx[table].delete(*key)
                erased[table.name] = erased.get(table.name, 0) + 1
                left -= 1
            if left == 0:
                return Again({**payload, "files": [], "erased": erased})
    return {"erased": erased}


async def _find_old(
    steps: JobSteps, loaded: tuple[BlobStore, str], payload: Mapping[str, Any], models: Any
) -> list[str]:
    """Unlink what the step before was sure about; -> names that are old enough for their upload to
    be over.
    """
    blobs, owner = loaded
    for name in payload["unlink"]:
        await asyncio.to_thread(blobs.remove, owner, name)
    return (
        []
        if payload["unlink"]
        else await asyncio.to_thread(
            blobs.older, owner, BLOBS_ORPHANED_SECONDS, BLOBS_SWEPT_PER_STEP
        )
    )


def sweep_orphans(ctx: WriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `documents.orphans`: of the old files, those whose name stands in no row."""
    if payload["unlink"]:
        return {"orphans": len(payload["unlink"])}
    kept = {
        name: ctx[DOCUMENT_BLOBS].get(content_key(ctx, name.partition("-")[0]))
        for name in ctx.prepared
    }
    needed = {name for name, row in kept.items() if row is not None and row.name == name}
    orphans = [name for name in ctx.prepared if name not in needed]
    return Again({"unlink": orphans}) if orphans else {"orphans": 0}


JOBS = (
    Job("documents.sweep", sweep, load=_load_sweep, prepare=_unlink, cleanup=True),
    Job("documents.failed_file", remove_failed_file),
    Job("documents.orphans", sweep_orphans, load=_load_sweep, prepare=_find_old),
)
