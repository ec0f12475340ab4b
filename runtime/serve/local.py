"""Engine "local": the gateway and the shards in this process, behind uvicorn."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from threading import Thread

from runtime import cluster, tracing
from runtime.installation import Layout
from runtime.limits import LISTENERS_CLOSE_SECONDS_MAX
from runtime.placement import PlacementTable
from runtime.serve.data_directory import has_moves, prepared, shard_count
from runtime.serve.listening import usable_port
from runtime.serve.signals import Signals
from runtime.serve.starting import Starting, starting
from runtime.settings import Settings
from storage.replication import Superseded
from storage.store import StoreError

LOG_NAME = "service"
_START_POLL_SECONDS = 0.1


def run_locally(
    settings: Settings, signals: Signals, announce: Callable[[str], None], module: str
) -> int:
    import uvloop

    port = usable_port(settings)
    layout = prepared(settings)
    cluster.log_to_file(settings, LOG_NAME, sys.stderr)
    tracing.start(LOG_NAME)
    with (
        starting(settings, port, shard_count(settings)) as meanwhile,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        serving = _serve_locally(settings, port, meanwhile, layout, signals, announce, module)
        return runner.run(serving)


async def _serve_locally(
    settings: Settings,
    port: int,
    meanwhile: Starting | None,
    layout: Layout,
    signals: Signals,
    announce: Callable[[str], None],
    module: str,
) -> int:
    """Open the shards, listen until a signal or a storage fault, close the shards; -> exit
    status.
    """
    import uvicorn

    from runtime.serve.connection import Connection
    from runtime.shard import StorageFailed

    opened: list[cluster.ShardLike] = []
    shards = cluster.LocalShards(opened, table=PlacementTable(settings.data_dir))
    try:
        for number in range(shard_count(settings)):
            opened.append(await cluster.open_shard(settings, number, f"{module}:open_shard"))
        layout.completed(settings.data_dir)
        if has_moves(settings):
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

        shards.on_fault = signals.on_stop = stop_serving
        watching = asyncio.create_task(shards.watch())
        signals.started()
        listeners = [meanwhile.hand_over()] if meanwhile else None
        running = asyncio.create_task(server.serve(listeners))
        while not (server.started or running.done()):
            await asyncio.sleep(_START_POLL_SECONDS)
        if server.started:
            url = settings.http.base_url_on(port)
            # This loop has to answer what is asked there.
            Thread(target=announce, args=(url,), name="mneme-announce", daemon=True).start()
        await running
        watching.cancel()
    finally:
        try:
            await shards.drain()
            await shards.close()
        except (StorageFailed, StoreError):
            if not shards.failed:  # else what fails here is what ended it
                raise
        tracing.stop()
    if shards.fenced:
        raise Superseded(shards.fenced)
    return cluster.EXIT_STORAGE_FAULT if shards.failed else 0
