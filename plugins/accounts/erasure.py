"""Erasing an account for good, and the receipts of everything that was swept.

Owns the end of an account. It does not know what an account holds: it goes through every table and
index the registry has, and asks each plugin's `erase` for what lies elsewhere.

`DELETE /v1/account` is one transaction, after which nobody gets in: the account becomes a tombstone
without e-mail, name or password, its keys and tokens are refused, its jobs do not run, and what was
under way is thrown away at its commit. The job `account.erase` belongs to the slot, since its
tenant is gone. It takes away, in bounded steps,

    rows      what may be many and tells of nothing else: indexes, jobs, events, and the tables that
              plugins name in `swept`
    hooks     what each plugin's own `erase` finds: its other tables, rows of the slot, files,
              resident indexes, checkpoints; before it, what its `retain` keeps in tables of the
              slot, such as invoices without a person
    rest      any row of the tenant that is left in any table, whatever plugin it is of, or was of
              before that was removed
    key       the tenant's data key, by overwriting it: copies of rows in freed pages, in crashes
              and in backups become noise

and leaves a receipt for each store, with a word on every other place that may still have something.
It can be read, with the secret text that the DELETE gave, by whoever has that text: there is no
account left to log in to. Receipts name stores and numbers and nobody, so they are kept for good.

Smaller sweeps leave receipts too: `GET /v1/account/receipts` lists the cleanup jobs of an account
that lives.

Closing the account, its receipt and the slot's job are the runtime's (runtime/api/erasures.py); how
an account is swept is told here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

import msgspec
from pydantic import ConfigDict, Field

from plugins.accounts import limits
from plugins.accounts.sessions import check_fresh
from runtime.api import erasures, jobs, tenants
from runtime.api.context import Installed, ReadContext, WriteContext
from runtime.api.jobs import Again
from runtime.api.operation import Body, Idempotency, Query, Read, View, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, newest_first
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.errors import BadRequest, NotFound
from runtime.limits import ID_CHARS_MAX
from runtime.timestamps import iso
from storage.store import Table

CONFIRMATION = "erase-account"
# What an erasure does not reach, and why it need not or cannot.
RETAINED = {
    "free pages": (
        "Texts in them, and vectors, are sealed with the key that was overwritten. Digests and "
        "numbers stay in the data file until its pages are used again, or until it is replaced by "
        "a compacted copy, such as a backup that is restored."
    ),
    "backups": (
        "A backup from before has its own copy of the wrapped key; delete backups by your own "
        "schedule."
    ),
    "credits of the month": (
        "How many credits the account had used, by a keyed digest of its address, so that they are "
        "not given out once more; it goes with the month."
    ),
    "logs": "They name operations and request ids, and hold no contents.",
}
# The same, of what an installation may use.
IN_OBJECT_STORE = (
    "Segments of the log and snapshots of before hold the sealed rows, and the wrapped key, which "
    "opens them together with the service's secret, until two snapshots have been taken since. A "
    "state of before that is restored from them has this erasure repeated."
)
AT_ENDPOINTS = (
    "They were sent texts, or recordings and pictures; what they keep is for them to say."
)
_ENDPOINTS = ("embedder", "llm", "reranker", "transcriber", "ocr")


class EraseQuery(Query):
    model_config = ConfigDict(
        json_schema_extra={"required": ["confirm"]}
    )  # its absence is 400, not 422
    confirm: str | None = Field(default=None, description=f"Must be `{CONFIRMATION}`.")


class Erased(View):
    deleted: Literal[True] = Field(description="Nobody can log in or read anything from now on.")
    receipt: str = Field(
        description=(
            "Opens the receipts of the erasure, at POST /v1/account/receipts. It is shown this "
            "once."
        )
    )
    status: Literal["queued"] = Field(description="The stores are swept in the background.")


class ReceiptText(Body):
    receipt: str = Field(
        min_length=1,
        max_length=ID_CHARS_MAX,
        description="What the DELETE of the account answered.",
    )


class StoreReceipt(View):
    store: str = Field(description="A table, an index, or another place where data lies.")
    outcome: Literal["erased", "retained"] = Field(description="What became of it.")
    count: int | None = Field(description="How many rows were erased; null for what is retained.")
    reason: str | None = Field(description="Why it is retained.")


class Erasure(View):
    status: Literal["processing", "completed"] = Field(
        description="`completed` when every store was swept and the key is gone."
    )
    requested_at: str = Field(description="When the account was deleted (ISO 8601).")
    finished_at: str | None = Field(description="When the last store was swept (ISO 8601).")
    receipts: list[StoreReceipt] = Field(description="One entry for each store.")


class CleanupReceipt(View):
    job_id: str = Field(description="The cleanup job.")
    cause: str = Field(description="What is cleaned up after, such as `collections.cleanup`.")
    status: Literal["queued", "processing", "completed", "failed"] = Field(
        description="Where it stands."
    )
    created_at: str = Field(description="When the deletion was asked for (ISO 8601).")
    finished_at: str | None = Field(description="When the last store was swept (ISO 8601).")
    receipts: list[StoreReceipt] = Field(description="What was swept so far, by store.")


# --- asking ---------------------------------------------------------------------------------------


def erase_account(ctx: WriteContext, body: None) -> Erased:
    if ctx.query.confirm != CONFIRMATION:
        raise BadRequest(
            f"This erases the account and all it holds: confirm with ?confirm={CONFIRMATION}.",
            param="confirm",
        )
    check_fresh(ctx)
    return Erased(deleted=True, receipt=erasures.begin(ctx), status="queued")


def read_erasure(ctx: SlotReadContext, body: ReceiptText) -> Erasure:
    row = erasures.find(ctx, body.receipt)
    if row is None:
        raise NotFound("There is no erasure with this receipt.", param="receipt")
    receipts = _receipts(row.erased)
    receipts += [
        StoreReceipt(store=store, outcome="retained", count=None, reason=reason)
        for store, reason in _retained(ctx, row.erased).items()
    ]
    return Erasure(
        status="processing" if row.finished_at is None else "completed",
        requested_at=iso(row.requested_at),
        finished_at=None if row.finished_at is None else iso(row.finished_at),
        receipts=receipts,
    )


def _retained(ctx: SlotReadContext, erased: Mapping[str, int]) -> dict[str, str]:
    """Say, by place, why something of the account may still be there, in this installation."""
    found, settings = dict(RETAINED), ctx.settings
    if settings.object_store.url is not None:
        found["object store"] = IN_OBJECT_STORE
    asked = [name for name in _ENDPOINTS if getattr(settings, name).base_url is not None]
    if asked:
        found[f"model endpoints ({', '.join(asked)})"] = AT_ENDPOINTS
    for plugin in ctx.registry.plugins:
        if plugin.kept_elsewhere is not None:
            found |= plugin.kept_elsewhere(settings, erased)
    return found


def list_receipts(ctx: ReadContext, body: None) -> dict[str, Any]:
    cleanups = [job.name for job in ctx.registry.jobs.values() if job.cleanup]
    found = ctx.index(jobs.JOB_FIELDS).any_of("name", cleanups)
    page, following = newest_first(ctx, found)
    rows = ctx[jobs.JOBS].rows([(ordinal,) for ordinal in page])
    return envelope(ctx, [_cleanup(row) for row in rows], following, len(found))


def _cleanup(row: jobs.JobRow) -> CleanupReceipt:
    result = row.result or row.payload
    counts = (
        result.get("erased") or result.get("receipts") or {"memories": result.get("deleted", 0)}
    )
    return CleanupReceipt.model_validate(
        {
            "job_id": row.id,
            "cause": row.name,
            "status": row.status,
            "created_at": iso(row.created_at),
            "finished_at": None if row.finished_at is None else iso(row.finished_at),
            "receipts": _receipts(counts),
        }
    )


def _receipts(counts: Mapping[str, int]) -> list[StoreReceipt]:
    return [
        StoreReceipt(store=store, outcome="erased", count=count, reason=None)
        for store, count in sorted(counts.items())
    ]


# --- erasing --------------------------------------------------------------------------------------


def erase_step(ctx: SlotWriteContext, payload: Mapping[str, Any]) -> Again | dict[str, Any]:
    """The job `account.erase`, in the scope of the slot: one bounded step. See the module docstring
    for the order.
    """
    number, erased = payload["tenant"], dict(payload["erased"])
    following = step = payload["step"]
    if step == "rows":
        if _erase_rows(ctx, number, _to_sweep(ctx.registry), erased):
            following = "hooks"
    elif step == "hooks":
        _run_hooks(ctx, number, erased)
        following = "rest"
    elif step == "rest":
        left = (*ctx.registry.tables.values(), *ctx.tables_of_nobody())
        if _erase_rows(ctx, number, left, erased):
            following = "key"
    else:
        # Alone in its step: a crash after it repeats it, and nothing that comes before it needs the
        # key again.
        ctx.shred(number)
        erased["data key"] = 1
    receipt = bytes.fromhex(payload["receipt"])
    finished_at = ctx.now if step == "key" else None
    row = msgspec.structs.replace(
        ctx[erasures.ERASURES].row(receipt), erased=erased, finished_at=finished_at
    )
    ctx[erasures.ERASURES].put((receipt,), row)
    return (
        {"erased": erased}
        if step == "key"
        else Again({**payload, "step": following, "erased": erased})
    )


def _to_sweep(registry: Installed) -> Iterator[Table]:
    """Tables that no hook has to read: of the indexes, of the runtime, and those that plugins
    name.
    """
    of_plugins = {table.name for plugin in registry.plugins for table in plugin.tables}
    swept = {table.name for plugin in registry.plugins for table in plugin.swept}
    return (
        table
        for table in registry.tables.values()
        if table.name in swept or table.name not in of_plugins
    )


def _erase_rows(
    ctx: SlotWriteContext, number: int, tables: Iterable[Table], erased: dict[str, int]
) -> bool:
    """Delete the tenant's rows of these tables, up to a step's allowance; -> whether none are left.
    No row is opened for it.
    """
    rows_left = limits.ERASED_ROWS_PER_STEP
    for table in tables:
        if table.level == "tenant":
            rows = ctx.rows_of(table, number)
            count = sum(rows.delete(*key) for key in islice(rows.keys(), rows_left))
            erased[table.name] = erased.get(table.name, 0) + count
            rows_left -= count
            if not rows_left:
                return False
    due = ctx[jobs.JOBS_DUE]
    for key in [key for key in due.keys() if key[1] == number]:  # noqa: SIM118 (a table, no dict)
        due.delete(*key)
    return True


def _run_hooks(ctx: SlotWriteContext, number: int, erased: dict[str, int]) -> None:
    """Call every plugin's erase, dependants first, and empty every index that lives in memory."""
    account = ctx[tenants.TENANTS].get(number)
    if account is None or account.closed_at is None:
        raise LookupError(f"slot {ctx.scope.slot} has no closed tenant {number}")
    of_tenant = ctx.within(*tenants.identity(ctx.scope.slot, account))
    for plugin in reversed(ctx.registry.plugins):
        if plugin.retain is not None:
            plugin.retain(ctx, of_tenant)
        if plugin.erase is not None:
            for store, count in plugin.erase(of_tenant).items():
                erased[store] = erased.get(store, 0) + count
    for index in ctx.registry.indexes.values():
        clear = getattr(of_tenant.index(index), "clear", None)
        if clear is not None:
            clear()


# --- the plugin -----------------------------------------------------------------------------------

_RECEIPT = erasures.RECEIPT_PREFIX + "0b5f" + "3fa0c81d52e79b46" * 3 + "3fa0c81d52e7"

OPERATIONS = (
    Write(
        name="account.erase",
        method="DELETE",
        path="/v1/account",
        handler=erase_account,
        query=EraseQuery,
        response=Erased,
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Erase the account and everything it holds",
        description=f"Needs `confirm={CONFIRMATION}`, else 400. Every credential of the account is "
        "refused from now on, this one included; the e-mail address is free again. All stores are "
        "swept and the key that seals the account's rows is destroyed.",
        example_reply={"deleted": True, "receipt": _RECEIPT, "status": "queued"},
    ),
    Read(
        name="account.erasure",
        method="POST",
        path="/v1/account/receipts",
        handler=read_erasure,
        body=ReceiptText,
        response=Erasure,
        errors=(404,),
        scope="public",
        accounts=True,
        slot_of=lambda body: erasures.slot_of(body.receipt),
        rate="login",
        summary="Read the receipts of an erased account",
        description="With the text that its DELETE answered; no other credential is left.",
        example={"receipt": _RECEIPT},
        example_reply={
            "status": "completed",
            "requested_at": "2026-05-08T13:56:00.000Z",
            "finished_at": "2026-05-08T13:56:01.250Z",
            "receipts": [
                {"store": "memories", "outcome": "erased", "count": 12, "reason": None},
                {"store": "logs", "outcome": "retained", "count": None, "reason": RETAINED["logs"]},
            ],
        },
    ),
    Read(
        name="account.receipts",
        method="GET",
        path="/v1/account/receipts",
        handler=list_receipts,
        query=PageQuery,
        response=Page[CleanupReceipt],
        summary="List the cleanups after deletions, with a receipt for each store",
        description="Those of the last week.",
        example_reply=example_page(
            {
                "job_id": "job_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j",
                "cause": "collections.cleanup",
                "status": "completed",
                "created_at": "2026-05-08T13:56:00.000Z",
                "finished_at": "2026-05-08T13:56:00.900Z",
                "receipts": [
                    {"store": "memories", "outcome": "erased", "count": 12, "reason": None}
                ],
            }
        ),
    ),
)

ERASE_JOB = Job(
    erasures.JOB,
    erase_step,
    accounts=True,
    retry=RetryStrategy(attempts=limits.ERASE_ATTEMPTS_MAX),
)
