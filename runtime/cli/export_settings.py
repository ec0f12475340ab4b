"""The table of settings in docs/configuration.md, generated between its two marks.

`python -m runtime.cli.export_settings docs/configuration.md` (`make docs`) writes it into
the file; a test compares it with the code.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from runtime.settings import known_settings

BEGIN, END = "<!-- settings: written by make docs -->", "<!-- end of settings -->"


def table() -> str:
    """Every setting of the service with its default and meaning, as a Markdown table."""
    settings = importlib.import_module("serve_app").Settings
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {_default(field.default)} | {field.description} |"
        for name, field in known_settings(settings).items()
    ]
    return "\n".join(lines)


def with_table(document: str) -> str:
    """The document with the table between its marks. ValueError when they are not there."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"The document lacks {BEGIN} or {END}.")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _default(default: Any) -> str:
    if (
        default is PydanticUndefined
        or default is None
        or isinstance(default, SecretStr)
        or default == ()
    ):
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
