"""What a mail proves: whose an e-mail address is.

A forgotten password is set anew with a ticket that was mailed, and that proves the address, as does
the ticket that a registration mails where `auth.verify_email` is on, or that is asked for, and an
invitation that was mailed. An account whose address nobody has proved may have been made by
anybody: the operator mints no keys into it then, and the first reset takes it from whoever holds
it. Its keys, its sessions and its second factor go then, and what other plugins send from it to
others goes as they hear of ACCOUNT_TAKEN.
"""

from __future__ import annotations

from typing import Literal

import argon2
from pydantic import Field

from plugins.accounts import limits, mail, second_factor, tickets
from plugins.accounts.api_keys import delete_all_keys
from plugins.accounts.models import Email
from plugins.accounts.passwords import check_new, hasher_of, in_pool
from plugins.accounts.sessions import SessionsEnded
from plugins.accounts.verified import prove
from runtime.api import access_tokens, tenants
from runtime.api.operation import Body, Call, Event, Idempotency, View, Write
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.errors import PermissionDenied
from runtime.inference import Models
from runtime.tenancy import slot_of_email


class AccountTaken(View):
    """An account went to whoever proved to hold its address, from whoever held it before."""


ACCOUNT_TAKEN = Event("internal.account_taken", AccountTaken)


class ResetRequest(Body):
    email: Email


class ResetAsked(View):
    status: Literal["accepted"] = Field(
        description="If the address has an account, it is sent a ticket."
    )


class VerificationRequest(Body):
    email: Email


class VerificationAsked(View):
    status: Literal["accepted"] = Field(
        description="If the address has an account and is not proved, it is sent a ticket."
    )


class Reset(Body):
    token: str = Field(
        min_length=1,
        max_length=tickets.TEXT_CHARS_MAX,
        repr=False,
        description="The ticket that was mailed.",
    )
    new_password: str = Field(
        min_length=limits.PASSWORD_CHARS_MIN,
        max_length=limits.PASSWORD_CHARS_MAX,
        repr=False,
        description="The password from now on; none of those that are guessed first.",
    )


class VerifyEmail(Body):
    token: str = Field(
        min_length=1,
        max_length=tickets.TEXT_CHARS_MAX,
        repr=False,
        description="The ticket that was mailed.",
    )


class Verified(View):
    email: str = Field(description="The address that is proved.")
    email_verified: Literal[True] = Field(description="Always true.")


_ASKED_FOR = {
    mail.RESET: "/v1/auth/password-reset",
    mail.VERIFY: "/v1/auth/verify-email/request",
}

# --- whose ticket it is ---------------------------------------------------------------------------


def _holder(ctx: SlotReadContext, purpose: str, ticket: str) -> tenants.TenantRow:
    """The account that a ticket is of. Raises PermissionDenied."""
    account = ctx[tenants.TENANTS].get(tickets.about(ticket))
    if (
        account is None
        or account.closed_at is not None
        or not tickets.is_good(ctx, purpose, ticket, mail.state_of(purpose, account))
    ):
        raise _not_good(purpose)
    return account


def _not_good(purpose: str) -> PermissionDenied:
    return PermissionDenied(
        "This ticket is not good: it may be used, expired or mistyped. Ask for another with "
        f"POST {_ASKED_FOR[purpose]}.",
        param="token",
    )


# --- operations' functions ------------------------------------------------------------------------


def ask_for_reset(ctx: SlotWriteContext, body: ResetRequest) -> ResetAsked:
    """The same work for every address: whether it has an account the job finds out."""
    mail.ask(ctx, mail.RESET, body.email)
    return ResetAsked(status="accepted")


def load_reset(ctx: SlotReadContext, body: Reset) -> argon2.PasswordHasher:
    check_new(body.new_password, _holder(ctx, mail.RESET, body.token).email)
    return hasher_of(ctx)


async def hash_new(call: Call, hasher: argon2.PasswordHasher, models: Models) -> str:
    return await in_pool(hasher.hash, call.body.new_password)


def reset(ctx: SlotWriteContext, body: Reset) -> SessionsEnded:
    account = _holder(ctx, mail.RESET, body.token)
    of_account = ctx.within(*tenants.identity(ctx.scope.slot, account))
    if prove(of_account):
        delete_all_keys(of_account)
        second_factor.take_off(of_account)
        of_account.emit(ACCOUNT_TAKEN, {}, account.tenant_id)
    tenants.set_password(of_account, ctx.prepared)
    return SessionsEnded(ended=access_tokens.end_sessions(of_account))


def ask_for_verification(ctx: SlotWriteContext, body: VerificationRequest) -> VerificationAsked:
    """As a reset is asked for."""
    mail.ask(ctx, mail.VERIFY, body.email)
    return VerificationAsked(status="accepted")


def verify_email(ctx: SlotWriteContext, body: VerifyEmail) -> Verified:
    account = _holder(ctx, mail.VERIFY, body.token)
    if not prove(ctx.within(*tenants.identity(ctx.scope.slot, account))):
        raise _not_good(mail.VERIFY)
    return Verified(email=account.email, email_verified=True)


_TICKET = tickets.PREFIX + "0b5f" + "3fa0c81d52e79b46" * 4

OPERATIONS = (
    Write(
        name="auth.password_reset.request",
        method="POST",
        path="/v1/auth/password-reset",
        handler=ask_for_reset,
        body=ResetRequest,
        response=ResetAsked,
        statuses=(202,),
        scope="public",
        accounts=True,
        slot_of=lambda body: slot_of_email(body.email),
        rate="register",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Ask for a new password",
        description=(
            "If the address has an account, it is sent a ticket that sets a new password once, "
            "within an hour; at most five an hour. The answer is always the same."
        ),
        example={"email": "ada@example.com"},
        example_reply={"status": "accepted"},
    ),
    Write(
        name="auth.password_reset.confirm",
        method="POST",
        path="/v1/auth/password-reset/confirm",
        handler=reset,
        load=load_reset,
        prepare=hash_new,
        body=Reset,
        response=SessionsEnded,
        errors=(403,),
        scope="public",
        accounts=True,
        slot_of=lambda body: tickets.slot_of(body.token),
        rate="login",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Set a new password with a ticket",
        description=(
            "Ends every session and proves the e-mail address. API keys keep working, unless it "
            "is the first proof: until then they may be anybody's, and are deleted. A ticket that "
            "was used, has expired, or is older than the password is 403."
        ),
        example={"token": _TICKET, "new_password": "four bronze lanterns hum"},
        example_reply={"ended": 1},
    ),
    Write(
        name="auth.verification.request",
        method="POST",
        path="/v1/auth/verify-email/request",
        handler=ask_for_verification,
        body=VerificationRequest,
        response=VerificationAsked,
        statuses=(202,),
        scope="public",
        accounts=True,
        slot_of=lambda body: slot_of_email(body.email),
        rate="register",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Ask for a mail that confirms an address",
        description=(
            "If the address has an account and is not confirmed, it is sent another ticket for "
            "POST /v1/auth/verify-email, good for a day; at most five an hour. The answer is "
            "always the same."
        ),
        example={"email": "ada@example.com"},
        example_reply={"status": "accepted"},
    ),
    Write(
        name="auth.verify_email",
        method="POST",
        path="/v1/auth/verify-email",
        handler=verify_email,
        body=VerifyEmail,
        response=Verified,
        errors=(403,),
        scope="public",
        accounts=True,
        slot_of=lambda body: tickets.slot_of(body.token),
        rate="login",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Confirm an e-mail address with a ticket",
        description=(
            "With the ticket that a registration mails where `auth.verify_email` is on, or POST "
            "/v1/auth/verify-email/request. It works once; another proof is a new password (POST "
            "/v1/auth/password-reset)."
        ),
        example={"token": _TICKET},
        example_reply={"email": "ada@example.com", "email_verified": True},
    ),
)
