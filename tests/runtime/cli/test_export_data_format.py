"""DATA.md says what the declarations say."""

from __future__ import annotations

import serve_app
from runtime.cli.export_data_format import document
from tests.support import ROOT


def test_the_file_is_the_generated_document() -> None:
    assert (ROOT / "DATA.md").read_text() == document(serve_app.registry()), "run `make docs`"


def test_every_table_is_listed_once() -> None:
    text = document(serve_app.registry())
    for name in serve_app.registry().tables:
        assert text.count(f"| `{name}` |") == 1, name
