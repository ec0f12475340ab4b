"""python -m mneme_client: what its four commands print, and how they fail."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_client.__main__ import main

from tests.clients.endpoint import answers, endpoint, hangs_up
from tests.support.over_http import OverHttp, over_http


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("command")) as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(service: OverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(service, "token"):
        service.token = service.register()
    monkeypatch.setenv("MNEME_BASE_URL", service.url)
    monkeypatch.setenv("MNEME_API_KEY", service.token)


def test_what_is_added_is_found_answered_and_exported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (
        main(
            [
                "add",
                "Ada must not eat nuts.",
                "--user-id",
                "ada",
                "--tag",
                "food",
                "--tag",
                "health",
            ]
        )
        == 0
    )
    memory_id = capsys.readouterr().out.strip()
    assert main(["search", "Ada nuts", "--user-id", "ada", "--limit", "1"]) == 0
    score, _, content = capsys.readouterr().out.strip().partition("  ")
    assert 0 < float(score) <= 1 and content == "Ada must not eat nuts."
    assert main(["search", "Ada nuts", "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["results"]
    assert (hit["id"], hit["tags"]) == (memory_id, ["food", "health"])
    assert main(["ask", "What must Ada not eat?"]) == 0
    assert f"  {memory_id}: " in capsys.readouterr().out
    assert main(["search", "the height of a tower", "--user-id", "nobody"]) == 0
    assert capsys.readouterr().out == "nothing stored answers this\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("A longer text."))
    assert main(["add", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == "A longer text."

    file = tmp_path / "account.jsonl"
    assert main(["export", str(file)]) == 0
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert (
        sum(record["kind"] == "memory" for record in records) == 2
        and records[-1]["kind"] == "manifest"
    )
    assert capsys.readouterr().err == f"{len(records)} records in {file}\n"
    assert main(["export", str(file)]) == 1 and "exists" in capsys.readouterr().err
    assert main(["export"]) == 0
    assert [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()] == [
        record["kind"] for record in records
    ]


def test_a_failure_is_one_sentence_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "x", "--collection-id", "col_nowhere"]) == 1
    assert "404 collection_not_found" in capsys.readouterr().err
    assert main(["search", "x", "--base-url", "localhost"]) == 1
    assert "is no address" in capsys.readouterr().err
    with endpoint(hangs_up) as silent:
        assert main(["search", "x", "--base-url", silent.url]) == 1
        assert "POST /v1/search got no answer" in capsys.readouterr().err
    with endpoint(
        answers(b'{"kind": "memory", "record": {}}\n', content_type="application/x-ndjson")
    ) as cut:
        assert main(["export", "--base-url", cut.url]) == 1
        assert "ended before it was complete" in capsys.readouterr().err


def test_it_is_a_command_that_stops_when_nobody_reads(service: OverHttp) -> None:
    command = [sys.executable, "-m", "mneme_client", "export"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
