"""An account's export, and its import elsewhere, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.support.in_process import InProcess


def exported(service: InProcess, who: str) -> bytes:
    return service.request("GET", "/v1/account/export", who=who).content


def brought(service: InProcess, who: str, content: bytes) -> Any:
    """What the import told."""
    answer = service.request(
        "POST", "/v1/account/import", content, who=who, Content_Type="application/x-ndjson"
    )
    assert answer.status_code == 200, answer.text
    return answer.json()
