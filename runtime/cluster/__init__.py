"""Where shards run and how they are reached: as actors of Ray, or in this process.

    process           what every process that holds shards has in common
    actors            one process per shard under Ray, its name, its start and its end
    gateways          the gateways as an application of Ray Serve
    ray_shards        how a gateway reaches actors: batching.py packs the calls, unix_socket.py
                      carries them on the shard's own node
    readers           processes beside a shard's own that search for it; reader_process.py is one,
                      and frames.py carries what is said
    shared_model      an embedding model in a process of its own that all shards share
    local             the same shards in this process, for laptops and tests
    ray_metrics       what Ray's metrics agent is told of the service
    release           what processes tell each other first: which release they run
    supervisor        moves slots from shard to shard; supervisor_actor.py is its process
    node_watch        brings shards to nodes; shard_home.py opens one where it came to live, and
                      nodes.py knows which nodes there are

Ray is imported inside the functions that need it, because its environment has to be set first and
because LocalShards must not pay for it. The names below are found when they are asked for: the
command line needs one small file of this package, and not the shards and all they stand on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.cluster.actors import (
        await_open,
        leftover_actors,
        namespace,
        open_shards,
        start_shards,
        stop_shards,
    )
    from runtime.cluster.gateways import application, gateway_name
    from runtime.cluster.local import LocalShards
    from runtime.cluster.process import (
        EXIT_STORAGE_FAULT,
        CannotOpen,
        Opener,
        ShardLike,
        collect_seldom,
        log_to_file,
        open_shard,
        resolve,
    )
    from runtime.cluster.ray_metrics import show_numbers
    from runtime.cluster.ray_shards import RayShards
    from runtime.cluster.readers import ReaderProcesses, reader_count
    from runtime.cluster.shard_home import held_shards, open_at_home
    from runtime.cluster.shared_model import (
        model_deployments,
        remove_dead_sockets,
        shared_workers,
    )
    from runtime.cluster.supervisor_actor import start_supervisor

__all__ = [
    "EXIT_STORAGE_FAULT",
    "CannotOpen",
    "LocalShards",
    "Opener",
    "RayShards",
    "ReaderProcesses",
    "ShardLike",
    "application",
    "await_open",
    "collect_seldom",
    "gateway_name",
    "held_shards",
    "leftover_actors",
    "log_to_file",
    "model_deployments",
    "namespace",
    "open_at_home",
    "open_shard",
    "open_shards",
    "reader_count",
    "remove_dead_sockets",
    "resolve",
    "shared_workers",
    "show_numbers",
    "start_shards",
    "start_supervisor",
    "stop_shards",
]

_FILES = {
    "actors": (
        "await_open",
        "leftover_actors",
        "namespace",
        "open_shards",
        "start_shards",
        "stop_shards",
    ),
    "gateways": ("application", "gateway_name"),
    "local": ("LocalShards",),
    "process": (
        "EXIT_STORAGE_FAULT",
        "CannotOpen",
        "Opener",
        "ShardLike",
        "collect_seldom",
        "log_to_file",
        "open_shard",
        "resolve",
    ),
    "ray_shards": ("RayShards",),
    "readers": ("ReaderProcesses", "reader_count"),
    "ray_metrics": ("show_numbers",),
    "shared_model": ("model_deployments", "remove_dead_sockets", "shared_workers"),
    "shard_home": ("held_shards", "open_at_home"),
    "supervisor_actor": ("start_supervisor",),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
