"""What an operator watches: dashboard, alerts and OPERATIONS.md ask for metrics that a service
which was used really has.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support import ROOT
from tests.support.receivers import receiver
from tests.support.served import PASSWORD, Served

MONITORING = ROOT / "runtime/cli/monitoring"
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text())
RULES = [
    rule
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
OPERATIONS = (ROOT / "OPERATIONS.md").read_text()
TARGETS = [
    (panel["title"], target["expr"])
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
]
EXPRESSIONS = [expression for _, expression in TARGETS] + [rule["expr"] for rule in RULES]
# None is called job or instance: a scrape gives these itself.
LABELS = {"operation", "method", "status", "gateway", "shard", "kind", "code", "le"}
DELIVERED_SECONDS_MAX = 60


class Scrape:
    """Sample names of a scrape -> the labels they carry."""

    def __init__(self, text: str):
        self.text = text
        self.labels: dict[str, set[str]] = defaultdict(set)
        self.values: dict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.labels[sample.name] |= set(sample.labels)
                self.values[sample.name] += sample.value


@pytest.fixture(
    scope="module",
    params=["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.long])],
)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("watched")
    options = {
        "webhooks.allow_private_networks": True,
        "log.format": "json",
        "object_store.url": (directory / "objects").as_uri(),
    }
    service = Served(directory / "data", request.param, settings=options)
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="module")
def scrape(served: Served) -> Scrape:
    """After traffic: an account, memories, searches, a file, a webhook, refusals."""
    http = served.http
    account = {"email": "watched@example.com", "password": PASSWORD, "full_name": "Ada Watched"}
    http.headers["Authorization"] = (
        "Bearer " + http.post("/v1/auth/register", json=account).json()["access_token"]
    )
    with receiver() as listening:
        http.post(
            "/v1/webhooks", json={"url": listening.url, "events": ["memory.created"]}
        ).raise_for_status()
        http.post(
            "/v1/memories",
            json={"content": "The spare key is under the flowerpot.", "user_id": "watched-user"},
        ).raise_for_status()
        http.post(
            "/v1/search", json={"query": "Where is the spare key?", "user_id": "watched-user"}
        ).raise_for_status()
        http.post(
            "/v1/documents/upload", files={"file": ("a.txt", b"Rye bread is baked on Mondays.")}
        ).raise_for_status()
        assert http.get("/v1/memories/mem_nonsense").status_code == 404
        deadline = time.monotonic() + DELIVERED_SECONDS_MAX
        while not (found := Scrape(http.get("/metrics").text)).values["mneme_shard_outbound_2xx"]:
            assert time.monotonic() < deadline, "nothing was delivered"
    return found


def metrics_of(expression: str) -> Iterator[tuple[str, set[str]]]:
    """(metric, labels that are asked of it) of a PromQL expression."""
    grouped = {
        label.strip()
        for found in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in found.split(",")
    }
    for name, matchers in re.findall(r"\b(mneme_\w+)(?:\{([^}]*)\})?", expression):
        yield name, grouped | set(re.findall(r"(\w+)=", matchers or ""))


@pytest.mark.parametrize("expression", sorted(set(EXPRESSIONS)))
def test_every_metric_that_is_asked_for_exists_with_its_labels(
    scrape: Scrape, expression: str
) -> None:
    asked = list(metrics_of(expression))
    assert asked or "up{" in expression
    for name, labels in asked:
        assert name in scrape.labels, name
        assert labels <= scrape.labels[name], (name, labels)


def test_the_metrics_moved_with_the_traffic(scrape: Scrape) -> None:
    for name in (
        "requests_total", "request_seconds_count", "errors_total", "upload_bytes_total",
        "shard_calls_total", "shard_write_commits_total",
        "shard_write_calls_total", "shard_write_seconds_total", "shard_write_credits_metered_total",
        "shard_jobs_attempts_total",
        "shard_outbound_2xx", "shard_embedder_texts_total", "shard_store_data_bytes",
        "shard_store_disk_free_bytes",
        "shard_residents_bytes", "process_open_fds",
    ):  # fmt: skip
        assert scrape.values[f"mneme_{name}"] > 0, name
    assert scrape.values["mneme_upload_bytes_total"] == len("Rye bread is baked on Mondays.")


def test_no_metric_names_an_account_or_what_it_says(scrape: Scrape) -> None:
    assert set().union(*scrape.labels.values()) <= LABELS
    for told in ("watched", "flowerpot", "usr_", "key_", "127.0.0.1"):
        assert told not in scrape.text, told


def test_the_handbook_names_what_there_is(scrape: Scrape) -> None:
    for name in set(re.findall(r"`(mneme_\w+\*?)", OPERATIONS)):
        known = [one for one in scrape.labels if one.startswith(name.removesuffix("*"))]
        assert known and (
            name.endswith("*") or name in scrape.labels or f"{name}_count" in scrape.labels
        ), name


def test_every_alert_is_explained_and_every_explanation_has_its_alert() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) and all(
        rule["labels"]["severity"] in ("page", "ticket") for rule in RULES
    )
    explained = OPERATIONS.split("\n## Alerts\n")[1]
    assert set(re.findall(r"\*\*(Mneme\w+)\.?\*\*", explained)) == {
        name.removesuffix(".") for name in names
    }
    assert set(re.findall(r"\bMneme[A-Z]\w+", OPERATIONS)) <= set(names)


def test_the_dashboard_fits_together() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["type"] == "row" or (panel["targets"] and panel["description"].endswith("."))
    rows: dict[int, int] = defaultdict(int)
    for panel in panels:
        rows[panel["gridPos"]["y"]] += panel["gridPos"]["w"]
    assert all(width == 24 for width in rows.values())


def test_log_lines_are_objects(served: Served, scrape: Scrape) -> None:
    for line in io.StringIO(served.errors):
        assert {"at", "level", "logger", "message", "request_id"} <= set(json.loads(line))
