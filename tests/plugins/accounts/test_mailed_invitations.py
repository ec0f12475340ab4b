"""Where invitations are mailed, who has an account is told to the holders of addresses alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from plugins import accounts
from plugins.accounts import limits
from serve_app import Settings
from tests.support.in_process import PASSWORD, InProcess, in_process
from tests.support.mailbox import Mailbox, mailbox
from tests.support.shard_harness import CHEAP, ShardHarness

NEW = "four bronze lanterns hum"


@pytest.fixture(scope="module")
def box() -> Iterator[Mailbox]:
    with mailbox() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> Iterator[InProcess]:
    with in_process(
        tmp_path_factory.mktemp("mailed"), auth__registration="mailed", **box.settings
    ) as opened:
        yield opened


def ask(service: InProcess, email: str) -> httpx.Response:
    answer = service.request("POST", "/v1/auth/invitation-request", {"email": email})
    service.settle()
    return answer


def register(service: InProcess, email: str, invitation: str | None = None) -> httpx.Response:
    body = {"email": email, "password": PASSWORD, "full_name": "Guest"}
    named = {} if invitation is None else {"invitation": invitation}
    return service.request("POST", "/v1/auth/register", {**body, **named})


def member(service: InProcess, box: Mailbox, email: str) -> httpx.Response:
    ask(service, email)
    return register(service, email, box.tickets(email, "/v1/auth/register")[-1])


def seen(answer: httpx.Response) -> tuple[int, dict]:
    """Of an answer all but what names the request."""
    body = answer.json()
    body.get("error", {}).pop("request_id", None)
    return answer.status_code, body


def test_who_was_mailed_an_invitation_registers_and_has_proved_the_address(
    service: InProcess, box: Mailbox
) -> None:
    answer = member(service, box, "Ada@Example.com".lower())
    assert answer.status_code == 201, answer.text
    me = service.request("GET", "/v1/auth/me", who=answer.json()["access_token"]).json()
    assert (me["email"], me["email_verified"]) == ("ada@example.com", True)
    assert len([to for to, _ in box.letters if to == "ada@example.com"]) == 1, "one mail is enough"


def test_one_mailbox_has_one_address(service: InProcess, box: Mailbox) -> None:
    sent = len(box.letters)
    for odd in ("(c)ivy@example.org", "x<ivy@example.org", "ivy@example.org(2)", "ivy@example.org>",
                "a,ivy@example.org", '"ivy"@example.org'):  # fmt: skip
        answer = ask(service, odd)
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "body.email"), odd
        assert register(service, odd, "any").status_code == 422, odd
    assert len(box.letters) == sent


def test_nobody_else_can_tell_who_has_an_account(service: InProcess, box: Mailbox) -> None:
    member(service, box, "bob@example.com")
    known, unknown = "bob@example.com", "nobody@example.com"
    assert seen(ask(service, known)) == seen(ask(service, unknown)) == (202, {"status": "accepted"})
    foreign = box.tickets(unknown, "/v1/auth/register")[-1]
    tried = [None, "mem_tk_" + "0" * 68, foreign, "nonsense"]
    for invitation in tried[:2] + tried[3:]:
        answers = [seen(register(service, email, invitation)) for email in (known, unknown)]
        assert answers[0] == answers[1] and answers[0][0] == 403
    assert register(service, known, foreign).status_code == 403, "it is another address's"


def test_the_holder_of_a_known_address_is_told_so(service: InProcess, box: Mailbox) -> None:
    email = "eve@example.com"
    first = member(service, box, email)
    assert first.status_code == 201
    ask(service, email)
    letter = [text for to, text in box.letters if to == email][-1]
    assert "has an" in letter and "account" in letter
    ticket = box.tickets(email)[-1]
    body = {"token": ticket, "new_password": NEW}
    assert service.request("POST", "/v1/auth/password-reset/confirm", body).status_code == 200
    login = {"email": email, "password": NEW}
    assert service.request("POST", "/v1/auth/login", login).status_code == 200


def test_a_used_invitation_makes_no_second_account(service: InProcess, box: Mailbox) -> None:
    email = "joe@example.com"
    ask(service, email)
    invitation = box.tickets(email, "/v1/auth/register")[-1]
    assert register(service, email, invitation).status_code == 201
    assert register(service, email, invitation).status_code == 409, "the holder may know"
    leaver = member(service, box, "gia@example.com").json()["access_token"]
    used = box.tickets("gia@example.com", "/v1/auth/register")[-1]
    confirmed = "/v1/account?confirm=erase-account"
    assert service.request("DELETE", confirmed, who=leaver).status_code == 200
    service.settle()
    refused = register(service, "gia@example.com", used)
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, "invitation")
    assert member(service, box, "gia@example.com").status_code == 201, "a new one is good"


def test_an_invitation_expires(tmp_path: Path, box: Mailbox) -> None:
    email = "late@example.com"
    given = {**box.settings, "auth__registration": "mailed"}
    settings = {name.replace("__", "."): value for name, value in given.items()}
    harness = ShardHarness(tmp_path, [accounts.plugin], settings=Settings.load(CHEAP, settings))
    assert harness("auth.invitation.request", {"email": email}).status == 202
    harness.until(lambda: bool(box.tickets(email, "/v1/auth/register")))
    invitation = box.tickets(email, "/v1/auth/register")[-1]
    body = {"email": email, "password": PASSWORD, "full_name": "Late", "invitation": invitation}
    harness.now_ms += 2 * limits.VERIFY_SECONDS * 1000
    assert harness("auth.register", body).status == 403
    harness.now_ms -= 2 * limits.VERIFY_SECONDS * 1000
    assert harness("auth.register", body).status == 201
    harness.close()


def test_where_anybody_registers_an_invitation_proves_the_address(
    tmp_path_factory: pytest.TempPathFactory, box: Mailbox
) -> None:
    with in_process(tmp_path_factory.mktemp("open"), **box.settings) as opened:
        answer = member(opened, box, "tom@example.com")
        me = opened.request("GET", "/v1/auth/me", who=answer.json()["access_token"]).json()
        assert me["email_verified"] and register(opened, "kim@example.com").status_code == 201


def test_elsewhere_none_are_mailed(tmp_path_factory: pytest.TempPathFactory, box: Mailbox) -> None:
    with in_process(
        tmp_path_factory.mktemp("invited"), auth__registration="invite", **box.settings
    ) as opened:
        before = len(box.letters)
        assert ask(opened, "zoe@example.com").status_code == 403
        assert len(box.letters) == before
