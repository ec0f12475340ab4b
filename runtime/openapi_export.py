"""The OpenAPI document of all enabled plugins, without a running service: `python -m runtime.openapi_export` prints it.

`make client` generates the Python client from it.
"""

from __future__ import annotations

import asyncio
import importlib

from runtime.cluster import LocalShards
from runtime.gateway import Gateway
from runtime.plugin import Registry
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.telemetry import Telemetry


def exported(registry: Registry) -> bytes:
    """What a gateway with these operations answers under /openapi.json."""
    gateway = Gateway(registry, Settings(), LocalShards([]), Secrets.generate(), Telemetry(), None)
    document, _ = asyncio.run(gateway.description())
    return document


if __name__ == "__main__":
    print(exported(importlib.import_module("serve_app").registry()).decode())
