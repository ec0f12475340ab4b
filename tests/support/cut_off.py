"""A node in the test's own process that can be cut off from its object store, and another one that
takes its shard over from there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import runtime.shard.durability
from runtime.installation import Secrets, shard_place
from storage.replication import ObjectStore, ObjectStoreFailed, restore
from storage.replication.snapshots import snapshots
from tests.support.in_process import POLL_SECONDS, InProcess
from tests.support.leases import waited_out

WAIT_SECONDS = 0.3
LEASE_SECONDS = 300  # no test is as slow as that


class Link(ObjectStore):
    """An object store as one node reaches it. While `is_cut` every request fails; while `is_silent`
    none is answered, so that nobody knows yet that anything fails.
    """

    is_cut = False
    is_silent = False

    @classmethod
    @contextmanager
    def silent(cls) -> Iterator[None]:
        cls.is_silent = True
        try:
            yield
        finally:
            cls.is_silent = False

    def _call(self, verb: Any, path: Any, *arguments: Any, **options: Any) -> Any:
        while type(self).is_silent:
            time.sleep(POLL_SECONDS)
        if type(self).is_cut:
            raise ObjectStoreFailed("the node is cut off")
        return super()._call(verb, path, *arguments, **options)


def shipping(objects: Path, mode: str) -> dict[str, Any]:
    """Settings of a node that waits WAIT_SECONDS for the object store."""
    return {
        "object_store__url": f"file://{objects}",
        "object_store__ship_interval_ms": 5,
        "durability__mode": mode,
        "durability__wait_seconds_max": WAIT_SECONDS,
        "cluster__lease_seconds": LEASE_SECONDS,
        "webhooks__allow_private_networks": True,
    }


@contextmanager
def node(
    directory: Path,
    objects: Path,
    mode: str = "replicated",
    secrets: Secrets | None = None,
    **options: Any,
) -> Iterator[InProcess]:
    """A node with its own way to the object store, which can be cut. It begins when another node
    could take its shard over from there.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runtime.shard.durability, "ObjectStore", Link)
        service = InProcess(directory, secrets=secrets, **shipping(objects, mode) | options)
    try:
        shard = of_shard(service, objects)
        service.until(lambda: bool(snapshots(shard)))
        yield service
    finally:
        service.close()


def of_shard(service: InProcess, objects: Path) -> ObjectStore:
    """What its shard has in the object store."""
    return ObjectStore(f"file://{objects}").below(
        shard_place(service.shard.store.identity.cluster_id, 0)
    )


@contextmanager
def taken_over(
    first: InProcess, objects: Path, directory: Path, *, waits: bool = False, **options: Any
) -> Iterator[InProcess]:
    """The shard on another node, from what is in the object store; waits: for the end of the first
    one's lease.
    """
    with contextlib.nullcontext() if waits else waited_out():
        restore(of_shard(first, objects), directory, take_over=True, owner="a test")
    mode = first.settings.durability.mode
    service = InProcess(directory, secrets=first.secrets, **shipping(objects, mode) | options)
    try:
        yield service
    finally:
        service.close()
