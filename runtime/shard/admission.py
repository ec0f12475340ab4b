"""Who may go on now: the per-minute ceilings, the month's credits and the tier's features.

All of it is decided together, in the order in which the tenant's one shard takes its calls, and
nothing is counted or reserved unless all of it passes:

    minute   an exact sliding log per tenant, and one per endpoint cap: request n+1 inside any 60 s
             is refused, wherever it came from. The logs live in memory on the monotonic clock: a
             restart forgets at most one minute
    feature  an operation that the tier lacks is refused with FeatureNotAvailable
    extra    one whose packages are not installed is refused with NotInstalled
    month    credits used and credits reserved, by calls under way too, against the tier's
             allowance. An operation that asks for more than is left is refused whole

The store knows what was used; a `Quota` is the shard's running copy of it, together with what calls
under way have reserved. A call's reservation is released when its transaction has ended, and only
the shard's event loop touches quotas, so the thousandth credit is given out once however many ask
for it. A flow's reservation is suspended between its beginning and its end, which are two calls;
that of a flow whose gateway died is reaped after RESERVATION_SECONDS_MAX, and costs nothing.

Public operations have no tenant; they are throttled by the caller's address, so that nobody tries
many accounts. Whoever guesses at one account is held up by what has failed, and nobody else is
(runtime/shard/guesses.py).
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from runtime.api import metering
from runtime.api.operation import ACCESS_RATE, Call, Operation, Principal
from runtime.api.tiers import NO_OFFER, Feature, Offer, credits_limit, require_feature
from runtime.errors import ApiError, RateLimited
from runtime.limits import QUOTAS_MAX, RESERVATION_SECONDS_MAX, TIERS, WINDOW_SECONDS
from runtime.networks import network_of
from runtime.settings import Settings
from runtime.shard.guesses import Guess, Guesses
from runtime.tenancy import normalise_email
from storage.store import Reader, Scope

LOGS_MAX = 100_000  # of strangers, and as many of tenants


@dataclass(slots=True)
class Quota:
    """A tenant's month. used: in the store as of `sequence` and after; reserved: by calls under
    way.
    """

    period: int
    used: int
    sequence: int
    reserved: int = 0


@dataclass(slots=True)
class Reservation:
    """One admitted call: the logs that count it, the credits that it may cost, and the quota they
    are reserved in; None before `Admission.reserve` and after `release`.

    account  of a flow that has begun: whose it is
    guess    at a secret of an account, until it is known what it was
    """

    logs: list[deque[float]] = field(default_factory=list)
    credits: int = 0
    quota: Quota | None = None
    account: tuple[Principal, Scope] | None = None
    guess: Guess | None = None

    def judge(self, failed: BaseException) -> None:
        """Let a wrong guess count."""
        if isinstance(failed, ApiError) and failed.guess:
            self.guess = None

    def withdraw(self) -> None:
        """Take the count back; only before anything else was admitted."""
        for log in self.logs:
            log.pop()

    def release(self, *, used: bool = False) -> None:
        """Give back what the call reserved; doing so twice is harmless. used: it cost that much,
        which no commit will tell.
        """
        if self.guess is not None:
            self.guess.take_back()
            self.guess = None
        if self.quota is not None:
            self.quota.reserved -= self.credits
            self.quota.used += self.credits if used else 0
            self.quota = None


class _SlidingLogs:
    """The moments of a minute's requests, by what is counted; the ones that were asked for last."""

    def __init__(self) -> None:
        self._logs: OrderedDict[tuple, deque[float]] = OrderedDict()

    def of(self, key: tuple, now: float) -> deque[float]:
        """What lies inside the minute before now."""
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


class Admission:
    """One shard's sliding logs and quotas. Not thread-safe: the shard's event loop alone asks.

    features  by the key that operations name
    caps      rate bucket -> requests per minute; a bucket without one has the tier's rate alone
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        *,
        offer: Offer = NO_OFFER,
        features: Mapping[str, Feature] = MappingProxyType({}),
        caps: Mapping[str, int] = MappingProxyType({}),
    ):
        self._settings = settings
        self._offer = offer
        self._features = features
        self.clock = clock
        self._caps = caps
        self._tiers = {name: settings.tiers.terms(name) for name in TIERS}
        # Apart: however many addresses strangers have, none of a tenant's is forgotten for them.
        self._strangers, self._tenants = _SlidingLogs(), _SlidingLogs()
        self._quotas: OrderedDict[tuple[int, int], Quota] = OrderedDict()
        self._guesses = Guesses(lambda: self.clock(), settings.auth.failed_login_wait_seconds_max)
        self._suspended: dict[bytes, tuple[Reservation, float]] = {}

    def admit(self, principal: Principal | None, operation: Operation, call: Call) -> Reservation:
        """Count the request, or raise RateLimited, FeatureNotAvailable or NotInstalled and count
        nothing. Credits are asked for by `reserve`.
        """
        readable = call.rejected is None and not call.preflight
        if principal is not None and operation.feature is not None and readable:
            feature = (
                operation.feature(call.body) if callable(operation.feature) else operation.feature
            )
            if feature is not None:
                require_feature(
                    self._settings, principal.tier, feature, self._features[feature], self._offer
                )
        if operation.extra is not None and readable:
            operation.require_extra(call.body)
        reservation = Reservation()
        if readable and principal is not None:
            reservation.credits = operation.reserved_for(call.body, self._settings)
        if operation.guarded and readable:
            account = _account_of(principal, call)
            reservation.guess = self._guesses.begin((*account, network_of(call.client)))
        try:
            self._count(
                reservation,
                self._strangers if principal is None else self._tenants,
                self._ceilings(principal, operation, call),
            )
        except RateLimited:
            reservation.release()
            raise
        return reservation

    def _count(
        self, reservation: Reservation, kept: _SlidingLogs, ceilings: list[tuple[tuple, int]]
    ) -> None:
        """Count the request in these logs, or raise RateLimited and count it in none."""
        now = self.clock()
        logs = [(kept.of(key, now), ceiling) for key, ceiling in ceilings]
        for log, ceiling in logs:
            if len(log) >= ceiling:
                wait = max(1, math.ceil(log[len(log) - ceiling] + WINDOW_SECONDS - now))
                raise RateLimited(
                    f"The limit of {ceiling} requests a minute is reached. Retry in {wait} s.",
                    limit=ceiling,
                    retry_after_seconds=wait,
                )
        for log, _ in logs:
            log.append(now)
            reservation.logs.append(log)

    def reserve(
        self,
        reservation: Reservation,
        principal: Principal,
        reader: Reader,
        scope: Scope,
        now_ms: int,
    ) -> None:
        """Set the reservation's credits aside, or raise RateLimited and take the request's count
        back.
        """
        limit = self.credits_limit(principal)
        if reservation.credits == 0 or limit is None:
            return
        period = metering.period_of(now_ms)
        quota = self._quotas.get((scope.slot, scope.tenant))
        if quota is None or quota.period != period:
            quota = self._open_quota(reader, scope, now_ms)
        self._reap()
        left = limit - quota.used - quota.reserved
        if reservation.credits > left:
            reservation.withdraw()
            raise metering.quota_exceeded(reservation.credits, limit, limit - left, now_ms)
        quota.reserved += reservation.credits
        reservation.quota = quota

    def suspend(self, flow: bytes, reservation: Reservation) -> None:
        """Keep the reservation of a flow, named by its call's seed, until the flow ends."""
        self._reap()
        self._suspended[flow] = (reservation, self.clock() + RESERVATION_SECONDS_MAX)

    def resume(self, flow: bytes) -> Reservation:
        """Hand out the reservation of a flow that ends; an empty one when it was reaped or
        forgotten in a restart.
        """
        return self._suspended.pop(flow, (Reservation(), 0.0))[0]

    def _reap(self) -> None:
        """Release the reservations of flows that never ended; they were suspended in the order of
        time.
        """
        now = self.clock()
        while self._suspended:
            flow, (reservation, until) = next(iter(self._suspended.items()))
            if until > now:
                return
            reservation.release()
            del self._suspended[flow]

    def metered(self, scope: Scope, metered: int, sequence: int) -> None:
        """A commit changed what this tenant has used; a quota that was read from the store after it
        knows already.
        """
        quota = self._quotas.get((scope.slot, scope.tenant))
        if quota is not None and sequence > quota.sequence:
            quota.used += metered

    def forget(self, slots: Collection[int]) -> None:
        """Drop what is remembered of slots that left: another shard counts on."""
        for key in [key for key in self._quotas if key[0] in slots]:
            del self._quotas[key]

    def credits_limit(self, principal: Principal) -> int | None:
        """Credits a month, None for unlimited."""
        return credits_limit(self._settings, principal.tier)

    def _open_quota(self, reader: Reader, scope: Scope, now_ms: int) -> Quota:
        quota = Quota(
            metering.period_of(now_ms), metering.used(reader, scope, now_ms), reader.sequence
        )
        self._quotas[scope.slot, scope.tenant] = quota
        if len(self._quotas) > QUOTAS_MAX:
            key, oldest = next(iter(self._quotas.items()))
            if oldest.reserved:
                self._quotas.move_to_end(key)
            else:
                del self._quotas[key]
        return quota

    def _ceilings(
        self, principal: Principal | None, operation: Operation, call: Call
    ) -> list[tuple[tuple, int]]:
        """[(log key, requests per minute)] that apply; a ceiling of 0 means unlimited and is left
        out.
        """
        if principal is None:
            if operation.internal:
                return []
            ceiling = getattr(self._settings.auth, f"{operation.rate}_per_minute", 0)
            return [((operation.rate, network_of(call.client)), ceiling)] if ceiling else []
        found = []
        override = self._settings.limits.requests_per_minute
        ceiling = (
            self._tiers[principal.tier]["requests_per_minute"] if override is None else override
        )
        if ceiling and not call.admitted:
            # Whoever has got hold of a key must not keep its owner from taking it back.
            apart = operation.rate == ACCESS_RATE and principal.is_session
            counted = ACCESS_RATE if apart else "all"
            found.append(((principal.slot, principal.tenant_number, counted), ceiling))
        rate = (
            operation.rate
            if operation.rate_of is None or call.body is None
            else operation.rate_of(call.body)
        )
        cap = self._caps.get(rate)
        if cap is not None:
            found.append(((principal.slot, principal.tenant_number, rate), cap))
        return found


def _account_of(principal: Principal | None, call: Call) -> tuple[object, ...]:
    """Whose secret a call may be guessing at: the caller's own, or that of the address it names."""
    if principal is not None:
        return principal.slot, principal.tenant_number
    return (normalise_email(call.body.email),)
