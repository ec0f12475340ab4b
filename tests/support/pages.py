"""The documents that people read, and the blocks of code in them.

The language of a fence says what it is: `bash` and `python` run; `console` is a session as it went,
with what was typed after `$ `; `output` is what the block before it prints; `json`, `yaml` and
`toml` are parsed; `ts` runs with the TypeScript client's tests; `text` is for reading. A block that
cannot run has `<!-- not run: REASON -->` in the line before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT

LANGUAGES = {"bash", "python", "console", "output", "json", "yaml", "toml", "ts", "text"}
READ = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Documents of the site beside README.md and docs/.
BESIDE = [
    *sorted(set(ROOT.glob("*.md")) - {ROOT / "README.md"}),
    ROOT / "clients/python/README.md",
    ROOT / "clients/typescript/README.md",
    ROOT / "loadtests/RESULTS.md",
    ROOT / "tests/PROMISES.md",
]
DOCUMENTS = [*READ, *BESIDE]
_FENCE = re.compile(
    r"(?:^<!-- not run: ([^\n]*) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fence of a document. not_run: the reason, "" when it runs."""

    not_run: str
    language: str
    text: str


def blocks(path: Path) -> list[Block]:
    return [Block(*found) for found in _FENCE.findall(path.read_text(encoding="utf-8"))]


def prose(path: Path) -> str:
    """What stands between the fences."""
    return _FENCE.sub("", path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))
