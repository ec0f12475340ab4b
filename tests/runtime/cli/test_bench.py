"""The benchmark measures a real service through its front door, and leaves nothing in it."""

from __future__ import annotations

import json
from itertools import islice

import httpx
import pytest

from runtime.cli import bench, main
from tests.support.served import Served


def test_every_phase_is_measured_and_nothing_stays(
    service: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "MODEL_SECONDS_MAX", 0.1)
    accounts = _accounts(service)
    command = ["bench", "--json", "--seconds", "1", "--base-url", service.url]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    phases = {each["phase"]: each for each in report["phases"]}
    assert len(phases) == 6
    for each in phases.values():
        assert each["requests"] > 0 and each["failed"] == 0 and each["per_second"] > 0
        assert 0 < each["p50_ms"] <= each["p95_ms"] <= each["p99_ms"]
    assert report["memories"] >= bench.BATCH_MEMORIES
    assert all(cost["alone_ms"] > 0 for cost in report["model"].values()) and report["model"]
    told = bench.described(report)
    assert "search, 8 at once" in told and "A lone search takes" in told
    assert _accounts(service) == accounts
    for load, busy in ((0.1, False), (1.5, True)):
        report["machine"] |= {"cores": 2, "load_before": load}
        assert ("was busy before" in bench.described(report)) == busy


def _accounts(service: Served) -> float:
    """Accounts that were made less those that were erased."""
    count = 0.0
    for line in httpx.get(f"{service.url}/metrics").text.splitlines():
        if line.startswith("mneme_requests_total") and 'status="2xx"' in line:
            made = '"auth.register"' in line
            gone = '"account.erase"' in line
            count += (made - gone) * float(line.rpartition(" ")[2])
    return count


def test_no_two_texts_and_no_two_questions_are_alike() -> None:
    for make in (bench.texts, bench.questions):
        found = list(islice(make(1), 2000))
        assert len({*found}) == 2000 and found == list(islice(make(1), 2000))
