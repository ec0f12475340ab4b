"""Ray's own dashboard: behind its token, with our names, metrics and log lines."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from ray._private.ray_constants import DEFAULT_DASHBOARD_AGENT_LISTEN_PORT

from runtime.cli import main
from runtime.serve import RunDirectory, free_port
from tests.support.served import Served, served
from tests.support.tiny_service import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """-> the service, and where its Ray's dashboard is. As beside another Ray: what Ray's agent
    listens on by default is taken.
    """
    port = free_port("127.0.0.1")
    shown = {"ray.dashboard": True, "ray.dashboard_port": port}
    directory = tmp_path_factory.mktemp("watched")
    with ExitStack() as beside:
        with suppress(OSError):  # another Ray has it indeed
            beside.enter_context(socket.create_server(("", DEFAULT_DASHBOARD_AGENT_LISTEN_PORT)))
        with served(directory / "data", "ray", **shown, log__level="info") as service:
            yield service, f"http://127.0.0.1:{port}"


@pytest.fixture
def ray(watched: tuple[Served, str]) -> Iterator[httpx.Client]:
    token = RunDirectory.of(watched[0].data_dir).token.read_text().strip()
    with httpx.Client(base_url=watched[1], headers={"Authorization": f"Bearer {token}"}) as client:
        yield client


def test_nobody_is_shown_anything_without_the_token(watched: tuple[Served, str]) -> None:
    assert httpx.get(f"{watched[1]}/api/v0/actors").status_code == 401


def test_actors_and_deployments_say_what_they_are(
    watched: tuple[Served, str], ray: httpx.Client
) -> None:
    actors = ray.get("/logical/actors").json()["data"]["actors"].values()
    shown: dict[str, Any] = {actor["name"]: actor for actor in actors}
    data_dir = watched[0].data_dir
    assert shown["shard-0"]["reprName"] == f"Mneme shard 0 on this machine, {data_dir}"
    applications = ray.get("/api/serve/applications/").json()["applications"]
    (application,) = applications.values()
    assert application["status"] == "RUNNING" and [*application["deployments"]] == ["gateway"]


def test_a_request_is_counted_in_rays_metrics_and_found_in_its_logs(
    watched: tuple[Served, str], ray: httpx.Client
) -> None:
    service, _ = watched
    token = service.register()
    asked = {"Authorization": f"Bearer {token}", "X-Request-ID": "req_of_this_test"}
    assert service.http.get("/v1/memories", headers=asked).status_code == 200
    (node,) = ray.get("/nodes?view=summary").json()["data"]["summary"]
    exported = f"http://127.0.0.1:{node['raylet']['metricsExportPort']}/metrics"

    def is_counted() -> bool:
        text = httpx.get(exported).text
        return "ray_mneme_requests_total{" in text and "ray_mneme_shard_open{" in text

    assert eventually(is_counted)
    file = {"node_id": node["raylet"]["nodeId"], "filename": "mneme/requests-gateway-0.log"}

    def logged() -> str:
        return ray.get("/api/v0/logs/file", params=file).text

    assert eventually(lambda: "req_of_this_test" in logged()), logged()


def test_what_is_written_for_prometheus_and_grafana_leads_to_both_metrics(
    watched: tuple[Served, str], tmp_path: Path
) -> None:
    service, _ = watched
    where = ["--data-dir", str(service.data_dir), "--port", service.url.rpartition(":")[2]]
    assert main(["monitoring", str(tmp_path), *where]) == 0
    own, ray = yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"]
    (address,) = own["static_configs"][0]["targets"]
    assert "mneme_shard_open{" in httpx.get(f"http://{address}/metrics").text
    (discovery,) = map(Path, ray["file_sd_configs"][0]["files"])
    assert eventually(discovery.exists)
    (group,) = json.loads(discovery.read_text())

    def exported() -> str:
        return "".join(httpx.get(f"http://{each}/metrics").text for each in group["targets"])

    assert eventually(lambda: "ray_mneme_shard_open{" in exported())
    dashboards = yaml.safe_load(
        (tmp_path / "grafana/provisioning/dashboards/mneme.yml").read_text()
    )
    _, rays = (Path(provider["options"]["path"]) for provider in dashboards["providers"])
    shown = (rays / "serve_grafana_dashboard.json").read_text()
    asked = set(
        re.findall(r"ray_serve_deployment_replica_healthy|ray_serve_num_http_requests", shown)
    )
    assert asked and eventually(lambda: all(f"\n{name}" in exported() for name in asked))
