"""The accounts of a slot, and the credentials that open them: their rows, and from a row to a
Principal and a Scope.

    tenants         (number,)              -> TenantRow      of the slot; number counts from 1
    emails          (HMAC of the address,) -> TenantNumber   of the slot; the address itself is in
                                                             the tenant's row alone
    credentials     (HMAC of the key,)     -> CredentialRow  of the slot
    revoked_tokens  (exp, jti)             -> b""            tokens without a session's row that
                                                             were logged out, in the order they
                                                             expire
    key_usage       (key id,)              -> KeyUsageRow    what each API key was used for
    suspensions     ()                     -> SuspensionRow  of an account that may write nothing
                                                             which costs credits

Deleting a credential's row revokes it; raising a tenant's `token_version` ends its access tokens
that have no row as sessions (access_tokens.py); closing an account ends all of them for good. The
module does not know how accounts and keys come to be: plugins/accounts/__init__.py does.

Tenants, emails and credentials are tables of the slot, and a tenant's context reaches none of them.
What a tenant does to its own rows in them are the functions here: each acts on the account of its
context and on no other.

Scopes: write implies read, admin implies both; an access token holds all three. What an operation
needs is its declaration, never its path.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from runtime import ids
from runtime.api.call import Principal
from storage.store import Scope, Table

if TYPE_CHECKING:
    from runtime.api.context import ReadContext, WriteContext
    from runtime.api.slot_context import SlotReadContext, SlotWriteContext
    from runtime.installation import Secrets
    from storage.store import Reader

SCOPES = ("read", "write", "admin")
API_KEY_RANDOM_BYTES = 26
_IMPLIED = {"read": {"read"}, "write": {"read", "write"}, "admin": {"read", "write", "admin"}}


class TenantRow(msgspec.Struct):
    """An account. tag: the 4 bytes inside its ids. key: 32 bytes, its own secret. Times in Unix
    milliseconds.

    closed_at  set when its erasure was asked for: from then on the row is a tombstone, without
               e-mail, name and password
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
    """An API key's rights. scopes as granted, not expanded; expires_at: Unix milliseconds or
    None.
    """

    key_id: str
    tenant_number: int
    scopes: tuple[str, ...]
    expires_at: int | None = None


class KeyUsageRow(msgspec.Struct):
    """What an API key was used for. Requests that change nothing are written down a second
    later.
    """

    requests: int = 0
    credits: int = 0
    last_used_at: int | None = None


class SuspensionRow(msgspec.Struct):
    """since: Unix milliseconds; reason: what a refused caller is told; cause: the id of what it is
    about.
    """

    since: int
    reason: str
    cause: str


TENANTS: Table[TenantRow] = Table(
    "tenants",
    key=("number",),
    row=TenantRow,
    level="slot",
    owner="number",
    doc="accounts of a slot",
)
EMAILS: Table[TenantNumber] = Table(
    "emails",
    key=("email_hmac",),
    row=TenantNumber,
    level="slot",
    doc="keyed digest of an e-mail to its account",
)
CREDENTIALS: Table[CredentialRow] = Table(
    "credentials",
    key=("key_hmac",),
    row=CredentialRow,
    level="slot",
    doc="keyed digest of an API key to its rights",
)
REVOKED_TOKENS: Table[bytes] = Table(
    "revoked_tokens",
    key=("exp", "jti"),
    row=bytes,
    doc="access tokens logged out before they expired",
)
KEY_USAGE: Table[KeyUsageRow] = Table(
    "key_usage", key=("key_id",), row=KeyUsageRow, doc="requests and credits by API key"
)
SUSPENSIONS: Table[SuspensionRow] = Table(
    "suspensions", key=(), row=SuspensionRow, doc="why an account may write nothing that costs"
)
TABLES = (TENANTS, EMAILS, CREDENTIALS, REVOKED_TOKENS, KEY_USAGE, SUSPENSIONS)


# --- a tenant's own account -----------------------------------------------------------------------


def own_account(ctx: ReadContext) -> TenantRow:
    """The row of the context's account."""
    return ctx._of_slot(TENANTS).row(ctx.scope.tenant)


def set_tier(ctx: WriteContext, tier: str) -> None:
    """Have the account served by this tier."""
    account = msgspec.structs.replace(own_account(ctx), tier=tier)
    ctx._of_slot(TENANTS).put((ctx.scope.tenant,), account)


def suspend(ctx: WriteContext, reason: str, cause: str) -> None:
    """Refuse what costs credits and is no read, until `resume`."""
    ctx[SUSPENSIONS].put((), SuspensionRow(ctx.now, reason, cause))


def resume(ctx: WriteContext) -> None:
    """Let the account write again."""
    ctx[SUSPENSIONS].delete()


def suspension(ctx: ReadContext) -> SuspensionRow | None:
    """Why the account may write nothing that costs credits; None where it may."""
    return ctx[SUSPENSIONS].get()


def set_password(ctx: WriteContext, password_hash: str) -> None:
    """Have the account opened by the password of this hash."""
    account = msgspec.structs.replace(own_account(ctx), password_hash=password_hash)
    ctx._of_slot(TENANTS).put((ctx.scope.tenant,), account)


def raise_token_version(ctx: WriteContext) -> None:
    """End the account's access tokens that have no row as sessions."""
    account = own_account(ctx)
    raised = msgspec.structs.replace(account, token_version=account.token_version + 1)
    ctx._of_slot(TENANTS).put((ctx.scope.tenant,), raised)


def close_account(ctx: WriteContext) -> bool:
    """Let nobody in from this transaction on, and free the e-mail address; -> whether it was in
    use. The rest is for others to erase.
    """
    account, secrets = own_account(ctx), ctx._environment.secrets
    emails = ctx._of_slot(EMAILS)
    was_open = any([emails.delete(digest) for digest in email_digests(secrets, account.email)])
    blank = {
        "email": "",
        "full_name": "",
        "password_hash": "",
        "token_version": account.token_version + 1,
    }
    ctx._of_slot(TENANTS).put(
        (ctx.scope.tenant,), msgspec.structs.replace(account, closed_at=ctx.now, **blank)
    )
    return was_open


def remove_account(ctx: WriteContext) -> bool:
    """Delete the account's row, the last of it; -> whether it was there."""
    return ctx._of_slot(TENANTS).delete(ctx.scope.tenant)


def make_key(ctx: WriteContext) -> tuple[str, bytes]:
    """A new API key: (its text, the digest it is known by). It opens nothing yet."""
    secrets = ctx._environment.secrets
    key = ids.make_api_key(secrets.service, ctx.scope.slot, ctx.random(API_KEY_RANDOM_BYTES))
    return key, ids.api_key_digest(secrets.pepper, key)


def open_with(
    ctx: WriteContext, digest: bytes, key_id: str, scopes: tuple[str, ...], expires_at: int | None
) -> None:
    """Have the key of this digest open the account."""
    credentials, row = ctx._of_slot(CREDENTIALS), own_credential(ctx, key_id, scopes, expires_at)
    before = credentials.get(digest)
    if before is not None and before.tenant_number != row.tenant_number:
        raise PermissionError("this key opens another account")
    credentials.put((digest,), row)


def own_credential(
    ctx: ReadContext, key_id: str, scopes: tuple[str, ...], expires_at: int | None
) -> CredentialRow:
    """The row of a key that opens the account."""
    return CredentialRow(key_id, ctx.scope.tenant, scopes, expires_at)


def revoke(ctx: WriteContext, digest: bytes) -> bool:
    """Refuse the key of this digest from now on; -> whether it opened the account."""
    credentials = ctx._of_slot(CREDENTIALS)
    row = credentials.get(digest)
    if row is None or row.tenant_number != ctx.scope.tenant:
        return False
    return credentials.delete(digest)


def own_credentials(ctx: ReadContext) -> Iterator[tuple[bytes, CredentialRow]]:
    """(digest, row) of every key that opens the account; it goes through those of the slot."""
    for (digest,), row in ctx._of_slot(CREDENTIALS).scan():
        if row.tenant_number == ctx.scope.tenant:
            yield digest, row


def as_slot(ctx: SlotWriteContext) -> SlotWriteContext:
    """The context of whoever acts for the slot, in the same transaction: for jobs that it has."""
    return ctx._seen_as(type(ctx), *slot_itself(ctx.scope.slot, ctx.secrets))


# --- accounts of a slot ---------------------------------------------------------------------------


def by_email(ctx: SlotReadContext, email: str) -> TenantRow | None:
    """The account of the slot that is registered under this normalised address, or None."""
    found = (ctx[EMAILS].get(digest) for digest in email_digests(ctx.secrets, email))
    number = next((row for row in found if row is not None), None)
    account = None if number is None else ctx[TENANTS].get(number.number)
    return account if account is not None and account.closed_at is None else None


def identity(slot: int, account: TenantRow, credential_id: str = "") -> tuple[Principal, Scope]:
    """The account itself, with all scopes, for work done on its behalf."""
    return principal_of(slot, account, SCOPES, credential_id), scope_of(slot, account)


def tenant(reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
    """The identity of the tenant of this number; None when it is gone or closed."""
    account = open_account(reader, slot, number)
    return None if account is None else identity(slot, account)


def slot_itself(slot: int, secrets: Secrets) -> tuple[Principal, Scope]:
    """Whoever acts for the slot: for background work that outlives its tenant. Its ids carry the
    tag of nobody.
    """
    principal = Principal(slot, 0, "", bytes(4), "free", frozenset(), "", False)
    return principal, Scope(slot, 0, hmac.digest(secrets.service, b"slot", "sha256"))


def closed_tenant(reader: Reader, slot: int, number: int) -> tuple[Principal, Scope] | None:
    """As tenant(), for the erasure of a closed account alone."""
    account = reader.bind(TENANTS, Scope.of_slot(slot)).get(number)
    return None if account is None or account.closed_at is None else identity(slot, account)


def open_account(reader: Reader, slot: int, number: int) -> TenantRow | None:
    account = reader.bind(TENANTS, Scope.of_slot(slot)).get(number)
    return account if account is not None and account.closed_at is None else None


def email_digest(secrets: Secrets, email: str) -> bytes:
    """The 32 bytes under which a normalised address is stored."""
    return email_digests(secrets, email)[0]


def email_digests(secrets: Secrets, email: str) -> list[bytes]:
    """What it is, and under a pepper before what it may still be, stored under."""
    return [hmac.digest(pepper, b"email:" + email.encode(), "sha256") for pepper in secrets.peppers]


def scope_of(slot: int, account: TenantRow) -> Scope:
    """Where this account's rows live."""
    return Scope(slot, account.number, account.key)


def principal_of(
    slot: int,
    account: TenantRow,
    scopes: Iterable[str],
    credential_id: str,
    *,
    is_session: bool = False,
) -> Principal:
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
