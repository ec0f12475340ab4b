"""`mneme mcp` itself; what it relays is tried in tests/plugins/mcp/test_mcp.py."""

from __future__ import annotations

import asyncio
import json
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters

from runtime.cli import main
from runtime.cli.commands import FAILED, KEY_VARIABLE
from tests.support.over_http import over_http
from tests.support.served import MNEME

SECONDS_MAX = 120
NOWHERE = "http://127.0.0.1:1"


def test_what_is_missing_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(base_url: str) -> str:
        assert main(["mcp", "--base-url", base_url]) == FAILED
        told = capsys.readouterr()
        assert told.out == "", "standard output is the protocol's"
        (line,) = told.err.splitlines()
        return line

    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert said(NOWHERE) == "mneme mcp: put the account's key into MNEME_API_KEY"
    monkeypatch.setenv(KEY_VARIABLE, "mem_sk_" + "0" * 64)
    assert (
        said(NOWHERE)
        == f"mneme mcp: No service answers at {NOWHERE}; start one with `mneme serve`."
    )
    with over_http(tmp_path) as service:
        assert "was refused with 401" in said(service.url)


def test_a_host_that_is_gone_is_no_reason_for_a_traceback(tmp_path: Path) -> None:
    with over_http(tmp_path) as service:
        variables = {KEY_VARIABLE: service.register("ada@example.com")}
        command = f"{MNEME} mcp --base-url {service.url}"

        def ended(how: str, sent: str = "") -> tuple[int, str]:
            done = subprocess.run(
                ["bash", "-c", f"{command} {how}"],
                input=sent,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=variables,
                timeout=SECONDS_MAX,
                check=False,
            )
            return done.returncode, done.stderr

        closed = "mneme mcp: standard input and output are closed; the host that starts it has both"
        for how in ("<&-", ">&-"):
            assert ended(how) == (FAILED, closed + "\n")
        assert ended("</dev/null") == (0, "")
        request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        assert ended("| true; exit ${PIPESTATUS[0]}", request) == (141, "")


def test_only_the_protocol_goes_to_standard_output(tmp_path: Path) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "this is no message",
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "no_such_tool"}},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "list_memories", "arguments": {"limit": 0}},
        },
    ]
    text = "".join(json.dumps(message) + "\n" for message in sent)
    with over_http(tmp_path) as service:
        environment = {KEY_VARIABLE: service.register("ada@example.com")}
        program = subprocess.Popen(
            [MNEME, "mcp", "--base-url", service.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            program.stdin.write(text)
            program.stdin.flush()
            answers = {}
            while set(answers) < {1, 2, 3}:
                answer = json.loads(program.stdout.readline())
                answers[answer.get("id")] = answer
            rest, _ = program.communicate(timeout=SECONDS_MAX)
        finally:
            program.kill()
    assert answers[1]["result"]["serverInfo"]["name"] == "mneme"
    assert "no tool of this name" in answers[2]["error"]["message"]
    assert (
        answers[3]["result"]["isError"]
        and "query.limit" in answers[3]["result"]["content"][0]["text"]
    )
    assert (rest, program.returncode) == ("", 0), "the end of its input is the end of it"


def test_a_service_that_goes_away_is_an_answer_and_no_end(tmp_path: Path) -> None:
    async def story(opened: ExitStack) -> None:
        service = opened.enter_context(over_http(tmp_path))
        environment = {KEY_VARIABLE: service.register("ada@example.com")}
        program = StdioServerParameters(
            command=MNEME, args=["mcp", "--base-url", service.url], env=environment
        )
        async with asyncio.timeout(SECONDS_MAX), Client(program) as client:
            assert not (await client.call_tool("list_memories", {})).is_error
            await asyncio.to_thread(opened.close)
            for _ in range(2):
                with pytest.raises(MCPError, match="does not answer"):
                    await client.call_tool("list_memories", {})

    with ExitStack() as opened:
        asyncio.run(story(opened))
