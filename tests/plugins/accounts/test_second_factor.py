"""With a second factor a login needs a code, good once; and a login may have to be fresh."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from plugins import accounts
from plugins.accounts.second_factor import SECOND_FACTOR
from runtime.limits import GUESSES_AT_ONCE
from serve_app import Settings
from tests.support.commands import admin
from tests.support.served import PASSWORD as SERVED_PASSWORD
from tests.support.served import served
from tests.support.shard_harness import CHEAP, Answer, ShardHarness

EMAIL, PASSWORD = "ada@example.com", "correct horse"
STEP_MS = 30_000


def opened(directory: Path, **auth: Any) -> ShardHarness:
    settings = Settings.load({**CHEAP, "auth": {**CHEAP["auth"], **auth}})
    harness = ShardHarness(directory, [accounts.plugin], settings=settings)
    harness.now_ms -= harness.now_ms % STEP_MS  # a step begins, and tests take less than one
    return harness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    made = opened(tmp_path / "shard")
    yield made
    made.close()


class App:
    """An authenticator app with the secret of an account."""

    def __init__(self, harness: ShardHarness, secret: str):
        self._harness = harness
        self._totp = TOTP(base64.b32decode(secret), 6, SHA1(), 30)

    def code(self, steps: int = 0) -> str:
        """The code of now, or of so many steps later."""
        return self._totp.generate((self._harness.now_ms + steps * STEP_MS) // 1000).decode()


def turned_on(harness: ShardHarness, token: str) -> tuple[App, list[str]]:
    """(the app, the recovery codes) of an account that has a second factor from now on."""
    app = App(harness, harness("auth.totp.create", who=token).body["secret"])
    confirmed = harness("auth.totp.confirm", {"code": app.code()}, who=token)
    assert confirmed.status == 200, confirmed
    return app, confirmed.body["recovery_codes"]


def login(harness: ShardHarness, code: str | None = None, password: str = PASSWORD) -> Answer:
    given = {} if code is None else {"code": code}
    return harness("auth.login", {"email": EMAIL, "password": password, **given})


def is_on(harness: ShardHarness, token: str) -> bool:
    return harness("auth.me", who=token).body["second_factor"]


def test_a_login_needs_a_code_once_one_was_confirmed(harness: ShardHarness) -> None:
    token = harness.register()
    asked = harness("auth.totp.create", who=token).body
    assert asked["otpauth_uri"] == (
        f"otpauth://totp/Mneme%3Aada%40example.com?secret={asked['secret']}&issuer=Mneme"
    )
    assert (login(harness).status, is_on(harness, token)) == (200, False)
    app, _ = turned_on(harness, token)
    assert is_on(harness, token)
    refused = login(harness)
    assert (refused.status, refused.body["param"]) == (401, "code")
    (detail,) = refused.body["details"]
    assert (detail["loc"], detail["type"]) == (["body", "code"], "totp_required")
    assert login(harness, password="wrong horse").body["details"] is None
    harness.now_ms += STEP_MS
    assert login(harness, app.code()).status == 200


def test_a_code_is_good_once_and_for_a_step_before_and_after(harness: ShardHarness) -> None:
    app, _ = turned_on(harness, harness.register())
    assert login(harness, app.code()).status == 401, "it was used to confirm"
    early = app.code(1)
    assert [login(harness, early).status for _ in range(2)] == [200, 401]
    assert login(harness, app.code(2)).status == 401
    harness.now_ms += 3 * STEP_MS
    assert login(harness, app.code(-2)).status == 401
    late = app.code(-1)
    assert login(harness, f"{late[:3]} {late[3:]}").status == 200
    assert login(harness, app.code()).status == 200
    assert login(harness, late).status == 401, "older than the last that was taken"


def test_a_recovery_code_is_good_once(harness: ShardHarness) -> None:
    _, codes = turned_on(harness, harness.register())
    assert len(set(codes)) == 10
    assert [login(harness, codes[0].upper().replace("-", " ")).status for _ in range(2)] == [
        200,
        401,
    ]
    assert login(harness, codes[1]).status == 200


def test_it_is_turned_off_with_a_code(harness: ShardHarness) -> None:
    token = harness.register()
    _, codes = turned_on(harness, token)
    assert harness("auth.totp.create", who=token).status == 409
    assert harness("auth.totp.delete", {"code": "000000"}, who=token).status == 403
    assert harness("auth.totp.delete", {"code": codes[3]}, who=token).status == 204
    assert (login(harness).status, is_on(harness, token)) == (200, False)
    assert harness("auth.totp.confirm", {"code": codes[4]}, who=token).status == 409


def test_a_wrong_code_confirms_nothing(harness: ShardHarness) -> None:
    token = harness.register()
    app = App(harness, harness("auth.totp.create", who=token).body["secret"])
    assert harness("auth.totp.confirm", {"code": app.code(5)}, who=token).status == 403
    assert login(harness).status == 200


def test_secret_and_codes_lie_sealed(harness: ShardHarness) -> None:
    token = harness.register()
    _, codes = turned_on(harness, token)
    with harness.shard.store.snapshot() as snapshot:
        row = snapshot.bind(SECOND_FACTOR, harness.scope_of(token)).row("totp")
    data = (harness.shard.directory / "data.mdb").read_bytes()
    assert row.secret not in data
    assert not any(code.encode() in data or digest in data for code, digest in zip(
        codes, row.recovery, strict=True
    ))  # fmt: skip


def test_codes_are_no_easier_to_guess_than_passwords(tmp_path: Path) -> None:
    harness = opened(tmp_path, failed_login_wait_seconds_max=60)
    turned_on(harness, harness.register())
    for _ in range(GUESSES_AT_ONCE):
        assert login(harness).status == 401  # it says only that a code is needed, and counts not
        assert login(harness, "000000").status == 401
    assert login(harness).status == 429
    harness.close()


def test_a_session_may_have_to_be_fresh_for_what_is_hard_to_undo(tmp_path: Path) -> None:
    harness = opened(tmp_path, fresh_login_seconds=300)
    token = harness.register()
    key = harness("auth.api_keys.create", {"name": "k", "scopes": ["admin"]}, who=token)
    assert key.status == 201
    harness.now_ms += 301_000
    query = {"confirm": "erase-account"}
    for refused in (
        harness("auth.api_keys.create", {"name": "k"}, who=token),
        harness("account.erase", who=token, query=query),
    ):
        assert refused.status == 403
        assert "POST /v1/auth/login" in refused.body["message"]
    assert harness("auth.api_keys.create", {"name": "k"}, who=key.body["key"]).status == 201
    fresh = login(harness).body["access_token"]
    assert harness("account.erase", who=fresh, query=query).status == 200
    harness.close()


def test_only_the_operator_clears_a_lost_one_and_that_ends_the_sessions(
    harness: ShardHarness, caplog: pytest.LogCaptureFixture
) -> None:
    token, operator = harness.register(), harness.secrets.operator_token
    account = harness("auth.me", who=token).body["user_id"]
    key = harness("auth.api_keys.create", {"name": "k", "scopes": ["admin"]}, who=token).body["key"]

    def clear(who: str | None = operator, email: str = EMAIL) -> Answer:
        return harness("internal.totp.clear", {"email": email}, who=who)

    assert clear().body == {"cleared": False, "sessions_ended": 0}
    assert is_on(harness, token) is False, "the session goes on where nothing was cleared"
    turned_on(harness, token)
    assert [clear(who).status for who in (None, token, key)] == [401, 403, 403]
    assert clear(email="nobody@example.com").status == 404
    assert is_on(harness, token) and "cleared" not in caplog.text
    assert clear().body == {"cleared": True, "sessions_ended": 1}
    assert f"the operator cleared the second factor of {account}" in caplog.text
    assert EMAIL not in caplog.text
    assert harness("auth.me", who=token).status == 401
    assert (login(harness).status, is_on(harness, key)) == (200, False)


@pytest.mark.slow
def test_the_operators_command_clears_a_lost_one(tmp_path: Path) -> None:
    with served(tmp_path / "data") as service:
        session = {"Authorization": f"Bearer {service.register(EMAIL)}"}
        secret = service.http.post("/v1/auth/totp", headers=session).json()["secret"]
        code = TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(time.time())).decode()
        confirmed = service.http.post("/v1/auth/totp/confirm", json={"code": code}, headers=session)
        assert confirmed.status_code == 200, confirmed.text
        account = service.http.get("/v1/auth/me", headers=session).json()["user_id"]
        given = {"email": EMAIL, "password": SERVED_PASSWORD}
        assert service.http.post("/v1/auth/login", json=given).status_code == 401
        status, told, said = admin(
            "clear-second-factor", tmp_path / "data", "--email", EMAIL, service=service
        )
        assert status == 0 and "1 sessions were ended" in told, told + said
        assert service.http.get("/v1/auth/me", headers=session).status_code == 401
        assert service.http.post("/v1/auth/login", json=given).status_code == 200
        assert f"the operator cleared the second factor of {account}" in service.errors
        status, told, _ = admin(
            "clear-second-factor", tmp_path / "data", "--email", EMAIL, service=service
        )
        assert status == 0 and "nothing was changed" in told
