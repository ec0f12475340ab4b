"""The OpenAPI document of all enabled plugins, without a running service: `python -m
runtime.cli.export_openapi` prints it.

`make client` generates the Python client from it.
"""

from __future__ import annotations

import asyncio
import importlib

from runtime.api.plugin import Registry
from runtime.cluster import LocalShards
from runtime.http import Gateway
from runtime.installation import Secrets
from runtime.settings import Settings
from runtime.telemetry import Telemetry


def exported(registry: Registry, settings: Settings) -> bytes:
    """What a gateway with these operations answers under /openapi.json."""
    gateway = Gateway(registry, settings, LocalShards([]), Secrets.generate(), Telemetry(), None)
    document, _ = asyncio.run(gateway.own.description())
    return document


if __name__ == "__main__":
    service = importlib.import_module("serve_app")
    print(exported(service.registry(), service.Settings()).decode())
