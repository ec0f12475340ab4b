"""Failures hold up whoever makes them, at the account they are made at, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import httpx
import pytest

from runtime.errors import RateLimited
from runtime.limits import GUESSES_AT_ONCE, GUESSES_FORGOTTEN_SECONDS
from runtime.networks import network_of
from runtime.shard.guesses import Guesses
from tests.support.in_process import PASSWORD, InProcess, in_process

KEY = ("ada@example.com", "198.51.100.7")
HOUR = 3_600


class Clock:
    now = 5_000.0

    def __call__(self) -> float:
        return self.now


# --- the count ------------------------------------------------------------------------------------


def wrong(guesses: Guesses) -> int:
    """Guess, and fail; -> for how long the next attempt would have to wait when it is refused."""
    try:
        guesses.begin(KEY)
    except RateLimited as refused:
        return refused.retry_after_seconds
    return 0


def test_an_hour_of_guessing_as_fast_as_may_be_is_at_most_a_hundred_guesses() -> None:
    clock = Clock()
    guesses = Guesses(clock, 60.0)
    made: list[float] = []
    while clock.now < 5_000 + 3 * HOUR:
        wait = wrong(guesses)
        if wait:
            clock.now += wait
        else:
            made.append(clock.now)
    for start in made:
        assert sum(start <= moment < start + HOUR for moment in made) <= 100
    assert made[:GUESSES_AT_ONCE] == [5_000.0] * GUESSES_AT_ONCE
    waits = [later - sooner for sooner, later in pairwise(made[9:])]
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]


def test_attempts_under_way_count_until_it_is_known_what_they_are() -> None:
    guesses = Guesses(Clock(), 60.0)
    begun = [guesses.begin(KEY) for _ in range(GUESSES_AT_ONCE)]
    assert wrong(guesses) == 1
    begun[0].take_back()
    assert wrong(guesses) == 0
    begun[1].right()
    assert [wrong(guesses) for _ in range(GUESSES_AT_ONCE)] == [0] * GUESSES_AT_ONCE


def test_an_hour_without_a_failure_forgets_them() -> None:
    clock = Clock()
    guesses = Guesses(clock, 60.0)
    for _ in range(GUESSES_AT_ONCE):
        wrong(guesses)
    clock.now += GUESSES_FORGOTTEN_SECONDS
    assert [wrong(guesses) for _ in range(GUESSES_AT_ONCE)] == [0] * GUESSES_AT_ONCE


def test_where_the_setting_is_0_nothing_is_counted() -> None:
    guesses = Guesses(Clock(), 0)
    assert all(guesses.begin(KEY) is None for _ in range(1_000))


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::ffff", "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", "::ffff:198.51.100.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_a_network_of_ipv6_is_one_caller(address: str, network: str) -> None:
    assert network_of(address) == network


# --- over HTTP ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    given = {"http__trusted_proxies": ["127.0.0.1"], "auth__failed_login_wait_seconds_max": 60}
    with in_process(tmp_path_factory.mktemp("guessed"), **given) as opened:
        opened.shard.parts.admission.clock = Clock()
        yield opened


def login(service: InProcess, email: str, address: str, password: str = "wrong") -> httpx.Response:
    body = {"email": email, "password": password}
    return service.request("POST", "/v1/auth/login", body, X_Forwarded_For=address)


def statuses(service: InProcess, email: str, address: str, times: int) -> list[int]:
    return [login(service, email, address).status_code for _ in range(times)]


def test_failures_from_one_network_hold_up_that_network_alone(service: InProcess) -> None:
    service.register("ada@example.com")
    attacker = [f"2001:db8:bad:1::{n:x}" for n in range(GUESSES_AT_ONCE + 1)]
    answers = [login(service, "ada@example.com", address) for address in attacker]
    assert [answer.status_code for answer in answers] == [401] * GUESSES_AT_ONCE + [429]
    assert answers[-1].headers["Retry-After"] == "1"
    assert answers[-1].json()["error"]["code"] == "rate_limit_exceeded"
    owner = login(service, "ada@example.com", "2001:db8:900d:1::1", PASSWORD)
    assert owner.status_code == 200
    refused = login(service, "ada@example.com", attacker[0], PASSWORD)
    assert refused.status_code == 429
    service.shard.parts.admission.clock.now += 2
    assert login(service, "ada@example.com", attacker[0], PASSWORD).status_code == 200
    assert statuses(service, "ada@example.com", attacker[1], 3) == [401] * 3


def test_an_address_without_an_account_is_guarded_alike(service: InProcess) -> None:
    found = statuses(service, "nobody@example.com", "198.51.100.7", GUESSES_AT_ONCE + 1)
    assert found == [401] * GUESSES_AT_ONCE + [429]


def test_a_session_guesses_no_password_either(service: InProcess) -> None:
    token = service.register("bob@example.com")
    body = {"current_password": "wrong", "new_password": "four bronze lanterns hum"}
    found = [
        service.request("POST", "/v1/auth/password", body, who=token).status_code
        for _ in range(GUESSES_AT_ONCE + 1)
    ]
    assert found == [403] * GUESSES_AT_ONCE + [429]


def test_what_is_no_guess_is_not_counted(service: InProcess) -> None:
    token = service.register("carol@example.com")
    unfit = {"current_password": "wrong", "new_password": "password1234"}
    for _ in range(GUESSES_AT_ONCE + 1):
        answer = service.request("POST", "/v1/auth/password", unfit, who=token)
        assert answer.status_code == 422
    fit = {"current_password": PASSWORD, "new_password": "four bronze lanterns hum"}
    for _ in range(GUESSES_AT_ONCE + 1):  # the first is made, and its repetitions are replayed
        answer = service.request("POST", "/v1/auth/password", fit, who=token, Idempotency_Key="k")
        assert answer.status_code == 200
