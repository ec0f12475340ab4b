"""What `serve run` and `serve deploy`, the commands of Ray Serve, need before they import the
application.
"""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack

from runtime.installation import Secrets, held
from runtime.serve.data_directory import prepared
from runtime.serve.joined_ray import check_token_authentication
from runtime.serve.stopping import stop_all
from runtime.settings import Settings


def prepare_for_serve_command(settings: Settings) -> None:
    """Take hold of the data directory for `serve run`, and have what it leaves on Ray removed when
    that command ends. Raises StartError where the cluster may not be used.

    The same module is imported by a worker for `serve deploy`, whose application outlives every
    command: nothing is held then.
    """
    check_token_authentication(settings)
    import ray

    if settings.cluster.name is not None:
        Secrets.of(settings)
        return  # the supervisor prepares every node
    if ray.is_initialized():
        prepared(settings)
        return
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")  # see ray_environment
    until_exit = ExitStack()
    until_exit.enter_context(held(settings.data_dir))
    prepared(settings)

    @until_exit.callback
    def remove_shards() -> None:
        if ray.is_initialized():
            stop_all(settings)

    atexit.register(until_exit.close)  # before Ray's own, which was registered when it was imported
