"""Sessions of an account: listed and ended by whoever holds one, and what a new password does to
them.

A session begins with a registration or a login and is a row from then on
(runtime/api/access_tokens.py). A new password ends every session but the one that changes it; API
keys go on, since programs hold them.
"""

from __future__ import annotations

from typing import Any

import argon2
from pydantic import Field

from plugins.accounts import limits
from plugins.accounts.passwords import (
    WrongCurrentPassword,
    check_new,
    check_other,
    fits,
    hasher_of,
    in_pool,
)
from runtime.api import access_tokens, tenants
from runtime.api.access_tokens import SESSION_PREFIX, SESSIONS, SessionRow
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import ACCESS_RATE, Body, Call, Idempotency, Read, Reply, View, Write
from runtime.api.pagination import Page, PageQuery, envelope, example_page, position
from runtime.errors import NotFound, PermissionDenied
from runtime.inference import Models
from runtime.timestamps import iso


class NewPassword(Body):
    current_password: str = Field(
        min_length=1,
        max_length=limits.PASSWORD_CHARS_MAX,
        repr=False,
        description="The password until now.",
    )
    new_password: str = Field(
        min_length=limits.PASSWORD_CHARS_MIN,
        max_length=limits.PASSWORD_CHARS_MAX,
        repr=False,
        description=(
            "The password from now on. Neither the e-mail address nor the old one, and none of "
            "those that are guessed first."
        ),
    )


class SessionsEnded(View):
    ended: int = Field(description="How many sessions ended.")


class ListedSession(View):
    id: str = Field(description="The session's id; end it under this.")
    agent: str = Field(description="The User-Agent that it was begun with.")
    address: str = Field(description="Where its last request came from.")
    created_at: str = Field(description="When it was begun (ISO 8601).")
    last_seen_at: str = Field(description="When its last request came (ISO 8601).")
    expires_at: str = Field(description="When it ends by itself (ISO 8601).")
    current: bool = Field(description="Whether it is the one that asks.")


def check_fresh(ctx: WriteContext) -> None:
    """Refuse a session whose login is too long ago for what is hard to undo; keys are never
    refused.
    """
    seconds, credential = ctx.settings.auth.fresh_login_seconds, ctx.call.credential
    if not seconds or credential is None or not ctx.principal.is_session:
        return
    if credential.claims["iat"] + seconds <= ctx.now // 1000:
        raise PermissionDenied(
            f"This needs a login of the last {seconds} seconds. Log in again with "
            "POST /v1/auth/login, and repeat it in that session.",
            details=[
                {
                    "loc": ["header", "Authorization"],
                    "msg": "Of a login that is too long ago.",
                    "type": "login_too_old",
                }
            ],
        )


# --- a new password -------------------------------------------------------------------------------


def load_password(ctx: ReadContext, body: NewPassword) -> tuple[argon2.PasswordHasher, str]:
    """(hasher, the stored hash). A new password that cannot be taken is refused before the slow
    part.
    """
    account = tenants.own_account(ctx)
    check_new(body.new_password, account.email)
    check_other(body.new_password, body.current_password)
    return hasher_of(ctx), account.password_hash


async def try_password(
    call: Call, loaded: tuple[argon2.PasswordHasher, str], models: Models
) -> tuple[str, str]:
    """(the hash that the current password fits, the new one's). Raises WrongCurrentPassword."""
    hasher, password_hash = loaded
    if not await in_pool(fits, hasher, password_hash, call.body.current_password):
        raise WrongCurrentPassword("The current password is wrong.", param="current_password")
    return password_hash, await in_pool(hasher.hash, call.body.new_password)


def change_password(ctx: WriteContext, body: NewPassword) -> SessionsEnded:
    fitted, new = ctx.prepared
    if tenants.own_account(ctx).password_hash != fitted:  # changed while the hashes were computed
        raise WrongCurrentPassword("The current password is wrong.", param="current_password")
    tenants.set_password(ctx, new)
    return SessionsEnded(ended=access_tokens.end_sessions(ctx))


# --- sessions -------------------------------------------------------------------------------------


def list_sessions(ctx: ReadContext, body: None) -> dict[str, Any]:
    limit, sessions = ctx.query.limit, ctx[SESSIONS]
    found = list(sessions.scan(before=position(ctx), reverse=True, limit=limit + 1))
    page = found[:limit]
    items = [_listed(ctx, session_id, row) for (session_id,), row in page]
    return envelope(ctx, items, page[-1][0] if len(found) > limit else None, sessions.count())


def _listed(ctx: ReadContext, session_id: str, row: SessionRow) -> ListedSession:
    current = ctx.principal.is_session and ctx.principal.credential_id == session_id
    return ListedSession(
        id=session_id,
        agent=row.agent,
        address=ctx.call.client if current else row.address,
        created_at=iso(row.created_at),
        last_seen_at=iso(ctx.now if current else row.seen_at),
        expires_at=iso(row.expires_at),
        current=current,
    )


def end_session(ctx: WriteContext, body: None) -> Reply:
    missing = NotFound("There is no session with this id; list yours with GET /v1/auth/sessions.")
    session_id = ctx.check_id(SESSION_PREFIX, ctx.path["id"], missing)
    if not ctx[SESSIONS].delete(session_id):
        raise missing
    return Reply(204)


def end_other_sessions(ctx: WriteContext, body: None) -> SessionsEnded:
    return SessionsEnded(ended=access_tokens.end_sessions(ctx))


def exported(ctx: ReadContext) -> list[dict[str, Any]]:
    """The sessions as an export has them: without what the export itself changes of them."""
    return [
        {
            "id": session_id,
            "agent": row.agent,
            "address": row.address,
            "created_at": iso(row.created_at),
            "expires_at": iso(row.expires_at),
        }
        for (session_id,), row in ctx[SESSIONS].scan()
    ]


# --- operations -----------------------------------------------------------------------------------

_EXAMPLE = {
    "id": "ses_06a1kz0d2k4t6e8q0g2x4z6b8d0f3h5j",
    "agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
    "address": "203.0.113.7",
    "created_at": "2026-05-08T13:56:00.000Z",
    "last_seen_at": "2026-05-08T14:02:11.000Z",
    "expires_at": "2026-06-07T13:56:00.000Z",
    "current": True,
}

OPERATIONS = (
    Write(
        name="auth.password",
        method="POST",
        path="/v1/auth/password",
        handler=change_password,
        load=load_password,
        prepare=try_password,
        guarded=True,
        body=NewPassword,
        response=SessionsEnded,
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="Change the password",
        description=(
            "Ends every session but the one that asks. API keys keep working; delete those that "
            "somebody else may have. A wrong current password is 403, and counts as a failed login."
        ),
        example={
            "current_password": "correct horse battery staple",
            "new_password": "four bronze lanterns hum",
        },
        example_reply={"ended": 2},
    ),
    Read(
        name="auth.sessions.list",
        method="GET",
        path="/v1/auth/sessions",
        handler=list_sessions,
        query=PageQuery,
        response=Page[ListedSession],
        scope="admin",
        fresh_usage=True,
        stability="beta",
        rate=ACCESS_RATE,
        summary="List the sessions",
        description=(
            "Those that registration and login began and that have not ended, the newest first. A "
            "token of a release before sessions were listed is not among them."
        ),
        example_reply=example_page(_EXAMPLE),
    ),
    Write(
        name="auth.sessions.delete",
        method="DELETE",
        path="/v1/auth/sessions/{id}",
        handler=end_session,
        response=None,
        statuses=(204,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="End a session",
        description="Its access token is refused from the next request on.",
    ),
    Write(
        name="auth.sessions.delete_others",
        method="DELETE",
        path="/v1/auth/sessions",
        handler=end_other_sessions,
        response=SessionsEnded,
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="End all other sessions",
        description=(
            "Every access token but the one that asks is refused from the next request on; asked "
            "with an API key, every one. API keys keep working."
        ),
        example_reply={"ended": 2},
    ),
)
