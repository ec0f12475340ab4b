"""DATA.md, generated: every table and index of a registry, in the order of the plugins that own them.

`python -m runtime.data_format` prints it (`make docs` writes the file); a test compares it with the file in the repository.
"""

from __future__ import annotations

import importlib

from runtime.plugin import Registry
from runtime.shard import CORE_INDEXES, CORE_TABLES

PREAMBLE = """# Data format

Generated from the declarations (`make docs`); do not edit.

One shard is one directory with one LMDB environment (`data.mdb`). A physical key is

    2 bytes slot ‖ 4 bytes tenant number ‖ 2 bytes table code ‖ order-preserving encoding of the key tuple

so that a slot is one contiguous range and a tenant one range inside it. Tenant number 0 stands for the slot's own rows. Table
codes are given out when a table is first declared and kept in the environment's small second database, together with the
store's identity, the version of each table and the sequence of the last commit. Rows are MessagePack maps by field name, or raw
bytes. Values of Unix time are milliseconds.

What is not sealed: contents, metadata and vectors lie in the store as they are; whoever can read the disk can read them. API
keys, e-mail look-ups, idempotency keys and search terms appear only as keyed digests; passwords only as argon2id hashes; replies
kept for cached operations are encrypted with a key derived from the tenant's.
"""


def document(registry: Registry) -> str:
    """The whole of DATA.md."""
    parts = [PREAMBLE, _section("runtime", CORE_TABLES, CORE_INDEXES)]
    parts += [_section(plugin.name, plugin.tables, plugin.indexes) for plugin in registry.plugins if plugin.tables or plugin.indexes]
    return "\n".join(parts)


def _section(owner: str, tables: tuple, indexes: tuple) -> str:
    lines = [f"## {owner}", "", "| table | level | key | row | version | holds |", "|---|---|---|---|---|---|"]
    for table in tables:
        lines.append(_line(table, table.doc))
    for index in indexes:
        for table in index.tables:
            lines.append(_line(table, table.doc or f"index {index.name}"))
    lines.append("")
    for table in tables:
        if table.row is not bytes:
            fields = ", ".join(f"`{name}: {_type(kind)}`" for name, kind in table.row.__annotations__.items())
            lines += [f"`{table.row.__name__}` of `{table.name}`: {fields}.", ""]
    return "\n".join(lines)


def _line(table: object, doc: str) -> str:
    row = "bytes" if table.row is bytes else f"`{table.row.__name__}`"
    return f"| `{table.name}` | {table.level} | {', '.join(table.key)} | {row} | {table.version} | {doc} |"


def _type(kind: object) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


if __name__ == "__main__":
    print(document(importlib.import_module("serve_app").registry()), end="")
