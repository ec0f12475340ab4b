"""What requests without a transaction have used, until it is written: a second's worth, in memory.

A look-up or a search holds no write transaction, and giving each one its own would make every
search wait for the disk. So the requests of all tenants, and what their searches cost, are put down
once a second, some tenants together, each search as a usage event of its own. Operations that show
usage have it written down first (`Operation.fresh_usage`). A process that is killed takes its last
second of request counts and search charges with it; it never counts anything twice, and a write's
own charge is not in here.

Along with them goes when each session was last seen, and from which address.

How long each request took from its admission to its reply, and how it ended, is put down too, by
operation and hour (runtime/api/latencies.py); a flow takes as long as it is under way in the
gateway.

What reads accessed (`ReadContext.count_accesses`) travels along, counted, but every ten seconds
only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from runtime.api import access_tokens, latencies, metering
from runtime.api.context import WriteContext
from runtime.api.latencies import LatencyRow
from runtime.api.operation import ABORT, BEGUN, END, Call, Principal, Reply
from runtime.errors import Unavailable
from runtime.limits import (
    ACCESSES_UNWRITTEN_MAX,
    ACCESSES_WRITTEN_AFTER_SECONDS,
    USAGE_ACCOUNTS_TOGETHER_MAX,
    USAGE_TIMED_REQUESTS_MAX,
    USAGE_UNWRITTEN_EVENTS_MAX,
    USAGE_WRITTEN_AFTER_SECONDS,
)
from runtime.timestamps import HOUR_MS

log = logging.getLogger("mneme.usage")

Tenant = tuple[int, int]
Record = Callable[[WriteContext], None]
Counts = dict[
    tuple[str, str, int], tuple[int, int]
]  # (operation, key id, hour) -> (requests, the last one in Unix milliseconds)
REFUSED = ""  # stands in place of an operation's name
Accesses = dict[
    str, dict[Any, tuple[int, int]]
]  # counter's name -> key -> (how often, the last time in Unix milliseconds)
Seen = dict[str, tuple[int, str]]  # session id -> (its last request, Unix milliseconds; address)
Took = dict[tuple[int, str], LatencyRow]  # (hour, operation) -> what was noted
Charges = list[tuple[bytes, str, str, int]]  # (charge id, operation, key id, credits)


class UsageBuffer:
    """Not thread-safe: the shard's event loop alone uses it.

    write  ({tenant: record(ctx: WriteContext)}) -> awaitable; runs each in one transaction for all.
           Raises Unavailable
    """

    def __init__(self, write: Callable[[dict[Tenant, Record]], Awaitable[object]]):
        self._write = write
        self._counts: dict[Tenant, Counts] = {}
        self._charges: dict[Tenant, Charges] = {}
        self._seen: dict[Tenant, Seen] = {}
        self._charged = 0
        self._begun: dict[bytes, tuple[Tenant, float]] = {}  # seed of a call -> since when
        self._took: dict[Tenant, Took] = {}
        self._accesses: dict[Tenant, Accesses] = {}
        self._accesses_size = 0
        self._accesses_due = 0.0  # by the loop's clock
        self._writing = asyncio.Lock()
        self._alarm: asyncio.TimerHandle | None = None
        self._task: asyncio.Task | None = None
        self._flushes: set[asyncio.Task[None]] = set()

    @property
    def unwritten(self) -> int:
        """Charges that are not on disk yet."""
        return self._charged

    def request(
        self, principal: Principal | None, operation: str, now_ms: int, address: str = ""
    ) -> None:
        """Count one request, from this address; those without a tenant are nobody's."""
        if principal is None:
            return
        if principal.is_session:
            seen = self._seen.setdefault((principal.slot, principal.tenant_number), {})
            seen[principal.credential_id] = now_ms, address
        counts = self._counts.setdefault((principal.slot, principal.tenant_number), {})
        key = (
            operation,
            "" if principal.is_session else principal.credential_id,
            now_ms // metering.HOUR_MS,
        )
        number, last = counts.get(key, (0, 0))
        counts[key] = (number + 1, max(last, now_ms))
        self._set_alarm()

    def begun(self, principal: Principal, call: Call) -> None:
        """Note when a call was let in; of too many under way, the oldest are not timed."""
        if len(self._begun) >= USAGE_TIMED_REQUESTS_MAX:
            del self._begun[next(iter(self._begun))]
        tenant = principal.slot, principal.tenant_number
        self._begun[call.seed] = tenant, time.perf_counter()

    def answered(self, call: Call, reply: Reply) -> None:
        """Note how long a call took that was let in, and how it ended."""
        if (
            call.flow
            or reply.status == BEGUN
            or (noted := self._begun.pop(call.seed, None)) is None
        ):
            return
        tenant, since = noted
        of_flow = call.reply if call.stage in (END, ABORT) and reply.error is None else None
        status = reply.status if of_flow is None else of_flow.status
        place = (call.now_ms // HOUR_MS * HOUR_MS, call.operation)
        took = self._took.setdefault(tenant, {})
        row = took.get(place)
        if row is None:
            row = took[place] = LatencyRow()
        row.note(1_000 * (time.perf_counter() - since), status)
        self._set_alarm()

    def refused(self, principal: Principal | None, now_ms: int) -> None:
        """Count one request that a limit refused, apart from the others."""
        self.request(principal, REFUSED, now_ms)

    def _set_alarm(self) -> None:
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(
                USAGE_WRITTEN_AFTER_SECONDS, self._start
            )

    def check_room(self) -> None:
        """Raise Unavailable when so much is unwritten that nothing more may be charged; the disk
        must be in trouble.
        """
        if self._charged >= USAGE_UNWRITTEN_EVENTS_MAX:
            raise Unavailable("Usage cannot be written down just now. Retry in a moment.")

    def charge(self, principal: Principal, operation: str, call: Call, credits: int) -> None:
        """Charge a request that has no transaction."""
        key_id = "" if principal.is_session else principal.credential_id
        charges = self._charges.setdefault((principal.slot, principal.tenant_number), [])
        charges.append((metering.operation_id(call), operation, key_id, credits))
        self._charged += 1

    def count_accesses(
        self, principal: Principal, noted: Iterable[tuple[str, Any]], now_ms: int
    ) -> None:
        """Count what a read accessed; dropped where too much is unwritten."""
        if not self._accesses:
            self._accesses_due = asyncio.get_running_loop().time() + ACCESSES_WRITTEN_AFTER_SECONDS
        accesses = self._accesses.setdefault((principal.slot, principal.tenant_number), {})
        for name, key in noted:
            counts = accesses.setdefault(name, {})
            if key not in counts:
                if self._accesses_size >= ACCESSES_UNWRITTEN_MAX:
                    continue
                self._accesses_size += 1
            number, last = counts.get(key, (0, 0))
            counts[key] = (number + 1, max(last, now_ms))
        self._set_alarm()

    async def flush(self, *, accesses_too: bool = True) -> None:
        """Write down what there is. What cannot be written stays, and is tried again a second
        later; accesses and times are dropped then.

        Whoever waits for it may go: it is done all the same, for all accounts.
        """
        flush = asyncio.create_task(self._flush(accesses_too))
        self._flushes.add(flush)  # the loop itself holds tasks weakly
        flush.add_done_callback(self._flushes.discard)
        await asyncio.shield(flush)

    async def _flush(self, accesses_too: bool) -> None:
        async with self._writing:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            counts, charges = self._counts, self._charges
            seen, self._seen = self._seen, {}
            took, self._took = self._took, {}
            accesses = self._accesses if accesses_too else {}
            tenants = {**counts, **charges, **accesses, **took}
            if tenants:
                self._counts, self._charges, self._charged = {}, {}, 0
                if accesses_too:
                    self._accesses, self._accesses_size = {}, 0
                records = [
                    (
                        who,
                        _record(
                            counts.get(who, {}),
                            charges.get(who, []),
                            accesses.get(who, {}),
                            seen.get(who, {}),
                            took.get(who, {}),
                        ),
                    )
                    for who in tenants
                ]
                some = [
                    dict(records[first : first + USAGE_ACCOUNTS_TOGETHER_MAX])
                    for first in range(0, len(records), USAGE_ACCOUNTS_TOGETHER_MAX)
                ]
                results = await asyncio.gather(*map(self._write, some), return_exceptions=True)
                for part, result in zip(some, results, strict=True):
                    if isinstance(result, Unavailable):
                        log.error("usage was not written: %s", result.message)
                        self._put_back(
                            {who: counts[who] for who in part if who in counts},
                            {who: charges[who] for who in part if who in charges},
                        )
                for result in results:
                    if isinstance(result, BaseException) and not isinstance(result, Unavailable):
                        raise result
            if self._accesses:
                self._set_alarm()

    async def close(self) -> None:
        """Write down what there is, for the last time."""
        await self.flush()
        if self._alarm is not None:
            self._alarm.cancel()

    def _start(self) -> None:
        self._alarm = None
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self.flush(accesses_too=loop.time() >= self._accesses_due))

    def _put_back(self, counts: dict[Tenant, Counts], charges: dict[Tenant, Charges]) -> None:
        for tenant, theirs in counts.items():
            since = self._counts.setdefault(tenant, {})
            for key, (number, last) in theirs.items():
                further, later = since.get(key, (0, 0))
                since[key] = (number + further, max(last, later))
        for tenant, unwritten in charges.items():
            self._charges[tenant] = unwritten + self._charges.get(tenant, [])
            self._charged += len(unwritten)
        self._set_alarm()


def _record(counts: Counts, charges: Charges, accesses: Accesses, seen: Seen, took: Took) -> Record:
    def record(ctx: WriteContext) -> None:
        for session_id, (at, address) in seen.items():
            access_tokens.saw_session(ctx, session_id, at, address)
        for (operation, key_id, _), (requests, last) in counts.items():
            if operation == REFUSED:
                metering.count_refused(ctx, last, requests)
            else:
                metering.count_requests(ctx, operation, key_id, last, requests)
        for (operation, key_id, _), ours in _by_hour(charges).items():
            last = max(metering.made_at(charge_id) for charge_id, _ in ours)
            metering.charge_each(ctx, operation, key_id, last, ours)
        for (hour, operation), row in took.items():
            latencies.count(ctx, operation, hour, row)
        for name, noted in accesses.items():
            ctx.registry.access_counters[name](ctx, noted)

    return record


def _by_hour(charges: Charges) -> dict[tuple[str, str, int], list[tuple[bytes, int]]]:
    """(operation, key id, hour) -> the charges that its counters rise by."""
    found: dict[tuple[str, str, int], list[tuple[bytes, int]]] = {}
    for charge_id, operation, key_id, credits in charges:
        hour = metering.made_at(charge_id) // HOUR_MS
        found.setdefault((operation, key_id, hour), []).append((charge_id, credits))
    return found
