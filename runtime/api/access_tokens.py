"""Access tokens of registration and login, and the sessions that they open.

A token is a JWT, HS256, signed with a key derived from the service secret. The `kid` header names
the derivation, so signing keys can change while old tokens run out.

A session is a row of its account, under the id that its token has as `jti`: the token is good for
as long as the row is there, so what deletes the row ends the session, from the next request on.

    sessions  (session id,)  -> SessionRow

A token of a release before sessions were rows has a `jti` that is no session's id. It is good until
it is logged out (`revoked_tokens`) or the account's `token_version` is raised, and gets a row where
it is to outlive that.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jwt
import msgspec

from runtime.api import tenants
from runtime.api.tenants import REVOKED_TOKENS, TenantRow
from runtime.errors import Unauthenticated
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, SESSIONS_PER_TENANT_MAX
from storage.store import Table

if TYPE_CHECKING:
    from runtime.api.context import WriteContext
    from runtime.installation import Secrets
    from storage.store import Reader, Scope

TOKEN_ISSUER = "mneme"
TOKEN_AUDIENCE = "mneme-api"
TOKEN_ALGORITHMS = ("HS256",)
TOKEN_CLAIMS = ("iss", "aud", "exp", "iat", "jti", "sub", "slot", "tn", "tv")
# Names of signing keys, newest first: the first signs, all verify. A leaked key is retired by
# putting a new name in front and dropping the old one, which changes neither API keys nor tenant
# tags.
TOKEN_KEY_IDS = ("1",)
SESSION_PREFIX = "ses"


class SessionRow(msgspec.Struct):
    """A session that may go on. Times in Unix milliseconds.

    seen_at, address  its last request, and where that came from
    agent             the User-Agent that it was begun with
    """

    created_at: int
    expires_at: int
    seen_at: int
    address: str
    agent: str


SESSIONS: Table[SessionRow] = Table(
    "sessions",
    key=("session_id",),
    row=SessionRow,
    doc="sessions of an account that have not ended",
)
TABLES = (SESSIONS,)


def issue_token(
    slot: int,
    account: TenantRow,
    secrets: Secrets,
    *,
    now_ms: int,
    lifetime_seconds: int,
    token_id: str,
) -> tuple[str, int]:
    """A new access token -> (token, seconds until it expires). `token_id` becomes its jti."""
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
        "jti": token_id,
    }
    key_id = TOKEN_KEY_IDS[0]
    return jwt.encode(
        claims, signing_key(secrets, key_id), TOKEN_ALGORITHMS[0], headers={"kid": key_id}
    ), lifetime_seconds


def revoke_token(ctx: WriteContext, claims: Mapping[str, Any]) -> None:
    """Log out the token with these claims, and forget a few of those that have expired anyway."""
    revoked = ctx[REVOKED_TOKENS]
    expired = list(revoked.keys(before=(ctx.now // 1000,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE))
    for key in expired:
        revoked.delete(*key)
    revoked.put((claims["exp"], claims["jti"]), b"")


def begin_session(
    ctx: WriteContext, account: TenantRow, *, lifetime_seconds: int
) -> tuple[str, int]:
    """Open a session of the context's account -> (its token, seconds until it expires). Where there
    are too many, the oldest ends.
    """
    sessions, session_id = ctx[SESSIONS], ctx.new_id(SESSION_PREFIX)
    for (other,), row in list(sessions.scan(limit=EXPIRED_ROWS_SWEPT_PER_WRITE)):
        if row.expires_at <= ctx.now:
            sessions.delete(other)
    surplus = sessions.count() - SESSIONS_PER_TENANT_MAX + 1
    for key in list(sessions.keys(limit=max(0, surplus))) if surplus > 0 else ():
        sessions.delete(*key)
    expires_at = ctx.now + lifetime_seconds * 1000
    row = SessionRow(ctx.now, expires_at, ctx.now, ctx.call.client, ctx.call.agent)
    sessions.put((session_id,), row)
    return issue_token(
        ctx.scope.slot,
        account,
        ctx._environment.secrets,
        now_ms=ctx.now,
        lifetime_seconds=lifetime_seconds,
        token_id=session_id,
    )


def is_open(reader: Reader, scope: Scope, account: TenantRow, claims: Mapping[str, Any]) -> bool:
    """Whether the session of a token with these claims goes on."""
    token_id = claims["jti"]
    if reader.bind(SESSIONS, scope).has(token_id):
        return True
    if token_id.startswith(SESSION_PREFIX + "_") or account.token_version != claims["tv"]:
        return False
    return not reader.bind(REVOKED_TOKENS, scope).has(claims["exp"], token_id)


def end_session(ctx: WriteContext, claims: Mapping[str, Any]) -> None:
    """Have the token with these claims open nothing any more."""
    if not ctx[SESSIONS].delete(claims["jti"]):
        revoke_token(ctx, claims)


def end_sessions(ctx: WriteContext) -> int:
    """End every session of the account but the one that asks, if one does; -> how many rows of
    sessions went. Tokens of an earlier release end too, and are not counted.
    """
    sessions, credential = ctx[SESSIONS], ctx.call.credential
    own = None if credential is None or not ctx.principal.is_session else credential.claims
    kept = None
    if own is not None:
        kept = sessions.get(own["jti"]) or SessionRow(
            own["iat"] * 1000, own["exp"] * 1000, ctx.now, ctx.call.client, ctx.call.agent
        )
        sessions.delete(own["jti"])
    ended = sessions.delete_prefix()
    if own is not None and kept is not None:
        sessions.put((own["jti"],), kept)
    tenants.raise_token_version(ctx)
    return ended


def saw_session(ctx: WriteContext, session_id: str, at: int, address: str) -> None:
    """Note the last request of a session, unless it has ended."""
    row = ctx[SESSIONS].get(session_id)
    if row is not None and at >= row.seen_at:
        seen = msgspec.structs.replace(row, seen_at=at, address=address)
        ctx[SESSIONS].put((session_id,), seen)


def signing_key(secrets: Secrets, key_id: str) -> bytes:
    """What tokens of this `kid` are signed with."""
    return signing_keys(secrets, key_id)[0]


def signing_keys(secrets: Secrets, key_id: str) -> tuple[bytes, ...]:
    """What tokens of this `kid` may be signed with: first what new ones are."""
    said = b"access-token:" + key_id.encode()
    return tuple(hmac.digest(secret, said, "sha256") for secret in secrets.services)


def invalid_credential() -> Unauthenticated:
    """What is raised for any credential that is not good, so that it tells nothing of why."""
    return Unauthenticated("This credential is not valid. It may be mistyped, revoked or expired.")
