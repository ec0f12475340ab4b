"""Engine "ray": shard actors, and gateways as a Serve application, on a Ray of the service's own or
on one that it joins.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from threading import Thread
from typing import Any

from runtime import cluster
from runtime.installation import Layout, Secrets
from runtime.serve.data_directory import has_moves, prepared, shard_count
from runtime.serve.joined_ray import JoinedRay
from runtime.serve.listening import StartError, wait_until_healthy
from runtime.serve.own_ray import OwnRay
from runtime.serve.run_directory import RunDirectory
from runtime.serve.signals import Signals, StopRequested
from runtime.serve.starting import starting
from runtime.settings import Settings

log = logging.getLogger("mneme.serving")

_WATCH_SECONDS = 1.0
_CONTROLLER_POLL_SECONDS = 0.02


def run_on_ray(
    settings: Settings,
    signals: Signals,
    announce: Callable[[str], None],
    module: str,
    lock: int,
) -> int:
    """Run until a signal; -> exit status. lock: descriptor of the data directory's. On a Ray of the
    service's own, this returns only where the start came to nothing: once the service runs, the
    process goes on as another program.
    """
    run_directory = RunDirectory.of(settings.data_dir)
    run_directory.end_processes()
    room = OwnRay(settings, run_directory) if settings.ray.address is None else JoinedRay(settings)
    layout = prepared(settings) if settings.cluster.name is None else None
    if layout is None:
        check_several_nodes(settings)
    until_front_door = ExitStack()
    status = 1
    try:
        meanwhile = (
            until_front_door.enter_context(
                starting(
                    settings,
                    room.port,
                    settings.shards.count if layout is None else shard_count(settings),
                )
            )
            if room.front_door
            else None
        )
        room.enter()
        if meanwhile is not None:
            meanwhile.leave_when_told(run_directory.starting)
        signals.take()  # Ray puts handlers of its own in place
        _bring_up(settings, room, layout, module)
        wait_until_healthy(settings, room.port)
        room.await_front_door()
        announce(settings.http.base_url_on(room.port))
        signals.started()
        until_front_door.close()
        room.attend(signals, lock)
        status = _watch(signals, room)
        return status
    except (StartError, RuntimeError, ConnectionError, TimeoutError) as refused:
        if room.front_door and (
            why := run_directory.no_front_door()
        ):  # all that Serve says is that its proxy does not come
            raise StartError(why) from refused
        if isinstance(refused, StartError):
            raise
        raise StartError(f"Ray did not start: {_last_line(refused)}") from refused
    except StopRequested:
        status = 0  # of a start that was broken off nobody asks why
        raise
    finally:
        signals.started()  # a second signal must not break off the clean-up
        until_front_door.close()
        room.leave()
        cluster.remove_dead_sockets(settings)
        if status == 0:  # else what Ray and HAProxy have written may say why
            run_directory.remove()


def _bring_up(
    settings: Settings, room: OwnRay | JoinedRay, layout: Layout | None, module: str
) -> None:
    """Start shards and gateways; return when they are up. layout: None on several nodes."""
    opener = f"{module}:open_shard"
    laid_out: list[Any] = []
    if layout is None:
        supervisor = cluster.start_supervisor(settings, opener)
        opening, laid_out = [supervisor.open.remote()], [supervisor.lay_out.remote()]
    else:
        opening = cluster.open_shards(cluster.start_shards(settings, shard_count(settings), opener))
    # Shards open, Serve's proxies start and gateways start at the same time.
    proxies = _start_serve(room)
    cluster.await_open(laid_out)  # gateways read the layout first
    _start_gateways(room, f"{module}:build")
    cluster.await_open(opening)
    proxies.result()
    if layout is not None:
        layout.completed(settings.data_dir)
        if has_moves(settings):
            # it goes on with them
            cluster.start_supervisor(settings, opener).order.remote("report", {})


def check_several_nodes(settings: Settings) -> None:
    """Raise StartError, SecretsError where several nodes could not have what they have in
    common.
    """
    if settings.ray.address is None:
        raise StartError(
            "cluster.name is set: name the Ray cluster to join with --address HOST:PORT, or auto."
        )
    Secrets.of(settings)


def _start_serve(room: OwnRay | JoinedRay) -> Future[None]:
    """Start Serve and its proxies, unless they run; return once applications can be deployed, and
    what is done when the proxies listen.
    """
    done: Future[None] = Future()
    if not room.owns_serve:
        done.set_result(None)
        return done

    def start() -> None:
        try:
            done.set_result(_serve_with_proxies(room))
        except BaseException as failed:
            done.set_exception(failed)

    # A daemon, since nobody waits for it where the start is broken off.
    Thread(target=start, name="mneme-serve", daemon=True).start()
    while not done.done() and not _has_controller():
        time.sleep(_CONTROLLER_POLL_SECONDS)
    return done


def _has_controller() -> bool:
    import ray
    from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE

    try:
        ray.get_actor(SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)
    except ValueError:
        return False
    return True


def _serve_with_proxies(room: OwnRay | JoinedRay) -> None:
    from ray import serve
    from ray.serve.config import HTTPOptions

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    settings = room.settings
    # Behind the front door the replicas listen on loopback only and speak plain HTTP; it has the
    # real address and TLS.
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


def _start_gateways(room: OwnRay | JoinedRay, builder: str) -> None:
    """Deploy the gateways; return when they are up. Raises StartError, RuntimeError."""
    from ray import serve
    from ray.serve.exceptions import RayServeException

    application = cluster.resolve(builder)(room.settings, room.front_door)
    try:
        serve.run(
            application,
            name=cluster.namespace(room.settings),
            route_prefix="/",
            logging_config=_quiet(),
        )
    except RayServeException as refused:
        raise StartError(
            f"Ray Serve does not take the gateways: {_last_line(refused)}"
        ) from refused


def _quiet() -> Any:
    from ray.serve.schema import LoggingConfig

    return LoggingConfig(log_level="WARNING", enable_access_log=False)


def _last_line(error: BaseException) -> str:
    """What an error says where its text is a whole traceback from another process."""
    return re.sub(r"^[\w.]+(?:Error|Exception): ", "", str(error).strip().splitlines()[-1])


def _watch(signals: Signals, room: OwnRay | JoinedRay) -> int:
    """Wait for a signal, 0, or for the end of something Ray cannot do without, 1."""
    while not signals.wait(_WATCH_SECONDS):
        if (loss := room.broken()) is not None:
            log.critical("%s; the service stops", loss)
            return 1
    return 0
