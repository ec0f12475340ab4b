"""What an installation keeps on its disk or in its object store beside the shards' stores.

layout          the data directory: its identity, its lock, a directory for each shard
shared_layout   the same for several nodes, in the object store
secrets         the keys that sign and seal
rings           the key rings of its shards, to be looked at
object_directory  whether what the object store held is there
blobs           where uploaded files are kept, and their copies
"""

from runtime.installation.blobs import blob_store, copies_of
from runtime.installation.layout import (
    FORMAT_VERSION,
    LAYOUT_FILE,
    LOCK_FILE,
    DirectoryInUse,
    Layout,
    LayoutError,
    held,
    shard_directory,
    shard_place,
    without_layout,
)
from runtime.installation.object_directory import check_object_store, remember_object_store
from runtime.installation.rings import key_rings, read_key_ring
from runtime.installation.secrets import SECRET_NAMES, Secrets, SecretsError
from runtime.installation.shared_layout import (
    copy_layout,
    make_shared_layout,
    read_shared_layout,
    shared_objects,
)

__all__ = [
    "FORMAT_VERSION",
    "LAYOUT_FILE",
    "LOCK_FILE",
    "SECRET_NAMES",
    "DirectoryInUse",
    "Layout",
    "LayoutError",
    "Secrets",
    "SecretsError",
    "blob_store",
    "check_object_store",
    "copies_of",
    "copy_layout",
    "held",
    "key_rings",
    "make_shared_layout",
    "read_key_ring",
    "read_shared_layout",
    "remember_object_store",
    "shard_directory",
    "shard_place",
    "shared_objects",
    "without_layout",
]
