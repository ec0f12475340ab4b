"""What is installed: the plugins, and how shards and gateways are made from them.

`PLUGINS` is the one list of this repository's features, to which `registry(settings)` adds the
plugins of other packages that the settings enable. `build(settings)` is the Serve application;
`serve run serve_app:app` deploys it too, with the settings of the configuration file and the
environment. Importing this module does not import Ray.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from plugins import (
    accounts,
    answers,
    billing,
    chat,
    collections,
    dashboard,
    documents,
    feedback,
    graph,
    ingestion,
    learning,
    mcp,
    mem0,
    memories,
    memory_tools,
    operator,
    profile,
    search,
    usage,
    webhooks,
)
from runtime import cluster, tracing
from runtime import serve as serving
from runtime import settings as core_settings
from runtime.api.plugin import Registry, sections_of
from runtime.errors import PLUGIN_RAISES
from runtime.http import build_asgi
from runtime.inference import Models, ModelUnusable, load_language_model, load_models
from runtime.installation import Layout, Secrets, shard_directory
from runtime.installed import enabled, installed
from runtime.machine import usable_cores
from runtime.placement import PlacementTable, SlotGate
from runtime.shard import CORE_INDEXES, CORE_TABLES, ReadingShard, Shard
from runtime.telemetry import Telemetry
from storage.store import Store

PLUGINS = (
    accounts.plugin,
    collections.plugin,
    memories.plugin,
    memory_tools.plugin,
    search.plugin,
    documents.plugin,
    webhooks.plugin,
    usage.plugin,
    billing.plugin,
    operator.plugin,
    answers.plugin,
    profile.plugin,
    chat.plugin,
    learning.plugin,
    feedback.plugin,
    graph.plugin,
    ingestion.plugin,
    dashboard.plugin,
    mem0.plugin,
    mcp.plugin,
)

OPENER = "serve_app:open_shard"
READER_OPENER = "serve_app:open_reader"

log = logging.getLogger("mneme.plugins")

# What configs/local.yaml says, for an installation that came without that file.
LOCAL_PROFILE: Mapping[str, Any] = {
    **core_settings.LOCAL_PROFILE,
    "billing": {"default_tier": "enterprise"},
    "dropin": {"enabled": True},
}


def _sections() -> dict[str, type[core_settings.Section]]:
    """Of every plugin there is, enabled or not, since it is a setting that says which are. Where
    two have the same one the first keeps it: a registry with both is refused.
    """
    further: dict[str, type[core_settings.Section]] = {}
    for each in installed():
        further = {**(each.plugin.settings if each.plugin else {}), **further}
    return {**further, **sections_of(PLUGINS)}


def _kept() -> list[core_settings.Kept]:
    """What all of them keep, likewise: of two of one name the first is the one."""
    others = [each.plugin for each in installed() if each.plugin]
    return [kept for plugin in (*PLUGINS, *others) for kept in plugin.keeps]


class Tiers(core_settings.tiers_with(_kept()), frozen=True):
    """The section `tiers`: the core's terms, and the room for what the plugins keep."""


class Settings(core_settings.composed({**_sections(), "tiers": Tiers}), frozen=True):
    """The settings of the service: the core's sections and those of its plugins."""


@cache
def registry(settings: Settings | None = None) -> Registry:
    """Every operation, table, event and job of the service; without settings, of what is in this
    repository. Raises RegistryError.
    """
    others = [] if settings is None else enabled(settings)
    return Registry.build((*PLUGINS, *others), core_tables=CORE_TABLES, core_indexes=CORE_INDEXES)


@cache
def models(settings: Settings) -> Models:
    """The models of this process, shared by all that live in it. Blocks while they load. Raises
    CannotOpen.
    """
    _refuse_missing_extras(settings)
    try:
        own = load_models(settings, settings.data_dir, cluster.shared_workers(settings, OPENER))
        return replace(own, of_plugins=dict(_models_of_plugins(settings)))
    except ModelUnusable as missing:
        raise cluster.CannotOpen(str(missing)) from missing


def _models_of_plugins(settings: Settings) -> Iterator[tuple[str, Any]]:
    """(name, model) of those that plugins declare. Whoever asks for one that could not be loaded
    is told that it is not there; whoever does not notices nothing.
    """
    for name, load in registry(settings).models.items():
        try:
            yield name, load(settings)
        except PLUGIN_RAISES:  # whatever another package's code raises concerns that package alone
            log.exception("model %s could not be loaded", name)


def _refuse_missing_extras(settings: Settings) -> None:
    """Raises CannotOpen where the settings ask for what is not installed."""
    for plugin in registry(settings).plugins:
        for extra in plugin.extras:
            if extra.is_lacking(settings):
                raise cluster.CannotOpen(
                    f"The settings ask for {extra.purpose}, and what that needs is not installed. "
                    f"Run {extra.command}, or leave the setting out."
                )


def _refuse_another_model(store: Store, loaded: Models) -> None:
    """Raises CannotOpen where accounts are searched in a space that no embedder makes."""
    space = memories.Spaces.unknown(store, loaded)
    if space is not None:
        raise cluster.CannotOpen(
            f"Memories are stored with the embedding model {space}, and the settings name another "
            "one. Set `embedder` back, or leave it and set `previous_embedder` to the model that "
            "they are stored with; then start, and run `mneme admin re-embed`."
        )


async def open_shard(
    settings: Settings, number: int, load: Callable[[Settings], Models] = models
) -> Shard:
    """Open one shard of the data directory, with the models it prepares calls with; load: what
    makes them. Raises StoreError.
    """
    layout, table = Layout.load(settings.data_dir), PlacementTable.of(settings)

    loading = asyncio.create_task(
        asyncio.to_thread(load, settings)
    )  # while the shard is restored, if it has to be

    async def make() -> Shard:
        directory, gate = shard_directory(settings.data_dir, number), SlotGate(number, table)
        loaded = await loading
        return Shard(
            directory,
            registry(settings),
            settings,
            loaded,
            layout.identity(number),
            Secrets.of(settings),
            gate,
            admit=lambda store: _refuse_another_model(store, loaded),
            readers=_readers(settings, number),
        )

    if settings.cluster.name is not None:
        return await cluster.open_at_home(settings, number, make)
    shard = await make()
    await shard.open(create=not layout.complete or not table.load().holds(number))
    return shard


def _readers(settings: Settings, number: int) -> cluster.ReaderProcesses | None:
    count = cluster.reader_count(settings, number)
    return None if not count else cluster.ReaderProcesses(settings, number, READER_OPENER, count)


def open_reader(settings: Settings, number: int, count: int) -> ReadingShard:
    """Open a shard's store to read it, in a process beside the shard's own, of
    which there are `count`.
    """
    threads = settings.embedder.threads or max(1, usable_cores() // 2 // (1 + count))
    # A reader is there to use cores, and is of no Ray: it runs the model itself.
    embedder = settings.embedder.model_copy(update={"threads": threads, "device": "cpu"})
    previous = settings.previous_embedder.model_copy(update={"device": "cpu"})
    settings = settings.model_copy(update={"embedder": embedder, "previous_embedder": previous})
    return ReadingShard(
        shard_directory(settings.data_dir, number),
        registry(settings),
        settings,
        models(settings),
        Layout.load(settings.data_dir).identity(number),
        Secrets.of(settings),
        count,
    )


def build_local(settings: Settings, shards: cluster.LocalShards) -> Any:
    """The ASGI application over shards of this process."""
    secrets = Secrets.of(settings)
    return build_asgi(
        registry(settings),
        settings,
        shards,
        secrets,
        Telemetry(),
        models=models(settings),
        gateway="service",
    )


class Gateway:
    """One gateway replica: the ASGI application in a process of its own, with the shard actors
    behind it.
    """

    def __init__(self, settings: Settings, front_door: bool, *models: Any):
        """models: Serve's handles of the models that shards share, which it starts for them."""
        settings = settings.on_node(os.environ)
        name = cluster.gateway_name()
        cluster.log_to_file(settings, name)
        tracing.start(name)
        secrets = Secrets.of(settings)
        shards = cluster.RayShards(settings, registry(settings), OPENER)
        telemetry = Telemetry(gateway=str(os.getpid()))
        cluster.show_numbers(settings, telemetry)
        own = Models(shard_embedder=None, language_model=load_language_model(settings))
        self._application = serving.neighbour(
            build_asgi(
                registry(settings), settings, shards, secrets, telemetry, models=own, gateway=name
            ),
            front_door,
        )
        cluster.collect_seldom()

    def __serve_build_asgi_app__(self) -> Any:
        return self._application


class SelfStartingGateway(Gateway):
    """A gateway replica that finds its shards or starts them: nobody else does under `serve
    run`.
    """

    def __init__(self, settings: Settings, front_door: bool, *models: Any):
        if settings.cluster.name is not None:
            cluster.await_open([cluster.start_supervisor(settings, OPENER).open.remote()])
            super().__init__(settings, front_door)
            return
        layout = Layout.load(settings.data_dir)
        shards = len(PlacementTable(settings.data_dir).load().shards)
        cluster.await_open(cluster.open_shards(cluster.start_shards(settings, shards, OPENER)))
        layout.completed(settings.data_dir)
        super().__init__(settings, front_door)


def build(settings: Settings, front_door: bool) -> Any:
    """The Serve application. The shard actors must exist; see cluster.start_shards and
    cluster.application.
    """
    shared = cluster.model_deployments(settings, OPENER)
    return cluster.application(Gateway, settings, front_door, shared)


def __getattr__(name: str) -> Any:
    """`app`, for `serve run serve_app:app`, made when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    settings = Settings.load(
        core_settings.default_config(os.environ, LOCAL_PROFILE), environ=os.environ
    )
    serving.prepare_for_serve_command(settings)
    shared = cluster.model_deployments(settings, OPENER)
    return cluster.application(SelfStartingGateway, settings, False, shared)
