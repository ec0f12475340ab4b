"""Every operation of the service as a method, for code that waits.

Written by generate.py from the service's OpenAPI document; change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, overload

from . import models
from .listing import Listing
from .request import (
    UNSET,
    FileContent,
    Request,
    Unset,
    Upload,
    changed,
    etag,
    given,
    keyed,
    segment,
)
from .streams import EventReader, LineReader, Stream
from .transport import Transport


class Account:
    """Operations named `account.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def erase(
        self, confirm: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Erased:
        """Erase the account and everything it holds.

        Needs `confirm=erase-account`, else 400. Every credential of the account is refused
        from now on, this one included; the e-mail address is free again. All stores are
        swept and the key that seals the account's rows is destroyed. Needs the scope
        `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.

        confirm  Must be `erase-account`.
        """
        request = Request(
            "DELETE",
            "/v1/account",
            query=given(confirm=confirm),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def erasure(self, receipt: str, *, timeout: float | None = None) -> models.Erasure:
        """Read the receipts of an erased account.

        With the text that its DELETE answered; no other credential is left.

        receipt  What the DELETE of the account answered.
        """
        request = Request(
            "POST",
            "/v1/account/receipts",
            body=given(receipt=receipt),
            repeatable=False,
            timeout=timeout,
        )
        return self._transport.json(request)

    def export(self, *, timeout: float | None = None) -> Stream[models.Record]:
        """Export everything the account holds.

        One JSON object a line, streamed. The last line is the manifest, with the count and
        SHA-256 of each kind's lines and this installation's signatures, of all and of each
        block of lines; without it the export is not whole. Secrets (password, keys) are not
        in it. Needs the scope `admin`.
        """
        request = Request(
            "GET", "/v1/account/export", accept="application/x-ndjson", timeout=timeout
        )
        return Stream(self._transport, request, LineReader)

    def export_part(
        self, *, cursor: str | None = None, timeout: float | None = None
    ) -> models.Part:
        """Export in parts.

        The same records, for a client that wants to go on where it was interrupted. Needs
        the scope `admin`.

        cursor  `next_cursor` of the part before.
        """
        request = Request(
            "GET", "/v1/account/export/parts", query=given(cursor=cursor), timeout=timeout
        )
        return self._transport.json(request)

    def import_(
        self,
        records: Sequence[models.SentRecord] | Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Imported:
        """Import an export.

        The lines themselves as application/x-ndjson, or as `records`. Contents, versions,
        times and order stay; ids get this account's tag. A manifest is checked first.
        Unless this installation has signed it for this account, the actors of all versions
        are marked with `imported:`, since nobody knows whether the history is so. It can be
        repeated: what is here already is left alone. A memory that was not here costs a
        credit. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for
        24 hours.

        records  Lines of an export, in order.
        """
        request = Request(
            "POST",
            "/v1/account/import",
            body=given(records=records),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def import_part(
        self,
        records: Sequence[models.SentRecord] | Sequence[Mapping[str, Any]],
        *,
        first: int | None = None,
        signature: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Imported:
        """Import a part, in one transaction.

        A memory that was not here costs a credit. Cut into blocks of `block_records` lines,
        each sent with its signature of the manifest's `blocks`, an export is verified as in
        one piece. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer
        for 24 hours.

        records    Records, in the export's order.
        first      The place of the first one in the whole import, which errors name.
        signature  Where the records are a block of an export of this account: its
                   signature, of the manifest's `blocks`. They are taken at their word.
        """
        request = Request(
            "POST",
            "/v1/account/import/parts",
            body=given(records=records, first=first, signature=signature),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def receipts(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.CleanupReceipt]:
        """List the cleanups after deletions, with a receipt for each store.

        Those of the last week. Needs the scope `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/account/receipts", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)


class AuthApiKeys:
    """Operations named `auth.api_keys.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        scopes: Sequence[Literal["read", "write", "admin"]] | None = None,
        expires_at: datetime | str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.MintedApiKey:
        """Mint an API key.

        The key's text is in this answer only. Its scopes are read and write unless others
        are named. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer
        for 24 hours.

        name        What the key is for, such as `production`.
        scopes      What the key may do. write implies read, admin implies both.
        expires_at  When the key stops working; never, when absent.
        """
        request = Request(
            "POST",
            "/v1/auth/api-keys",
            body=given(name=name, scopes=scopes, expires_at=expires_at),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> None:
        """Delete an API key.

        The key is refused from the next request on. Needs the scope `admin`. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "DELETE",
            f"/v1/auth/api-keys/{segment(id)}",
            key=keyed(idempotency_key),
            accept="*/*",
            timeout=timeout,
        )
        self._transport.nothing(request)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.ListedApiKey]:
        """List the API keys.

        Newest first, with what each was used for up to this request. Needs the scope
        `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/auth/api-keys", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)


class AuthInvitation:
    """Operations named `auth.invitation.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def request(
        self,
        email: str,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.InvitationAsked:
        """Ask for an invitation to register.

        The address is sent what a registration takes as its `invitation` for a day, and
        needs where `auth.registration` is `mailed`; or, if it has an account, a ticket that
        sets a new password; at most five mails an hour. The answer is always the same. 403
        where `auth.registration` is `invite` or `closed`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        email   E-mail address; white space around it and letter case do not count.
        prefer  `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/auth/invitation-request",
            body=given(email=email),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class AuthPasswordReset:
    """Operations named `auth.password_reset.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def confirm(
        self,
        *,
        token: str,
        new_password: str,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.SessionsEnded:
        """Set a new password with a ticket.

        Ends every session and proves the e-mail address. API keys keep working, unless it
        is the first proof: until then they may be anybody's, and are deleted. A ticket that
        was used, has expired, or is older than the password is 403. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        token         The ticket that was mailed.
        new_password  The password from now on; none of those that are guessed first.
        """
        request = Request(
            "POST",
            "/v1/auth/password-reset/confirm",
            body=given(token=token, new_password=new_password),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def request(
        self,
        email: str,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.ResetAsked:
        """Ask for a new password.

        If the address has an account, it is sent a ticket that sets a new password once,
        within an hour; at most five an hour. The answer is always the same. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        email   E-mail address; white space around it and letter case do not count.
        prefer  `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/auth/password-reset",
            body=given(email=email),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class AuthSessions:
    """Operations named `auth.sessions.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def delete(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> None:
        """End a session.

        Its access token is refused from the next request on. Needs the scope `admin`. A
        repeated Idempotency-Key repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "DELETE",
            f"/v1/auth/sessions/{segment(id)}",
            key=keyed(idempotency_key),
            accept="*/*",
            timeout=timeout,
        )
        self._transport.nothing(request)

    def delete_others(
        self, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.SessionsEnded:
        """End all other sessions.

        Every access token but the one that asks is refused from the next request on; asked
        with an API key, every one. API keys keep working. Needs the scope `admin`. A
        repeated Idempotency-Key repeats the answer for 24 hours.
        """
        request = Request(
            "DELETE", "/v1/auth/sessions", key=keyed(idempotency_key), timeout=timeout
        )
        return self._transport.json(request)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.ListedSession]:
        """List the sessions.

        Those that registration and login began and that have not ended, the newest first. A
        token of a release before sessions were listed is not among them. Needs the scope
        `admin`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/auth/sessions", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)


class AuthTotp:
    """Operations named `auth.totp.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def confirm(
        self, code: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Confirmed:
        """Turn the second factor on.

        From now on a login needs a `code`, or a recovery code; API keys and sessions go on.
        A wrong code is 403. Needs the scope `admin`. A repeated Idempotency-Key repeats the
        answer for 24 hours.

        code  A code of the authenticator app, or a recovery code.
        """
        request = Request(
            "POST",
            "/v1/auth/totp/confirm",
            body=given(code=code),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def create(
        self, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Secret:
        """Ask for the secret of a second factor.

        For an authenticator app (TOTP, SHA-1, 6 digits, 30 seconds). It counts once a code
        of it is confirmed; until then another call replaces it. 409 where there is one that
        counts. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for
        24 hours.
        """
        request = Request("POST", "/v1/auth/totp", key=keyed(idempotency_key), timeout=timeout)
        return self._transport.json(request)

    def delete(
        self, code: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> None:
        """Turn the second factor off.

        With a code of the app or a recovery code. A wrong one is 403. Needs the scope
        `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.

        code  A code of the authenticator app, or a recovery code.
        """
        request = Request(
            "DELETE",
            "/v1/auth/totp",
            body=given(code=code),
            key=keyed(idempotency_key),
            accept="*/*",
            timeout=timeout,
        )
        self._transport.nothing(request)


class AuthVerification:
    """Operations named `auth.verification.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def request(
        self,
        email: str,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.VerificationAsked:
        """Ask for a mail that confirms an address.

        If the address has an account and is not confirmed, it is sent another ticket for
        POST /v1/auth/verify-email, good for a day; at most five an hour. The answer is
        always the same. A repeated Idempotency-Key repeats the answer for 24 hours.

        email   E-mail address; white space around it and letter case do not count.
        prefer  `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/auth/verify-email/request",
            body=given(email=email),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class Auth:
    """Operations named `auth.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.api_keys = AuthApiKeys(transport)
        self.invitation = AuthInvitation(transport)
        self.password_reset = AuthPasswordReset(transport)
        self.sessions = AuthSessions(transport)
        self.totp = AuthTotp(transport)
        self.verification = AuthVerification(transport)

    def login(
        self, *, email: str, password: str, code: str | None = None, timeout: float | None = None
    ) -> models.Session:
        """Log in.

        Trades the e-mail address and password for a new access token, and begins a session
        with it. A wrong one of either is 401, and after ten of them from one network (IPv6:
        /64) it is 429 for a while, which doubles up to a minute. Where the account has a
        second factor it is 401 with `totp_required` as the `type` in `details`, until a
        `code` comes along. A repeated request begins another session.

        email     E-mail address; white space around it and letter case do not count.
        password  The password.
        code      Needed where the account has a second factor.
        """
        request = Request(
            "POST",
            "/v1/auth/login",
            body=given(email=email, password=password, code=code),
            repeatable=False,
            timeout=timeout,
        )
        return self._transport.json(request)

    def logout(self, *, idempotency_key: str | None = None, timeout: float | None = None) -> None:
        """Log out.

        Revokes the access token of this request. Other tokens and API keys keep working; an
        API key cannot log out (400). Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.
        """
        request = Request(
            "POST", "/v1/auth/logout", key=keyed(idempotency_key), accept="*/*", timeout=timeout
        )
        self._transport.nothing(request)

    def me(self, *, timeout: float | None = None) -> models.Account:
        """Get the account of the credential.

        Needs the scope `read`.
        """
        request = Request("GET", "/v1/auth/me", timeout=timeout)
        return self._transport.json(request)

    def password(
        self,
        *,
        current_password: str,
        new_password: str,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.SessionsEnded:
        """Change the password.

        Ends every session but the one that asks. API keys keep working; delete those that
        somebody else may have. A wrong current password is 403, and counts as a failed
        login. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for 24
        hours.

        current_password  The password until now.
        new_password      The password from now on. Neither the e-mail address nor the old
                          one, and none of those that are guessed first.
        """
        request = Request(
            "POST",
            "/v1/auth/password",
            body=given(current_password=current_password, new_password=new_password),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def register(
        self,
        *,
        email: str,
        password: str,
        full_name: str,
        invitation: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Session:
        """Register an account.

        Makes an account and logs it in. The access token is usable at once. A taken e-mail
        address is 409. Where `auth.registration` is `invite`, it needs an `invitation` of
        the operator, where it is `mailed` one of POST /v1/auth/invitation-request, and
        where it is `closed`, nobody registers: 403. A repeated Idempotency-Key repeats the
        answer for 24 hours.

        email       E-mail address; white space around it and letter case do not count.
        password    The password.
        full_name   The account holder's name.
        invitation  Needed where `auth.registration` is `invite` or `mailed`.
        """
        request = Request(
            "POST",
            "/v1/auth/register",
            body=given(email=email, password=password, full_name=full_name, invitation=invitation),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def verify_email(
        self, token: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Verified:
        """Confirm an e-mail address with a ticket.

        With the ticket that a registration mails where `auth.verify_email` is on, or POST
        /v1/auth/verify-email/request. It works once; another proof is a new password (POST
        /v1/auth/password-reset). A repeated Idempotency-Key repeats the answer for 24
        hours.

        token  The ticket that was mailed.
        """
        request = Request(
            "POST",
            "/v1/auth/verify-email",
            body=given(token=token),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class BillingInvoices:
    """Operations named `billing.invoices.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(self, id: str, *, timeout: float | None = None) -> models.Invoice:
        """Get an invoice.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/billing/invoices/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.Invoice]:
        """List invoices and credit notes.

        Needs the scope `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/billing/invoices", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)

    def page(self, id: str, *, timeout: float | None = None) -> str:
        """Get an invoice as a page to print.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request(
            "GET", f"/v1/billing/invoices/{segment(id)}/html", accept="*/*", timeout=timeout
        )
        return self._transport.text(request)


class Billing:
    """Operations named `billing.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.invoices = BillingInvoices(transport)

    def downgrade(
        self,
        tier: Literal["free", "starter", "pro", "scale", "enterprise"],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Subscription:
        """Downgrade the plan.

        When the month ends; until then nothing changes. The present tier cancels a
        downgrade that is pending. Needs the scope `admin`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        tier  The tier to change to.
        """
        request = Request(
            "POST",
            "/v1/billing/downgrade",
            body=given(tier=tier),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def subscription(self, *, timeout: float | None = None) -> models.Subscription:
        """Get the subscription.

        Needs the scope `read`.
        """
        request = Request("GET", "/v1/billing/subscription", timeout=timeout)
        return self._transport.json(request)

    def tiers(self, *, timeout: float | None = None) -> Listing[models.Tier]:
        """List the tiers.

        All of them, the lowest first, on one page.
        """
        request = Request("GET", "/v1/billing/tiers", timeout=timeout)
        return Listing(self._transport, request)

    def upgrade(
        self,
        tier: Literal["free", "starter", "pro", "scale", "enterprise"],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Upgraded:
        """Upgrade the plan.

        At once, or, where a payment provider collects, as soon as the invoice is paid. It
        charges the difference for the days left, today included. The upgrade cancels a
        pending downgrade; one that is not paid within the month is forgone. Needs the scope
        `admin`. A repeated Idempotency-Key repeats the answer for 24 hours.

        tier  The tier to change to.
        """
        request = Request(
            "POST",
            "/v1/billing/upgrade",
            body=given(tier=tier),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class Chat:
    """Operations named `chat.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def completions(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        collection_id: str | None = None,
        user: str | None = None,
        session_id: str | None = None,
        memory_limit: int | None = None,
        features: models.Features | None = None,
        store_conversation: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> models.ChatReply:
        """Chat completion with memory.

        OpenAI's request and response. What memory knows about the user's last message is
        put in front of the conversation, fenced and marked as untrusted data. With `stream:
        true` the answer is a stream of server-sent events, whose last chunk before usage
        has `memory`. Without a configured language model: 503. Needs the scope `read`. A
        repeated Idempotency-Key repeats the answer for 24 hours.

        messages            The conversation, as OpenAI has it.
        model               Goes upstream; absent or `mneme`: the configured one.
        collection_id       Remember from this collection only, and store into it.
        user                The end user; the user_id of what is remembered and stored.
        session_id          The session that a stored conversation belongs to.
        memory_limit        At most so many memories.
        features            What is put in.
        store_conversation  Store the user's last message and the answer, of each the first
                            100,000 characters. Needs the scope write.
        more                Further fields, which go along as they are.
        """
        request = Request(
            "POST",
            "/v1/chat/completions",
            body=given(
                model=model,
                messages=messages,
                collection_id=collection_id,
                user=user,
                session_id=session_id,
                memory_limit=memory_limit,
                features=features,
                store_conversation=store_conversation,
                **more,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def stream_completions(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        collection_id: str | None = None,
        user: str | None = None,
        session_id: str | None = None,
        memory_limit: int | None = None,
        features: models.Features | None = None,
        store_conversation: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> Stream[dict[str, Any]]:
        """Chat completion with memory, piece by piece as it is made.

        OpenAI's request and response. What memory knows about the user's last message is
        put in front of the conversation, fenced and marked as untrusted data. With `stream:
        true` the answer is a stream of server-sent events, whose last chunk before usage
        has `memory`. Without a configured language model: 503. Needs the scope `read`. A
        repeated Idempotency-Key repeats the answer for 24 hours.

        messages            The conversation, as OpenAI has it.
        model               Goes upstream; absent or `mneme`: the configured one.
        collection_id       Remember from this collection only, and store into it.
        user                The end user; the user_id of what is remembered and stored.
        session_id          The session that a stored conversation belongs to.
        memory_limit        At most so many memories.
        features            What is put in.
        store_conversation  Store the user's last message and the answer, of each the first
                            100,000 characters. Needs the scope write.
        more                Further fields, which go along as they are.
        """
        request = Request(
            "POST",
            "/v1/chat/completions",
            body=given(
                model=model,
                messages=messages,
                collection_id=collection_id,
                user=user,
                session_id=session_id,
                memory_limit=memory_limit,
                features=features,
                store_conversation=store_conversation,
                **more,
                stream=True,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return Stream(self._transport, request, EventReader)

    def models(self, *, timeout: float | None = None) -> models.AvailableModels:
        """List the models of chats.

        As OpenAI's clients ask for them: `mneme`, the configured one and what
        `chat.models_allowed` names. None without a configured language model. Needs the
        scope `read`.
        """
        request = Request("GET", "/v1/models", timeout=timeout)
        return self._transport.json(request)


class Collections:
    """Operations named `collections.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def bulk_delete(
        self,
        ids: Sequence[str],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.BulkDeletedOfCollections:
        """Delete collections by their ids.

        One transaction, with a result for each id. The default collection is `forbidden`.
        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        ids  Collections to delete.
        """
        request = Request(
            "POST",
            "/v1/collections/bulk-delete",
            body=given(ids=ids),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def create(
        self,
        name: str,
        *,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Collection:
        """Create a collection.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        name      Name; it need not be unique.
        metadata  Free JSON object, at most 16 KiB.
        """
        request = Request(
            "POST",
            "/v1/collections",
            body=given(name=name, description=description, metadata=metadata),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> models.DeletedCollection:
        """Delete a collection and everything in it.

        Nothing in it can be read from now on; what was derived from it is swept in the
        background. Again is 404. With If-Match, another version than the named one is 412.
        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        id        The id of the resource.
        if_match  The version the change is meant for; PreconditionFailed where it is
                  another.
        """
        request = Request(
            "DELETE",
            f"/v1/collections/{segment(id)}",
            key=keyed(idempotency_key),
            if_match=etag(if_match),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete_all(
        self, confirm: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.AllDeletedOfCollections:
        """Delete all collections and everything in them.

        Needs `confirm=delete-all-collections`, else 400. The default collection stays,
        emptied. Needs the scope `admin`. A repeated Idempotency-Key repeats the answer for
        24 hours.

        confirm  Must be `delete-all-collections`.
        """
        request = Request(
            "DELETE",
            "/v1/collections/all",
            query=given(confirm=confirm),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.Collection:
        """Get a collection.

        The ETag is its version. Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/collections/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def get_default(self, *, timeout: float | None = None) -> models.Collection:
        """Get the default collection.

        Every account has one; memories without a collection_id go there. Needs the scope
        `read`.
        """
        request = Request("GET", "/v1/collections/default", timeout=timeout)
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        name: str | None = None,
        name_prefix: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Collection]:
        """List collections.

        Newest first, the default collection included. Needs the scope `read`.

        limit        Items per page.
        cursor       `next_cursor` of the page before.
        name         Only collections of exactly this name.
        name_prefix  Only collections whose name starts with this.
        """
        request = Request(
            "GET",
            "/v1/collections",
            query=given(limit=limit, cursor=cursor, name=name, name_prefix=name_prefix),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def update(
        self,
        id: str,
        *,
        name: str | Unset = UNSET,
        description: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        idempotency_key: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> models.Collection:
        """Change a collection.

        Fields that are absent stay; null clears description and metadata; metadata is
        replaced whole. With If-Match, another version than the named one is 412. Needs the
        scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        id        The id of the resource.
        name      Name; it need not be unique.
        if_match  The version the change is meant for; PreconditionFailed where it is
                  another.
        """
        request = Request(
            "PATCH",
            f"/v1/collections/{segment(id)}",
            body=changed(name=name, description=description, metadata=metadata),
            key=keyed(idempotency_key),
            if_match=etag(if_match),
            timeout=timeout,
        )
        return self._transport.json(request)


class Confidence:
    """Operations named `confidence.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(
        self,
        query: str,
        *,
        policy_key: str | None = None,
        action_key: str | None = None,
        context: str | None = None,
        user_id: str | None = None,
        end_user_id: str | None = None,
        timeout: float | None = None,
    ) -> models.Confidence:
        """Whether to act or to ask.

        From how similar decisions went and what people have corrected. Advice only. Needs
        the scope `read`.

        query        What is to be done, in plain words.
        policy_key   Only decisions under this policy.
        action_key   Only decisions that took this action.
        context      JSON: what the decision depends on.
        user_id      Only this end user's decisions and corrections.
        end_user_id  Another name for user_id.
        """
        request = Request(
            "GET",
            "/v1/confidence",
            query=given(
                query=query,
                policy_key=policy_key,
                action_key=action_key,
                context=context,
                user_id=user_id,
                end_user_id=end_user_id,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)


class Corrections:
    """Operations named `corrections.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def create(
        self,
        *,
        corrected_content: str,
        correction_type: Literal["preference", "factual", "procedural"],
        original_content: str | None = None,
        context: str | None = None,
        memory_id: str | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        confidence: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Correction:
        """Put something right.

        Stores the corrected content as a memory; the memory it corrects is superseded in
        the same transaction. Needs the scope `write`. A repeated Idempotency-Key answers
        with the same resource for as long as it exists.

        corrected_content  What is right, 1 to 100,000 characters.
        correction_type    What kind of thing was wrong.
        original_content   What was wrong; the memory's text when absent.
        context            Where it came up.
        memory_id          The memory that is wrong; the correction supersedes it.
        collection_id      Where the correction goes.
        user_id            The caller's end user.
        agent_id           The agent that was corrected.
        confidence         How sure the correction is.
        metadata           Free JSON object, at most 16 KiB.
        prefer             `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/corrections",
            body=given(
                corrected_content=corrected_content,
                correction_type=correction_type,
                original_content=original_content,
                context=context,
                memory_id=memory_id,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                confidence=confidence,
                metadata=metadata,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.DeletedCorrection:
        """Delete a correction and its memory.

        What it had superseded is found again. Again is 404. Needs the scope `write`. A
        repeated Idempotency-Key repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "DELETE", f"/v1/corrections/{segment(id)}", key=keyed(idempotency_key), timeout=timeout
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.Correction:
        """Get a correction.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/corrections/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        correction_type: Literal["preference", "factual", "procedural"] | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Correction]:
        """List corrections.

        Needs the scope `read`.

        limit            Items per page.
        cursor           `next_cursor` of the page before.
        correction_type  Only this type.
        collection_id    Only this collection.
        user_id          Only this end user.
        agent_id         Only this agent.
        """
        request = Request(
            "GET",
            "/v1/corrections",
            query=given(
                limit=limit,
                cursor=cursor,
                correction_type=correction_type,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def relevant(
        self,
        query: str,
        *,
        correction_type: Literal["preference", "factual", "procedural"] | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> models.RelevantCorrections:
        """Corrections that matter for a task.

        Needs the scope `read`.

        query            The task, in plain words.
        correction_type  Only this type.
        collection_id    Only this collection.
        user_id          Only this end user.
        limit            At most so many.
        """
        request = Request(
            "GET",
            "/v1/corrections/relevant",
            query=given(
                query=query,
                correction_type=correction_type,
                collection_id=collection_id,
                user_id=user_id,
                limit=limit,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)


class Decisions:
    """Operations named `decisions.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(self, id: str, *, timeout: float | None = None) -> models.LoggedDecision:
        """Get a logged decision.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/decisions/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        decision_type: str | None = None,
        outcome: Literal["success", "failure", "partial"] | None = None,
        collection_id: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.LoggedDecision]:
        """List logged decisions.

        Needs the scope `read`.

        limit          Items per page.
        cursor         `next_cursor` of the page before.
        decision_type  Only this type.
        outcome        Only this outcome.
        collection_id  Only this collection.
        """
        request = Request(
            "GET",
            "/v1/decisions",
            query=given(
                limit=limit,
                cursor=cursor,
                decision_type=decision_type,
                outcome=outcome,
                collection_id=collection_id,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def log(
        self,
        *,
        decision_type: str,
        description: str,
        outcome: Literal["success", "failure", "partial"] | None = None,
        context: Mapping[str, Any] | None = None,
        collection_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.LoggedDecision:
        """Log a decision and its outcome.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        decision_type  What kind of decision it was.
        description    What was decided.
        outcome        How it went, where that is known.
        context        What the decision depends on; at most 16 KiB.
        collection_id  The collection it belongs to; none when absent.
        """
        request = Request(
            "POST",
            "/v1/decisions",
            body=given(
                decision_type=decision_type,
                description=description,
                outcome=outcome,
                context=context,
                collection_id=collection_id,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def similar(
        self,
        query: str,
        *,
        decision_type: str | None = None,
        collection_id: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> models.SimilarDecisions:
        """Past decisions like the one at hand.

        Needs the scope `read`.

        query          The decision at hand, in plain words.
        decision_type  Only this type.
        collection_id  Only this collection.
        limit          At most so many.
        """
        request = Request(
            "GET",
            "/v1/decisions/similar",
            query=given(
                query=query, decision_type=decision_type, collection_id=collection_id, limit=limit
            ),
            timeout=timeout,
        )
        return self._transport.json(request)


class Documents:
    """Operations named `documents.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def chunks(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Chunk]:
        """List the chunks of a document.

        In the order of the text. Needs the scope `read`.

        id      The id of the resource.
        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET",
            f"/v1/documents/{segment(id)}/chunks",
            query=given(limit=limit, cursor=cursor),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def content(self, id: str, *, timeout: float | None = None) -> bytes:
        """Get the file of a document.

        Byte for byte as it was uploaded. 404 once it was removed, as that of a document
        that failed is (`file_removed_at`). Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request(
            "GET", f"/v1/documents/{segment(id)}/content", accept="*/*", timeout=timeout
        )
        return self._transport.content(request)

    def delete(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.DeletedDocument:
        """Delete a document and the memories of its chunks.

        Neither can be read or found from now on; files and derived data are swept in the
        background. Again is 404. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "DELETE", f"/v1/documents/{segment(id)}", key=keyed(idempotency_key), timeout=timeout
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.Document:
        """Get a document.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/documents/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        collection_id: str | None = None,
        status: Literal["pending", "processing", "completed", "failed"] | None = None,
        sha256: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Document]:
        """List documents.

        Needs the scope `read`.

        limit          Items per page.
        cursor         `next_cursor` of the page before.
        collection_id  Only documents of this collection.
        status         Only documents in this state.
        sha256         Only documents with this content.
        """
        request = Request(
            "GET",
            "/v1/documents",
            query=given(
                limit=limit,
                cursor=cursor,
                collection_id=collection_id,
                status=status,
                sha256=sha256,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def text(self, id: str, *, timeout: float | None = None) -> str:
        """Get the extracted text of a document.

        The text that the offsets of chunks refer to, in UTF-8. Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/documents/{segment(id)}/text", accept="*/*", timeout=timeout)
        return self._transport.text(request)

    def upload(
        self,
        file: FileContent,
        *,
        collection_id: str | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        filename: str | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Uploaded:
        """Upload a document.

        PDF, DOCX, PPTX, XLSX, TXT, MD, HTML, CSV, JSON, EML, SRT, VTT, MP3, WAV, M4A, FLAC,
        OGG, MP4, WebM, MOV, PNG, JPEG, WebP, by content. 202: it is stored and will be
        read, or once more where it had failed or memories of its chunks were deleted. 200:
        the collection has it already. Of a document that is there, title, tags and metadata
        stay unless they are sent. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        file           A path, the content itself, or a binary stream.
        collection_id  The collection it belongs to; the default one when absent.
        title          A name; else the title that the file gives itself.
        tags           Labels, with commas between them, at most 32.
        metadata       Free JSON object, at most 16 KiB.
        filename       What it is called; by default the file's own name.
        prefer         `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/documents/upload",
            upload=Upload.of(
                file,
                filename,
                given(collection_id=collection_id, title=title, tags=tags, metadata=metadata),
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class Feedback:
    """Operations named `feedback.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def missing(
        self,
        *,
        query: str,
        expected_content: str,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.ReceivedOfFeedback:
        """Say what should have been found.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        query             What was searched for.
        expected_content  What should have been found.
        """
        request = Request(
            "POST",
            "/v1/feedback/missing",
            body=given(query=query, expected_content=expected_content),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def ranking(
        self,
        *,
        query: str,
        memory_id: str,
        actual_rank: int,
        expected_rank: int,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.ReceivedOfFeedback:
        """Say where a memory should have stood.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        query          What was searched for.
        memory_id      The memory's id.
        actual_rank    Where the memory stood, from 1.
        expected_rank  Where it should have stood, from 1.
        """
        request = Request(
            "POST",
            "/v1/feedback/ranking",
            body=given(
                query=query,
                memory_id=memory_id,
                actual_rank=actual_rank,
                expected_rank=expected_rank,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def relevance(
        self,
        *,
        query: str,
        memory_id: str,
        is_relevant: bool,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.ReceivedOfFeedback:
        """Say whether a memory answers a query.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        query        What was searched for.
        memory_id    The memory's id.
        is_relevant  Whether the memory answers the query.
        """
        request = Request(
            "POST",
            "/v1/feedback/relevance",
            body=given(query=query, memory_id=memory_id, is_relevant=is_relevant),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def stats(self, *, timeout: float | None = None) -> models.Stats:
        """What the feedback adds up to.

        Needs the scope `read`.
        """
        request = Request("GET", "/v1/feedback/stats", timeout=timeout)
        return self._transport.json(request)


class GraphEntities:
    """Operations named `graph.entities.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        type: str | None = None,
        aliases: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        collection_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.CreatedEntity:
        """Create an entity, or add to one.

        The same name and type again is 200: aliases and attributes are merged. Needs the
        scope `write`. Part of the feature `graph_write`, which not every tier has. A
        repeated Idempotency-Key repeats the answer for 24 hours.

        name           A name, as it is written.
        type           What it is, such as `person`; any entity of this name when absent.
        aliases        Further names.
        attributes     Free JSON object, at most 16 KiB.
        collection_id  The collection it belongs to; none when absent.
        """
        request = Request(
            "POST",
            "/v1/knowledge-graph/entities",
            body=given(
                name=name,
                type=type,
                aliases=aliases,
                attributes=attributes,
                collection_id=collection_id,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self, entity_name: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.DeletedOfGraph:
        """Delete an entity with its relationships.

        Again is 404. A name that several entities go by is 409, with their ids. The
        memories that mention it stay. Needs the scope `write`. Part of the feature
        `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the
        answer for 24 hours.

        entity_name  The entity name.
        """
        request = Request(
            "DELETE",
            f"/v1/knowledge-graph/entities/{segment(entity_name)}",
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def get(self, entity_name: str, *, timeout: float | None = None) -> models.EntityDetails:
        """Get an entity with its relationships and sources.

        By id, name or alias; names are compared without case. Needs the scope `read`.

        entity_name  The entity name.
        """
        request = Request(
            "GET", f"/v1/knowledge-graph/entities/{segment(entity_name)}", timeout=timeout
        )
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        entity_type: str | None = None,
        name_prefix: str | None = None,
        collection_id: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Entity]:
        """List entities.

        Newest first. Needs the scope `read`.

        limit          Items per page.
        cursor         `next_cursor` of the page before.
        entity_type    Only entities of this type.
        name_prefix    Only entities whose name starts with this.
        collection_id  Only entities of this collection.
        """
        request = Request(
            "GET",
            "/v1/knowledge-graph/entities",
            query=given(
                limit=limit,
                cursor=cursor,
                entity_type=entity_type,
                name_prefix=name_prefix,
                collection_id=collection_id,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def merge(
        self,
        entity_name: str,
        into: str,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.MergedEntity:
        """Merge an entity into another one.

        Two entries for the same thing become the one named `into`: it gets the names, the
        attributes where it has none of its own, the relationships with their ids and times,
        and the mentions; then the other one is gone, and its name means this one. A large
        entity is merged in several calls: again until `complete`. A name that several
        entities go by is 409, with their ids. Needs the scope `write`. Part of the feature
        `graph_write`, which not every tier has. A repeated Idempotency-Key repeats the
        answer for 24 hours.

        entity_name  The entity name.
        into         The entity that stays, by name, alias or id.
        """
        request = Request(
            "POST",
            f"/v1/knowledge-graph/entities/{segment(entity_name)}/merge",
            body=given(into=into),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class GraphRelationships:
    """Operations named `graph.relationships.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def create(
        self,
        *,
        source: str,
        target: str,
        type: str,
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        recorded_at: datetime | str | None = None,
        confidence: float | None = None,
        functional: bool | None = None,
        attributes: Mapping[str, Any] | None = None,
        source_memory_id: str | None = None,
        close_previous: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.CreatedRelationship:
        """Create a relationship between two entities.

        Names that do not exist are created. The same ends, type and valid_from again is
        200, attributes merged. Needs the scope `write`. Part of the feature `graph_write`,
        which not every tier has. A repeated Idempotency-Key repeats the answer for 24
        hours.

        source            A name, alias or id.
        target            A name, alias or id.
        type              The predicate, such as `works_at`.
        valid_from        Since when it holds; always when absent.
        valid_to          Until when, exclusive; open when absent.
        recorded_at       When we learned it; now when absent.
        confidence        How sure it is, 0 to 1.
        functional        Whether a subject has one such target at a time; known for common
                          predicates.
        attributes        Free JSON object, at most 16 KiB.
        source_memory_id  The memory that says so; the relationship goes when it is deleted.
        close_previous    End earlier claims of this subject and predicate where this one
                          begins, which is now when `valid_from` is absent; not where
                          `functional` is false. One that is over already, told again
                          without a beginning, begins anew.
        """
        request = Request(
            "POST",
            "/v1/knowledge-graph/relationships",
            body=given(
                source=source,
                target=target,
                type=type,
                valid_from=valid_from,
                valid_to=valid_to,
                recorded_at=recorded_at,
                confidence=confidence,
                functional=functional,
                attributes=attributes,
                source_memory_id=source_memory_id,
                close_previous=close_previous,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self,
        *,
        relationship_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.DeletedOfGraph:
        """Delete a relationship.

        Named in the body or in the query; on both clocks. Again is 404. Needs the scope
        `write`. Part of the feature `graph_write`, which not every tier has. A repeated
        Idempotency-Key repeats the answer for 24 hours.
        """
        request = Request(
            "DELETE",
            "/v1/knowledge-graph/relationships",
            query=given(relationship_id=relationship_id),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class Graph:
    """Operations named `graph.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.entities = GraphEntities(transport)
        self.relationships = GraphRelationships(transport)

    def contradictions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        entity: str | None = None,
        memory_id: str | None = None,
        collection_id: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Contradiction]:
        """List claims that contradict each other.

        Functional claims of one subject whose intervals overlap with different targets,
        with both sides' evidence. Needs the scope `read`. Part of the feature
        `graph_query`, which not every tier has.

        limit          Items per page.
        cursor         `next_cursor` of the page before.
        entity         Only contradictions about this entity.
        memory_id      Only those this memory takes part in.
        collection_id  Only those about entities of this collection.
        """
        request = Request(
            "GET",
            "/v1/knowledge-graph/contradictions",
            query=given(
                limit=limit,
                cursor=cursor,
                entity=entity,
                memory_id=memory_id,
                collection_id=collection_id,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def query(
        self,
        *,
        entity: str | None = None,
        relation_type: str | None = None,
        target: str | None = None,
        depth: int | None = None,
        valid_at: datetime | str | None = None,
        timestamp: datetime | str | None = None,
        known_at: datetime | str | None = None,
        between: Sequence[datetime | str] | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> models.GraphAnswer:
        """Ask what held at a time, as it was known at a time.

        More than two hops need the feature `graph_query`. Needs the scope `read`.

        entity         Where to start; all relationships that match when absent.
        relation_type  Only relationships of this type.
        target         Only relationships on a way to this entity.
        depth          How many hops from the entity.
        valid_at       What held then (of a date without a time, at the end of that day);
                       now when absent.
        timestamp      Another name for valid_at.
        known_at       As it was known then (of a date without a time, at the end of that
                       day); now when absent.
        between        What held at some time in [from, to), instead of valid_at.
        limit          At most so many.
        """
        request = Request(
            "POST",
            "/v1/knowledge-graph/query",
            body=given(
                entity=entity,
                relation_type=relation_type,
                target=target,
                depth=depth,
                valid_at=valid_at,
                timestamp=timestamp,
                known_at=known_at,
                between=between,
                limit=limit,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def stats(self, *, timeout: float | None = None) -> models.GraphStats:
        """Figures about the graph.

        Kept up with every change, never counted on demand. Needs the scope `read`.
        """
        request = Request("GET", "/v1/knowledge-graph/stats", timeout=timeout)
        return self._transport.json(request)

    def timeline(
        self,
        entity_name: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        relation_type: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Relationship]:
        """List an entity's relationships in time.

        Ascending by valid_from, those that always held first. Needs the scope `read`.

        entity_name    The entity name.
        limit          Items per page.
        cursor         `next_cursor` of the page before.
        relation_type  Only relationships of this type.
        """
        request = Request(
            "GET",
            f"/v1/knowledge-graph/timeline/{segment(entity_name)}",
            query=given(limit=limit, cursor=cursor, relation_type=relation_type),
            timeout=timeout,
        )
        return Listing(self._transport, request)


class Learning:
    """Operations named `learning.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def decide(
        self,
        *,
        policy_key: str,
        candidates: Sequence[models.Candidate] | Sequence[Mapping[str, Any]],
        context: Mapping[str, Any] | None = None,
        mode: Literal["auto", "observe", "recommend", "explore", "shadow"] | None = None,
        baseline_action_key: str | None = None,
        chosen_action_key: str | None = None,
        action_probability: float | None = None,
        behavior_probabilities: Mapping[str, float] | None = None,
        propensity_unknown: bool | None = None,
        exploration_rate: float | None = None,
        reward_range: Sequence[float] | None = None,
        metric_weights: Mapping[str, float] | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Decided:
        """Choose an action, or record one, with its propensity.

        The choice is drawn from the distribution in the receipt, so its probability is
        exact. Needs the scope `write`. A repeated Idempotency-Key answers with the same
        resource for as long as it exists.

        policy_key              Which policy the decision belongs to, such as
                                `support.refund`.
        candidates              The actions to choose from, each with a key of its own.
        context                 What the decision depends on; at most 16 KiB.
        mode                    auto: the service draws, from the baseline while there is
                                little evidence. explore: it draws from the evidence in any
                                case. recommend: it takes the best by the evidence. observe:
                                it records what you chose. shadow: you act by the baseline
                                (or by chosen_action_key), and it notes what it would have
                                recommended.
        baseline_action_key     The candidate to take without evidence.
        chosen_action_key       What you chose; for observe (required) and shadow.
        action_probability      How likely you were to choose it.
        behavior_probabilities  How likely you were to choose each candidate; they sum to 1.
        propensity_unknown      You cannot say how likely the choice was. It then proves
                                nothing.
        exploration_rate        Share of this choice that is drawn evenly. Default: the
                                setting; 0 for recommend.
        reward_range            Least and greatest reward there can be. Default: 0 to 1 for
                                success, −1 to 1 for reward.
        metric_weights          Metric → weight in the composite reward. Default: all the
                                same.
        collection_id           The collection it belongs to; none when absent.
        user_id                 The caller's end user.
        """
        request = Request(
            "POST",
            "/v1/learning/decisions",
            body=given(
                policy_key=policy_key,
                candidates=candidates,
                context=context,
                mode=mode,
                baseline_action_key=baseline_action_key,
                chosen_action_key=chosen_action_key,
                action_probability=action_probability,
                behavior_probabilities=behavior_probabilities,
                propensity_unknown=propensity_unknown,
                exploration_rate=exploration_rate,
                reward_range=reward_range,
                metric_weights=metric_weights,
                collection_id=collection_id,
                user_id=user_id,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def evaluate(
        self,
        key: str,
        *,
        target: Literal["recommended"] | models.TargetAction | None = None,
        baseline: models.TargetAction | str | None = None,
        margin: float | None = None,
        alpha: float | None = None,
        guardrails: Sequence[models.Guardrail] | Sequence[Mapping[str, Any]] | None = None,
        user_id: str | None = None,
        collection_id: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> models.Evaluation:
        """Whether the evidence for a policy suffices.

        The bounds are an anytime-valid confidence sequence: they hold however often you ask
        and whenever you stop. Needs the scope `read`.

        key            The key.
        target         Always this action; or what the evidence before each decision
                       recommended for it.
        baseline       Always this action; the policy as logged when absent.
        margin         By how much the target must be better.
        alpha          Chance of a false `sufficient`, however often it is asked.
        guardrails     What must not get worse.
        user_id        Only decisions of this end user.
        collection_id  Only decisions of this collection.
        limit          Newest decisions looked at.
        """
        request = Request(
            "POST",
            f"/v1/learning/policies/{segment(key)}/evaluate",
            body=given(
                target=target,
                baseline=baseline,
                margin=margin,
                alpha=alpha,
                guardrails=guardrails,
                user_id=user_id,
                collection_id=collection_id,
                limit=limit,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.DecisionEvidence:
        """Get a decision and its outcomes.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/learning/decisions/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def insights(
        self,
        key: str,
        *,
        action_key: Sequence[str] | None = None,
        context: str | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        timeout: float | None = None,
    ) -> models.Insights:
        """What a policy's decisions say of its actions.

        Posteriors and point estimates; they describe, and decide nothing. Needs the scope
        `read`.

        key            The key.
        action_key     Only these actions; repeatable.
        context        JSON: only decisions with these items.
        collection_id  Only decisions of this collection.
        user_id        Only decisions of this end user.
        """
        request = Request(
            "GET",
            f"/v1/learning/policies/{segment(key)}/insights",
            query=given(
                action_key=action_key, context=context, collection_id=collection_id, user_id=user_id
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def policies(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.Policy]:
        """List the policies decisions were made under.

        Newest first. A policy begins with its first decision. Needs the scope `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/learning/policies", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)

    def report(
        self,
        id: str,
        *,
        observations: Sequence[models.Observation] | Sequence[Mapping[str, Any]] | None = None,
        reward: float | None = None,
        success: bool | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.OutcomeRecorded:
        """Report a delayed, final or corrected outcome.

        Nothing is overwritten: of each metric the latest counts. A decision without outcome
        is censored, no failure. Needs the scope `write`. A repeated Idempotency-Key answers
        with the same resource for as long as it exists.

        id            The id of the resource.
        observations  Metric by metric.
        reward        One number, −1 to 1, or inside the decision's `reward_range`.
        success       Whether it went well.
        """
        request = Request(
            "POST",
            f"/v1/learning/decisions/{segment(id)}/outcomes",
            body=given(observations=observations, reward=reward, success=success),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class MemoriesJobs:
    """Operations named `memories.jobs.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(self, job_id: str, *, timeout: float | None = None) -> models.MemoryJob:
        """Poll an indexing or ingestion job.

        Needs the scope `read`.

        job_id  The job id.
        """
        request = Request("GET", f"/v1/memories/jobs/{segment(job_id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["queued", "processing", "completed", "failed"] | None = None,
        timeout: float | None = None,
    ) -> Listing[models.MemoryJob]:
        """List indexing and ingestion jobs.

        Needs the scope `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        status  Only jobs in this state.
        """
        request = Request(
            "GET",
            "/v1/memories/jobs",
            query=given(limit=limit, cursor=cursor, status=status),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def undo(
        self, job_id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Undone:
        """Take back what an ingestion job stored.

        Deletes the memories it created, but for those whose text was edited since; what the
        deleted ones had superseded holds again. Needs the scope `write`. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        job_id  The job id.
        """
        request = Request(
            "POST",
            f"/v1/memories/jobs/{segment(job_id)}/undo",
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class Memories:
    """Operations named `memories.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.jobs = MemoriesJobs(transport)

    def audit(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        similarity: float | None = None,
        stale_days: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> models.Audit:
        """Report duplicates, stale and unused memories.

        Of the newest memories of the scope. Changes nothing. Needs the scope `read`.

        collection_id  Only this collection.
        user_id        Only this end user.
        agent_id       Only this agent.
        run_id         Only this run.
        app_id         Only this application.
        session_id     Only this session.
        similarity     Cosine from which two memories are near duplicates.
        stale_days     Days after which a memory that was never used is stale.
        limit          At most so many groups, and so many stale memories.
        """
        request = Request(
            "GET",
            "/v1/memories/audit",
            query=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                similarity=similarity,
                stale_days=stale_days,
                limit=limit,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def bulk_delete(
        self,
        ids: Sequence[str],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.BulkDeletedOfMemoryViews:
        """Delete up to 500 memories by their ids.

        One transaction, with a result for each id. Needs the scope `write`. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        ids  Memories to delete.
        """
        request = Request(
            "POST",
            "/v1/memories/bulk-delete",
            body=given(ids=ids),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    @overload
    def create(  # type: ignore[overload-overlap]
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        source_type: str | None = None,
        source_reference: str | None = None,
        session_id: str | None = None,
        speaker: str | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        occurred_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        wait_for_index: bool | None = None,
        content: str,
        infer: Literal[False] | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.CreatedMemory: ...
    @overload
    def create(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        source_type: str | None = None,
        source_reference: str | None = None,
        session_id: str | None = None,
        speaker: str | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        occurred_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        wait_for_index: bool | None = None,
        content: str | None = None,
        messages: Sequence[models.Message] | Sequence[Mapping[str, Any]] | None = None,
        infer: bool | None = None,
        async_dispatch: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Created: ...
    def create(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        source_type: str | None = None,
        source_reference: str | None = None,
        session_id: str | None = None,
        speaker: str | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        occurred_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        wait_for_index: bool | None = None,
        content: str | None = None,
        messages: Sequence[models.Message] | Sequence[Mapping[str, Any]] | None = None,
        infer: bool | None = None,
        async_dispatch: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create a memory, or one for each message of a conversation.

        201: searches find it. 202: it is stored, and will be found when its job is done.
        Costs 1 credit per memory. With `infer`, what can be learned from it is stored
        instead (5 credits); `job_id` names the job. Needs the scope `write`. A repeated
        Idempotency-Key answers with the same resource for as long as it exists.

        collection_id     The collection it belongs to; the default one when absent.
        user_id           The caller's end user.
        agent_id          The agent that remembers.
        run_id            The run or conversation.
        app_id            The application.
        importance        How much it matters, 0 to 1.
        metadata          Free JSON object, at most 16 KiB.
        tags              Labels to filter by.
        source            Where it comes from, such as `slack`.
        source_type       What kind of source that is.
        source_reference  A reference into the source, such as a URL.
        session_id        The session it was said in; run_id when absent.
        speaker           Who said it.
        role              As what it was said in a chat with an assistant; a message's own
                          role.
        occurred_at       When what it tells happened; now when absent.
        expires_at        When it ceases to be readable; never when absent.
        wait_for_index    Wait up to 30 seconds for it to be searchable.
        content           The text to remember.
        messages          A conversation instead of a content: one memory per message.
        infer             Store what can be learned from the text instead of the text.
        async_dispatch    With infer: answer 202 at once and do it in the background.
        prefer            `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memories",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                importance=importance,
                metadata=metadata,
                title=title,
                tags=tags,
                source=source,
                source_type=source_type,
                source_reference=source_reference,
                session_id=session_id,
                speaker=speaker,
                role=role,
                occurred_at=occurred_at,
                expires_at=expires_at,
                wait_for_index=wait_for_index,
                content=content,
                messages=messages,
                infer=infer,
                async_dispatch=async_dispatch,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def create_batch(
        self,
        memories: Sequence[models.RawMemory] | Sequence[Mapping[str, Any]],
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.BatchCreated:
        """Create up to 100 memories.

        All accepted items commit in one transaction, with a result for each. Costs 1 credit
        per item. Needs the scope `write`. A repeated Idempotency-Key answers with the same
        resource for as long as it exists.

        memories        The memories, in order.
        collection_id   The collection it belongs to; the default one when absent.
        user_id         The caller's end user.
        agent_id        The agent that remembers.
        run_id          The run or conversation.
        app_id          The application.
        wait_for_index  Wait up to 30 seconds for all to be searchable.
        prefer          `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memories/batch",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                memories=memories,
                wait_for_index=wait_for_index,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def create_raw(
        self,
        content: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        source_type: str | None = None,
        source_reference: str | None = None,
        session_id: str | None = None,
        speaker: str | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        occurred_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Memory:
        """Create a memory from a text as it is.

        Needs the scope `write`. A repeated Idempotency-Key answers with the same resource
        for as long as it exists.

        content           The text to remember, 1 to 100,000 characters.
        collection_id     The collection it belongs to; the default one when absent.
        user_id           The caller's end user.
        agent_id          The agent that remembers.
        run_id            The run or conversation.
        app_id            The application.
        importance        How much it matters, 0 to 1.
        metadata          Free JSON object, at most 16 KiB.
        tags              Labels to filter by.
        source            Where it comes from, such as `slack`.
        source_type       What kind of source that is.
        source_reference  A reference into the source, such as a URL.
        session_id        The session it was said in; run_id when absent.
        speaker           Who said it.
        role              As what it was said in a chat with an assistant; a message's own
                          role.
        occurred_at       When what it tells happened; now when absent.
        expires_at        When it ceases to be readable; never when absent.
        wait_for_index    Wait up to 30 seconds for it to be searchable.
        prefer            `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memories/raw",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                importance=importance,
                metadata=metadata,
                title=title,
                tags=tags,
                source=source,
                source_type=source_type,
                source_reference=source_reference,
                session_id=session_id,
                speaker=speaker,
                role=role,
                occurred_at=occurred_at,
                expires_at=expires_at,
                wait_for_index=wait_for_index,
                content=content,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> models.DeletedOfMemoryViews:
        """Delete a memory.

        With its history and all that was derived from it. Again is 404. With If-Match,
        another version than the named one is 412. Needs the scope `write`. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        id        The id of the resource.
        if_match  The version the change is meant for; PreconditionFailed where it is
                  another.
        """
        request = Request(
            "DELETE",
            f"/v1/memories/{segment(id)}",
            key=keyed(idempotency_key),
            if_match=etag(if_match),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete_all(
        self,
        confirm: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.AllDeletedOfMemoryViews:
        """Delete all memories, or all that pass the filters.

        Needs `confirm=delete-all-memories`, else 400. None can be read from now on; the
        rest is swept later. Texts that still wait to be processed and pass the filters go,
        too: their jobs fail. Needs the scope `admin`. A repeated Idempotency-Key repeats
        the answer for 24 hours.

        confirm        Must be `delete-all-memories`.
        collection_id  Only this collection.
        user_id        Only this end user.
        agent_id       Only this agent.
        run_id         Only this run.
        app_id         Only this application.
        session_id     Only this session.
        """
        request = Request(
            "DELETE",
            "/v1/memories/all",
            query=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                confirm=confirm,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete_matching(
        self,
        filters: Mapping[str, Any],
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.AllDeletedOfMemoryViews:
        """Delete the memories that pass a filter.

        However many there are, in one transaction: none can be read from now on, and the
        rest is swept later. Superseded ones are deleted too. Takes conditions of equality
        and times. Needs the scope `write`. A repeated Idempotency-Key repeats the answer
        for 24 hours.

        filters        Conditions on fields, with AND, OR and NOT, as in a search; at least
                       one that does not hold for every memory.
        collection_id  The collection it belongs to; the default one when absent.
        user_id        The caller's end user.
        agent_id       The agent that remembers.
        run_id         The run or conversation.
        app_id         The application.
        session_id     Only this session.
        """
        request = Request(
            "POST",
            "/v1/memories/delete-matching",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.Memory:
        """Get a memory.

        The ETag is its version. Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/memories/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def history(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Version]:
        """List a memory's versions.

        Oldest first, the current one last. Needs the scope `read`.

        id      The id of the resource.
        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET",
            f"/v1/memories/{segment(id)}/history",
            query=given(limit=limit, cursor=cursor),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def import_(
        self,
        memories: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Stream[models.LineOutcome]:
        """Create memories by the thousand.

        The memories as application/x-ndjson, one a line, or as `memories`. The answer is
        application/x-ndjson, too, and comes while they are stored: an outcome for each
        line, in order, and a summary as the last. They are stored a hundred at a time. An
        answer without a summary was broken off, and one whose summary has an `error`
        stopped: with an Idempotency-Key it goes on when the same lines are sent again, and
        what is stored already is not stored, or charged, again. A body with a line that is
        no JSON object is refused as a whole. Costs 1 credit per memory. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        memories  The memories, each as in `POST /v1/memories/raw`.
        """
        request = Request(
            "POST",
            "/v1/memories/import",
            body=given(memories=memories),
            key=keyed(idempotency_key),
            accept="application/x-ndjson",
            timeout=timeout,
        )
        return Stream(self._transport, request, LineReader)

    def list(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tier: Literal["short_term", "long_term", "archived"] | None = None,
        tag: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        include_superseded: bool | None = None,
        scope: Literal["all"] | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Memory]:
        """List memories.

        Newest first, without superseded ones unless asked for. Needs the scope `read`.

        collection_id       Only this collection.
        user_id             Only this end user.
        agent_id            Only this agent.
        run_id              Only this run.
        app_id              Only this application.
        session_id          Only this session.
        limit               Items per page.
        cursor              `next_cursor` of the page before.
        tier                Only this tier.
        tag                 Only memories with this tag.
        created_after       Only memories created after this instant.
        created_before      Only memories created before this instant; of a date without a
                            time, before that day.
        include_superseded  Include memories that newer ones have superseded.
        scope               `all`: every collection, as when collection_id is absent.
        """
        request = Request(
            "GET",
            "/v1/memories",
            query=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                limit=limit,
                cursor=cursor,
                tier=tier,
                tag=tag,
                created_after=created_after,
                created_before=created_before,
                include_superseded=include_superseded,
                scope=scope,
            ),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def merge(
        self,
        *,
        keep: str,
        duplicates: Sequence[str],
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Merged:
        """Let one memory stand for its near duplicates.

        The duplicates are superseded by the one that is kept; restoring one of them undoes
        it. Ingestion merges by itself. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        keep        The memory's id.
        duplicates  Memories that say the same.
        """
        request = Request(
            "POST",
            "/v1/memories/merge",
            body=given(keep=keep, duplicates=duplicates),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def merged(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Memory]:
        """List the near duplicates that a memory stands for.

        Merged by ingestion or on request, by id; the history of each says when and why.
        Needs the scope `read`.

        id      The id of the resource.
        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET",
            f"/v1/memories/{segment(id)}/merged",
            query=given(limit=limit, cursor=cursor),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def process(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        content: str | None = None,
        messages: Sequence[models.Message] | Sequence[Mapping[str, Any]] | None = None,
        session_id: str | None = None,
        occurred_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        instructions: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Ingestion:
        """Extract memories from a text or a conversation.

        Facts are deduplicated and conflicts resolved; what is replaced is superseded, never
        lost. Answers 202 with the job; with `Prefer: wait=N` 200 with its result, if it is
        done within N seconds. Needs the scope `write`. A repeated Idempotency-Key answers
        with the same resource for as long as it exists.

        collection_id  The collection it belongs to; the default one when absent.
        user_id        The caller's end user.
        agent_id       The agent that remembers.
        run_id         The run or conversation.
        app_id         The application.
        content        A text, as one message of the user; required unless `messages` are
                       given.
        messages       A conversation.
        session_id     The session it was said in; run_id when absent.
        occurred_at    When it took place; now when absent. Relative times count from it.
        metadata       Free JSON object, at most 16 KiB.
        instructions   What a language model is to look for.
        dry_run        Say what would happen; store nothing.
        prefer         `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memories/process",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                content=content,
                messages=messages,
                session_id=session_id,
                occurred_at=occurred_at,
                metadata=metadata,
                instructions=instructions,
                dry_run=dry_run,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def query(
        self,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        include_superseded: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> models.MemoriesFound:
        """List memories that pass a filter.

        Newest first, from any offset on; the filter language of searches. What would read
        or compare too much is 422 and says what would narrow it. Needs the scope `read`.

        collection_id       The collection it belongs to; the default one when absent.
        user_id             The caller's end user.
        agent_id            The agent that remembers.
        run_id              The run or conversation.
        app_id              The application.
        session_id          Only this session.
        filters             Conditions on fields, with AND, OR and NOT, as in a search.
        include_superseded  Include memories that newer ones have superseded.
        limit               At most so many memories.
        offset              Skip so many.
        """
        request = Request(
            "POST",
            "/v1/memories/query",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                include_superseded=include_superseded,
                limit=limit,
                offset=offset,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def restore(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Memory:
        """Bring a superseded memory back.

        409 when it is not superseded. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "POST",
            f"/v1/memories/{segment(id)}/restore",
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def scopes(
        self,
        *,
        kind: Literal["user", "agent", "app", "run"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> models.ScopesFound:
        """List the users, agents, applications and runs that have memories.

        With how many memories each has. Needs the scope `read`.

        kind    Only this kind.
        limit   At most so many.
        offset  Skip so many.
        """
        request = Request(
            "GET",
            "/v1/memories/scopes",
            query=given(kind=kind, limit=limit, offset=offset),
            timeout=timeout,
        )
        return self._transport.json(request)

    def update(
        self,
        id: str,
        *,
        content: str | Unset = UNSET,
        importance: float | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        title: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset | None = UNSET,
        expires_at: datetime | str | Unset | None = UNSET,
        wait_for_index: bool | Unset | None = UNSET,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> models.Memory:
        """Change a memory.

        Absent fields stay, null clears. New content is indexed again; until then (202)
        neither old nor new text is found. With If-Match, another version than the named one
        is 412. Needs the scope `write`. A repeated Idempotency-Key repeats the answer for
        24 hours.

        id              The id of the resource.
        content         The text to remember, 1 to 100,000 characters.
        expires_at      When it ceases to be readable.
        wait_for_index  Wait up to 30 seconds for new content to be searchable.
        prefer          `respond-async`, or `wait=N` to wait up to N seconds for a job.
        if_match        The version the change is meant for; PreconditionFailed where it is
                        another.
        """
        request = Request(
            "PATCH",
            f"/v1/memories/{segment(id)}",
            body=changed(
                content=content,
                importance=importance,
                metadata=metadata,
                title=title,
                tags=tags,
                expires_at=expires_at,
                wait_for_index=wait_for_index,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            if_match=etag(if_match),
            timeout=timeout,
        )
        return self._transport.json(request)

    def values(
        self,
        field: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        include_superseded: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> models.ValuesFound:
        """List the distinct values of a field.

        With how many memories have each, among those that pass the filter. Tags and
        metadata are read from the memories; where that would read too much it is 422. Needs
        the scope `read`.

        field               Whose values: collection_id, user_id, agent_id, run_id, app_id,
                            session_id, speaker, role, tier, tags, source_type, source,
                            source_reference, title, conflict_status, kind, metadata.<path>.
        collection_id       The collection it belongs to; the default one when absent.
        user_id             The caller's end user.
        agent_id            The agent that remembers.
        run_id              The run or conversation.
        app_id              The application.
        session_id          Only this session.
        filters             Conditions on fields, with AND, OR and NOT, as in a search.
        include_superseded  Include memories that newer ones have superseded.
        limit               At most so many values.
        offset              Skip so many.
        """
        request = Request(
            "POST",
            "/v1/memories/values",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                include_superseded=include_superseded,
                field=field,
                limit=limit,
                offset=offset,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)


class MemoryFiles:
    """Operations named `memory_files.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def execute(
        self,
        command: Literal["view", "create", "str_replace", "insert", "delete", "rename"],
        *,
        path: str | None = None,
        view_range: Sequence[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
        old_path: str | None = None,
        new_path: str | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.MemoryOutput:
        """Carry out a command of an agent's memory tool.

        Six commands over a tree of files from `/memories` on; each file is a memory, so
        searches find it. `output`, or the message of an error, is what to tell the agent.
        Everything but `view` needs the scope `write`, and costs 1 credit. Needs the scope
        `read`. A repeated Idempotency-Key repeats the answer for 24 hours.

        command         What to do.
        path            A file or directory, from `/memories` on. All commands but `rename`
                        need it.
        view_range      `view`: first and last line to show, from 1; -1 is the file's end.
        file_text       `create`: the new file's text.
        old_str         `str_replace`: occurs exactly once.
        new_str         `str_replace`: stands in its place.
        insert_line     `insert`: the line to insert after; 0 is the file's beginning.
        insert_text     `insert`: the lines to insert.
        old_path        `rename`: what to move, with everything in it.
        new_path        `rename`: where to; there must be nothing yet.
        collection_id   The collection the tree is in; the default one when absent.
        user_id         The tree of this end user.
        agent_id        The tree of this agent.
        wait_for_index  Wait up to 30 seconds for a changed file to be searchable.
        prefer          `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memory-tool",
            body=given(
                command=command,
                path=path,
                view_range=view_range,
                file_text=file_text,
                old_str=old_str,
                new_str=new_str,
                insert_line=insert_line,
                insert_text=insert_text,
                old_path=old_path,
                new_path=new_path,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                wait_for_index=wait_for_index,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class MemoryTools:
    """Operations named `memory_tools.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def insert(
        self,
        content: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        source: str | None = None,
        source_type: str | None = None,
        source_reference: str | None = None,
        session_id: str | None = None,
        speaker: str | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        occurred_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Memory:
        """Remember a text.

        Needs the scope `write`. A repeated Idempotency-Key answers with the same resource
        for as long as it exists.

        content           The text to remember, 1 to 100,000 characters.
        collection_id     The collection it belongs to; the default one when absent.
        user_id           The caller's end user.
        agent_id          The agent that remembers.
        run_id            The run or conversation.
        app_id            The application.
        importance        How much it matters, 0 to 1.
        metadata          Free JSON object, at most 16 KiB.
        tags              Labels to filter by.
        source            Where it comes from, such as `slack`.
        source_type       What kind of source that is.
        source_reference  A reference into the source, such as a URL.
        session_id        The session it was said in; run_id when absent.
        speaker           Who said it.
        role              As what it was said in a chat with an assistant; a message's own
                          role.
        occurred_at       When what it tells happened; now when absent.
        expires_at        When it ceases to be readable; never when absent.
        wait_for_index    Wait up to 30 seconds for it to be searchable.
        prefer            `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memory-tools/insert",
            body=given(
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                importance=importance,
                metadata=metadata,
                title=title,
                tags=tags,
                source=source,
                source_type=source_type,
                source_reference=source_reference,
                session_id=session_id,
                speaker=speaker,
                role=role,
                occurred_at=occurred_at,
                expires_at=expires_at,
                wait_for_index=wait_for_index,
                content=content,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def replace(
        self,
        *,
        memory_id: str,
        old_content: str,
        new_content: str,
        collection_id: str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Memory:
        """Replace a memory's text, if it is still the one the agent knows.

        Compares old_content with the whole text; 409 when they differ. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        memory_id       The memory's id.
        old_content     The memory's whole text, as the agent knows it.
        new_content     The text to remember, 1 to 100,000 characters.
        collection_id   Where the memory must be.
        wait_for_index  Wait up to 30 seconds for it to be searchable.
        prefer          `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memory-tools/replace",
            body=given(
                memory_id=memory_id,
                collection_id=collection_id,
                wait_for_index=wait_for_index,
                old_content=old_content,
                new_content=new_content,
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def rethink(
        self,
        memory_id: str,
        *,
        collection_id: str | None = None,
        wait_for_index: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Memory:
        """Index a memory afresh.

        The text and the version stay; its terms, cues and vector are made again. Needs the
        scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        memory_id       The memory's id.
        collection_id   Where the memory must be.
        wait_for_index  Wait up to 30 seconds for it to be searchable.
        prefer          `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/memory-tools/rethink",
            body=given(
                memory_id=memory_id, collection_id=collection_id, wait_for_index=wait_for_index
            ),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class Profile:
    """Operations named `profile.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def delete(
        self,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.DeletedOfProfile:
        """Delete the profile of an end user.

        With its dialectic sessions. Memories stay; only those stored later feed a new
        profile. Again is 404. Needs the scope `write`. A repeated Idempotency-Key repeats
        the answer for 24 hours.

        user_id  The end user; absent: nobody in particular.
        """
        request = Request(
            "DELETE",
            "/v1/profile",
            query=given(user_id=user_id),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def dialectic(
        self,
        user_message: str,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        reasoning_level: Literal["minimal", "low", "medium", "high"] | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.DialecticReply:
        """Talk about an end user.

        Answers from the profile and the memories of the user, and keeps hypotheses about
        them from turn to turn, each with the memories that support it. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        user_message     What to talk about; also accepted as `message` or `question`.
        session_id       Ours, or any string; new when absent.
        user_id          The end user talked about.
        reasoning_level  How many memories are read and how much is thought about them.
        """
        request = Request(
            "POST",
            "/v1/profile/dialectic",
            body=given(
                user_message=user_message,
                session_id=session_id,
                user_id=user_id,
                reasoning_level=reasoning_level,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def get(self, *, user_id: str | None = None, timeout: float | None = None) -> models.Profile:
        """Get the profile of an end user.

        A user never seen has an empty one. Needs the scope `read`.

        user_id  The end user; absent: nobody in particular.
        """
        request = Request("GET", "/v1/profile", query=given(user_id=user_id), timeout=timeout)
        return self._transport.json(request)

    def update(
        self,
        *,
        user_id: str | None = None,
        name: str | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
        language: str | Unset | None = UNSET,
        bio: str | Unset | None = UNSET,
        static: Sequence[models.NewFact] | Sequence[Mapping[str, Any]] | Unset | None = UNSET,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Profile:
        """Set what is known of an end user.

        Absent fields stay, null clears. `static` replaces the facts set before. Needs the
        scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        user_id   The end user; absent: nobody in particular.
        name      What to call the user.
        timezone  IANA time zone.
        language  BCP 47 language tag.
        bio       A few sentences.
        static    Facts to hold as given.
        """
        request = Request(
            "PATCH",
            "/v1/profile",
            query=given(user_id=user_id),
            body=changed(name=name, timezone=timezone, language=language, bio=bio, static=static),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class RlJobs:
    """Operations named `rl.jobs.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(self, job_id: str, *, timeout: float | None = None) -> models.JobView:
        """Poll a training.

        Needs the scope `read`.

        job_id  The job id.
        """
        request = Request("GET", f"/v1/rl/jobs/{segment(job_id)}", timeout=timeout)
        return self._transport.json(request)


class Rl:
    """Operations named `rl.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.jobs = RlJobs(transport)

    def metrics(self, *, timeout: float | None = None) -> models.Metrics:
        """What trainings led to.

        Needs the scope `read`.
        """
        request = Request("GET", "/v1/rl/metrics", timeout=timeout)
        return self._transport.json(request)

    def rollback(
        self, version: int, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.Metrics:
        """Use an earlier version, or the defaults.

        Needs the scope `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        version  A promoted version, or 0 for the defaults.
        """
        request = Request(
            "POST",
            "/v1/rl/rollback",
            body=given(version=version),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def train(
        self,
        *,
        policy: Literal["ranking"] | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Accepted:
        """Learn ranking weights from feedback.

        A job. What it learns is used only when it ranks held-out queries better beyond
        doubt. Needs the scope `write`. Part of the feature `training`, which not every tier
        has. A repeated Idempotency-Key repeats the answer for 24 hours.

        policy  What to train: the ranking of searches.
        prefer  `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/rl/train",
            body=given(policy=policy),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class Search:
    """Operations named `search.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def advanced(
        self,
        query: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        reference_date: datetime | str | None = None,
        search_type: Literal["hybrid", "vector", "bm25", "graph"] | None = None,
        fast: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        threshold: float | None = None,
        min_score: float | None = None,
        token_budget: int | None = None,
        include_superseded: bool | None = None,
        include_low_confidence: bool | None = None,
        relevance: Literal["strict", "balanced", "all"] | None = None,
        explain: bool | None = None,
        debug: bool | None = None,
        view: Literal["compact", "full"] | None = None,
        date_range_start: datetime | str | None = None,
        date_range_end: datetime | str | None = None,
        boosts: models.Boosts | None = None,
        facets: Sequence[str] | None = None,
        rerank: bool | None = None,
        diversity: float | None = None,
        timeout: float | None = None,
    ) -> models.AdvancedReply:
        """Search with boosts, facets, date ranges, diversity and reranking.

        All that a search takes, and more. Boosts, a reranker and diversity change the order
        of what was found, not what is found; where one of them is asked for, `relevance` is
        `all` when absent. Facets count over all of it. Needs the scope `read`.

        query                   What to look for, in plain words.
        collection_id           Search this collection only.
        user_id                 Only memories of this end user.
        agent_id                Only memories of this agent.
        run_id                  Only memories of this run.
        app_id                  Only memories of this application.
        session_id              Only memories of this session.
        filters                 Conditions on fields, with AND, OR and NOT.
        as_of                   Search what was known at this instant (of a date without a
                                time, at the end of that day): memories stored by then,
                                superseded ones too when that happened later. They are
                                searched with the content they have now.
        reference_date          What yesterday, last week and the like count from; as_of or
                                else now when absent.
        search_type             Which channels propose candidates.
        fast                    Leave out late interaction, which compares word by word:
                                sooner, and less exact.
        limit                   At most so many results.
        offset                  Skip so many results.
        threshold               Leave out results whose normalized_score is lower.
        min_score               Another name for threshold; of two, the higher one counts.
        token_budget            Keep of the page's results, best first, those whose contents
                                fit into so many tokens together; one that does not fit is
                                left out. A token is estimated as four ASCII characters, or
                                one other.
        include_superseded      Also search memories that a newer one replaced.
        include_low_confidence  Also return weak results, flagged, instead of no_match.
        relevance               How far below the best result others may stand: strict keeps
                                few and surer ones, balanced more, and more yet where
                                several things are asked for, all every one that stands;
                                balanced, unless the installation says otherwise, when
                                absent from a hybrid search, else all.
                                include_low_confidence counts as all.
        explain                 Say what each feature contributed to each score.
        debug                   Another name for explain.
        view                    compact leaves out metadata, tags, highlights and
                                explanations.
        date_range_start        Only what happened at this instant or later (occurred_at).
        date_range_end          Only what happened at this instant or earlier (occurred_at);
                                of a date without a time, on that day too.
        boosts                  What counts for more, or less, in the order of results.
        facets                  Fields whose values are counted over all results:
                                collection_id, user_id, agent_id, run_id, app_id,
                                session_id, speaker, role, tier, tags, source_type, source,
                                source_reference, title, conflict_status, kind,
                                metadata.<path>.
        rerank                  Let the configured reranker order the first results.
        diversity               0 orders by relevance alone, 1 by how little a result
                                repeats those before it.
        """
        request = Request(
            "POST",
            "/v1/search/advanced",
            body=given(
                query=query,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                as_of=as_of,
                reference_date=reference_date,
                search_type=search_type,
                fast=fast,
                limit=limit,
                offset=offset,
                threshold=threshold,
                min_score=min_score,
                token_budget=token_budget,
                include_superseded=include_superseded,
                include_low_confidence=include_low_confidence,
                relevance=relevance,
                explain=explain,
                debug=debug,
                view=view,
                date_range_start=date_range_start,
                date_range_end=date_range_end,
                boosts=boosts,
                facets=facets,
                rerank=rerank,
                diversity=diversity,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def context(
        self,
        query: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        reference_date: datetime | str | None = None,
        token_budget: int | None = None,
        style: Literal["markdown", "xml", "json"] | None = None,
        timeout: float | None = None,
    ) -> models.ContextReply:
        """What is known of a question, for a prompt.

        The memories that answer it as one block that fits a budget of tokens: notes before
        conversations, these in the order of time, what says the same once, with the days
        that relative times mean and a marker to cite each memory by. Needs the scope
        `read`.

        query           What to look for, in plain words.
        collection_id   Search this collection only.
        user_id         Only memories of this end user.
        agent_id        Only memories of this agent.
        run_id          Only memories of this run.
        app_id          Only memories of this application.
        session_id      Only memories of this session.
        filters         Conditions on fields, with AND, OR and NOT.
        as_of           Search what was known at this instant (of a date without a time, at
                        the end of that day): memories stored by then, superseded ones too
                        when that happened later. They are searched with the content they
                        have now.
        reference_date  What yesterday, last week and the like count from; as_of or else now
                        when absent.
        token_budget    The block has at most so many tokens, as the embedding model's
                        tokenizer counts them; those of most language models find fewer.
        style           Whether the block is a text or a JSON object.
        """
        request = Request(
            "POST",
            "/v1/context",
            body=given(
                query=query,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                as_of=as_of,
                reference_date=reference_date,
                token_budget=token_budget,
                style=style,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def graph(
        self,
        *,
        query: str | None = None,
        entity: str | None = None,
        depth: int | None = None,
        limit: int | None = None,
        as_of: datetime | str | None = None,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> models.GraphSearchReply:
        """Search by the knowledge graph.

        From the entities named, along what held at the time and over the memories that
        mention the same, to the nearest memories. Paths say how. With scope fields or
        filters only memories inside them are given and walked over, and only entities and
        relationships that these memories speak of or that were made without a memory. How
        an entity or relationship looks (names, attributes, counts and times) is the same
        for the whole account. Needs the scope `read`.

        query          What to look for; the entities it names lead.
        entity         Where to start, instead of what the query names, or beside it.
        depth          How many hops from the entity.
        limit          At most so many results.
        as_of          Follow what held then (of a date without a time, at the end of that
                       day); now when absent.
        collection_id  Search this collection only.
        user_id        Only memories of this end user.
        agent_id       Only memories of this agent.
        run_id         Only memories of this run.
        app_id         Only memories of this application.
        session_id     Only memories of this session.
        filters        Conditions on fields, with AND, OR and NOT.
        """
        request = Request(
            "POST",
            "/v1/search/graph",
            body=given(
                query=query,
                entity=entity,
                depth=depth,
                limit=limit,
                as_of=as_of,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def reason(
        self,
        query: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        reference_date: datetime | str | None = None,
        search_type: Literal["hybrid", "vector", "bm25", "graph"] | None = None,
        fast: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        threshold: float | None = None,
        min_score: float | None = None,
        token_budget: int | None = None,
        include_superseded: bool | None = None,
        include_low_confidence: bool | None = None,
        relevance: Literal["strict", "balanced", "all"] | None = None,
        explain: bool | None = None,
        debug: bool | None = None,
        view: Literal["compact", "full"] | None = None,
        include_steps: bool | None = None,
        max_tokens: int | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.ReasonReply:
        """Answer a question from memories.

        With verbatim citations. `answer` is null where nothing stored supports one. Without
        a language model, or when it fails, the answer is the best sentence itself. Needs
        the scope `read`. A repeated Idempotency-Key repeats the answer for 24 hours.

        query                   What to look for, in plain words.
        collection_id           Search this collection only.
        user_id                 Only memories of this end user.
        agent_id                Only memories of this agent.
        run_id                  Only memories of this run.
        app_id                  Only memories of this application.
        session_id              Only memories of this session.
        filters                 Conditions on fields, with AND, OR and NOT.
        as_of                   Search what was known at this instant (of a date without a
                                time, at the end of that day): memories stored by then,
                                superseded ones too when that happened later. They are
                                searched with the content they have now.
        reference_date          What yesterday, last week and the like count from; as_of or
                                else now when absent.
        search_type             Which channels propose candidates.
        fast                    Leave out late interaction, which compares word by word:
                                sooner, and less exact.
        limit                   At most so many results.
        offset                  Skip so many results.
        threshold               Leave out results whose normalized_score is lower.
        min_score               Another name for threshold; of two, the higher one counts.
        token_budget            Keep of the page's results, best first, those whose contents
                                fit into so many tokens together; one that does not fit is
                                left out. A token is estimated as four ASCII characters, or
                                one other.
        include_superseded      Also search memories that a newer one replaced.
        include_low_confidence  Also return weak results, flagged, instead of no_match.
        relevance               How far below the best result others may stand: strict keeps
                                few and surer ones, balanced more, and more yet where
                                several things are asked for, all every one that stands;
                                balanced, unless the installation says otherwise, when
                                absent from a hybrid search, else all.
                                include_low_confidence counts as all.
        explain                 Say what each feature contributed to each score.
        debug                   Another name for explain.
        view                    compact leaves out metadata, tags, highlights and
                                explanations.
        include_steps           Say what was searched for and how the answer came about.
        max_tokens              At most so many tokens of answer.
        """
        request = Request(
            "POST",
            "/v1/search/reason",
            body=given(
                query=query,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                as_of=as_of,
                reference_date=reference_date,
                search_type=search_type,
                fast=fast,
                limit=limit,
                offset=offset,
                threshold=threshold,
                min_score=min_score,
                token_budget=token_budget,
                include_superseded=include_superseded,
                include_low_confidence=include_low_confidence,
                relevance=relevance,
                explain=explain,
                debug=debug,
                view=view,
                include_steps=include_steps,
                max_tokens=max_tokens,
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def __call__(
        self,
        query: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        app_id: str | None = None,
        session_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        reference_date: datetime | str | None = None,
        search_type: Literal["hybrid", "vector", "bm25", "graph"] | None = None,
        fast: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        threshold: float | None = None,
        min_score: float | None = None,
        token_budget: int | None = None,
        include_superseded: bool | None = None,
        include_low_confidence: bool | None = None,
        relevance: Literal["strict", "balanced", "all"] | None = None,
        explain: bool | None = None,
        debug: bool | None = None,
        view: Literal["compact", "full"] | None = None,
        timeout: float | None = None,
    ) -> models.SearchReply:
        """Search memories.

        By words and meaning. Nothing is padded: what does not stand on its own is left out,
        and `no_match` says so. Needs the scope `read`.

        query                   What to look for, in plain words.
        collection_id           Search this collection only.
        user_id                 Only memories of this end user.
        agent_id                Only memories of this agent.
        run_id                  Only memories of this run.
        app_id                  Only memories of this application.
        session_id              Only memories of this session.
        filters                 Conditions on fields, with AND, OR and NOT.
        as_of                   Search what was known at this instant (of a date without a
                                time, at the end of that day): memories stored by then,
                                superseded ones too when that happened later. They are
                                searched with the content they have now.
        reference_date          What yesterday, last week and the like count from; as_of or
                                else now when absent.
        search_type             Which channels propose candidates.
        fast                    Leave out late interaction, which compares word by word:
                                sooner, and less exact.
        limit                   At most so many results.
        offset                  Skip so many results.
        threshold               Leave out results whose normalized_score is lower.
        min_score               Another name for threshold; of two, the higher one counts.
        token_budget            Keep of the page's results, best first, those whose contents
                                fit into so many tokens together; one that does not fit is
                                left out. A token is estimated as four ASCII characters, or
                                one other.
        include_superseded      Also search memories that a newer one replaced.
        include_low_confidence  Also return weak results, flagged, instead of no_match.
        relevance               How far below the best result others may stand: strict keeps
                                few and surer ones, balanced more, and more yet where
                                several things are asked for, all every one that stands;
                                balanced, unless the installation says otherwise, when
                                absent from a hybrid search, else all.
                                include_low_confidence counts as all.
        explain                 Say what each feature contributed to each score.
        debug                   Another name for explain.
        view                    compact leaves out metadata, tags, highlights and
                                explanations.
        """
        request = Request(
            "POST",
            "/v1/search",
            body=given(
                query=query,
                collection_id=collection_id,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                app_id=app_id,
                session_id=session_id,
                filters=filters,
                as_of=as_of,
                reference_date=reference_date,
                search_type=search_type,
                fast=fast,
                limit=limit,
                offset=offset,
                threshold=threshold,
                min_score=min_score,
                token_budget=token_budget,
                include_superseded=include_superseded,
                include_low_confidence=include_low_confidence,
                relevance=relevance,
                explain=explain,
                debug=debug,
                view=view,
            ),
            timeout=timeout,
        )
        return self._transport.json(request)

    def similar(
        self,
        id: str,
        *,
        limit: int | None = None,
        collection_id: str | None = None,
        min_score: float | None = None,
        timeout: float | None = None,
    ) -> models.SearchReply:
        """Memories similar to one.

        The nearest memories by meaning, without the memory itself. `min_score` compares
        with `normalized_score`. Needs the scope `read`.

        id             The id of the resource.
        limit          At most so many results.
        collection_id  Only memories of this collection.
        min_score      Leave out results whose normalized_score is lower.
        """
        request = Request(
            "GET",
            f"/v1/search/similar/{segment(id)}",
            query=given(limit=limit, collection_id=collection_id, min_score=min_score),
            timeout=timeout,
        )
        return self._transport.json(request)


class Service:
    """Operations named `service.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def docs(self, *, timeout: float | None = None) -> str:
        """The description, for people."""
        request = Request("GET", "/docs", accept="*/*", timeout=timeout)
        return self._transport.text(request)

    def health(self, *, timeout: float | None = None) -> models.Health:
        """Is the service ready?

        Answers 503 until every shard is open. A shard that another process took over is
        named as fenced, one that cannot find out whether that happened as without a lease.
        An object store that takes nothing is a check of its own, and 200: reads are
        answered.
        """
        request = Request("GET", "/v1/health", timeout=timeout)
        return self._transport.json(request)

    def metrics(self, *, timeout: float | None = None) -> str:
        """Metrics in Prometheus' text format."""
        request = Request("GET", "/metrics", accept="*/*", timeout=timeout)
        return self._transport.text(request)

    def openapi(self, *, timeout: float | None = None) -> str:
        """This description."""
        request = Request("GET", "/openapi.json", accept="*/*", timeout=timeout)
        return self._transport.text(request)


class Usage:
    """Operations named `usage.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(self, *, timeout: float | None = None) -> models.Usage:
        """What was used this month.

        Credits and requests since the first of the month, UTC, up to this request, by
        operation and by API key. Needs the scope `read`.
        """
        request = Request("GET", "/v1/usage", timeout=timeout)
        return self._transport.json(request)

    def history(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        timeout: float | None = None,
    ) -> Listing[models.HistoryItem]:
        """Usage by hour, day or month.

        Oldest first. Hours are kept for two months and days for two years. Needs the scope
        `read`.

        limit        Items per page.
        cursor       `next_cursor` of the page before.
        from_        Leave out what ended by then; the beginning, when absent.
        to           Leave out what began then or later; of a date without a time, what
                     began after that day; now, when absent.
        granularity  Length of an item.
        """
        request = Request(
            "GET",
            "/v1/usage/history",
            query=given(limit=limit, cursor=cursor, from_=from_, to=to, granularity=granularity),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def latency(
        self, *, hours: int | None = None, timeout: float | None = None
    ) -> models.Latencies:
        """How long requests took, and how many failed.

        By operation and by hour, up to eight days back. Times are those in the account's
        shard, from where a request is let in to its answer; a chat's or an answer's
        includes its language model's. They are estimated from histograms. Requests that a
        limit refused are in no figure. Needs the scope `read`.

        hours  Of so many hours, the running one included.
        """
        request = Request("GET", "/v1/usage/latency", query=given(hours=hours), timeout=timeout)
        return self._transport.json(request)

    def load(self, *, timeout: float | None = None) -> models.Load:
        """What the account takes of the service at the moment.

        Of the last one or two minutes, or since the service was started. What a process
        that reads beside the shard does counts a moment later. Needs the scope `read`.
        """
        request = Request("GET", "/v1/usage/load", timeout=timeout)
        return self._transport.json(request)


class WebhooksDeadLetters:
    """Operations named `webhooks.dead_letters.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        webhook_id: str | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Delivery]:
        """List the dead letters.

        Deliveries that failed five times, of all webhooks, newest first. They are kept for
        30 days. Needs the scope `read`.

        limit       Items per page.
        cursor      `next_cursor` of the page before.
        webhook_id  Only those of this webhook.
        """
        request = Request(
            "GET",
            "/v1/webhooks/dead-letters",
            query=given(limit=limit, cursor=cursor, webhook_id=webhook_id),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def replay(
        self,
        *,
        ids: Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        include_skipped: bool | None = None,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Replayed:
        """Replay dead letters.

        By their ids, or all of a range of time, up to 1,000 a call. Those of disabled
        webhooks are left out of a range. Needs the scope `write`. A repeated
        Idempotency-Key repeats the answer for 24 hours.

        ids              Deliveries to replay; skipped ones may be among them.
        since            Instead of ids: dead letters of events from this time on.
        until            Instead of ids: dead letters of events before this time; of a date
                         without a time, those of that day too.
        include_skipped  With since or until: also what was skipped while the webhook was
                         disabled.
        prefer           `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            "/v1/webhooks/dead-letters/replay",
            body=given(ids=ids, since=since, until=until, include_skipped=include_skipped),
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class WebhooksDeliveries:
    """Operations named `webhooks.deliveries.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def get(
        self, id: str, delivery_id: str, *, timeout: float | None = None
    ) -> models.DeliveryDetail:
        """Get a delivery with its attempts.

        Needs the scope `read`.

        id           The id of the resource.
        delivery_id  The delivery id.
        """
        request = Request(
            "GET", f"/v1/webhooks/{segment(id)}/deliveries/{segment(delivery_id)}", timeout=timeout
        )
        return self._transport.json(request)

    def list(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["pending", "retrying", "delivered", "failed", "skipped"] | None = None,
        timeout: float | None = None,
    ) -> Listing[models.Delivery]:
        """List the deliveries of a webhook.

        Newest first. Delivered ones are kept for a week, failed and skipped ones for 30
        days. Needs the scope `read`.

        id      The id of the resource.
        limit   Items per page.
        cursor  `next_cursor` of the page before.
        status  Only deliveries in this state.
        """
        request = Request(
            "GET",
            f"/v1/webhooks/{segment(id)}/deliveries",
            query=given(limit=limit, cursor=cursor, status=status),
            timeout=timeout,
        )
        return Listing(self._transport, request)

    def replay(
        self,
        id: str,
        delivery_id: str,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.Delivery:
        """Replay a delivery.

        The same event id, body and idempotency_key, with five attempts more. One that is
        under way stays as it is. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        id           The id of the resource.
        delivery_id  The delivery id.
        prefer       `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            f"/v1/webhooks/{segment(id)}/deliveries/{segment(delivery_id)}/replay",
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)


class Webhooks:
    """Operations named `webhooks.…`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self.dead_letters = WebhooksDeadLetters(transport)
        self.deliveries = WebhooksDeliveries(transport)

    def create(
        self,
        *,
        url: str,
        events: Sequence[
            Literal[
                "memory.created",
                "memory.updated",
                "memory.deleted",
                "memory.tier_changed",
                "document.created",
                "document.processed",
                "document.failed",
                "document.deleted",
                "collection.created",
                "collection.updated",
                "search.completed",
                "user.feedback_received",
                "rl.training_started",
                "rl.training_completed",
                "rl.training_failed",
                "billing.suspended",
                "billing.resumed",
            ]
        ],
        description: str | None = None,
        signing_secret: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.WebhookWithSecret:
        """Create a webhook.

        The signing secret is in this answer only. An address in a private or reserved
        network is 422. Needs the scope `write`. A repeated Idempotency-Key repeats the
        answer for 24 hours.

        url     Where to deliver to: a public http or https address.
        events  The kinds of events to deliver.
        """
        request = Request(
            "POST",
            "/v1/webhooks",
            body=given(
                url=url, events=events, description=description, signing_secret=signing_secret
            ),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def delete(
        self, id: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> models.DeletedWebhook:
        """Delete a webhook.

        With its deliveries, those under way included. Again is 404. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        id  The id of the resource.
        """
        request = Request(
            "DELETE", f"/v1/webhooks/{segment(id)}", key=keyed(idempotency_key), timeout=timeout
        )
        return self._transport.json(request)

    def get(self, id: str, *, timeout: float | None = None) -> models.Webhook:
        """Get a webhook.

        Needs the scope `read`.

        id  The id of the resource.
        """
        request = Request("GET", f"/v1/webhooks/{segment(id)}", timeout=timeout)
        return self._transport.json(request)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, timeout: float | None = None
    ) -> Listing[models.Webhook]:
        """List webhooks.

        Needs the scope `read`.

        limit   Items per page.
        cursor  `next_cursor` of the page before.
        """
        request = Request(
            "GET", "/v1/webhooks", query=given(limit=limit, cursor=cursor), timeout=timeout
        )
        return Listing(self._transport, request)

    def rotate_secret(
        self,
        id: str,
        *,
        grace_seconds: int | None = None,
        signing_secret: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.RotatedWebhook:
        """Rotate the signing secret.

        The new secret signs X-Webhook-Signature-256 at once; until the grace is over the
        old one signs the header X-Webhook-Signature-256-Previous beside it. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        id             The id of the resource.
        grace_seconds  How long requests are signed with the secret before as well.
        """
        request = Request(
            "POST",
            f"/v1/webhooks/{segment(id)}/rotate-secret",
            body=given(grace_seconds=grace_seconds, signing_secret=signing_secret),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)

    def test(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> models.TestEvent:
        """Send a test event.

        Of the first kind the webhook takes, with the data `{test: true, id: <webhook id>}`.
        A disabled webhook is 409. Needs the scope `write`. A repeated Idempotency-Key
        repeats the answer for 24 hours.

        id      The id of the resource.
        prefer  `respond-async`, or `wait=N` to wait up to N seconds for a job.
        """
        request = Request(
            "POST",
            f"/v1/webhooks/{segment(id)}/test",
            key=keyed(idempotency_key),
            prefer=prefer,
            timeout=timeout,
        )
        return self._transport.json(request)

    def update(
        self,
        id: str,
        *,
        url: str,
        events: Sequence[
            Literal[
                "memory.created",
                "memory.updated",
                "memory.deleted",
                "memory.tier_changed",
                "document.created",
                "document.processed",
                "document.failed",
                "document.deleted",
                "collection.created",
                "collection.updated",
                "search.completed",
                "user.feedback_received",
                "rl.training_started",
                "rl.training_completed",
                "rl.training_failed",
                "billing.suspended",
                "billing.resumed",
            ]
        ],
        description: str | None = None,
        status: Literal["active", "disabled"] | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> models.Webhook:
        """Replace a webhook's url, events, description and status.

        What is still to be delivered goes to the new url. Enabling a disabled webhook
        forgets its failures; what was skipped meanwhile can be replayed. Needs the scope
        `write`. A repeated Idempotency-Key repeats the answer for 24 hours.

        id      The id of the resource.
        url     Where to deliver to: a public http or https address.
        events  The kinds of events to deliver.
        status  active forgets earlier failures.
        """
        request = Request(
            "PUT",
            f"/v1/webhooks/{segment(id)}",
            body=given(url=url, events=events, description=description, status=status),
            key=keyed(idempotency_key),
            timeout=timeout,
        )
        return self._transport.json(request)


class Operations:
    """Every operation of the service."""

    def __init__(self, transport: Transport):
        self.account = Account(transport)
        self.auth = Auth(transport)
        self.billing = Billing(transport)
        self.chat = Chat(transport)
        self.collections = Collections(transport)
        self.confidence = Confidence(transport)
        self.corrections = Corrections(transport)
        self.decisions = Decisions(transport)
        self.documents = Documents(transport)
        self.feedback = Feedback(transport)
        self.graph = Graph(transport)
        self.learning = Learning(transport)
        self.memories = Memories(transport)
        self.memory_files = MemoryFiles(transport)
        self.memory_tools = MemoryTools(transport)
        self.profile = Profile(transport)
        self.rl = Rl(transport)
        self.search = Search(transport)
        self.service = Service(transport)
        self.usage = Usage(transport)
        self.webhooks = Webhooks(transport)
