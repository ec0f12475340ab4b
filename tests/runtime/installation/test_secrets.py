from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.installation import SECRET_NAMES, Secrets, SecretsError
from runtime.installation.secrets import PEPPER_MARK_FILE
from runtime.settings import Settings
from tests.support import ROOT


def test_secrets_are_made_once_with_mode_0600_and_read_ever_after(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "secrets"
    made = Secrets.load(directory, create=True)
    assert (len(made.service), len(made.pepper)) == (32, 32)
    assert made.operator_token.startswith("mem_op_")
    assert sorted(path.name for path in directory.iterdir()) == sorted(SECRET_NAMES)
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700
    assert Secrets.load(directory, create=True) == made
    assert Secrets.load(directory, create=False) == made


def test_two_installations_share_nothing(tmp_path: Path) -> None:
    one, other = (Secrets.load(tmp_path / name, create=True) for name in ("one", "other"))
    assert not {one.service, one.pepper, one.operator_token} & {
        other.service,
        other.pepper,
        other.operator_token,
    }


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
def test_a_bad_given_secret_is_refused_in_one_sentence_without_its_value(
    tmp_path: Path, given: dict[str, str], sentence: str
) -> None:
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


GIVEN = {
    "secrets.service": "5" * 64,
    "secrets.pepper": "6" * 64,
    "secrets.operator_token": "mem_op_" + "7" * 64,
}


def test_production_wants_its_secrets_given_or_to_be_told_otherwise(tmp_path: Path) -> None:
    def secrets(**overrides: object) -> Secrets:
        return Secrets.of(
            Settings.load(
                None, {"data_dir": str(tmp_path), "environment": "production", **overrides}
            ),
            create=True,
        )

    for missing in (*GIVEN, None):
        if missing is not None:
            with pytest.raises(SecretsError, match=missing.replace(".", r"\.")):
                secrets(**{name: text for name, text in GIVEN.items() if name != missing})
    assert not (tmp_path / "secrets").exists(), "nothing was generated"
    given = secrets(**GIVEN)
    assert (given.service, given.pepper, given.operator_token) == (
        b"\x55" * 32,
        b"\x66" * 32,
        GIVEN["secrets.operator_token"],
    )
    assert not (tmp_path / "secrets").exists(), "what is given is never written to disk"
    assert secrets(**{"secrets.allow_generated": True}) == Secrets.load(
        tmp_path / "secrets", create=False
    )


def test_an_installation_at_home_makes_its_own(tmp_path: Path) -> None:
    settings = Settings.load(None, {"data_dir": str(tmp_path)})
    assert Secrets.of(settings, create=True) == Secrets.of(settings)


def test_another_pepper_than_the_data_was_made_with_is_refused(tmp_path: Path) -> None:
    def secrets(pepper: str, before: str | None = None) -> Secrets:
        given = {"data_dir": str(tmp_path), **GIVEN, "secrets.pepper": pepper * 64}
        if before is not None:
            given["secrets.pepper_previous"] = before * 64
        return Secrets.of(Settings.load(None, given), create=True)

    secrets("6").mark_pepper(tmp_path)
    secrets("6").mark_pepper(tmp_path)
    with pytest.raises(SecretsError, match="pepper_previous") as refused:
        secrets("8")
    assert "8" * 8 not in str(refused.value)
    both = secrets("8", before="6")
    both.mark_pepper(tmp_path)
    assert secrets("8").pepper == both.pepper
    with pytest.raises(SecretsError, match="was made with"):
        secrets("6")
    (tmp_path / PEPPER_MARK_FILE).unlink()
    assert secrets("6").pepper != both.pepper


def test_a_process_with_secrets_is_closed_to_others() -> None:
    """PR_GET_DUMPABLE is 0: no core dump, and /proc shows its memory and environment to nobody else
    of its user.
    """
    script = (
        "import ctypes\n"
        "from runtime.installation import Secrets\n"
        "dumpable = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"
        "before, secrets = dumpable(), Secrets.generate()\n"
        "print(before, dumpable())\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, cwd=ROOT
    )
    assert shown.stdout == b"1 0\n"
