"""An embedding model in a process of its own that all shards share: on a GPU, which several
processes would fill with copies, or where there are cores to spare for it.

The processes are replicas of a deployment of Ray Serve, beside the gateways in their application. A
shard on the same machine reaches one over a Unix socket, from anywhere else through Serve. What it
sends is texts, what comes back is what an embedder makes of them, so the tokenizer and the heads
that read a language work there, too. Texts that wait, whosever they are, go into the same run; the
accounts of all shards take turns (runtime/inference/local_embedder.py).

A process that is lost is looked for, for moments; then the shard goes on without vectors, as it
does without any model.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runtime import tracing
from runtime.cluster import actors, nodes, unix_socket
from runtime.cluster.process import CannotOpen, collect_seldom, log_to_file
from runtime.cluster.release import OtherRelease, check_release, release_of
from runtime.inference import (
    Caller,
    Embedding,
    InferenceUnavailable,
    ModelUnusable,
    SharedWorkers,
    Worker,
    load_worker,
)
from runtime.limits import EMBEDDER_PROCESS_LOST_SECONDS, GATEWAY_CONNECTIONS_MAX
from runtime.settings import EmbedderSettings, Settings

SECTIONS = ("embedder", "previous_embedder")
_PAUSE_SECONDS = 0.05


class ModelProcess:
    """The process around a model that shards share; a replica of Serve. section: of the settings,
    which says what model it is.
    """

    async def __init__(self, settings: Settings, section: str, opener: str):
        settings = settings.on_node(os.environ)
        name = f"{section.replace('_', '-')}-{_rank()}"
        log_to_file(settings, name)
        tracing.start(name)
        self.release = release_of(opener)
        try:
            self.worker = await asyncio.to_thread(
                load_worker, getattr(settings, section), settings.data_dir
            )
        except ModelUnusable as unusable:
            raise CannotOpen(str(unusable)) from unusable
        remove_dead_sockets(settings)
        self._path = _directory(settings) / f"{section}-{os.getpid()}"
        self._short_cut = await unix_socket.listen(
            self._path, self.release, lambda message, early: self._answer(message)
        )
        collect_seldom()

    async def execute(self, message: bytes, release: str) -> bytes:
        """What was asked -> the answer to it. release: the sender's. Raises OtherRelease before it
        reads anything of another one.
        """
        check_release(release, self.release, "The embedding model")
        return await self._answer(message)

    async def close(self) -> None:
        """Listen no more, and give up what waits."""
        if self._short_cut is not None:
            self._short_cut.close()
        unix_socket.remove(self._path)
        await self.worker.close()

    async def _answer(self, message: bytes) -> bytes:
        """(Caller, texts and words), pickled -> their embeddings, or why there are none."""
        caller, asked = pickle.loads(message)
        try:
            answer: Any = await self.worker.compute(asked, caller, lambda: None)
        except InferenceUnavailable as unavailable:
            answer = str(unavailable)
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


class SharedModel:
    """A shard's way to the processes of a model. A Worker; lives on one event loop."""

    def __init__(self, settings: Settings, section: str, release: str):
        self._settings, self._section, self._release = settings, section, release
        self._sockets: dict[Path, unix_socket.ClientSocket] = {}
        self._handle: Any = None
        self._is_closed = False

    async def compute(
        self, asked: list[Any], caller: Caller, on_run: Callable[[], object] | None
    ) -> list[Embedding]:
        message = pickle.dumps((caller, asked), pickle.HIGHEST_PROTOCOL)
        if on_run is not None:
            on_run()  # the model works from here on, as far as this process can tell
        loop = asyncio.get_running_loop()
        deadline = loop.time() + EMBEDDER_PROCESS_LOST_SECONDS
        while not self._is_closed:
            try:
                answer = pickle.loads(await self._send(message))
            except (ConnectionError, asyncio.IncompleteReadError, LookupError) as lost:
                if loop.time() > deadline:
                    raise InferenceUnavailable(
                        f"no process answers for the model of {self._section}: {lost!r}"
                    ) from lost
                await asyncio.sleep(_PAUSE_SECONDS * random.uniform(0.5, 1.5))
            except OtherRelease as other:
                raise InferenceUnavailable(str(other)) from other
            else:
                if isinstance(answer, str):
                    raise InferenceUnavailable(answer)
                return answer
        raise InferenceUnavailable("the embedder is closed")

    def yield_to_reads(self, reads_wait: bool) -> None:
        """Nothing: the model takes no time from this process."""

    async def close(self) -> None:
        self._is_closed = True

    async def _send(self, message: bytes) -> bytes:
        """Raises ConnectionError, IncompleteReadError, LookupError where nobody answered, and
        OtherRelease.
        """
        near = sockets_of(self._settings, self._section)
        random.shuffle(near)
        self._sockets = {path: self._socket(path) for path in near}
        for path in near:
            try:
                return await self._sockets[path].send(message)
            except unix_socket.NotConnected:
                continue  # of a process that has ended
        import ray.exceptions
        from ray.serve.exceptions import RayServeException

        try:
            if self._handle is None:
                self._handle = await asyncio.to_thread(self._found)
            return await self._handle.execute.remote(message, self._release)
        except ray.exceptions.RayTaskError as failed:
            if isinstance(failed.cause, OtherRelease):
                raise failed.cause from None
            raise ConnectionError(str(failed.cause)) from failed
        except (ray.exceptions.RayError, RayServeException) as lost:
            self._handle = None
            raise ConnectionError(str(lost).strip().splitlines()[-1]) from lost

    def _socket(self, path: Path) -> unix_socket.ClientSocket:
        found = self._sockets.get(path)
        return found or unix_socket.ClientSocket(path, self._release, "The embedding model")

    def _found(self) -> Any:
        """Serve's handle. Raises RayServeException where the deployment is not there."""
        from ray import serve

        application, known = actors.namespace(self._settings), serve.status().applications
        if application not in known:  # `serve run` names it
            application = next(
                (name for name, each in known.items() if self._section in each.deployments),
                application,
            )
        return serve.get_deployment_handle(self._section, application)


def remove_dead_sockets(settings: Settings) -> None:
    """Take away where processes of models listened on this machine that have ended since: nothing
    in them is told when Ray ends.
    """
    for section in SECTIONS:
        for path in sockets_of(settings, section):
            if not unix_socket.is_listened_on(path):
                unix_socket.remove(path)


def shared_workers(settings: Settings, opener: str) -> SharedWorkers:
    """What a shard asks for embeddings, by section: None where its own process is to run the model,
    as it is wherever there is no Ray. opener: of the shards.
    """

    def of(section: str) -> Worker | None:
        if not nodes.on_ray() or not _processes(getattr(settings, section)):
            return None
        return SharedModel(settings, section, release_of(opener))

    return of


def model_deployments(settings: Settings, opener: str) -> list[Any]:
    """The deployments of the models that the settings want shared, bound. Raises CannotOpen where
    Ray has too few GPUs for them.
    """
    return list(_deployments(settings, opener))


def _deployments(settings: Settings, opener: str) -> Iterator[Any]:
    wanted = {section: getattr(settings, section) for section in SECTIONS}
    wanted = {section: chosen for section, chosen in wanted.items() if _processes(chosen)}
    gpus = sum(each.processes for each in wanted.values() if each.device == "cuda")
    if gpus and nodes.on_ray() and nodes.gpus() < gpus:
        raise CannotOpen(
            f"The settings ask for {gpus} processes of embedding models with a GPU each, and Ray "
            f"has {nodes.gpus():g}. Set fewer in embedder.processes, or 0, which has each shard "
            "run the model on the GPU of its machine."
        )
    if not wanted:
        return
    from ray import serve

    here = {} if settings.cluster.name or not nodes.on_ray() else nodes.this_node()
    for section, chosen in wanted.items():
        yield serve.deployment(
            ModelProcess,
            name=section,
            num_replicas=chosen.processes,
            max_ongoing_requests=GATEWAY_CONNECTIONS_MAX,
            ray_actor_options={
                "num_cpus": 0.1,
                "num_gpus": 1 if chosen.device == "cuda" else 0,
                **({"label_selector": here} if here else {}),
            },
        ).bind(settings, section, opener)


def _rank() -> int:
    """The number of this replica, which its successor inherits, so that logs do not pile up."""
    from ray import serve
    from ray.serve.exceptions import RayServeException

    try:
        return serve.get_replica_context().rank.rank
    except RayServeException:  # it is none
        return 0


def _processes(chosen: EmbedderSettings) -> int:
    return chosen.processes if chosen.backend == "minilm" else 0


def _directory(settings: Settings) -> Path:
    """Where the processes of this machine listen."""
    return actors.short_cut(settings, 0).parent


def sockets_of(settings: Settings, section: str) -> list[Path]:
    """Where the processes of a model on this machine listen."""
    try:
        names = os.listdir(_directory(settings))
    except FileNotFoundError:
        return []
    return [_directory(settings) / name for name in names if name.rpartition("-")[0] == section]
