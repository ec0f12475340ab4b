"""`mneme monitoring`: what it writes for Prometheus and Grafana fits the service it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.cli import main
from runtime.serve import RunDirectory


def written(directory: Path, data_dir: Path, *settings: str) -> tuple[int, dict[str, Any]]:
    """-> (exit status, prometheus.yml)"""
    given = [f"--set={setting}" for setting in settings]
    status = main(["monitoring", str(directory), "--data-dir", str(data_dir), *given])
    file = directory / "prometheus.yml"
    return status, yaml.safe_load(file.read_text()) if file.exists() else {}


def test_both_metrics_are_scraped_and_both_kinds_of_dashboards_found(tmp_path: Path) -> None:
    directory, data_dir = tmp_path / "monitoring", tmp_path / "data"
    status, prometheus = written(directory, data_dir, "http.metrics_token=a-token-of-the-scraper")
    assert status == 0
    own, ray = prometheus["scrape_configs"]
    assert own["static_configs"] == [{"targets": ["127.0.0.1:8000"]}]
    token = Path(own["authorization"]["credentials_file"])
    assert token.read_text() == "a-token-of-the-scraper" and token.stat().st_mode & 0o077 == 0
    rays_own = RunDirectory.of(data_dir).path / "ray"
    (discovery,) = ray["file_sd_configs"][0]["files"]
    assert Path(discovery).parent == rays_own
    (rules,) = prometheus["rule_files"]
    assert yaml.safe_load(Path(rules).read_text())["groups"]
    provisioning = directory / "grafana/provisioning"
    providers = yaml.safe_load((provisioning / "dashboards/mneme.yml").read_text())["providers"]
    ours, rays = (Path(provider["options"]["path"]) for provider in providers)
    assert json.loads((ours / "mneme.json").read_text())["title"] == "Mneme"
    assert rays.is_relative_to(rays_own)


def test_in_production_prometheus_is_not_given_the_operators_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, prometheus = written(tmp_path / "m", tmp_path / "data", "environment=production")
    assert (status, prometheus) == (1, {})
    assert "set http.metrics_token" in capsys.readouterr().err
