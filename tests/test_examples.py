"""The scripts of examples/ do what they show, against a real service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, upstream
from tests.support.over_http import over_http
from tests.support.served import Served
from tests.support.upstream import refuses, says

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def api_key(service: Served) -> str:
    answer = service.http.post(
        "/v1/auth/api-keys",
        json={"name": "reader", "scopes": ["read", "write"]},
        headers={"Authorization": f"Bearer {service.register()}"},
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]


def output(command: list[str], service: Served, api_key: str) -> str:
    """Standard output of a command that must succeed."""
    environment = {
        **os.environ,
        "API_KEY": api_key,
        "PYTHONPATH": str(ROOT / "clients/python"),
    }  # this checkout's client
    ended = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


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
        assert endpoint.requests[1]["messages"][-1]["content"] == "content is required."
        assert "The user lives in Porto." in endpoint.last["messages"][-1]["content"]
        assert told.stdout.splitlines() == [
            "> I moved to Porto.", "add_memory: refused", "add_memory: done", "Noted.",
            "> Where do I live?", "search_memories: done", "In Porto.",
        ]  # fmt: skip
