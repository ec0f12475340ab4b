"""What every plugin owes, as checks: sentences about what it does not keep, none where all is well.

Declarations are judged as they stand; then a service with the plugin is started in a temporary
directory, its operations are called with their examples, and the account is exported, taken in by
another one and erased. An account of a plugin that requires memories has one before.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
from pydantic import BaseModel, ValidationError

from mneme.testing.harness import JOBS_SECONDS_MAX, Harness
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Flow, Idempotency, Kind, Operation
from runtime.api.plugin import CORE_ID_PREFIXES, Plugin, RegistryError, Retriever
from runtime.installed import misnamed
from storage.store import Reader, Table, Transaction

SCOPES = ("public", "read", "write", "admin")
RECORDS_TAKEN_IN = 10
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
BUCKETS = ("default", "search", "batch", "media")
_ID = re.compile(r"\b([a-z]{3})_[0-9a-hjkmnp-tv-z]{32}\b")
_PARAMETER = re.compile(r"{(\w+)}")

Live = Callable[[Harness, str], None]


def check_plugin(plugin: Plugin, *others: Plugin, live: Live | None = None) -> list[str]:
    """What the plugin does not keep of the contract, a sentence each.

    others  plugins of other packages that it requires
    live    (service, access token) -> None: fills the account, for a plugin whose examples alone
            store nothing
    """
    found = [*misnamed(plugin), *_declarations(plugin)]
    with tempfile.TemporaryDirectory() as directory:
        try:
            service = Harness(Path(directory), *others, plugin)
        except (RegistryError, ValueError) as refused:
            return [*found, f"it cannot be installed: {refused}"]
        with service:
            found += [*_undocumented(service, plugin), *_lived(service, plugin, live)]
    return list(dict.fromkeys(found))  # what makes something is called twice


# --- as it is declared ----------------------------------------------------------------------------


def _declarations(plugin: Plugin) -> Iterator[str]:
    built_in = import_module("serve_app").PLUGINS
    buckets = {*BUCKETS, *plugin.rates, *(name for each in built_in for name in each.rates)}
    for operation in plugin.operations:
        yield from (f"operation {operation.name}: {what}" for what in _judged(operation, buckets))
    required = [each for each in built_in if each.name in plugin.requires]
    known = {*CORE_ID_PREFIXES, *(p for each in (plugin, *required) for p in each.id_prefixes)}
    for prefix in sorted(set(_prefixes(plugin)) - known):
        yield f"its examples have ids that begin with {prefix}_, which id_prefixes does not declare"
    if (plugin.tables or plugin.indexes) and not (plugin.erase and plugin.export):
        yield "it stores something, and must say how that is erased and exported"
    for table in plugin.tables:
        if not table.sealed and table.row is not bytes:
            yield f"table {table.name}: rows of structs lie open; leave out sealed=False"
    yield from _migrations(plugin)


def _migrations(plugin: Plugin) -> Iterator[str]:
    """What keeps a store of an earlier release from being opened."""
    tables = {table.name: table for table in plugin.tables}
    for table in tables.values():
        for before in range(1, table.version):
            is_taken = before in table.reshape or before + 1 == table.sealed_from
            if not is_taken and (table.name, before) not in plugin.migrations:
                yield (
                    f"table {table.name} is at version {table.version}, and no migration takes "
                    f"its rows from {before} to {before + 1}"
                )
    for name, before in plugin.migrations:
        if name not in tables:
            yield f"a migration is of {name}, which is none of its tables"
        elif not 0 < before < tables[name].version:
            yield (
                f"a migration of {name} begins at version {before}, which no earlier release wrote"
            )


def _judged(operation: Operation, buckets: Iterable[str]) -> Iterator[str]:
    if not operation.summary or operation.summary.endswith("."):
        yield "its summary must be a few words without a full stop"
    if not operation.path.startswith("/v1/"):
        yield f"its path {operation.path} must begin with /v1/"
    if operation.scope not in SCOPES:
        yield f"its scope must be one of {', '.join(SCOPES)}"
    if operation.rate not in buckets:
        yield f"its rate bucket {operation.rate!r} is declared by no plugin (`rates`)"
    if not callable(operation.credits) and operation.credits < 0:
        yield "its credits must be 0 or more"
    if not all(200 <= status < 300 for status in operation.statuses):
        yield "its statuses must be those of a success"
    yield from _examples(operation)
    changes = operation.kind is not Kind.READ
    if operation.method == "GET" and changes and not isinstance(operation, Flow):
        yield "a GET changes nothing"
    if changes and operation.method in CHANGING and operation.idempotency is Idempotency.NONE:
        yield "what changes something must be repeatable: idempotency=Idempotency.CACHED"
    if changes and operation.scope == "read" and not isinstance(operation, Flow):
        yield "what changes something needs scope write"


def _examples(operation: Operation) -> Iterator[str]:
    for model in filter(None, (operation.body, operation.query)):
        for name, field in model.model_fields.items():
            if not field.description:
                yield f"{model.__name__}.{name} has no description"
    if operation.query is not None:
        for name, field in operation.query.model_fields.items():
            if field.is_required() and not field.examples:
                model = operation.query.__name__
                yield f"{model}.{name} is required, and needs an example: Field(examples=[…])"
    if operation.body is not None and not operation.upload:
        yield from _untrue("example", operation.body, operation.example)
    if operation.response is None:
        if operation.statuses != (204,):
            yield "without a response its only status is 204"
    else:
        yield from _untrue("example_reply", operation.response, operation.example_reply)


def _untrue(what: str, model: type[BaseModel], example: Any) -> Iterator[str]:
    if example is None:
        yield f"it needs an {what}"
        return
    try:
        read = model.model_validate(example)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        yield f"its {what} is not true at {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    if isinstance(example, dict) and (unknown := {*example} - {*type(read).model_fields}):
        yield f"its {what} names {sorted(unknown)[0]}, which the model does not have"


def _prefixes(plugin: Plugin) -> Iterator[str]:
    for operation in plugin.operations:
        text = orjson.dumps([operation.example, operation.example_reply], default=str).decode()
        yield from _ID.findall(text)


def _undocumented(service: Harness, plugin: Plugin) -> Iterator[str]:
    described = service.request("GET", "/openapi.json").json()["paths"]
    for operation in plugin.operations:
        there = described.get(operation.path, {})
        if not operation.internal and operation.method.lower() not in there:
            yield f"operation {operation.name} is missing in the OpenAPI document"


# --- as it lives ----------------------------------------------------------------------------------


def _lived(service: Harness, plugin: Plugin, live: Live | None) -> Iterator[str]:
    me = service.register()
    if "memories" in plugin.requires:
        yield from _remembered(service, me)
    ids: dict[str, str] = {}
    calls = [
        each
        for each in plugin.operations
        if not (each.internal or each.upload or each.scope == "public")
    ]
    # What takes no id comes first: its replies tell the ids that others take. What removes is last,
    # and what makes something is then called once more.
    calls.sort(key=lambda each: (each.method == "DELETE", each.path.count("{")))
    making = [each for each in calls if each.method == "POST" and "{" not in each.path]
    for operation in (*calls, *making):
        yield from _called(service, operation, me, ids)
    if live is not None:
        live(service, me)
    try:
        service.settle()
    except TimeoutError:
        yield f"its jobs do not end within {JOBS_SECONDS_MAX} seconds; the log says what they raise"
    for retriever in plugin.retrievers:
        yield from _searched(service, retriever, me)
    yield from _verified(service, plugin, me)
    yield from _taken_along(service, plugin, me)
    yield from _taken_in(service, plugin, me)
    yield from _erased(service, plugin, me)


def _remembered(service: Harness, me: str) -> Iterator[str]:
    memory = {"content": "The spare key is under the flower pot.", "user_id": "ada"}
    answer = service.request("POST", "/v1/memories", memory, who=me)
    if answer.status_code not in (201, 202):
        yield f"where it is installed, storing a memory answers {answer.status_code}"


def _called(service: Harness, operation: Operation, me: str, ids: dict[str, str]) -> Iterator[str]:
    wanted = _PARAMETER.findall(operation.path)
    fields = {} if operation.query is None else operation.query.model_fields
    required = {n: each.examples or [] for n, each in fields.items() if each.is_required()}
    if not all(name in ids for name in wanted) or not all(required.values()):
        return
    query = urlencode({fields[name].alias or name: each[0] for name, each in required.items()})
    path = operation.path.format(**ids) + (query and f"?{query}")
    answer = service.request(operation.method, path, operation.example, who=me)
    if answer.status_code >= 500 or (not wanted and answer.status_code not in operation.statuses):
        yield (
            f"operation {operation.name} answers its own example with {answer.status_code}: "
            f"{answer.text[:200]}"
        )
    elif answer.is_success and answer.content[:1] == b"{":
        if operation.response is not None:
            yield from (
                f"operation {operation.name}: {what}"
                for what in _untrue("answer", operation.response, answer.json())
            )
        if operation.method == "POST":
            ids |= {name: value for name, value in answer.json().items() if isinstance(value, str)}


def _searched(service: Harness, retriever: Retriever, me: str) -> Iterator[str]:
    asked = {"query": "Where is the spare key?", "search_type": retriever.name}
    answer = service.request("POST", "/v1/search", asked, who=me)
    if answer.status_code != 200:
        yield f"retriever {retriever.name}: a search by it alone answers {answer.status_code}"
    elif reasons := answer.json()["degraded_reasons"]:
        yield f"retriever {retriever.name}: a search by it alone is degraded: {reasons[0]}"


def _tables(plugin: Plugin) -> list[Table]:
    tables = (*plugin.tables, *(table for index in plugin.indexes for table in index.tables))
    return [table for table in tables if table.level == "tenant"]


def _context(service: Harness, kind: type[Any], reader: Reader, me: str) -> Any:
    principal, scope = service.account_of(me)
    call = Call("contract", scope.slot, int(time.time() * 1000), b"s" * 32, "contract")
    return kind(reader, scope, call, service.shard.environment, principal)


def _verified(service: Harness, plugin: Plugin, me: str) -> Iterator[str]:
    with service.shard.store.snapshot() as snapshot:
        ctx = _context(service, ReadContext, snapshot, me)
        for check in plugin.checks:
            try:
                yield from (f"its checks find in {each.table}: {each.what}" for each in check(ctx))
            except Exception as failed:  # as below
                yield f"one of its checks fails with {type(failed).__name__}: {failed}"


def _taken_along(service: Harness, plugin: Plugin, me: str) -> Iterator[str]:
    if not _tables(plugin) or plugin.export is None:
        return
    with service.shard.store.snapshot() as snapshot:
        ctx = _context(service, ReadContext, snapshot, me)
        if not any(ctx[table].count() for table in _tables(plugin)):
            yield "no example stores anything: give check_plugin a `live` that does"
            return
        try:
            records = [record[:2] for record in plugin.export(ctx)]
        except Exception as failed:  # whatever the plugin's own code raises is told, not passed on
            yield f"its export fails with {type(failed).__name__}: {failed}"
            return
    if not records:
        yield "its export is empty, though the account has something of it"
    for kind, record in records:
        try:
            orjson.dumps(record)
        except TypeError as unfit:
            yield f"its export of kind {kind} is no JSON: {unfit}"


def _taken_in(service: Harness, plugin: Plugin, me: str) -> Iterator[str]:
    """What another account makes of the records that are taken in again."""
    if plugin.export is None or not plugin.restore:
        return
    other = service.register("ben@example.com")
    found = []
    for who in (me, other):
        with service.shard.store.snapshot() as snapshot:
            ctx = _context(service, ReadContext, snapshot, who)
            try:
                found.append([each[:2] for each in plugin.export(ctx) if each[0] in plugin.restore])
            except Exception:  # which was told before
                return
        if who == me and found[0]:
            part = {"records": [{"kind": k, "record": r} for k, r in found[0][:RECORDS_TAKEN_IN]]}
            answer = service.request("POST", "/v1/account/import/parts", part, who=other)
            if not answer.is_success:
                yield f"another account's import of its export answers {answer.text[:200]}"
                return
    before, after = ({*_ids(plugin, records)} for records in found)
    if before & after:
        yield (
            "its restore stores ids of the account that was exported, which are refused in any "
            "other: origin.renamed(id) is what the importing one calls it"
        )


def _ids(plugin: Plugin, records: list[Any]) -> Iterator[str]:
    text = orjson.dumps(records, default=str).decode()
    return (each[0] for each in _ID.finditer(text) if each[1] in plugin.id_prefixes)


def _erased(service: Harness, plugin: Plugin, me: str) -> Iterator[str]:
    hook = plugin.erase
    if hook is None:
        return

    def erase(transaction: Transaction) -> list[str]:
        ctx = _context(service, WriteContext, transaction, me)
        # As an erasure does: what needs no reading goes first, the tables of indexes among it.
        for table in (*plugin.swept, *(table for i in plugin.indexes for table in i.tables)):
            ctx[table].delete_prefix()
        hook(ctx)
        return [table.name for table in _tables(plugin) if ctx[table].count()]

    try:
        left = service.shard.store.write(erase).result
    except Exception as failed:  # as above
        yield f"its erasure fails with {type(failed).__name__}: {failed}"
        return
    for name in left:
        yield f"erasing an account leaves rows of table {name}"
