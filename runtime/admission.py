"""Who may go on now: the per-minute ceilings, the month's credits and the tier's features (specification part 8).

All of it is decided together, in the order in which the tenant's one shard takes its calls, and nothing is counted or held
unless all of it passes:

    minute   an exact sliding log per tenant, and one per endpoint cap: request n+1 inside any 60 s is refused, wherever it came
             from. The logs live in memory on the monotonic clock: a restart forgets at most one minute
    feature  an operation that the tier lacks is refused with the specification's flat 403
    month    credits used, reserved and held by calls under way, against the tier's allowance. An operation that asks for more than
             is left is refused whole

The store knows what was used; a *tally* is the shard's running copy of it, together with what calls under way may still cost.
A call holds its credits until its transaction has ended, and only the shard's event loop touches tallies, so the thousandth
credit is given out once however many ask for it. What a flow holds is parked between its beginning and its end, which are two
calls; a flow whose gateway died is reaped after RESERVATION_SECONDS_MAX, and costs nothing.

Public operations have no tenant; they are throttled by the caller's address, and by the account they name, so that neither
one address can try many accounts nor many addresses one account.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from runtime import metering
from runtime.errors import FeatureNotAvailable, RateLimited
from runtime.limits import FEATURES, RESERVATION_SECONDS_MAX, TALLIES_MAX, TIERS, WINDOW_SECONDS
from runtime.operation import Call, Operation, Principal
from runtime.placement import normalise_email
from runtime.settings import Settings
from storage.table import Reader, Scope

LOGS_MAX = 100_000
_RANK = {name: rank for rank, name in enumerate(TIERS)}


@dataclass(slots=True)
class Tally:
    """A tenant's month. used: in the store as of `sequence` and after; held: by calls under way."""

    period: int
    used: int
    sequence: int
    held: int = 0


@dataclass(slots=True)
class Ticket:
    """One admitted call: where it was counted, what it may cost, and the tally that holds it."""

    logs: list[deque[float]] = field(default_factory=list)
    credits: int = 0
    tally: Tally | None = None

    def withdraw(self) -> None:
        """Take the count back; only before anything else was admitted."""
        for log in self.logs:
            log.pop()

    def release(self, *, used: bool = False) -> None:
        """The call is over and holds nothing any longer. used: it cost what it held, which no commit will tell."""
        if self.tally is not None:
            self.tally.held -= self.credits
            self.tally.used += self.credits if used else 0
            self.tally = None


class Admission:
    """One shard's sliding logs and tallies. Not thread-safe: the shard's event loop alone asks."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic):
        self._settings = settings
        self._clock = clock
        self._caps = settings.limits.caps
        self._tiers = {name: settings.tiers.terms(name) for name in TIERS}
        self._logs: OrderedDict[tuple, deque[float]] = OrderedDict()
        self._tallies: OrderedDict[tuple[int, int], Tally] = OrderedDict()
        self._parked: dict[bytes, tuple[Ticket, float]] = {}

    def admit(self, principal: Principal | None, operation: Operation, call: Call) -> Ticket:
        """Count the request, or raise RateLimited or FeatureNotAvailable and count nothing. Credits are asked for by `hold`."""
        readable = call.rejected is None and not call.knocks
        if principal is not None and operation.feature is not None and readable:
            feature = operation.feature(call.body) if callable(operation.feature) else operation.feature
            if feature is not None:
                require_feature(self._settings, principal.tier, feature)
        ticket = Ticket()
        if readable and principal is not None:
            ticket.credits = operation.credits(call.body) if callable(operation.credits) else operation.credits
        ceilings = self._ceilings(principal, operation, call)
        if not ceilings:
            return ticket
        now = self._clock()
        logs = [(self._log(key, now), ceiling) for key, ceiling in ceilings]
        for log, ceiling in logs:
            if len(log) >= ceiling:
                wait = max(1, math.ceil(log[len(log) - ceiling] + WINDOW_SECONDS - now))
                raise RateLimited(
                    f"The limit of {ceiling} requests a minute is reached. Retry in {wait} s.", limit=ceiling, retry_after_seconds=wait
                )
        for log, _ in logs:
            log.append(now)
            ticket.logs.append(log)
        return ticket

    def hold(self, ticket: Ticket, principal: Principal, reader: Reader, scope: Scope, now_ms: int) -> None:
        """Hold the ticket's credits, or raise RateLimited and take the request's count back."""
        limit = self.credits_limit(principal)
        if ticket.credits == 0 or limit is None:
            return
        period = metering.period_of(now_ms)
        tally = self._tallies.get((scope.slot, scope.tenant))
        if tally is None or tally.period != period:
            tally = self._open_tally(reader, scope, now_ms)
        self._reap()
        left = limit - tally.used - tally.held
        if ticket.credits > left:
            ticket.withdraw()
            wait = max(1, math.ceil((metering.period_end(period) - now_ms) / 1000))
            raise RateLimited(
                f"This needs {ticket.credits} of the {limit} credits of this month, and {max(0, left)} are left. "
                f"The next month begins in {wait} s.",
                limit=limit,
                retry_after_seconds=wait,
                code="quota_exceeded",
            )
        tally.held += ticket.credits
        ticket.tally = tally

    def park(self, flow: bytes, ticket: Ticket) -> None:
        """Keep the ticket of a flow, named by its call's seed, until it ends."""
        self._reap()
        self._parked[flow] = (ticket, self._clock() + RESERVATION_SECONDS_MAX)

    def resume(self, flow: bytes) -> Ticket:
        """The ticket of a flow that ends; an empty one when it was reaped or forgotten in a restart."""
        return self._parked.pop(flow, (Ticket(), 0.0))[0]

    def _reap(self) -> None:
        """Release what flows hold that never ended; parked in the order of time."""
        now = self._clock()
        while self._parked:
            flow, (ticket, until) = next(iter(self._parked.items()))
            if until > now:
                return
            ticket.release()
            del self._parked[flow]

    def metered(self, scope: Scope, metered: int, sequence: int) -> None:
        """A commit changed what this tenant has used; a tally that was read from the store after it knows already."""
        tally = self._tallies.get((scope.slot, scope.tenant))
        if tally is not None and sequence > tally.sequence:
            tally.used += metered

    def forget(self, slots: Collection[int]) -> None:
        """Drop what is remembered of slots that left: another shard counts on."""
        for key in [key for key in self._tallies if key[0] in slots]:
            del self._tallies[key]

    def credits_limit(self, principal: Principal) -> int | None:
        """Credits a month, None for unlimited."""
        return credits_limit(self._settings, principal.tier)

    def _open_tally(self, reader: Reader, scope: Scope, now_ms: int) -> Tally:
        tally = Tally(metering.period_of(now_ms), metering.used(reader, scope, now_ms), reader.sequence)
        self._tallies[scope.slot, scope.tenant] = tally
        if len(self._tallies) > TALLIES_MAX:
            key, oldest = next(iter(self._tallies.items()))
            if oldest.held:
                self._tallies.move_to_end(key)
            else:
                del self._tallies[key]
        return tally

    def _ceilings(self, principal: Principal | None, operation: Operation, call: Call) -> list[tuple[tuple, int]]:
        """[(log key, requests per minute)] that apply; a ceiling of 0 means unlimited and is left out."""
        if principal is None:
            if operation.internal:
                return []
            ceiling = getattr(self._settings.auth, f"{operation.rate}_per_minute", 0)
            callers = [("address", call.client)]
            if getattr(call.body, "email", None) is not None:
                callers.append(("email", normalise_email(call.body.email)))
            return [((operation.rate, *caller), ceiling) for caller in callers] if ceiling else []
        found = []
        override = self._settings.limits.requests_per_minute
        ceiling = self._tiers[principal.tier]["requests_per_minute"] if override is None else override
        if ceiling and not call.admitted:
            found.append(((principal.slot, principal.tenant_number, "all"), ceiling))
        rate = operation.rate if operation.rate_of is None or call.body is None else operation.rate_of(call.body)
        cap = self._caps.get(rate)
        if cap is not None:
            found.append(((principal.slot, principal.tenant_number, rate), cap))
        return found

    def _log(self, key: tuple, now: float) -> deque[float]:
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = deque()
            if len(self._logs) > LOGS_MAX:
                self._logs.popitem(last=False)
        else:
            self._logs.move_to_end(key)
        while log and log[0] <= now - WINDOW_SECONDS:
            log.popleft()
        return log


def credits_limit(settings: Settings, tier: str) -> int | None:
    """Credits a month that a tier has here, None for unlimited."""
    override = settings.limits.credits_per_month
    if override is not None:
        return override or None
    credits = getattr(settings.tiers, f"{tier}_credits")
    return None if credits < 0 else credits


def require_feature(settings: Settings, tier: str, feature: str) -> None:
    """Raises FeatureNotAvailable, with the specification's flat body, unless the tier has the feature.

    For operations that learn from their input what they need; others declare `feature`.
    """
    needed = FEATURES[feature]
    if not settings.limits.features or _RANK[tier] >= _RANK[needed["tier"]]:
        return
    current, required = settings.tiers.terms(tier), settings.tiers.terms(needed["tier"])
    raise FeatureNotAvailable(
        {
            "error": "feature_not_available",
            "feature": feature,
            "feature_name": needed["name"],
            "message": f"{needed['name']}: this takes the tier {required['display_name']}, and the account has {current['display_name']}.",
            "current_tier": {"name": tier, "display_name": current["display_name"]},
            "required_tier": {name: required[name] for name in ("name", "display_name", "price")} | {"credits": _credits_text(required)},
            "upgrade_url": settings.billing.upgrade_url or f"{settings.http.base_url}/dashboard/billing",
            "pricing_url": settings.billing.pricing_url or f"{settings.http.base_url}/v1/billing/tiers",
        }
    )


def _credits_text(terms: dict[str, Any]) -> str:
    return "unlimited" if terms["credits"] < 0 else f"{terms['credits']:,} / month"
