"""The OpenAPI document is what it was: clients are generated from it, so it changes on purpose.

Whoever means to change it writes the new digest with `make client`, which generates the Python
client anew as well, and says in CHANGELOG.md what is different.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import serve_app
from runtime.cli.export_openapi import exported

DIGEST = Path(__file__).with_name("openapi.sha256")


def test_the_openapi_document_is_the_one_that_is_kept() -> None:
    digest = hashlib.sha256(exported(serve_app.registry(), serve_app.Settings())).hexdigest()
    assert digest == DIGEST.read_text().strip(), "make client writes it anew, if that is meant"
