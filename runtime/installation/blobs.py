"""Where this installation keeps its blobs: below the data directory, with copies in the object
store if one is set.

Of several nodes each has a directory of its own, and any may be asked for a blob: there the copies
are what counts.
"""

from __future__ import annotations

from functools import cache

from runtime.settings import Settings
from storage.blobs import BlobCopies, BlobStore
from storage.replication import ObjectStore

BLOBS = "blobs"  # below the data directory


@cache
def blob_store(settings: Settings) -> BlobStore:
    """The blobs of the data directory. Raises ObjectStoreFailed when object_store.url cannot be
    used.
    """
    return BlobStore(settings.data_dir / BLOBS, copies_of(settings))


@cache
def copies_of(settings: Settings) -> BlobCopies | None:
    """The blobs' copies; None without an object store."""
    if settings.object_store.url is None:
        return None
    objects = ObjectStore(settings.object_store.url)
    at_once, shared = settings.durability.mode == "replicated", settings.cluster.name is not None
    return BlobCopies(settings.data_dir / BLOBS, objects, at_once=at_once, shared=shared)
