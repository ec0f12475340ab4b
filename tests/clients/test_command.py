"""python -m mneme_client: what its four commands print, and how they fail."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


def run(*arguments: str | bytes, **surroundings: str) -> tuple[int, str]:
    """(status, standard error) of the command in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "mneme_client", *arguments],
        input=b"\xff\xfe",
        env={**os.environ, "PYTHONUTF8": "1", **surroundings},
        capture_output=True,
        check=False,
    )
    return ended.returncode, ended.stderr.decode()


def test_whatever_fails_is_one_sentence() -> None:
    html = answers(b"<html>hello</html>", content_type="text/html")
    with endpoint(html) as other, endpoint(answers({"ok": 1})) as another:
        calls: list[tuple[tuple[str | bytes, ...], dict[str, str], str]] = [
            (("search", "x"), {"MNEME_API_KEY": "mem_sk_secret\nx"}, "holds a character"),
            (("search", "x", "--api-key", ""), {}, "api_key is an empty text"),
            (("search", "x", "--user-id", ""), {}, "user_id is an empty text"),
            (("search", b"\xff"), {}, "query: a text with half of a character"),
            (("add", b"\xff"), {}, "content: a text with half of a character"),
            (("add", "-"), {"PYTHONIOENCODING": "utf-8:strict"}, "Standard input is no text"),
            (("search", "x"), {"MNEME_BASE_URL": "http://"}, "names no host"),
            (("export", "/nowhere/x"), {}, "No such file"),
        ]
        for each in ("search", "add", "ask"):
            calls += [
                ((each, "x", "--base-url", other.url), {}, "is base_url right?"),
                ((each, "x", "--base-url", another.url), {}, "is it this service's address?"),
            ]
        calls.append((("export", "--base-url", other.url), {}, "is base_url right?"))
        with ThreadPoolExecutor(2) as threads:
            ended = threads.map(lambda call: run(*call[0], **call[1]), calls)
        for (arguments, _, said), (status, told) in zip(calls, ended, strict=True):
            assert status == 1 and said in told and told.count("\n") == 1, (arguments, told)
            assert "secret" not in told


def test_an_interrupt_is_no_failure_of_the_program() -> None:
    arrived, over = threading.Event(), threading.Event()

    def stalls(_: object) -> None:
        arrived.set()
        over.wait()

    with (
        endpoint(stalls) as service,
        subprocess.Popen(
            [sys.executable, "-m", "mneme_client", "search", "x", "--base-url", service.url],
            stderr=subprocess.PIPE,
        ) as process,
    ):
        arrived.wait()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"" and process.wait() == 130
        over.set()


def test_it_is_a_command_that_stops_when_nobody_reads(service: OverHttp) -> None:
    command = [sys.executable, "-m", "mneme_client", "export"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
