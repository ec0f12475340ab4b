"""When a call that failed is made again, and after how long.

What is repeated is safe to repeat: a call that changes nothing, or one with an Idempotency-Key,
which stays the same over all its attempts, so that the service takes it in once. Any other call is
repeated only when it cannot have had an effect: the connection was never made, or the service
refused it with 429.

What is worth repeating: no answer, or an answer that names a Retry-After (409 while a twin is
running, 429, 502, 503, 504), or a 500, 502, 503 or 504 of something between here and the service.
Other answers stay what they are, however often one asks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import GATEWAY_FAULTS, PASSING, ApiError, ConnectionFailed, MnemeError, RateLimited

RETRY_AFTER_SPREAD = 1.25  # many who are told the same second do not all come back in it


@dataclass(frozen=True, slots=True)
class Retries:
    """How patient a client is.

    attempts_max             attempts of one call, the first included; 1 repeats nothing
    first_seconds            longest wait before the second attempt; each further one is twice as
                             long, and a random half shorter
    wait_seconds_max         longest wait of its own accord
    retry_after_seconds_max  a service that asks for a longer wait gets none: the error is raised at
                             once
    seconds_max              no attempt begins later after the first one, so that a service which
                             takes calls and answers none holds nobody up for longer than this and
                             one time-out
    """

    attempts_max: int = 14
    first_seconds: float = 0.25
    wait_seconds_max: float = 8.0
    retry_after_seconds_max: float = 60.0
    seconds_max: float = 240.0

    def wait(self, attempt: int, error: MnemeError, *, repeatable: bool) -> float | None:
        """Seconds to wait after this attempt, the first being 1, before the next one; None where
        there is no next one.
        """
        if attempt >= self.attempts_max or not (
            passes(error) and (repeatable or had_no_effect(error))
        ):
            return None
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None and asked > self.retry_after_seconds_max:
            return None
        own = min(
            self.wait_seconds_max, self.first_seconds * 2.0 ** (attempt - 1)
        ) * random.uniform(0.5, 1.0)
        return max(own, (asked or 0.0) * random.uniform(1.0, RETRY_AFTER_SPREAD))


def passes(error: MnemeError) -> bool:
    """Whether the same call may succeed a moment later."""
    if isinstance(error, ApiError):
        waits = error.retry_after is not None and error.status in PASSING
        return waits or (error.status in GATEWAY_FAULTS and not error.from_service)
    return isinstance(error, ConnectionFailed)


def had_no_effect(error: MnemeError) -> bool:
    """Whether the call that ended so has certainly changed nothing."""
    return isinstance(error, RateLimited) or (
        isinstance(error, ConnectionFailed) and not error.sent
    )
