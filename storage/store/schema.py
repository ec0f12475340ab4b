"""What a store contains, as data: Scope, Table, Identity, and what a write gives back.

Plain values and pure functions; nothing here reads or writes a store. storage/store/__init__.py
offers these names to the users of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from storage.store.directory import StoreError, StoreMismatch, StoreTooNew

NEWER = "Install the release that wrote it, or restore a backup from before into a new directory."

Row = TypeVar("Row")
T = TypeVar("T")
Changes = dict[bytes, bytes | None]  # physical key -> stored bytes, None where it was deleted
Place = tuple[bytes, bool]  # of a table: the code in its keys, and whether its rows are sealed
Migration = Callable[[Any], Any]
Reshape = Callable[[Any, tuple[Any, ...], bytes], None]
Part = Callable[
    [Any], None
]  # (Transaction) -> makes some rows of a derived table what they must be
Rebuild = Callable[
    [Any, "Scope"], Iterable[Part]
]  # (Reader, scope) -> all that is to be done to the tenant's rows of a derived table, in any order


@dataclass(frozen=True)
class Scope:
    """Whose rows: a slot (0 … 65,535) and a tenant number inside it (0 is the slot itself).

    `key` is the tenant's 32-byte secret, carried for indexes that seal what they put into keys; it
    is no part of the place. `prefix` is the 6 bytes every physical key of the scope starts with.
    """

    slot: int
    tenant: int
    key: bytes = field(default=b"", compare=False, repr=False)
    prefix: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "prefix", self.slot.to_bytes(2, "big") + self.tenant.to_bytes(4, "big")
        )

    @staticmethod
    @cache
    def of_slot(slot: int) -> Scope:
        """The scope of the slot's own rows."""
        return Scope(slot, 0)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """A declared table.

    name     unique in the store; the stored code hangs on it, so it never changes
    key      names of the key's parts, for readers of the declaration
    row      a msgspec.Struct (stored as msgpack; unknown fields are ignored, so new fields need
             defaults) or bytes
    version  raised when stored rows must be rewritten; each step needs a migration
    level    "tenant", or "slot" for rows that belong to no single tenant
    sealed   whether rows are stored encrypted under their tenant's key. Unless said, a tenant's
             structs are and raw bytes are not; keys never are, so no text of a user belongs into
             one
    sealed_from  of a table whose rows were open once: the first version in which they are sealed.
             The step to it only seals them, and is taken a part at a time
    owner    in a table of the slot: the first part of the key is the number of the tenant whose key
             seals the row
    stamped  whether a row begins with the sequence of the commit that put it, 8 bytes little
             endian, which counts in this store only
    leads    whether its rows go before those of other tables where a slot is copied: they tell how
             new what derives from the others is, and must not tell too much
    reshape  from version -> function(rows, key, secret) that puts other rows in the place of the
             one under `key`, when the layout of keys changes; `rows` is the tenant's BoundTable,
             `secret` its Reader.secret. It is given the rows in turn, those that it puts further
             along as well, and leaves what is as it is to be. It takes the place of that version's
             migration
    """

    name: str
    key: tuple[str, ...]
    row: type[Row]
    version: int = 1
    level: str = "tenant"
    doc: str = ""
    sealed: bool | None = None
    sealed_from: int = 0
    owner: str = ""
    stamped: bool = False
    leads: bool = False
    reshape: Mapping[int, Reshape] = field(default_factory=dict, compare=False, repr=False)
    encode: Callable[[Row], bytes] = field(init=False, compare=False, repr=False)
    decode: Callable[[bytes], Row] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.level not in ("tenant", "slot"):
            raise ValueError(
                f'table {self.name!r} is of level {self.level!r}; "tenant" and "slot" exist'
            )
        if self.owner and (self.level != "slot" or self.owner != self.key[0]):
            raise ValueError(
                f"table {self.name!r}: an owner is the first part of the key of a table of the slot"
            )
        raw = self.row is bytes
        if self.sealed is None:
            object.__setattr__(
                self, "sealed", not raw and (self.level == "tenant" or bool(self.owner))
            )
        elif self.sealed and self.level == "slot" and not self.owner:
            raise ValueError(
                f"table {self.name!r} belongs to no tenant, so there is no key to seal it with"
            )
        object.__setattr__(self, "encode", bytes if raw else msgspec.msgpack.Encoder().encode)
        object.__setattr__(
            self, "decode", bytes if raw else msgspec.msgpack.Decoder(self.row).decode
        )


@dataclass(frozen=True)
class Identity:
    """Which store this is. An empty cluster_id means: make one when creating, accept any when
    opening.
    """

    cluster_id: str
    shard: int
    shards: int
    slots: int
    format_version: int


@dataclass(frozen=True)
class Committed(Generic[T]):
    """What a write gave: its result, the store's sequence after it, and its notes by index name, in
    order.
    """

    result: T
    sequence: int
    notes: Mapping[str, list[tuple[Scope, Any]]]


class StoredTable(msgspec.Struct):
    """What the store remembers of a table: the code in its keys, the version of its rows, and
    whether they are sealed.
    """

    code: int
    version: int
    sealed: bool = False


def check_identity(directory: Path, stored: Identity, expected: Identity) -> None:
    """Raise StoreTooNew or StoreMismatch unless the store in `directory` is the one expected, of
    its format or an older one.
    """
    if stored.format_version > expected.format_version:
        raise StoreTooNew(
            f"{directory} has format {stored.format_version}; this release knows "
            f"{expected.format_version}. {NEWER}"
        )
    for name in ("cluster_id", "shard", "shards", "slots"):
        found, wanted = getattr(stored, name), getattr(expected, name)
        if found != wanted and not (name == "cluster_id" and not wanted):
            raise StoreMismatch(
                f"{directory} belongs to another store: its {name} is {found!r}, expected "
                f"{wanted!r}."
            )


def assign_codes(
    directory: Path, stored: Mapping[str, StoredTable], tables: Iterable[Table], *, has_keys: bool
) -> list[tuple[Table, StoredTable]]:
    """The declared tables whose entry is new or changes, with the entry they must get. StoreTooNew
    when one is of a later version.

    has_keys  whether this store can seal; without keys sealed tables stay sealed, and nobody can
              read them
    """
    changed: list[tuple[Table, StoredTable]] = []
    following = max((entry.code for entry in stored.values()), default=0) + 1
    declared: dict[str, Table] = {}
    for table in tables:
        if declared.setdefault(table.name, table) != table:
            raise StoreError(f"two different tables are named {table.name!r}")
    for table in declared.values():
        entry = stored.get(table.name)
        if entry is None:
            changed.append(
                (table, StoredTable(following, table.version, has_keys and bool(table.sealed)))
            )
            following += 1
            continue
        if entry.version > table.version:
            raise StoreTooNew(
                f"{directory}: table {table.name!r} has version {entry.version}; this release "
                f"knows {table.version}. {NEWER}"
            )
        wanted = StoredTable(
            entry.code, table.version, bool(table.sealed) if has_keys else entry.sealed
        )
        if wanted != entry:
            changed.append((table, wanted))
    return changed


def only_seals(before: StoredTable | None, table: Table, after: StoredTable) -> bool:
    """Whether what brings the stored table up to `after` is that its rows get sealed."""
    return (
        before is not None
        and after.sealed
        and not before.sealed
        and before.version + 1 == after.version == table.sealed_from
    )


def upgrade(
    table: Table, version: int, migrations: Mapping[tuple[str, int], Migration]
) -> Callable[[bytes], bytes]:
    """The function that rewrites a stored row from `version` to the table's own. StoreMismatch when
    a step is missing; so raises the function when one fails.
    """
    steps: list[Migration] = []
    for step_from in range(version, table.version):
        if step_from in table.reshape or step_from + 1 == table.sealed_from:
            continue
        step = migrations.get((table.name, step_from))
        if step is None:
            raise StoreMismatch(
                f"table {table.name!r} is stored in version {version}; there is no migration from "
                f"version {step_from}."
            )
        steps.append(step)

    def rewrite(raw: bytes) -> bytes:
        if not steps:
            return raw
        try:
            row = raw if table.row is bytes else msgspec.msgpack.decode(raw)
            for step in steps:
                row = step(row)
            return table.encode(row if table.row is bytes else msgspec.convert(row, table.row))
        except Exception as failed:  # whatever the code of a plugin raises
            raise StoreMismatch(
                f"the migration of table {table.name!r} from version {version} to {table.version} "
                f"fails: {type(failed).__name__}: {failed}. Nothing was changed; install the "
                "release that wrote the rows, or one that migrates them."
            ) from failed

    return rewrite
