"""Who may register: anybody, whoever gets an invitation by mail, whoever the operator invited, or
nobody (`auth.registration`).

Where invitations are mailed, whoever asks for one is answered alike, whether the address has an
account or not; the mail says which. Such a ticket is stored nowhere, is good for its address alone,
and proves it. So a registration tells nobody who has an account but the holder of the address.

The operator makes an invitation, a ticket that registers one account. One that names an e-mail
address lies in the slot of that address, and the registration uses it up in its own transaction.
One that names none lies in slot 0, while the account that it makes may belong to another shard. So
before such a registration the gateway has the invitation claimed for the address
(`Write.before`): from then on it is good for that address alone, and the slot of the account
remembers that it was used. A registration that fails in between can be repeated.

    invitations  (ticket id,)  -> InvitationRow     of the slot
"""

from __future__ import annotations

from typing import Literal

import msgspec
from pydantic import Field

from plugins.accounts import limits, mail, tickets
from plugins.accounts.models import Email, InvitationText, NewEmail, Registration
from runtime.api import tenants
from runtime.api.operation import Body, Idempotency, View, Write
from runtime.api.slot_context import OperatorWriteContext, SlotReadContext, SlotWriteContext
from runtime.errors import BadRequest, Conflict, PermissionDenied
from runtime.settings import Settings
from runtime.tenancy import slot_of_email
from runtime.timestamps import iso
from storage.store import Table

PURPOSE = mail.INVITATION
CLAIM = "internal.invitations.claim"
INVITE, MAILED, CLOSED = "invite", "mailed", "closed"


class InvitationRow(msgspec.Struct):
    """email: keyed digest of the one address that it is good for; None until it has one. used: it
    made its account.
    """

    email: bytes | None
    used: bool = False


INVITATIONS: Table[InvitationRow] = Table(
    "invitations",
    key=("ticket_id",),
    row=InvitationRow,
    level="slot",
    doc="invitations to register, until they expire",
)


class NewInvitation(Body):
    email: Email | None = Field(
        default=None, description="The one address that may register with it; any, when absent."
    )
    expires_in_seconds: int = Field(
        default=7 * 24 * 3600,
        ge=60,
        le=limits.INVITATION_SECONDS_MAX,
        description="How long it is good for.",
    )


class Invitation(View):
    invitation: str = Field(description="What a registration sends. It is shown this once.")
    email: str | None = Field(description="The one address that may register with it; null: any.")
    expires_at: str = Field(description="Until when it is good (ISO 8601).")


class InvitationRequest(Body):
    email: NewEmail


class InvitationAsked(View):
    status: Literal["accepted"] = Field(
        description="A mail is on its way to the address, if it can be."
    )


class Claim(Body):
    invitation: InvitationText
    email: Email


class Claimed(View):
    claimed: bool = Field(description="Whether it is good for this address, and no other.")


def invite(ctx: OperatorWriteContext, body: NewInvitation) -> Invitation:
    tickets.sweep(ctx, INVITATIONS)
    if body.email is not None and tenants.by_email(ctx, body.email) is not None:
        raise Conflict("An account with this address exists already.", param="email")
    if ctx[INVITATIONS].count() >= limits.INVITATIONS_PER_SLOT_RECORDS_MAX:
        raise BadRequest("Too many invitations are open; wait until some of them have expired.")
    ticket_id = tickets.new_id(ctx, body.expires_in_seconds)
    digest = None if body.email is None else tenants.email_digest(ctx.secrets, body.email)
    ctx[INVITATIONS].put((ticket_id,), InvitationRow(digest))
    return Invitation(
        invitation=tickets.text_of(ctx, PURPOSE, ticket_id),
        email=body.email,
        expires_at=iso(tickets.expires_after(ctx, body.expires_in_seconds)),
    )


def ask_for_invitation(ctx: SlotWriteContext, body: InvitationRequest) -> InvitationAsked:
    """The same work for every address: whether it has an account the job finds out."""
    if ctx.settings.auth.registration in (INVITE, CLOSED):
        raise PermissionDenied(
            "This service mails no invitations. Ask its operator for one.", param="email"
        )
    mail.ask(ctx, mail.INVITATION, body.email)
    return InvitationAsked(status="accepted")


def to_claim(body: Registration, settings: Settings) -> Claim | None:
    """What has to be claimed before this registration: an invitation of another slot."""
    if settings.auth.registration != INVITE or body.invitation is None:
        return None
    if tickets.slot_of(body.invitation) == slot_of_email(body.email):
        return None
    return Claim(invitation=body.invitation, email=body.email)


def claim(ctx: OperatorWriteContext, body: Claim) -> Claimed:
    """Have the invitation be good for this address and no other."""
    digest = tenants.email_digest(ctx.secrets, body.email)
    ctx[INVITATIONS].put((_usable(ctx, body.invitation, digest),), InvitationRow(digest))
    return Claimed(claimed=True)


def check_may_register(ctx: SlotReadContext, body: Registration) -> None:
    """Refuse at once whom no slot would let register. Raises PermissionDenied."""
    mode = ctx.settings.auth.registration
    if mode == CLOSED:
        raise PermissionDenied("Registration is closed. Ask the operator of this service.")
    if mode == INVITE and not tickets.is_good(ctx, PURPOSE, body.invitation or ""):
        raise _not_invited()
    if mode == MAILED and not was_mailed(ctx, body):
        raise _not_mailed()


def was_mailed(ctx: SlotReadContext, body: Registration) -> bool:
    """Whether its invitation was mailed to the address of this registration, which proves it."""
    digest = tenants.email_digest(ctx.secrets, body.email)
    return tickets.is_good(ctx, PURPOSE, body.invitation or "", digest)


def use_up(ctx: SlotWriteContext, body: Registration) -> None:
    """Take the invitation of a registration, where one is needed. Raises PermissionDenied."""
    check_may_register(ctx, body)
    if body.invitation is None:
        return
    digest = tenants.email_digest(ctx.secrets, body.email)
    tickets.sweep(ctx, INVITATIONS)
    if was_mailed(ctx, body):
        mailed = tickets.id_of(body.invitation) or b""
        is_used = ctx[INVITATIONS].has(mailed)
        if is_used and tenants.by_email(ctx, body.email) is None:  # the account was erased
            raise _not_mailed()
        ctx[INVITATIONS].put((mailed,), InvitationRow(digest, used=True))
        return
    if ctx.settings.auth.registration != INVITE:
        return
    if tickets.slot_of(body.invitation) == ctx.scope.slot:
        ctx[INVITATIONS].delete(_usable(ctx, body.invitation, digest))
        return
    ticket_id = tickets.id_of(body.invitation)
    if ticket_id is None or not ctx.call.loaded or ctx[INVITATIONS].has(ticket_id):
        raise _not_invited()
    ctx[INVITATIONS].put((ticket_id,), InvitationRow(digest, used=True))


def _usable(ctx: SlotReadContext, invitation: str, digest: bytes) -> bytes:
    """The id of an invitation of this slot that is good for this address."""
    ticket_id = tickets.id_of(invitation)
    row = None if ticket_id is None else ctx[INVITATIONS].get(ticket_id)
    good = tickets.is_good(ctx, PURPOSE, invitation)
    if ticket_id is None or row is None or row.email not in (None, digest) or not good:
        raise _not_invited()
    return ticket_id


def _not_mailed() -> PermissionDenied:
    return PermissionDenied(
        "An account needs an invitation that was mailed to its e-mail address, was not used and "
        "has not expired. Ask for one with POST /v1/auth/invitation-request.",
        param="invitation",
    )


def _not_invited() -> PermissionDenied:
    return PermissionDenied(
        "An account needs an invitation that is good for its e-mail address, was not used and has "
        "not expired. Ask the operator of this service for one.",
        param="invitation",
    )


_INVITATION = tickets.PREFIX + "0b5f" + "3fa0c81d52e79b46" * 4

OPERATIONS = (
    Write(
        name="internal.invitations.create",
        method="POST",
        path="/v1/auth/invitations",
        handler=invite,
        body=NewInvitation,
        response=Invitation,
        statuses=(201,),
        scope="admin",
        internal=True,
        slot_of=lambda body: 0 if body.email is None else slot_of_email(body.email),
        idempotency=Idempotency.CACHED,
        summary="Invite somebody to register, as the operator",
        example={"email": "ada@example.com"},
        example_reply={
            "invitation": _INVITATION,
            "email": "ada@example.com",
            "expires_at": "2026-05-15T13:56:00.000Z",
        },
    ),
    Write(
        name="auth.invitation.request",
        method="POST",
        path="/v1/auth/invitation-request",
        handler=ask_for_invitation,
        body=InvitationRequest,
        response=InvitationAsked,
        statuses=(202,),
        scope="public",
        accounts=True,
        slot_of=lambda body: slot_of_email(body.email),
        rate="register",
        idempotency=Idempotency.CACHED,
        stability="beta",
        summary="Ask for an invitation to register",
        description=(
            "The address is sent what a registration takes as its `invitation` for a day, and "
            "needs where `auth.registration` is `mailed`; or, if it has an account, a ticket that "
            "sets a new password; at most five mails an hour. The answer is always the same. 403 "
            "where `auth.registration` is `invite` or `closed`."
        ),
        example={"email": "ada@example.com"},
        example_reply={"status": "accepted"},
    ),
    Write(
        name=CLAIM,
        method="POST",
        path="/v1/internal/invitations/claim",
        handler=claim,
        body=Claim,
        response=Claimed,
        scope="admin",
        internal=True,
        slot_of=lambda body: tickets.slot_of(body.invitation),
        idempotency=Idempotency.CACHED,
        summary="Have an invitation be good for one address alone",
        example={"invitation": _INVITATION, "email": "ada@example.com"},
        example_reply={"claimed": True},
    ),
)
