"""From an Authorization header to a Principal: who calls, and what it may do (specification part 5).

Two steps, at two places. The gateway reads the header: it refuses what no shard could accept, garbage, forgeries and expired
tokens, without a hop, and learns the slot. The shard that owns the slot resolves the credential against its tables in the
call's own snapshot or transaction, so a revocation holds for the very next request.

Three kinds of credential:

    key       an API key; only its keyed digest is stored, under which it is looked up
    jwt       an access token of registration or login: HS256, signed with a key derived from the service secret. The `kid`
              header names the derivation, so signing keys can change while old tokens run out
    operator  the installation's own token; opens internal operations and nothing else

Scopes: write implies read, admin implies both; an access token holds all three. What an operation needs is its declaration,
never its path.

    tenants         (number,)              -> TenantRow        of the slot; number counts from 1
    emails          (HMAC of the address,) -> TenantNumber     of the slot; the address itself is in the tenant's row alone
    credentials     (HMAC of the key,)     -> CredentialRow    of the slot
    revoked_tokens  (exp, jti)             -> b""              tokens logged out before they expired, in the order they expire
    key_usage       (key id,)              -> KeyUsageRow      what each API key was used for

Deleting a credential's row revokes it; raising a tenant's `token_version` ends all its access tokens; closing an account does
both and for good. The module does not know how accounts and keys come to be: plugins/accounts.py does.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jwt
import msgspec

from runtime import ids
from runtime.errors import PermissionDenied, Unauthenticated
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, KEYS_READ_MAX, SLOTS
from runtime.operation import Credential, Principal
from storage.table import Scope, Table

if TYPE_CHECKING:
    from runtime.operation import Operation, WriteContext
    from runtime.secrets import Secrets
    from storage.table import Reader

SCOPES = ("read", "write", "admin")
_IMPLIED = {"read": {"read"}, "write": {"read", "write"}, "admin": {"read", "write", "admin"}}

TOKEN_ISSUER = "mneme"
TOKEN_AUDIENCE = "mneme-api"
TOKEN_ALGORITHMS = ("HS256",)
TOKEN_CLAIMS = ("iss", "aud", "exp", "iat", "jti", "sub", "slot", "tn", "tv")
# Names of signing keys, newest first: the first signs, all verify. A leaked key is retired by putting a new name in front and
# dropping the old one, which changes neither API keys nor tenant tags.
TOKEN_KEY_IDS = ("1",)


class TenantRow(msgspec.Struct):
    """An account. tag: the 4 bytes inside its ids. key: 32 bytes, its own secret. Times in Unix milliseconds.

    closed_at  set when its erasure was asked for: from then on the row is a tombstone, without e-mail, name and password
    """

    number: int
    tenant_id: str
    tag: bytes
    key: bytes
    email: str
    full_name: str
    password_hash: str
    tier: str
    created_at: int
    token_version: int = 0
    closed_at: int | None = None


class TenantNumber(msgspec.Struct):
    number: int


class CredentialRow(msgspec.Struct):
    """An API key's rights. scopes as granted, not expanded; expires_at: Unix milliseconds or None."""

    key_id: str
    tenant_number: int
    scopes: tuple[str, ...]
    expires_at: int | None = None


class KeyUsageRow(msgspec.Struct):
    """What an API key was used for. Requests that change nothing are written down a second later."""

    requests: int = 0
    credits: int = 0
    last_used_at: int | None = None


TENANTS: Table[TenantRow] = Table("tenants", key=("number",), row=TenantRow, level="slot", owner="number", doc="accounts of a slot")
EMAILS: Table[TenantNumber] = Table(
    "emails", key=("email_hmac",), row=TenantNumber, level="slot", doc="keyed digest of an e-mail to its account"
)
CREDENTIALS: Table[CredentialRow] = Table(
    "credentials", key=("key_hmac",), row=CredentialRow, level="slot", doc="keyed digest of an API key to its rights"
)
REVOKED_TOKENS: Table[bytes] = Table("revoked_tokens", key=("exp", "jti"), row=bytes, doc="access tokens logged out before they expired")
KEY_USAGE: Table[KeyUsageRow] = Table("key_usage", key=("key_id",), row=KeyUsageRow, doc="requests and credits by API key")
CORE_TABLES = (TENANTS, EMAILS, CREDENTIALS, REVOKED_TOKENS, KEY_USAGE)


# --- the gateway's half -----------------------------------------------------------------------------------------------


def read_authorization(header: str | None, secrets: Secrets, now_ms: int) -> tuple[Credential, int]:
    """The Authorization header -> (credential, slot of its tenant; 0 for the operator, whose calls name their slot).

    Raises Unauthenticated: missing_api_key when there is no credential, invalid_api_key when it cannot be genuine.
    """
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if not token:
        if scheme and scheme.lower() not in ("bearer", "token"):
            raise _invalid()
        raise Unauthenticated("Send a credential: `Authorization: Bearer <API key or access token>`.", code="missing_api_key")
    if scheme.lower() not in ("bearer", "token") or not token.isascii():
        raise _invalid()
    known = _read_key(secrets.service, secrets.pepper, token) if ids.is_key_shaped(token) else None
    if known is not None:
        return known
    if hmac.compare_digest(token.encode(), secrets.operator_token.encode()):
        return Credential("operator"), 0
    claims = _read_token(token, secrets, now_ms)
    return Credential("jwt", claims=claims), claims["slot"]


@lru_cache(maxsize=KEYS_READ_MAX)  # a client shows the same key again and again; whether it is still good the shard says
def _read_key(secret: bytes, pepper: bytes, token: str) -> tuple[Credential, int] | None:
    slot = ids.api_key_slot(secret, token)
    return None if slot is None or slot >= SLOTS else (Credential("key", digest=ids.api_key_digest(pepper, token)), slot)


def _read_token(token: str, secrets: Secrets, now_ms: int) -> dict[str, Any]:
    try:
        key_id = jwt.get_unverified_header(token).get("kid")
        if key_id not in TOKEN_KEY_IDS:
            raise _invalid()
        claims = jwt.decode(
            token,
            _signing_key(secrets, key_id),
            algorithms=list(TOKEN_ALGORITHMS),
            issuer=TOKEN_ISSUER,
            audience=TOKEN_AUDIENCE,
            # The times are judged below, by the call's clock.
            options={"require": list(TOKEN_CLAIMS), "verify_exp": False, "verify_iat": False},
        )
    except jwt.PyJWTError:
        raise _invalid() from None
    if claims["exp"] * 1000 <= now_ms:
        raise Unauthenticated("This access token has expired. Log in again.")
    return claims


# --- the shard's half -------------------------------------------------------------------------------------------------


def resolve(reader: Reader, slot: int, credential: Credential, now_ms: int, secrets: Secrets) -> tuple[Principal, Scope]:
    """A credential the gateway accepted -> (principal, its tenant's scope), as the tables say now.

    Raises Unauthenticated for a revoked, expired or unknown one, PermissionDenied for the operator, who is no tenant.
    """
    if credential.kind == "operator":
        raise PermissionDenied("The operator token opens internal operations only.")
    of_slot = Scope.of_slot(slot)
    if credential.kind == "key":
        row = reader.bind(CREDENTIALS, of_slot).get(credential.digest)
        if row is None:
            raise _invalid()
        if row.expires_at is not None and row.expires_at <= now_ms:
            raise Unauthenticated("This API key has expired.")
        account = _open_account(reader, slot, row.tenant_number)
        if account is None:
            raise _invalid()
        return principal_of(slot, account, row.scopes, row.key_id), scope_of(slot, account)
    claims = credential.claims
    account = _open_account(reader, slot, claims["tn"])
    if account is None or account.tenant_id != claims["sub"] or account.token_version != claims["tv"]:
        raise _invalid()
    scope = scope_of(slot, account)
    if reader.bind(REVOKED_TOKENS, scope).has(claims["exp"], claims["jti"]):
        raise Unauthenticated("This access token was logged out.")
    return principal_of(slot, account, SCOPES, claims["jti"], is_session=True), scope


def authorise(principal: Principal, operation: Operation, body: Any = None) -> None:
    """Raises PermissionDenied unless the principal's scopes cover the operation. Internal operations are for no tenant.

    body  None while it could not be read; what it asks for is then never done
    """
    if operation.internal:
        raise PermissionDenied("This operation is for the operator of the service.")
    scope = operation.scope if operation.scope_of is None or body is None else operation.scope_of(body)
    if scope != "public" and scope not in principal.scopes:
        raise PermissionDenied(f"This API key lacks the scope {scope!r}.")


def authorise_operator(credential: Credential | None) -> None:
    """The check of internal operations: raises unless the credential is the operator's."""
    if credential is None:
        raise Unauthenticated("Send the operator token: `Authorization: Bearer <token>`.", code="missing_api_key")
    if credential.kind != "operator":
        raise PermissionDenied("This operation is for the operator of the service.")


def tenant(reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
    """The tenant itself, with all scopes and no credential, for work done on its behalf; None when it is gone or closed."""
    account = _open_account(reader, slot, number)
    return None if account is None else (principal_of(slot, account, SCOPES, ""), scope_of(slot, account))


def slot_itself(slot: int, secrets: Secrets) -> tuple[Principal, Scope]:
    """Whoever acts for the slot: for background work that outlives its tenant. Its ids carry the tag of nobody."""
    principal = Principal(slot, 0, "", bytes(4), "free", frozenset(), "", False)
    return principal, Scope(slot, 0, hmac.digest(secrets.service, b"slot", "sha256"))


def close_account(ctx: WriteContext, number: int) -> bool:
    """Let nobody in from this transaction on, and free the e-mail address; -> whether it was in use. The rest is for others to erase."""
    account = ctx[TENANTS].get(number)
    was_open = ctx[EMAILS].delete(email_digest(ctx.secrets, account.email))
    blank = {"email": "", "full_name": "", "password_hash": "", "token_version": account.token_version + 1}
    ctx[TENANTS].put((number,), msgspec.structs.replace(account, closed_at=ctx.now, **blank))
    return was_open


def closed_tenant(reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
    """As tenant(), for the erasure of a closed account alone."""
    account = reader.bind(TENANTS, Scope.of_slot(slot)).get(number)
    return None if account is None or account.closed_at is None else (principal_of(slot, account, SCOPES, ""), scope_of(slot, account))


def _open_account(reader: Reader, slot: int, number: int) -> TenantRow | None:
    account = reader.bind(TENANTS, Scope.of_slot(slot)).get(number)
    return account if account is not None and account.closed_at is None else None


def tenant_of_email(reader: Reader, slot: int, email: str, secrets: Secrets) -> TenantRow | None:
    """The account registered under this normalised address, or None."""
    of_slot = Scope.of_slot(slot)
    found = reader.bind(EMAILS, of_slot).get(email_digest(secrets, email))
    return None if found is None else _open_account(reader, slot, found.number)


def email_digest(secrets: Secrets, email: str) -> bytes:
    """The 32 bytes under which a normalised address is stored."""
    return hmac.digest(secrets.pepper, b"email:" + email.encode(), "sha256")


def scope_of(slot: int, account: TenantRow) -> Scope:
    """Where this account's rows live."""
    return Scope(slot, account.number, account.key)


def principal_of(slot: int, account: TenantRow, scopes: Iterable[str], credential_id: str, *, is_session: bool = False) -> Principal:
    """The account as a caller with these granted scopes."""
    return Principal(
        slot=slot,
        tenant_number=account.number,
        tenant_id=account.tenant_id,
        tag=account.tag,
        tier=account.tier,
        scopes=frozenset().union(*(_IMPLIED[scope] for scope in scopes)),
        credential_id=credential_id,
        is_session=is_session,
        created_at=account.created_at,
    )


# --- access tokens ----------------------------------------------------------------------------------------------------


def issue_token(slot: int, account: TenantRow, secrets: Secrets, *, now_ms: int, lifetime_seconds: int, random: bytes) -> tuple[str, int]:
    """A new access token -> (token, seconds until it expires). `random` (≥ 16 bytes) becomes its jti."""
    issued = now_ms // 1000
    claims = {
        "iss": TOKEN_ISSUER,
        "aud": TOKEN_AUDIENCE,
        "sub": account.tenant_id,
        "slot": slot,
        "tn": account.number,
        "tv": account.token_version,
        "iat": issued,
        "exp": issued + lifetime_seconds,
        "jti": random.hex(),
    }
    key_id = TOKEN_KEY_IDS[0]
    return jwt.encode(claims, _signing_key(secrets, key_id), TOKEN_ALGORITHMS[0], headers={"kid": key_id}), lifetime_seconds


def revoke_token(ctx: WriteContext, claims: dict[str, Any]) -> None:
    """Log out the token with these claims, and forget a few of those that have expired anyway."""
    revoked = ctx[REVOKED_TOKENS]
    expired = list(revoked.keys(before=(ctx.now // 1000,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE))
    for key in expired:
        revoked.delete(*key)
    revoked.put((claims["exp"], claims["jti"]), b"")


def _signing_key(secrets: Secrets, key_id: str) -> bytes:
    return hmac.digest(secrets.service, b"access-token:" + key_id.encode(), "sha256")


def _invalid() -> Unauthenticated:
    return Unauthenticated("This credential is not valid. It may be mistyped, revoked or expired.")
