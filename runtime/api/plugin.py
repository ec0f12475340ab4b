"""Plugin and Registry: what is installed, in which order, checked once and then frozen.

A plugin is a value. serve_app.py names those of this repository, runtime/installed.py finds those
of other packages, and one Registry is built from all that are enabled; nothing registers itself on
import. The Registry orders plugins by `requires`, refuses duplicates and dangling references with a
sentence that names both sides, and is the single source for routes, tables, events, jobs and search
retrievers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from runtime.api.checks import Check
from runtime.api.context import (
    AccessCounter,
    Audience,
    Figures,
    FurtherEntries,
    ReadContext,
    Subscriber,
    WriteContext,
)
from runtime.api.mount import Mount
from runtime.api.operation import Event, Flow, Idempotency, Kind, Operation, Read, Write
from runtime.api.restoring import Restore
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.api.steps import JobSteps
from runtime.api.tiers import NO_OFFER, Feature, Offer
from runtime.api.tools import Tool
from runtime.extras import Extra
from runtime.limits import TIERS
from runtime.outbound import Outbound
from runtime.settings import CORE_TERMS, Kept, Section, Settings
from storage.store import Table

EVERY_EVENT = "*"
CORE = "the core"
CORE_ID_PREFIXES = ("evt", "job", "ses")
_ID_PREFIX = re.compile("[a-z]{3}")
_KEPT = re.compile("[a-z]+(_[a-z]+)*")
Declared = TypeVar("Declared")
KeptElsewhere = Callable[[Settings, Mapping[str, int]], Mapping[str, str]]


class RegistryError(Exception):
    """The set of plugins is inconsistent; the message names the plugin and the offending
    declaration.
    """


@dataclass(frozen=True, slots=True)
class RetryStrategy:
    """When a failed job runs again.

    Attempt n (from 1) that failed is followed by a wait of min(base_ms · factor^(n−1), max_ms),
    plus up to `jitter` of it (a share, 0 to 1); after `attempts` failures the job is `failed` with
    the reason.
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
    prepare(steps, loaded, payload, models) -> prepared  optional, async, outside any transaction;
                                                       and after the write that asked for it is
                                                       acknowledged; `steps` runs reads by name
                                                       (runtime/api/steps.py)
    handler(ctx: WriteContext, payload) -> result      one transaction, together with the job's
                                                       completion: its effect happens once;
                                                       `ctx.prepared` holds what prepare made
    failed(ctx: WriteContext, payload, reason)         optional; runs when the last attempt failed
    keep      whether a completed job can be looked at for a week; off where its effect is its
              record
    accounts  whether it is a slot's work on its accounts, which outlives them: its handler
              and its `load` are given a slot's contexts, and no tenant can enqueue it
    cleanup   whether it removes what somebody has deleted: its result counts what went, and is
              shown to the account as a receipt
    listed    whether the account finds it among the jobs of its memories
    """

    name: str
    handler: Callable[[SlotWriteContext, Any], Any]
    load: Callable[[SlotReadContext, Any], Any] | None = None
    prepare: Callable[[JobSteps, Any, Any, Any], Awaitable[Any]] | None = None
    failed: Callable[[WriteContext, Any, str], None] | None = None
    retry: RetryStrategy = RetryStrategy()
    keep: bool = True
    accounts: bool = False
    cleanup: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Work that an account is owed although no write of it asks for it, such as what this release
    derives from what an earlier one stored. Each account is looked at once when its shard is
    opened.

    is_due  (ctx: ReadContext), on a snapshot
    begin   (ctx: WriteContext), in a transaction where it is due; it enqueues a job
    """

    is_due: Callable[[ReadContext], bool]
    begin: Callable[[WriteContext], None]


# In the JSON schema of a field: its values are those of its `enum`, and the names of retrievers, or
# the kinds of events that leave the service.
RETRIEVERS_TOO, EVENTS_TOO = "retrievers_too", "events_too"


@dataclass(frozen=True, slots=True)
class Retriever:
    """A further source of search candidates. Where it raises, the search says `degraded`.

    name        as a search asks for its candidates alone, by `search_type`; and of its feature in
                ranking
    candidates  (ctx: ReadContext, query) -> ordinals of memories, which are ranked like all others,
                by what the search measures of them; or, with a weight, {ordinal: score from 0 to 1}
    in_hybrid   whether a hybrid search has its candidates, too
    weight      (settings) -> what its scores count in ranking, as a feature of its name beside the
                search's own; a memory with a score above 0 is shown whatever its words are. None
                where it gives no scores
    """

    name: str
    candidates: Callable[[ReadContext, Any], Iterable[int] | Mapping[int, float]]
    in_hybrid: bool = False
    weight: Callable[[Settings], float] | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    """One noun: everything it adds to the service, as data.

    name, requires  identity and floor: it may use the tables and functions of the plugins it
                    requires, and no others
    mounts          subtrees of the address space that it answers in a manner of its own
                    (runtime/api/mount.py)
    replaces        operations of plugins it requires, in a fuller form; at most one plugin replaces
                    an operation
    tables, indexes what it stores; each must be covered by `erase` and `export` (a test enumerates
    them)
    index_entries   bitmap index of a plugin it requires -> function(row) -> the (field, value)s by
                    which that index is to find the row beside its own plugin's
    events          kinds it emits
    subscribe       event kind -> function(ctx: WriteContext, event_id, kind, data, resource_id), in
                    the same transaction; the kind "*" stands for every event but the internal ones
    audience        (ctx: ReadContext, kind) -> whether anyone of this tenant waits for events of a
                    kind; without such a plugin, what a read announces is written nowhere
    access_counters name of what reads count (ReadContext.count_accesses) -> function(ctx:
                    WriteContext, {key: (how often, last, Unix milliseconds)})
    jobs            background work
    catch_up        what accounts are owed when their shard is opened
    retrievers      search extensions
    tools           what agents may do with its operations (runtime/api/tools.py)
    retain          (of_slot: SlotWriteContext, of_account: ReadContext) -> None: writes what has to
                    outlive an erasure, nothing of a person in it, into tables of the slot; called
                    before `erase`
    erase, export   (ctx: WriteContext) -> counts by store; (ctx: ReadContext) -> iterator of (kind,
                    record), or of (kind, record, place) where it can go on behind a place
                    (`ctx.after`) without walking there again
    kept_elsewhere  (settings, rows erased by store) -> {place: reason} of what is beyond this
                    service and may still hold something of an erased account
    figures         (ctx: ReadContext) -> {name: count} of what it keeps for the tenant, which are
                    added to those of the others (runtime/api/figures.py)
    keeps           that of which an account may keep as much as its tier has room for
    swept           its large tables that `erase` need not read: they are swept before it, in steps
    restore         kind of exported record -> how such records are taken in
    checks          what must agree among its rows, indexes, counters, jobs (runtime/api/checks.py)
    migrations      (table, from_version) -> function(row) -> row
    private_networks (settings) -> whether what it sends may reach private networks
    outbound_proxy  (settings) -> URL of the proxy that all of it goes through; one plugin at most
    settings        section of the settings -> what it holds; it reads its own by type (Section.of)
    features        key that its operations name -> a feature that only some tiers have
    rates           rate bucket, its own or others' -> (settings) -> requests a minute of an account
    lacks           (settings) -> sentences: what it needs and this machine lacks (`mneme doctor`);
                    in production that is wrong, elsewhere advice
    extras          packages that only some of what it does needs and that may not be installed
                    (runtime/extras.py), those of its operations among them; `mneme doctor` names
                    what is missing
    offer           (settings) -> what new accounts get, and where other tiers are; of one plugin
    id_prefixes     what its ids begin with, three small letters each, which no other plugin's do
    records         one of them -> (ctx: ReadContext, id) -> whether the record with this id can be
                    read: a repeated request whose answer was about one that is gone is 404
    models          name -> (settings) -> a model, which is loaded once in each process that has
                    shards and is given to their steps `prepare`: `models.of(name)`
    """

    name: str
    requires: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    mounts: tuple[Mount, ...] = ()
    replaces: tuple[Operation, ...] = ()
    tables: tuple[Table, ...] = ()
    indexes: tuple[Any, ...] = ()
    index_entries: Mapping[str, FurtherEntries] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    subscribe: Mapping[str, Subscriber] = field(default_factory=dict)
    audience: Audience | None = None
    access_counters: Mapping[str, AccessCounter] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    catch_up: CatchUp | None = None
    retrievers: tuple[Retriever, ...] = ()
    tools: tuple[Tool, ...] = ()
    retain: Callable[[SlotWriteContext, ReadContext], None] | None = None
    erase: Callable[[WriteContext], Mapping[str, int]] | None = None
    export: Callable[[ReadContext], Iterable[tuple[Any, ...]]] | None = None
    kept_elsewhere: KeptElsewhere | None = None
    figures: Figures | None = None
    keeps: tuple[Kept, ...] = ()
    swept: tuple[Table, ...] = ()
    restore: Mapping[str, Restore] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    migrations: Mapping[tuple[str, int], Callable[[Any], Any]] = field(default_factory=dict)
    private_networks: Callable[[Settings], bool] | None = None
    outbound_proxy: Callable[[Settings], str | None] | None = None
    settings: Mapping[str, type[Section]] = field(default_factory=dict)
    features: Mapping[str, Feature] = field(default_factory=dict)
    rates: Mapping[str, Callable[[Settings], int]] = field(default_factory=dict)
    lacks: Callable[[Settings], Iterable[str]] | None = None
    extras: tuple[Extra, ...] = ()
    offer: Callable[[Settings], Offer] | None = None
    id_prefixes: tuple[str, ...] = ()
    records: Mapping[str, Callable[[ReadContext, str], bool]] = field(default_factory=dict)
    models: Mapping[str, Callable[[Settings], Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Registry:
    """Frozen union of all plugins, in dependency order."""

    plugins: tuple[Plugin, ...]
    operations: Mapping[str, Read | Write | Flow]
    tables: Mapping[str, Table]
    indexes: Mapping[str, Any]
    index_entries: Mapping[str, tuple[FurtherEntries, ...]]
    events: Mapping[str, Event]
    subscribers: Mapping[str, tuple[Subscriber, ...]]
    audiences: tuple[Audience, ...]
    figures: tuple[Figures, ...]
    access_counters: Mapping[str, AccessCounter]
    jobs: Mapping[str, Job]
    retrievers: tuple[Retriever, ...]
    tools: tuple[tuple[Tool, Operation], ...]
    restore: Mapping[str, Restore]
    features: Mapping[str, Feature]
    rates: Mapping[str, Callable[[Settings], int]]
    records: Mapping[str, Callable[[ReadContext, str], bool]]
    models: Mapping[str, Callable[[Settings], Any]]

    def outbound(self, settings: Settings) -> Outbound:
        """What sends requests to addresses that callers gave, under these settings."""
        is_open = any(p.private_networks(settings) for p in self.plugins if p.private_networks)
        proxies = (p.outbound_proxy(settings) for p in self.plugins if p.outbound_proxy)
        return Outbound(allow_private_networks=is_open, proxy=next(proxies, None))

    def offer(self, settings: Settings) -> Offer:
        """What new accounts get, and where customers find other tiers."""
        said = [plugin.offer for plugin in self.plugins if plugin.offer]
        return said[0](settings) if said else NO_OFFER

    def caps(self, settings: Settings) -> dict[str, int]:
        """Rate bucket -> requests per minute, where endpoint caps apply."""
        rates = self.rates.items() if settings.limits.endpoint_caps else ()
        return {name: per_minute(settings) for name, per_minute in rates}

    @classmethod
    def build(
        cls,
        plugins: Iterable[Plugin],
        *,
        core_tables: Iterable[Table] = (),
        core_indexes: Iterable[Any] = (),
    ) -> Registry:
        """Order, check, freeze. Raises RegistryError."""
        ordered = _in_dependency_order(list(plugins))
        tables = _unique("table", [*_owned(CORE, core_tables), *_each(ordered, "tables")])
        given = [*_owned(CORE, core_indexes), *_each(ordered, "indexes")]
        indexes = _unique("index", given)
        _add_tables_of_indexes(tables, given, ordered)
        events = _unique("event", _each(ordered, "events"), key="kind")
        restore: dict[str, Restore] = {}
        for plugin in ordered:
            for kind, how in plugin.restore.items():
                if restore.setdefault(kind, how) is not how:
                    raise RegistryError(
                        f"plugin {plugin.name!r} takes in records of kind {kind!r}, which another "
                        "plugin does already"
                    )
        operations = _unique("operation", _each(ordered, "operations"))
        owners = {each.name: plugin for plugin, each in _each(ordered, "operations")}
        operations |= _replaced(ordered, owners)
        _check_routes(operations.values(), owners)
        _check_id_prefixes(ordered)
        sections_of(ordered)
        _check_kept(ordered)
        _only_one_says(ordered, "offer", "what is offered")
        _only_one_says(ordered, "outbound_proxy", "which proxy requests go through")
        features = _declared_once("feature", ordered, lambda plugin: plugin.features)
        _check_features(operations.values(), features)
        _check_extras(ordered)
        rates = _declared_once("rate", ordered, lambda plugin: plugin.rates)
        return cls(
            plugins=tuple(ordered),
            operations=MappingProxyType(operations),
            tables=MappingProxyType(tables),
            indexes=MappingProxyType(indexes),
            index_entries=MappingProxyType(_index_entries(ordered, indexes)),
            events=MappingProxyType(events),
            subscribers=MappingProxyType(_subscribers(ordered, events)),
            audiences=tuple(plugin.audience for plugin in ordered if plugin.audience is not None),
            figures=tuple(plugin.figures for plugin in ordered if plugin.figures is not None),
            access_counters=MappingProxyType(
                {
                    name: function
                    for plugin in ordered
                    for name, function in plugin.access_counters.items()
                }
            ),
            jobs=MappingProxyType(_unique("job", _each(ordered, "jobs"))),
            retrievers=tuple(_unique("retriever", _each(ordered, "retrievers")).values()),
            tools=_tools(ordered, operations),
            restore=MappingProxyType(restore),
            features=MappingProxyType(features),
            rates=MappingProxyType(rates),
            records=MappingProxyType(_declared_once("record", ordered, lambda each: each.records)),
            models=MappingProxyType(_declared_once("model", ordered, lambda plugin: plugin.models)),
        )


def _in_dependency_order(plugins: list[Plugin]) -> list[Plugin]:
    by_name = _unique("plugin", _owned("", plugins))
    ordered: list[Plugin] = []
    visiting: list[str] = []

    def visit(plugin: Plugin) -> None:
        if plugin in ordered:
            return
        if plugin.name in visiting:
            raise RegistryError(
                "plugins require each other in a circle: " + " → ".join([*visiting, plugin.name])
            )
        visiting.append(plugin.name)
        for name in plugin.requires:
            if name not in by_name:
                raise RegistryError(
                    f"plugin {plugin.name!r} requires {name!r}, which is not enabled"
                )
            visit(by_name[name])
        visiting.pop()
        ordered.append(plugin)

    for plugin in plugins:
        visit(plugin)
    return ordered


def _subscribers(
    plugins: list[Plugin], events: Mapping[str, Event]
) -> dict[str, tuple[Subscriber, ...]]:
    """The functions that hear of an event, by its kind."""
    found: dict[str, tuple[Subscriber, ...]] = {}
    for plugin in plugins:
        for wanted, function in plugin.subscribe.items():
            if wanted != EVERY_EVENT and wanted not in events:
                raise RegistryError(
                    f"plugin {plugin.name!r} subscribes to {wanted!r}, which no plugin declares"
                )
            public = [kind for kind in events if not kind.startswith("internal.")]
            for kind in public if wanted == EVERY_EVENT else [wanted]:
                found[kind] = (*found.get(kind, ()), function)
    return found


def _index_entries(
    plugins: list[Plugin], indexes: Mapping[str, Any]
) -> dict[str, tuple[FurtherEntries, ...]]:
    """What plugins add to each other's bitmap indexes, by index."""
    found: dict[str, tuple[FurtherEntries, ...]] = {}
    for plugin in plugins:
        for name, function in plugin.index_entries.items():
            if name not in indexes:
                raise RegistryError(
                    f"plugin {plugin.name!r} has entries for index {name!r}, "
                    "which no plugin declares"
                )
            found[name] = (*found.get(name, ()), function)
    return found


def sections_of(plugins: Iterable[Plugin]) -> dict[str, type[Section]]:
    """Every section of the settings that plugins declare. Raises RegistryError."""
    sections: dict[str, type[Section]] = {}
    owners = dict.fromkeys(Settings.model_fields, CORE)
    for plugin in plugins:
        for name, section in plugin.settings.items():
            if name in owners:
                raise RegistryError(
                    f"plugin {plugin.name!r} declares the settings section {name!r}, as does "
                    f"{owners[name]}"
                )
            owners[name], sections[name] = f"plugin {plugin.name!r}", section
    return sections


def _declared_once(
    what: str, plugins: list[Plugin], of: Callable[[Plugin], Mapping[str, Declared]]
) -> dict[str, Declared]:
    """What the plugins declare under names, by name."""
    owners: dict[str, str] = {}
    found: dict[str, Declared] = {}
    for plugin in plugins:
        for name, declared in of(plugin).items():
            if name in owners:
                raise RegistryError(
                    f"plugins {owners[name]!r} and {plugin.name!r} both declare the {what} {name!r}"
                )
            owners[name], found[name] = plugin.name, declared
    return found


def _check_kept(plugins: Iterable[Plugin]) -> None:
    _unique("room for", _each(plugins, "keeps"))
    for plugin, kept in _each(plugins, "keeps"):
        if not _KEPT.fullmatch(kept.name) or kept.name in CORE_TERMS:
            raise RegistryError(
                f"plugin {plugin!r} keeps {kept.name!r}; the name must be small letters and "
                f"underscores, and none of {', '.join(CORE_TERMS)}"
            )
        if unknown := [tier for tier in kept.room if tier not in TIERS]:
            raise RegistryError(
                f"plugin {plugin!r} says what room for {kept.name!r} the tier {unknown[0]!r} has; "
                f"the tiers are {', '.join(TIERS)}"
            )


def _check_features(operations: Iterable[Operation], features: Mapping[str, Feature]) -> None:
    for operation in operations:
        if isinstance(operation.feature, str) and operation.feature not in features:
            raise RegistryError(
                f"operation {operation.name!r} is of the feature {operation.feature!r}, which no "
                "plugin declares"
            )


def _check_extras(plugins: Iterable[Plugin]) -> None:
    for plugin in plugins:
        for operation in (*plugin.operations, *plugin.replaces):
            if isinstance(operation.extra, Extra) and operation.extra not in plugin.extras:
                raise RegistryError(
                    f"operation {operation.name!r} needs the extra {operation.extra.name!r}, which "
                    f"plugin {plugin.name!r} does not declare"
                )


def _only_one_says(plugins: list[Plugin], field: str, what: str) -> None:
    names = [plugin.name for plugin in plugins if getattr(plugin, field)]
    if len(names) > 1:
        raise RegistryError(f"plugins {names[0]!r} and {names[1]!r} both say {what}")


def _replaced(plugins: list[Plugin], owners: Mapping[str, str]) -> dict[str, Operation]:
    """The operations that a plugin gives a fuller form, by name. owners: operation -> plugin."""
    found = _unique("replacement", _each(plugins, "replaces"))
    for plugin in plugins:
        for operation in plugin.replaces:
            if owners.get(operation.name) not in plugin.requires:
                raise RegistryError(
                    f"plugin {plugin.name!r} replaces {operation.name!r}, which no plugin it "
                    "requires declares"
                )
    return found


def _tools(
    plugins: list[Plugin], operations: Mapping[str, Operation]
) -> tuple[tuple[Tool, Operation], ...]:
    """Every tool with the operation it calls, in the order that agents see."""
    _unique("tool", _each(plugins, "tools"))
    for plugin in plugins:
        own = {operation.name for operation in (*plugin.operations, *plugin.replaces)}
        for tool in plugin.tools:
            if tool.operation not in own:
                raise RegistryError(
                    f"tool {tool.name!r} of plugin {plugin.name!r} calls {tool.operation!r}, which "
                    "is no operation of that plugin"
                )
    tools = sorted((tool for plugin in plugins for tool in plugin.tools), key=lambda t: t.place)
    return tuple((tool, operations[tool.operation]) for tool in tools)


def _owned(owner: str, items: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(owner, item) for item in items]


def _each(plugins: Iterable[Plugin], declared: str) -> list[tuple[str, Any]]:
    """(name of the plugin, what it declares), of all plugins in their order."""
    return [(plugin.name, item) for plugin in plugins for item in getattr(plugin, declared)]


def _unique(what: str, items: Iterable[tuple[str, Any]], key: str = "name") -> dict[str, Any]:
    """The items by name. items: (who declares it, or "" where that is no matter, the item)."""
    found: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for owner, item in items:
        name = getattr(item, key)
        if name in found:
            raise RegistryError(
                f"{what} {name!r} is declared twice" + _by_whom(owners[name], owner)
            )
        found[name], owners[name] = item, owner
    return found


def _by_whom(first: str, second: str) -> str:
    if not second:
        return ""
    whom = dict.fromkeys(CORE if name == CORE else f"plugin {name!r}" for name in (first, second))
    return f", by {' and '.join(whom)}"


def _add_tables_of_indexes(
    tables: dict[str, Table], indexes: Iterable[tuple[str, Any]], plugins: Iterable[Plugin]
) -> None:
    owners = {table.name: plugin for plugin, table in _each(plugins, "tables")}
    for owner, index in indexes:
        for table in index.tables:
            if tables.get(table.name) is table and owners[table.name] == owner:
                continue  # several indexes of a plugin may share one
            if table.name in tables:
                raise RegistryError(
                    f"table {table.name!r} of index {index.name!r} is declared twice"
                    + _by_whom(owners.get(table.name, CORE), owner)
                )
            tables[table.name], owners[table.name] = table, owner


def _check_id_prefixes(plugins: Iterable[Plugin]) -> None:
    owners = dict.fromkeys(CORE_ID_PREFIXES, CORE)
    for plugin, prefix in _each(plugins, "id_prefixes"):
        if not _ID_PREFIX.fullmatch(prefix):
            raise RegistryError(
                f"plugin {plugin!r} has ids that begin with {prefix!r}; a prefix is three small "
                "letters"
            )
        if prefix in owners:
            raise RegistryError(
                f"id prefix {prefix!r} is declared twice" + _by_whom(owners[prefix], plugin)
            )
        owners[prefix] = plugin


def _check_routes(operations: Iterable[Operation], owners: Mapping[str, str]) -> None:
    routes: dict[tuple[str, str], str] = {}
    for operation in operations:
        for path in (operation.path, *operation.aliases):
            shape = "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
            other = routes.setdefault((operation.method, shape), operation.name)
            if other != operation.name:
                raise RegistryError(
                    f"operations {other!r} and {operation.name!r} share the route "
                    f"{operation.method} {path}" + _by_whom(owners[other], owners[operation.name])
                )
        if operation.idempotency is Idempotency.CANONICAL and operation.resource is None:
            raise RegistryError(
                f"operation {operation.name!r} is canonical and must say how its resource is read "
                "again"
            )
        if operation.accounts and operation.scope != "public":
            raise RegistryError(
                f"operation {operation.name!r} takes a tenant's credential and cannot act on the "
                "accounts of a slot"
            )
        if (
            operation.scope == "public"
            and operation.kind is Kind.WRITE
            and operation.slot_of is None
        ):
            raise RegistryError(
                f"operation {operation.name!r} is public and must say which slot it acts on"
            )
