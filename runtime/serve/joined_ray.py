"""A Ray cluster that somebody else runs, and that the service joins and leaves."""

from __future__ import annotations

import io
import logging
import os
import socket
import traceback
from contextlib import redirect_stdout
from typing import Any

from runtime import cluster
from runtime.limits import (
    RAY_CONNECT_SECONDS_MAX,
    SHARD_STATUS_SECONDS_MAX,
    START_SECONDS_MAX,
)
from runtime.serve.listening import StartError, usable_port
from runtime.serve.signals import Signals
from runtime.serve.stopping import stop_all
from runtime.settings import Settings

log = logging.getLogger("mneme.serving")


class JoinedRay:
    """A Ray cluster that somebody else runs, of which this machine is a node.

    Shards and gateways run on this node, where the data directory is, or, with a cluster.name, on
    all of them. Ray Serve is started unless it runs there already, and ended only by who started
    it. What the service brought leaves with it, or is removed by its next start.
    """

    front_door = (
        False  # it would be bound on every node, and its neighbours' ports open to the network
    )

    def __init__(self, settings: Settings):
        self.settings = settings
        self.port = settings.http.port
        self.owns_serve = True
        self._address = str(settings.ray.address)

    def enter(self) -> None:
        """Join, remove what an earlier service left behind on this data directory, and find out
        where Serve listens. Raises StartError.
        """
        os.environ.update(
            {
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_SERVE_LOG_TO_STDERR": "0",
                "RAY_NUM_REDIS_GET_RETRIES": "2",
            }
        )
        self._check_reachable()
        check_token_authentication(self.settings)
        import ray

        try:
            ray.init(
                address=self._address,
                namespace=cluster.namespace(self.settings),
                log_to_driver=False,
                configure_logging=False,
                # The first: see ray_environment. The second: a busy node may need longer for a
                # proxy than the 5 seconds Serve gives it.
                runtime_env={
                    "env_vars": {
                        "FORWARDED_ALLOW_IPS": "",
                        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": str(START_SECONDS_MAX),
                    }
                },
            )
        except (ValueError, RuntimeError, ConnectionError) as refused:
            raise StartError(
                f"No Ray cluster can be joined at {self._address}: {_why_not_joined(refused)}"
            ) from refused
        from ray import serve

        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        if self._remove() and not serve.status().applications:
            self._end_serve()  # it was started by the service that was killed
        self._join_serve()

    def await_front_door(self) -> None:
        """There is none."""

    def _check_reachable(self) -> None:
        """Ray itself would try for two minutes."""
        if "://" in self._address:
            raise StartError(
                f"ray.address {self._address} is a client's address; join the cluster from one of "
                "its machines, as host:port or auto."
            )
        host, colon, port = self._address.rpartition(":")
        if colon and port.isdigit():
            try:
                socket.create_connection(
                    (host.strip("[]"), int(port)), RAY_CONNECT_SECONDS_MAX
                ).close()
            except OSError as refused:
                raise StartError(
                    f"No Ray cluster answers at {self._address}: {refused.strerror or refused}."
                ) from None

    def _join_serve(self) -> None:
        """Use the Serve that runs there, if it listens as the settings say."""
        import ray

        try:
            controller = ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve")
        except ValueError:
            self.port = usable_port(self.settings)
            return
        options: Any = ray.get(
            controller.get_http_config.remote(), timeout=SHARD_STATUS_SECONDS_MAX
        )
        self.owns_serve = False
        if self.port not in (0, options.port) or bool(options.ssl_certfile) != bool(
            self.settings.http.tls_certfile
        ):
            scheme = "HTTPS" if options.ssl_certfile else "plain HTTP"
            raise StartError(
                f"Ray Serve runs on the cluster at {self._address} already, with {scheme} on port "
                f"{options.port}; set the same."
            )
        self.port = options.port

    def attend(self, _signals: Signals, _lock: int) -> None:
        """Stay what it is: a cluster that is lost ends this process through Ray."""

    def broken(self) -> str | None:
        """Watch nothing: the loss of the cluster ends this process through Ray."""
        return None

    def _remove(self) -> bool:
        """Take the application away, which lets running requests end, then close the shards in
        order; -> whether there was one.
        """
        from ray import serve

        name = cluster.namespace(self.settings)
        found = name in serve.status().applications
        if found:
            serve.delete(name)
        stop_all(self.settings)
        return found

    def _end_serve(self) -> None:
        from ray import serve

        with redirect_stdout(
            io.StringIO()
        ):  # Ray prints that Serve's controller died, which is what was asked for
            serve.shutdown()

    def leave(self) -> None:
        """Remove what this service brought, and nothing else."""
        import ray.exceptions
        from ray import serve

        try:
            if ray.is_initialized():
                self._remove()
                if self.owns_serve and not serve.status().applications:
                    self._end_serve()
        except ray.exceptions.RayError as failed:
            log.error("Ray failed while the service left its cluster: %s", failed)
        finally:
            with redirect_stdout(io.StringIO()):
                ray.shutdown()


def check_token_authentication(settings: Settings) -> None:
    """Refuse a Ray cluster that lets in whoever reaches its ports: they run code beside the shards,
    and read the secrets. In production; elsewhere it is warned of. Raises StartError.
    """
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
        return
    if settings.environment == "production":
        raise StartError(
            "a Ray cluster without token authentication runs code for anyone who reaches its "
            "ports, so it is not joined in production. Set RAY_AUTH_MODE=token, and a token "
            "(RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH), for `ray start` on every node and here."
        )
    log.warning(
        "RAY_AUTH_MODE is not `token`: this Ray cluster runs code for anyone who reaches its ports"
    )


def _why_not_joined(refused: Exception) -> str:
    """Ray's reason, or what to do where it wants a token. Ray's own text on that goes on for a
    page.
    """
    if "InvalidAuthToken" in "".join(traceback.format_exception(refused)):
        return (
            "it asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH where the token "
            "is not in ~/.ray/auth_token."
        )
    return str(refused).strip().splitlines()[0]
