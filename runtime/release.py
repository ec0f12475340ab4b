"""Which release answers: the version and the build that every answer names."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path


def service_version() -> str:
    """The semantic version of the installed package."""
    return importlib.metadata.version("mneme")


def service_build() -> str:
    """The short commit hash of this checkout or of the installed package's origin; "dev" where
    neither is known.
    """
    commit = (
        _commit_of_checkout(Path(__file__).resolve().parent.parent / ".git") or _commit_of_package()
    )
    return commit[:7] if commit else "dev"


def _commit_of_checkout(git: Path) -> str | None:
    try:
        head = (git / "HEAD").read_text().strip()
        reference = head.removeprefix("ref: ")
        if reference == head:
            return head
        if (git / reference).exists():
            return (git / reference).read_text().strip()
        packed = (line.split() for line in (git / "packed-refs").read_text().splitlines())
        return next((words[0] for words in packed if words[1:] == [reference]), None)
    except OSError:
        return None


def _commit_of_package() -> str | None:
    origin = importlib.metadata.distribution("mneme").read_text("direct_url.json")
    return json.loads(origin).get("vcs_info", {}).get("commit_id") if origin else None
