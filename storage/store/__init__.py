"""Tables of typed rows in one LMDB environment per shard.

It owns keys, rows, transactions and their durability. It does not know what a row means, who a
tenant is or when to index: it hands `notes` of a committed transaction back to whoever keeps
derived state.

One database holds all tables. A physical key is

    2 bytes slot ‖ 4 bytes tenant number ‖ 2 bytes table code ‖ keycode.encode(key)

so a slot is one contiguous range of keys and a tenant one range inside it. Tenant number 0 holds
the slot's own rows (tables of level "slot"). A second, small database `meta` holds the store's
identity, each table's code and version, and the sequence.

Invariants:
- a write is one transaction with an fsync before it returns; what was returned survives a crash,
  what raised left nothing;
- `sequence` grows by one with each transaction that stored something, and is stored in that same
  transaction;
- one process has the directory open, through one Store; reads run on any thread, writes one at a
  time.

The rooms, each of which imports those before it:

    keycode, directory, reader_gate, cursor   keys as bytes; the files; readers counted; ranges
    schema, shape, keyring, sealed_file       what is declared, as data; rows and files sealed
    environment                               LMDB: opened, and its faults in our words
    bound_table, commit_log, resident         tables in a reader; the log; what is kept in memory
    transaction                               snapshots and transactions
    upgrade, store                            the store, brought up to date when it is opened
    slot_rows                                 a slot's rows on their way to another store
"""

from storage.store import slot_rows
from storage.store.bound_table import BoundTable, Key, code_in, placed
from storage.store.commit_log import CommitRecord, Hold, LogGap, ShippingState, decode_record
from storage.store.directory import (
    DATA_FILE,
    LOCK_FILE,
    MAP_BYTES,
    NO_SPACE,
    DeviceFailed,
    StoreAtBound,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreMismatch,
    StoreMissing,
    StoreOlder,
    StoreTooNew,
    check_data_file,
    copy_data,
    geometry,
    make_directory,
    publish,
)
from storage.store.environment import DATABASES_MAX, SEQUENCE, Figures, fault, figures, scopes
from storage.store.keycode import decode as decode_key
from storage.store.keycode import decode_count, prefix_end, short
from storage.store.keycode import encode as encode_key
from storage.store.keyring import (
    KEYS_FILE,
    Keyring,
    KeyShredded,
    WrongServiceKey,
    shredded_scope,
    write_records,
)
from storage.store.meter import Meter
from storage.store.resident import ResidentCache
from storage.store.schema import (
    NEWER,
    Changes,
    Committed,
    Identity,
    Migration,
    Part,
    Rebuild,
    Row,
    Scope,
    Table,
    check_identity,
)
from storage.store.sealed_file import seal_file, unseal_file
from storage.store.shape import shape_of
from storage.store.slot_rows import Comparison, Digest, Piece, Span
from storage.store.store import Store, table_versions
from storage.store.transaction import OpenStore, Reader, Snapshot, Transaction
from storage.store.upgrade import code_of

__all__ = [
    "DATABASES_MAX",
    "DATA_FILE",
    "KEYS_FILE",
    "LOCK_FILE",
    "MAP_BYTES",
    "NEWER",
    "NO_SPACE",
    "SEQUENCE",
    "BoundTable",
    "Changes",
    "CommitRecord",
    "Committed",
    "Comparison",
    "DeviceFailed",
    "Digest",
    "Figures",
    "Hold",
    "Identity",
    "Key",
    "KeyShredded",
    "Keyring",
    "LogGap",
    "Meter",
    "Migration",
    "OpenStore",
    "Part",
    "Piece",
    "Reader",
    "Rebuild",
    "ResidentCache",
    "Row",
    "Scope",
    "ShippingState",
    "Snapshot",
    "Span",
    "Store",
    "StoreAtBound",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreInUse",
    "StoreMismatch",
    "StoreMissing",
    "StoreOlder",
    "StoreTooNew",
    "Table",
    "Transaction",
    "WrongServiceKey",
    "check_data_file",
    "check_identity",
    "code_in",
    "code_of",
    "copy_data",
    "decode_count",
    "decode_key",
    "decode_record",
    "encode_key",
    "fault",
    "figures",
    "geometry",
    "make_directory",
    "placed",
    "prefix_end",
    "publish",
    "scopes",
    "seal_file",
    "shape_of",
    "short",
    "shredded_scope",
    "slot_rows",
    "table_versions",
    "unseal_file",
    "write_records",
]
