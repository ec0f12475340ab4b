"""What an Authorization header holds: an API key, an access token or the operator's token.

The gateway's step of authorisation: it refuses what no shard could accept, garbage, forgeries and
expired tokens, without a hop, and learns the slot. Whether the credential still opens anything the
shard that owns the slot says (runtime/shard/auth.py).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jwt

from runtime import ids
from runtime.api.access_tokens import (
    TOKEN_ALGORITHMS,
    TOKEN_AUDIENCE,
    TOKEN_CLAIMS,
    TOKEN_ISSUER,
    TOKEN_KEY_IDS,
    invalid_credential,
    signing_keys,
)
from runtime.api.operation import Credential
from runtime.errors import Unauthenticated
from runtime.limits import KEYS_READ_MAX, SLOTS, TOKENS_READ_MAX

if TYPE_CHECKING:
    from runtime.installation import Secrets
    from runtime.settings import Settings


def read_authorization(header: str | None, secrets: Secrets, now_ms: int) -> tuple[Credential, int]:
    """The Authorization header -> (credential, slot of its tenant; 0 for the operator, whose calls
    name their slot).

    Raises Unauthenticated: missing_api_key when there is no credential, invalid_api_key when it
    cannot be genuine.
    """
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if not token:
        if scheme and scheme.lower() not in ("bearer", "token"):
            raise invalid_credential()
        raise Unauthenticated(
            "Send a credential: `Authorization: Bearer <API key or access token>`.",
            code="missing_api_key",
        )
    if scheme.lower() not in ("bearer", "token") or not token.isascii():
        raise invalid_credential()
    known = (
        _read_key(secrets.services, secrets.peppers, token) if ids.is_key_shaped(token) else None
    )
    if known is not None:
        return known
    if is_operator(token, secrets):
        return Credential("operator"), 0
    claims = _read_token(token, secrets, now_ms)
    return Credential("jwt", claims=claims), claims["slot"]


def is_operator(token: str, secrets: Secrets) -> bool:
    """Whether this is a token of the operator's."""
    return any(
        [hmac.compare_digest(token.encode(), each.encode()) for each in secrets.operator_tokens]
    )


def check_watcher(header: str | None, settings: Settings, secrets: Secrets) -> None:
    """Refuse figures of the service to strangers, where the settings keep them from them: a token
    of their own opens them, or the operator's. Raises Unauthenticated.
    """
    wanted = settings.http.metrics_token
    if wanted is None and settings.environment != "production":
        return
    token = (header or "").strip().partition(" ")[2].strip().encode()
    given = [*secrets.operator_tokens] + ([wanted.get_secret_value()] if wanted is not None else [])
    if not any([hmac.compare_digest(token, one.encode()) for one in given]):
        raise Unauthenticated(
            "Send `Authorization: Bearer <http.metrics_token>`.", code="missing_api_key"
        )


# A client shows the same key again and again; whether it is still good the shard says.
@lru_cache(maxsize=KEYS_READ_MAX)
def _read_key(
    services: tuple[bytes, ...], peppers: tuple[bytes, ...], token: str
) -> tuple[Credential, int] | None:
    slots = (ids.api_key_slot(secret, token) for secret in services)
    slot = next((slot for slot in slots if slot is not None), None)
    if slot is None or slot >= SLOTS:
        return None
    digest, *earlier = (ids.api_key_digest(pepper, token) for pepper in peppers)
    return Credential("key", digest=digest, earlier=tuple(earlier)), slot


def _read_token(token: str, secrets: Secrets, now_ms: int) -> dict[str, Any]:
    try:
        claims = _signed(secrets, token)
    except jwt.PyJWTError:
        raise invalid_credential() from None
    if claims["exp"] * 1000 <= now_ms:
        raise Unauthenticated("This access token has expired. Log in again.")
    return claims.copy()


# What is signed stays so; whether it is still good the clock and the shard say.
@lru_cache(maxsize=TOKENS_READ_MAX)
def _signed(secrets: Secrets, token: str) -> dict[str, Any]:
    key_id = jwt.get_unverified_header(token).get("kid")
    if key_id not in TOKEN_KEY_IDS:
        raise invalid_credential()
    return _verified(token, signing_keys(secrets, key_id))


def _verified(token: str, keys: Sequence[bytes]) -> dict[str, Any]:
    """The claims of a token that one of the keys has signed."""
    for number, key in enumerate(keys, 1):
        try:
            return jwt.decode(
                token,
                key,
                algorithms=list(TOKEN_ALGORITHMS),
                issuer=TOKEN_ISSUER,
                audience=TOKEN_AUDIENCE,
                # The times are judged by the call's clock.
                options={"require": list(TOKEN_CLAIMS), "verify_exp": False, "verify_iat": False},
            )
        except jwt.InvalidSignatureError:
            if number == len(keys):
                raise
    raise invalid_credential()
