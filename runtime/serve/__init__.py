"""`mneme serve`: bring the service up, wait for a signal, take it down and leave nothing behind.

    ray     shard actors, and gateways as a Serve application (on_ray.py): on a Ray of its own with
            HAProxy in front (own_ray.py, haproxy.py), or on a cluster it joins (joined_ray.py).
            While it runs on its own, the process that started it is a smaller program
            (attendant.py), and another one ends it (closing.py)
    local   the same gateway and shards in this process, behind uvicorn (local.py)

A start first ends what an earlier, killed run left behind, and every exit checks that nothing is
left (run_directory.py). The data directory is held with a lock throughout
(runtime/installation/layout.py).

Every way in which a start can fail ends with status 1 and one sentence that names the thing:
StartError, LayoutError and the storage's own errors. Ray's environment variables take effect when
Ray is imported, so they are set first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from runtime import cluster, tracing
from runtime.extras import RAY_DASHBOARD
from runtime.installation import (
    LayoutError,
    SecretsError,
    check_object_store,
    held,
    remember_object_store,
)
from runtime.serve.haproxy import neighbour
from runtime.serve.listening import HEALTH_PATH, StartError, check_http, free_port
from runtime.serve.local import run_locally
from runtime.serve.on_ray import run_on_ray
from runtime.serve.run_directory import RunDirectory, RunDirectoryError
from runtime.serve.serve_command import prepare_for_serve_command
from runtime.serve.signals import Signals, StopRequested
from runtime.settings import Settings
from storage.store import StoreError

__all__ = [
    "HEALTH_PATH",
    "RunDirectory",
    "free_port",
    "neighbour",
    "prepare_for_serve_command",
    "serve",
]


def serve(
    settings: Settings, announce: Callable[[str], None] = print, *, module: str = "serve_app"
) -> int:
    """Run until SIGINT or SIGTERM; -> the process's exit status.

    announce  gets the base URL once the service is healthy, in a thread of its own where this one
              has to answer what it asks
    module    names the module that says what is served: open_shard, build and build_local, as
              serve_app has them
    """
    try:
        check_http(settings)
        if (why := tracing.refusal()) is not None:
            raise StartError(why)
        if RAY_DASHBOARD.is_lacking(settings):
            raise StartError(
                "ray.dashboard is set, and what Ray's dashboard stands on is not installed. "
                f"Run {RAY_DASHBOARD.command}, or leave the setting out."
            )
        with held(settings.data_dir) as lock, Signals() as signals:
            check_object_store(settings)
            try:
                if settings.engine == "ray":
                    return run_on_ray(settings, signals, announce, module, lock)
                return run_locally(settings, signals, announce, module)
            finally:
                remember_object_store(settings)
    except (
        StartError,
        cluster.CannotOpen,
        LayoutError,
        StoreError,
        SecretsError,
        RunDirectoryError,
        TimeoutError,
    ) as refused:
        print(f"mneme serve: {refused}", file=sys.stderr)
        return 1
    except StopRequested:
        return 0
