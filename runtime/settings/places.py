"""Where a configuration file and the data directory are when nobody names them.

In a checkout they are its own: configs/local.yaml, and `data` in the directory that the command is
run in. Installed as a tool, the service uses the user's directories, by the XDG rule or, on macOS
and Windows, by theirs; but a `data` here that holds a service's data is found and kept.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

APPLICATION, CONFIG_FILE = "mneme", "mneme.yaml"
HERE = Path("data")
# What a data directory of this service has, whatever else it has (runtime/installation/layout.py).
MARK = "layout.json"
CHECKOUT = Path(__file__).resolve().parents[2]
CHECKOUT_CONFIG = CHECKOUT / "configs" / "local.yaml"


def default_data_dir(environ: Mapping[str, str], checkout: Path = CHECKOUT_CONFIG) -> Path:
    """The data directory of whoever names none."""
    if checkout.exists() or (HERE / MARK).is_file():
        return HERE
    return _of_user(environ, "XDG_DATA_HOME", ".local/share")


def default_config_file(
    environ: Mapping[str, str], checkout: Path = CHECKOUT_CONFIG
) -> Path | None:
    """The configuration file of whoever names none, None where there is none."""
    own = _of_user(environ, "XDG_CONFIG_HOME", ".config") / CONFIG_FILE
    return next((path for path in (checkout, own) if path.is_file()), None)


def _of_user(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    """This application's own directory of a kind. A relative path in the variable does not count,
    as the XDG rule has it.
    """
    named = environ.get(variable, "")
    if named and Path(named).is_absolute():
        return Path(named) / APPLICATION
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / APPLICATION
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / APPLICATION
    return home / below_home / APPLICATION
