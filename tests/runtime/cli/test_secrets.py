"""Secrets are exchanged in place: with the one before beside it a new one is taken up at the start,
and without it the start is refused with a sentence.
"""

from __future__ import annotations

import secrets as system
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.installation import SECRET_NAMES, Layout, Secrets, SecretsError, shard_directory
from storage.store import KEYS_FILE, Keyring
from storage.store.keyring import WrongServiceKey
from tests.support.commands import admin
from tests.support.in_process import PASSWORD, InProcess, in_process

CHEAP = {"auth__argon2_time_cost": 1, "auth__argon2_memory_kib": 64}
EMAIL = "ada@example.org"


class Installation:
    """A data directory whose secrets are files, and a service on it from time to time."""

    def __init__(self, data_dir: Path):
        self.data_dir = data_dir
        self.shard = shard_directory(data_dir, 0)
        Secrets.load(data_dir / "secrets", create=True)
        with self.service() as service:
            self.token = service.register(EMAIL)
            self.key = service.mint(self.token, "admin")["key"]
            body = {"content": "The key lies under the flowerpot."}
            made = service.request("POST", "/v1/memories", body, who=self.key, Idempotency_Key="k")
            self.made = made.json()["id"]
            service.settle()
            cluster_id = service.shard.store.identity.cluster_id
        Layout(cluster_id, 1, complete=True).save(data_dir)

    def service(self):
        secrets = Secrets.load(self.data_dir / "secrets", create=False)
        return in_process(self.shard, secrets=secrets, **CHEAP)

    def exchange(self, name: str) -> None:
        """As OPERATIONS.md says: the present one becomes the one before."""
        file = self.data_dir / "secrets" / name
        file.rename(file.with_name(name + "_previous"))
        file.write_text(("mem_op_" if name == "operator_token" else "") + system.token_hex(32))

    def end(self, name: str) -> None:
        (self.data_dir / "secrets" / f"{name}_previous").unlink()

    def rings(self) -> bytes:
        return (self.shard / KEYS_FILE).read_bytes()


@pytest.fixture
def house(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def reads(service: InProcess, who: str) -> bool:
    answer = service.request("GET", "/v1/memories", who=who)
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200 and answer.json()["total_count"] == 1


def logged_in(service: InProcess) -> str | None:
    answer = service.request("POST", "/v1/auth/login", {"email": EMAIL, "password": PASSWORD})
    return answer.json().get("access_token")


def test_a_new_service_secret_takes_over_and_the_one_before_may_go(house: Installation) -> None:
    ring = house.rings()
    records = [ring[at : at + 64] for at in range(0, len(ring), 64)]
    (wrapped,) = [record for record in records if record[:1] == b"K"]
    house.exchange("service")
    status, told, said = admin("secrets", house.data_dir)
    assert status == 1 and "1 data keys, 1 by the secret before" in told, said
    with house.service() as service:
        assert reads(service, house.token) and reads(service, house.key)
        late = service.mint(house.token, "admin")["key"]
        session = logged_in(service)
        # It says so while the service runs.
        assert admin("secrets", house.data_dir)[:1] == (0,)
    assert wrapped not in house.rings(), "it is wrapped anew in its place"
    house.end("service")
    assert admin("secrets", house.data_dir)[0] == 0
    status, _, said = admin("verify", house.data_dir)
    assert status == 0, said
    with house.service() as service:
        assert session is not None and reads(service, session) and reads(service, late)
        assert not reads(service, house.token) and not reads(service, house.key)
        assert logged_in(service)


def test_without_the_one_before_the_start_is_refused_with_a_sentence(house: Installation) -> None:
    house.exchange("service")
    before = (house.data_dir / "secrets" / "service_previous").read_text()
    house.end("service")
    kept = house.rings()
    with pytest.raises(WrongServiceKey, match=r"as secrets\.service_previous"), house.service():
        pass
    status, _, said = admin("verify", house.data_dir)
    assert status == 1 and "secrets.service_previous" in said
    assert house.rings() == kept
    (house.data_dir / "secrets" / "service_previous").write_text(before)
    with house.service() as service:
        assert reads(service, house.token)


def test_an_exchange_that_is_broken_off_goes_on(house: Installation) -> None:
    with house.service() as service:
        for name in ("bob", "cy", "dan"):
            service.register(f"{name}@example.org")
    old = Secrets.load(house.data_dir / "secrets", create=False).service
    new, path = system.token_bytes(32), house.shard / KEYS_FILE
    whole = path.read_bytes()
    Keyring.open(path, new, create=False, earlier_keys=[old]).close()
    done = path.read_bytes()
    changed = [at for at in range(0, len(whole), 64) if whole[at : at + 64] != done[at : at + 64]]
    assert len(changed) == 4
    # As a crash leaves it that let two of the records reach the disk.
    half = whole + done[len(whole) :]
    for at in changed[:2]:
        half = half[:at] + done[at : at + 64] + half[at + 64 :]
    path.write_bytes(half)
    for alone in (old, new):
        with pytest.raises(WrongServiceKey):
            Keyring.open(path, alone, create=False)
    ring = Keyring.open(path, new, create=False, earlier_keys=[old])
    assert ring.wrapped_otherwise() == 0 and path.read_bytes() == done
    ring.close()


def test_what_was_wrapped_anew_reaches_a_copy_of_the_ring(house: Installation) -> None:
    """A log that ships the ring learns of it, also after a start that had no time to tell."""
    old = Secrets.load(house.data_dir / "secrets", create=False).service
    new, path = system.token_bytes(32), house.shard / KEYS_FILE
    known = len(path.read_bytes()) // 64
    ring = Keyring.open(path, new, create=False, earlier_keys=[old])
    assert any(record[:1] == b"K" for _, record in ring.changes(known, all_shredded=False))
    ring.close()
    ring = Keyring.open(path, new, create=False)
    assert any(record[:1] == b"K" for _, record in ring.changes(known, all_shredded=True))
    ring.close()


def test_a_new_pepper_finds_what_the_one_before_has_digested(house: Installation) -> None:
    house.exchange("pepper")
    with house.service() as service:
        assert logged_in(service) and reads(service, house.key)
        taken = {"email": EMAIL, "password": PASSWORD, "full_name": "Another"}
        assert service.request("POST", "/v1/auth/register", taken).status_code == 409
        body = {"content": "The key lies under the flowerpot."}
        again = service.request("POST", "/v1/memories", body, who=house.key, Idempotency_Key="k")
        assert again.json()["id"] == house.made
        late = service.mint(house.token, "admin")["key"]
    status, told, said = admin("verify", house.data_dir, "--repair")
    assert status == 0 and "2 repaired, 0 left" in told, said
    house.end("pepper")
    with house.service() as service:
        assert logged_in(service) and reads(service, late)
        assert not reads(service, house.key)


def test_the_operator_has_two_tokens_for_a_while(house: Installation) -> None:
    def accounts(service: InProcess, token: str) -> int:
        return service.request("POST", "/v1/internal/accounts", {"slot": 0}, who=token).status_code

    first = Secrets.load(house.data_dir / "secrets", create=False).operator_token
    house.exchange("operator_token")
    second = Secrets.load(house.data_dir / "secrets", create=False).operator_token
    with house.service() as service:
        assert accounts(service, first) == accounts(service, second) == 200
    house.end("operator_token")
    with house.service() as service:
        assert (accounts(service, first), accounts(service, second)) == (401, 200)


def test_commands_take_the_secrets_that_settings_give(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRET_NAMES:
        file = house.data_dir / "secrets" / name
        monkeypatch.setenv(f"MNEME_SECRETS__{name.upper()}", file.read_text().strip())
        file.unlink()
    # The tests' own embedder made the vectors, and no setting names it.
    monkeypatch.setenv("MNEME_PREVIOUS_EMBEDDER__BACKEND", "lost")
    status, told, said = admin("accounts", house.data_dir)
    assert status == 0 and EMAIL in told, said


def test_a_secret_before_is_judged_like_the_present_one(tmp_path: Path) -> None:
    given = Secrets.generate()
    with pytest.raises(SecretsError, match="service_previous"):
        replace(given, service_previous=b"short")
    with pytest.raises(SecretsError, match="operator_token_previous"):
        replace(given, operator_token_previous="short")
    assert "previous" not in repr(replace(given, pepper_previous=b"p" * 32))
