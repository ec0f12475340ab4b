"""`mneme monitoring DIR`: configuration of Prometheus and Grafana for the service of these
settings, its own metrics and those of Ray.

    prometheus.yml                 scrapes both; Ray says itself where its metrics are
    alerts.yaml                    the rules that OPERATIONS.md explains
    metrics-token                  what /metrics asks for, where the settings have one
    grafana/grafana.ini            listens on loopback and shows panels inside Ray's dashboard
    grafana/provisioning/…         the data source, and two folders of dashboards: ours and Ray's

Written for this machine: paths are absolute, addresses those of loopback.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from runtime.settings import Settings

PROMETHEUS, GRAFANA = "http://127.0.0.1:9090", "http://127.0.0.1:3000"
_HERE = Path(__file__).parent
_DISCOVERY = "prom_metrics_service_discovery.json"  # which Ray keeps up to date
_INI = """\
[server]
http_addr = 127.0.0.1

[security]
allow_embedding = true

[auth.anonymous]
enabled = true
org_role = Viewer

[paths]
provisioning = {provisioning}
"""


class NothingToWrite(Exception):
    """The files cannot be made; the message is one sentence."""


def write(settings: Settings, directory: Path) -> list[str]:
    """Write the files into a directory, which is made where it is missing; -> what to do with them,
    line by line. Raises NothingToWrite, OSError.
    """
    directory = directory.absolute()
    provisioning, dashboards = directory / "grafana/provisioning", directory / "grafana/dashboards"
    for folder in (provisioning / "datasources", provisioning / "dashboards", dashboards):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_HERE / "alerts.yaml", directory / "alerts.yaml")
    shutil.copyfile(_HERE / "grafana-dashboard.json", dashboards / "mneme.json")
    ray = _ray_directory(settings)
    _put(directory / "prometheus.yml", _prometheus(settings, directory, ray))
    source = {"name": "Prometheus", "type": "prometheus", "url": PROMETHEUS, "isDefault": True}
    sources = {"apiVersion": 1, "datasources": [{**source, "access": "proxy"}]}
    _put(provisioning / "datasources/mneme.yml", sources)
    folders = {"Mneme": dashboards, "Ray": ray / "session_latest/metrics/grafana/dashboards"}
    providers = [
        {"name": name, "folder": name, "type": "file", "options": {"path": str(path)}}
        for name, path in folders.items()
    ]
    _put(provisioning / "dashboards/mneme.yml", {"apiVersion": 1, "providers": providers})
    (directory / "grafana/grafana.ini").write_text(_INI.format(provisioning=provisioning))
    return [
        f"prometheus --config.file={directory}/prometheus.yml --web.listen-address=127.0.0.1:9090",
        f"grafana server --config {directory}/grafana/grafana.ini --homepath /usr/share/grafana",
        f"RAY_PROMETHEUS_HOST={PROMETHEUS} RAY_GRAFANA_HOST={GRAFANA} mneme serve --ray-dashboard",
    ]


def _prometheus(settings: Settings, directory: Path, ray: Path) -> dict[str, Any]:
    address = urlsplit(settings.http.base_url)
    own: dict[str, Any] = {
        "job_name": "mneme",  # the alert rules go by this name
        "scheme": address.scheme,
        "static_configs": [{"targets": [address.netloc]}],
    }
    token = settings.http.metrics_token
    if token is not None:
        path = directory / "metrics-token"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(token.get_secret_value())
        own["authorization"] = {"credentials_file": str(path)}
    elif settings.environment == "production":
        raise NothingToWrite(
            "In production /metrics asks for a token: set http.metrics_token, so that Prometheus "
            "is not given the operator's."
        )
    of_ray = {"job_name": "mneme-ray", "file_sd_configs": [{"files": [str(ray / _DISCOVERY)]}]}
    return {
        "global": {"scrape_interval": "10s", "evaluation_interval": "10s"},
        "rule_files": [str(directory / "alerts.yaml")],
        "scrape_configs": [own, of_ray],
    }


def _ray_directory(settings: Settings) -> Path:
    """Where Ray keeps its session: in the run directory, or where a cluster has it by default."""
    if settings.ray.address is not None:
        return Path("/tmp/ray")
    from runtime.serve import RunDirectory

    return RunDirectory.of(settings.data_dir).path / "ray"


def _put(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
