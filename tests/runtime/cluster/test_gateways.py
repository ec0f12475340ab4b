from __future__ import annotations

from typing import Any

from runtime.cluster.gateways import gateway_numbers
from runtime.settings import Settings


def test_the_number_of_gateways_is_fixed_or_follows_the_load() -> None:
    def numbers(**given: int) -> dict[str, Any]:
        return gateway_numbers(
            Settings.load(None, {f"ray.gateway_{name}": value for name, value in given.items()}), 3
        )

    assert numbers(replicas=2) == {"num_replicas": 2}
    assert numbers()["num_replicas"] >= 3
    scaling = {"min_replicas": 2, "max_replicas": 6, "target_ongoing_requests": 40}
    assert numbers(replicas_min=2, replicas_max=6, ongoing_target=40) == {
        "autoscaling_config": scaling
    }
