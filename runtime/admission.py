"""Who may go on now: the per-minute ceilings (specification part 8).

An exact sliding log per tenant: request n+1 inside any 60 s is refused, wherever it came from, because the tenant's one shard
keeps the log. The tier's ceiling and the endpoint's cap are decided together and nothing is counted unless both pass. The log
lives in memory on the monotonic clock: a restart forgets at most one minute.

Public operations have no tenant; they are throttled by the caller's address, and by the account they name, so that neither
one address can try many accounts nor many addresses one account.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from runtime.errors import RateLimited
from runtime.limits import ENDPOINT_CAPS, TIERS, WINDOW_SECONDS
from runtime.operation import Call, Operation, Principal
from runtime.placement import normalise_email
from runtime.settings import Settings

LOGS_MAX = 100_000


class Admission:
    """One shard's sliding logs. Not thread-safe: the shard's event loop alone asks."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic):
        self._settings = settings
        self._clock = clock
        self._logs: OrderedDict[tuple, deque[float]] = OrderedDict()

    def admit(self, principal: Principal | None, operation: Operation, call: Call) -> None:
        """Count the request, or raise RateLimited and count nothing."""
        ceilings = self._ceilings(principal, operation, call)
        if not ceilings:
            return
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
        tenant = (principal.slot, principal.tenant_number)
        override = self._settings.limits.requests_per_minute
        ceiling = TIERS[principal.tier]["requests_per_minute"] if override is None else override
        if ceiling and not call.admitted:
            found.append(((*tenant, "all"), ceiling))
        rate = operation.rate if operation.rate_of is None or call.body is None else operation.rate_of(call.body)
        if self._settings.limits.endpoint_caps and rate in ENDPOINT_CAPS:
            found.append(((*tenant, rate), ENDPOINT_CAPS[rate]))
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
