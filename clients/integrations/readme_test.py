"""The README of the integration in whose folder this runs does what it says, word for word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_readme_prints_what_it_says() -> None:
    blocks = FENCED.findall(Path("README.md").read_text(encoding="utf-8"))
    at = next(at for at, (language, _) in enumerate(blocks) if language == "python")
    program, printed = blocks[at][1], blocks[at + 1][1]
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout == printed
