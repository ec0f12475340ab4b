from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from plugins import accounts
from plugins.accounts import limits
from plugins.accounts.api_keys import API_KEYS
from plugins.accounts.models import NewApiKey, Registration
from plugins.accounts.operations import erase, export
from plugins.accounts.passwords import in_pool
from runtime import ids
from runtime.api import access_tokens, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.tenancy import slot_of_email
from runtime.timestamps import iso, parse
from tests.support.shard_harness import Answer, ShardHarness

PASSWORD = "correct horse"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ShardHarness]:
    opened = ShardHarness(tmp_path / "shard", [accounts.plugin])
    yield opened
    opened.close()


def mint(harness: ShardHarness, token: str, name: str = "key", **fields: object) -> Answer:
    return harness("auth.api_keys.create", {"name": name, **fields}, who=token)


def login(harness: ShardHarness, email: str, password: str) -> Answer:
    return harness("auth.login", {"email": email, "password": password})


# --- registration and login -----------------------------------------------------------------------


def test_registration_answers_with_a_token_that_works_at_once(harness: ShardHarness) -> None:
    answer = harness(
        "auth.register",
        {"email": "  Ada@Example.COM ", "password": PASSWORD, "full_name": "Ada Lovelace"},
    )
    assert answer.status == 201
    token, user_id = answer.body.pop("access_token"), answer.body.pop("user_id")
    assert answer.body == {
        "token_type": "bearer",
        "expires_in": 2_592_000,
        "email": "ada@example.com",
        "full_name": "Ada Lovelace",
    }
    me = harness("auth.me", who=token)
    assert me.status == 200
    assert me.body.pop("created_at") == iso(harness.now_ms - 1)
    assert me.body == {
        "user_id": user_id,
        "email": "ada@example.com",
        "full_name": "Ada Lovelace",
        "tier": "enterprise",
        "email_verified": False,
        "second_factor": False,
    }


def test_an_address_is_taken_in_every_spelling(harness: ShardHarness) -> None:
    harness.register("ada@example.com")
    for spelling in (
        "ada@example.com",
        "ADA@example.com",
        " ada@EXAMPLE.com",
        "ａｄａ@example.com",
    ):
        answer = harness(
            "auth.register", {"email": spelling, "password": PASSWORD, "full_name": "Ada"}
        )
        assert (answer.status, answer.body["param"]) == (409, "email")


def test_of_two_registrations_at_once_one_wins(harness: ShardHarness) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}
    answers = harness.together([harness.form("auth.register", body) for _ in range(3)])
    assert sorted(answer.status for answer in answers) == [201, 409, 409]


def test_neighbours_in_a_slot_are_tenants_apart(harness: ShardHarness) -> None:
    slot = slot_of_email("a0@example.com")
    neighbour = next(
        email
        for email in (f"a{n}@example.com" for n in range(1, 100_000))
        if slot_of_email(email) == slot
    )
    one, other = (
        harness.scope_of(harness.register("a0@example.com")),
        harness.scope_of(harness.register(neighbour)),
    )
    assert one.slot == other.slot == slot
    assert (one.tenant, other.tenant) == (1, 2)
    assert len({one.key, other.key}) == 2


def test_a_repeated_registration_replays_its_answer(harness: ShardHarness) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}
    first, second = (harness("auth.register", body, key="once") for _ in range(2))
    assert (second.status, second.body) == (201, first.body)
    assert second.headers["X-Idempotent-Replay"] == "true"


@pytest.mark.parametrize(
    "field",
    [
        {"email": "ada"}, {"email": "ada@example"}, {"email": "@example.com"},
        {"email": "a da@example.com"}, {"email": "ada@@example.com"},
        {"email": "ada@example..com"}, {"email": "ada@example.com\x00"},
        {"email": "a" * 243 + "@example.com"}, {"email": ""}, {"email": 5},
        {"email": "\ufdfa" * 20 + "@example.com"},
        {"password": "123456789"}, {"password": "x" * 1025}, {"password": None}, {"full_name": ""},
        {"full_name": "x" * 256},
    ],
)  # fmt: skip
def test_a_registration_is_validated_without_echoing_values(field: dict) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada", **field}
    with pytest.raises(ValidationError) as refused:
        Registration.model_validate(body)
    (finding,) = refused.value.errors()
    assert finding["loc"] == tuple(field)
    assert finding["type"] in (
        "email",
        "string_type",
        "string_too_short",
        "string_too_long",
        "missing",
    )
    assert PASSWORD not in repr(
        Registration(email="ada@example.com", password=PASSWORD, full_name="Ada")
    )


def test_login_trades_the_password_for_a_new_token(harness: ShardHarness) -> None:
    first = harness.register()
    answer = login(harness, "ADA@example.com", PASSWORD)
    assert answer.status == 200
    assert answer.body["access_token"] != first
    assert (
        harness("auth.me", who=answer.body["access_token"]).body["user_id"]
        == answer.body["user_id"]
    )


def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(harness: ShardHarness) -> None:
    harness.register()
    wrong, unknown = (
        login(harness, "ada@example.com", "wrong horse"),
        login(harness, "bob@example.com", PASSWORD),
    )
    assert wrong == unknown
    assert (wrong.status, wrong.body["code"]) == (401, "invalid_api_key")


def test_hashing_leaves_processors_to_others(harness: ShardHarness) -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = niceness()
    assert harness.run(in_pool(niceness)) > own == niceness()


def test_passwords_are_stored_as_argon2id_only(harness: ShardHarness) -> None:
    scope = harness.scope_of(harness.register())
    with harness.shard.store.snapshot() as snapshot:
        row = snapshot.bind(tenants.TENANTS, scope).get(scope.tenant)
    assert row.password_hash.startswith("$argon2id$v=19$m=64,t=1,p=1$")
    assert PASSWORD not in str(row)


def test_logout_ends_this_token_alone(harness: ShardHarness) -> None:
    token = harness.register()
    other = login(harness, "ada@example.com", PASSWORD).body["access_token"]
    assert harness("auth.logout", who=token).status == 204
    assert harness("auth.me", who=token).status == 401
    assert harness("auth.logout", who=token).status == 401
    assert harness("auth.me", who=other).status == 200


def test_an_api_key_cannot_log_out(harness: ShardHarness) -> None:
    key = mint(harness, harness.register()).body["key"]
    assert harness("auth.logout", who=key).status == 400
    assert harness("auth.me", who=key).status == 200


def test_a_request_without_a_credential_is_401(harness: ShardHarness) -> None:
    assert (harness("auth.me").status, harness("auth.me").body["code"]) == (401, "missing_api_key")


# --- API keys -------------------------------------------------------------------------------------


def test_a_minted_key_is_shown_once_and_works(harness: ShardHarness) -> None:
    token = harness.register()
    minted = mint(harness, token, "production")
    assert minted.status == 201
    key = minted.body.pop("key")
    assert ids.api_key_slot(harness.secrets.service, key) == slot_of_email("ada@example.com")
    assert minted.body == {
        "id": minted.body["id"], "name": "production", "prefix": key[:19],
        "scopes": ["read", "write"], "created_at": iso(harness.now_ms), "expires_at": None,
    }  # fmt: skip
    assert harness("auth.me", who=key).status == 200
    listed = harness("auth.api_keys.list", who=token).body["items"]
    used_at = iso(harness.now_ms - 1)
    assert listed == [
        {**minted.body, "last_used_at": used_at, "usage": {"requests": 1, "credits": 0}}
    ]
    with harness.shard.store.snapshot() as snapshot:
        stored = snapshot.bind(API_KEYS, harness.scope_of(token)).get_raw(0)
    assert key[20:].encode() not in stored


def test_scopes_are_enforced_and_listed_in_one_order(harness: ShardHarness) -> None:
    token = harness.register()
    reader = mint(harness, token, scopes=["read"]).body["key"]
    writer = mint(harness, token).body["key"]
    admin = mint(harness, token, scopes=["admin", "read", "admin"])
    assert admin.body["scopes"] == ["read", "admin"]
    assert harness("auth.api_keys.list", who=reader).status == 200
    for key, status in ((reader, 403), (writer, 403), (admin.body["key"], 201)):
        assert mint(harness, key).status == status
    assert harness("auth.logout", who=reader).status == 403
    assert harness("auth.api_keys.delete", who=writer, id=admin.body["id"]).status == 403


def test_a_key_expires_and_cannot_be_minted_expired(harness: ShardHarness) -> None:
    token = harness.register()
    expires_at = harness.now_ms + 10
    minted = mint(harness, token, expires_at=iso(expires_at))
    assert parse(minted.body["expires_at"]) == expires_at
    assert harness("auth.me", who=minted.body["key"]).status == 200
    harness.now_ms = expires_at
    assert harness("auth.me", who=minted.body["key"]).status == 401
    answer = mint(harness, token, expires_at=iso(harness.now_ms + 1))
    assert (answer.status, answer.body["param"]) == (422, "body.expires_at")


def test_a_deleted_key_is_refused_by_the_next_request(harness: ShardHarness) -> None:
    token = harness.register()
    minted = mint(harness, token).body
    assert harness("auth.api_keys.delete", who=token, id=minted["id"]).status == 204
    assert (
        harness("auth.me", who=minted["key"]).status,
        harness("auth.me", who=minted["key"]).body["code"],
    ) == (401, "invalid_api_key")
    assert harness("auth.api_keys.delete", who=token, id=minted["id"]).status == 404
    assert harness("auth.api_keys.list", who=token).body["total_count"] == 0


def test_keys_of_other_accounts_are_403_and_malformed_ids_404(harness: ShardHarness) -> None:
    ada, bob = harness.register("ada@example.com"), harness.register("bob@example.com")
    minted = mint(harness, ada).body
    assert harness("auth.api_keys.delete", who=bob, id=minted["id"]).status == 403
    for malformed in ("key_", "col" + minted["id"][3:], minted["id"].upper(), "nonsense"):
        assert harness("auth.api_keys.delete", who=ada, id=malformed).status == 404
    assert harness("auth.me", who=minted["key"]).status == 200


def test_keys_are_listed_newest_first_page_by_page_while_they_change(harness: ShardHarness) -> None:
    token = harness.register()
    minted = [mint(harness, token, str(number)).body["id"] for number in range(7)]
    first = harness("auth.api_keys.list", who=token, query={"limit": 3}).body
    assert [item["name"] for item in first["items"]] == ["6", "5", "4"]
    assert (first["has_more"], first["total_count"]) == (True, 7)
    harness("auth.api_keys.delete", who=token, id=minted[4])
    mint(harness, token, "7")
    second = harness(
        "auth.api_keys.list", who=token, query={"limit": 4, "cursor": first["next_cursor"]}
    ).body
    assert [item["name"] for item in second["items"]] == ["3", "2", "1", "0"]
    assert (second["has_more"], second["next_cursor"], second["total_count"]) == (False, None, 7)


def test_a_cursor_of_another_account_is_refused(harness: ShardHarness) -> None:
    ada, bob = harness.register("ada@example.com"), harness.register("bob@example.com")
    for _ in range(2):
        mint(harness, ada)
    cursor = harness("auth.api_keys.list", who=ada, query={"limit": 1}).body["next_cursor"]
    assert (
        harness("auth.api_keys.list", who=bob, query={"limit": 1, "cursor": cursor}).status == 400
    )


def test_usage_written_down_is_listed_and_goes_with_the_key(harness: ShardHarness) -> None:
    token = harness.register()
    minted, scope = mint(harness, token).body, harness.scope_of(token)
    used = tenants.KeyUsageRow(requests=3, credits=12, last_used_at=harness.now_ms)
    harness.shard.store.write(lambda t: t.bind(tenants.KEY_USAGE, scope).put((minted["id"],), used))
    (item,) = harness("auth.api_keys.list", who=token).body["items"]
    assert (item["usage"], item["last_used_at"]) == (
        {"requests": 3, "credits": 12},
        iso(used.last_used_at),
    )
    harness("auth.api_keys.delete", who=token, id=minted["id"])
    with harness.shard.store.snapshot() as snapshot:
        assert snapshot.bind(tenants.KEY_USAGE, scope).count() == 0


def test_a_replayed_mint_repeats_the_key(harness: ShardHarness) -> None:
    token = harness.register()
    first, second = (
        harness("auth.api_keys.create", {"name": "k"}, who=token, key="once") for _ in range(2)
    )
    assert (first.body, second.headers["X-Idempotent-Replay"]) == (second.body, "true")
    assert harness("auth.api_keys.list", who=token).body["total_count"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 256},
        {"name": "k", "scopes": []},
        {"name": "k", "scopes": ["root"]},
    ],
)
def test_a_new_key_is_validated(body: dict) -> None:
    with pytest.raises(ValidationError):
        NewApiKey.model_validate(body)


def test_the_operator_mints_a_key_for_an_account(harness: ShardHarness) -> None:
    token = harness.register()
    body = {"email": "ada@example.com", "name": "ops", "scopes": ["admin"]}
    minted = harness("internal.keys.create", body, who=harness.secrets.operator_token)
    assert minted.status == 201
    assert (
        harness("auth.api_keys.list", who=minted.body["key"]).body["items"][0]["id"]
        == minted.body["id"]
    )
    assert harness("auth.api_keys.delete", who=token, id=minted.body["id"]).status == 204
    assert (
        harness(
            "internal.keys.create",
            {**body, "email": "bob@example.com"},
            who=harness.secrets.operator_token,
        ).status
        == 404
    )


def test_internal_and_public_floors_do_not_mix(harness: ShardHarness) -> None:
    token = harness.register()
    key = mint(harness, token, scopes=["admin"]).body["key"]
    body = {"email": "ada@example.com", "name": "ops"}
    assert harness("internal.keys.create", body).status == 401
    for credential in (token, key):
        assert harness("internal.keys.create", body, who=credential).status == 403
    assert harness("auth.me", who=harness.secrets.operator_token).status == 403


# --- privacy --------------------------------------------------------------------------------------


def test_erasing_leaves_no_row_and_no_way_in(harness: ShardHarness) -> None:
    token = harness.register()
    key = mint(harness, token).body["key"]
    scope = harness.scope_of(token)
    form = harness.form("auth.me", who=token)

    def work(transaction) -> dict[str, int]:
        principal, _ = tenants.tenant(transaction, scope.slot, scope.tenant)
        return erase(WriteContext(transaction, scope, form, harness.shard.environment, principal))

    counts = harness.shard.store.write(work).result
    assert counts == {
        "credentials": 1,
        "api_keys": 1,
        "api_key_ids": 1,
        "key_usage": 1,
        "revoked_tokens": 0,
        "sessions": 1,
        "second_factor": 0,
        "verified_addresses": 0,
        "emails": 1,
        "tenants": 1,
    }
    with harness.shard.store.snapshot() as snapshot:
        for table in (*tenants.TABLES, *access_tokens.TABLES, *accounts.plugin.tables):
            assert snapshot.bind(table, scope).count() == 0, table.name
    assert {harness("auth.me", who=who).status for who in (token, key)} == {401}
    assert login(harness, "ada@example.com", PASSWORD).status == 401
    assert (
        harness(
            "auth.register", {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}
        ).status
        == 201
    )


def test_the_export_holds_no_secret(harness: ShardHarness) -> None:
    token = harness.register()
    key = mint(harness, token).body["key"]
    scope = harness.scope_of(token)
    with harness.shard.store.snapshot() as snapshot:
        principal, _ = tenants.tenant(snapshot, scope.slot, scope.tenant)
        records = list(
            export(
                ReadContext(
                    snapshot,
                    scope,
                    harness.form("auth.me", who=token),
                    harness.shard.environment,
                    principal,
                )
            )
        )
    assert [kind for kind, _ in records] == ["account", "api_key", "session"]
    assert "argon2" not in str(records)
    assert key[20:] not in str(records)


def test_a_crowd_at_the_door_is_told_to_wait_and_holds_back_nobody_inside(
    harness: ShardHarness,
) -> None:
    token = harness.register()
    crowd = limits.PASSWORD_HASHES_WAITING_MAX + 6
    calls = [
        harness.form(
            "auth.register", {"email": f"p{n}@example.com", "password": PASSWORD, "full_name": "P"}
        )
        for n in range(crowd)
    ]
    *answers, me = harness.together([*calls, harness.form("auth.me", who=token)])
    assert me.status == 200
    assert [answer.status for answer in answers] == [201] * (crowd - 6) + [503] * 6
    assert login(harness, "p0@example.com", PASSWORD).status == 200
