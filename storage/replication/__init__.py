"""Stores kept in object storage: the log of their commits, snapshots of them, and the way back.

object_store   objects by name: put, put-if-absent, read, listed
segment        a piece of a log as one object, chained to the one before it
epochs         who has owned a shard, one after the other
lease          for how long an owner may answer without asking, and whoever takes its shard waits
shipper        ships the log of an open store, as the one owner of its shard
pages          a copy of a data file as its pages, or as those that changed
snapshots      copies of a store, so that a way back need not begin at the first commit
log_end        how far the log was stored, so that it shows when its newest segments are gone
restore        a directory made again from a snapshot and what was shipped since
"""

from storage.replication.epochs import Superseded, newest_epoch, take_epoch, taken_by
from storage.replication.lease import Lease
from storage.replication.log_end import LogEndKeeper, missing_segments
from storage.replication.object_store import (
    ObjectStore,
    ObjectStoreFailed,
    ObjectStoreUnfit,
    directory_of,
)
from storage.replication.restore import LeftOut, Restored, RestoreFailed, restore
from storage.replication.shipper import LogShipper, backoff, refuse_superseded
from storage.replication.snapshots import SnapshotTaker

__all__ = [
    "Lease",
    "LeftOut",
    "LogEndKeeper",
    "LogShipper",
    "ObjectStore",
    "ObjectStoreFailed",
    "ObjectStoreUnfit",
    "RestoreFailed",
    "Restored",
    "SnapshotTaker",
    "Superseded",
    "backoff",
    "directory_of",
    "missing_segments",
    "newest_epoch",
    "refuse_superseded",
    "restore",
    "take_epoch",
    "taken_by",
]
