"""What a store contains, as data: Scope, Table, Identity, and what a write gives back.

Plain values and pure functions; nothing here reads or writes a store. storage/table.py offers these names too, so users of a
store import from there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from storage.directory import StoreError, StoreMismatch, StoreTooNew

Row = TypeVar("Row")
T = TypeVar("T")
Migration = Callable[[Any], Any]
Upgrade = Callable[[Any], None]  # (transaction) -> None


@dataclass(frozen=True)
class Scope:
    """Whose rows: a slot (0 … 65,535) and a tenant number inside it (0 is the slot itself).

    `key` is the tenant's 32-byte secret, carried for indexes that seal what they put into keys; it is no part of the place.
    `prefix` is the 6 bytes every physical key of the scope starts with.
    """

    slot: int
    tenant: int
    key: bytes = field(default=b"", compare=False, repr=False)
    prefix: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", self.slot.to_bytes(2, "big") + self.tenant.to_bytes(4, "big"))

    @classmethod
    def of_slot(cls, slot: int) -> Scope:
        """The scope of the slot's own rows."""
        return cls(slot, 0)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """A declared table.

    name     unique in the store; the stored code hangs on it, so it never changes
    key      names of the key's parts, for readers of the declaration
    row      a msgspec.Struct (stored as msgpack; unknown fields are ignored, so new fields need defaults) or bytes
    version  raised when stored rows must be rewritten; each step needs a migration
    level    "tenant", or "slot" for rows that belong to no single tenant
    """

    name: str
    key: tuple[str, ...]
    row: type[Row]
    version: int = 1
    level: str = "tenant"
    doc: str = ""
    encode: Callable[[Row], bytes] = field(init=False, compare=False, repr=False)
    decode: Callable[[bytes], Row] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.level not in ("tenant", "slot"):
            raise ValueError(f'table {self.name!r} is of level {self.level!r}; "tenant" and "slot" exist')
        raw = self.row is bytes
        object.__setattr__(self, "encode", bytes if raw else msgspec.msgpack.Encoder().encode)
        object.__setattr__(self, "decode", bytes if raw else msgspec.msgpack.Decoder(self.row).decode)


@dataclass(frozen=True)
class Identity:
    """Which store this is. An empty cluster_id means: make one when creating, accept any when opening."""

    cluster_id: str
    shard: int
    shards: int
    slots: int
    format_version: int


@dataclass(frozen=True)
class Committed(Generic[T]):
    """What a write gave: its result, the store's sequence after it, and its notes by index name, in order."""

    result: T
    sequence: int
    notes: Mapping[str, list[tuple[Scope, Any]]]


class StoredTable(msgspec.Struct):
    """What the store remembers of a table: the code in its keys and the version of its rows."""

    code: int
    version: int


def check_identity(directory: Path, stored: Identity, expected: Identity, upgrades: Mapping[int, Upgrade]) -> None:
    """Raises StoreTooNew or StoreMismatch unless the store in `directory` is the one expected, or upgrades lead from it there."""
    if stored.format_version > expected.format_version:
        raise StoreTooNew(f"{directory} has format {stored.format_version}; this release knows {expected.format_version}.")
    if not all(step_from in upgrades for step_from in range(stored.format_version, expected.format_version)):
        raise StoreMismatch(f"{directory} has format {stored.format_version}, from which nothing leads to {expected.format_version} here.")
    for name in ("cluster_id", "shard", "shards", "slots"):
        found, wanted = getattr(stored, name), getattr(expected, name)
        if found != wanted and not (name == "cluster_id" and not wanted):
            raise StoreMismatch(f"{directory} belongs to another store: its {name} is {found!r}, expected {wanted!r}.")


def assign_codes(directory: Path, stored: Mapping[str, StoredTable], tables: Iterable[Table]) -> list[tuple[Table, StoredTable]]:
    """The declared tables whose entry is new or of another version, with the entry they must get. StoreTooNew when one is newer."""
    changed: list[tuple[Table, StoredTable]] = []
    following = max((entry.code for entry in stored.values()), default=0) + 1
    declared: dict[str, Table] = {}
    for table in tables:
        if declared.setdefault(table.name, table) != table:
            raise StoreError(f"two different tables are named {table.name!r}")
    for table in declared.values():
        entry = stored.get(table.name)
        if entry is None:
            changed.append((table, StoredTable(following, table.version)))
            following += 1
        elif entry.version > table.version:
            raise StoreTooNew(f"{directory}: table {table.name!r} has version {entry.version}; this release knows {table.version}.")
        elif entry.version < table.version:
            changed.append((table, StoredTable(entry.code, table.version)))
    return changed


def current(directory: Path, stored: Mapping[str, StoredTable], tables: Iterable[Table]) -> dict[str, StoredTable]:
    """The entries of the declared tables, for a reader; a table that is not there yet has no rows. StoreMismatch when one is older."""
    tables = tuple(tables)
    entries = {table.name: stored[table.name] for table in tables if table.name in stored}
    for table, entry in assign_codes(directory, stored, tables):
        if table.name in stored:
            raise StoreMismatch(f"{directory}: table {table.name!r} is of an older release; start the service once, which migrates it.")
        entries[table.name] = entry
    return entries


def upgrade(table: Table, version: int, migrations: Mapping[tuple[str, int], Migration]) -> Callable[[bytes], bytes]:
    """The function that rewrites a stored row from `version` to the table's own. StoreMismatch when a step is missing."""
    steps: list[Migration] = []
    for step_from in range(version, table.version):
        step = migrations.get((table.name, step_from))
        if step is None:
            raise StoreMismatch(f"table {table.name!r} is stored in version {version}; there is no migration from version {step_from}.")
        steps.append(step)

    def rewrite(raw: bytes) -> bytes:
        row = raw if table.row is bytes else msgspec.msgpack.decode(raw)
        for step in steps:
            row = step(row)
        return table.encode(row if table.row is bytes else msgspec.convert(row, table.row))

    return rewrite
