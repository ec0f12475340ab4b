"""Plugin and Registry: what is installed, in which order, checked once and then frozen.

A plugin is a value. serve_app.py names the enabled ones and builds one Registry from them; nothing registers itself on
import. The Registry orders plugins by `requires`, refuses duplicates and dangling references with a sentence that names
both sides, and is the single source for routes, tables, events, jobs and search retrievers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from runtime.mount import Mount
from runtime.operation import Event, Idempotency, Kind, Operation
from storage.table import Table

EVERY_EVENT = "*"


class RegistryError(Exception):
    """The set of plugins is inconsistent; the message names the plugin and the offending declaration."""


@dataclass(frozen=True, slots=True)
class RetryStrategy:
    """When a failed job runs again.

    Attempt n (from 1) that failed is followed by a wait of min(base_ms · factor^(n−1), max_ms), plus up to `jitter` of it
    (a share, 0 to 1); after `attempts` failures the job is `failed` with the reason.
    """

    attempts: int = 8
    base_ms: int = 500
    factor: float = 2.0
    max_ms: int = 60_000
    jitter: float = 0.1

    def wait_ms(self, failures: int, chance: float) -> int:
        """failures so far (≥ 1), chance in [0, 1) -> milliseconds until the next attempt."""
        wait = min(self.base_ms * self.factor ** (failures - 1), self.max_ms)
        return int(wait * (1 + self.jitter * chance))


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of background work, run by the shard that owns the tenant.

    load(ctx: ReadContext, payload) -> loaded          optional, on a snapshot
    prepare(loaded, payload, models) -> prepared       optional, async, outside any transaction
    handler(ctx: WriteContext, payload) -> result      one transaction, together with the job's completion: its effect
                                                       happens once; `ctx.prepared` holds what prepare made
    failed(ctx: WriteContext, payload, reason)         optional; runs when the last attempt failed
    keep      whether a completed job can be looked at for a week; off where its effect is its record
    """

    name: str
    handler: Callable[..., Any]
    load: Callable[..., Any] | None = None
    prepare: Callable[..., Any] | None = None
    failed: Callable[..., Any] | None = None
    retry: RetryStrategy = RetryStrategy()
    keep: bool = True


@dataclass(frozen=True, slots=True)
class Retriever:
    """A further source of search candidates: (ctx, query) -> {ordinal: score in 0…1}.

    weight  its share in a hybrid search that says nothing of it; 0 for none
    """

    name: str
    candidates: Callable[..., Mapping[int, float]]
    weight: float


@dataclass(frozen=True, slots=True)
class Restore:
    """How an import takes in one kind of exported record.

    model     what a record must be; fields it does not have are ignored
    function  (ctx: WriteContext, records, renamed: (id) -> id of the importing account) -> how many were new
    """

    model: type[BaseModel]
    function: Callable[..., int]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One noun: everything it adds to the service, as data.

    name, requires  identity and floor: it may use the tables and functions of the plugins it requires, and no others
    mounts          subtrees of the address space that it answers in a manner of its own (runtime/mount.py)
    replaces        operations of plugins it requires, in a fuller form; at most one plugin replaces an operation
    tables, indexes what it stores; each must be covered by `erase` and `export` (a test enumerates them)
    events          kinds it emits
    subscribe       event kind -> function(ctx: WriteContext, event_id, kind, data, resource_id), in the same transaction;
                    the kind "*" stands for every event but the internal ones
    audience        (ctx: ReadContext, kind) -> whether anyone of this tenant waits for events of a kind; without such a plugin,
                    what a read announces is written nowhere
    tallies         name of what reads note (ReadContext.tally) -> function(ctx: WriteContext, {key: (how often, last, Unix milliseconds)})
    jobs            background work
    retrievers      search extensions
    erase, export   (ctx: WriteContext) -> counts by store; (ctx: ReadContext) -> iterator of (kind, record), or of
                    (kind, record, place) where it can go on behind a place (`ctx.after`) without walking there again
    swept           those of its tables that grow large and that `erase` does not have to read: they are swept before it, in steps
    restore         kind of exported record -> how such records are taken in
    checks          what must agree among its rows, indexes, counters and jobs (runtime/checks.py), for verification
    migrations      (table, from_version) -> function(row) -> row
    settings        pydantic model of its own settings section, by the plugin's name
    """

    name: str
    requires: tuple[str, ...] = ()
    stability: str = "ga"
    operations: tuple[Operation, ...] = ()
    mounts: tuple[Mount, ...] = ()
    replaces: tuple[Operation, ...] = ()
    tables: tuple[Table, ...] = ()
    indexes: tuple[Any, ...] = ()
    events: tuple[Event, ...] = ()
    subscribe: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    audience: Callable[..., bool] | None = None
    tallies: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    retrievers: tuple[Retriever, ...] = ()
    erase: Callable[..., Any] | None = None
    export: Callable[..., Any] | None = None
    swept: tuple[Table, ...] = ()
    restore: Mapping[str, Restore] = field(default_factory=dict)
    checks: tuple[Callable[..., Any], ...] = ()
    migrations: Mapping[tuple[str, int], Callable[[Any], Any]] = field(default_factory=dict)
    settings: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """Frozen union of all plugins, in dependency order."""

    plugins: tuple[Plugin, ...]
    operations: Mapping[str, Operation]
    tables: Mapping[str, Table]
    indexes: Mapping[str, Any]
    events: Mapping[str, Event]
    subscribers: Mapping[str, tuple[Callable[..., None], ...]]
    audiences: tuple[Callable[..., bool], ...]
    tallies: Mapping[str, Callable[..., None]]
    jobs: Mapping[str, Job]
    retrievers: tuple[Retriever, ...]
    restore: Mapping[str, Restore]

    @classmethod
    def build(cls, plugins: Iterable[Plugin], *, core_tables: Iterable[Table] = (), core_indexes: Iterable[Any] = ()) -> Registry:
        """Order, check, freeze. Raises RegistryError."""
        ordered = _in_dependency_order(list(plugins))
        tables = _unique("table", [*core_tables, *(t for p in ordered for t in p.tables)])
        indexes = _unique("index", [*core_indexes, *(i for p in ordered for i in p.indexes)])
        for index in indexes.values():
            for table in index.tables:
                if table.name in tables:
                    raise RegistryError(f"table {table.name!r} of index {index.name!r} is declared twice")
                tables[table.name] = table
        events = _unique("event", [e for p in ordered for e in p.events], key="kind")
        subscribers: dict[str, list[Callable[..., None]]] = {}
        for plugin in ordered:
            for wanted, function in plugin.subscribe.items():
                if wanted != EVERY_EVENT and wanted not in events:
                    raise RegistryError(f"plugin {plugin.name!r} subscribes to {wanted!r}, which no plugin declares")
                public = [kind for kind in events if not kind.startswith("internal.")]
                for kind in public if wanted == EVERY_EVENT else [wanted]:
                    subscribers.setdefault(kind, []).append(function)
        restore: dict[str, Restore] = {}
        for plugin in ordered:
            for kind, how in plugin.restore.items():
                if restore.setdefault(kind, how) is not how:
                    raise RegistryError(f"plugin {plugin.name!r} takes in records of kind {kind!r}, which another plugin does already")
        operations = _unique("operation", [o for p in ordered for o in p.operations])
        operations |= _replaced(ordered)
        _check_routes(operations.values())
        return cls(
            plugins=tuple(ordered),
            operations=MappingProxyType(operations),
            tables=MappingProxyType(tables),
            indexes=MappingProxyType(indexes),
            events=MappingProxyType(events),
            subscribers=MappingProxyType({kind: tuple(functions) for kind, functions in subscribers.items()}),
            audiences=tuple(plugin.audience for plugin in ordered if plugin.audience is not None),
            tallies=MappingProxyType({name: function for plugin in ordered for name, function in plugin.tallies.items()}),
            jobs=MappingProxyType(_unique("job", [j for p in ordered for j in p.jobs])),
            retrievers=tuple(r for p in ordered for r in p.retrievers),
            restore=MappingProxyType(restore),
        )


def _in_dependency_order(plugins: list[Plugin]) -> list[Plugin]:
    by_name = _unique("plugin", plugins)
    ordered: list[Plugin] = []
    visiting: list[str] = []

    def visit(plugin: Plugin) -> None:
        if plugin in ordered:
            return
        if plugin.name in visiting:
            raise RegistryError("plugins require each other in a circle: " + " → ".join([*visiting, plugin.name]))
        visiting.append(plugin.name)
        for name in plugin.requires:
            if name not in by_name:
                raise RegistryError(f"plugin {plugin.name!r} requires {name!r}, which is not enabled")
            visit(by_name[name])
        visiting.pop()
        ordered.append(plugin)

    for plugin in plugins:
        visit(plugin)
    return ordered


def _replaced(plugins: list[Plugin]) -> dict[str, Operation]:
    """The operations that a plugin gives a fuller form, by name."""
    owners = {operation.name: plugin.name for plugin in plugins for operation in plugin.operations}
    found = _unique("replacement", [operation for plugin in plugins for operation in plugin.replaces])
    for plugin in plugins:
        for operation in plugin.replaces:
            if owners.get(operation.name) not in plugin.requires:
                raise RegistryError(f"plugin {plugin.name!r} replaces {operation.name!r}, which no plugin it requires declares")
    return found


def _unique(what: str, items: list[Any], key: str = "name") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in items:
        name = getattr(item, key)
        if name in found:
            raise RegistryError(f"{what} {name!r} is declared twice")
        found[name] = item
    return found


def _check_routes(operations: Iterable[Operation]) -> None:
    routes: dict[tuple[str, str], str] = {}
    for operation in operations:
        for path in (operation.path, *operation.aliases):
            shape = "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
            other = routes.setdefault((operation.method, shape), operation.name)
            if other != operation.name:
                raise RegistryError(f"operations {other!r} and {operation.name!r} share the route {operation.method} {path}")
        if operation.kind is Kind.READ and operation.idempotency is not Idempotency.NONE:
            raise RegistryError(f"operation {operation.name!r} reads, so it can have no idempotency")
        if operation.idempotency is Idempotency.CANONICAL and operation.resource is None:
            raise RegistryError(f"operation {operation.name!r} is canonical and must say how its resource is read again")
        if operation.scope == "public" and operation.kind is Kind.WRITE and operation.slot_of is None:
            raise RegistryError(f"operation {operation.name!r} is public and must say which slot it acts on")
