"""Does what the README in this folder says, word for word, and prints nothing where that comes out
as it says. The boxes in which a framework tells what it does are its own. It needs nothing beside
what the README installs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BOXED = re.compile(r"^(╭|│|╰).*\n\n?", re.MULTILINE)
LINES_MAX = 10
SECONDS_MAX = 300

blocks = FENCED.findall(Path("README.md").read_text(encoding="utf-8"))
at = next(at for at, (language, _) in enumerate(blocks) if language == "python")
program, printed = blocks[at][1], blocks[at + 1][1]
if len([line for line in program.splitlines() if line.strip()]) > LINES_MAX:
    sys.exit(f"The README's program has more than {LINES_MAX} lines.")
told = subprocess.run(
    [sys.executable, "-c", program],
    capture_output=True,
    text=True,
    timeout=SECONDS_MAX,
    check=False,
)
if told.returncode or BOXED.sub("", told.stdout) != printed:
    sys.exit(f"The README says:\n{printed}and it is:\n{told.stdout}{told.stderr}")
