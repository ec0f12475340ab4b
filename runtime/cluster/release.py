"""Which release a process runs, as processes tell each other before anything else: the version, and
a digest of what they share.

A cluster runs one release. Calls travel as pickles of positions, and rows are read by whoever has
their store, so two releases that take each other for one do not fail: they mistake one field for
another. What differs between two is in the digest: the tables with their versions and rows, and
what travels for each operation. Plugins of other packages are named with their versions, since the
settings, which only a process of the same release can read, say which of them are enabled.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from runtime.api.operation import Call, Credential, Reply
from runtime.api.plugin import Registry
from runtime.cluster.process import resolve
from runtime.installed import installed
from runtime.release import service_version
from storage.store import shape_of

_DIGEST_CHARS = 16


class OtherRelease(Exception):
    """A process of another release was met; nothing was asked of it. The message is a sentence."""


@cache
def release_of(opener: str) -> str:
    """What this process runs, for people to read and processes to compare. opener: of its shards,
    beside which the module has its registry.
    """
    registry: Registry = resolve(f"{opener.partition(':')[0]}:registry")()
    others = "".join(f", {each.name} {each.version}" for each in installed())
    return f"{service_version()} (schema {schema_digest(registry)}{others})"


def schema_digest(registry: Registry) -> str:
    """What must be the same in two processes of one cluster, in sixteen characters."""
    shared = (
        [_as_tuples(kind, set()) for kind in (Call, Credential, Reply)],
        sorted((table.name, table.version, shape_of(table)) for table in registry.tables.values()),
        [
            (
                name,
                operation.kind.value,
                _as_tuples(operation.body, set()),
                _as_tuples(operation.query, set()),
            )
            for name, operation in sorted(registry.operations.items())
        ],
    )
    return hashlib.sha256(repr(shared).encode()).hexdigest()[:_DIGEST_CHARS]


def check_release(own: str, other: str, whose: str) -> None:
    """Raise OtherRelease unless both are the same."""
    if own != other:
        raise OtherRelease(
            f"{whose} is of release {other or 'unknown'}, and who asks is of "
            f"{own or 'an unknown one'}; a cluster runs one release. Install the same one "
            "everywhere, and restart what is older."
        )


def _as_tuples(kind: Any, above: set[Any]) -> Any:
    """A type as nested tuples of names, those of the fields of models included."""
    parts = get_args(kind)
    if get_origin(kind) is Annotated:  # what else it holds are checks
        return _as_tuples(parts[0], above)
    if parts:
        return str(get_origin(kind)), *(_as_tuples(part, above) for part in parts)
    if not isinstance(kind, type):
        return repr(kind)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in above:
        return name
    if issubclass(kind, BaseModel):
        fields = {name: field.annotation for name, field in kind.model_fields.items()}
    elif dataclasses.is_dataclass(kind):
        fields = {field.name: field.type for field in dataclasses.fields(kind)}
    else:
        return name
    return name, *((field, _as_tuples(part, above | {kind})) for field, part in fields.items())
