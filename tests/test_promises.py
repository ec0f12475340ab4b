"""Every promise of tests/PROMISES.md names tests that exist, and documents name files that do."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT

PROMISES = (ROOT / "tests/PROMISES.md").read_text()


def test_every_promise_names_a_test_that_exists() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ")][1:]
    held_by = {row: re.findall(r"`((?:tests|loadtests)/[^`]+)`", row.split("|")[2]) for row in rows}
    assert rows and not [row for row, files in held_by.items() if not files]
    assert not [file for files in held_by.values() for file in files if not (ROOT / file).exists()]


@pytest.mark.parametrize(
    "document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "OPERATIONS.md", "SECURITY.md"]
)
def test_a_document_names_files_that_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    floors = "storage|runtime|plugins|tests|loadtests|configs|clients|examples"
    named = re.findall(rf"`((?:{floors})/[\w./-]*)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
