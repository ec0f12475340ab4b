"""`mneme status`, `mneme logs` and `mneme completion`, as people meet them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import main
from runtime.cli.log_search import search
from runtime.cli.status import History, view
from tests.support.served import MNEME, Served, served
from tests.support.tiny_service import eventually

BOUNDS = ("0.005", "0.01", "0.1", "+Inf")


def metrics(asked: int, slow: int, failed: int = 0, gateway: str = "g") -> str:
    """What a gateway says after so many searches, of which some took 10 to 100 ms."""
    of = f'gateway="{gateway}",method="POST",operation="search.search"'
    counts = (0, asked - slow, asked, asked)
    return "\n".join(
        (
            "# TYPE mneme_requests counter",
            f'mneme_requests_total{{{of},status="2xx"}} {asked - failed}',
            f'mneme_requests_total{{{of},status="5xx"}} {failed}',
            "# TYPE mneme_request_seconds histogram",
            *(
                f'mneme_request_seconds_bucket{{{of},le="{bound}",status="2xx"}} {count}'
                for bound, count in zip(BOUNDS, counts, strict=True)
            ),
            "# TYPE mneme_requests_in_flight gauge",
            f'mneme_requests_in_flight{{gateway="{gateway}"}} 3',
            "# TYPE mneme_shard_open gauge",
            'mneme_shard_open{shard="0"} 1',
            'mneme_shard_open{shard="1"} 0',
            "# TYPE mneme_shard_jobs_waiting gauge",
            'mneme_shard_jobs_waiting{shard="0"} 7',
            "# TYPE mneme_shard_jobs_attempts counter",
            f'mneme_shard_jobs_attempts_total{{kind="memories.index",shard="0"}} {asked}',
            "# TYPE mneme_process_start_time_seconds gauge",
            "mneme_process_start_time_seconds 1",
            "",
        )
    )


class Answers:
    """A service that answers with these metrics, one after the other."""

    base_url = "http://mneme.test"

    def __init__(self, *texts: str):
        self.texts = list(texts)

    def call(self, *_: Any, **__: Any) -> dict[str, Any]:
        shards = {"open": 1, "total": 2}
        return {"status": "not_ready", "version": "1.2.3", "build": "abc", "shards": shards}

    def text(self, _: str) -> str:
        return self.texts.pop(0)


def row(shown: str, name: str) -> list[str]:
    (found,) = (line.split() for line in shown.splitlines() if line.startswith(name))
    return found


def test_a_look_is_compared_with_the_last_one_at_the_same_gateway() -> None:
    service = Answers(
        metrics(1000, 0), metrics(50, 50, gateway="other"), metrics(1100, 50, failed=4)
    )
    history = History()
    first = view(service, history)
    assert "since the start" in first and "1 of 2 shards open" in first
    assert row(first, "search.search")[2:] == ["7.5", "9.8", "10.0", "0"]
    assert "since the start" in view(service, history)  # another gateway, not seen before
    third = view(service, history)
    assert "in the last" in third and "3 requests under way" in third
    # Of the 100 since, half were below 10 ms, and half between 10 and 100.
    assert row(third, "search.search")[2:] == ["10.0", "91.0", "98.2", "4"]
    assert row(third, "0")[1:5] == ["open", "0", "0", "7"] and row(third, "1")[1] == "SILENT"
    assert row(third, "memories.index")[1:] == ["1,050", "0"]


def assert_shown(service: Served, capsys: pytest.CaptureFixture[str]) -> None:
    service.register()
    at = ("--base-url", service.url)
    assert main(["status", "--watch", "--count", "2", "--interval", "0.2", *at]) == 0
    shown = capsys.readouterr().out
    assert "auth.register" in shown and "in the last " in shown and "SHARD" in shown
    assert "open" in shown and "SILENT" not in shown


@pytest.mark.ray
def test_a_running_service_on_ray_is_shown(
    service_on_ray: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_shown(service_on_ray, capsys)


def test_a_running_service_is_shown(service: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert_shown(service, capsys)
    assert main(["status", "--interval", "0", "--base-url", service.url]) == 1
    assert "0.2 or more" in capsys.readouterr().err


LINES = {
    "gateway.log.1": (
        '{"at": "2026-01-01T00:00:01.000Z", "level": "error", "logger": "m", "message": "Old.", '
        '"request_id": "r1"}\n'
    ),
    "gateway.log": (
        "a line of nobody\n"
        "2026-01-01T00:00:05.000Z WARNING mneme.http [r2] Slow.\n"
        "2026-01-01T00:00:07.000Z ERROR   mneme.http [r1] Failed.\n"
        "Traceback (most recent call last):\n"
        "ValueError: no\n"
    ),
    "shard-0.log": "2026-01-01T00:00:06.000Z INFO    mneme.shard [r1] Stored. took_ms=3\n",
}


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    for name, text in LINES.items():
        (tmp_path / "logs" / name).write_text(text)
    return tmp_path


def test_the_entries_of_a_request_are_found_in_the_order_of_time(
    logged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(search(logged / "logs", "r1", "debug", None))
    assert [entry.file for entry in found] == ["gateway.log.1", "shard-0.log", "gateway.log"]
    assert found[2].text.endswith("Failed.\nTraceback (most recent call last):\nValueError: no")
    assert [entry.level for entry in search(logged / "logs", None, "warning", 2)] == [
        "warning",
        "error",
    ]
    assert main(["logs", "r2", "--data-dir", str(logged)]) == 0
    assert "gateway.log: 2026-01-01T00:00:05.000Z WARNING" in capsys.readouterr().out
    assert main(["logs", "r3", "--data-dir", str(logged)]) == 1
    with pytest.raises(SystemExit):
        main(["logs", "--last", "-1", "--data-dir", str(logged)])
    assert main(["logs", "--data-dir", str(logged / "nowhere")]) == 1
    assert "There are no logs in" in capsys.readouterr().err


def requested(service: Served, request_id: str | None = None) -> str:
    """The id of a request that the service has answered with 404."""
    asked = {"X-Request-ID": request_id} if request_id else {}
    headers = {"Authorization": f"Bearer {service.register()}", **asked}
    answer = service.http.get("/v1/memories/mem_nowhere", headers=headers)
    assert answer.status_code == 404
    return answer.headers["X-Request-ID"]


def found(service: Served, *words: str) -> subprocess.CompletedProcess[str]:
    command = [MNEME, "logs", "--data-dir", str(service.data_dir), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def assert_found(service: Served, gateway: str) -> None:
    """Each of two requests by its id, the client's own or ours, and no other line with them."""
    for given in (None, "mine-1"):
        request_id = requested(service, given)
        assert eventually(lambda: found(service, "--request-id", request_id).returncode == 0)  # noqa: B023
        (line,) = found(service, request_id).stdout.splitlines()
        assert line.startswith(f"requests-{gateway}.log: ")
        assert f"mneme.requests [{request_id}] GET memories.get 404 took_ms=" in line
    latest = found(service, "--last", "20").stdout  # what else the service logs stands among them
    assert "mine-1" in latest and len(latest.splitlines()) <= 20
    nothing = found(service, "--request-id", "req_nobody")
    assert nothing.returncode == 1 and "names that request" in nothing.stderr


@pytest.mark.ray
def test_the_line_of_a_request_is_found_on_ray(service_on_ray: Served) -> None:
    assert_found(service_on_ray, "gateway-0")


def test_the_line_of_a_request_is_found_also_after_the_end(tmp_path: Path) -> None:
    with served(tmp_path / "data", log__level="info") as service:
        assert_found(service, "service")
        last = requested(service)
        assert service.stop() == 0
        assert last in found(service, last).stdout
    with served(tmp_path / "quiet", log__level="info", log__requests="false") as service:
        requested(service)
        assert not [*(service.data_dir / "logs").glob("requests-*")]


def test_a_token_that_is_not_known_is_named_with_where_to_put_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "a-token-for-metrics-alone"
    with served(tmp_path / "data", http__metrics_token=token) as service:
        asked = ["status", "--base-url", service.url, "--data-dir", str(tmp_path / "other")]
        assert main(asked) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "MNEME_HTTP__METRICS_TOKEN or MNEME_SECRETS__OPERATOR_TOKEN" in line
        assert main([*asked, "--set", f"http.metrics_token={token}"]) == 0
        assert "SHARD" in capsys.readouterr().out


def test_a_service_in_one_process_logs_to_a_file_too(service: Served) -> None:
    assert (Path(service.data_dir) / "logs" / "service.log").is_file()


def test_the_shell_completes_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shell, files in (("zsh", ":FILE:_files"), ("fish", "(__fish_complete_path ")):
        assert main(["completion", shell]) == 0
        script_text = capsys.readouterr().out
        assert "import" in script_text and files in script_text
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in words)
        asked = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_mneme"
        ended = subprocess.run(
            ["bash", "-c", f"source {script}; {asked}; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
            capture_output=True,
            text=True,
            check=True,
        )
        return {*ended.stdout.split()}

    assert {"import", "ingest"} <= completed("mneme", "i")
    assert completed("mneme", "import", "--dry") == {"--dry-run"}
    assert "chroma" in completed("mneme", "import", "--format", "c")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.csv").touch()
    (tmp_path / "mine.yaml").touch()
    beginning, both = str(tmp_path / "mi"), {str(tmp_path / "mine"), str(tmp_path / "mine.yaml")}
    assert completed("mneme", "import", beginning) == both
    assert completed("mneme", "serve", "--config", beginning) == both
    assert completed("mneme", "serve", "--data-dir", beginning) == {str(tmp_path / "mine")}
