"""What the client's README and its examples show is true: each runs against a real service."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from runtime import signatures
from runtime.serve import free_port
from tests.support import ROOT
from tests.support.over_http import over_http
from tests.support.pages import blocks
from tests.support.served import Served
from tests.support.upstream import refuses, says, upstream

MINUTE, PRINTED, SESSION, RECEIVING = (
    block.text for block in blocks(ROOT / "clients/python/README.md") if not block.not_run
)
SECONDS_MAX = 120
# What differs from time to time: scores, dates, ids, counts.
CHANGES = re.compile(r"0\.\d\d|\d{4}-\d\d-\d\d|mem_[0-9a-z]{32}|^\d+(?= records)", re.MULTILINE)


@pytest.fixture(scope="module")
def environment(service: Served) -> dict[str, str]:
    return {**os.environ, "MNEME_BASE_URL": service.url, "MNEME_API_KEY": service.register()}


def output(
    command: list[str],
    environment: dict[str, str],
    cwd: Path,
    text: str | None = None,
    status: int = 0,
) -> str:
    """Standard output of a command, and standard error after it."""
    ended = subprocess.run(
        command,
        input=text,
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == status, ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_the_readme_prints_what_is_printed(environment: dict[str, str], tmp_path: Path) -> None:
    told = output([sys.executable, "-"], environment, tmp_path, MINUTE)
    assert CHANGES.sub("…", told) == CHANGES.sub("…", PRINTED)


@pytest.mark.slow
def test_the_commands_answer_as_printed(environment: dict[str, str], tmp_path: Path) -> None:
    for command, printed in re.findall(r"^\$ python (.*)\n((?:[^$].*\n)*)", SESSION, re.MULTILINE):
        told = output([sys.executable, *shlex.split(command)], environment, tmp_path)
        assert CHANGES.sub("…", told) == CHANGES.sub("…", printed)


def test_what_the_readme_receives_is_what_was_signed() -> None:
    secret, body = "whsec_" + "C" * 43, b'{"event_type": "memory.created"}'
    signed = signatures.headers("evt_1", body, [secret], int(time.time()))
    names = {"body": body, "headers": signed, "secret": secret}
    exec(compile(RECEIVING, "README.md", "exec"), names)
    assert names["event"]["event_type"] == "memory.created"
    forged = {"body": body + b" ", "headers": signed, "secret": secret}
    exec(compile(RECEIVING, "README.md", "exec"), forged)
    assert "event" not in forged


@pytest.mark.slow
def test_the_evaluation_measures_and_cleans_up(
    environment: dict[str, str], service: Served, tmp_path: Path
) -> None:
    script = str(ROOT / "examples/evaluation.py")
    told = output([sys.executable, script, "--require", "0.8"], environment, tmp_path)
    assert re.search(r"^answerable questions +7$", told, re.MULTILINE) and re.search(
        r"^others +2$", told, re.MULTILINE
    )
    hard = {
        "memories": {"a": "Ada has a cat."},
        "questions": [{"query": "What is the boiling point of lead?", "expects": ["a"]}],
    }
    (tmp_path / "hard.json").write_text(json.dumps(hard))
    told = output(
        [sys.executable, script, "--file", "hard.json", "--require", "0.8"],
        environment,
        tmp_path,
        status=1,
    )
    assert "not found: What is the boiling point of lead?" in told
    headers = {"Authorization": f"Bearer {environment['MNEME_API_KEY']}"}
    assert service.http.get("/v1/collections", headers=headers).json()["total_count"] == 1


def test_the_chat_remembers_from_one_day_to_the_next(tmp_path: Path) -> None:
    with upstream() as model, over_http(tmp_path, llm__base_url=model.url) as service:
        model.will(says("What a fine name."), refuses(400, "Too long."), says("Ilse."))
        command = [
            sys.executable,
            str(ROOT / "examples/chat_loop.py"),
            "--base-url",
            service.url,
            "--api-key",
            service.register(),
        ]
        told = output(
            command, dict(os.environ), tmp_path, "My sister's name is Ilse.\n\nAnd so on.\n"
        )
        assert told.startswith("What a fine name. \n  [0 memories]\n(") and "Too long." in told
        service.settle()
        told = output(command, dict(os.environ), tmp_path, "What is my sister's name?\n")
        assert re.match(r"Ilse\. \n  \[[1-9] memories\]\n", told)
        assert "My sister's name is Ilse." in json.dumps(model.last["messages"][:-1])


def test_the_receiver_hears_of_memories_and_of_nothing_forged(tmp_path: Path) -> None:
    with over_http(tmp_path, webhooks__allow_private_networks=True) as service:
        token = service.register()
        command = [
            sys.executable,
            str(ROOT / "examples/webhook_receiver.py"),
            "--port",
            str(free_port("127.0.0.1")),
        ]
        command += ["--base-url", service.url, "--api-key", token]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                url = process.stdout.readline().split()[-1]
                assert (
                    httpx.post(
                        url, json={"event_type": "memory.created", "data": {"id": "mem_1"}}
                    ).status_code
                    == 401
                )
                (memory_id,) = service.remember(token, "Ada eats no nuts.")
                assert process.stdout.readline() == f"memory.created {memory_id}\n"
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS_MAX) == 0
            finally:
                process.kill()
        assert service.get("/v1/webhooks", token).json()["total_count"] == 0
