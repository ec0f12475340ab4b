"""The command as people meet it: what it refuses and how, and one real service that it starts, uses
and stops.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from runtime.cli import main
from runtime.cli.client import CallFailed, Client
from runtime.installation import held
from runtime.serve import attendant, free_port
from tests.support import ROOT
from tests.support.tiny_service import eventually

MNEME = str(Path(sys.executable).with_name("mneme"))
TEST_CONFIG = str(ROOT / "configs" / "test.yaml")
START_SECONDS_MAX = 240


def refusal(capsys, *arguments: str) -> str:
    """The one line that a failing command leaves on standard error."""
    assert main(arguments) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert "Traceback" not in printed.out
    return line


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("runtime.cli.ending", "numba runtime.cluster.actors serve_app ray mcp openai"),
        ("serve_app", "ray mcp mcp_types openai numba scipy"),
    ],
)
def test_what_is_heavy_is_loaded_when_it_is_needed(module: str, heavy: str) -> None:
    script = (
        f"import {module}, sys; assert not sys.modules.keys() & {set(heavy.split())}, "
        f"sys.modules.keys() & {set(heavy.split())}"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=START_SECONDS_MAX, cwd=ROOT)


def test_an_interrupt_while_the_command_loads_ends_it_quietly(tmp_path: Path) -> None:
    """It comes, by itself, in the middle of the imports."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'runtime.cli.arguments':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    ended = subprocess.run(
        [MNEME, "doctor"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("serve", "--set", "http.prt=1"),
            "mneme serve: http.prt in the command line is not a setting; the nearest is http.port.",
        ),
        (
            ("serve", "--port", "eighty"),
            "mneme serve: http.port in the command line is not valid: input should be a valid "
            "integer",
        ),
        (
            ("serve", "--config", "gone.yaml"),
            "mneme serve: The configuration file gone.yaml does not exist.",
        ),
        (("webhooks", "listen", "--port", "65536"), "mneme webhooks: --port must be 0 to 65535."),
        (("doctor", "--set", "x"), "mneme doctor: --set x must have the form section.key=value."),
        (
            ("serve", "--demo-account", "--set", "environment=production"),
            "mneme serve: --demo-account is for local installations; leave it out where "
            "environment is production.",
        ),
        (
            ("demo", "--set", "serch.candidates=9"),
            "mneme demo: serch.candidates in the command line is not a setting; the nearest is "
            "search.candidates.",
        ),
        (
            ("demo", "--base-url", "http://127.0.0.1:1"),
            "mneme demo: No service answers at http://127.0.0.1:1; start one with `mneme serve`.",
        ),
    ],
)
def test_a_refusal_is_one_sentence(capsys, arguments, expected):
    assert refusal(capsys, *arguments).startswith(expected)


def test_keys_of_a_directory_without_a_service_are_refused(capsys, tmp_path):
    assert f"{tmp_path} holds no data of this service" in refusal(
        capsys, "keys", "create", "--email", "a@example.com", "--data-dir", str(tmp_path)
    )


def test_an_import_needs_a_key_a_file_and_a_service(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("MNEME_API_KEY", raising=False)
    path = tmp_path / "memories.jsonl"
    path.write_text('"The key is in the shed."')
    assert "--api-key" in refusal(capsys, "import", str(path))
    given = ["--api-key", "mem_sk_" + "0" * 64, "--base-url", "http://127.0.0.1:9"]
    assert "No service answers at http://127.0.0.1:9" in refusal(
        capsys, "import", str(path), *given
    )
    assert "missing.jsonl" in refusal(capsys, "import", str(tmp_path / "missing.jsonl"), *given)


def test_fetching_never_touches_a_copy_of_the_user_s_own(capsys, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"mine")
    assert "names your own copy" in refusal(
        capsys, "models", "fetch", "--set", f"embedder.model_path={tmp_path}"
    )
    assert (tmp_path / "model.safetensors").read_bytes() == b"mine"


def test_fetching_leaves_sound_weights_alone(capsys):
    assert main(["models", "fetch"]) == 0
    assert capsys.readouterr().out.startswith("✓ weights: ")


def test_output_that_nobody_reads_is_no_failure_to_talk_about():
    """As in `mneme status | head -1`."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as unread:
        ended = subprocess.run(
            [MNEME, "completion", "bash"],
            stdout=unread,
            stderr=subprocess.PIPE,
            timeout=START_SECONDS_MAX,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("arguments", [[], ["serve", "--engine", "steam"], ["fly"]])
def test_a_command_line_that_makes_no_sense_shows_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("usage: mneme")


def started(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [MNEME, "serve", "--config", TEST_CONFIG, "--data-dir", str(data_dir), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def failed_start(data_dir: Path, *arguments: str) -> str:
    """Standard error of a service that must not start."""
    process = started(data_dir, *arguments)
    try:
        out, err = process.communicate(timeout=START_SECONDS_MAX)
    finally:
        process.kill()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert len(err.strip().splitlines()) == 1, err
    assert out == ""
    return err


def test_a_taken_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port) in failed_start(tmp_path / "data", "--port", str(port))


def test_a_start_says_on_a_terminal_that_it_has_begun(tmp_path):
    """The first one compiles, and would be silent for a minute."""
    terminal, its_other_end = pty.openpty()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["serve", "--engine", "local", "--port", str(taken.getsockname()[1])]
        ended = subprocess.run(
            [MNEME, *words, "--config", TEST_CONFIG, "--data-dir", str(tmp_path / "data")],
            stderr=its_other_end,
            timeout=START_SECONDS_MAX,
            check=False,
        )
    os.close(its_other_end)
    said = os.read(terminal, 4096).decode().splitlines()
    os.close(terminal)
    assert ended.returncode == 1 and len(said) == 2
    assert said[0].startswith("Starting.") and said[1].startswith("mneme serve: ")


def healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/health", timeout=10).status_code == 200
    except httpx.TransportError:
        return False


def is_attending(process_id: int) -> bool:
    return attendant.__file__ in psutil.Process(process_id).cmdline()


@pytest.mark.parametrize(
    ("engine", "streams"),
    [("local", "<&- >&- 2>&-"), pytest.param("ray", ">/dev/full", marks=pytest.mark.ray)],
)
def test_a_service_runs_where_nothing_takes_what_it_says(
    tmp_path: Path, engine: str, streams: str
) -> None:
    port, data_dir = free_port("127.0.0.1"), tmp_path / "data"
    words = [MNEME, "serve", "--config", TEST_CONFIG, "--engine", engine, "--port", str(port)]
    command = f"exec {shlex.join([*words, '--data-dir', str(data_dir)])} {streams}"
    with subprocess.Popen(["sh", "-c", command], cwd=ROOT) as process:
        assert eventually(lambda: healthy(port) or process.poll() is not None)
        if engine == "ray":  # it says so a moment after it is healthy, and becomes another program
            assert eventually(lambda: process.poll() is not None or is_attending(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert (data_dir / "serve.lock").read_text() == f"{process.pid}\n"


def test_a_data_directory_in_use_is_named_with_its_holder(tmp_path):
    with held(tmp_path / "data"):
        assert f"{tmp_path / 'data'} is in use by process {os.getpid()}" in failed_start(
            tmp_path / "data"
        )


class Service:
    """A running `mneme serve --engine local --demo-account` and what it announced."""

    def __init__(self, data_dir: Path):
        self.data_dir = data_dir
        self.process = started(data_dir, "--demo-account")
        self.announced = "".join(self.process.stdout.readline() for _ in range(7))
        said = (
            r"ready at (http://\S+)\n.*docs +\S+/docs\n.*dashboard +\S+/dashboard\n.*data +"
            rf"{data_dir}\n.*sign in.*\n.*API key +(mem_sk_\w+)"
        )
        found = re.search(said, self.announced)
        if found is None:
            self.process.kill()
            pytest.fail(
                f"announced {self.announced!r}, standard error {self.process.stderr.read()!r}"
            )
        self.base_url, self.api_key = found[1], found[2]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=START_SECONDS_MAX)
        return self.process.returncode


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("service") / "data")
    yield running
    if running.process.poll() is None:
        running.stop()


def test_the_announced_sign_in_opens_the_dashboard(service):
    email, password = re.search(r"sign in +(\S+) +password (\S+)", service.announced).groups()
    answer = httpx.post(
        f"{service.base_url}/dashboard/session",
        json={"email": email, "password": password},
        timeout=60,
    )
    assert (answer.status_code, answer.json()["account"]["email"]) == (200, email)


def test_the_announced_key_opens_the_demo_account(service):
    with Client(service.base_url, service.api_key) as client:
        assert re.fullmatch(r"demo-\w+@example\.com", client.call("GET", "/v1/auth/me")["email"])
    kept = service.data_dir / "demo.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["api_key"] == service.api_key


def test_the_demonstration_answers_its_questions(service, capsys):
    assert main(["demo", "--base-url", f"{service.base_url}/v1"]) == 0
    shown = capsys.readouterr().out
    assert "Registered the throw-away account demo-" in shown
    assert "Stored 12 memories of 2 conversations" in shown
    assert shown.count("  1. ") == 3 and shown.count("why: ") >= 3
    unwrapped = " ".join(shown.split())
    for evidence in ("cello lessons", "allergic to strawberries", "visit in October"):
        assert evidence in unwrapped


def test_the_demonstration_leaves_nothing_behind_unless_asked(service, capsys):
    with Client(service.base_url, service.api_key) as client:
        before = client.call("GET", "/v1/collections")["total_count"]
        assert main(["demo", "--base-url", service.base_url, "--api-key", service.api_key]) == 0
        assert client.call("GET", "/v1/collections")["total_count"] == before
        assert (
            main(["demo", "--base-url", service.base_url, "--api-key", service.api_key, "--keep"])
            == 0
        )
        kept = re.search(r"stay in collection (col_\w+)", capsys.readouterr().out)
        assert client.call("GET", f"/v1/collections/{kept[1]}")["memory_count"] == 12
        client.call("DELETE", f"/v1/collections/{kept[1]}")


def test_an_operator_mints_a_key_for_an_account(service, capsys):
    email = json.loads((service.data_dir / "demo.json").read_text())["email"]
    at = ("--data-dir", str(service.data_dir), "--base-url", service.base_url)
    assert main(["keys", "create", "--email", email, "--scopes", "read", *at]) == 0
    key = capsys.readouterr().out.strip()
    with Client(service.base_url, key) as client:
        assert client.call("GET", "/v1/auth/me")["email"] == email
        with pytest.raises(CallFailed) as refused:
            client.call("POST", "/v1/collections", {"name": "x"})
    assert refused.value.status == 403
    assert "nobody@example.com" not in refusal(
        capsys, "keys", "create", "--email", "nobody@example.com", *at
    )


def test_the_doctor_finds_the_running_service(service, capsys):
    host, port = service.base_url.removeprefix("http://").split(":")
    at = ("--host", host, "--port", port, "--data-dir", str(service.data_dir))
    assert main(["doctor", "--engine", "local", *at]) == 0
    shown = capsys.readouterr().out
    assert f"data directory is in use by process {service.process.pid}" in shown
    assert f"a service answers at {host}:{port}" in shown


def test_a_command_for_the_operator_names_who_uses_the_data_where_nobody_answers(service, capsys):
    at = ("--data-dir", str(service.data_dir), "--port", "9")
    told = refusal(capsys, "admin", "accounts", *at)
    assert f"is in use by process {service.process.pid}. It does not answer at" in told
    assert "--port" in told and "mneme serve" not in told


def test_a_second_service_on_the_same_directory_is_refused(service):
    assert f"is in use by process {service.process.pid}" in failed_start(service.data_dir)


def test_a_restart_keeps_the_key_and_a_damaged_store_is_named(service):
    assert service.stop() == 0
    again = Service(service.data_dir)
    assert again.api_key == service.api_key
    assert again.stop() == 0
    (store,) = service.data_dir.glob("shards/*/data.mdb")
    os.truncate(store, store.stat().st_size // 2)
    assert str(store) in failed_start(service.data_dir)


@pytest.mark.parametrize("command", [("export", "all.jsonl"), ("import", "all.jsonl")])
def test_a_variable_that_is_not_set_is_not_everybody(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--user-id", ""])
    assert ended.value.code == 2
    assert "--user-id: must not be empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("bench", "--seconds", "0"), ("ingest", "a.md", "--at-once", "x")]
)
def test_a_number_out_of_range_is_told_its_bounds(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert f"{words[-2]}: must be 1 to " in told and len(told) < 100
