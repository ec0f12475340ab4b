"""Metrics that Prometheus can read."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from runtime.telemetry import Telemetry


def samples(telemetry: Telemetry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, content_type = telemetry.exposition()
    assert content_type.startswith("text/plain")
    families = text_string_to_metric_families(body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_and_timed_by_operation_method_and_status_class():
    telemetry = Telemetry("g1")
    for status, seconds in ((200, 0.004), (201, 0.02), (404, 0.001)):
        telemetry.request("memories.create", "POST", status, seconds)
    found = samples(telemetry)
    labels = {"operation": "memories.create", "method": "POST", "gateway": "g1"}
    success, refusal = (
        tuple(sorted({**labels, "status": status}.items())) for status in ("2xx", "4xx")
    )
    assert found[("mneme_requests_total", success)] == 2
    assert found[("mneme_requests_total", refusal)] == 1
    assert found[("mneme_request_seconds_sum", success)] == pytest.approx(0.024)
    assert found[("mneme_request_seconds_bucket", tuple(sorted((*success, ("le", "0.005")))))] == 1


def test_requests_in_flight_are_counted_when_somebody_asks():
    telemetry = Telemetry("g1")
    gauge = ("mneme_requests_in_flight", (("gateway", "g1"),))
    under_way = []
    telemetry.count_in_flight(lambda: len(under_way))
    assert samples(telemetry)[gauge] == 0
    under_way.append("a request")
    assert samples(telemetry)[gauge] == 1


def test_every_number_of_a_shard_status_becomes_a_gauge():
    telemetry = Telemetry()
    telemetry.shards(
        [
            {"shard": 0, "open": True, "store": {"bytes": 4096, "path": "x"}},
            {"shard": 1, "open": False, "store": {"bytes": 8}},
        ]
    )
    found = {
        name: value
        for name, value in samples(telemetry).items()
        if name[0].startswith("mneme_shard_")
    }
    assert found == {
        ("mneme_shard_open", (("shard", "0"),)): 1,
        ("mneme_shard_open", (("shard", "1"),)): 0,
        ("mneme_shard_store_bytes", (("shard", "0"),)): 4096,
        ("mneme_shard_store_bytes", (("shard", "1"),)): 8,
    }


def test_totals_of_a_status_are_counters_and_what_goes_by_something_has_a_label():
    telemetry = Telemetry()
    telemetry.shards(
        [
            {
                "shard": 0,
                "calls_total": 3,
                "jobs": {"attempts_total_by_kind": {"memories.index": 2, "x": 0}},
            }
        ]
    )
    found = {
        name: value
        for name, value in samples(telemetry).items()
        if name[0].startswith("mneme_shard_")
    }
    assert found == {
        ("mneme_shard_calls_total", (("shard", "0"),)): 3,
        ("mneme_shard_jobs_attempts_total", (("kind", "memories.index"), ("shard", "0"))): 2,
        ("mneme_shard_jobs_attempts_total", (("kind", "x"), ("shard", "0"))): 0,
    }
    assert "# TYPE mneme_shard_calls_total counter" in telemetry.exposition()[0].decode()


def test_errors_uploads_and_load_are_told():
    telemetry = Telemetry("g1")
    telemetry.error("rate_limit_exceeded")
    telemetry.uploaded(300)
    telemetry.uploaded(5)
    telemetry.load(7, 1024, 3)
    found, of_g1 = samples(telemetry), ("gateway", "g1")
    assert found[("mneme_errors_total", (("code", "rate_limit_exceeded"), of_g1))] == 1
    assert found[("mneme_upload_bytes_total", (of_g1,))] == 305
    assert (
        found[("mneme_calls_in_flight", (of_g1,))] == 7
        and found[("mneme_body_bytes_arriving", (of_g1,))] == 1024
    )
    assert found[("mneme_placement_version", (of_g1,))] == 3


def test_two_gateways_in_one_process_do_not_share_numbers():
    first, second = Telemetry("a"), Telemetry("b")
    first.request("x", "GET", 200, 0.1)
    assert not [name for name, _ in samples(second) if name == "mneme_requests_total"]
