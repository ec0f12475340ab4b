"""The sliding log is exact, whatever the moment inside the minute; reserved credits are released
once; settings say how much there is.
"""

from __future__ import annotations

import dataclasses
import random

import pytest

from runtime.api.operation import Call, Operation, Principal, Read
from runtime.api.tiers import credits_limit, require_feature
from runtime.errors import RateLimited
from runtime.limits import RESERVATION_SECONDS_MAX, TIERS
from runtime.shard import admission as ceilings
from runtime.shard.admission import Admission, Quota, Reservation
from serve_app import Settings, registry
from tests.support import ROOT
from tests.support.worlds import settings


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def operation(rate: str = "default", scope: str = "read") -> Operation:
    return Read(
        name="x",
        method="POST",
        path="/v1/x",
        handler=print,
        summary="",
        response=None,
        rate=rate,
        scope=scope,
    )


def principal(number: int = 1, tier: str = "free") -> Principal:
    return Principal(7, number, "usr", b"tag_", tier, frozenset({"read"}), "key", False)


CALL = Call(operation="x", slot=7, now_ms=0, seed=b"", request_id="r", client="198.51.100.1")


def served(admission: Admission, clock: Clock, moments: list[float], **fields) -> list[float]:
    passed = []
    for moment in moments:
        clock.now = 1_000 + moment
        try:
            admission.admit(principal(**fields), operation(), CALL)
        except RateLimited:
            continue
        passed.append(moment)
    return passed


def make(**overrides) -> tuple[Admission, Clock]:
    clock, given = Clock(), settings(**overrides)
    return Admission(given, clock, caps=registry().caps(given)), clock


def test_no_window_of_a_minute_holds_more_than_the_ceiling() -> None:
    admission, clock = make(limits__requests_per_minute=60)
    rng = random.Random(5)
    passed = served(admission, clock, sorted(rng.uniform(0, 300) for _ in range(3_000)))
    for i, start in enumerate(passed):
        assert sum(1 for moment in passed[i:] if moment < start + 60) <= 60
    assert len(passed) >= 60 * 5


def test_the_next_request_says_when_to_come_back_and_that_is_true() -> None:
    admission, clock = make(limits__requests_per_minute=3)
    assert served(admission, clock, [0, 10, 20]) == [0, 10, 20]
    clock.now = 1_025
    with pytest.raises(RateLimited) as refused:
        admission.admit(principal(), operation(), CALL)
    assert (refused.value.limit, refused.value.retry_after_seconds) == (3, 35)
    clock.now = 1_025 + 35
    admission.admit(principal(), operation(), CALL)


def test_tenants_do_not_share_a_log_and_tiers_set_the_ceiling() -> None:
    clock = Clock()
    admission = Admission(
        settings().model_copy(
            update={"limits": settings().limits.model_copy(update={"requests_per_minute": None})}
        ),
        clock,
    )
    assert len(served(admission, clock, [0.0] * 500, number=1, tier="free")) == 60
    assert len(served(admission, clock, [0.0] * 500, number=2, tier="starter")) == 300


def test_an_endpoint_cap_refuses_without_counting_against_the_tier() -> None:
    admission, clock = make(limits__requests_per_minute=40, limits__endpoint_caps=True)
    for _ in range(30):
        admission.admit(principal(), operation("search"), CALL)
    for _ in range(100):
        with pytest.raises(RateLimited) as refused:
            admission.admit(principal(), operation("search"), CALL)
    assert refused.value.limit == 30
    assert len(served(admission, clock, [0.0] * 50)) == 10


def test_zero_means_unlimited() -> None:
    admission, clock = make(limits__requests_per_minute=0)
    assert len(served(admission, clock, [0.0] * 5_000)) == 5_000


def test_public_operations_are_throttled_by_address() -> None:
    admission, _ = make(auth__login_per_minute=5)
    for _ in range(5):
        admission.admit(None, operation("login", "public"), CALL)
    with pytest.raises(RateLimited):
        admission.admit(None, operation("login", "public"), CALL)


def test_a_network_of_ipv6_is_one_address() -> None:
    admission, _ = make(auth__login_per_minute=5)
    addresses = [f"2001:db8:0:{n // 6}::{n}" for n in range(12)]
    refused = 0
    for address in addresses:
        call = dataclasses.replace(CALL, client=address)
        try:
            admission.admit(None, operation("login", "public"), call)
        except RateLimited:
            refused += 1
    assert refused == 2


def test_strangers_make_no_tenant_s_minute_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "LOGS_MAX", 10)
    admission, clock = make(limits__requests_per_minute=3, auth__login_per_minute=5)
    assert served(admission, clock, [0.0] * 4) == [0.0] * 3
    for number in range(50):
        call = dataclasses.replace(CALL, client=f"198.51.100.{number}")
        admission.admit(None, operation("login", "public"), call)
    assert served(admission, clock, [0.0]) == []


def test_a_call_after_its_preflight_is_counted_once_and_its_body_names_the_bucket() -> None:
    admission, _ = make(limits__requests_per_minute=10, limits__endpoint_caps=True)
    uploads = dataclasses.replace(operation(), rate_of=lambda body: body)
    preflight = dataclasses.replace(CALL, preflight=True)
    for number in range(10):
        admission.admit(principal(), uploads, preflight)
        admission.admit(
            principal(),
            uploads,
            dataclasses.replace(CALL, admitted=True, body="media" if number < 3 else "default"),
        )
    with pytest.raises(RateLimited) as refused:
        admission.admit(principal(), uploads, preflight)
    assert refused.value.limit == 10
    for _ in range(20 - 3):
        admission.admit(
            principal(), uploads, dataclasses.replace(CALL, admitted=True, body="media")
        )
    with pytest.raises(RateLimited) as refused:
        admission.admit(
            principal(), uploads, dataclasses.replace(CALL, admitted=True, body="media")
        )
    assert refused.value.limit == 20


# --- credits --------------------------------------------------------------------------------------


def reserving(admission: Admission, credits: int, quota: Quota) -> Reservation:
    quota.reserved += credits
    return Reservation(credits=credits, quota=quota)


def test_a_flow_keeps_its_credits_between_its_beginning_and_its_end() -> None:
    admission, clock = make()
    quota = Quota(period=0, used=0, sequence=1)
    admission.suspend(b"flow", reserving(admission, 10, quota))
    clock.now += RESERVATION_SECONDS_MAX - 1
    admission.suspend(b"other", reserving(admission, 3, quota))
    assert quota.reserved == 13
    admission.resume(b"flow").release()
    assert (quota.reserved, quota.used) == (3, 0)
    assert admission.resume(b"flow").credits == 0, "it ended once"


def test_a_flow_whose_gateway_died_is_reaped() -> None:
    admission, clock = make()
    quota = Quota(period=0, used=0, sequence=1)
    admission.suspend(b"dead", reserving(admission, 10, quota))
    clock.now += RESERVATION_SECONDS_MAX
    admission.suspend(b"alive", reserving(admission, 1, quota))
    assert quota.reserved == 1
    admission.resume(b"dead").release()
    assert quota.reserved == 1


def test_a_reservation_is_released_once() -> None:
    quota = Quota(period=0, used=0, sequence=1, reserved=4)
    reservation = Reservation(credits=4, quota=quota)
    reservation.release(used=True)
    reservation.release(used=True)
    assert (quota.reserved, quota.used) == (0, 4)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [("free", 1_000), ("starter", 25_000), ("pro", 200_000), ("scale", 1_000_000)],
)
def test_production_keeps_to_the_table_of_the_specification(tier: str, expected: int) -> None:
    production = Settings.load(ROOT / "configs/production.yaml")
    assert credits_limit(production, tier) == expected
    assert credits_limit(production, "enterprise") is None
    minute = {"free": 60, "starter": 300, "pro": 1_200, "scale": 2_000, "enterprise": 3_000}
    assert {name: production.tiers.terms(name)["requests_per_minute"] for name in minute} == minute
    assert {name: production.tiers.terms(name)["price"] for name in TIERS} == {
        name: terms["price"] for name, terms in TIERS.items()
    }
    assert production.limits.requests_per_minute is None
    assert registry().caps(production) == {
        "search": 30,
        "media": 20,
        "batch": 30,
    }
    assert (production.billing.default_tier, production.limits.features) == ("free", True)


def test_a_local_installation_is_unlimited() -> None:
    local = Settings.load(ROOT / "configs/local.yaml")
    tier = local.billing.default_tier
    assert credits_limit(local, tier) is None
    assert (local.limits.requests_per_minute, registry().caps(local)) == (0, {})
    for key, feature in registry().features.items():
        require_feature(local, tier, key, feature)


def test_settings_override_every_figure() -> None:
    given = settings(
        limits__requests_per_minute=None,
        limits__endpoint_caps=True,
        limits__search_per_minute=2,
        tiers__free_requests_per_minute=3,
    )
    clock = Clock()
    admission = Admission(given, clock, caps=registry().caps(given))
    for _ in range(2):
        admission.admit(principal(), operation("search"), CALL)
    for rate, limit in (("search", 2), ("default", 3)):
        with pytest.raises(RateLimited) as refused:
            for _ in range(2):
                admission.admit(principal(), operation(rate), CALL)
        assert refused.value.limit == limit
    assert credits_limit(settings(tiers__free_credits=7), "free") == 7
    assert credits_limit(settings(limits__credits_per_month=0), "free") is None
