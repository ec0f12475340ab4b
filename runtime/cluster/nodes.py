"""The nodes of a Ray cluster, by name, and what each of them says of itself before it gets a shard.

A node's name is its label `mneme-node`, which it keeps when it comes back (`ray start --labels
mneme-node=a`). Where no node has the label, all nodes take part under Ray's own ids, and one that
comes back is known by the directories it brings.

A node is inspected when it is seen, and again while it is not fit: that its release is the
service's, that its data directory is its own and belongs to this installation, that no secret of
its environment differs from that of the settings, and which shards it has directories of.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.cluster.release import OtherRelease, check_release, release_of
from runtime.cluster.shard_home import set_strangers_aside
from runtime.installation import (
    SECRET_NAMES,
    LayoutError,
    copy_layout,
    read_shared_layout,
    shared_objects,
)
from runtime.limits import NODE_INSPECTION_SECONDS_MAX
from runtime.placement import Placement, PlacementTable
from runtime.settings import VARIABLE_PREFIX, Settings
from storage.store import StoreError

LABEL = "mneme-node"
_RAYS_LABEL = "ray.io/node-id"
_RAYS_ID = re.compile(r"[0-9a-f]{56}")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a node says. place: host and data directory; shards: those it has directories of;
    problem: why it gets no shard, or "".
    """

    place: str = ""
    shards: tuple[int, ...] = ()
    problem: str = ""


def on_ray() -> bool:
    """Whether this process is of a Ray. It imports nothing to find out."""
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized()


def gpus() -> float:
    """How many GPUs the nodes of Ray have together."""
    import ray

    return ray.cluster_resources().get("GPU", 0.0)


def this_node() -> Mapping[str, str]:
    """The label selector that keeps an actor on the node of this process."""
    import ray

    return {_RAYS_LABEL: ray.get_runtime_context().get_node_id()}


def selector(node: str) -> dict[str, str]:
    """The label selector of a node's name."""
    return {_RAYS_LABEL if _RAYS_ID.fullmatch(node) else LABEL: node}


def own_name() -> str:
    """Name of the node of this process: its label, else its id."""
    import ray

    context = ray.get_runtime_context()
    labels: Any = context.get_node_labels()
    return labels.get(LABEL) or context.get_node_id()


def alive(placement: Placement) -> set[str]:
    """Names of the nodes that are there. Asks Ray, and blocks while it does."""
    import ray

    labels = [node["Labels"] for node in ray.nodes() if node["Alive"]]
    named = {each[LABEL] for each in labels if LABEL in each}
    if named or not all(_RAYS_ID.fullmatch(place.node or "0" * 56) for place in placement.shards):
        return named
    return {each[_RAYS_LABEL] for each in labels}


def _run_there(node: str, function: Callable[..., Any], *given: Any) -> Awaitable[Any]:
    """Run a function of the release that is installed on the node."""
    import ray

    there: Any = ray.remote(function)
    return there.options(num_cpus=0, max_retries=0, label_selector=selector(node)).remote(*given)


async def inspected(
    settings: Settings,
    opener: str,
    node: str,
    others: Container[str],
    run_there: Callable[..., Awaitable[Any]] = _run_there,
) -> Inspection:
    """What the node says. opener: of the shards; others: the nodes that are there."""
    import ray.exceptions

    try:
        async with asyncio.timeout(NODE_INSPECTION_SECONDS_MAX):
            # first, because another release may not even read the settings
            found = await run_there(node, release_there, opener)
            check_release(release_of(opener), found, f"Node {node}")
            return await run_there(node, look_around, settings.core(), node, others)
    except OtherRelease as other:
        return Inspection(problem=str(other))
    except (ray.exceptions.RayError, TimeoutError) as failed:
        reason = str(failed).strip().splitlines()[-1:] or ["no answer"]
        return Inspection(problem=f"Node {node} cannot be inspected: {reason[0]}")


def release_there(opener: str) -> str:
    """Tell the release of the node it runs on. Ray ships plain functions only, and none that
    remembers its answers.
    """
    return release_of(opener)


def look_around(settings: Settings, node: str, others: Container[str]) -> Inspection:
    """Look at the node it runs on."""
    for name in SECRET_NAMES:
        given = getattr(settings.secrets, name)
        found = os.environ.get(f"{VARIABLE_PREFIX}SECRETS__{name.upper()}")
        if found is not None and found != given.get_secret_value():
            return Inspection(
                problem=(
                    f"The environment of node {node} has another secret {name} than the settings "
                    "of the service."
                )
            )
    settings = settings.on_node(os.environ)
    try:
        copy_layout(read_shared_layout(shared_objects(settings)), settings.data_dir)
        placement = PlacementTable.of(settings).load()
        kept = set_strangers_aside(settings, placement, node, others)
    except (LayoutError, StoreError, OSError) as refused:
        return Inspection(problem=f"Node {node}: {refused}")
    return Inspection(f"{socket.gethostname()}:{settings.data_dir.resolve()}", tuple(kept))


def count() -> int:
    """How many nodes are there that can take part."""
    return len(alive(Placement.even(1)))


def resources() -> int:
    """The processors of all nodes that are there, as Ray counts them."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


def named_actors(namespace: str) -> set[str]:
    """Names of the actors of an installation, wherever they are and whether or not they answer."""
    import ray

    found: Any = ray.util.list_named_actors(all_namespaces=True)
    return {actor["name"] for actor in found if actor["namespace"] == namespace}
