"""What README.md and examples/ show is true: every command and script runs against a real service
and answers as printed there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import serve_app
from runtime.cli import parser
from runtime.cli.export_settings import with_table
from runtime.settings import known_settings
from runtime.signatures import headers
from serve_app import Settings
from tests.support import ROOT, upstream
from tests.support.over_http import over_http
from tests.support.served import Served
from tests.support.upstream import refuses, says

README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS_PRINTED = "http://127.0.0.1:8000"
SECONDS_MAX = 60

# (language of the fence, text inside it)
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
RECEIVER = next(
    text for language, text in FENCED if language == "python" and "class Receiver" in text
)
PYTHON = [text for language, text in FENCED if language == "python" and text != RECEIVER]
# A curl command and the answer printed after it.
CURLS = [
    (text, FENCED[at + 1][1])
    for at, (language, text) in enumerate(FENCED)
    if language == "bash" and text.startswith("curl")
]


@pytest.fixture(scope="module")
def api_key(service: Served) -> str:
    answer = service.http.post(
        "/v1/auth/api-keys",
        json={"name": "reader", "scopes": ["read", "write"]},
        headers={"Authorization": f"Bearer {service.register()}"},
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]


def output(command: list[str], service: Served, api_key: str, script: str | None = None) -> str:
    """Standard output of a command that must succeed; `script` goes to its standard input, with the
    service's real address.
    """
    text = None if script is None else script.replace(ADDRESS_PRINTED, service.url)
    environment = {
        **os.environ,
        "API_KEY": api_key,
        "PYTHONPATH": str(ROOT / "clients/python"),
    }  # this checkout's client
    ended = subprocess.run(
        command,
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_readme_shows_two_requests_and_one_script() -> None:
    assert len(CURLS) == 2 and len(PYTHON) == 1
    assert all(ADDRESS_PRINTED in text for text in (*PYTHON, *(request for request, _ in CURLS)))


def test_the_requests_answer_as_printed(service: Served, api_key: str) -> None:
    """Field for field, apart from what differs each time. Run in order: the second finds what the
    first stored.
    """
    for request, printed in CURLS:
        answer = json.loads(output(["bash", "-euo", "pipefail"], service, api_key, request))
        given = json.dumps(answer, ensure_ascii=False)
        for name, value in re.findall(r'"(\w+)": ("[^"]*"|[\w.]+|\[\]|\{\})', printed):
            assert f'"{name}": ' in given, name
            if not re.fullmatch(r'"(mem|col)_\w+"|"\d{4}-.*Z"|\d+\.\d{2,}', value):
                assert f'"{name}": {value}' in given, name


def test_the_script_prints_what_is_printed(service: Served, api_key: str) -> None:
    """Scores aside: they depend on what else the account holds."""
    printed = FENCED[[text for _, text in FENCED].index(PYTHON[0]) + 1][1]
    told = output([sys.executable, "-"], service, api_key, PYTHON[0])
    score = re.compile(r"\d\.\d\d")
    assert score.sub("", told) == score.sub("", printed)


def test_the_quickstart_tells_its_story_and_cleans_up(service: Served, api_key: str) -> None:
    told = output(
        [sys.executable, str(ROOT / "examples/quickstart.py"), "--base-url", service.url],
        service,
        api_key,
    )
    assert "3 memories; sent again: the same ones, True" in told
    assert re.search(r"Mei: Lovely.*vegetarian", told)
    assert re.search(r"Filters narrow .*\n  0\.\d\d  Ben: A large one", told)
    assert "none. Nothing stored" in told
    assert "version 2: The farmhouse has ten beds" in told
    names = [
        item["name"]
        for item in service.http.get(
            "/v1/collections", headers={"Authorization": f"Bearer {api_key}"}
        ).json()["items"]
    ]
    assert "Quickstart" not in names


def test_the_receiver_takes_what_is_genuine_and_nothing_else() -> None:
    """In a process of its own, on a free port, as printed but for the port."""
    secret, body = "whsec_" + "C" * 43, b'{"event_type": "memory.created", "data": {"id": "mem_1"}}'
    assert len([line for line in RECEIVER.splitlines() if line.strip()]) <= 15
    script = RECEIVER.replace(
        '(("127.0.0.1", 9000), Receiver).serve_forever()', '(("127.0.0.1", 0), Receiver)'
    )
    script += "print(made.server_port, flush=True)\nmade.serve_forever()\n"
    script = script.replace("http.server.HTTPServer(", "made = http.server.HTTPServer(")
    environment = {**os.environ, "WEBHOOK_SIGNING_SECRET": secret}
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}/"
        signed = headers("evt_1", body, [secret], int(time.time()))
        assert httpx.post(url, content=body + b" ", headers=signed).status_code == 401
        assert (
            httpx.post(
                url, content=body, headers=headers("evt_1", body, [secret], int(time.time()) - 400)
            ).status_code
            == 401
        )
        assert httpx.post(url, content=body).status_code == 401
        assert httpx.post(url, content=body, headers=signed).status_code == 204
        assert process.stdout.readline() == "memory.created mem_1\n"
    finally:
        process.kill()
        process.communicate()


def test_the_chat_example_talks_to_a_model(tmp_path: Path) -> None:
    with (
        upstream.upstream() as endpoint,
        over_http(tmp_path, llm__base_url=endpoint.url) as service,
    ):
        endpoint.will(says("Ask for peanuts."), says("Ask for peanuts."), refuses(401))
        command = [
            sys.executable,
            str(ROOT / "examples/chat.py"),
            "--base-url",
            service.url,
            "--api-key",
            service.register(),
        ]
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout.count("Ask for peanuts.") == 2 and "memories put in: 1" in told.stdout
        assert "quoted: I live in Lisbon and I am allergic to peanuts." in told.stdout
        assert "fact: lives_in = Lisbon" in told.stdout


def test_the_agent_example_remembers_through_its_tools(tmp_path: Path) -> None:
    """The model is scripted; what its tools answer it is real. The second conversation knows
    nothing of the first but through memory.
    """

    def calls(tool: str, **arguments: Any) -> upstream.Act:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        return says("", [{"id": "call_1", "type": "function", "function": function}])

    with upstream.upstream() as endpoint, over_http(tmp_path) as service:
        endpoint.will(
            calls("add_memory"), calls("add_memory", content="The user lives in Porto."),
            says("Noted."), calls("search_memories", query="Where does the user live?"),
            says("In Porto."),
        )  # fmt: skip
        script = [
            sys.executable,
            str(ROOT / "examples/agent.py"),
            "--base-url",
            service.url,
            "--llm-url",
            endpoint.url,
        ]
        command = [
            *script,
            "--api-key",
            service.register(),
            "I moved to Porto.",
            "Where do I live?",
        ]
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
        assert told.returncode == 0, told.stderr
        offered = {tool["function"]["name"] for tool in endpoint.requests[0]["tools"]}
        assert {"add_memory", "search_memories"} <= offered
        assert (
            endpoint.requests[1]["messages"][-1]["content"]
            == "The request is not valid at body.content: is required"
        )
        assert "The user lives in Porto." in endpoint.last["messages"][-1]["content"]
        assert told.stdout.splitlines() == [
            "> I moved to Porto.", "add_memory: refused", "add_memory: done", "Noted.",
            "> Where do I live?", "search_memories: done", "In Porto.",
        ]  # fmt: skip


def test_the_table_of_settings_is_the_code_s() -> None:
    assert with_table(README) == README, "run `make docs`"
    assert all(f"| `{name}` |" in README for name in known_settings(Settings))


@pytest.mark.parametrize(
    "line", re.findall(r"^(?:MNEME_\S+ )?\.venv/bin/mneme (.+?)(?:   .*)?$", README, re.MULTILINE)
)
def test_commands_of_the_readme_exist(line: str) -> None:
    words = shlex.split(line)
    required = ["--email", "ada@example.com"] if words[:2] == ["keys", "create"] else []
    assert parser().parse_args([*words, *required]).run


def test_every_endpoint_group_of_the_readme_exists() -> None:
    routes = " ".join(operation.path for operation in serve_app.registry().operations.values())
    mounts = [mount for plugin in serve_app.PLUGINS for mount in plugin.mounts]
    rows = re.search(r"\| group \| paths \|\n\|---\|---\|\n(.*?)\n\n", README, re.DOTALL)[
        1
    ].splitlines()
    for row in rows[:-1]:  # the last names the gateway's own
        for path in re.findall(r"`(/[^`]+)`", row):
            assert re.search(rf"{re.escape(path)}(\s|$)", routes) or any(
                mount.claims(path, {}) for mount in mounts
            ), path


def test_files_the_readme_names_exist() -> None:
    for name in re.findall(
        r"\]\((\w[\w./]*)\)|`((?:configs|examples|plugins|tests|runtime|storage|loadtests)/[\w./"
        r"]*)`",
        README,
    ):
        assert (ROOT / (name[0] or name[1])).exists(), name
