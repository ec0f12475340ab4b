"""The second factor of a login: a code that an authenticator app makes anew every 30 seconds (TOTP,
RFC 6238).

The secret is given out once, and counts from the moment when a code of it was confirmed. A code is
good in its own 30 seconds and in those before and after, and once: the step of the last one is
kept, and none up to it is taken again. Whoever loses the app has ten recovery codes, each of which
is good once; keyed digests of them are kept. Whoever has lost those as well asks the operator, who
clears the second factor. API keys need no code: programs hold them.

    second_factor  (name,)  -> SecondFactorRow     one row, under "totp"
"""

from __future__ import annotations

import base64
import hmac
import logging
from urllib.parse import quote

import msgspec
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from pydantic import Field

from plugins.accounts import limits
from plugins.accounts.models import Code, Email
from runtime.api import access_tokens, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import ACCESS_RATE, Body, Idempotency, Reply, View, Write
from runtime.errors import ApiError, Conflict, PermissionDenied, Unauthenticated
from storage.store import Table

log = logging.getLogger("mneme.accounts")

_NAME = "totp"
_WRONG = (
    "This code is wrong, expired or used. Take the next one of the app, and see that the clock of "
    "its device is right"
)
_REFUSAL = f"{_WRONG}, or send a recovery code."
_ISSUER = "Mneme"
_DIGITS, _STEP_SECONDS = 6, 30
_SECRET_BYTES, _RECOVERY_BYTES = 20, 10


class SecondFactorRow(msgspec.Struct):
    """last_step: of the newest code that was taken. recovery: keyed digests of the codes that are
    left.
    """

    secret: bytes
    confirmed: bool = False
    last_step: int = 0
    recovery: tuple[bytes, ...] = ()


SECOND_FACTOR: Table[SecondFactorRow] = Table(
    "second_factor",
    key=("name",),
    row=SecondFactorRow,
    doc="the secret of an account's authenticator app, and its recovery codes as keyed digests",
)


class CodeRequired(Unauthenticated):
    """The password was right, and a code is needed beside it."""

    def __init__(self) -> None:
        said = "Needed beside the password: of the authenticator app, or a recovery code."
        super().__init__(
            "This account has a second factor. Send the code of the authenticator app, or a "
            "recovery code, as `code`.",
            param="code",
            details=[{"loc": ["body", "code"], "msg": said, "type": "totp_required"}],
        )


class WrongLoginCode(Unauthenticated):
    guess = True


class WrongCode(PermissionDenied):
    guess = True


class CodeGiven(Body):
    code: Code


class LostSecondFactor(Body):
    email: Email


class Cleared(View):
    cleared: bool = Field(description="Whether the account had a second factor.")
    sessions_ended: int = Field(description="How many sessions ended.")


class Secret(View):
    secret: str = Field(description="The secret, base32. It is shown this once.")
    otpauth_uri: str = Field(
        description="The same for an authenticator app, as a QR code shows it."
    )


class Confirmed(View):
    recovery_codes: list[str] = Field(
        description="Each is good once in place of a code. They are shown this once."
    )


def is_on(ctx: ReadContext) -> bool:
    """Whether a login to the account needs a code."""
    row = ctx[SECOND_FACTOR].get(_NAME)
    return row is not None and row.confirmed


def check_login(ctx: WriteContext, code: str | None) -> None:
    """Take the code of a login whose password was right, where one is needed. Raises CodeRequired,
    WrongLoginCode.
    """
    if not is_on(ctx):
        return
    if code is None:
        raise CodeRequired
    _take(ctx, code, WrongLoginCode(_REFUSAL, param="code"))


def begin(ctx: WriteContext, body: None) -> Secret:
    if is_on(ctx):
        raise Conflict("This account has a second factor. End it with DELETE /v1/auth/totp first.")
    secret = ctx.random(_SECRET_BYTES)
    ctx[SECOND_FACTOR].put((_NAME,), SecondFactorRow(secret))
    shown, email = base64.b32encode(secret).decode(), tenants.own_account(ctx).email
    label = quote(f"{_ISSUER}:{email}", safe="")
    return Secret(
        secret=shown,
        otpauth_uri=f"otpauth://totp/{label}?secret={shown}&issuer={_ISSUER}",
    )


def confirm(ctx: WriteContext, body: CodeGiven) -> Confirmed:
    row = ctx[SECOND_FACTOR].get(_NAME)
    if row is None or row.confirmed:
        raise Conflict("There is no secret to confirm; ask for one with POST /v1/auth/totp.")
    step = _step_of(row, body.code, ctx.now)
    if step is None:
        raise WrongCode(f"{_WRONG}.", param="code")
    codes = [_recovery_code(ctx) for _ in range(limits.RECOVERY_CODES_TOKENS)]
    digests = tuple(_digest(ctx, code) for code in codes)
    on = SecondFactorRow(row.secret, confirmed=True, last_step=step, recovery=digests)
    ctx[SECOND_FACTOR].put((_NAME,), on)
    return Confirmed(recovery_codes=codes)


def end(ctx: WriteContext, body: CodeGiven) -> Reply:
    if is_on(ctx):
        _take(ctx, body.code, WrongCode(_REFUSAL, param="code"))
    ctx[SECOND_FACTOR].delete(_NAME)
    return Reply(204)


def take_off(ctx: WriteContext) -> None:
    """Turn it off, or forget the one that is being set up."""
    ctx[SECOND_FACTOR].delete(_NAME)


def clear(ctx: WriteContext) -> Cleared:
    """Turn a lost one off without a code, as the operator alone may, and end the account's
    sessions. The log says of which account.
    """
    if not is_on(ctx):
        return Cleared(cleared=False, sessions_ended=0)
    take_off(ctx)
    ended = access_tokens.end_sessions(ctx)
    account = tenants.own_account(ctx).tenant_id
    log.warning("the operator cleared the second factor of %s", account)
    return Cleared(cleared=True, sessions_ended=ended)


def _take(ctx: WriteContext, code: str, refused: ApiError) -> None:
    """Use a code up, of the app or for recovery, or raise what refuses it."""
    row = ctx[SECOND_FACTOR].row(_NAME)
    step = _step_of(row, code, ctx.now)
    if step is not None:
        taken = msgspec.structs.replace(row, last_step=step)
    else:
        digest = _digest(ctx, code)
        if digest not in row.recovery:
            raise refused
        left = tuple(other for other in row.recovery if other != digest)
        taken = msgspec.structs.replace(row, recovery=left)
    ctx[SECOND_FACTOR].put((_NAME,), taken)


def _step_of(row: SecondFactorRow, code: str, now_ms: int) -> int | None:
    """The step of a code that is good now and was not taken before."""
    totp, now = TOTP(row.secret, _DIGITS, SHA1(), _STEP_SECONDS), now_ms // 1000 // _STEP_SECONDS
    given = code.replace(" ", "").encode()
    for step in (now - 1, now, now + 1):
        if hmac.compare_digest(totp.generate(step * _STEP_SECONDS), given):
            return step if step > row.last_step else None
    return None


def _recovery_code(ctx: WriteContext) -> str:
    text = base64.b32encode(ctx.random(_RECOVERY_BYTES)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def _digest(ctx: ReadContext, code: str) -> bytes:
    return ctx.digest("recovery code", code.replace("-", "").replace(" ", "").lower())


_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"

OPERATIONS = (
    Write(
        name="auth.totp.create",
        method="POST",
        path="/v1/auth/totp",
        handler=begin,
        response=Secret,
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="Ask for the secret of a second factor",
        description=(
            "For an authenticator app (TOTP, SHA-1, 6 digits, 30 seconds). It counts once a code "
            "of it is confirmed; until then another call replaces it. 409 where there is one that "
            "counts."
        ),
        example_reply={
            "secret": _SECRET,
            "otpauth_uri": f"otpauth://totp/Mneme%3Aada%40example.com?secret={_SECRET}"
            "&issuer=Mneme",
        },
    ),
    Write(
        name="auth.totp.confirm",
        method="POST",
        path="/v1/auth/totp/confirm",
        handler=confirm,
        guarded=True,
        body=CodeGiven,
        response=Confirmed,
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="Turn the second factor on",
        description=(
            "From now on a login needs a `code`, or a recovery code; API keys and sessions go on. "
            "A wrong code is 403."
        ),
        example={"code": "123456"},
        example_reply={"recovery_codes": ["mfrg-gzdf-mztw-q2lk"]},
    ),
    Write(
        name="auth.totp.delete",
        method="DELETE",
        path="/v1/auth/totp",
        handler=end,
        guarded=True,
        body=CodeGiven,
        response=None,
        statuses=(204,),
        scope="admin",
        idempotency=Idempotency.CACHED,
        stability="beta",
        rate=ACCESS_RATE,
        summary="Turn the second factor off",
        description="With a code of the app or a recovery code. A wrong one is 403.",
        example={"code": "123456"},
    ),
)
