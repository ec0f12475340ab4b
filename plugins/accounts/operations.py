"""The endpoints of accounts and API keys: registration, login, logout, and who the caller is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import argon2

from plugins.accounts import mail
from plugins.accounts.api_keys import (
    API_KEY_IDS,
    API_KEYS,
    create_api_key,
    delete_api_key,
    list_api_keys,
    listed_key,
    mint,
)
from plugins.accounts.invitations import CLAIM, check_may_register, to_claim, use_up, was_mailed
from plugins.accounts.models import (
    Account,
    ListedApiKey,
    Login,
    MintedApiKey,
    NewApiKey,
    NewApiKeyOf,
    Registration,
    Session,
)
from plugins.accounts.passwords import WrongPassword, fits, hasher_of, in_pool
from plugins.accounts.second_factor import (
    SECOND_FACTOR,
    Cleared,
    LostSecondFactor,
    check_login,
    clear,
    is_on,
)
from plugins.accounts.sessions import exported
from plugins.accounts.verified import VERIFIED, is_verified, prove
from runtime import ids
from runtime.api import access_tokens, erasures, metering, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import ACCESS_RATE, Before, Call, Idempotency, Read, Reply, Write
from runtime.api.pagination import Page, PageQuery, example_page
from runtime.api.slot_context import OperatorWriteContext, SlotReadContext, SlotWriteContext
from runtime.api.tiers import credits_limit
from runtime.errors import (
    BadRequest,
    Conflict,
    NotFound,
    PermissionDenied,
)
from runtime.inference import Models
from runtime.tenancy import slot_of_email
from runtime.timestamps import iso
from storage.store import Table

CARRIED_OVER = (
    "account.carried_over"  # what credits are charged for that an erased account had used
)


def _refuse_taken(ctx: SlotReadContext, body: Registration) -> None:
    if tenants.by_email(ctx, body.email) is not None:
        bound = to_claim(body, ctx.settings) is not None
        raise Conflict(
            "An account with this e-mail address exists. Log in with POST /v1/auth/login."
            + (" The invitation is this address's now; ask for another for another." * bound),
            param="email",
        )


def load_registration(ctx: SlotReadContext, body: Registration) -> argon2.PasswordHasher:
    """The hasher to use. A taken address is refused after the slow part only, which whoever tries
    many addresses has to wait for.
    """
    check_may_register(ctx, body)
    return hasher_of(ctx)


async def hash_password(call: Call, hasher: argon2.PasswordHasher, models: Models) -> str:
    """The argon2id hash of the body's password, with its parameters and salt inside."""
    return await in_pool(hasher.hash, call.body.password)


def register(ctx: SlotWriteContext, body: Registration) -> Reply:
    use_up(ctx, body)
    _refuse_taken(ctx, body)
    # The account's own id carries a random tag: the tag of all its other ids derives from it.
    tenant_id = ids.make_id("usr", ctx.now, ctx.random(4), ctx.random(10))
    account = tenants.TenantRow(
        number=ctx.next_ordinal("tenants") + 1,  # 0 stands for the slot itself
        tenant_id=tenant_id,
        tag=ids.tenant_tag(ctx.secrets.service, tenant_id),
        key=ctx.random(32),
        email=body.email,
        full_name=body.full_name,
        password_hash=ctx.prepared,
        tier=ctx.registry.offer(ctx.settings).default_tier,
        created_at=ctx.now,
    )
    ctx.answer_for(tenants.scope_of(ctx.scope.slot, account))
    by_mail = was_mailed(ctx, body)
    if ctx.settings.auth.verify_email and mail.is_sent(ctx.settings) and not by_mail:
        mail.ask(ctx, mail.VERIFY, body.email)
    ctx[tenants.TENANTS].put((account.number,), account)
    ctx[tenants.EMAILS].put(
        (tenants.email_digest(ctx.secrets, body.email),), tenants.TenantNumber(account.number)
    )
    theirs = ctx.within(*tenants.identity(ctx.scope.slot, account))
    if by_mail:
        prove(theirs)
    if credits_limit(ctx.settings, account.tier) is not None:
        metering.charge(theirs, CARRIED_OVER, erasures.spent_before(ctx, body.email))
    return Reply(201, _begun(ctx, account), resource_id=tenant_id)


def load_login(ctx: SlotReadContext, body: Login) -> tuple[argon2.PasswordHasher, str | None]:
    """(hasher, the stored hash or None for an unknown address)."""
    account = tenants.by_email(ctx, body.email)
    return hasher_of(ctx), None if account is None else account.password_hash


async def verify_password(
    call: Call, loaded: tuple[argon2.PasswordHasher, str | None], models: Models
) -> str | None:
    """The stored hash, when the body's password fits it; else None."""
    hasher, password_hash = loaded
    return password_hash if await in_pool(fits, hasher, password_hash, call.body.password) else None


def login(ctx: SlotWriteContext, body: Login) -> Session:
    account = tenants.by_email(ctx, body.email)
    # The account is read again: it may have gone, or changed its password, while the hash was
    # computed.
    if account is None or ctx.prepared != account.password_hash:
        raise WrongPassword("The e-mail address or the password is wrong.")
    check_login(ctx.within(*tenants.identity(ctx.scope.slot, account)), body.code)
    return _begun(ctx, account)


def _begun(ctx: SlotWriteContext, account: tenants.TenantRow) -> Session:
    """A new session of the account."""
    token, expires_in = access_tokens.begin_session(
        ctx.within(*tenants.identity(ctx.scope.slot, account)),
        account,
        lifetime_seconds=ctx.settings.auth.token_seconds,
    )
    return Session(
        access_token=token,
        token_type="bearer",
        expires_in=expires_in,
        user_id=account.tenant_id,
        email=account.email,
        full_name=account.full_name,
    )


def create_api_key_of(ctx: OperatorWriteContext, body: NewApiKeyOf) -> Reply:
    """Mint a key as the operator, into an account whose holder is known to be who it says."""
    account = tenants.by_email(ctx, body.email)
    if account is None:
        raise NotFound(
            "There is no account with this e-mail address; register it first.", param="email"
        )
    principal, scope = tenants.identity(ctx.scope.slot, account, "operator")
    of_account = ctx.within(principal, scope)
    if ctx.settings.auth.verify_email and not is_verified(of_account):
        raise PermissionDenied(
            "Nobody has proved yet to be the holder of this e-mail address. Have the holder set a "
            "password with POST /v1/auth/password-reset.",
            param="email",
        )
    ctx.answer_for(scope)
    return mint(of_account, body.name, body.scopes, None)


def clear_second_factor(ctx: OperatorWriteContext, body: LostSecondFactor) -> Cleared:
    account = tenants.by_email(ctx, body.email)
    if account is None:
        raise NotFound("There is no account with this e-mail address.", param="email")
    return clear(ctx.within(*tenants.identity(ctx.scope.slot, account, "operator")))


def logout(ctx: WriteContext, body: None) -> Reply:
    credential = ctx.call.credential
    if credential is None or not ctx.principal.is_session:
        raise BadRequest(
            "An API key cannot log out; delete it with DELETE /v1/auth/api-keys/{id}.",
            param="Authorization",
        )
    access_tokens.end_session(ctx, credential.claims)
    return Reply(204)


def me(ctx: ReadContext, body: None) -> Account:
    account = tenants.own_account(ctx)
    return Account(
        user_id=account.tenant_id,
        email=account.email,
        full_name=account.full_name,
        tier=account.tier,
        created_at=iso(account.created_at),
        email_verified=is_verified(ctx),
        second_factor=is_on(ctx),
    )


_OF_KEYS: tuple[Table, ...] = (
    API_KEYS,
    API_KEY_IDS,
    tenants.KEY_USAGE,
    tenants.REVOKED_TOKENS,
    access_tokens.SESSIONS,
    VERIFIED,
    SECOND_FACTOR,
)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove the account and all that lets anyone in. Counts of rows by table."""
    keys = [row for _, row in ctx[API_KEYS].scan()]
    counts = {"credentials": sum(tenants.revoke(ctx, row.digest) for row in keys)}
    for table in _OF_KEYS:
        counts[table.name] = ctx[table].delete_prefix()
    counts["emails"] = int(tenants.close_account(ctx))
    counts["tenants"] = int(tenants.remove_account(ctx))
    return counts


def export(ctx: ReadContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """The account, its keys and its sessions, without password hash and digests: ("account" |
    "api_key" | "session", record).
    """
    yield "account", me(ctx, None).model_dump()
    for _, row in ctx[API_KEYS].scan():
        yield "api_key", listed_key(ctx, row).model_dump()
    for session in exported(ctx):
        yield "session", session


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
    Write(
        name="auth.register",
        method="POST",
        path="/v1/auth/register",
        handler=register,
        load=load_registration,
        prepare=hash_password,
        body=Registration,
        response=Session,
        statuses=(201,),
        scope="public",
        accounts=True,
        slot_of=lambda body: slot_of_email(body.email),
        rate="register",
        before=Before(CLAIM, to_claim),
        idempotency=Idempotency.CACHED,
        summary="Register an account",
        description=(
            "Makes an account and logs it in. The access token is usable at once. A taken e-mail "
            "address is 409. Where `auth.registration` is `invite`, it needs an `invitation` of "
            "the operator, where it is `mailed` one of POST /v1/auth/invitation-request, and where "
            "it is `closed`, nobody registers: 403."
        ),
        example={**_CREDENTIALS_EXAMPLE, "full_name": "Ada Lovelace"},
        example_reply=_SESSION_EXAMPLE,
    ),
    Write(
        name="auth.login",
        method="POST",
        path="/v1/auth/login",
        handler=login,
        load=load_login,
        prepare=verify_password,
        body=Login,
        response=Session,
        scope="public",
        accounts=True,
        slot_of=lambda body: slot_of_email(body.email),
        rate="login",
        guarded=True,
        summary="Log in",
        description=(
            "Trades the e-mail address and password for a new access token, and begins a session "
            "with it. A wrong one of either is 401, and after ten of them from one network (IPv6: "
            "/64) it is 429 for a while, which doubles up to a minute. Where the account has a "
            "second factor it is 401 with `totp_required` as the `type` in `details`, until a "
            "`code` comes along. A repeated request begins another session."
        ),
        example=_CREDENTIALS_EXAMPLE,
        example_reply=_SESSION_EXAMPLE,
    ),
    Write(
        name="auth.logout",
        method="POST",
        path="/v1/auth/logout",
        handler=logout,
        response=None,
        statuses=(204,),
        scope="write",
        idempotency=Idempotency.CACHED,
        rate=ACCESS_RATE,
        summary="Log out",
        description=(
            "Revokes the access token of this request. Other tokens and API keys keep working; an "
            "API key cannot log out (400)."
        ),
    ),
    Read(
        name="auth.me",
        method="GET",
        path="/v1/auth/me",
        handler=me,
        response=Account,
        rate=ACCESS_RATE,
        summary="Get the account of the credential",
        example_reply={
            "user_id": _USER_ID,
            "email": "ada@example.com",
            "full_name": "Ada Lovelace",
            "tier": "free",
            "created_at": "2026-05-08T13:56:00.000Z",
            "email_verified": True,
            "second_factor": False,
        },
    ),
    Write(
        name="auth.api_keys.create",
        method="POST",
        path="/v1/auth/api-keys",
        handler=create_api_key,
        body=NewApiKey,
        response=MintedApiKey,
        statuses=(201,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        rate=ACCESS_RATE,
        summary="Mint an API key",
        description=(
            "The key's text is in this answer only. Its scopes are read and write unless others "
            "are named."
        ),
        example={"name": "production", "scopes": ["read", "write"]},
        example_reply=_MINTED_EXAMPLE,
    ),
    Read(
        name="auth.api_keys.list",
        method="GET",
        path="/v1/auth/api-keys",
        handler=list_api_keys,
        query=PageQuery,
        response=Page[ListedApiKey],
        fresh_usage=True,
        rate=ACCESS_RATE,
        summary="List the API keys",
        description="Newest first, with what each was used for up to this request.",
        example_reply=example_page(
            {
                **_KEY_EXAMPLE,
                "last_used_at": "2026-05-08T14:02:11.000Z",
                "usage": {"requests": 42, "credits": 17},
            }
        ),
    ),
    Write(
        name="auth.api_keys.delete",
        method="DELETE",
        path="/v1/auth/api-keys/{id}",
        handler=delete_api_key,
        response=None,
        statuses=(204,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        rate=ACCESS_RATE,
        summary="Delete an API key",
        description="The key is refused from the next request on.",
    ),
    Write(
        name="internal.keys.create",
        method="POST",
        path="/v1/internal/keys",
        handler=create_api_key_of,
        body=NewApiKeyOf,
        response=MintedApiKey,
        statuses=(201,),
        scope="admin",
        internal=True,
        slot_of=lambda body: slot_of_email(body.email),
        idempotency=Idempotency.CACHED,
        summary="Mint an API key for an account, as the operator",
        example={
            "email": "ada@example.com",
            "name": "operator",
            "scopes": ["read", "write", "admin"],
        },
        example_reply=_MINTED_EXAMPLE,
    ),
    Write(
        name="internal.totp.clear",
        method="POST",
        path="/v1/internal/totp/clear",
        handler=clear_second_factor,
        body=LostSecondFactor,
        response=Cleared,
        scope="admin",
        internal=True,
        slot_of=lambda body: slot_of_email(body.email),
        idempotency=Idempotency.CACHED,
        summary="Turn an account's lost second factor off, as the operator",
        example={"email": "ada@example.com"},
        example_reply={"cleared": True, "sessions_ended": 2},
    ),
)
