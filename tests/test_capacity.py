"""The page on capacity prints what the command prints."""

from __future__ import annotations

import re
import shlex
import sys

import pytest

from loadtests import capacity
from tests.support import ROOT

PAGE = (ROOT / "docs/scale.md").read_text()
EXAMPLES = re.findall(
    r"^\$ \.venv/bin/python loadtests/capacity\.py (.*)\n((?:(?!\$|```).*\n)+)", PAGE, re.M
)


@pytest.mark.parametrize(("arguments", "printed"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_what_the_command_prints(
    arguments: str, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(sys, "argv", ["capacity.py", *shlex.split(arguments)])
    capacity.main()
    assert capsys.readouterr().out == printed


def test_the_page_has_examples_and_the_constants() -> None:
    assert len(EXAMPLES) == 3
    small, large = capacity.RESIDENT_BYTES / 1_000, capacity.RESIDENT_LARGE_BYTES / 1_000
    for figure in (
        f"{capacity.DISK_BYTES / 1_000:.2f} KB × {capacity.ROOM}",
        f"memories × {small} KB; {large} KB",
        f"{capacity.SEARCH_MS} ms + {capacity.SEARCH_MS_PER_100_000} ms for each 100,000",
        f"{capacity.READ_MS} and {capacity.WRITE_MS} ms in the shard",
    ):
        assert figure in PAGE
