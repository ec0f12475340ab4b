"""A fresh environment in which packages with plugins are installed beside the service: a virtual
environment of its own that sees this checkout, and the packages that the suite runs with.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.served import command

COMMAND_SECONDS_MAX = 120
SOURCES = (ROOT, ROOT / "runtime" / "author")


class PluginEnvironment:
    """One environment in a directory, with these packages, each a folder with its pyproject.toml.
    `program` is its `mneme`, `copies` the packages as they were installed.
    """

    def __init__(self, directory: Path, *packages: Path):
        home = directory / "environment"
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        (own,) = (home / "lib").glob("python3*/site-packages")
        beside = Path(pytest.__file__).parent.parent
        (own / "service.pth").write_text("\n".join(map(str, (*SOURCES, beside))) + "\n")
        self.program = str(home / "bin" / "mneme")
        script = f"#!{self.python}\nimport sys\nfrom runtime.cli import main\nsys.exit(main())\n"
        Path(self.program).write_text(script)
        Path(self.program).chmod(0o755)
        self.copies = copies = [directory / package.name for package in packages]
        for package, copy in zip(packages, copies, strict=True):
            if package != copy:
                shutil.copytree(package, copy)
        install = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        subprocess.run(
            [*install, "--no-index", "--no-deps", "--no-build-isolation", *map(str, copies)],
            check=True,
            timeout=COMMAND_SECONDS_MAX,
        )

    def pytest(self, directory: Path) -> str:
        """Run the tests of a package there; -> what is said of them. Raises AssertionError."""
        words = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
        status, said, _ = self._run(words)
        assert status == 0, said
        return said

    def mneme(self, *arguments: object) -> tuple[int, str, str]:
        """Run `mneme` there; -> (exit status, standard output, standard error)."""
        return self._run([self.program, *map(str, arguments)])

    def refusal(self, data_dir: Path, **settings: Any) -> str:
        """What a start says that must fail."""
        given = {name.replace("__", "."): value for name, value in settings.items()}
        status, _, err = self._run(command(data_dir, "local", given, program=self.program))
        assert status == 1, err
        return err

    def _run(self, words: list[str]) -> tuple[int, str, str]:
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            cwd=ROOT,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr
