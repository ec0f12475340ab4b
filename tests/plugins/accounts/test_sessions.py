"""Sessions and the password: what is listed is what works, and what is ended is refused by the next
request.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins import accounts
from runtime.api import access_tokens, tenants
from runtime.limits import SESSIONS_PER_TENANT_MAX
from runtime.timestamps import iso, parse
from tests.support.in_process import PASSWORD as LONG_PASSWORD
from tests.support.in_process import in_process
from tests.support.shard_harness import Answer, ShardHarness

EMAIL, PASSWORD, NEW = "ada@example.com", "correct horse", "four bronze lanterns hum"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    opened = ShardHarness(tmp_path / "shard", [accounts.plugin])
    yield opened
    opened.close()


def login(harness: ShardHarness, password: str = PASSWORD) -> Answer:
    return harness("auth.login", {"email": EMAIL, "password": password})


def change(harness: ShardHarness, who: str, current: str = PASSWORD, new: str = NEW) -> Answer:
    body = {"current_password": current, "new_password": new}
    return harness("auth.password", body, who=who)


def listed(harness: ShardHarness, who: str) -> list[dict]:
    return harness("auth.sessions.list", who=who).body["items"]


def works(harness: ShardHarness, who: str) -> bool:
    return harness("auth.me", who=who).status == 200


def token_of_an_earlier_release(harness: ShardHarness, own: str) -> str:
    """A token whose session is no row, of the account of the given one."""
    scope = harness.scope_of(own)
    with harness.shard.store.snapshot() as snapshot:
        account = tenants.open_account(snapshot, scope.slot, scope.tenant)
    return access_tokens.issue_token(
        scope.slot,
        account,
        harness.secrets,
        now_ms=harness.now_ms,
        lifetime_seconds=3_600,
        token_id="0f" * 16,
    )[0]


# --- sessions -------------------------------------------------------------------------------------


def test_sessions_are_listed_newest_first_with_what_was_seen_of_them(harness: ShardHarness) -> None:
    first = harness.register()
    begun = iso(harness.now_ms)
    second = login(harness).body["access_token"]
    works(harness, second)
    seen = iso(harness.now_ms)
    newer, older = listed(harness, first)
    assert newer["last_seen_at"] == seen
    assert (older["created_at"], older["last_seen_at"]) == (begun, iso(harness.now_ms))
    assert (newer["current"], older["current"]) == (False, True)
    assert set(older["id"][:4] + newer["id"][:4]) == set("ses_")
    assert [each["current"] for each in listed(harness, second)] == [True, False]
    assert older["expires_at"] == iso(parse(begun) + 30 * 24 * 3600 * 1000)


def test_a_session_that_is_ended_is_refused_by_the_next_request(harness: ShardHarness) -> None:
    first = harness.register()
    second = login(harness).body["access_token"]
    session = listed(harness, second)[0]["id"]
    assert harness("auth.sessions.delete", who=first, id=session).status == 204
    refused = harness("auth.me", who=second)
    assert (refused.status, refused.body["code"]) == (401, "invalid_api_key")
    assert "Log in again" in refused.body["message"]
    assert works(harness, first)
    assert harness("auth.sessions.delete", who=first, id=session).status == 404


def test_a_logout_takes_the_session_off_the_list(harness: ShardHarness) -> None:
    first = harness.register()
    second = login(harness).body["access_token"]
    assert harness("auth.logout", who=second).status == 204
    assert len(listed(harness, first)) == 1
    assert not works(harness, second)


def test_all_others_are_ended_at_once(harness: ShardHarness) -> None:
    own = harness.register()
    others = [login(harness).body["access_token"] for _ in range(3)]
    others.append(token_of_an_earlier_release(harness, own))
    key = harness("auth.api_keys.create", {"name": "k", "scopes": ["admin"]}, who=own).body["key"]
    assert all(works(harness, other) for other in others)
    ended = harness("auth.sessions.delete_others", who=own)
    assert (ended.status, ended.body) == (200, {"ended": 3})
    assert not any(works(harness, other) for other in others)
    assert works(harness, own) and works(harness, key)
    assert harness("auth.sessions.delete_others", who=key).body == {"ended": 1}
    assert not works(harness, own)


def test_a_token_of_an_earlier_release_works_and_outlives_what_it_ends(
    harness: ShardHarness,
) -> None:
    first = harness.register()
    old = token_of_an_earlier_release(harness, first)
    assert works(harness, old)
    assert len(listed(harness, old)) == 1
    assert harness("auth.sessions.delete_others", who=old).body == {"ended": 1}
    assert works(harness, old) and not works(harness, first)
    assert [each["current"] for each in listed(harness, old)] == [True]
    assert harness("auth.logout", who=old).status == 204
    assert not works(harness, old)


def test_expired_sessions_are_forgotten_at_a_login(harness: ShardHarness) -> None:
    harness.register()
    harness.now_ms += 30 * 24 * 3600 * 1000 + 1
    assert len(listed(harness, login(harness).body["access_token"])) == 1


def test_of_too_many_sessions_the_oldest_ends(harness: ShardHarness) -> None:
    first = harness.register()
    scope = harness.scope_of(first)
    row = access_tokens.SessionRow(0, harness.now_ms + 10**9, 0, "", "")

    def fill(transaction) -> None:
        sessions = transaction.bind(access_tokens.SESSIONS, scope)
        for number in range(SESSIONS_PER_TENANT_MAX - 1):
            sessions.put((f"ses_z{number:04}",), row)

    harness.shard.store.write(fill)
    assert works(harness, first)
    second = login(harness).body["access_token"]
    assert works(harness, second) and not works(harness, first)


def test_who_may_not_mint_keys_learns_nothing_of_sessions(harness: ShardHarness) -> None:
    own = harness.register()
    key = harness("auth.api_keys.create", {"name": "k"}, who=own).body["key"]
    for operation in ("auth.sessions.list", "auth.sessions.delete_others"):
        assert harness(operation, who=key).status == 403
    assert change(harness, key).status == 403


def test_a_session_says_where_it_is_used_and_by_what(tmp_path: Path) -> None:
    with in_process(tmp_path, http__trusted_proxies=["127.0.0.1"]) as service:
        service.register(EMAIL)
        body = {"email": EMAIL, "password": LONG_PASSWORD}
        home = {"User_Agent": "Browser/1.0", "X_Forwarded_For": "203.0.113.7"}
        token = service.request("POST", "/v1/auth/login", body, **home).json()["access_token"]
        away = {"User_Agent": "Other/1.0", "X_Forwarded_For": "203.0.113.8"}
        answer = service.request("GET", "/v1/auth/sessions", who=token, **away)
        used = next(each for each in answer.json()["items"] if each["current"])
        assert (used["agent"], used["address"]) == ("Browser/1.0", "203.0.113.8")


# --- the password ---------------------------------------------------------------------------------


def test_a_new_password_ends_all_sessions_but_the_one_that_changes_it(
    harness: ShardHarness,
) -> None:
    own = harness.register()
    other, old = login(harness).body["access_token"], token_of_an_earlier_release(harness, own)
    answer = change(harness, own)
    assert (answer.status, answer.body) == (200, {"ended": 1})
    assert works(harness, own) and not works(harness, other) and not works(harness, old)
    assert (login(harness).status, login(harness, NEW).status) == (401, 200)


def test_a_wrong_current_password_changes_nothing(harness: ShardHarness) -> None:
    own = harness.register()
    answer = change(harness, own, current="wrong horse")
    assert (answer.status, answer.body["param"]) == (403, "current_password")
    assert login(harness).status == 200


def test_of_two_changes_at_once_one_is_made(harness: ShardHarness) -> None:
    own = harness.register()
    bodies = [{"current_password": PASSWORD, "new_password": NEW + mark} for mark in "ab"]
    answers = harness.together([harness.form("auth.password", body, who=own) for body in bodies])
    assert sorted(answer.status for answer in answers) == [200, 403]


@pytest.mark.parametrize(
    "new", ["Ada@Example.com", "correct horse", "password1234", "QwertyUiop", "zzzzzzzzzz"]
)
def test_a_new_password_is_not_one_that_is_guessed_first(harness: ShardHarness, new: str) -> None:
    own = harness.register()
    answer = change(harness, own, new=new)
    assert (answer.status, answer.body["param"]) == (422, "body.new_password")
    assert login(harness).status == 200
