"""A shard: one store, one writer, and everything that happens to the tenants whose slots it owns.
No Ray inside.

A call passes these stations, and only the writer ever holds a write transaction:

    credential → scope → ceilings → Idempotency-Key → credits → load (snapshot) → prepare (async,
    remote work) → handler → commit → reply

Reads run on a snapshot right here on the event loop; reads that had to prepare something (searches)
run on a few threads (runtime/shard/read_pool.py). A known error is a Reply; a fault of the storage
raises StorageFailed, and whoever runs the shard must let the process end and open the directory
anew.
"""

from runtime.shard import verification
from runtime.shard.auth import authorise_operator, resolve
from runtime.shard.readers import Answered, ReaderFigures
from runtime.shard.reading import ReadingShard
from runtime.shard.shard import CORE_INDEXES, CORE_MIGRATIONS, CORE_TABLES, Shard, open_store
from runtime.shard.slot_moves import MoveOver, MoveRefused
from runtime.shard.writer import StorageFailed

__all__ = [
    "CORE_INDEXES",
    "CORE_MIGRATIONS",
    "CORE_TABLES",
    "Answered",
    "MoveOver",
    "MoveRefused",
    "ReaderFigures",
    "ReadingShard",
    "Shard",
    "StorageFailed",
    "authorise_operator",
    "open_store",
    "resolve",
    "verification",
]
