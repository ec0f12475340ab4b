"""Runs the tests of clients/integrations, each package as whoever uses it has it:

    python -m tests.clients.run_integrations [NAME …]

For each one it builds the wheels of the package and of the Python client and follows the README
with them: installs both into an environment of their own (build/integrations/NAME), empty at first,
and runs its program there. Then it adds what the tests need, and runs them. All of it is against a
real service, which the packages learn of by $MNEME_BASE_URL and $MNEME_API_KEY. The status is 0
when all have passed.
"""

from __future__ import annotations

import os
import re
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
TESTS_SECONDS_MAX = 1_800
STALL_SECONDS_MAX = 180  # of one test; then where it stands is shown
INSTALLING = re.compile(r"^pip install ((?:\./\S+ ?)+)$", re.MULTILINE)
PIP = ("-m", "pip", "-qq", "--disable-pip-version-check")


def names() -> list[str]:
    """The integrations that there are."""
    return sorted(path.parent.name for path in INTEGRATIONS.glob("*/pyproject.toml"))


def built(name: str, python: Path) -> dict[str, str]:
    """The wheels of the client and of a package, by what their sources are called in its README."""
    wheels = BUILT / name / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as copies:  # a build leaves things in its folder
        for source in (ROOT / "clients/python", INTEGRATIONS / name):
            copy = shutil.copytree(source, Path(copies) / source.name)
            _run(str(python), *PIP, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(copy))
    client = next(wheels.glob("mneme_client-*.whl"))
    (package,) = set(wheels.glob("*.whl")) - {client}
    return {"./clients/python": str(client), f"./clients/integrations/{name}": str(package)}


def installed(name: str, python: Path) -> str:
    """Install a package as its README says, from the wheels; -> the package's wheel."""
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(BUILT / name / "venv"))
    wheels = built(name, python)
    said = INSTALLING.search((INTEGRATIONS / name / "README.md").read_text())
    assert said is not None, name
    _run(str(python), *PIP, "install", *(wheels[source] for source in said[1].split()))
    # The same version may have been installed from an older wheel.
    _run(str(python), *PIP, "install", "--no-deps", "--force-reinstall", *wheels.values())
    return wheels[f"./clients/integrations/{name}"]


def passed(name: str, service: Served) -> bool:
    """Whether the package's README prints what it says, and its tests pass in time."""
    python = BUILT / name / "venv/bin/python"
    package = installed(name, python)
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "MNEME_BASE_URL": service.url,
        "MNEME_API_KEY": service.register(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",  # the wheel is imported, not the sources beside the tests
    }

    def succeeds(*arguments: str) -> bool:
        command = [str(python), *arguments]
        try:
            ended = subprocess.run(
                command,
                cwd=INTEGRATIONS / name,
                env=environment,
                timeout=TESTS_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"{name} took {TESTS_SECONDS_MAX} seconds.", file=sys.stderr)
            return False
        return ended.returncode == 0

    if not succeeds(str(INTEGRATIONS / "follow_readme.py")):
        return False
    _run(str(python), *PIP, "install", f"{package}[test]")
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".")
    return succeeds(*pytest, "-o", f"faulthandler_timeout={STALL_SECONDS_MAX}", "tests")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX)


def main() -> int:
    asked = sys.argv[1:] or names()
    if unknown := set(asked) - set(names()):
        print(f"There is no {', '.join(sorted(unknown))}: {', '.join(names())}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory, served(Path(directory) / "data") as service:
        outcomes = {name: passed(name, service) for name in asked}
        if not all(outcomes.values()):
            ended = service.process.poll()
            print("The service", "runs." if ended is None else f"ended: {ended}.", file=sys.stderr)
            print(service.errors, file=sys.stderr)
    for name, well in outcomes.items():
        print(f"{name}: {'passed' if well else 'FAILED'}")
    return 0 if all(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
