"""DATA.md, generated: what lies on the disk, down to every table and index of a registry, in the
order of their owners.

`python -m runtime.cli.export_data_format` prints it (`make docs` writes the file); a test compares
it with the file in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

import msgspec

from runtime.api.plugin import Registry
from runtime.shard import CORE_INDEXES, CORE_TABLES
from storage.store import Table

PREAMBLE = """# Data format

Generated from the declarations by `make docs`; do not edit.

## The data directory

    layout.json           cluster id, number of shards and slots, format version; decided at the first start
    serve.lock            held with flock while a service runs; contains its process id
    secrets/              service, pepper, operator_token: one file each, readable by the owner only; while one is exchanged, the one
                          before beside it, such as service_previous
    pepper.mark           tells which pepper the digests are keyed with, and nothing of it
    object-store          the URL of the directory in which this installation has stored objects; without it one that is missing is made
    demo.json             e-mail, password and API key of the local demo account, if one was asked for
    logs/                 what shards and gateways have to say, and a line for each request
    models/               the embedding model in int8, as this processor runs it; derived from the weights
    shards/0000/ …        one directory for each shard
        data.mdb          the store: one LMDB environment; with an object store its database `log` holds the commits to be shipped
        keys.ring         the data keys of its tenants, wrapped by secrets/service; see storage/store/keyring.py
        lock.mdb, LOCK    LMDB's reader table, and a lock with the process id of whoever has the store open
        indexes/          what is resident of large accounts' vectors and records, sealed; derived

`data.mdb`, `keys.ring` and `secrets/` are the data, and belong together: a store is copied with its ring, and the ring taken after
the store has every key the store needs. What is derived is made again when it is missing. Without `secrets/service` nothing can be
read, and without `secrets/pepper` every API key is void and no e-mail address finds its account.

## Keys and rows

A physical key is

    2 bytes slot ‖ 4 bytes tenant number ‖ 2 bytes table code ‖ order-preserving encoding of the key tuple

so that a slot is one contiguous range and a tenant one range inside it. Numbers are big-endian; `storage/store/keycode.py` has the
encoding of tuples. A table of level *tenant* has rows for each tenant, one of level *slot* has rows of the slot itself, under
tenant number 0. Table codes are given out when a table is first declared. They are kept in the environment's small second
database, `meta`, with the store's identity, the version of each table and the sequence of the last commit.

A row is a MessagePack map by field name, or raw bytes. A reader ignores fields it does not know, and a field that is missing has
its default, so a new release reads old rows. Raw values are laid out by the module named beside them. Times are Unix
milliseconds; the `exp` of a revoked token is Unix seconds, as in the token.

## What can be read from the disk

Rows of the tables marked *sealed* below are encrypted with AES-256-GCM under a data key of their tenant's own, which lies in
`keys.ring`, wrapped by `secrets/service`. Who has the files without that secret learns what is listed next; keep the secret, or a
backup of it, away from the disk it protects (settings can give it). Sealed are contents, metadata, names, e-mail addresses, password
hashes, recorded events, what webhooks send, job payloads and kept replies; and what can be turned back into a text: the vectors of
texts and of their words, in the store, in its log and snapshots in the object store, and in the files under `indexes/`.

Not sealed, because indexes must compare and add it up:

- **keys of tables**: ids, numbers and times. Ids tell when something was made. No text of a user stands in a key: tags, speakers,
  user ids and the like stand in bitmap keys, and search terms in postings, as digests keyed with a secret of the tenant. So it
  shows how many memories share a tag or a term, and not which. Who knows what an account writes about may guess at its most frequent
  terms by how often they occur;
- **bitmaps, postings, terms of a memory**: ordinals, counts, lengths, and the keyed digests of terms, without their order;
- **text features** (`memory_cues`): times, keyed hashes of speakers and sessions, and what kind of text it is: how many words and
  capitals, whether it asks, quotes, or has a number or a time. Of passages, to which memory they belong;
- words of ours, such as the status of a job, the role of a speaker or the type of a source; days and hours;
- **numbers in metadata**, which filters compare, and importances: as they are, under keyed hashes of their names;
- **`credentials` and `emails`**: keyed digests, key ids, scopes; **`erasures`**: counts; and **`erased_accounts`**: numbers, times;
- sizes of rows, and when they were written.

Not there at all: the text of passwords, API keys and Idempotency-Keys, of which a slow hash or keyed digests are kept. (`demo.json`
has the demo account's.)

Erasing an account overwrites its key in `keys.ring` in place, so that its sealed rows are noise wherever a copy of them lies: in a
freed page of `data.mdb`, in a crash dump, in the file system's slack. What is not sealed leaves the file when LMDB uses the freed
pages again, or when the file is replaced by a compacted copy, such as a backup that is restored. Two copies of a key are out of
reach: one in a backup made before, and one that a file system with copy-on-write or a drive that moves its sectors may keep of an
overwritten block.

A store of format 1 was not encrypted, and in one of format 2 vectors were not. Either is brought up when it is first opened: format 1
in one transaction, vectors some megabytes at a time, so that a start which is broken off goes on where it was. Its file is then
replaced by a compacted copy; the blocks of the old file are the file system's to reuse. In an object store, segments and snapshots of
before keep vectors as they were until two snapshots have been taken since, and backups for as long as they are kept.
One of format 3 has no tokens of changes: they are drawn as it is written to, and nothing is rewritten.
"""


def document(registry: Registry) -> str:
    """The whole of DATA.md."""
    parts = [PREAMBLE, _section("runtime", CORE_TABLES, CORE_INDEXES)]
    parts += [
        _section(plugin.name, plugin.tables, plugin.indexes)
        for plugin in registry.plugins
        if plugin.tables or plugin.indexes
    ]
    return "\n".join(parts)


def _section(owner: str, tables: Iterable[Table], indexes: Iterable[Any]) -> str:
    """The tables of one plugin, those of its indexes, and then the fields of the rows."""
    lines = [
        f"## Tables of {owner}",
        "",
        "| table | level | sealed | key | row | version | holds |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_line(table, _row_name(table), table.doc) for table in tables]
    told = set[str]()
    for index in indexes:
        layout = f"bytes, `{type(index).__module__.replace('.', '/')}.py`"
        for table in index.tables:
            if table.name in told:
                continue  # that of another index too
            told.add(table.name)
            lines.append(
                _line(
                    table,
                    layout if table.row is bytes else _row_name(table),
                    table.doc or f"index {index.name}",
                )
            )
    lines.append("")
    everything = [*tables, *(table for index in indexes for table in index.tables)]
    for row in _structs(table.row for table in everything if table.row is not bytes):
        lines += [*_fields(row), ""]
    return "\n".join(lines)


def _line(table: Table, row: str, doc: str) -> str:
    key = ", ".join(table.key) or "(one row)"
    holds = (doc[:1].upper() + doc[1:]).rstrip(".")
    return (
        f"| `{table.name}` | {table.level} | {'yes' if table.sealed else ''} | {key} | {row} | "
        f"{table.version} | {holds} |"
    )


def _row_name(table: Table) -> str:
    return "bytes" if table.row is bytes else f"`{table.row.__name__}`"


def _structs(rows: Iterable[type]) -> Iterator[type]:
    """Each row type once, followed by the types it is made of."""
    waiting, seen = list(rows), set()
    while waiting:
        row = waiting.pop(0)
        if row not in seen:
            seen.add(row)
            waiting[:0] = [
                inner for hint in get_type_hints(row).values() for inner in _structs_inside(hint)
            ]
            yield row


def _structs_inside(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for argument in get_args(hint):
        yield from _structs_inside(argument)


def _fields(row: type) -> list[str]:
    """A row's fields with their types, and what its docstring says about them, as it is laid out
    there.
    """
    hints = get_type_hints(row)
    module = row.__module__.replace(".", "/") + ".py"
    lines = [
        f"`{row.__name__}` ({module}): "
        + ", ".join(
            f"`{stored}: {_type(hints[name])}`"
            for name, stored in zip(
                row.__struct_fields__, row.__struct_encode_fields__, strict=True
            )
        )
        + "."
    ]
    if row.__doc__:
        lines += [
            "",
            *(f"    {line}".rstrip() for line in inspect.cleandoc(row.__doc__).splitlines()),
        ]
    return lines


def _type(hint: Any) -> str:
    """As it is written in the source, without modules."""
    return (
        hint.__name__
        if isinstance(hint, type) and not get_args(hint)
        else re.sub(r"\b\w+\.(?=\w)", "", str(hint))
    )


if __name__ == "__main__":
    print(document(importlib.import_module("serve_app").registry()), end="")
