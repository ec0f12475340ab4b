"""The generated part of the client is what the OpenAPI document says now, whole, and its types
hold.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mneme_client import AsyncMneme, Mneme

import serve_app
from runtime.cli.export_openapi import exported
from tests.support import ROOT

CLIENT = ROOT / "clients/python"


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(CLIENT)  # as for the script, which imports what lies beside it
        yield importlib.import_module("generate")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(exported(serve_app.registry(), serve_app.Settings()))


def test_the_generated_files_are_up_to_date(generate: ModuleType, document: dict[str, Any]) -> None:
    for name, text in generate.generated(document).items():
        assert (CLIENT / "mneme_client" / name).read_text(encoding="utf-8") == text, (
            f"{name}: run `make client`"
        )


@pytest.mark.parametrize(
    "client", [Mneme(), AsyncMneme()], ids=lambda client: type(client).__name__
)
def test_every_operation_is_a_method(document: dict[str, Any], client: Any) -> None:
    """All but one, which is Stripe's to call; counted here without the generator's help."""
    missing = set()
    for verbs in document["paths"].values():
        for operation in verbs.values():
            *groups, name = operation["operationId"].removesuffix(".alias1").split(".")
            found = client
            for group in groups:
                found = getattr(found, group)
            method = "__call__" if name == groups[-1] else {"import": "import_"}.get(name, name)
            if not callable(getattr(found, method, None)):
                missing.add(operation["operationId"])
    assert missing == {"billing.stripe_events"}


def test_the_types_hold(tmp_path: Path) -> None:
    """mypy, strict, over the package and over a sample of its use."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "pyproject.toml",
        "--cache-dir",
        str(tmp_path),
    ]
    command += ["mneme_client", str(ROOT / "tests/clients/typed_sample.py")]
    checked = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
