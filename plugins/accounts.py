"""Accounts: registration, login, the API keys of an account.

Owns who may call: it turns an e-mail address and a password into an account, and an account into credentials. It does not
know what an account holds; every other plugin finds its tenant in the context and never asks this one.

An account lives in the slot of its normalised e-mail address, with everything else of its tenant. So the address is unique
because one writer owns its slot, and neither login nor a key look-up needs a directory. Registration and login are public:
their context is bound to the slot, and they find the tenant there.

Passwords are hashed with argon2id, which is slow on purpose. That happens in `prepare`, on a few threads of its own and
outside any transaction; a login with an unknown address costs one hash as well, so that time does not tell who has an
account. What is stored of an API key is its keyed digest; its text is in the answer that minted it and nowhere else.

Invariant: an API key is listed in `api_keys` exactly when its digest is in `credentials`. Both change in one transaction, so
a deleted key is refused from the next request on.

    tenants, emails, credentials, revoked_tokens, key_usage     see runtime/auth.py
    api_keys        (ordinal,)  -> ApiKeyRow                    in the order they were minted
    api_key_ids     (key id,)   -> ordinal, 4 bytes big endian
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import argon2
import msgspec
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from runtime import auth, ids, limits
from runtime.checks import Counter, Derived, Finding, delete, last_ordinal, named, put
from runtime.errors import BadRequest, Conflict, NotFound, Unauthenticated, Unavailable, ValidationFailed
from runtime.inference import Models
from runtime.operation import Body, Call, Idempotency, Kind, Operation, ReadContext, Reply, View, WriteContext
from runtime.pagination import Page, PageQuery, envelope, position
from runtime.placement import normalise_email, slot_of_email
from runtime.plugin import Plugin
from runtime.timestamps import Timestamp, iso
from storage.table import Table

API_KEY_RANDOM_BYTES = 26
API_KEY_SHOWN_CHARS = len(ids.KEY_PREFIX) + 12  # four of slot, eight that tell the account's keys apart

KeyScope = Literal["read", "write", "admin"]

# --- requests and responses -------------------------------------------------------------------------------------------

_EMAIL_SHAPE = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)+")


def _normalised(email: str) -> str:
    address = normalise_email(email)
    if len(address) > limits.EMAIL_CHARS_MAX or not address.isprintable() or not _EMAIL_SHAPE.fullmatch(address):
        raise PydanticCustomError("email", "Must be an e-mail address, such as name@example.com.")
    return address


Email = Annotated[
    str,
    Field(
        max_length=limits.EMAIL_CHARS_MAX,
        description="E-mail address; white space around it and letter case do not count.",
        json_schema_extra={"format": "email"},
    ),
    AfterValidator(_normalised),
]
KeyName = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description="What the key is for, such as `production`.")]
KeyScopes = Annotated[
    list[KeyScope],
    Field(min_length=1, max_length=16, description="What the key may do. write implies read, admin implies both."),
]


class Registration(Body):
    email: Email
    password: str = Field(
        min_length=limits.PASSWORD_CHARS_MIN, max_length=limits.PASSWORD_CHARS_MAX, repr=False, description="The password."
    )
    full_name: str = Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description="The account holder's name.")


class Login(Body):
    email: Email
    password: str = Field(min_length=1, max_length=limits.PASSWORD_CHARS_MAX, repr=False, description="The password.")


class NewApiKey(Body):
    name: KeyName
    scopes: KeyScopes = Field(["read", "write"])
    expires_at: Timestamp | None = Field(None, description="When the key stops working; never, when absent.")


class NewApiKeyOf(Body):
    email: Email
    name: KeyName
    scopes: KeyScopes = Field(["read", "write"])


class Session(View):
    access_token: str = Field(description="A bearer credential with all scopes.")
    token_type: Literal["bearer"] = Field(description="Send it as `Authorization: Bearer <access_token>`.")
    expires_in: int = Field(description="Seconds until the token expires.")
    user_id: str = Field(description="The account's id.")
    email: str = Field(description="The normalised e-mail address.")
    full_name: str = Field(description="The account holder's name.")


class Account(View):
    user_id: str = Field(description="The account's id.")
    email: str = Field(description="The normalised e-mail address.")
    full_name: str = Field(description="The account holder's name.")
    tier: str = Field(description="The tier of the account's plan.")
    created_at: str = Field(description="When it was registered (ISO 8601).")


class KeyUsage(View):
    requests: int = Field(description="Requests made with the key.")
    credits: int = Field(description="Credits they cost.")


class ApiKey(View):
    id: str = Field(description="The key's id; delete it under this.")
    name: str = Field(description="What the key is for.")
    prefix: str = Field(description="The first characters of the key, to recognise it by.")
    scopes: list[KeyScope] = Field(description="What the key may do.")
    created_at: str = Field(description="When it was minted (ISO 8601).")
    expires_at: str | None = Field(description="When it stops working; null: never.")


class MintedApiKey(ApiKey):
    key: str = Field(description="The key itself. It is shown this once.")


class ListedApiKey(ApiKey):
    last_used_at: str | None = Field(description="When it was last used (ISO 8601); null: never.")
    usage: KeyUsage = Field(description="What it was used for.")


# --- tables -----------------------------------------------------------------------------------------------------------


class ApiKeyRow(msgspec.Struct):
    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    digest: bytes
    created_at: int
    expires_at: int | None = None


API_KEYS: Table[ApiKeyRow] = Table("api_keys", key=("ordinal",), row=ApiKeyRow, doc="API keys of an account, without their text")
API_KEY_IDS: Table[bytes] = Table("api_key_ids", key=("key_id",), row=bytes, doc="key id to ordinal, 4 bytes big endian")


# --- passwords --------------------------------------------------------------------------------------------------------

_threads = ThreadPoolExecutor(max_workers=limits.PASSWORD_HASH_THREADS_MAX, thread_name_prefix="mneme-password")
_seats = threading.BoundedSemaphore(limits.PASSWORD_HASHES_WAITING_MAX)


def _hasher(ctx: ReadContext) -> argon2.PasswordHasher:
    cost = ctx.settings.auth
    return argon2.PasswordHasher(time_cost=cost.argon2_time_cost, memory_cost=cost.argon2_memory_kib, parallelism=1)


async def _in_pool(function: Any, *arguments: Any) -> Any:
    """Run it on a password thread; refuse at once when too many wait, since each takes a good part of a second."""
    if not _seats.acquire(blocking=False):
        raise Unavailable("Too many people are registering or logging in. Retry in a moment.")
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, function, *arguments)
    finally:
        _seats.release()


def _fits(hasher: argon2.PasswordHasher, password_hash: str | None, password: str) -> bool:
    if password_hash is None:
        hasher.hash(password)  # as long as a verification takes
        return False
    try:
        return hasher.verify(password_hash, password)
    except argon2.exceptions.VerifyMismatchError:
        return False


# --- registration, login, logout --------------------------------------------------------------------------------------


def _refuse_taken(ctx: ReadContext, email: str) -> None:
    if auth.tenant_of_email(ctx.reader, ctx.scope.slot, email, ctx.secrets) is not None:
        raise Conflict("An account with this e-mail address exists. Log in with POST /v1/auth/login.", param="email")


def load_registration(ctx: ReadContext, body: Registration) -> argon2.PasswordHasher:
    """The hasher to use; a taken address is refused before the slow part."""
    _refuse_taken(ctx, body.email)
    return _hasher(ctx)


async def hash_password(call: Call, hasher: argon2.PasswordHasher, models: Models) -> str:
    """The argon2id hash of the body's password, with its parameters and salt inside."""
    return await _in_pool(hasher.hash, call.body.password)


def register(ctx: WriteContext, body: Registration) -> Reply:
    _refuse_taken(ctx, body.email)
    # The account's own id carries a random tag: the tag of all its other ids derives from it.
    tenant_id = ids.make_id("usr", ctx.now, ctx.random(4), ctx.random(10))
    account = auth.TenantRow(
        number=ctx.next_ordinal("tenants") + 1,  # 0 stands for the slot itself
        tenant_id=tenant_id,
        tag=ids.tenant_tag(ctx.secrets.service, tenant_id),
        key=ctx.random(32),
        email=body.email,
        full_name=body.full_name,
        password_hash=ctx.prepared,
        tier=ctx.settings.billing.default_tier,
        created_at=ctx.now,
    )
    ctx.owner = auth.scope_of(ctx.scope.slot, account)
    ctx[auth.TENANTS].put((account.number,), account)
    ctx[auth.EMAILS].put((auth.email_digest(ctx.secrets, body.email),), auth.TenantNumber(account.number))
    return Reply(201, _session(ctx, account), resource_id=tenant_id)


def load_login(ctx: ReadContext, body: Login) -> tuple[argon2.PasswordHasher, str | None]:
    """(hasher, the stored hash or None for an unknown address)."""
    account = auth.tenant_of_email(ctx.reader, ctx.scope.slot, body.email, ctx.secrets)
    return _hasher(ctx), None if account is None else account.password_hash


async def verify_password(call: Call, loaded: tuple[argon2.PasswordHasher, str | None], models: Models) -> str | None:
    """The stored hash, when the body's password fits it; else None."""
    hasher, password_hash = loaded
    return password_hash if await _in_pool(_fits, hasher, password_hash, call.body.password) else None


def login(ctx: ReadContext, body: Login) -> Session:
    account = auth.tenant_of_email(ctx.reader, ctx.scope.slot, body.email, ctx.secrets)
    # The account is read again: it may have gone, or changed its password, while the hash was computed.
    if account is None or ctx.prepared != account.password_hash:
        raise Unauthenticated("The e-mail address or the password is wrong.")
    return _session(ctx, account)


def _session(ctx: ReadContext, account: auth.TenantRow) -> Session:
    token, expires_in = auth.issue_token(
        ctx.scope.slot,
        account,
        ctx.secrets,
        now_ms=ctx.now,
        lifetime_seconds=ctx.settings.auth.token_seconds,
        random=ids.derived_random(ctx.call.seed, 0, 16),
    )
    return Session(
        access_token=token,
        token_type="bearer",
        expires_in=expires_in,
        user_id=account.tenant_id,
        email=account.email,
        full_name=account.full_name,
    )


def logout(ctx: WriteContext, body: None) -> Reply:
    if not ctx.principal.is_session:
        raise BadRequest("An API key cannot log out; delete it with DELETE /v1/auth/api-keys/{id}.", param="Authorization")
    auth.revoke_token(ctx, ctx.call.credential.claims)
    return Reply(204)


def me(ctx: ReadContext, body: None) -> Account:
    account = ctx[auth.TENANTS].get(ctx.principal.tenant_number)
    return Account(
        user_id=account.tenant_id,
        email=account.email,
        full_name=account.full_name,
        tier=account.tier,
        created_at=iso(account.created_at),
    )


# --- API keys ---------------------------------------------------------------------------------------------------------


def create_api_key(ctx: WriteContext, body: NewApiKey) -> Reply:
    if body.expires_at is not None and body.expires_at <= ctx.now:
        raise ValidationFailed.at(("body", "expires_at"), "Must lie in the future.")
    return _mint(ctx, body.name, body.scopes, body.expires_at)


def create_api_key_of(ctx: WriteContext, body: NewApiKeyOf) -> Reply:
    slot = ctx.scope.slot
    account = auth.tenant_of_email(ctx.reader, slot, body.email, ctx.secrets)
    if account is None:
        raise NotFound("There is no account with this e-mail address; register it first.", param="email")
    principal = auth.principal_of(slot, account, auth.SCOPES, "operator")
    ctx.owner = auth.scope_of(slot, account)
    return _mint(ctx.as_tenant(principal, ctx.owner), body.name, body.scopes, None)


def _mint(ctx: WriteContext, name: str, scopes: list[str], expires_at: int | None) -> Reply:
    if ctx[API_KEYS].count() >= limits.API_KEYS_PER_TENANT_MAX:
        raise BadRequest(f"An account has at most {limits.API_KEYS_PER_TENANT_MAX} API keys; delete one first.")
    key = ids.make_api_key(ctx.secrets.service, ctx.scope.slot, ctx.random(API_KEY_RANDOM_BYTES))
    row = ApiKeyRow(
        id=ctx.new_id("key"),
        name=name,
        prefix=key[:API_KEY_SHOWN_CHARS],
        scopes=tuple(scope for scope in auth.SCOPES if scope in scopes),
        digest=ids.api_key_digest(ctx.secrets.pepper, key),
        created_at=ctx.now,
        expires_at=expires_at,
    )
    ordinal = ctx.next_ordinal("api_keys")
    ctx[API_KEYS].put((ordinal,), row)
    ctx[API_KEY_IDS].put((row.id,), ordinal.to_bytes(4, "big"))
    ctx[auth.CREDENTIALS].put((row.digest,), auth.CredentialRow(row.id, ctx.scope.tenant, row.scopes, expires_at))
    ctx[auth.KEY_USAGE].put((row.id,), auth.KeyUsageRow())
    return Reply(201, MintedApiKey(**_shown(row), key=key), resource_id=row.id)


def list_api_keys(ctx: ReadContext, body: None) -> dict[str, Any]:
    limit = ctx.query.limit
    found = list(ctx[API_KEYS].scan(before=position(ctx), reverse=True, limit=limit + 1))
    page = found[:limit]
    items = [_listed(ctx, row) for _, row in page]
    return envelope(ctx, items, page[-1][0] if len(found) > limit else None, ctx[API_KEYS].count())


def delete_api_key(ctx: WriteContext, body: None) -> Reply:
    missing = NotFound("There is no API key with this id; list yours with GET /v1/auth/api-keys.")
    key_id = ctx.check_id("key", ctx.path["id"], missing)
    ordinal = ctx[API_KEY_IDS].get(key_id)
    if ordinal is None:
        raise missing
    number = int.from_bytes(ordinal, "big")
    row = ctx[API_KEYS].get(number)
    ctx[auth.CREDENTIALS].delete(row.digest)
    ctx[auth.KEY_USAGE].delete(key_id)
    ctx[API_KEYS].delete(number)
    ctx[API_KEY_IDS].delete(key_id)
    return Reply(204)


def _shown(row: ApiKeyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "prefix": row.prefix,
        "scopes": list(row.scopes),
        "created_at": iso(row.created_at),
        "expires_at": None if row.expires_at is None else iso(row.expires_at),
    }


def _listed(ctx: ReadContext, row: ApiKeyRow) -> ListedApiKey:
    used = ctx[auth.KEY_USAGE].get(row.id) or auth.KeyUsageRow()
    return ListedApiKey(
        **_shown(row),
        last_used_at=None if used.last_used_at is None else iso(used.last_used_at),
        usage=KeyUsage(requests=used.requests, credits=used.credits),
    )


# --- privacy ----------------------------------------------------------------------------------------------------------


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove the account and all that lets anyone in. Counts of rows by table."""
    keys = [row for _, row in ctx[API_KEYS].scan()]
    counts = {"credentials": sum(ctx[auth.CREDENTIALS].delete(row.digest) for row in keys)}
    for table in (API_KEYS, API_KEY_IDS, auth.KEY_USAGE, auth.REVOKED_TOKENS):
        counts[table.name] = ctx[table].delete_prefix()
    counts["emails"] = int(auth.close_account(ctx, ctx.scope.tenant))
    counts["tenants"] = int(ctx[auth.TENANTS].delete(ctx.scope.tenant))
    return counts


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """The account and its keys, without password hash and digests: ("account" | "api_key", record)."""
    yield "account", me(ctx, None).model_dump()
    for _, row in ctx[API_KEYS].scan():
        yield "api_key", _listed(ctx, row).model_dump()


# --- what must agree --------------------------------------------------------------------------------------------------


def _keys_open(ctx: ReadContext) -> Iterator[Finding]:
    """The invariant of this module: a listed key opens the account, and no other key does."""
    name, tenant = auth.CREDENTIALS.name, ctx.scope.tenant
    owed = {row.digest: auth.CredentialRow(row.id, tenant, row.scopes, row.expires_at) for _, row in ctx[API_KEYS].scan()}
    for (digest,), row in ctx[auth.CREDENTIALS].scan():
        if row.tenant_number == tenant and owed.pop(digest, None) != row:
            yield Finding(name, f"{named((digest,))} is listed otherwise or not at all", delete(auth.CREDENTIALS, (digest,)))
    for digest, row in owed.items():
        yield Finding(name, f"key {row.key_id} is listed and does not open", put(auth.CREDENTIALS, (digest,), auth.CREDENTIALS.encode(row)))


def _usage_of_nothing(ctx: ReadContext) -> Iterator[Finding]:
    for key, _ in ctx[auth.KEY_USAGE].scan():
        if not ctx[API_KEY_IDS].has(*key):
            yield Finding(auth.KEY_USAGE.name, f"{key[0]} is no key", delete(auth.KEY_USAGE, key))


CHECKS = (
    Derived(API_KEY_IDS, API_KEYS, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]),
    Counter("api_keys", last_ordinal(API_KEYS)),
    _keys_open,
    _usage_of_nothing,
)

# --- the plugin -------------------------------------------------------------------------------------------------------

_USER_ID = "usr_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e"
_KEY_ID = "key_06a1kz0c9j3s5d7p9f1w3y5a7c9e2g4h"
_KEY_EXAMPLE = {
    "id": _KEY_ID,
    "name": "production",
    "prefix": "mem_sk_3fa0c81d52e7",
    "scopes": ["read", "write"],
    "created_at": "2026-05-08T13:56:00.000Z",
    "expires_at": None,
}
_SESSION_EXAMPLE = {
    "access_token": "eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ1c3JfMDZhMSJ9.c2lnbmF0dXJl",
    "token_type": "bearer",
    "expires_in": 2_592_000,
    "user_id": _USER_ID,
    "email": "ada@example.com",
    "full_name": "Ada Lovelace",
}
_CREDENTIALS_EXAMPLE = {"email": "ada@example.com", "password": "correct horse battery staple"}
_MINTED_EXAMPLE = {**_KEY_EXAMPLE, "key": "mem_sk_" + "3fa0c81d52e79b46" * 4}

OPERATIONS = (
    Operation(
        name="auth.register",
        method="POST",
        path="/v1/auth/register",
        kind=Kind.WRITE,
        handler=register,
        load=load_registration,
        prepare=hash_password,
        body=Registration,
        response=Session,
        statuses=(201,),
        scope="public",
        slot_of=lambda body: slot_of_email(body.email),
        rate="register",
        idempotency=Idempotency.CACHED,
        summary="Register an account",
        description="Makes an account and logs it in. The access token is usable at once. A taken e-mail address is 409.",
        spec="part 4, Authentication; part 5.4",
        example={**_CREDENTIALS_EXAMPLE, "full_name": "Ada Lovelace"},
        example_reply=_SESSION_EXAMPLE,
    ),
    Operation(
        name="auth.login",
        method="POST",
        path="/v1/auth/login",
        kind=Kind.READ,
        handler=login,
        load=load_login,
        prepare=verify_password,
        body=Login,
        response=Session,
        scope="public",
        slot_of=lambda body: slot_of_email(body.email),
        rate="login",
        summary="Log in",
        description="Trades the e-mail address and password for a new access token. A wrong one of either is 401.",
        spec="part 5.1",
        example=_CREDENTIALS_EXAMPLE,
        example_reply=_SESSION_EXAMPLE,
    ),
    Operation(
        name="auth.logout",
        method="POST",
        path="/v1/auth/logout",
        kind=Kind.WRITE,
        handler=logout,
        response=None,
        statuses=(204,),
        scope="write",
        idempotency=Idempotency.CACHED,
        summary="Log out",
        description="Revokes the access token of this request. Other tokens and API keys keep working; an API key cannot log out (400).",
        spec="part 5.5",
    ),
    Operation(
        name="auth.me",
        method="GET",
        path="/v1/auth/me",
        kind=Kind.READ,
        handler=me,
        response=Account,
        summary="Get the account of the credential",
        spec="part 5",
        example_reply={
            "user_id": _USER_ID,
            "email": "ada@example.com",
            "full_name": "Ada Lovelace",
            "tier": "free",
            "created_at": "2026-05-08T13:56:00.000Z",
        },
    ),
    Operation(
        name="auth.api_keys.create",
        method="POST",
        path="/v1/auth/api-keys",
        kind=Kind.WRITE,
        handler=create_api_key,
        body=NewApiKey,
        response=MintedApiKey,
        statuses=(201,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Mint an API key",
        description="The key's text is in this answer only. Its scopes are read and write unless others are named.",
        spec="part 4, Authentication; part 5.3",
        example={"name": "production", "scopes": ["read", "write"]},
        example_reply=_MINTED_EXAMPLE,
    ),
    Operation(
        name="auth.api_keys.list",
        method="GET",
        path="/v1/auth/api-keys",
        kind=Kind.READ,
        handler=list_api_keys,
        query=PageQuery,
        response=Page[ListedApiKey],
        fresh_usage=True,
        summary="List the API keys",
        description="Newest first, with what each was used for up to this request.",
        spec="part 4, rule P; part 5.3",
        example_reply={
            "items": [{**_KEY_EXAMPLE, "last_used_at": "2026-05-08T14:02:11.000Z", "usage": {"requests": 42, "credits": 17}}],
            "next_cursor": None,
            "has_more": False,
            "total_count": 1,
        },
    ),
    Operation(
        name="auth.api_keys.delete",
        method="DELETE",
        path="/v1/auth/api-keys/{id}",
        kind=Kind.WRITE,
        handler=delete_api_key,
        response=None,
        statuses=(204,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        summary="Delete an API key",
        description="The key is refused from the next request on.",
        spec="part 5.5, part 5.7",
    ),
    Operation(
        name="internal.keys.create",
        method="POST",
        path="/v1/internal/keys",
        kind=Kind.WRITE,
        handler=create_api_key_of,
        body=NewApiKeyOf,
        response=MintedApiKey,
        statuses=(201,),
        scope="admin",
        internal=True,
        slot_of=lambda body: slot_of_email(body.email),
        idempotency=Idempotency.CACHED,
        summary="Mint an API key for an account, as the operator",
        spec="part 1, internal routes",
        example={"email": "ada@example.com", "name": "operator", "scopes": ["read", "write", "admin"]},
        example_reply=_MINTED_EXAMPLE,
    ),
)

plugin = Plugin(name="accounts", operations=OPERATIONS, tables=(API_KEYS, API_KEY_IDS), erase=erase, export=export, checks=CHECKS)
