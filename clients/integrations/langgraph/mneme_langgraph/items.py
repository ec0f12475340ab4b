"""How an item of a store lies in a memory of the service.

content           the texts that searches go by; the item's place where none are
source_type       "langgraph": the memory is an item
source_reference  the item's place: namespace and key as a JSON list
app_id            the namespace under a prefix of the store's, so that the service can name all
tags              "unindexed" where searches by query shall not rank it
expires_at        when it goes, where it has a TTL
metadata.item     key; namespaces: those above it and its own, labels joined by dots; ttl:
                  minutes; wide: more values than filters of the service see; written_at: when
                  the value was put, where the memory has changed since
metadata.value    the value, 16 KiB with the rest of the metadata
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path, tokenize_path

SOURCE_TYPE, UNINDEXED = "langgraph", "unindexed"
NAMESPACES, WIDE, VALUE = "metadata.item.namespaces", "metadata.item.wide", "metadata.value"
WHOLE = "$"
# The service indexes 256 values of a memory's metadata, those of metadata.item among them.
VALUES_INDEXED_MAX = 120
NAMESPACE_DEPTH_MAX = 64
APP_ID_CHARS_MAX = 255
METADATA_BYTES_MAX = 16 * 1024

Place = tuple[tuple[str, ...], str]
Memory = Mapping[str, Any]


def reference(place: Place) -> str:
    """The source_reference of the item at a place."""
    namespace, key = place
    return json.dumps([*namespace, key], ensure_ascii=False)


def place_of(memory: Memory) -> Place:
    """The place of the item in a memory."""
    at = memory["metadata"]["item"]
    return tuple(at["namespaces"][-1].split(".")[:-1]) if at["namespaces"] else (), at["key"]


def path(namespace: tuple[str, ...]) -> str:
    """The labels, each with a dot behind it, so that none is a sign of the filter language."""
    return "".join(f"{label}." for label in namespace)


def fields(op: PutOp, namespace_prefix: str, default_paths: Sequence[str]) -> dict[str, Any]:
    """What a memory is created with, for a put of a value.

    namespace_prefix: of app_id. default_paths: what is indexed unless the put says otherwise; none
    where the store has no index. Raises TypeError and ValueError for a value that is no JSON.
    """
    if op.value is None:
        raise TypeError("A put without a value deletes.")
    if len(op.namespace) > NAMESPACE_DEPTH_MAX:
        raise ValueError(f"A namespace has at most {NAMESPACE_DEPTH_MAX} labels.")
    app_id = namespace_prefix + ".".join(op.namespace)
    if len(app_id) > APP_ID_CHARS_MAX:
        labels_max = APP_ID_CHARS_MAX - len(namespace_prefix)
        raise ValueError(
            f"A namespace has at most {labels_max} characters, with a dot between two."
        )
    value = json.loads(json.dumps(dict(op.value), ensure_ascii=False, allow_nan=False))
    place = (op.namespace, op.key)
    text = _text(value, op.index, default_paths)
    item: dict[str, Any] = {
        "key": op.key,
        "namespaces": list(accumulate(path((label,)) for label in op.namespace)),
    }
    if op.ttl is not None:
        item["ttl"] = op.ttl
    if _count(value) > VALUES_INDEXED_MAX:
        item["wide"] = True
    metadata = {"item": item, "value": value}
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    if size > METADATA_BYTES_MAX:
        raise ValueError(f"The value is too large: {size} bytes of {METADATA_BYTES_MAX}.")
    return {
        "content": text or reference(place),
        "source_type": SOURCE_TYPE,
        "source_reference": reference(place),
        "app_id": app_id,
        "tags": [] if text else [UNINDEXED],
        "expires_at": expiry(op.ttl),
        "metadata": metadata,
    }


def expiry(ttl_minutes: float | None) -> datetime | None:
    """When an item goes that is put or read now; never, where no calendar goes so far."""
    try:
        return None if ttl_minutes is None else datetime.now(UTC) + timedelta(minutes=ttl_minutes)
    except OverflowError:
        return None


def item(memory: Memory) -> Item:
    """The item in a memory."""
    return Item(**_parts(memory))


def search_item(memory: Memory, score: float | None) -> SearchItem:
    """The item in a memory that a search found."""
    return SearchItem(**_parts(memory), score=score)


def _parts(memory: Memory) -> dict[str, Any]:
    namespace, key = place_of(memory)
    written_at = memory["metadata"]["item"].get("written_at", memory["updated_at"])
    return {
        "namespace": namespace,
        "key": key,
        "value": memory["metadata"]["value"],
        "created_at": datetime.fromisoformat(memory["created_at"]),
        "updated_at": datetime.fromisoformat(written_at),
    }


def _text(value: Any, index: bool | Iterable[str] | None, default_paths: Sequence[str]) -> str:
    """The texts at the paths, a blank line between them; empty where nothing is to be indexed."""
    if index is False or not default_paths:
        return ""
    paths = default_paths if index is None or index is True else index
    texts: list[str] = []
    for path in paths:
        found = _lines(value) if path == WHOLE else get_text_at_path(value, tokenize_path(path))
        texts += [text for text in found if text.strip()]
    return "\n\n".join(dict.fromkeys(texts))


def _lines(value: Any) -> list[str]:
    """A value in words, a line each for what has a name: `memory: Ada eats no nuts.`"""
    lines = [f"{path}: {leaf}" if path else str(leaf) for path, leaf in _leaves(value, "")]
    return ["\n".join(lines)]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path} {name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    elif value is not None:
        yield path, value


def _count(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_count, value.values() if isinstance(value, dict) else value))
    return 1
