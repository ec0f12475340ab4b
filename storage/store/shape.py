"""What a table's rows look like, in sixteen characters: two releases that read the same bytes agree
on them, and a row that gains, loses or changes a field changes them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec.inspect

from storage.store.schema import Table

_DIGEST_CHARS = 16


def shape_of(table: Table[Any]) -> str:
    """A digest of the table's key and of its rows, with the structs in them. It does not count the
    version, which is to be raised where the shape changes.
    """
    row = "bytes" if table.row is bytes else _as_tuples(msgspec.inspect.type_info(table.row))
    told = (table.key, table.level, table.sealed, table.owner, table.stamped, row)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:_DIGEST_CHARS]


def _as_tuples(part: Any) -> Any:
    """A type, a field or a value as nested tuples: what its bytes depend on, and neither the class
    of a struct nor a field's name in Python.
    """
    if isinstance(part, tuple):
        return tuple(_as_tuples(each) for each in part)
    if isinstance(part, (msgspec.inspect.Type, msgspec.inspect.Field)):
        found = {name: getattr(part, name) for name in part.__struct_fields__}
        told = sorted(name for name in found.keys() - {"cls", "name"} if found[name] is not None)
        return (type(part).__name__, *((name, _as_tuples(found[name])) for name in told))
    if callable(part):  # what makes a default
        return part.__name__
    return repr(part)
