"""Does a store agree with itself? Runs every declared check over every account, and repairs what derives from other rows.

The runtime's own tables are checked here: accounts, credentials, jobs, idempotency records. The rest is declared by plugins.

`examine` reads one snapshot per account, so it goes on beside a service that writes, in its process or in another. `mend` runs in
a write transaction: it takes the checks in order, repairs what each finds before the next looks, and repeats until a pass finds
nothing to repair. What it cannot repair it tells.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from runtime import auth, idempotency, jobs
from runtime.checks import Check, Counter, Derived, Finding, Marks, Readable, delete, last_ordinal, named, put
from runtime.limits import FINDINGS_PER_ACCOUNT_MAX, REPAIR_ATTEMPTS_MAX
from runtime.operation import Call, Environment, Principal, ReadContext, WriteContext
from storage.directory import StoreError
from storage.table import Reader, Rebuild, Scope, Transaction

ERASURE_JOB = "account.erase"


@dataclass(frozen=True, slots=True)
class Account:
    """Whose rows: a slot and a tenant number in it, 0 for the rows of the slot itself."""

    slot: int
    number: int


def accounts(reader: Reader) -> list[Account]:
    """Every account, and every slot, that has rows."""
    found = [Account(scope.slot, scope.tenant) for scope in reader.scopes()]
    return sorted({*found, *(Account(account.slot, 0) for account in found)}, key=lambda account: (account.slot, account.number))


def examine(reader: Reader, environment: Environment, account: Account, now_ms: int) -> list[Finding]:
    """What is wrong with one account's rows, at most FINDINGS_PER_ACCOUNT_MAX; empty when all agrees."""
    identified = _identified(reader, account)
    if identified is None:
        return list(_of_nobody(reader, environment, account))
    principal, scope = identified
    ctx = ReadContext(reader, scope, verification_call(account, now_ms), environment, principal)
    return _bounded(finding for check in _checks(environment, account) for finding in _asked(check, ctx))


def mend(ctx: WriteContext, account: Account) -> tuple[int, list[Finding]]:
    """Repair what can be; -> (repairs made, findings that are left). `ctx` is any context of the write transaction."""
    identified = _identified(ctx.reader, account)
    if identified is None:
        return 0, list(_of_nobody(ctx.reader, ctx.environment, account))
    mine = ctx.as_tenant(*identified)
    repaired = 0
    for _ in range(REPAIR_ATTEMPTS_MAX):
        made, left = 0, []
        for check in _checks(ctx.environment, account):
            for finding in list(_asked(check, mine)):
                if finding.repair is None:
                    left.append(finding)
                else:
                    finding.repair(mine)
                    made += 1
        repaired += made
        if not made:
            break
    return repaired, _bounded(iter(left))


def rebuilding(environment: Environment) -> dict[str, Rebuild]:
    """For Store.open: how the bitmaps of each index that has a check are made again from the rows they derive from."""
    checks = (*TENANT_CHECKS, *(check for plugin in environment.registry.plugins for check in plugin.checks))
    return {check.index.tables[0].name: partial(_rebuild, environment, check) for check in checks if isinstance(check, Marks)}


def _rebuild(environment: Environment, check: Check, transaction: Transaction) -> None:
    for account in accounts(transaction):
        identified = _identified(transaction, account)
        if account.number and identified is not None:
            principal, scope = identified
            ctx = WriteContext(transaction, scope, verification_call(account), environment, principal)
            for finding in list(check(ctx)):
                finding.repair(ctx)


def verification_call(account: Account, now_ms: int | None = None) -> Call:
    """The call in whose name rows are looked at, and written by a repair without a service."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    return Call("verification", account.slot, now_ms, os.urandom(32), "verification")


def _identified(reader: Reader, account: Account) -> tuple[Principal | None, Scope] | None:
    """(principal, scope) of the account; None when it has rows and nobody owns them."""
    return auth.tenant(reader, account.slot, account.number) if account.number else (None, Scope.of_slot(account.slot))


def _checks(environment: Environment, account: Account) -> Iterator[Check]:
    level = "tenant" if account.number else "slot"
    for table in environment.registry.tables.values():
        if table.level == level:
            yield Readable(table)
    if not account.number:
        yield from SLOT_CHECKS
        return
    yield from TENANT_CHECKS
    for plugin in environment.registry.plugins:
        yield from plugin.checks


def _asked(check: Check, ctx: ReadContext) -> Iterator[Finding]:
    """The check's findings; one that cannot go on says so instead of hiding the others."""
    try:
        yield from check(ctx)
    except StoreError:
        raise
    except Exception as error:
        name = getattr(check, "table", None) or getattr(check, "index", None)
        told = f"{getattr(check, '__name__', type(check).__name__)} could not finish: {type(error).__name__}: {error}"
        yield Finding("" if name is None else name.name, told)


def _bounded(findings: Iterator[Finding]) -> list[Finding]:
    found: list[Finding] = []
    for finding in findings:
        found.append(finding)
        if len(found) == FINDINGS_PER_ACCOUNT_MAX:
            found.append(Finding("", "and there may be more"))
            break
    return found


def _of_nobody(reader: Reader, environment: Environment, account: Account) -> Iterator[Finding]:
    """Rows in the range of an account that does not exist, and is not being erased either."""
    if auth.closed_tenant(reader, account.slot, account.number) or _is_being_erased(reader, environment, account):
        return
    scope = Scope(account.slot, account.number)
    for table in environment.registry.tables.values():
        if table.level == "tenant" and (count := reader.bind(table, scope).count()):
            yield Finding(table.name, f"{count} rows of number {account.number}, which is no account")


def _is_being_erased(reader: Reader, environment: Environment, account: Account) -> bool:
    """Whether the slot has a job that takes away what is left of the account."""
    _, scope = auth.slot_itself(account.slot, environment.secrets)
    rows = reader.bind(jobs.JOBS, scope)
    return any(row.name == ERASURE_JOB and row.payload["tenant"] == account.number and row.finished_at is None for _, row in rows.scan())


# --- the runtime's own tables -----------------------------------------------------------------------------------------


def _addresses(ctx: ReadContext) -> Iterator[Finding]:
    """Each account is found by its e-mail address, and each address leads to an account."""
    owed = {}
    for (number,), row in ctx[auth.TENANTS].scan():
        if row.closed_at is None:  # an account that is being erased has no address any more
            owed[auth.email_digest(ctx.secrets, row.email)] = number
    for (digest,), row in ctx[auth.EMAILS].scan():
        if owed.pop(digest, None) != row.number:
            yield Finding(auth.EMAILS.name, f"entry {named((digest,))} leads to no account", delete(auth.EMAILS, (digest,)))
    for digest, number in owed.items():
        raw = auth.EMAILS.encode(auth.TenantNumber(number))
        yield Finding(auth.EMAILS.name, f"account {number} cannot be found by its address", put(auth.EMAILS, (digest,), raw))


def _keys_of_nobody(ctx: ReadContext) -> Iterator[Finding]:
    for key, row in ctx[auth.CREDENTIALS].scan():
        if not ctx[auth.TENANTS].has(row.tenant_number):
            yield Finding(auth.CREDENTIALS.name, f"{named(key)} opens no account", delete(auth.CREDENTIALS, key))


def _due(ctx: ReadContext) -> Iterator[Finding]:
    """Each entry of the slot's due list is an unfinished job at that time."""
    for key, _ in ctx[jobs.JOBS_DUE].scan():
        run_at, number, job_id = key
        if number and auth.closed_tenant(ctx.reader, ctx.scope.slot, number):
            continue  # its jobs do not run, and go with the rest of it
        slot = ctx.scope.slot
        identified = auth.tenant(ctx.reader, slot, number) if number else auth.slot_itself(slot, ctx.secrets)
        found = None
        if identified is not None:
            found = jobs.find(ReadContext(ctx.reader, identified[1], ctx.call, ctx.environment, identified[0]), job_id)
        if found is None or found[1].run_at != run_at or found[1].status not in (jobs.QUEUED, jobs.PROCESSING):
            yield Finding(jobs.JOBS_DUE.name, f"entry {named(key)} is no unfinished job", delete(jobs.JOBS_DUE, key))


def _last_tenant(ctx: ReadContext) -> int | None:
    """Account numbers count from 1, their counter from 0."""
    highest = last_ordinal(auth.TENANTS)(ctx)
    return None if highest is None else highest - 1


def _due_entry(ctx: ReadContext, key: tuple, row: jobs.JobRow) -> list[tuple[tuple, bytes]]:
    return [((row.run_at, ctx.scope.tenant, row.id), row.lane.encode())] if row.status in (jobs.QUEUED, jobs.PROCESSING) else []


def _expiry_entry(ctx: ReadContext, key: tuple, row: idempotency.IdempotencyRow) -> list[tuple[tuple, bytes]]:
    return [((row.expires_at, *key), b"")] if row.expires_at else []


def _orphaned_expiry(ctx: ReadContext) -> Iterator[Finding]:
    """An entry may be older than its record, which a reused key renewed; but there is a record."""
    for key, _ in ctx[idempotency.IDEMPOTENCY_EXPIRY].scan():
        if not ctx[idempotency.IDEMPOTENCY].has(key[1]):
            told = f"entry {named(key)} belongs to no record"
            yield Finding(idempotency.IDEMPOTENCY_EXPIRY.name, told, delete(idempotency.IDEMPOTENCY_EXPIRY, key))


def _jobs_of_the_slot(ctx: ReadContext) -> Iterator[Finding]:
    """The slot has jobs of its own, for work that outlives an account."""
    if ctx[jobs.JOBS].count():
        for check in JOB_CHECKS:
            yield from check(ctx)


JOB_CHECKS: tuple[Check, ...] = (
    Counter("jobs", last_ordinal(jobs.JOBS)),
    Derived(jobs.JOB_IDS, jobs.JOBS, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]),
    Marks(jobs.JOB_FIELDS, jobs.JOBS, lambda ctx, row: (("all", 1), ("name", row.name), ("status", row.status))),
    Derived(jobs.JOBS_DUE, jobs.JOBS, _due_entry, strict=False),
)
SLOT_CHECKS: tuple[Check, ...] = (Counter("tenants", _last_tenant), _addresses, _keys_of_nobody, _due, _jobs_of_the_slot)
TENANT_CHECKS: tuple[Check, ...] = (
    *JOB_CHECKS,
    Derived(idempotency.IDEMPOTENCY_EXPIRY, idempotency.IDEMPOTENCY, _expiry_entry, strict=False),
    _orphaned_expiry,
)
