"""What is installed: the plugins, and how shards and gateways are made from them.

`registry()` is the one list of features. `build(settings)` is the Serve application; `serve run serve_app:app` deploys it too,
with the settings of the configuration file and the environment. Importing this module does not import Ray.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from functools import cache
from typing import Any

from plugins import (
    account_erasure,
    account_list,
    account_transfer,
    accounts,
    answers,
    billing,
    chat,
    collections,
    confidence,
    corrections,
    dashboard,
    decisions,
    documents,
    dropin,
    feedback,
    graph,
    graph_search,
    ingestion,
    learning,
    mcp,
    memories,
    memory_files,
    memory_lists,
    memory_tools,
    placement,
    profile,
    search,
    search_advanced,
    training,
    upkeep,
    usage,
    webhooks,
)
from runtime import cluster, serving
from runtime.front_proxy import neighbour
from runtime.gateway import build_asgi
from runtime.inference import Models, load_models
from runtime.language_model import load_language_model
from runtime.layout import Layout, shard_directory
from runtime.minilm_weights import ModelUnusable
from runtime.placement_table import PlacementTable
from runtime.plugin import Registry
from runtime.ray_shards import RayShards
from runtime.secrets import Secrets
from runtime.settings import Settings, default_config
from runtime.shard import CORE_INDEXES, CORE_TABLES, Shard
from runtime.shard_home import open_at_home
from runtime.slot_gate import SlotGate
from runtime.supervisor_actor import start_supervisor
from runtime.telemetry import Telemetry

PLUGINS = (
    accounts.plugin,
    collections.plugin,
    memories.plugin,
    memory_lists.plugin,
    memory_tools.plugin,
    memory_files.plugin,
    search.plugin,
    documents.plugin,
    search_advanced.plugin,
    webhooks.plugin,
    usage.plugin,
    billing.plugin,
    account_list.plugin,
    placement.plugin,
    account_erasure.plugin,
    account_transfer.plugin,
    answers.plugin,
    profile.plugin,
    chat.plugin,
    learning.plugin,
    corrections.plugin,
    decisions.plugin,
    confidence.plugin,
    feedback.plugin,
    training.plugin,
    graph.plugin,
    graph_search.plugin,
    ingestion.plugin,
    upkeep.plugin,
    dashboard.plugin,
    dropin.plugin,
    mcp.plugin,
)

SWITCH_SECONDS = 0.0002
OPENER = "serve_app:open_shard"


@cache
def registry() -> Registry:
    """Every operation, table, event and job of the service."""
    return Registry.build(PLUGINS, core_tables=CORE_TABLES, core_indexes=CORE_INDEXES)


@cache
def models(settings: Settings) -> Models:
    """The models of this process, shared by all that live in it. Blocks while they load. Raises CannotOpen."""
    try:
        return load_models(settings, settings.data_dir)
    except ModelUnusable as missing:
        raise cluster.CannotOpen(str(missing)) from missing


async def open_shard(settings: Settings, number: int) -> Shard:
    """Open one shard of the data directory, with the models it prepares calls with. Raises StoreError."""
    layout, table = Layout.load(settings.data_dir), PlacementTable.of(settings)

    loading = asyncio.create_task(asyncio.to_thread(models, settings))  # while the shard is restored, if it has to be

    async def make() -> Shard:
        directory, gate = shard_directory(settings.data_dir, number), SlotGate(number, table)
        return Shard(directory, registry(), settings, await loading, layout.identity(number), Secrets.of(settings), gate)

    if settings.cluster.name is not None:
        shard = await open_at_home(settings, number, make)
    else:
        shard = await make()
        await shard.open(create=not layout.complete or not table.load().holds(number))
    # The model's thread needs the interpreter's lock for microseconds between two runs; it should not wait out a turn of a search.
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what is loaded by now stays, so no collection need look at it again
    return shard


def build_local(settings: Settings, shards: cluster.LocalShards) -> Any:
    """The ASGI application over shards of this process."""
    secrets = Secrets.of(settings)
    return build_asgi(registry(), settings, shards, secrets, Telemetry(), models=models(settings))


class Gateway:
    """One gateway replica: the ASGI application in a process of its own, with the shard actors behind it."""

    def __init__(self, settings: Settings, front_door: bool):
        settings = settings.on_node(os.environ)
        cluster.log_to_file(settings, cluster.gateway_name())
        secrets = Secrets.of(settings)
        shards = RayShards(settings, registry(), OPENER)
        telemetry = Telemetry(gateway=str(os.getpid()))
        own = Models(embedder=None, language_model=load_language_model(settings))
        self._application = neighbour(build_asgi(registry(), settings, shards, secrets, telemetry, models=own), front_door)

    def __serve_build_asgi_app__(self) -> Any:
        return self._application


class SelfStartingGateway(Gateway):
    """A gateway replica that finds its shards or starts them: nobody else does under `serve run`."""

    def __init__(self, settings: Settings, front_door: bool):
        if settings.cluster.name is not None:
            cluster.await_open([start_supervisor(settings, OPENER).open.remote()])
            super().__init__(settings, front_door)
            return
        layout = Layout.load(settings.data_dir)
        shards = len(PlacementTable(settings.data_dir).load().shards)
        cluster.await_open(cluster.open_shards(cluster.start_shards(settings, shards, OPENER)))
        layout.completed(settings.data_dir)
        super().__init__(settings, front_door)


def build(settings: Settings, front_door: bool) -> Any:
    """The Serve application. The shard actors must exist; see cluster.start_shards and cluster.application."""
    return cluster.application(Gateway, settings, front_door)


def __getattr__(name: str) -> Any:
    """`app`, for `serve run serve_app:app`, made when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    settings = Settings.load(default_config(os.environ), environ=os.environ)
    serving.prepare_for_serve_command(settings)
    return cluster.application(SelfStartingGateway, settings, False)
