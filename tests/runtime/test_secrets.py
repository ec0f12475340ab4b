from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from runtime.secrets import NAMES, Secrets, SecretsError


def test_secrets_are_made_once_with_mode_0600_and_read_ever_after(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "secrets"
    made = Secrets.load(directory, create=True)
    assert (len(made.service), len(made.pepper)) == (32, 32)
    assert made.operator_token.startswith("mem_op_")
    assert sorted(path.name for path in directory.iterdir()) == sorted(NAMES)
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700
    assert Secrets.load(directory, create=True) == made
    assert Secrets.load(directory, create=False) == made


def test_two_installations_share_nothing(tmp_path: Path) -> None:
    one, other = (Secrets.load(tmp_path / name, create=True) for name in ("one", "other"))
    assert not {one.service, one.pepper, one.operator_token} & {other.service, other.pepper, other.operator_token}


def test_a_missing_secret_is_refused_by_name_unless_it_may_be_made(tmp_path: Path) -> None:
    Secrets.load(tmp_path, create=True)
    (tmp_path / "pepper").unlink()
    with pytest.raises(SecretsError, match="'pepper' is missing"):
        Secrets.load(tmp_path, create=False)
    assert not (tmp_path / "pepper").exists()


def test_given_secrets_win_and_are_never_written(tmp_path: Path) -> None:
    given = {"service": "11" * 32, "pepper": "22" * 32, "operator_token": "t" * 40}
    loaded = Secrets.load(tmp_path, create=True, given=given)
    assert loaded == Secrets(b"\x11" * 32, b"\x22" * 32, "t" * 40)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"service": "11" * 31}, "'service' of the settings must be 32 bytes"),
        ({"pepper": "no hex"}, "'pepper' of the settings is not written as hex"),
        ({"operator_token": "short"}, "'operator_token' must be 32 to 255"),
        ({"operator_token": "with a space " * 4}, "visible ASCII"),
        ({"salt": "11" * 32}, "no secret named 'salt'"),
    ],
)
def test_a_bad_given_secret_is_refused_in_one_sentence_without_its_value(tmp_path: Path, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SecretsError, match=sentence) as refused:
        Secrets.load(tmp_path, create=True, given=given)
    assert not any(value in str(refused.value) for value in given.values())


@pytest.mark.parametrize("damage", [b"", b"abcd\n", b"\xff\xfe" * 20])
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, damage: bytes) -> None:
    Secrets.load(tmp_path, create=True)
    (tmp_path / "service").write_bytes(damage)
    with pytest.raises(SecretsError, match="'service'"):
        Secrets.load(tmp_path, create=True)
    assert (tmp_path / "service").read_bytes() == damage


def test_an_unfinished_file_of_a_crash_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "service.new").write_text("half")
    Secrets.load(tmp_path, create=True)
    assert not (tmp_path / "service.new").exists()


def test_secrets_pickle_and_show_nothing() -> None:
    secrets = Secrets.generate()
    assert pickle.loads(pickle.dumps(secrets)) == secrets
    assert repr(secrets) == "Secrets()"
