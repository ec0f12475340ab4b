"""Who may register: an invitation makes one account, of the address that it names or of one that is
not known before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from plugins import accounts
from plugins.accounts import invitations
from runtime.tenancy import slot_of_email
from serve_app import Settings
from storage.store import Scope
from tests.support.in_process import PASSWORD, InProcess, in_process
from tests.support.shard_harness import CHEAP, ShardHarness

ADA, BOB = "ada@example.com", "bob@example.com"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("invited"), auth__registration="invite") as opened:
        yield opened


def invite(service: InProcess, **body: Any) -> str:
    answer = service.request(
        "POST", "/v1/auth/invitations", body, who=service.secrets.operator_token
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["invitation"]


def register(
    service: InProcess, email: str, invitation: str | None = None, **headers: str
) -> httpx.Response:
    body = {"email": email, "password": PASSWORD, "full_name": "Guest"}
    named = {} if invitation is None else {"invitation": invitation}
    return service.request("POST", "/v1/auth/register", {**body, **named}, **headers)


def erase(service: InProcess, registered: httpx.Response) -> None:
    token = registered.json()["access_token"]
    path = "/v1/account?confirm=erase-account"
    assert service.request("DELETE", path, who=token).status_code == 200


def assert_not_invited(answer: httpx.Response) -> None:
    assert answer.status_code == 403, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("permission_denied", "invitation")
    assert "Ask the operator" in error["message"]


def test_nobody_registers_without_an_invitation(service: InProcess) -> None:
    for invitation in (None, "nonsense", "mem_tk_" + "0" * 68):
        assert_not_invited(register(service, "stranger@example.com", invitation))


def test_an_invitation_of_an_address_makes_its_account_once(service: InProcess) -> None:
    invitation = invite(service, email="Ada@Example.com")
    assert_not_invited(register(service, BOB, invitation))
    made = register(service, ADA, invitation)
    assert made.status_code == 201
    erase(service, made)
    assert_not_invited(register(service, ADA, invitation))


def test_whoever_has_an_account_is_not_invited(service: InProcess) -> None:
    email = "known@example.com"
    assert register(service, email, invite(service, email=email)).status_code == 201
    operator = service.secrets.operator_token
    again = service.request("POST", "/v1/auth/invitations", {"email": email}, who=operator)
    assert (again.status_code, again.json()["error"]["param"]) == (409, "email")


def test_an_invitation_that_names_nobody_makes_one_account_wherever_it_lies(
    service: InProcess,
) -> None:
    in_slot_0 = next(
        email for email in (f"g{n}@example.com" for n in count()) if slot_of_email(email) == 0
    )
    for email in ("carol@example.com", in_slot_0):
        invitation = invite(service)
        made = register(service, email, invitation)
        assert made.status_code == 201
        assert_not_invited(register(service, BOB, invitation))
        erase(service, made)
        assert_not_invited(register(service, email, invitation))


def test_a_registration_that_failed_can_be_tried_again_with_its_invitation(
    service: InProcess,
) -> None:
    invitation = invite(service)
    assert register(service, "dan@example.com", invitation).status_code == 201
    other = invite(service)
    assert register(service, "dan@example.com", other).status_code == 409
    assert_not_invited(register(service, BOB, other))  # it was claimed for the first address
    again = [
        register(service, "eve@example.com", invite(service), Idempotency_Key=f"key-{n}")
        for n in range(2)
    ]
    assert [answer.status_code for answer in again] == [201, 409]


def test_a_repeated_registration_replays_its_answer(service: InProcess) -> None:
    invitation = invite(service)
    one, other = (
        register(service, "fay@example.com", invitation, Idempotency_Key="fay") for _ in range(2)
    )
    assert (other.status_code, other.content) == (201, one.content)


def test_an_invitation_expires_and_is_forgotten(tmp_path: Path) -> None:
    invited_only = {**CHEAP, "auth": {**CHEAP["auth"], "registration": "invite"}}
    harness = ShardHarness(tmp_path, [accounts.plugin], settings=Settings.load(invited_only))
    operator, scope = harness.secrets.operator_token, Scope.of_slot(slot_of_email(ADA))

    def made() -> str:
        body = {"email": ADA, "expires_in_seconds": 60}
        return harness("internal.invitations.create", body, who=operator).body["invitation"]

    first = made()
    harness.now_ms += 61_000
    body = {"email": ADA, "password": PASSWORD, "full_name": "Ada"}
    assert harness("auth.register", {**body, "invitation": first}).status == 403
    second = made()
    with harness.shard.store.snapshot() as snapshot:
        assert snapshot.bind(invitations.INVITATIONS, scope).count() == 1
    assert harness("auth.register", {**body, "invitation": second}).status == 201
    harness.close()


def test_whoever_is_no_operator_invites_nobody(service: InProcess) -> None:
    token = register(service, "gil@example.com", invite(service)).json()["access_token"]
    for path in ("/v1/auth/invitations", "/v1/internal/invitations/claim"):
        assert service.request("POST", path, {}, who=token).status_code == 403


def test_where_registration_is_closed_nobody_registers(tmp_path: Path) -> None:
    with in_process(tmp_path, auth__registration="closed") as service:
        answer = register(service, ADA, invite(service, email=ADA))
        assert answer.status_code == 403
        assert "closed" in answer.json()["error"]["message"]


def test_where_it_is_open_an_invitation_is_not_looked_at(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        assert register(service, ADA, "nonsense").status_code == 201
