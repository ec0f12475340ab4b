"""Does a store agree with itself? Runs every declared check over every account, and repairs what
derives from other rows.

The runtime's own tables are checked here: accounts, credentials, jobs, idempotency records. The
rest is declared by plugins.

`examine` reads one snapshot per account, so it goes on beside a service that writes, in its process
or in another. `mend` runs in a write transaction: it takes the checks in order, repairs what each
finds before the next looks, and repeats until a pass finds nothing to repair. What it cannot repair
it tells.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from runtime.api import erasures, jobs, tenants
from runtime.api.checks import (
    Account,
    Check,
    Counter,
    Derived,
    Finding,
    IndexEntries,
    Readable,
    Repair,
    delete,
    last_ordinal,
    named,
    put,
)
from runtime.api.context import Ctx, Environment, ReadContext, WriteContext
from runtime.api.operation import NOBODY, Call, Principal
from runtime.api.slot_context import OperatorWriteContext, SlotReadContext
from runtime.errors import PLUGIN_RAISES
from runtime.limits import FINDINGS_PER_ACCOUNT_MAX, REPAIR_ATTEMPTS_MAX
from runtime.shard import idempotency
from storage.store import Part, Reader, Rebuild, Scope, StoreError, Transaction

SlotCheck = Callable[[SlotReadContext], Iterable[Finding]]


def accounts(reader: Reader) -> list[Account]:
    """Every account, and every slot, that has rows."""
    found = [Account(scope.slot, scope.tenant) for scope in reader.scopes()]
    return sorted(
        {*found, *(Account(account.slot, 0) for account in found)},
        key=lambda account: (account.slot, account.number),
    )


def examine(
    reader: Reader, environment: Environment, account: Account, now_ms: int
) -> list[Finding]:
    """What is wrong with one account's rows, at most FINDINGS_PER_ACCOUNT_MAX; empty when all
    agrees.
    """
    identified = _identified(reader, account)
    if identified is None:
        return list(_of_nobody(reader, environment, account))
    principal, scope = identified
    call = verification_call(account, now_ms)
    ours = SlotReadContext(reader, scope, call, environment, principal)
    theirs = ReadContext(reader, scope, call, environment, principal)
    return _bounded(
        finding
        for _, findings in _looked_at(environment, account, ours, theirs)
        for finding in findings
    )


def mend(
    ctx: OperatorWriteContext, transaction: Reader, environment: Environment, number: int
) -> tuple[int, list[Finding]]:
    """Repair what can be of an account of the context's slot; -> (repairs made, findings that are
    left).
    """
    account = Account(ctx.scope.slot, number)
    identified = _identified(transaction, account)
    if identified is None:
        return 0, list(_of_nobody(transaction, environment, account))
    ours, theirs = ctx.beside(*identified), ctx.within(*identified)
    repaired, left = 0, list[Finding]()
    for _ in range(REPAIR_ATTEMPTS_MAX):
        made, left = 0, []
        for of_plugin, findings in _looked_at(environment, account, ours, theirs):
            for finding in list(findings):
                if finding.repair is None:
                    left.append(finding)
                else:
                    finding.repair(theirs if of_plugin else ours)
                    made += 1
        repaired += made
        if not made:
            break
    return repaired, _bounded(iter(left))


def rebuilding(environment: Environment) -> dict[str, Rebuild]:
    """For Store.open: how the bitmaps of each index that has a check are made again from the rows
    they derive from.
    """
    checks = (
        *TENANT_CHECKS,
        *(check for plugin in environment.registry.plugins for check in plugin.checks),
    )
    return {
        check.index.tables[0].name: partial(_rebuild, environment, check)
        for check in checks
        if isinstance(check, IndexEntries)
    }


def _rebuild(environment: Environment, check: Check, reader: Reader, scope: Scope) -> list[Part]:
    account = Account(scope.slot, scope.tenant)
    identified = _identified(reader, account)
    if not account.number or identified is None:
        return []
    principal, whole = identified
    given = (whole, verification_call(account), environment, principal)

    def part(repair: Repair, transaction: Transaction) -> None:
        repair(WriteContext(transaction, *given))

    return [
        partial(part, finding.repair)
        for finding in check(ReadContext(reader, *given))
        if finding.repair is not None
    ]


def verification_call(account: Account, now_ms: int | None = None) -> Call:
    """The call in whose name rows are looked at, and written by a repair without a service."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    return Call("verification", account.slot, now_ms, os.urandom(32), "verification")


def _identified(reader: Reader, account: Account) -> tuple[Principal, Scope] | None:
    """(principal, scope) of the account; None when it has rows and nobody owns them."""
    return (
        tenants.tenant(reader, account.slot, account.number)
        if account.number
        else (NOBODY, Scope.of_slot(account.slot))
    )


def _looked_at(
    environment: Environment, account: Account, ours: SlotReadContext, theirs: ReadContext
) -> Iterator[tuple[bool, Iterator[Finding]]]:
    """(whether a plugin's, its findings) of each check. The runtime's own look at the tables of the
    slot as well.
    """
    for check in _own_checks(environment, account):
        yield False, _findings_of(check, ours)
    if account.number:
        for plugin in environment.registry.plugins:
            for check in plugin.checks:
                yield True, _findings_of(check, theirs)


def _own_checks(environment: Environment, account: Account) -> Iterator[SlotCheck]:
    level = "tenant" if account.number else "slot"
    for table in environment.registry.tables.values():
        if table.level == level:
            yield Readable(table)
    if not account.number:
        yield from SLOT_CHECKS
    else:
        yield from TENANT_CHECKS


def _findings_of(check: Callable[[Ctx], Iterable[Finding]], ctx: Ctx) -> Iterator[Finding]:
    """The check's findings; one that cannot go on says so instead of hiding the others."""
    try:
        yield from check(ctx)
    except StoreError:
        raise
    except PLUGIN_RAISES as error:
        name = getattr(check, "table", None) or getattr(check, "index", None)
        what = (
            f"{getattr(check, '__name__', type(check).__name__)} could not finish: "
            f"{type(error).__name__}: {error}"
        )
        yield Finding("" if name is None else name.name, what)


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
    if tenants.closed_tenant(reader, account.slot, account.number) or _is_being_erased(
        reader, environment, account
    ):
        return
    scope = Scope(account.slot, account.number)
    for table in environment.registry.tables.values():
        if table.level == "tenant" and (count := reader.bind(table, scope).count()):
            yield Finding(
                table.name, f"{count} rows of number {account.number}, which is no account"
            )


def _is_being_erased(reader: Reader, environment: Environment, account: Account) -> bool:
    """Whether the slot has a job that takes away what is left of the account."""
    _, scope = tenants.slot_itself(account.slot, environment.secrets)
    rows = reader.bind(jobs.JOBS, scope)
    return any(
        row.name == erasures.JOB
        and row.payload["tenant"] == account.number
        and row.finished_at is None
        for _, row in rows.scan()
    )


# --- the runtime's own tables ---------------------------------------------------------------------


def _addresses(ctx: SlotReadContext) -> Iterator[Finding]:
    """Check that an e-mail address leads to each account, and each address to an account. Whose an
    address is that two accounts have is nothing that can be told here.
    """
    owed: dict[bytes, list[int]] = {}
    for (number,), row in ctx[tenants.TENANTS].scan():
        if row.closed_at is None:  # an account that is being erased has no address any more
            owed.setdefault(tenants.email_digest(ctx.secrets, row.email), []).append(number)
    for numbers in owed.values():
        if len(numbers) > 1:
            yield Finding(
                tenants.EMAILS.name,
                f"accounts {', '.join(map(str, numbers))} have one address; find out whose it is, "
                "and erase what the others hold (mneme admin accounts)",
            )
    for (digest,), row in ctx[tenants.EMAILS].scan():
        if row.number not in owed.pop(digest, ()):
            yield Finding(
                tenants.EMAILS.name,
                f"entry {named((digest,))} leads to no account",
                delete(tenants.EMAILS, (digest,)),
            )
    for digest, (number, *others) in owed.items():
        if others:
            continue
        raw = tenants.EMAILS.encode(tenants.TenantNumber(number))
        yield Finding(
            tenants.EMAILS.name,
            f"account {number} cannot be found by its address",
            put(tenants.EMAILS, (digest,), raw),
        )


def _keys_of_nobody(ctx: SlotReadContext) -> Iterator[Finding]:
    for key, row in ctx[tenants.CREDENTIALS].scan():
        if not ctx[tenants.TENANTS].has(row.tenant_number):
            yield Finding(
                tenants.CREDENTIALS.name,
                f"{named(key)} opens no account",
                delete(tenants.CREDENTIALS, key),
            )


def _due(ctx: SlotReadContext) -> Iterator[Finding]:
    """Check that each entry of the slot's due list is an unfinished job at that time."""
    for key, _ in ctx[jobs.JOBS_DUE].scan():
        run_at, number, job_id = key
        account = ctx[tenants.TENANTS].get(number) if number else None
        if account is not None and account.closed_at is not None:
            continue  # its jobs do not run, and go with the rest of it
        slot, found = ctx.scope.slot, None
        if account is not None:
            found = jobs.find(ctx.within(*tenants.identity(slot, account)), job_id)
        elif not number:
            found = jobs.find(ctx.within(*tenants.slot_itself(slot, ctx.secrets)), job_id)
        if (
            found is None
            or found[1].run_at != run_at
            or found[1].status not in (jobs.QUEUED, jobs.PROCESSING)
        ):
            yield Finding(
                jobs.JOBS_DUE.name,
                f"entry {named(key)} is no unfinished job",
                delete(jobs.JOBS_DUE, key),
            )


def _last_tenant(ctx: ReadContext) -> int | None:
    """Account numbers count from 1, their counter from 0."""
    highest = last_ordinal(tenants.TENANTS)(ctx)
    return None if highest is None else highest - 1


def _due_entry(ctx: ReadContext, key: tuple, row: jobs.JobRow) -> list[tuple[tuple, bytes]]:
    return (
        [((row.run_at, ctx.scope.tenant, row.id), row.group.encode())]
        if row.status in (jobs.QUEUED, jobs.PROCESSING)
        else []
    )


def _expiry_entry(
    ctx: ReadContext, key: tuple, row: idempotency.IdempotencyRow
) -> list[tuple[tuple, bytes]]:
    return [((row.expires_at, *key), b"")] if row.expires_at else []


def _orphaned_expiry(ctx: ReadContext) -> Iterator[Finding]:
    """An entry may be older than its record, which a reused key renewed; but there is a record."""
    for key, _ in ctx[idempotency.IDEMPOTENCY_EXPIRY].scan():
        if not ctx[idempotency.IDEMPOTENCY].has(key[1]):
            what = f"entry {named(key)} belongs to no record"
            yield Finding(
                idempotency.IDEMPOTENCY_EXPIRY.name,
                what,
                delete(idempotency.IDEMPOTENCY_EXPIRY, key),
            )


def _jobs_of_the_slot(ctx: ReadContext) -> Iterator[Finding]:
    """The slot has jobs of its own, for work that outlives an account."""
    if ctx[jobs.JOBS].count():
        for check in JOB_CHECKS:
            yield from check(ctx)


JOB_CHECKS: tuple[Check, ...] = (
    Counter("jobs", last_ordinal(jobs.JOBS)),
    Derived(
        jobs.JOB_IDS, jobs.JOBS, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]
    ),
    IndexEntries(
        jobs.JOB_FIELDS,
        jobs.JOBS,
        lambda ctx, row: (("all", 1), ("name", row.name), ("status", row.status)),
    ),
    Derived(jobs.JOBS_DUE, jobs.JOBS, _due_entry, strict=False),
)
SLOT_CHECKS: tuple[SlotCheck, ...] = (
    Counter("tenants", _last_tenant),
    _addresses,
    _keys_of_nobody,
    _due,
    _jobs_of_the_slot,
)
TENANT_CHECKS: tuple[Check, ...] = (
    *JOB_CHECKS,
    Derived(idempotency.IDEMPOTENCY_EXPIRY, idempotency.IDEMPOTENCY, _expiry_entry, strict=False),
    _orphaned_expiry,
)
