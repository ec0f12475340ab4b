from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from plugins import accounts
from runtime import auth, ids, limits
from runtime.operation import ReadContext, WriteContext
from runtime.placement import slot_of_email
from runtime.timestamps import iso, parse
from tests.plugins import Answer, Desk

PASSWORD = "correct horse"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    opened = Desk(tmp_path / "shard", [accounts.plugin])
    yield opened
    opened.close()


def mint(desk: Desk, token: str, name: str = "key", **fields: object) -> Answer:
    return desk("auth.api_keys.create", {"name": name, **fields}, who=token)


def login(desk: Desk, email: str, password: str) -> Answer:
    return desk("auth.login", {"email": email, "password": password})


# --- registration and login -------------------------------------------------------------------------------------------


def test_registration_answers_with_a_token_that_works_at_once(desk: Desk) -> None:
    answer = desk("auth.register", {"email": "  Ada@Example.COM ", "password": PASSWORD, "full_name": "Ada Lovelace"})
    assert answer.status == 201
    token, user_id = answer.body.pop("access_token"), answer.body.pop("user_id")
    assert answer.body == {"token_type": "bearer", "expires_in": 2_592_000, "email": "ada@example.com", "full_name": "Ada Lovelace"}
    me = desk("auth.me", who=token)
    assert me.status == 200
    assert me.body.pop("created_at") == iso(desk.now_ms - 1)
    assert me.body == {"user_id": user_id, "email": "ada@example.com", "full_name": "Ada Lovelace", "tier": "enterprise"}


def test_an_address_is_taken_in_every_spelling(desk: Desk) -> None:
    desk.register("ada@example.com")
    for spelling in ("ada@example.com", "ADA@example.com", " ada@EXAMPLE.com", "ａｄａ@example.com"):
        answer = desk("auth.register", {"email": spelling, "password": PASSWORD, "full_name": "Ada"})
        assert (answer.status, answer.body["param"]) == (409, "email")


def test_of_two_registrations_at_once_one_wins(desk: Desk) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}
    answers = desk.together([desk.form("auth.register", body) for _ in range(3)])
    assert sorted(answer.status for answer in answers) == [201, 409, 409]


def test_neighbours_in_a_slot_are_tenants_apart(desk: Desk) -> None:
    slot = slot_of_email("a0@example.com")
    neighbour = next(email for email in (f"a{n}@example.com" for n in range(1, 100_000)) if slot_of_email(email) == slot)
    one, other = desk.scope_of(desk.register("a0@example.com")), desk.scope_of(desk.register(neighbour))
    assert one.slot == other.slot == slot
    assert (one.tenant, other.tenant) == (1, 2)
    assert len({one.key, other.key}) == 2


def test_a_repeated_registration_replays_its_answer(desk: Desk) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}
    first, second = (desk("auth.register", body, key="once") for _ in range(2))
    assert (second.status, second.body) == (201, first.body)
    assert second.headers["X-Idempotent-Replay"] == "true"


@pytest.mark.parametrize(
    "field",
    [
        {"email": "ada"}, {"email": "ada@example"}, {"email": "@example.com"}, {"email": "a da@example.com"}, {"email": "ada@@example.com"},
        {"email": "ada@example..com"}, {"email": "ada@example.com\x00"}, {"email": "a" * 243 + "@example.com"}, {"email": ""}, {"email": 5},
        {"email": "\ufdfa" * 20 + "@example.com"},
        {"password": "123456789"}, {"password": "x" * 1025}, {"password": None}, {"full_name": ""}, {"full_name": "x" * 256},
    ],
)  # fmt: skip
def test_a_registration_is_validated_without_echoing_values(field: dict) -> None:
    body = {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada", **field}
    with pytest.raises(ValidationError) as refused:
        accounts.Registration.model_validate(body)
    (finding,) = refused.value.errors()
    assert finding["loc"] == tuple(field)
    assert finding["type"] in ("email", "string_type", "string_too_short", "string_too_long", "missing")
    assert PASSWORD not in repr(accounts.Registration(email="ada@example.com", password=PASSWORD, full_name="Ada"))


def test_login_trades_the_password_for_a_new_token(desk: Desk) -> None:
    first = desk.register()
    answer = login(desk, "ADA@example.com", PASSWORD)
    assert answer.status == 200
    assert answer.body["access_token"] != first
    assert desk("auth.me", who=answer.body["access_token"]).body["user_id"] == answer.body["user_id"]


def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(desk: Desk) -> None:
    desk.register()
    wrong, unknown = login(desk, "ada@example.com", "wrong horse"), login(desk, "bob@example.com", PASSWORD)
    assert wrong == unknown
    assert (wrong.status, wrong.body["code"]) == (401, "invalid_api_key")


def test_passwords_are_stored_as_argon2id_only(desk: Desk) -> None:
    scope = desk.scope_of(desk.register())
    with desk.shard.store.snapshot() as snapshot:
        row = snapshot.bind(auth.TENANTS, scope).get(scope.tenant)
    assert row.password_hash.startswith("$argon2id$v=19$m=64,t=1,p=1$")
    assert PASSWORD not in str(row)


def test_logout_ends_this_token_alone(desk: Desk) -> None:
    token = desk.register()
    other = login(desk, "ada@example.com", PASSWORD).body["access_token"]
    assert desk("auth.logout", who=token).status == 204
    assert desk("auth.me", who=token).status == 401
    assert desk("auth.logout", who=token).status == 401
    assert desk("auth.me", who=other).status == 200


def test_an_api_key_cannot_log_out(desk: Desk) -> None:
    key = mint(desk, desk.register()).body["key"]
    assert desk("auth.logout", who=key).status == 400
    assert desk("auth.me", who=key).status == 200


def test_a_request_without_a_credential_is_401(desk: Desk) -> None:
    assert (desk("auth.me").status, desk("auth.me").body["code"]) == (401, "missing_api_key")


# --- API keys ---------------------------------------------------------------------------------------------------------


def test_a_minted_key_is_shown_once_and_works(desk: Desk) -> None:
    token = desk.register()
    minted = mint(desk, token, "production")
    assert minted.status == 201
    key = minted.body.pop("key")
    assert ids.api_key_slot(desk.secrets.service, key) == slot_of_email("ada@example.com")
    assert minted.body == {
        "id": minted.body["id"], "name": "production", "prefix": key[:19], "scopes": ["read", "write"],
        "created_at": iso(desk.now_ms), "expires_at": None,
    }  # fmt: skip
    assert desk("auth.me", who=key).status == 200
    listed = desk("auth.api_keys.list", who=token).body["items"]
    used_at = iso(desk.now_ms - 1)
    assert listed == [{**minted.body, "last_used_at": used_at, "usage": {"requests": 1, "credits": 0}}]
    with desk.shard.store.snapshot() as snapshot:
        stored = snapshot.bind(accounts.API_KEYS, desk.scope_of(token)).get_raw(0)
    assert key[20:].encode() not in stored


def test_scopes_are_enforced_and_listed_in_one_order(desk: Desk) -> None:
    token = desk.register()
    reader = mint(desk, token, scopes=["read"]).body["key"]
    writer = mint(desk, token).body["key"]
    admin = mint(desk, token, scopes=["admin", "read", "admin"])
    assert admin.body["scopes"] == ["read", "admin"]
    assert desk("auth.api_keys.list", who=reader).status == 200
    for key, status in ((reader, 403), (writer, 403), (admin.body["key"], 201)):
        assert mint(desk, key).status == status
    assert desk("auth.logout", who=reader).status == 403
    assert desk("auth.api_keys.delete", who=writer, id=admin.body["id"]).status == 403


def test_a_key_expires_and_cannot_be_minted_expired(desk: Desk) -> None:
    token = desk.register()
    expires_at = desk.now_ms + 10
    minted = mint(desk, token, expires_at=iso(expires_at))
    assert parse(minted.body["expires_at"]) == expires_at
    assert desk("auth.me", who=minted.body["key"]).status == 200
    desk.now_ms = expires_at
    assert desk("auth.me", who=minted.body["key"]).status == 401
    answer = mint(desk, token, expires_at=iso(desk.now_ms + 1))
    assert (answer.status, answer.body["param"]) == (422, "body.expires_at")


def test_a_deleted_key_is_refused_by_the_next_request(desk: Desk) -> None:
    token = desk.register()
    minted = mint(desk, token).body
    assert desk("auth.api_keys.delete", who=token, id=minted["id"]).status == 204
    assert (desk("auth.me", who=minted["key"]).status, desk("auth.me", who=minted["key"]).body["code"]) == (401, "invalid_api_key")
    assert desk("auth.api_keys.delete", who=token, id=minted["id"]).status == 404
    assert desk("auth.api_keys.list", who=token).body["total_count"] == 0


def test_keys_of_other_accounts_are_403_and_malformed_ids_404(desk: Desk) -> None:
    ada, bob = desk.register("ada@example.com"), desk.register("bob@example.com")
    minted = mint(desk, ada).body
    assert desk("auth.api_keys.delete", who=bob, id=minted["id"]).status == 403
    for malformed in ("key_", "col" + minted["id"][3:], minted["id"].upper(), "nonsense"):
        assert desk("auth.api_keys.delete", who=ada, id=malformed).status == 404
    assert desk("auth.me", who=minted["key"]).status == 200


def test_keys_are_listed_newest_first_page_by_page_while_they_change(desk: Desk) -> None:
    token = desk.register()
    minted = [mint(desk, token, str(number)).body["id"] for number in range(7)]
    first = desk("auth.api_keys.list", who=token, query={"limit": 3}).body
    assert [item["name"] for item in first["items"]] == ["6", "5", "4"]
    assert (first["has_more"], first["total_count"]) == (True, 7)
    desk("auth.api_keys.delete", who=token, id=minted[4])
    mint(desk, token, "7")
    second = desk("auth.api_keys.list", who=token, query={"limit": 4, "cursor": first["next_cursor"]}).body
    assert [item["name"] for item in second["items"]] == ["3", "2", "1", "0"]
    assert (second["has_more"], second["next_cursor"], second["total_count"]) == (False, None, 7)


def test_a_cursor_of_another_account_is_refused(desk: Desk) -> None:
    ada, bob = desk.register("ada@example.com"), desk.register("bob@example.com")
    for _ in range(2):
        mint(desk, ada)
    cursor = desk("auth.api_keys.list", who=ada, query={"limit": 1}).body["next_cursor"]
    assert desk("auth.api_keys.list", who=bob, query={"limit": 1, "cursor": cursor}).status == 400


def test_usage_written_down_is_listed_and_goes_with_the_key(desk: Desk) -> None:
    token = desk.register()
    minted, scope = mint(desk, token).body, desk.scope_of(token)
    used = auth.KeyUsageRow(requests=3, credits=12, last_used_at=desk.now_ms)
    desk.shard.store.write(lambda t: t.bind(auth.KEY_USAGE, scope).put((minted["id"],), used))
    (item,) = desk("auth.api_keys.list", who=token).body["items"]
    assert (item["usage"], item["last_used_at"]) == ({"requests": 3, "credits": 12}, iso(used.last_used_at))
    desk("auth.api_keys.delete", who=token, id=minted["id"])
    with desk.shard.store.snapshot() as snapshot:
        assert snapshot.bind(auth.KEY_USAGE, scope).count() == 0


def test_a_replayed_mint_repeats_the_key(desk: Desk) -> None:
    token = desk.register()
    first, second = (desk("auth.api_keys.create", {"name": "k"}, who=token, key="once") for _ in range(2))
    assert (first.body, second.headers["X-Idempotent-Replay"]) == (second.body, "true")
    assert desk("auth.api_keys.list", who=token).body["total_count"] == 1


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 256}, {"name": "k", "scopes": []}, {"name": "k", "scopes": ["root"]}])
def test_a_new_key_is_validated(body: dict) -> None:
    with pytest.raises(ValidationError):
        accounts.NewApiKey.model_validate(body)


def test_the_operator_mints_a_key_for_an_account(desk: Desk) -> None:
    token = desk.register()
    body = {"email": "ada@example.com", "name": "ops", "scopes": ["admin"]}
    minted = desk("internal.keys.create", body, who=desk.secrets.operator_token)
    assert minted.status == 201
    assert desk("auth.api_keys.list", who=minted.body["key"]).body["items"][0]["id"] == minted.body["id"]
    assert desk("auth.api_keys.delete", who=token, id=minted.body["id"]).status == 204
    assert desk("internal.keys.create", {**body, "email": "bob@example.com"}, who=desk.secrets.operator_token).status == 404


def test_internal_and_public_floors_do_not_mix(desk: Desk) -> None:
    token = desk.register()
    key = mint(desk, token, scopes=["admin"]).body["key"]
    body = {"email": "ada@example.com", "name": "ops"}
    assert desk("internal.keys.create", body).status == 401
    for credential in (token, key):
        assert desk("internal.keys.create", body, who=credential).status == 403
    assert desk("auth.me", who=desk.secrets.operator_token).status == 403


# --- privacy ----------------------------------------------------------------------------------------------------------


def test_erasing_leaves_no_row_and_no_way_in(desk: Desk) -> None:
    token = desk.register()
    key = mint(desk, token).body["key"]
    scope = desk.scope_of(token)
    form = desk.form("auth.me", who=token)

    def work(transaction) -> dict[str, int]:
        principal, _ = auth.tenant(transaction, scope.slot, scope.tenant)
        return accounts.erase(WriteContext(transaction, scope, form, desk.shard.environment, principal))

    counts = desk.shard.store.write(work).result
    assert counts == {"credentials": 1, "api_keys": 1, "api_key_ids": 1, "key_usage": 1, "revoked_tokens": 0, "emails": 1, "tenants": 1}
    with desk.shard.store.snapshot() as snapshot:
        for table in (*auth.CORE_TABLES, *accounts.plugin.tables):
            assert snapshot.bind(table, scope).count() == 0, table.name
    assert {desk("auth.me", who=who).status for who in (token, key)} == {401}
    assert login(desk, "ada@example.com", PASSWORD).status == 401
    assert desk("auth.register", {"email": "ada@example.com", "password": PASSWORD, "full_name": "Ada"}).status == 201


def test_the_export_holds_no_secret(desk: Desk) -> None:
    token = desk.register()
    key = mint(desk, token).body["key"]
    scope = desk.scope_of(token)
    with desk.shard.store.snapshot() as snapshot:
        principal, _ = auth.tenant(snapshot, scope.slot, scope.tenant)
        records = list(accounts.export(ReadContext(snapshot, scope, desk.form("auth.me", who=token), desk.shard.environment, principal)))
    assert [kind for kind, _ in records] == ["account", "api_key"]
    assert "argon2" not in str(records)
    assert key[20:] not in str(records)


def test_examples_fit_their_models() -> None:
    for operation in accounts.plugin.operations:
        if operation.body is not None:
            operation.body.model_validate(operation.example)
        if operation.response is not None:
            operation.response.model_validate(operation.example_reply)


def test_a_crowd_at_the_door_is_told_to_wait_and_holds_back_nobody_inside(desk: Desk) -> None:
    token = desk.register()
    crowd = limits.PASSWORD_HASHES_WAITING_MAX + 6
    calls = [desk.form("auth.register", {"email": f"p{n}@example.com", "password": PASSWORD, "full_name": "P"}) for n in range(crowd)]
    *answers, me = desk.together([*calls, desk.form("auth.me", who=token)])
    assert me.status == 200
    assert [answer.status for answer in answers] == [201] * (crowd - 6) + [503] * 6
    assert login(desk, "p0@example.com", PASSWORD).status == 200
