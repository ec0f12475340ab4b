"""What tenants have used, written in the transaction of the effect it stands for.

A charge is one row of `usage_events`, unique by its operation id, and the same amount on every
counter beside it: the period's, the hour's, the operation's and the API key's. All of them change
here, together, so they cannot disagree:

    Σ usage_events + what was folded away = usage_periods.credits = Σ shares by operation = Σ shares
    by key = Σ hours and days

A period is a calendar month, UTC. Once it is closed its counters stand still: what is charged later
belongs to the next one. Work that goes on after its transaction and whose price or fate is not
known yet (a document) reserves first; the reservation counts against the month until it is settled,
released, or reaped because whoever made it never came back.

Requests that change nothing have no transaction. What they cost and how many there were waits in
memory for a moment (runtime/shard/usage_buffer.py) and is written through the same functions.

    usage_events        (period, operation_id)  -> UsageEventRow   two days long, then folded into
                                                                   its period
    usage_periods       (period,)               -> PeriodRow
    usage_rollups       (unit, start)           -> RollupRow       "hour" for two months, "day" for
                                                                   two years
    usage_shares        (period, kind, name)    -> RollupRow       kind "operation" or "key"; name
                                                                   "": access tokens and background
                                                                   work
    usage_reservations  (operation_id,)         -> ReservationRow

An operation id is 16 bytes: 6 of Unix milliseconds, 10 derived from the call's seed. Times are Unix
milliseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel

from runtime import ids
from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Event
from runtime.api.tiers import credits_limit
from runtime.errors import RateLimited
from runtime.limits import (
    EXPIRED_ROWS_SWEPT_PER_WRITE,
    RESERVATION_SECONDS_MAX,
    USAGE_DAYS_KEPT_SECONDS,
    USAGE_EVENTS_KEPT_SECONDS,
    USAGE_HOURS_KEPT_SECONDS,
    USAGE_SHARES_KEPT_SECONDS,
)
from runtime.timestamps import DAY_MS, HOUR_MS
from storage.store import Table

if TYPE_CHECKING:
    from storage.store import Reader, Scope

OPERATION_ID_BYTES = 16
_USAGE_SEED = 2**32  # a counter no handler reaches, so that the id is none of those it makes
REAPER = "usage.reap"


class UsageEventRow(msgspec.Struct):
    operation: str
    key_id: str
    credits: int


class PeriodRow(msgspec.Struct):
    """A month. folded: credits of events that were deleted after their two days."""

    requests: int = 0
    refused: int = 0
    credits: int = 0
    reserved: int = 0
    folded: int = 0
    closed: bool = False
    reaper_queued: bool = False


class RollupRow(msgspec.Struct):
    requests: int = 0
    credits: int = 0


class ReservationRow(msgspec.Struct):
    operation: str
    key_id: str
    credits: int
    period: int
    expires_at: int


USAGE_EVENTS: Table[UsageEventRow] = Table(
    "usage_events",
    key=("period", "operation_id"),
    row=UsageEventRow,
    doc="charges of the last two days",
)
USAGE_PERIODS: Table[PeriodRow] = Table(
    "usage_periods", key=("period",), row=PeriodRow, doc="usage by month"
)
USAGE_ROLLUPS: Table[RollupRow] = Table(
    "usage_rollups", key=("unit", "start"), row=RollupRow, doc="usage by hour and by day"
)
USAGE_SHARES: Table[RollupRow] = Table(
    "usage_shares",
    key=("period", "kind", "name"),
    row=RollupRow,
    doc="usage of a month by operation and by API key",
)
USAGE_RESERVATIONS: Table[ReservationRow] = Table(
    "usage_reservations",
    key=("operation_id",),
    row=ReservationRow,
    doc="credits set aside for work under way",
)
TABLES: tuple[Table, ...] = (
    USAGE_EVENTS,
    USAGE_PERIODS,
    USAGE_ROLLUPS,
    USAGE_SHARES,
    USAGE_RESERVATIONS,
)


class PeriodStarted(BaseModel):
    period: int


# A signal to the plugins: the tenant's first usage in a month. It leaves no row in the outbox.
PERIOD_STARTED = Event("internal.usage_period_started", PeriodStarted)


# --- calendar -------------------------------------------------------------------------------------


def period_of(ms: int) -> int:
    """The first instant of the month of this instant, UTC."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()) * 1000


def period_end(period: int) -> int:
    """The first instant of the following month."""
    return period_of(period + 32 * DAY_MS)


# --- charging -------------------------------------------------------------------------------------


def operation_id(call: Call) -> bytes:
    """The id under which a call is charged: the same each time the call's transaction is run."""
    return call.now_ms.to_bytes(6, "big") + ids.derived_random(
        call.seed, _USAGE_SEED, OPERATION_ID_BYTES - 6
    )


def made_at(charge_id: bytes) -> int:
    """The time at which the operation id was made, Unix milliseconds."""
    return int.from_bytes(charge_id[:6], "big")


def key_of(ctx: ReadContext) -> str:
    """The API key that a charge belongs to; "" for access tokens and background work."""
    return "" if ctx.principal.is_session else ctx.principal.credential_id


def charge(
    ctx: WriteContext,
    operation: str,
    credits: int,
    *,
    charge_id: bytes | None = None,
    key_id: str | None = None,
    at: int | None = None,
) -> bool:
    """Charge `credits` in this transaction; -> False when this id was charged before, and nothing
    changed.

    charge_id  by default the call's own
    key_id     by default that of the credential
    at         when it was spent, by default now
    """
    if credits == 0:
        return False
    charge_id = charge_id or operation_id(ctx.call)
    key_id = key_of(ctx) if key_id is None else key_id
    at = ctx.now if at is None else at
    return charge_each(ctx, operation, key_id, at, [(charge_id, credits)]) > 0


def charge_calls(contexts: Sequence[WriteContext], operation: str) -> None:
    """Charge calls of one operation and one account in their common transaction, each what its
    context says.
    """
    alike: dict[tuple[str, int], list[WriteContext]] = {}
    for ctx in contexts:
        if ctx.credits:
            alike.setdefault((key_of(ctx), ctx.now // HOUR_MS), []).append(ctx)
    for (key_id, _), some in alike.items():
        charges = [(operation_id(ctx.call), ctx.credits) for ctx in some]
        charge_each(some[0], operation, key_id, max(ctx.now for ctx in some), charges)


def charge_each(
    ctx: WriteContext, operation: str, key_id: str, at: int, charges: Iterable[tuple[bytes, int]]
) -> int:
    """Charge several calls of one operation by one key in one hour, which cost little more than
    one; -> how many were not charged before.

    at       when the last of them was made, Unix milliseconds
    charges  (charge id, credits, 1 or more)
    """
    period = _open_period(ctx, period_of(at))
    events = ctx[USAGE_EVENTS]
    new = [(charge_id, spent) for charge_id, spent in charges if not events.has(period, charge_id)]
    if not new:
        return 0
    for charge_id, spent in new:
        events.put((period, charge_id), UsageEventRow(operation, key_id, spent))
    credits = sum(spent for _, spent in new)
    row = _period(ctx, period)
    row.credits += credits
    ctx[USAGE_PERIODS].put((period,), row)
    _count(ctx, period, operation, key_id, at, credits=credits)
    ctx.metered += credits
    _fold(ctx, EXPIRED_ROWS_SWEPT_PER_WRITE * len(new))
    return len(new)


def count_requests(ctx: WriteContext, operation: str, key_id: str, at: int, requests: int) -> None:
    """Count requests of one operation by one key, around one moment."""
    period = _open_period(ctx, period_of(at))
    row = _period(ctx, period)
    row.requests += requests
    ctx[USAGE_PERIODS].put((period,), row)
    _count(ctx, period, operation, key_id, at, requests=requests)


def count_refused(ctx: WriteContext, at: int, requests: int) -> None:
    """Count requests that a limit refused; they are part of no other figure."""
    period = _open_period(ctx, period_of(at))
    row = _period(ctx, period)
    row.refused += requests
    ctx[USAGE_PERIODS].put((period,), row)


def _count(
    ctx: WriteContext,
    period: int,
    operation: str,
    key_id: str,
    at: int,
    *,
    requests: int = 0,
    credits: int = 0,
) -> None:
    """Raise what stands beside the period's counter."""
    shares, rollups = ctx[USAGE_SHARES], ctx[USAGE_ROLLUPS]
    # A charge after a month was closed is the next month's, and so is its hour.
    hour = max(at, period) // HOUR_MS * HOUR_MS
    for table, key in (
        (shares, (period, "operation", operation)),
        (shares, (period, "key", key_id)),
        (rollups, ("hour", hour)),
    ):
        row = table.get(*key)
        if row is None:
            row = RollupRow()
            if table is rollups:
                _thin_out(ctx)
        row.requests += requests
        row.credits += credits
        table.put(key, row)
    used = ctx[tenants.KEY_USAGE].get(key_id) if key_id else None
    if used is not None:
        used.requests += requests
        used.credits += credits
        used.last_used_at = max(used.last_used_at or 0, at)
        ctx[tenants.KEY_USAGE].put((key_id,), used)


def _open_period(ctx: WriteContext, period: int) -> int:
    """Open this month, or the first after it that is not closed; tell the plugins of a new one."""
    periods = ctx[USAGE_PERIODS]
    row = periods.get(period)
    while row is not None and row.closed:
        period = period_end(period)
        row = periods.get(period)
    if row is None:
        periods.put((period,), PeriodRow())
        ctx.emit(PERIOD_STARTED, {"period": period}, "")
    return period


def _period(ctx: ReadContext, period: int) -> PeriodRow:
    return ctx[USAGE_PERIODS].get(period) or PeriodRow()


def close(ctx: WriteContext, period: int) -> PeriodRow:
    """Let the month's counters stand still for good; -> what they say."""
    row = _period(ctx, period)
    row.closed = True
    ctx[USAGE_PERIODS].put((period,), row)
    return row


# --- reservations ---------------------------------------------------------------------------------


def reserve(
    ctx: WriteContext, operation: str, credits: int, seconds_max: int = RESERVATION_SECONDS_MAX
) -> bytes:
    """Set credits aside under the call's operation id, or under another one what a call sets aside
    besides; -> the id, to settle or release it under. Nothing is stored for 0.

    The call must not be charged as well: a handler that reserves what its operation declares sets
    `ctx.credits` to 0.
    """
    charge_id = operation_id(ctx.call)
    if credits == 0:
        return charge_id
    if ctx[USAGE_RESERVATIONS].has(charge_id):
        charge_id = charge_id[:6] + ctx.random(OPERATION_ID_BYTES - 6)
    period = _open_period(ctx, period_of(ctx.now))
    expires_at = ctx.now + seconds_max * 1000
    ctx[USAGE_RESERVATIONS].put(
        (charge_id,), ReservationRow(operation, key_of(ctx), credits, period, expires_at)
    )
    row = _period(ctx, period)
    row.reserved += credits
    if not row.reaper_queued:
        row.reaper_queued = True
        ctx.enqueue(REAPER, {"period": period}, delay_ms=seconds_max * 1000)
    ctx[USAGE_PERIODS].put((period,), row)
    ctx.metered += credits
    return charge_id


def reserve_more(ctx: WriteContext, charge_id: bytes, credits: int) -> None:
    """Set aside so many credits more under an id that some are set aside under, now that it is
    known what the work comes to. Raises RateLimited when the month has not so many left; nothing is
    changed then.

    What was given back meanwhile, because the work took so long, is not set aside again.
    """
    require_left(ctx, credits)
    reservation = ctx[USAGE_RESERVATIONS].get(charge_id)
    if reservation is None:
        return
    reservation.credits += credits
    ctx[USAGE_RESERVATIONS].put((charge_id,), reservation)
    _change_reserved(ctx, reservation.period, credits)


def settle(ctx: WriteContext, charge_id: bytes, operation: str, credits: int) -> bool:
    """Charge what reserved work came to, once. -> False when it was charged before.

    Work that took longer than its reservation lived is charged all the same: it was done.
    """
    period = period_of(made_at(charge_id))
    if ctx[USAGE_EVENTS].has(period, charge_id):
        return False
    row = ctx[USAGE_RESERVATIONS].get(charge_id)
    release(ctx, charge_id)
    return charge(
        ctx, operation, credits, charge_id=charge_id, key_id=None if row is None else row.key_id
    )


def release(ctx: WriteContext, charge_id: bytes) -> bool:
    """Give back what was set aside; -> False when there is nothing under this id."""
    reservation = ctx[USAGE_RESERVATIONS].get(charge_id)
    if reservation is None:
        return False
    ctx[USAGE_RESERVATIONS].delete(charge_id)
    _change_reserved(ctx, reservation.period, -reservation.credits)
    return True


def _change_reserved(ctx: WriteContext, period: int, credits: int) -> None:
    row = _period(ctx, period)
    row.reserved += credits
    ctx[USAGE_PERIODS].put((period,), row)
    ctx.metered += credits


def reap(ctx: WriteContext, payload: dict[str, Any]) -> dict[str, int]:
    """The job that releases reservations nobody came back for; it comes again while any are
    left.
    """
    reaped, following = 0, None
    for (charge_id,), row in list(ctx[USAGE_RESERVATIONS].scan()):
        if row.expires_at <= ctx.now:
            reaped += release(ctx, charge_id)
        else:
            following = min(following or row.expires_at, row.expires_at)
    row = _period(ctx, payload["period"])
    row.reaper_queued = following is not None
    ctx[USAGE_PERIODS].put((payload["period"],), row)
    if following is not None:
        ctx.enqueue(REAPER, payload, delay_ms=following - ctx.now)
    return {"reaped": reaped}


# --- the month's end of credits -------------------------------------------------------------------


def quota_exceeded(needed: int, limit: int, used: int, now_ms: int) -> RateLimited:
    """The refusal of a call, or of work, that needs more credits than the month has left."""
    wait = max(1, math.ceil((period_end(period_of(now_ms)) - now_ms) / 1000))
    return RateLimited(
        f"This needs {needed} of the {limit} credits of this month, and {max(0, limit - used)} are "
        f"left. The next month begins in {wait} s. Tiers with more: GET /v1/billing/tiers.",
        limit=limit,
        retry_after_seconds=wait,
        code="quota_exceeded",
    )


def require_left(ctx: WriteContext, credits: int) -> None:
    """Raise RateLimited when the month has not so many credits left, beside what the call costs
    anyhow: for a price that is known only when the work is done.
    """
    limit = credits_limit(ctx.settings, ctx.principal.tier)
    if limit is None or credits <= 0:
        return
    row = _period(ctx, period_of(ctx.now))
    spent = row.credits + row.reserved
    if ctx.credits + credits > limit - spent:
        raise quota_exceeded(ctx.credits + credits, limit, spent, ctx.now)


# --- what is used, and what is kept ---------------------------------------------------------------


def used(reader: Reader, scope: Scope, now_ms: int) -> int:
    """Credits used or reserved in the month of this instant."""
    row = reader.bind(USAGE_PERIODS, scope).get(period_of(now_ms))
    return 0 if row is None else row.credits + row.reserved


def audit(ctx: ReadContext, period: int) -> dict[str, Any]:
    """Every way to count the credits of a month, and whether they agree."""
    row = _period(ctx, period)
    end = period_end(period)
    sums = {
        "counter": row.credits,
        "events": sum(event.credits for _, event in ctx[USAGE_EVENTS].scan(period)) + row.folded,
        "by_operation": sum(
            share.credits for _, share in ctx[USAGE_SHARES].scan(period, "operation")
        ),
        "by_key": sum(share.credits for _, share in ctx[USAGE_SHARES].scan(period, "key")),
        "by_time": sum(
            rollup.credits
            for unit in ("hour", "day")
            for _, rollup in ctx[USAGE_ROLLUPS].scan(
                unit, after=(unit, period - 1), before=(unit, end)
            )
        ),
    }
    reserved = sum(
        reservation.credits
        for _, reservation in ctx[USAGE_RESERVATIONS].scan()
        if reservation.period == period
    )
    # Details of long ago are gone on purpose; the counter stays.
    complete = end > ctx.now - USAGE_SHARES_KEPT_SECONDS * 1000
    return {
        **sums,
        "reserved": row.reserved,
        "consistent": (not complete or len(set(sums.values())) == 1) and reserved == row.reserved,
    }


def _fold(ctx: WriteContext, events_max: int) -> None:
    """Take so many events that are older than two days out of the way, into their period."""
    events, periods = ctx[USAGE_EVENTS], ctx[USAGE_PERIODS]
    oldest = ctx.now - USAGE_EVENTS_KEPT_SECONDS * 1000
    folded: Counter[int] = Counter()
    for (period, charge_id), event in events.scan(limit=events_max):
        if made_at(charge_id) >= oldest:
            break
        events.delete(period, charge_id)
        folded[period] += event.credits
    for period, credits in folded.items():
        row = _period(ctx, period)
        row.folded += credits
        periods.put((period,), row)


def _thin_out(ctx: WriteContext) -> None:
    """Put, once an hour, a few old hours into their day, and forget a few old days and shares."""
    rollups, shares, few = ctx[USAGE_ROLLUPS], ctx[USAGE_SHARES], EXPIRED_ROWS_SWEPT_PER_WRITE
    for (_, hour), spent in rollups.scan(
        "hour", before=("hour", ctx.now - USAGE_HOURS_KEPT_SECONDS * 1000), limit=few
    ):
        rollups.delete("hour", hour)
        day = rollups.get("day", hour // DAY_MS * DAY_MS) or RollupRow()
        rollups.put(
            ("day", hour // DAY_MS * DAY_MS),
            RollupRow(day.requests + spent.requests, day.credits + spent.credits),
        )
    for key in rollups.keys(
        "day", before=("day", ctx.now - USAGE_DAYS_KEPT_SECONDS * 1000), limit=few
    ):
        rollups.delete(*key)
    for key in shares.keys(before=(ctx.now - USAGE_SHARES_KEPT_SECONDS * 1000,), limit=few):
        shares.delete(*key)
