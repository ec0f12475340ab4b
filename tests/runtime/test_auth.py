from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import jwt
import msgspec
import pytest

from runtime import auth, ids
from runtime.errors import PermissionDenied, Unauthenticated
from runtime.operation import Call, Credential, Environment, Kind, Operation, WriteContext
from runtime.secrets import Secrets
from storage.table import Identity, Scope, Store

NOW = 1_778_248_560_000
SLOT = 4_095
DAY = 24 * 3600
SECRETS = Secrets(b"s" * 32, b"p" * 32, "mem_op_" + "0" * 64)
KEY = ids.make_api_key(SECRETS.service, SLOT, b"k" * 26)
ACCOUNT = auth.TenantRow(
    number=7,
    tenant_id="usr_7",
    tag=ids.tenant_tag(SECRETS.service, "usr_7"),
    key=b"t" * 32,
    email="ada@example.com",
    full_name="Ada",
    password_hash="$argon2id$",
    tier="pro",
    created_at=NOW - 1,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path, auth.CORE_TABLES, identity=Identity("", 0, 1, 4096, 1), create=True, map_bytes=1 << 22)
    put(opened, auth.TENANTS, (ACCOUNT.number,), ACCOUNT)
    put(opened, auth.EMAILS, (auth.email_digest(SECRETS, ACCOUNT.email),), auth.TenantNumber(ACCOUNT.number))
    yield opened
    opened.close()


def put(store: Store, table, key: tuple, row) -> None:
    store.write(lambda transaction: transaction.bind(table, Scope.of_slot(SLOT)).put(key, row))


def grant(store: Store, *scopes: str, expires_at: int | None = None) -> None:
    put(
        store, auth.CREDENTIALS, (ids.api_key_digest(SECRETS.pepper, KEY),), auth.CredentialRow("key_1", ACCOUNT.number, scopes, expires_at)
    )


def token(account: auth.TenantRow = ACCOUNT, secrets: Secrets = SECRETS) -> str:
    return auth.issue_token(SLOT, account, secrets, now_ms=NOW, lifetime_seconds=DAY, random=b"j" * 16)[0]


def resolved(store: Store, text: str, now_ms: int = NOW):
    credential, slot = auth.read_authorization(f"Bearer {text}", SECRETS, now_ms)
    with store.snapshot() as snapshot:
        return auth.resolve(snapshot, slot, credential, now_ms, SECRETS)


def needs(scope: str, *, internal: bool = False) -> Operation:
    return Operation("x", "GET", "/x", Kind.READ, print, summary="", spec="", response=None, scope=scope, internal=internal)


# --- reading the header -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, "", "   ", "Bearer", "Bearer  ", "token "])
def test_no_credential_is_missing_api_key(header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refused:
        auth.read_authorization(header, SECRETS, NOW)
    assert refused.value.code == "missing_api_key"
    assert refused.value.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        KEY,
        f"Basic {KEY}",
        f"Bearer {KEY} {KEY}",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY[:-1]}{'0' if KEY[-1] != '0' else '1'}",
        f"Bearer {ids.make_api_key(b'x' * 32, SLOT, b'k' * 26)}",
        f"Bearer {ids.make_api_key(SECRETS.service, 4096, b'k' * 26)}",
        "Bearer mem_sk_" + "zz" * 32,
        "Bearer mem_sk_" + " " * 64,
        "Bearer a.b.c",
        "Bearer e30.e30.e30",
        "Bearer ünsinn",
        "Bearer \udcff",
        "Basic",
    ],
)
def test_what_cannot_be_genuine_is_refused_at_the_gateway(header: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        auth.read_authorization(header, SECRETS, NOW)
    assert refused.value.code == "invalid_api_key"
    assert KEY[8:20] not in refused.value.message


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Token", "token"])
def test_an_api_key_tells_its_slot_and_is_known_by_its_digest(scheme: str) -> None:
    credential, slot = auth.read_authorization(f"{scheme} {KEY}", SECRETS, NOW)
    assert slot == SLOT
    assert credential == Credential("key", digest=ids.api_key_digest(SECRETS.pepper, KEY))


def test_the_operator_token_is_a_credential_of_its_own() -> None:
    assert auth.read_authorization(f"Bearer {SECRETS.operator_token}", SECRETS, NOW) == (Credential("operator"), 0)


def test_an_access_token_carries_slot_and_tenant() -> None:
    credential, slot = auth.read_authorization(f"Bearer {token()}", SECRETS, NOW)
    assert (credential.kind, slot) == ("jwt", SLOT)
    assert credential.claims | {} == {
        "iss": "mneme", "aud": "mneme-api", "sub": "usr_7", "slot": SLOT, "tn": 7, "tv": 0,
        "iat": NOW // 1000, "exp": NOW // 1000 + DAY, "jti": b"j".hex() * 16,
    }  # fmt: skip


def test_a_token_expires_by_the_call_s_clock() -> None:
    auth.read_authorization(f"Bearer {token()}", SECRETS, NOW + DAY * 1000 - 1000)
    with pytest.raises(Unauthenticated, match="expired"):
        auth.read_authorization(f"Bearer {token()}", SECRETS, NOW + DAY * 1000)


def forged(header: dict, claims: dict, key: bytes = b"", algorithm: str = "HS256") -> str:
    return jwt.encode(claims, key, algorithm, headers=header)


@pytest.mark.filterwarnings("ignore:The HMAC key")
def test_forged_tokens_are_refused() -> None:
    claims = jwt.decode(token(), options={"verify_signature": False})
    genuine = auth._signing_key(SECRETS, "1")
    assert auth.read_authorization("Bearer " + forged({"kid": "1"}, claims, genuine), SECRETS, NOW)
    head, body, _ = token().split(".")
    unsigned = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "1", "typ": "JWT"}).encode()).rstrip(b"=").decode()
    forgeries = [
        token(secrets=Secrets(b"x" * 32, SECRETS.pepper, SECRETS.operator_token)),
        f"{head}.{body}.",
        f"{unsigned}.{body}.",
        forged({"kid": "1"}, claims, genuine, "HS512"),
        forged({"kid": "2"}, claims, auth._signing_key(SECRETS, "2")),
        forged({}, claims, genuine),
        forged({"kid": "1"}, claims, SECRETS.service),
        *(forged({"kid": "1"}, {**claims, name: "other"}, genuine) for name in ("iss", "aud")),
        *(forged({"kid": "1"}, {k: v for k, v in claims.items() if k != name}, genuine) for name in auth.TOKEN_CLAIMS),
    ]
    for text in forgeries:
        with pytest.raises(Unauthenticated) as refused:
            auth.read_authorization(f"Bearer {text}", SECRETS, NOW)
        assert refused.value.code == "invalid_api_key"


# --- resolving --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("granted", "held"),
    [
        (("read",), {"read"}),
        (("write",), {"read", "write"}),
        (("admin",), {"read", "write", "admin"}),
        (("read", "write"), {"read", "write"}),
    ],
)
def test_a_key_resolves_to_its_tenant_with_its_scopes_expanded(store: Store, granted: tuple[str, ...], held: set[str]) -> None:
    grant(store, *granted)
    principal, scope = resolved(store, KEY)
    assert (scope, scope.key) == (Scope(SLOT, 7), ACCOUNT.key)
    assert (principal.tenant_id, principal.tag, principal.tier, principal.created_at) == ("usr_7", ACCOUNT.tag, "pro", NOW - 1)
    assert (principal.scopes, principal.credential_id, principal.is_session) == (held, "key_1", False)


def test_a_key_is_refused_from_the_moment_its_row_is_gone(store: Store) -> None:
    with pytest.raises(Unauthenticated):
        resolved(store, KEY)
    grant(store, "read")
    resolved(store, KEY)
    store.write(lambda t: t.bind(auth.CREDENTIALS, Scope.of_slot(SLOT)).delete(ids.api_key_digest(SECRETS.pepper, KEY)))
    with pytest.raises(Unauthenticated):
        resolved(store, KEY)


def test_a_key_expires(store: Store) -> None:
    grant(store, "read", expires_at=NOW)
    resolved(store, KEY, NOW - 1)
    with pytest.raises(Unauthenticated, match="expired"):
        resolved(store, KEY, NOW)


def test_credentials_of_an_erased_account_are_refused(store: Store) -> None:
    grant(store, "read")
    store.write(lambda t: t.bind(auth.TENANTS, Scope.of_slot(SLOT)).delete(ACCOUNT.number))
    for text in (KEY, token()):
        with pytest.raises(Unauthenticated):
            resolved(store, text)


def test_a_token_resolves_to_a_session_with_all_scopes(store: Store) -> None:
    principal, scope = resolved(store, token())
    assert (principal.scopes, principal.is_session, principal.credential_id) == ({"read", "write", "admin"}, True, b"j".hex() * 16)
    assert (scope, scope.key) == (Scope(SLOT, 7), ACCOUNT.key)


def test_raising_the_token_version_ends_all_tokens(store: Store) -> None:
    put(store, auth.TENANTS, (7,), msgspec.structs.replace(ACCOUNT, token_version=1))
    with pytest.raises(Unauthenticated):
        resolved(store, token())


def test_a_number_that_went_to_another_account_opens_nothing(store: Store) -> None:
    put(store, auth.TENANTS, (7,), msgspec.structs.replace(ACCOUNT, tenant_id="usr_8"))
    with pytest.raises(Unauthenticated):
        resolved(store, token())


def test_a_logged_out_token_is_refused_and_forgotten_once_expired(store: Store) -> None:
    def revoke(jti: str, exp: int, now_ms: int) -> None:
        environment = Environment(registry=None, settings=None, secrets=SECRETS, outbound=None)
        call = Call("auth.logout", SLOT, now_ms, b"", "")
        scope = auth.scope_of(SLOT, ACCOUNT)
        store.write(lambda t: auth.revoke_token(WriteContext(t, scope, call, environment, None), {"jti": jti, "exp": exp}))

    def kept() -> list[tuple]:
        with store.snapshot() as snapshot:
            return list(snapshot.bind(auth.REVOKED_TOKENS, auth.scope_of(SLOT, ACCOUNT)).keys())

    exp = NOW // 1000 + DAY
    revoke(b"j".hex() * 16, exp, NOW)
    with pytest.raises(Unauthenticated, match="logged out"):
        resolved(store, token())
    revoke("other", exp + DAY, NOW + DAY * 1000 - 1000)
    assert kept() == [(exp, b"j".hex() * 16), (exp + DAY, "other")]
    revoke("third", exp + DAY, NOW + DAY * 1000 + 1000)
    assert kept() == [(exp + DAY, "other"), (exp + DAY, "third")]


def test_the_operator_is_no_tenant(store: Store) -> None:
    with pytest.raises(PermissionDenied):
        resolved(store, SECRETS.operator_token)


def test_a_tenant_is_found_by_number_and_by_address(store: Store) -> None:
    with store.snapshot() as snapshot:
        principal, scope = auth.tenant(snapshot, SLOT, 7)
        assert (principal.tenant_id, principal.scopes, scope.key) == ("usr_7", {"read", "write", "admin"}, ACCOUNT.key)
        assert auth.tenant(snapshot, SLOT, 8) is None
        assert auth.tenant_of_email(snapshot, SLOT, "ada@example.com", SECRETS) == ACCOUNT
        assert auth.tenant_of_email(snapshot, SLOT, "bob@example.com", SECRETS) is None
        assert auth.tenant_of_email(snapshot, SLOT - 1, "ada@example.com", SECRETS) is None


# --- authorising ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("granted", auth.SCOPES)
@pytest.mark.parametrize("needed", auth.SCOPES)
def test_an_operation_needs_its_scope(store: Store, granted: str, needed: str) -> None:
    grant(store, granted)
    principal, _ = resolved(store, KEY)
    if auth.SCOPES.index(needed) <= auth.SCOPES.index(granted):
        auth.authorise(principal, needs(needed))
    else:
        with pytest.raises(PermissionDenied, match=needed):
            auth.authorise(principal, needs(needed))


def test_internal_operations_are_the_operator_s_alone(store: Store) -> None:
    principal, _ = resolved(store, token())
    with pytest.raises(PermissionDenied):
        auth.authorise(principal, needs("admin", internal=True))
    auth.authorise_operator(Credential("operator"))
    for credential in (Credential("key", digest=b"d"), Credential("jwt", claims={"sub": "operator"})):
        with pytest.raises(PermissionDenied):
            auth.authorise_operator(credential)
    with pytest.raises(Unauthenticated):
        auth.authorise_operator(None)
