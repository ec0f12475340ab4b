from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from runtime import ids
from runtime.api import access_tokens, tenants
from runtime.api.context import Environment, WriteContext
from runtime.api.operation import NOBODY, Call, Credential, Operation, Principal, Read
from runtime.api.slot_context import SlotReadContext
from runtime.errors import PermissionDenied, Unauthenticated
from runtime.http.credentials import read_authorization
from runtime.installation import Secrets
from runtime.shard import auth
from storage.store import Identity, Scope, Store
from tests.support.credentials import ACCOUNT, DAY, KEY, NOW, SECRETS, SLOT


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(
        tmp_path,
        (*tenants.TABLES, *access_tokens.TABLES),
        identity=Identity("", 0, 1, 4096, 1),
        create=True,
    )
    put(opened, tenants.TENANTS, (ACCOUNT.number,), ACCOUNT)
    put(
        opened,
        tenants.EMAILS,
        (tenants.email_digest(SECRETS, ACCOUNT.email),),
        tenants.TenantNumber(ACCOUNT.number),
    )
    yield opened
    opened.close()


def put(store: Store, table, key: tuple, row) -> None:
    store.write(lambda transaction: transaction.bind(table, Scope.of_slot(SLOT)).put(key, row))


Resolved = Callable[..., tuple[Principal, Scope]]


def grant(store: Store, *scopes: str, expires_at: int | None = None) -> None:
    put(
        store,
        tenants.CREDENTIALS,
        (ids.api_key_digest(SECRETS.pepper, KEY),),
        tenants.CredentialRow("key_1", ACCOUNT.number, scopes, expires_at),
    )


def bare_environment() -> Environment:
    """One that knows the secrets and nothing else."""
    return Environment(
        registry=None,
        settings=None,
        secrets=SECRETS,
        outbound=None,
        emit=None,
        enqueue=None,
        mend=None,
    )


def token(account: tenants.TenantRow = ACCOUNT, secrets: Secrets = SECRETS) -> str:
    return access_tokens.issue_token(
        SLOT, account, secrets, now_ms=NOW, lifetime_seconds=DAY, token_id=(b"j" * 16).hex()
    )[0]


@pytest.fixture(params=["the tables", "keys in use"])
def resolved(request: pytest.FixtureRequest) -> Resolved:
    """(store, text of a credential, now) -> who it is; of keys also as a shard that knows those in
    use.
    """
    keys = auth.KeysInUse()

    def resolve(store: Store, text: str, now_ms: int = NOW) -> tuple[Principal, Scope]:
        credential, slot = read_authorization(f"Bearer {text}", SECRETS, now_ms)
        with store.snapshot() as snapshot:
            if request.param == "keys in use" and credential.kind == "key":
                return keys.resolve(snapshot, slot, credential, now_ms)
            return auth.resolve(snapshot, slot, credential, now_ms, SECRETS)

    return resolve


def needs(scope: str, *, internal: bool = False) -> Operation:
    return Read(
        "x",
        "GET",
        "/x",
        print,
        summary="",
        response=None,
        scope=scope,
        internal=internal,
    )


# --- resolving ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("granted", "held"),
    [
        (("read",), {"read"}),
        (("write",), {"read", "write"}),
        (("admin",), {"read", "write", "admin"}),
        (("read", "write"), {"read", "write"}),
    ],
)
def test_a_key_resolves_to_its_tenant_with_its_scopes_expanded(
    store: Store, resolved: Resolved, granted: tuple[str, ...], held: set[str]
) -> None:
    grant(store, *granted)
    principal, scope = resolved(store, KEY)
    assert (scope, scope.key) == (Scope(SLOT, 7), ACCOUNT.key)
    assert (principal.tenant_id, principal.tag, principal.tier, principal.created_at) == (
        "usr_7",
        ACCOUNT.tag,
        "pro",
        NOW - 1,
    )
    assert (principal.scopes, principal.credential_id, principal.is_session) == (
        held,
        "key_1",
        False,
    )


def test_a_key_is_refused_from_the_moment_its_row_is_gone(store: Store, resolved: Resolved) -> None:
    with pytest.raises(Unauthenticated):
        resolved(store, KEY)
    grant(store, "read")
    resolved(store, KEY)
    store.write(
        lambda t: t.bind(tenants.CREDENTIALS, Scope.of_slot(SLOT)).delete(
            ids.api_key_digest(SECRETS.pepper, KEY)
        )
    )
    with pytest.raises(Unauthenticated):
        resolved(store, KEY)


def test_a_key_expires(store: Store, resolved: Resolved) -> None:
    grant(store, "read", expires_at=NOW)
    resolved(store, KEY, NOW - 1)
    with pytest.raises(Unauthenticated, match="expired"):
        resolved(store, KEY, NOW)


def test_credentials_of_an_erased_account_are_refused(store: Store, resolved: Resolved) -> None:
    grant(store, "read")
    store.write(lambda t: t.bind(tenants.TENANTS, Scope.of_slot(SLOT)).delete(ACCOUNT.number))
    for text in (KEY, token()):
        with pytest.raises(Unauthenticated):
            resolved(store, text)


def test_a_token_resolves_to_a_session_with_all_scopes(store: Store, resolved: Resolved) -> None:
    principal, scope = resolved(store, token())
    assert (principal.scopes, principal.is_session, principal.credential_id) == (
        {"read", "write", "admin"},
        True,
        b"j".hex() * 16,
    )
    assert (scope, scope.key) == (Scope(SLOT, 7), ACCOUNT.key)


def test_raising_the_token_version_ends_all_tokens(store: Store, resolved: Resolved) -> None:
    put(store, tenants.TENANTS, (7,), msgspec.structs.replace(ACCOUNT, token_version=1))
    with pytest.raises(Unauthenticated):
        resolved(store, token())


def test_a_number_that_went_to_another_account_opens_nothing(
    store: Store, resolved: Resolved
) -> None:
    put(store, tenants.TENANTS, (7,), msgspec.structs.replace(ACCOUNT, tenant_id="usr_8"))
    with pytest.raises(Unauthenticated):
        resolved(store, token())


def test_a_logged_out_token_is_refused_and_forgotten_once_expired(
    store: Store, resolved: Resolved
) -> None:
    def revoke(jti: str, exp: int, now_ms: int) -> None:
        environment = bare_environment()
        call = Call("auth.logout", SLOT, now_ms, b"", "")
        scope = tenants.scope_of(SLOT, ACCOUNT)
        store.write(
            lambda t: access_tokens.revoke_token(
                WriteContext(t, scope, call, environment, None), {"jti": jti, "exp": exp}
            )
        )

    def kept() -> list[tuple]:
        with store.snapshot() as snapshot:
            return list(
                snapshot.bind(tenants.REVOKED_TOKENS, tenants.scope_of(SLOT, ACCOUNT)).keys()
            )

    exp = NOW // 1000 + DAY
    revoke(b"j".hex() * 16, exp, NOW)
    with pytest.raises(Unauthenticated, match="has ended"):
        resolved(store, token())
    revoke("other", exp + DAY, NOW + DAY * 1000 - 1000)
    assert kept() == [(exp, b"j".hex() * 16), (exp + DAY, "other")]
    revoke("third", exp + DAY, NOW + DAY * 1000 + 1000)
    assert kept() == [(exp + DAY, "other"), (exp + DAY, "third")]


def test_the_operator_is_no_tenant(store: Store, resolved: Resolved) -> None:
    with pytest.raises(PermissionDenied):
        resolved(store, SECRETS.operator_token)


def test_a_tenant_is_found_by_number_and_by_address(store: Store) -> None:
    with store.snapshot() as snapshot:

        def by_email(slot: int, email: str) -> tenants.TenantRow | None:
            call, environment = Call("find", slot, NOW, b"", ""), bare_environment()
            scope = Scope.of_slot(slot)
            return tenants.by_email(
                SlotReadContext(snapshot, scope, call, environment, NOBODY), email
            )

        principal, scope = tenants.tenant(snapshot, SLOT, 7)
        assert (principal.tenant_id, principal.scopes, scope.key) == (
            "usr_7",
            {"read", "write", "admin"},
            ACCOUNT.key,
        )
        assert tenants.tenant(snapshot, SLOT, 8) is None
        assert by_email(SLOT, "ada@example.com") == ACCOUNT
        assert by_email(SLOT, "bob@example.com") is None
        assert by_email(SLOT - 1, "ada@example.com") is None


# --- authorising ----------------------------------------------------------------------------------


@pytest.mark.parametrize("granted", tenants.SCOPES)
@pytest.mark.parametrize("needed", tenants.SCOPES)
def test_an_operation_needs_its_scope(
    store: Store, resolved: Resolved, granted: str, needed: str
) -> None:
    grant(store, granted)
    principal, _ = resolved(store, KEY)
    if tenants.SCOPES.index(needed) <= tenants.SCOPES.index(granted):
        auth.authorise(principal, needs(needed))
    else:
        with pytest.raises(PermissionDenied, match=needed):
            auth.authorise(principal, needs(needed))


def test_internal_operations_are_the_operator_s_alone(store: Store, resolved: Resolved) -> None:
    principal, _ = resolved(store, token())
    with pytest.raises(PermissionDenied):
        auth.authorise(principal, needs("admin", internal=True))
    auth.authorise_operator(Credential("operator"))
    for credential in (
        Credential("key", digest=b"d"),
        Credential("jwt", claims={"sub": "operator"}),
    ):
        with pytest.raises(PermissionDenied):
            auth.authorise_operator(credential)
    with pytest.raises(Unauthenticated):
        auth.authorise_operator(None)
