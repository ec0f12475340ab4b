"""Where an installation without a checkout keeps its data and finds its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.settings import Settings
from runtime.settings.places import CHECKOUT_CONFIG, default_config_file, default_data_dir

NO_CHECKOUT = Path("/nowhere/configs/local.yaml")


def test_a_checkout_keeps_its_data_beside_it() -> None:
    assert default_data_dir({"HOME": "/home/ada"}) == Path("data")
    assert Settings.load(environ={"HOME": "/home/ada"}) == Settings()
    assert default_config_file({}) == CHECKOUT_CONFIG


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.local/share/mneme"),
        ({"HOME": "/home/ada", "XDG_DATA_HOME": "/srv/data"}, "/srv/data/mneme"),
        ({"HOME": "/home/ada", "XDG_DATA_HOME": "relative"}, "/home/ada/.local/share/mneme"),
    ],
)
def test_a_tool_keeps_its_data_where_the_user_s_are(
    environ: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_data_dir(environ, NO_CHECKOUT) == Path(expected)


def test_data_that_lie_here_are_found_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    elsewhere = default_data_dir({"HOME": "/home/ada"}, NO_CHECKOUT)
    assert elsewhere == Path("/home/ada/.local/share/mneme")  # it might be anybody's folder
    (tmp_path / "data" / "layout.json").write_text("{}")
    assert default_data_dir({"HOME": "/home/ada"}, NO_CHECKOUT) == Path("data")


def test_the_user_s_configuration_is_found(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert default_config_file(environ, NO_CHECKOUT) is None
    (tmp_path / "mneme").mkdir()
    own = tmp_path / "mneme" / "mneme.yaml"
    own.write_text("engine: local\n")
    assert default_config_file(environ, NO_CHECKOUT) == own
