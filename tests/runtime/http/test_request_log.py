"""The log of requests: nothing of it waits, it stays within its bounds, and keeps no credential."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runtime.http import request_log
from runtime.http.request_log import RequestLog


def noted(path: Path, names: list[str], as_json: bool = False, bytes_max: int = 10**6) -> list[str]:
    """The lines of a log after requests with these ids."""

    async def note() -> None:
        log = RequestLog(path, as_json, bytes_max)
        for name in names:
            log.note(name, "memories.get", "GET", 200, 0.0123)
        log.close()

    asyncio.run(note())
    return path.read_text().splitlines()


def test_lines_are_for_people_or_machines_and_hold_no_credential(tmp_path: Path) -> None:
    (text,) = noted(tmp_path / "a.log", ["mem_sk_0123456789abcdef"])
    assert text.endswith(" INFO    mneme.requests [mem_sk_****] GET memories.get 200 took_ms=12.3")
    (line,) = noted(tmp_path / "b.log", ["mine"], as_json=True)
    said = json.loads(line)
    assert (said["request_id"], said["status"], said["took_ms"]) == ("mine", 200, 12.3)
    assert said["at"].endswith("Z") and (said["level"], said["method"]) == ("info", "GET")


def test_a_line_has_the_moment_to_a_millisecond_and_the_request_id_as_it_is(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    (line,) = noted(tmp_path / "a.log", ["req_" + "0123456789abcdef" * 2])
    at, level, logger, request_id, *_ = line.split()
    assert before - timedelta(seconds=0.001) <= datetime.fromisoformat(at) <= datetime.now(UTC)
    assert len(at) == len("2026-01-01T00:00:00.000Z")
    assert (level, logger, request_id) == (
        "INFO",
        "mneme.requests",
        "[req_" + "0123456789abcdef" * 2 + "]",
    )


def test_a_file_that_is_full_gives_way_and_one_before_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    for name in ("first", "second", "third"):
        lines = noted(path, [name], bytes_max=50)
        assert len(lines) == 1 and name in lines[0]
    assert "second" in path.with_suffix(".log.1").read_text()
    assert len([*tmp_path.iterdir()]) == 2


def test_what_waits_is_bounded_and_a_disk_that_takes_none_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_log, "REQUEST_LINES_WAITING_MAX", 2)
    assert len(noted(tmp_path / "requests.log", ["a", "b", "c"])) == 2
    assert "1 requests have no line" in caplog.text
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):  # that the test reads, once the log has let it be
        noted(tmp_path / "folder", ["a"])
    assert "Is a directory" in caplog.text


def test_lines_are_written_while_more_come(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"

    async def note() -> None:
        log = RequestLog(path, as_json=False)
        for number in range(3):
            log.note(f"r{number}", "memories.get", "GET", 200, 0.001)
            while not path.exists() or f"[r{number}]" not in path.read_text():
                await asyncio.sleep(0)

    asyncio.run(note())
    assert len(path.read_text().splitlines()) == 3
