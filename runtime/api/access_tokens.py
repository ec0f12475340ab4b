"""Access tokens of registration and login: signed when they are issued, read when they come back.

A token is a JWT, HS256, signed with a key derived from the service secret. The `kid` header names
the derivation, so signing keys can change while old tokens run out.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

import jwt

from runtime.api.tenants import REVOKED_TOKENS, TenantRow
from runtime.errors import Unauthenticated
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE

if TYPE_CHECKING:
    from runtime.api.context import WriteContext
    from runtime.installation import Secrets

TOKEN_ISSUER = "mneme"
TOKEN_AUDIENCE = "mneme-api"
TOKEN_ALGORITHMS = ("HS256",)
TOKEN_CLAIMS = ("iss", "aud", "exp", "iat", "jti", "sub", "slot", "tn", "tv")
# Names of signing keys, newest first: the first signs, all verify. A leaked key is retired by
# putting a new name in front and dropping the old one, which changes neither API keys nor tenant
# tags.
TOKEN_KEY_IDS = ("1",)


def issue_token(
    slot: int,
    account: TenantRow,
    secrets: Secrets,
    *,
    now_ms: int,
    lifetime_seconds: int,
    random: bytes,
) -> tuple[str, int]:
    """A new access token -> (token, seconds until it expires). `random` (≥ 16 bytes) becomes its
    jti.
    """
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
    return jwt.encode(
        claims, signing_key(secrets, key_id), TOKEN_ALGORITHMS[0], headers={"kid": key_id}
    ), lifetime_seconds


def revoke_token(ctx: WriteContext, claims: dict[str, Any]) -> None:
    """Log out the token with these claims, and forget a few of those that have expired anyway."""
    revoked = ctx[REVOKED_TOKENS]
    expired = list(revoked.keys(before=(ctx.now // 1000,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE))
    for key in expired:
        revoked.delete(*key)
    revoked.put((claims["exp"], claims["jti"]), b"")


def signing_key(secrets: Secrets, key_id: str) -> bytes:
    """What tokens of this `kid` are signed with."""
    return hmac.digest(secrets.service, b"access-token:" + key_id.encode(), "sha256")


def invalid_credential() -> Unauthenticated:
    """What is raised for any credential that is not good, so that it tells nothing of why."""
    return Unauthenticated("This credential is not valid. It may be mistyped, revoked or expired.")
