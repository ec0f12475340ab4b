"""The gateways as an application of Ray Serve: where they run, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.cluster import nodes
from runtime.limits import GATEWAY_CONNECTIONS_MAX, LISTENERS_CLOSE_SECONDS_MAX
from runtime.settings import Settings


def application(
    gateway: type, settings: Settings, front_door: bool, models: Sequence[Any] = ()
) -> Any:
    """The Serve application: the gateways, and the models that shards share.

    gateway     gateway(settings, front_door, *models) makes a replica; it defines
                __serve_build_asgi_app__, and need not use the handles of the models
    models      their deployments, bound (model_deployments)
    front_door  the front door of runtime/serve/haproxy.py stands before the replicas, rather than
                whatever proxy Serve runs
    """
    from ray import serve

    here = (
        {} if settings.cluster.name or not nodes.on_ray() else {"label_selector": nodes.this_node()}
    )
    at_least = nodes.count() if settings.cluster.name and nodes.on_ray() else 1
    deployment = serve.deployment(
        serve.ingress(None)(gateway),
        name="gateway",
        max_ongoing_requests=GATEWAY_CONNECTIONS_MAX,
        graceful_shutdown_timeout_s=LISTENERS_CLOSE_SECONDS_MAX,
        ray_actor_options={"num_cpus": 0.1} | here,
        **gateway_numbers(settings, at_least),
    )
    return deployment.bind(settings, front_door, *models)


def gateway_numbers(settings: Settings, at_least: int) -> dict[str, Any]:
    """How many gateways there are, as Serve's options: so many, or as many as the load asks for.
    at_least: where no number is set.
    """
    if settings.ray.gateway_replicas_max:
        most, target = settings.ray.gateway_replicas_max, settings.ray.gateway_ongoing_target
        fewest = min(settings.ray.gateway_replicas_min, most)
        return {
            "autoscaling_config": {
                "min_replicas": fewest,
                "max_replicas": most,
                "target_ongoing_requests": target,
            }
        }
    return {
        "num_replicas": settings.ray.gateway_replicas
        or max(settings.ray.resolved_gateway_replicas, at_least)
    }


def gateway_name() -> str:
    """The name of the gateway replica this process is: a number that its successor inherits, so
    that logs do not pile up.
    """
    from ray import serve

    return f"gateway-{serve.get_replica_context().rank.rank}"
