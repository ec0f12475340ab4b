"""The generated part of the TypeScript client is from the OpenAPI document that is kept, and has
every operation. What it does is tested by `make test-clients`.
"""

from __future__ import annotations

import hashlib
import json
import re

import pytest

import serve_app
from runtime.cli.export_openapi import exported
from tests.support import ROOT

CLIENT = ROOT / "clients/typescript"
OWN_CALLS = {"billing.stripe_events"}  # Stripe's to call


@pytest.fixture(scope="module")
def document() -> bytes:
    return exported(serve_app.registry(), serve_app.Settings())


@pytest.mark.parametrize("name", ["schema.ts", "operations.ts"])
def test_the_generated_files_are_of_this_document(name: str, document: bytes) -> None:
    text = (CLIENT / "src" / name).read_text(encoding="utf-8")
    digest = re.search(r"^// SHA-256 of the document: (\w{64})$", text, re.MULTILINE)
    assert digest and digest[1] == hashlib.sha256(document).hexdigest(), "run `make client`"


def test_every_operation_is_sent_by_its_method_and_path(document: bytes) -> None:
    """Counted here without the generator's help."""
    text = (CLIENT / "src/operations.ts").read_text(encoding="utf-8")
    sent = set(re.findall(r'method: "(\w+)",\n +path: "([^"]+)"', text))
    described = {
        (verb.upper(), path)
        for path, verbs in json.loads(document)["paths"].items()
        for verb, operation in verbs.items()
        if operation["operationId"] not in OWN_CALLS and ".alias" not in operation["operationId"]
    }
    assert sent == described


def test_the_versions_of_both_clients_are_the_same() -> None:
    python = re.search(
        r'^version = "(.+)"$', (ROOT / "clients/python/pyproject.toml").read_text(), re.MULTILINE
    )
    assert python and json.loads((CLIENT / "package.json").read_text())["version"] == python[1]
