"""What is mailed works once, for the account it is of, and tells nobody who has one."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator
from email import message_from_string
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from plugins import accounts
from plugins.accounts import limits
from runtime.api.plugin import RetryStrategy
from runtime.timestamps import HOUR_MS
from serve_app import Settings
from tests.support.certificates import certificate
from tests.support.in_process import PASSWORD, InProcess, in_process
from tests.support.mailbox import TICKET, Mailbox, mailbox
from tests.support.shard_harness import CHEAP, ShardHarness

NEW = "four bronze lanterns hum"
NOBODY = "nobody@example.com"


@pytest.fixture(scope="module")
def box() -> Iterator[Mailbox]:
    with mailbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> Iterator[InProcess]:
    with in_process(
        tmp_path_factory.mktemp("mailed"), auth__verify_email=True, **box.settings
    ) as opened:
        yield opened


def post(service: InProcess, path: str, who: str | None = None, **body: Any) -> httpx.Response:
    return service.request("POST", f"/v1/auth/{path}", body, who=who)


def ask(service: InProcess, email: str) -> httpx.Response:
    answer = post(service, "password-reset", email=email)
    service.settle()
    return answer


def confirm(service: InProcess, ticket: str, password: str = NEW) -> httpx.Response:
    return post(service, "password-reset/confirm", token=ticket, new_password=password)


def login(service: InProcess, email: str, password: str) -> int:
    return post(service, "login", email=email, password=password).status_code


def is_verified(service: InProcess, who: str) -> bool:
    return service.request("GET", "/v1/auth/me", who=who).json()["email_verified"]


def assert_not_good(answer: httpx.Response, another: str = "password-reset") -> None:
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "token"), answer.text
    assert answer.json()["error"]["message"].endswith(f" POST /v1/auth/{another}.")


# --- a forgotten password -------------------------------------------------------------------------


def test_a_forgotten_password_is_set_anew_once(service: InProcess, box: Mailbox) -> None:
    email = "ada@example.com"
    token = service.register(email)
    assert ask(service, "Ada@Example.com").status_code == 202
    first = box.tickets(email)[-1]
    ask(service, email)
    second = box.tickets(email)[-1]
    assert first != second
    assert confirm(service, first).json() == {"ended": 1}
    assert (login(service, email, PASSWORD), login(service, email, NEW)) == (401, 200)
    assert service.request("GET", "/v1/auth/me", who=token).status_code == 401
    for ticket in (first, second):  # the other one set a password that is not that any more
        assert_not_good(confirm(service, ticket))


def test_what_is_no_ticket_sets_nothing(service: InProcess, box: Mailbox) -> None:
    email = "bea@example.com"
    service.register(email)
    service.settle()
    (verifying,) = box.tickets(email, "verify-email")
    ask(service, email)
    ticket = box.tickets(email)[-1]
    forged = ticket[:-1] + ("0" if ticket[-1] != "0" else "1")
    for wrong in ("nonsense", "mem_tk_" + "0" * 68, forged, verifying):
        assert_not_good(confirm(service, wrong))
    weak = confirm(service, ticket, "password1234")
    assert (weak.status_code, weak.json()["error"]["param"]) == (422, "body.new_password")
    assert confirm(service, ticket).status_code == 200


def test_nobody_learns_who_has_an_account(service: InProcess, box: Mailbox) -> None:
    email = "cem@example.com"
    service.register(email)
    known, unknown = ask(service, email), ask(service, NOBODY)
    assert known.status_code == unknown.status_code == 202
    assert known.content == unknown.content
    assert not box.tickets(NOBODY)


def test_an_address_gets_few_mails_an_hour(tmp_path: Path, box: Mailbox) -> None:
    given = {name.replace("__", "."): value for name, value in box.settings.items()}
    harness = ShardHarness(tmp_path, [accounts.plugin], settings=Settings.load(CHEAP, given))
    harness.now_ms -= HOUR_MS + harness.now_ms % HOUR_MS  # the hour before this one begins
    email, most = "dan@example.com", limits.MAILS_PER_ADDRESS_AND_HOUR_MESSAGES_MAX
    harness.register(email)
    for _ in range(most + 2):
        assert harness("auth.password_reset.request", {"email": email}).status == 202
    harness.settle()
    assert len(box.tickets(email)) == most
    harness.now_ms += HOUR_MS
    assert harness("auth.password_reset.request", {"email": email}).status == 202
    harness.until(lambda: len(box.tickets(email)) == most + 1)
    harness.close()


# --- whose address it is --------------------------------------------------------------------------


def test_a_registration_mails_a_ticket_that_proves_the_address_once(
    service: InProcess, box: Mailbox
) -> None:
    email = "eva@example.com"
    token = service.register(email)
    service.settle()
    assert not is_verified(service, token)
    (ticket,) = box.tickets(email, "verify-email")
    answer = post(service, "verify-email", token=ticket)
    assert answer.json() == {"email": email, "email_verified": True}
    assert is_verified(service, token)
    assert_not_good(post(service, "verify-email", token=ticket), "verify-email/request")


def test_the_mail_that_confirms_an_address_is_sent_again_until_it_is_confirmed(
    service: InProcess, box: Mailbox
) -> None:
    email = "amy@example.com"
    token = service.register(email)
    answers = [post(service, "verify-email/request", email=to) for to in (email, NOBODY)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].content == answers[1].content
    service.settle()
    first, again = box.tickets(email, "verify-email")
    assert first != again and not box.tickets(NOBODY, "verify-email")
    assert post(service, "verify-email", token=again).status_code == 200
    assert is_verified(service, token)
    assert post(service, "verify-email/request", email=email).status_code == 202
    service.settle()
    assert len(box.tickets(email, "verify-email")) == 2, "there is nothing left to confirm"
    assert_not_good(post(service, "verify-email", token=first), "verify-email/request")


def test_the_operator_mints_no_key_into_an_account_that_anybody_may_have_made(
    service: InProcess, box: Mailbox
) -> None:
    email, operator = "ceo@example.com", service.secrets.operator_token
    attacker = service.register(email)
    theirs = service.mint(attacker, "admin")["key"]
    body = {"email": email, "name": "k"}
    refused = service.request("POST", "/v1/internal/keys", body, who=operator)
    assert refused.status_code == 403
    assert "password-reset" in refused.json()["error"]["message"]
    ask(service, email)
    assert confirm(service, box.tickets(email)[-1]).status_code == 200
    minted = service.request("POST", "/v1/internal/keys", body, who=operator)
    assert minted.status_code == 201
    for credential in (attacker, theirs):  # the holder has taken the account
        assert service.request("GET", "/v1/auth/me", who=credential).status_code == 401
    ask(service, email)
    assert confirm(service, box.tickets(email)[-1], NEW + " again").status_code == 200
    kept = service.request("GET", "/v1/auth/me", who=minted.json()["key"])
    assert kept.status_code == 200


def test_a_reset_takes_the_account_with_all_that_keeps_its_holder_out_or_tells_others(
    service: InProcess, box: Mailbox
) -> None:
    email = "zoe@example.com"
    squatter = service.register(email)
    receiver = {"url": "https://receiver.example.com/", "events": ["memory.created"]}
    assert service.request("POST", "/v1/webhooks", receiver, who=squatter).status_code == 201
    secret = service.request("POST", "/v1/auth/totp", who=squatter).json()["secret"]
    code = TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(time.time())).decode()
    assert post(service, "totp/confirm", squatter, code=code).status_code == 200
    ask(service, email)
    assert confirm(service, box.tickets(email)[-1]).status_code == 200
    holder = post(service, "login", email=email, password=NEW).json()["access_token"]
    assert service.request("GET", "/v1/webhooks", who=holder).json()["items"] == []
    # Whose address is proved keeps what they set up when they forget the password.
    assert service.request("POST", "/v1/webhooks", receiver, who=holder).status_code == 201
    ask(service, email)
    assert confirm(service, box.tickets(email)[-1], PASSWORD).status_code == 200
    again = post(service, "login", email=email, password=PASSWORD).json()["access_token"]
    assert len(service.request("GET", "/v1/webhooks", who=again).json()["items"]) == 1


# --- the mail server ------------------------------------------------------------------------------


def test_a_mail_has_what_receivers_ask_for(service: InProcess, box: Mailbox) -> None:
    email = "gus@example.com"
    service.register(email)
    ask(service, email)
    message = message_from_string([text for to, text in box.letters if to == email][-1])
    sent = parsedate_to_datetime(message["Date"]).timestamp()
    assert abs(time.time() - sent) < 600
    assert message["Message-ID"].endswith("@localhost>"), message["Message-ID"]


def test_a_mail_that_is_not_taken_is_tried_again_and_one_that_is_refused_is_not(
    tmp_path: Path, box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryStrategy, "wait_ms", lambda *given: 1)
    with in_process(tmp_path, **box.settings) as service:
        service.register("fay@example.com")
        before = box.tried
        box.refusals[:] = ["451 later", "421 later"]
        ask(service, "fay@example.com")
        assert (box.tried - before, len(box.tickets("fay@example.com"))) == (3, 1)
        box.refusals[:] = ["550 nobody of this name"]
        ask(service, "fay@example.com")
        assert (box.tried - before, len(box.tickets("fay@example.com"))) == (4, 1)


@pytest.mark.parametrize(
    ("offered", "trusted", "taken"), [(True, True, 1), (True, False, 0), (False, True, 0)]
)
def test_mail_goes_over_tls_to_whom_it_trusts_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: bool, trusted: bool, taken: int
) -> None:
    monkeypatch.setattr(RetryStrategy, "wait_ms", lambda *given: 1)
    made = certificate(tmp_path, "localhost")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(made[0]))
    with mailbox() as box:
        box.certificate = made if offered else None
        port = box.settings["mail__port"]
        to = {"mail__host": "localhost", "mail__port": port, "mail__security": "starttls"}
        login_as = {"mail__user": "mneme", "mail__password": "of the relay"}
        with in_process(tmp_path / "data", **to, **login_as) as service:
            service.register("hal@example.com")
            ask(service, "hal@example.com")
        assert len(box.tickets("hal@example.com")) == len(box.letters) == taken
        spoken = {line.split(" ")[0].upper() for line in box.in_clear}
        assert "EHLO" in spoken and spoken <= {"EHLO", "STARTTLS", "QUIT"}, spoken


def test_without_a_mail_server_the_ticket_is_logged_where_the_service_is_tried_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with in_process(tmp_path) as service, caplog.at_level(logging.WARNING, "mneme.mail"):
        service.register("gil@example.com")
        ask(service, "gil@example.com")
        (said,) = [record.getMessage() for record in caplog.records if record.name == "mneme.mail"]
        assert "gil@" not in said
        assert confirm(service, TICKET.search(said)[0]).status_code == 200


def test_a_production_without_a_mail_server_says_so(tmp_path: Path) -> None:
    settings = Settings.load(CHEAP, {"environment": "production"})
    harness = ShardHarness(tmp_path, [accounts.plugin], settings=settings)
    for asked in ("password_reset", "verification", "invitation"):
        answer = harness(f"auth.{asked}.request", {"email": NOBODY})
        assert answer.status == 503 and "operator" in str(answer.body), answer
    harness.close()
