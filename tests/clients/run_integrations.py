"""Runs the tests of clients/integrations, each package as whoever uses it has it:

    python -m tests.clients.run_integrations [NAME …]

For each one it builds the wheels of the package and of the Python client, installs them beside the
framework into an environment of their own (build/integrations/NAME), and runs the package's tests
and its README there, against a real service. The tests learn of it by $MNEME_BASE_URL and
$MNEME_API_KEY, as the packages do. The status is 0 when all have passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import ROOT
from tests.support.served import Served, served

INTEGRATIONS = ROOT / "clients/integrations"
BUILT = ROOT / "build/integrations"
INSTALL_SECONDS_MAX = 1_800
TEST_SECONDS_MAX = 600
PIP = ("-m", "pip", "-qq", "--disable-pip-version-check")


def names() -> list[str]:
    """The integrations that there are."""
    return sorted(path.parent.name for path in INTEGRATIONS.glob("*/pyproject.toml"))


def installed(name: str) -> Path:
    """The interpreter of an environment with the framework, and the package from its wheel."""
    environment, wheels = BUILT / name / "venv", BUILT / name / "wheels"
    python = environment / "bin/python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(environment))
    for old in wheels.glob("*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as copies:  # a build leaves things in its folder
        for source in (ROOT / "clients/python", INTEGRATIONS / name):
            copy = shutil.copytree(source, Path(copies) / source.name)
            _run(str(python), *PIP, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(copy))
    client = next(wheels.glob("mneme_client-*.whl"))
    (package,) = set(wheels.glob("*.whl")) - {client}
    _run(str(python), *PIP, "install", str(client), f"{package}[test]")
    # The same version may have been installed from an older wheel.
    again = ("--no-deps", "--force-reinstall", str(client), str(package))
    _run(str(python), *PIP, "install", *again)
    return python


def passed(name: str, service: Served) -> bool:
    """Whether the package's tests pass, and its README prints what it says."""
    python = installed(name)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "MNEME_BASE_URL": service.url,
        "MNEME_API_KEY": service.register(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",  # the wheel is imported, not the sources beside the tests
    }
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".")
    ended = subprocess.run(
        [str(python), *pytest, "tests", str(INTEGRATIONS / "readme_test.py")],
        cwd=INTEGRATIONS / name,
        env=environment,
        timeout=TEST_SECONDS_MAX,
        check=False,
    )
    return ended.returncode == 0


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX)


def main() -> int:
    asked = sys.argv[1:] or names()
    if unknown := set(asked) - set(names()):
        print(f"There is no {', '.join(sorted(unknown))}: {', '.join(names())}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory, served(Path(directory) / "data") as service:
        outcomes = {name: passed(name, service) for name in asked}
    for name, well in outcomes.items():
        print(f"{name}: {'passed' if well else 'FAILED'}")
    return 0 if all(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
