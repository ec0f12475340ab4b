"""Two real servers, and an account that moves from one to the other over sockets, as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.served import Served, served

MEMORIES = 300
PIECE_LINES = 120


def text(number: int) -> str:
    return (
        f"The ferry number {number} leaves the harbour at dawn and carries bread, copper and "
        "violins to the island. " * 4
    )


def bearer(service: Served, email: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.register(email)}"}


def download(service: Served, headers: dict[str, str], path: Path) -> int:
    """Save an export as it comes; -> how many pieces it came in."""
    pieces = 0
    with (
        service.http.stream("GET", "/v1/account/export", headers=headers) as answer,
        path.open("wb") as file,
    ):
        assert (answer.status_code, answer.headers["Transfer-Encoding"]) == (200, "chunked")
        for piece in answer.iter_raw():
            pieces += 1
            file.write(piece)
    return pieces


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    return [entry["record"] for line in path.open() if (entry := json.loads(line))["kind"] == kind]


@pytest.mark.slow
def test_an_account_moves_as_a_file(tmp_path: Path) -> None:
    with served(tmp_path / "here") as here, served(tmp_path / "there") as there:
        mine = bearer(here, "ada@example.com")
        for start in range(0, MEMORIES, 100):
            items = [
                {"content": text(number), "metadata": {"n": number}}
                for number in range(start, start + 100)
            ]
            answer = here.http.post(
                "/v1/memories/batch",
                json={"memories": items},
                headers={**mine, "Prefer": "respond-async"},
            )
            assert answer.status_code == 202, answer.text
        pieces = download(here, mine, tmp_path / "export.jsonl")
        assert pieces > MEMORIES / 200
        with (
            httpx.Client(base_url=here.url) as leaver,
            leaver.stream("GET", "/v1/account/export", headers=mine) as answer,
        ):
            next(answer.iter_raw())  # a client that leaves in the middle holds nothing up
        manifest = records(tmp_path / "export.jsonl", "manifest")
        assert [entry["kinds"]["memory"]["count"] for entry in manifest] == [MEMORIES]

        # As a file that is larger than a body may be would go: in pieces, split between lines.
        lines = (tmp_path / "export.jsonl").read_bytes().splitlines(keepends=True)[:-1]
        new_home = bearer(there, "ada@elsewhere.example")
        created = 0
        for start in range(0, len(lines), PIECE_LINES):
            piece = b"".join(lines[start : start + PIECE_LINES])
            answer = there.http.post(
                "/v1/account/import",
                content=piece,
                headers={**new_home, "Content-Type": "application/x-ndjson"},
            )
            assert answer.status_code == 200, answer.text
            created += answer.json()["created"].get("memory", 0)
        assert created == MEMORIES
        download(there, new_home, tmp_path / "again.jsonl")
        assert [
            (m["content"], m["metadata"], m["created_at"])
            for m in records(tmp_path / "again.jsonl", "memory")
        ] == [
            (m["content"], m["metadata"], m["created_at"])
            for m in records(tmp_path / "export.jsonl", "memory")
        ]
        assert "Traceback" not in here.errors + there.errors
