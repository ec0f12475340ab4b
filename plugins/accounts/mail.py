"""Mails to the holders of accounts: asked for in a transaction, sent by a job of the slot.

Whoever asks learns nothing: what is asked for an address is the same work whether it has an account
or not. Only the job looks. So it is the job that makes the ticket, at the moment when it sends it,
and no ticket is stored. It tries again, later and later, when the server cannot be reached.

An address gets few mails an hour, and few may wait in a slot; what is asked beyond that is dropped.

    mail_counts  (hour, keyed digest of the address)  -> how many, 4 bytes big endian   of the slot
"""

from __future__ import annotations

import asyncio
import logging
import smtplib
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

from plugins.accounts import limits, tickets
from plugins.accounts.settings import MailSettings
from plugins.accounts.verified import is_verified
from runtime.api import jobs, tenants
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.errors import Unavailable, UpstreamFailed
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE
from runtime.settings import Settings
from runtime.timestamps import HOUR_MS
from storage.store import Table

log = logging.getLogger("mneme.mail")

JOB = "accounts.mail"
RESET, VERIFY, INVITATION = "reset", "verify", "invitation"
_GROUP = "mail"
_THREADS = ThreadPoolExecutor(limits.MAIL_THREADS_MAX, thread_name_prefix="mneme-mail")
_SUBJECTS = {
    RESET: "A new password for your account",
    VERIFY: "Confirm your e-mail address",
    INVITATION: "Your invitation",
}
_REASONS = {
    RESET: "Somebody, probably you, asked for a new password of your account.",
    VERIFY: "An account was made with your e-mail address. Confirm it if that was you.",
    INVITATION: "Somebody, probably you, asked for an invitation to register with your address.",
}
_UNLESS_YOU = {
    RESET: "the password stays as it is",
    VERIFY: "whoever made the account cannot prove the address without it",
    INVITATION: "no account is made without it",
}
_HAS_ACCOUNT = (
    "Somebody, probably you, asked for an invitation to register with your address, which has an "
    "account. Log in to it, or set a new password."
)
_PATHS = {
    RESET: "/v1/auth/password-reset/confirm",
    VERIFY: "/v1/auth/verify-email",
    INVITATION: "/v1/auth/register, as the `invitation`",
}
_LIFETIMES = {
    RESET: limits.RESET_SECONDS,
    VERIFY: limits.VERIFY_SECONDS,
    INVITATION: limits.VERIFY_SECONDS,
}
_PERMANENT = 500  # SMTP's replies from here on are final

MAIL_COUNTS: Table[bytes] = Table(
    "mail_counts",
    key=("hour", "email_hmac"),
    row=bytes,
    level="slot",
    doc="how many mails an address was to get in an hour, 4 bytes big endian",
)


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail that is to be sent. account: whom it is for, by an id that may be logged; reason: what
    it begins with."""

    settings: MailSettings
    purpose: str
    account: str
    address: str
    ticket: str
    reason: str


def is_sent(settings: Settings) -> bool:
    """Whether a ticket reaches anybody: by mail, or in the log of a service that is tried out."""
    return MailSettings.of(settings).host is not None or settings.environment != "production"


def ask(ctx: SlotWriteContext, purpose: str, email: str) -> None:
    """Have this address be sent a ticket, if an account is registered under it, or one is asked
    for. Raises Unavailable where the service sends no mail.
    """
    if not is_sent(ctx.settings):
        raise Unavailable(
            "This service sends no mail (mail.host is not set). Ask its operator for help.",
            retry_after_seconds=None,
        )
    counts, hour = ctx[MAIL_COUNTS], ctx.now // HOUR_MS
    for key in list(counts.keys(before=(hour,), limit=EXPIRED_ROWS_SWEPT_PER_WRITE)):
        counts.delete(*key)
    key = (hour, tenants.email_digest(ctx.secrets, email))
    count = int.from_bytes(counts.get(*key) or b"", "big")
    fields = ctx.index(jobs.JOB_FIELDS)
    waiting = fields.of("name", JOB) & fields.any_of("status", [jobs.QUEUED, jobs.PROCESSING])
    if count >= limits.MAILS_PER_ADDRESS_AND_HOUR_MESSAGES_MAX:
        return
    if len(waiting) >= limits.MAILS_WAITING_MESSAGES_MAX:
        log.warning("a mail was dropped: %d wait for the mail server", len(waiting))
        return
    counts.put(key, (count + 1).to_bytes(4, "big"))
    tenants.as_slot(ctx).enqueue(JOB, {"purpose": purpose, "email": email}, group=_GROUP)


def write(ctx: SlotReadContext, payload: Mapping[str, Any]) -> Letter | None:
    """What the job sends; None where there is nobody to send it to."""
    purpose, email = payload["purpose"], payload["email"]
    account = tenants.by_email(ctx, email)
    reason = _REASONS[purpose]
    if purpose == INVITATION:
        if account is None:
            return _invitation(ctx, email)
        purpose, reason = RESET, _HAS_ACCOUNT
    if account is None:
        return None
    of_account = ctx.within(*tenants.identity(ctx.scope.slot, account))
    if purpose == VERIFY and is_verified(of_account):
        return None  # it would prove nothing new
    ticket_id = tickets.id_about(ctx, _LIFETIMES[purpose], account.number)
    return Letter(
        MailSettings.of(ctx.settings),
        purpose,
        account.tenant_id,
        account.email,
        tickets.text_of(ctx, purpose, ticket_id, state_of(purpose, account)),
        reason,
    )


def _invitation(ctx: SlotReadContext, email: str) -> Letter:
    """To an address without an account."""
    ticket_id = tickets.id_about(ctx, _LIFETIMES[INVITATION], 0)
    digest = tenants.email_digest(ctx.secrets, email)
    return Letter(
        MailSettings.of(ctx.settings),
        INVITATION,
        "an address",
        email,
        tickets.text_of(ctx, INVITATION, ticket_id, digest),
        _REASONS[INVITATION],
    )


def state_of(purpose: str, account: tenants.TenantRow) -> bytes:
    """What the ticket dies with: a new password ends all that could set another."""
    return (account.password_hash if purpose == RESET else account.email).encode()


async def send(steps: Any, letter: Letter | None, payload: Any, models: Any) -> None:
    """Send it. Raises UpstreamFailed where the server may take it later."""
    if letter is None:
        return
    if letter.settings.host is None:
        log.warning(
            "mail.host is not set, so nobody gets this ticket (%s) of %s: %s",
            letter.purpose,
            letter.account,
            letter.ticket,
        )
        return
    try:
        await asyncio.get_running_loop().run_in_executor(_THREADS, _deliver, letter)
    except (OSError, smtplib.SMTPException, ValueError) as failed:
        kind = type(failed).__name__  # the rest of it may name the address
        if not _is_final(failed):
            raise UpstreamFailed(f"The mail server took no mail: {kind}.") from None
        log.warning("the mail server refuses a mail (%s) to %s: %s", letter.purpose,
                    letter.account, kind)  # fmt: skip


def sent(ctx: SlotWriteContext, payload: Any) -> dict[str, Any]:
    return {}


def _deliver(letter: Letter) -> None:
    settings, message = letter.settings, EmailMessage()
    message["From"], message["To"] = settings.sender, letter.address
    message["Subject"] = _SUBJECTS[letter.purpose]
    # Receivers take a mail without these for spam, or refuse it.
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=settings.sender.rpartition("@")[2].rstrip(">"))
    message.set_content(_text(letter))
    assert settings.host is not None
    given: dict[str, Any] = {"timeout": settings.timeout_seconds}
    if settings.security == "tls":
        given["context"] = ssl.create_default_context()
    connect = smtplib.SMTP_SSL if settings.security == "tls" else smtplib.SMTP
    with connect(settings.host, settings.port, **given) as server:
        if settings.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if settings.user is not None:
            password = settings.password
            server.login(settings.user, "" if password is None else password.get_secret_value())
        server.send_message(message, settings.sender, [letter.address])


def _text(letter: Letter) -> str:
    link = letter.settings.link
    if link is None:
        way = f"Send this ticket to {_PATHS[letter.purpose]}:\n\n{letter.ticket}"
    else:
        way = f"{link}#purpose={letter.purpose}&ticket={letter.ticket}"
    hours = _LIFETIMES[letter.purpose] // 3600
    lifetime = "an hour" if hours == 1 else f"{hours} hours"
    return (
        f"{letter.reason}\n\n{way}\n\nIt works once, for {lifetime}. If it was not "
        f"you, ignore this mail: {_UNLESS_YOU[letter.purpose]}.\n"
    )


def _is_final(failed: Exception) -> bool:
    """Whether the server would say the same again."""
    if isinstance(failed, smtplib.SMTPRecipientsRefused):
        return all(code >= _PERMANENT for code, _ in failed.recipients.values())
    if isinstance(failed, smtplib.SMTPAuthenticationError):
        return False  # until the operator has mended the settings
    if isinstance(failed, smtplib.SMTPResponseException):
        return failed.smtp_code >= _PERMANENT
    return isinstance(failed, (smtplib.SMTPNotSupportedError, ValueError))


MAIL_JOB = Job(
    JOB,
    sent,
    load=write,
    prepare=send,
    accounts=True,
    keep=False,
    retry=RetryStrategy(attempts=8, base_ms=5_000, max_ms=600_000, jitter=0.5),
)
